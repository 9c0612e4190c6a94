# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Writes the entries of the dispatcher: schemas, functions for each key, boxed calls."""
import re

from api import NOTE, fail, key_union, kernel_names
from schema import GATHERED, KEYS, RESULTS

CALLS = ('each', 'alias')  # kinds whose functions are generated
RULES = {'same': 'RULE_SAME', 'promote': 'RULE_PROMOTE', 'float': 'RULE_FLOAT', 'bool': 'RULE_BOOL',
         'sum': 'RULE_SUM', 'index': 'RULE_INDEX'}


def proto(op, kind, impl):
    """Prototype of a hand-written function: the entry's own, or that of a further key."""
    if kind == 'op':
        outs = [f'tensor **{n}' for n in (op.returns if op.multi else ['out'])]
        args = [d for d, n, a in op.c_args() if a not in op.outs or a is None]
        return f'int op_{impl}({", ".join(["const struct tensor_op *op"] + outs + args)})'
    return f'{op.ctype}{kind}_{impl}({op.params()})'


def by_key(op):
    """(key, kind, name) of the functions of further keys."""
    kind = 'op' if op.kind == 'op' else 'kernel'
    return [(key, kind, name) for key, name in op.dispatch.items() if name != 'same']


def prototypes(ops):
    """Prototypes of the operator functions, views, factories and composites that are written by hand."""
    protos = set()
    for op in ops:
        if op.kind in ('op', 'composite') or op.variant == 'function':
            own = [(None, op.kind, op.impl)] if op.impl and op.kind not in CALLS else []
            protos |= {proto(op, kind, impl) for _, kind, impl in own + by_key(op)}
    return sorted(protos)


def failed(op, further):
    """What an operator function returns after an error: the result of the fallback for a dtype that a device's
    kernel has not, or the error."""
    if further or op.list_result or op.gathers:
        return fail(op)
    names = [n for _, n, _ in op.c_args()] + [n for _, n in op.c_results()]
    return f'dispatch_takes_refusal() ? box_{op.id}({", ".join(names)}) : {fail(op)}'


def thunk(op, prefix, impl, further=False):
    """The function that goes into the table for an operator function; further: of a key beyond the dense ones."""
    ins = [n for _, n, a in op.c_args() if a is None or a not in op.outs]
    out = [] if further else [f'static {op.ctype}box_{op.id}({op.params()});\n\n']
    out.append(f'static {op.ctype}{prefix}_{op.id}({op.params()})\n{{\n')
    if op.variant == 'function' and op.multi:
        results = [n for _, n in op.c_results()]
        for r in results:
            out.append(f'\t*{r} = NULL;\n')
        args = ', '.join([f'&entry_{op.id}'] + results + ins)
        out.append(f'\tif (unlikely(op_{impl}({args}) < 0))\n\t\treturn {failed(op, further)};\n\treturn 0;\n')
    elif op.variant == 'function':
        args = ', '.join([f'&entry_{op.id}', '&result'] + ins)
        out.append('\ttensor *result = NULL;\n\n')
        out.append(f'\tif (unlikely(op_{impl}({args}) < 0))\n\t\treturn {failed(op, further)};\n\treturn result;\n')
    else:
        targets = ['self'] if op.variant == 'inplace' else [a.name for a in op.outs]
        locs = [f'*result{i} = {t}' for i, t in enumerate(targets)]
        out.append(f'\ttensor {", ".join(locs)};\n\n')
        args = ', '.join([f'&entry_{op.id}'] + [f'&result{i}' for i in range(len(targets))] + ins)
        check = 'check_given' if op.variant == 'out' else 'check_writable'
        for t in targets:
            out.append(f'\tif ({check}(&entry_{op.id}, {t}) < 0)\n\t\treturn {fail(op)};\n')
        out.append(f'\tif (unlikely(op_{impl}({args}) < 0))\n\t\treturn {failed(op, further)};\n')
        if further and op.variant == 'out':
            out += [f'\tif (result{i} != {t} && output_give_result(&entry_{op.id}, {t}, result{i}) < 0)\n'
                    f'\t\treturn {fail(op)};\n' for i, t in enumerate(targets)]
        for t in targets:
            out.append(f'\ttensor_bump_version({t});\n')
        out.append(f'\treturn {"0" if op.multi else targets[0]};\n')
    out.append('}\n\n')
    return ''.join(out)


