# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Writes the public functions (tensor/ops.h, ops_api_F.c) and each family's header for the library."""
import re
import textwrap

import either

NOTE = '/* Generated from lib/schema/ops/. */\n'

RESULTS_NOTE = """/*
 * An operator with several results returns 0 or -errno and stores each result through a pointer. NULL in place of the pointer
 * drops that result. A list of results, and a result that is no tensor, needs its pointer: EINVAL for NULL.
 */
"""

# Arguments that are numbers in the schema language and have an enumeration in <tensor/types.h>. They stay int64_t
# in C, where a constant of the enumeration converts to it.
ENUMERATIONS = {
    'reduction': 'enum tensor_reduction',
    'interpolation_mode': 'enum tensor_interpolation_mode',
    'padding_mode': 'enum tensor_padding_mode',
}


def enumeration(op, arg):
    """The enumeration of an argument's values, or None."""
    if arg.type != 'int':
        return None
    if arg.name == 'mode' and 'embedding_bag' in op.base:
        return 'enum tensor_bag_mode'
    return ENUMERATIONS.get(arg.name)


def comment(op):
    lines = textwrap.wrap(f'{op.text}', 92, break_long_words=False)
    lines += textwrap.wrap(op.words.doc, 92)
    lines += textwrap.wrap(op.words.shapes, 92)
    lines += textwrap.wrap(op.words.errors, 92)
    lines += [f'{a.name}: {enumeration(op, a)}.' for a in op.args if enumeration(op, a)]
    return '/*\n' + ''.join(f' * {line}\n' for line in lines) + ' */\n'


def parameters(op, hide=False):
    """The parameters in the public header, where a list is of the type that C++ converts literals to."""
    return re.sub(r'\b(tensor_(?:ints|floats|scalars|list)) ', r'\1_arg ', op.params(hide))


def public_header(ops):
    out = [NOTE, RESULTS_NOTE, '#ifndef TENSOR_OPS_H\n#define TENSOR_OPS_H\n\n#include <tensor/types.h>\n\n',
           '#ifdef __cplusplus\nextern "C" {\n#endif\n\n']
    for op in ops:
        out.append(comment(op))
        out.append(f'{op.ctype}tensor_{op.c_name}({parameters(op, hide=True)});\n')
        if op.hidden:
            out.append(f'{op.ctype}tensor_{op.c_name_full}({parameters(op)});\n')
        out.append('\n')
    out.append('#ifdef __cplusplus\n}\n#endif\n\n')
    out.append(either.text(ops))
    out.append('#endif\n')
    return ''.join(out)


def key_union(op):
    """C expression: the union of the arguments' key sets."""
    parts, lists = [], []
    for a in op.args:
        if a.type == 'Tensor':
            parts.append(f'{a.name}->keys')
        elif a.type == 'Tensor?':
            parts.append(f'({a.name} ? {a.name}->keys : 0)')
        elif a.type == 'Tensor[]':
            lists.append(f'list_keys({a.name})')
        elif a.type == 'Tensor?[]':
            lists.append(f'optional_list_keys({a.name})')
    if not parts and not lists:
        return 'option_keys(options)'
    return ' | '.join(parts + lists)


def fail(op):
    return '-thread()->error.code' if op.multi else 'NULL'


def kernel_names(ops):
    names = {op.kernel for op in ops if op.kind == 'op'}
    return sorted(names | {n for op in ops for field in ('also', 'devices') for n in op.entry.get(field, [])})


def symbols(op):
    """Names that a family's header declares for an operator."""
    return {f'tensor_{op.c_name}', f'tensor_{op.c_name_full}', f'entry_{op.id}', f'fn_{op.id}',
            f'call_{op.id}'}


def inline_call(op):
    """The call that dispatches, for use inside the library."""
    names = ', '.join([n for _, n, _ in op.c_args()] + [n for _, n in op.c_results()])
    missing = f'dispatch_missing(&entry_{op.id}, keys)'
    if not op.multi:
        missing = f'((void){missing}, (tensor *)NULL)'
    return (f'extern struct tensor_op entry_{op.id};\n'
            f'typedef {op.ctype}(*fn_{op.id})({op.params()});\n'
            f'static inline {op.ctype}call_{op.id}({op.params()})\n{{\n'
            f'\tuint32_t keys = {key_union(op)};\n'
            f'\tuint32_t ks = dispatch_keys(thread(), op_mask(&entry_{op.id}), keys);\n\n'
            f'\tif (unlikely(!ks))\n\t\treturn {missing};\n'
            f'\treturn ((fn_{op.id})op_function(&entry_{op.id}, top_key(ks)))({names});\n}}\n\n')


def family_header(family, ops, written):
    """The header of a family for the library's own files. written: prototypes of functions that are
    written by hand."""
    guard = f'FAMILY_{family.upper()}_H'
    out = [NOTE, f'#ifndef {guard}\n#define {guard}\n\n',
           '#include "dispatch/dispatch.h"\n\n']
    for op in ops:
        out.append(f'{op.ctype}tensor_{op.c_name}({op.params(hide=True)});\n')
        if op.hidden:
            out.append(f'{op.ctype}tensor_{op.c_name_full}({op.params()});\n')
        out.append(inline_call(op))
    out += [f'extern struct tensor_kernel_table kernels_{kernel};\n' for kernel in kernel_names(ops)]
    out += [f'{line};\n' for line in written]
    out.append('\n#endif\n')
    return ''.join(out)


