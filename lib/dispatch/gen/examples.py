# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Writes the examples of the reference as C: examples.c, read by tests/reference/reference.c.

An entry's `example` is C: statements, if it needs any, and in the last line one call; `gives` is
what its results print, one after the other. Inputs are made by the functions of
tests/reference/inputs.h.
"""
from api import NOTE

RULES = {
    'same': '', 'promote': 'The result has the promoted dtype of the arguments.',
    'float': 'Integers and bool are computed as f32.',
    'bool': 'The result is bool.',
    'sum': 'Integers and bool become i64.',
    'index': 'The result is i64.',
}


def quoted(text):
    text = text.replace('\\', '\\\\').replace('"', '\\"').rstrip('\n')
    return '"' + text.replace('\n', '\\n') + '"'


def split(op):
    """(statements, last call) of an example."""
    lines = op.entry['example'].strip().split('\n')
    # The call may go on over indented lines.
    start = len(lines) - 1
    while start and lines[start].startswith((' ', '\t')):
        start -= 1
    return lines[:start], '\n'.join(lines[start:]).rstrip(';')


def function(op):
    statements, call = split(op)
    out = [f'static int example_{op.id}(tensor **r)\n{{\n']
    out += [f'\t{line}\n' for line in statements]
    if op.list_result:
        out.append('\ttensor **results = r;\n\tconst int64_t room = EXAMPLE_RESULTS;\n'
                   f'\treturn {call};\n')
    elif op.plain_result:
        ctype = {'Scalar': 'tensor_scalar', 'int': 'int64_t', 'bool': 'bool', 'float': 'double'}
        value = 'result' if op.plain_result == 'Scalar' else \
            f'tensor_scalar_{op.plain_result}(result)'
        out.append(f'\t{ctype[op.plain_result]} result;\n\tif (({call}) < 0)\n\t\treturn -1;\n'
                   f'\tr[0] = number({value});\n\treturn r[0] ? 1 : -1;\n')
    elif op.multi:
        names = op.returns
        out.append('\ttensor ' + ', '.join(f'*{n} = NULL' for n in names) + ';\n')
        out.append(f'\tif (({call}) < 0)\n\t\treturn -1;\n')
        out += [f'\tr[{i}] = {n};\n' for i, n in enumerate(names)]
        out.append(f'\treturn {len(names)};\n')
    else:
        out.append(f'\tr[0] = {call};\n\treturn r[0] ? 1 : -1;\n')
    out.append('}\n\n')
    return ''.join(out)


def prototypes(op, ops):
    """Of all C functions of an entry."""
    res = []
    for form in ops:
        if form.entry is op.entry:
            res.append(f'{form.ctype}tensor_{form.c_name}({form.params(hide=True)});')
            if form.hidden:
                res.append(f'{form.ctype}tensor_{form.c_name_full}({form.params()});')
    return '\n'.join(res)


def source(ops):
    out = [NOTE, '#include "../../tests/reference/inputs.h"\n\n']
    entries = []
    for op in ops:
        if entries and entries[-1].entry is op.entry:
            continue
        entries.append(op)
    for op in entries:
        if 'example' in op.entry:
            out.append(function(op))
    out.append('const struct example examples[] = {\n')
    for op in entries:
        has = 'example' in op.entry
        out.append(f'\t{{\n\t\t.op = "{op.name}",\n\t\t.family = "{op.family}",\n'
                   f'\t\t.prototypes = {quoted(prototypes(op, ops))},\n'
                   f'\t\t.text = {quoted(" ".join(op.doc.split()))},\n'
                   f'\t\t.rule = {quoted(RULES[op.rule] if op.kind == "front" else "")},\n'
                   f'\t\t.composite = {"true" if op.kind == "composite" else "false"},\n')
        if has:
            out.append(f'\t\t.code = {quoted(op.entry["example"].strip())},\n'
                       f'\t\t.gives = {quoted(str(op.entry.get("gives", "")).strip())},\n'
                       f'\t\t.run = example_{op.id},\n')
        out.append('\t},\n')
    out.append(f'}};\nconst int examples_count = {len(entries)};\n')
    return ''.join(out)