def with_snapshots(op, fn):
    """The function fn of an operator that reads arguments twice, on copies of those that may change."""
    names = [n for _, n, _ in op.c_args()] + [n for _, n in op.c_results()]
    twice = [a.name for a in op.twice]
    optional = {a.name for a in op.twice if a.type == 'Tensor?'}
    call = f'{fn}({", ".join(f"own_{n}" if n in twice else n for n in names)})'
    changing = ' || '.join((f'({n} && changes_meanwhile({n}))' if n in optional else
                            f'changes_meanwhile({n})') for n in twice)
    complete = ' && '.join(f'(own_{n} || !{n})' if n in optional else f'own_{n}' for n in twice)
    out = [f'static {op.ctype}snapshot_{fn}({op.params()})\n{{\n']
    out += [f'\ttensor *own_{n};\n' for n in twice]
    out.append(f'\t{op.ctype}result;\n\n\tif (likely(!({changing})))\n\t\treturn {fn}({", ".join(names)});\n')
    out += [f'\town_{n} = {n} ? operand_snapshot({n}) : NULL;\n' if n in optional else
            f'\town_{n} = operand_snapshot({n});\n' for n in twice]
    out.append(f'\tresult = {complete} ? {call} : {fail(op)};\n')
    out += [f'\ttensor_put(own_{n});\n' for n in twice]
    out.append('\treturn result;\n}\n\n')
    return ''.join(out)


def alias(op):
    """The function of another name of an operator."""
    target, text = op.calls
    args = ', '.join([text] + [n for _, n in op.c_results()])
    return f'static {op.ctype}alias_{op.id}({op.params()})\n{{\n\treturn call_{target.id}({args});\n}}\n\n'


def each(op):
    """The function of an operator that calls another for each position of its lists."""
    target, text = op.calls
    lists = [a.name for a in op.args if a.type.endswith('[]')]
    first, what = lists[0], f'call_{target.id}'
    args = re.sub(r'\b(' + '|'.join(lists) + r')\b', r'\1.data[i]', text)
    for a in op.args:
        if a.type == 'Scalar[]':
            args = args.replace(f'{a.name}.data[i]', f'scalar_normal({a.name}.data[i])')
    lengths = ', '.join(f'{n}.len' for n in lists)
    out = [f'static int each_{op.id}({op.params()})\n{{\n',
           f'\tif (each_begin("{op.name}", TENSOR_INTS({lengths})) < 0)\n\t\treturn {fail(op)};\n']
    out += [f'\tif (each_scalar("{op.name}", {a.name}) < 0)\n\t\treturn {fail(op)};\n'
            for a in op.args if a.type == 'Tensor']
    if op.list_result:
        out.append(f'\tif (results_fit("{op.name}", {first}.len, room) < 0)\n\t\treturn {fail(op)};\n')
    loop = f'\tfor (int64_t i = 0; i < {first}.len; i++) {{\n'
    if op.list_result:
        out.append(f'{loop}\t\tresults[i] = {what}({args});\n\t\tif (unlikely(!results[i]))\n'
                   f'\t\t\treturn each_failed(results, i);\n\t}}\n\treturn (int){first}.len;\n}}\n\n')
    else:
        out.append(f'{loop}\t\tif (unlikely(!{what}({args})))\n\t\t\treturn {fail(op)};\n\t}}\n'
                   '\treturn 0;\n}\n\n')
    return ''.join(out)