def argument_checks(op, hidden):
    """Checks of the arguments that the caller passes."""
    given = [a for a in op.args if a.name not in hidden]
    checks = [f'!{a.name}' for a in given if a.is_tensor]
    checks += [f'!list_complete({a.name})' for a in given if a.type in ('Tensor[]', 'Tensor?[]')]
    res = []
    if checks:
        ret = 'null_argument_code' if op.multi else 'null_argument'
        res.append(f'\tif (unlikely({" || ".join(checks)}))\n\t\treturn {ret}("{op.name}");\n')
    wrong = {'int[]': 'ints_given', 'int[]?': 'ints_allowed', 'float[]': 'floats_given',
             'float[]?': 'floats_allowed', 'Scalar[]': 'scalars_given', 'str': 'string_given'}
    for a in given:
        if a.type in wrong:
            ret = 'wrong_list_code' if op.multi else 'wrong_list'
            res.append(f'\tif (unlikely(!{wrong[a.type]}({a.name})))\n'
                       f'\t\treturn {ret}("{op.name}", "{a.name}");\n')
    failed = fail(op)
    for a in given:
        if a.type in ('Scalar', 'Scalar?'):
            res.append(f'\tif (unlikely(scalar_unusual({a.name})) && wrong_scalar("{op.name}", "{a.name}", &{a.name}))\n'
                       f'\t\treturn {failed};\n')
        elif a.type == 'Scalar[]':
            res.append(f'\tif (wrong_scalars("{op.name}", "{a.name}", {a.name}))\n\t\treturn {failed};\n')
    for a in given:
        if a.type == 'Tensor?':
            res.append(f'\tif ({a.name} == tensor_none)\n\t\t{a.name} = NULL;\n')
    return ''.join(res)


def needed_result(op):
    """Check of the pointer to a result without which the call is meaningless: a number, or a list."""
    if op.list_result:
        return f'\tif (unlikely(!results && room > 0))\n\t\treturn no_result_code("{op.name}", "results");\n'
    return f'\tif (unlikely(!result))\n\t\treturn no_result_code("{op.name}", "result");\n'


def unwanted_results(op, hidden):
    """The call for which the program passed NULL in place of a pointer to a result. It is apart from the other one, which
    passes the program's pointers on."""
    results = [n for _, n in op.c_results()]
    n = len(results)
    call = call_of(op, hidden, [f'&all_[{i}]' for i in range(n)])
    named = f'\t\tif (err_ < 0)\n\t\t\terror_in("{op.name}");\n' if op.calls_others else ''
    return (f'\tif (unlikely({" || ".join(f"!{r}" for r in results)})) {{\n\t\ttensor *all_[{n}] = {{NULL}};\n'
            f'\t\tint err_ = {call};\n\n{named}'
            f'\t\treturn scope_own_wanted(err_, all_, (tensor **[]){{{", ".join(results)}}}, {n});\n\t}}\n')


def result_checks(op, hidden):
    """Checks of the pointers through which an operator stores its results."""
    if not op.c_results():
        return ''
    return needed_result(op) if op.list_result or op.plain_result else unwanted_results(op, hidden)


def checked_return(op, call):
    """Calls the operator and gives its results to the scope; the error of a composite gets its name."""
    on_error = f'\t\terror_in("{op.name}");\n' if op.calls_others else ''
    if (op.variant != 'function' or op.plain_result) and on_error:
        failed = 'result_ < 0' if op.multi else '!result_'
        return f'\t{op.ctype}result_ = {call};\n\n\tif (unlikely({failed}))\n{on_error}\treturn result_;\n'
    if op.variant != 'function' or op.plain_result:
        return f'\treturn {call};\n'
    if op.list_result:
        return (f'\tint n = {call};\n\n\tif (unlikely(n < 0)) {{\n{on_error}\t\treturn n;\n\t}}\n'
                '\treturn scope_own_list(results, n) < 0 ? -ENOMEM : n;\n')
    if op.multi:
        results = ', '.join(n for _, n in op.c_results())
        return (f'\tint err = {call};\n\n\tif (unlikely(err < 0)) {{\n{on_error}\t\treturn err;\n\t}}\n'
                f'\treturn scope_own_results((tensor **[]){{{results}}}, {len(op.c_results())});\n')
    if on_error:
        return (f'\ttensor *result_ = {call};\n\n\tif (unlikely(!result_)) {{\n{on_error}\t\treturn NULL;\n\t}}\n'
                '\treturn scope_own(thread(), result_);\n')
    return f'\treturn scope_own(thread(), {call});\n'


def call_of(op, hidden, results):
    """The dispatching call. results: expressions of the pointers to results."""
    args = [hidden[n].default_c() if n in hidden else n for _, n, _ in op.c_args()]
    return f'call_{op.id}({", ".join(args + results)})'


def public_function(op, hidden):
    """hidden: {name: argument} of those that get their default."""
    name = op.c_name if hidden else op.c_name_full
    return (f'TENSOR_EXPORT {op.ctype}tensor_{name}({op.params(hide=bool(hidden))})\n{{\n' +
            argument_checks(op, hidden) + result_checks(op, hidden) +
            checked_return(op, call_of(op, hidden, [n for _, n in op.c_results()])) + '}\n\n')


def public_source(family, ops):
    out = [NOTE, f'#include "family/{family}.h"\n\n']
    for op in ops:
        out.append(public_function(op, {}))
        if op.hidden:
            out.append(public_function(op, {a.name: a for a in op.hidden}))
    return ''.join(out)
