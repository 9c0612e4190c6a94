# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Writes the functions and methods of the Python package (build/gen/python/operators.c): for each name of an operator the
table of its overloads, a function of the module, a method of Tensor where an overload has a tensor self, and a docstring."""
import json
import keyword
import textwrap

NOTE = '/* Generated from lib/schema/ops/. */\n'

# Names that python/src defines: properties, and methods with other arguments.
OWN = {'T', 'H', 'mT', 'mH', 'real', 'imag', 'item', 'to', 'where', 'numpy_T', 'matrix_H'}


def takes_numbers(op):
    """Whether the first and the second argument may be numbers, for an order of overloads."""
    return [a.type != 'Tensor' for a in op.args[:2] if not a.keyword]


def functions(ops):
    """name -> its overloads: functional ones, each followed by its out form, or in-place ones.

    Those with tensors are first, because a tensor of one element is also taken for a number: max(a, b) is not
    max(a, dim)."""
    names = {}
    for op in ops:
        if not op.base.startswith('__'):
            names.setdefault(op.base, []).append(op)
    return {name: sorted(overloads, key=takes_numbers) for name, overloads in sorted(names.items())}


def is_method(overloads):
    return overloads[0].base not in OWN and any(
        op.args and op.args[0].name == 'self' and op.args[0].type == 'Tensor' for op in overloads)


def literal(arg):
    """The default of an argument as Python's source."""
    if arg.default is None or arg.default == 'None':
        return 'None'
    if arg.type.startswith('ScalarType'):
        return 'None'
    if arg.type.startswith('str'):
        return repr(arg.default.strip('\'"'))
    return arg.default.replace('[', '(').replace(']', ',)' if arg.default != '[]' else ')') if '[' in arg.default else arg.default


def signature(op, method):
    """The arguments of an overload in Python's notation; '' where it has no such form."""
    parts, defaults, star = [], False, False
    outs = [a for a in op.args if a.mutated and a.keyword]
    for i, a in enumerate(op.args):
        if a in outs:
            continue
        if method and i == 0:
            parts.append('$self')
            continue
        optional = a.default is not None or a.type == 'Generator?'
        if a.keyword and not star:
            parts.append('*')
            star = True
        if defaults and not optional and not a.keyword:
            return ''
        defaults |= optional and not a.keyword
        name = 'input' if a.name == 'self' else a.name
        if keyword.iskeyword(name):
            parts += [f'{name}_', '/']
        else:
            parts.append(f'{name}={literal(a)}' if optional else name)
    if any(a.type.startswith('Layout') for a in op.args):
        parts.append('requires_grad=False')
    return f'({", ".join(parts)})'


def doc(name, overloads, method):
    shown = [op for op in overloads if op.variant != 'out'] or overloads
    words = shown[0].words
    first = signature(shown[0], method)
    lines = [f'{name}{first}\n--\n\n'] if first else []
    paragraphs = [words.doc, words.shapes, words.dtypes, words.errors and f'Errors: {words.errors}']
    lines += ['\n'.join(textwrap.wrap(p, 92)) + '\n\n' for p in paragraphs if p]
    lines += [f'  {op.text}\n' for op in overloads if not (method and op.variant == 'out')]
    return ''.join(lines)


def string(text):
    """A C string literal, a line of source for each line of text."""
    lines = text.splitlines(keepends=True)
    return '\n\t'.join(json.dumps(line, ensure_ascii=True) for line in lines) or '""'


def stub(prefix, name, receiver):
    self = 'self' if prefix == 'method' else 'NULL'
    return (f'static PyObject *{prefix}_{name}(PyObject *{receiver}, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)\n'
            f'{{\n\treturn call_function(&entry_{name}, {self}, args, n, kwnames);\n}}\n\n')


def row(prefix, name, text):
    return (f'\t{{ "{name}", (PyCFunction)(void (*)(void)){prefix}_{name}, METH_FASTCALL | METH_KEYWORDS,\n\t{string(text)} }},\n')


def source(ops):
    names = functions(ops)
    out = [NOTE, '#include "internal.h"\n\n']
    module_rows, method_rows = [], []
    for name, overloads in names.items():
        entries = ', '.join(f'{{ .op_name = "{op.name}" }}' for op in overloads)
        out.append(f'static struct py_overload overloads_{name}[] = {{ {entries} }};\n'
                   f'static struct py_function entry_{name} = {{ "{name}", overloads_{name}, {len(overloads)}, false }};\n')
        out.append(stub('function', name, 'module'))
        module_rows.append(row('function', name, doc(name, overloads, False)))
        if is_method(overloads):
            out.append(stub('method', name, 'self'))
            method_rows.append(row('method', name, doc(name, overloads, True)))
    out.append('PyMethodDef generated_functions[] = {\n' + ''.join(module_rows) + '\t{ NULL },\n};\n\n')
    out.append('PyMethodDef generated_methods[] = {\n' + ''.join(method_rows) + '\t{ NULL },\n};\n\n')
    out.append('struct py_function *const generated_table[] = {\n' +
               ''.join(f'\t&entry_{name},\n' for name in names) + '};\n'
               f'const int generated_count = {len(names)};\n')
    return ''.join(out)