def value(a, src):
    """Initialiser of a tensor_value from the C expression src."""
    field = {'Tensor': ('TENSOR', 't'), 'Tensor?': ('TENSOR', 't'), 'Tensor[]': ('TENSOR_LIST', 'list'),
             'int': ('INT', 'i'), 'int?': ('INT', 'i'), 'int[]': ('INTS', 'ints'),
             'int[]?': ('INTS', 'ints'), 'bool': ('BOOL', 'b'), 'float': ('FLOAT', 'f'),
             'Scalar': ('SCALAR', 'scalar'), 'Scalar?': ('SCALAR', 'scalar'),
             'Scalar[]': ('SCALARS', 'scalars'), 'ScalarType?': ('INT', 'i'), 'ScalarType': ('INT', 'i'),
             'Layout?': ('INT', 'i'), 'MemoryFormat?': ('INT', 'i'),
             'Device?': ('DEVICE', 'device'), 'Tensor?[]': ('TENSOR_LIST', 'list'),
             'bool?': ('INT', 'i'), 'bool[]': ('BOOLS', 'bools'), 'float?': ('FLOAT', 'f'),
             'float[]': ('FLOATS', 'floats'), 'float[]?': ('FLOATS', 'floats'),
             'str': ('STRING', 's'), 'str?': ('STRING', 's'),
             'Generator?': ('GENERATOR', 'generator')}[a.type]
    if a.type in ('Tensor?', 'str?', 'Generator?'):
        return (f'{{.kind = {src} ? TENSOR_VALUE_{field[0]} : TENSOR_VALUE_NONE, '
                f'.{field[1]} = {src}}}')
    return f'{{.kind = TENSOR_VALUE_{field[0]}, .{field[1]} = {src}}}'


def boxer(op):
    """From typed arguments to a fallback."""
    out = [f'static {op.ctype}box_{op.id}({op.params()})\n{{\n', '\ttensor_value args[] = {\n']
    for a in op.args:
        src = f'options.{a.name}' if op.gathers and a.name in GATHERED else a.name
        out.append(f'\t\t{value(a, src)},\n')
    if op.list_result:
        out.append(f'\t}};\n\n\treturn dispatch_fallback_list(&entry_{op.id}, {key_union(op)}, args, '
                   f'{len(op.args)}, results, room);\n}}\n\n')
        return ''.join(out)
    n = len(op.returns)
    out.append(f'\t}}, rets[{max(n, 1)}] = {{0}};\n\n')
    if op.gathers:
        out.append('\tconst tensor_options *before = box_options(&options);\n')
    out.append(f'\tint err = dispatch_fallback(&entry_{op.id}, {key_union(op)}, args, {len(op.args)}, '
               f'rets, {n});\n\n')
    if op.gathers:
        out.append('\tbox_options(before);\n')
    if op.multi and op.variant == 'function' and not op.plain_result:
        out.append('\tif (err < 0)\n\t\t' + ' = '.join(f'*{r}' for _, r in op.c_results()) + ' = NULL;\n')
    out.append(f'\tif (err < 0)\n\t\treturn {fail(op)};\n')
    if op.variant == 'inplace':
        out.append(f'\treturn {"0" if op.multi else op.args[0].name};\n')
    elif op.variant == 'out':
        out.append(f'\treturn {"0" if op.multi else op.outs[0].name};\n')
    elif op.multi:
        field = RESULTS[op.plain_result][2] if op.plain_result else 't'
        for i, (_, r) in enumerate(op.c_results()):
            out.append(f'\t*{r} = rets[{i}].{field};\n')
        out.append('\treturn 0;\n')
    else:
        out.append('\treturn rets[0].t;\n')
    out.append('}\n\n')
    return ''.join(out)


def unboxer(op):
    """From boxed arguments to a typed call; results are owned."""
    out = [f'static int unbox_{op.id}(struct unboxer *u)\n{{\n']
    for i, a in enumerate(op.args):
        required = a.default is None and not a.type.endswith('?')
        out.append(f'\t{a.decl} = {a.unbox}(u, {i}, {"true" if required else "false"}, '
                   f'{a.default_c()});\n')
    if op.gathers:
        fields = [a.name for a in op.args if a.name in GATHERED]
        out.append('\ttensor_options options = {' + ', '.join(f'.{n} = {n}' for n in fields) + '};\n\n\tunbox_options(u, &options);\n')
    names = [n for _, n, _ in op.c_args()]
    out.append('\ttensor_kernel fn;\n')
    function = f'\tfn = unbox_function(u, {key_union(op)});\n'
    if op.list_result:
        call = f'((fn_{op.id})fn)({", ".join(names + ["results", "u->nrets"])})'
        out.append('\ttensor **results = unbox_room(u);\n\n\tif (u->err)\n\t\treturn u->err;\n' + function +
                   f'\treturn box_list(u, results, fn ? {call} : u->err);\n}}\n\n')
        return ''.join(out)
    rets = [n for _, n in op.c_results()]
    for r in rets:
        out.append(f'\t{RESULTS[op.plain_result][0]}{r} = {{0}};\n' if op.plain_result else
                   f'\ttensor *{r} = NULL;\n')
    out.append('\n\tif (u->err)\n\t\treturn u->err;\n' + function + '\tif (!fn)\n\t\treturn u->err;\n')
    call = f'((fn_{op.id})fn)({", ".join(names + ["&" + r for r in rets])})'
    if op.plain_result:
        kind, field = RESULTS[op.plain_result][1:]
        out.append(f'\tif ({call} < 0)\n\t\treturn -thread()->error.code;\n'
                   f'\tu->rets[0] = (tensor_value){{.kind = TENSOR_VALUE_{kind}, '
                   f'.{field} = result}};\n\treturn 0;\n}}\n\n')
        return ''.join(out)
    if op.multi:
        out.append(f'\tif ({call} < 0)\n\t\treturn -thread()->error.code;\n')
        for r in (rets or [a.name for a in op.outs]):
            out.append(f'\tbox_{"optional" if op.optional_results else "result"}(u, {r});\n')
        out.append('\treturn u->err;\n')
    else:
        out.append(f'\treturn box_result(u, {call});\n')
    out.append('}\n\n')
    return ''.join(out)


def quoted(text):
    return text.replace('"', '\\"')


def row(op):
    out = [f'static const struct tensor_arg args_{op.id}[] = {{\n']
    for a in op.args:
        default = 'NULL' if a.default is None and not a.type.endswith('?') else \
            f'"{quoted(a.default or "None")}"'
        out.append(f'\t{{"{a.name}", {a.enum}, {default}, {str(a.keyword).lower()}, '
                   f'{str(a.mutated).lower()}}},\n')
    tags = ', '.join([f'"{t}"' for t in op.tags] + ['NULL'])
    out.append('};\n\n')
    out.append(f'static const char *const tags_{op.id}[] = {{{tags}}};\n\n')
    kernels = f'&kernels_{op.kernel}' if op.kind == 'op' else 'NULL'
    variant = {'function': 'VARIANT_FUNCTION', 'inplace': 'VARIANT_INPLACE', 'out': 'VARIANT_OUT'}
    nargs = len(op.args)
    out.append(f'''struct tensor_op entry_{op.id} = {{
\t.name = "{op.base}",
\t.variant = {variant[op.variant]},
\t.rule = {RULES[op.rule]},
\t.calls = {str(op.calls_others).lower()},
\t.kernels = {kernels},
\t.box = (tensor_kernel)box_{op.id},
\t.unbox = unbox_{op.id},
\t.schema = {{
\t\t.name = "{op.name}",
\t\t.text = "{quoted(op.text)}",
\t\t.args = args_{op.id},
\t\t.nargs = {nargs},
\t\t.nreturns = {'TENSOR_RETURNS_LIST' if op.list_result else len(op.returns)},
\t\t.tags = tags_{op.id},
\t}},
}};

''')
    return ''.join(out)


def registry(ops):
    """The tables that find operators and kernels by name: sorted, for binary search."""
    out = [NOTE, '#include "dispatch/dispatch.h"\n\n']
    kernels = kernel_names(ops)
    for kernel in kernels:
        out.append(f'struct tensor_kernel_table kernels_{kernel} = {{.name = "{kernel}"}};\n')
    out += [f'extern struct tensor_op entry_{op.id};\n' for op in ops]
    out.append('\nstruct tensor_op *const tensor_ops[] = {\n')
    out += [f'\t&entry_{op.id},\n' for op in sorted(ops, key=lambda o: o.name)]
    out.append('};\nconst int tensor_ops_count = ARRAY_SIZE(tensor_ops);\n\n')
    out.append('struct tensor_kernel_table *const tensor_kernel_tables[] = {\n')
    out += [f'\t&kernels_{kernel},\n' for kernel in kernels]
    out.append('};\nconst int tensor_kernel_tables_count = ARRAY_SIZE(tensor_kernel_tables);\n')
    return ''.join(out)


def functions(op):
    """(C expression of a key set, C function) of every function that serves an op."""
    own = {'view': 'KEYS_STRIDED', 'composite': 'KEYS_STRIDED', 'each': 'KEYS_STRIDED', 'alias': 'KEYS_STRIDED', 'factory': 'KEYS_BACKEND & ~BATCHED_BIT',
           'op': 'KEYS_DENSE', 'explicit': 'KEYS_DENSE', 'dispatch': '0'}[op.kind]
    own_fn = f'dense_{op.id}' if op.kind == 'op' else \
        f'{op.kind}_{op.id}' if op.kind in CALLS else f'{op.kind}_{op.impl}'
    same = [f'KEY_BIT({KEYS[key]})' for key, name in op.dispatch.items() if name == 'same']
    res = [] if op.kind == 'dispatch' else [(' | '.join([own] + same), own_fn)]
    for key, kind, name in by_key(op):
        fn = f'{key}_{op.id}' if kind == 'op' else f'kernel_{name}'
        res.append((f'KEY_BIT({KEYS[key]})', fn))
    return res


def filled(op):
    """The same, as they are in the op's table."""
    return [(keys, f'snapshot_{fn}' if op.twice else fn) for keys, fn in functions(op)]


def source(family, ops):
    """The rows of one family."""
    out = [NOTE, f'#include "family/{family}.h"\n#include "dispatch/boxed.h"\n'
           '#include "ops/op.h"\n#include "ops/snapshot.h"\n']
    if any(op.kind in CALLS for op in ops):
        homes = {op.calls[0].family for op in ops if op.calls}
        out += ['#include "ops/each.h"\n'] + [f'#include "family/{h}.h"\n' for h in sorted(homes)]
    out.append('\n')
    for op in ops:
        if op.kind == 'op':
            out.append(thunk(op, 'dense', op.impl))
            out += [thunk(op, key, name, True) for key, _, name in by_key(op)]
        if op.kind in CALLS:
            out.append({'each': each, 'alias': alias}[op.kind](op))
        if op.twice:
            out += [with_snapshots(op, fn) for fn in dict.fromkeys(fn for _, fn in functions(op))]
        out.append(boxer(op))
        out.append(unboxer(op))
        out.append(row(op))
    out.append('INIT(INIT_TABLES) static void fill_tables(void)\n{\n')
    for op in ops:
        out += [f'\tdispatch_fill(&entry_{op.id}, {keys}, (tensor_kernel){fn});\n'
                for keys, fn in filled(op)]
    out.append('}\n')
    return ''.join(out)
