# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Writes the examples of the reference as C: examples.c, which tests/reference runs.

tests/reference/examples/GROUP/FAMILY.txt has a paragraph an operator: its schema name and the arguments
of its C function, then, indented by a tab, what the results print.

  max.dim: vector(3, 1, 4), 0, false
  <tab>tensor(4.)
  <tab>tensor(2)

Where nothing is returned, changed(...) is the list of tensors that is changed. Inputs are made by
the functions of tests/reference/inputs.h. Pointers to results are appended to the arguments.
"""
import glob
import os
import sys
import unicodedata
from collections import namedtuple

from api import NOTE
from entries import text_of

CTYPES = {'Scalar': 'tensor_scalar', 'int': 'int64_t', 'bool': 'bool', 'float': 'double'}


Example = namedtuple('Example', 'args gives place')


def parse(text, path):
    """{operator: Example}; an error ends the program with file:line."""
    found, name = {}, None
    for n, line in enumerate(text.split('\n'), 1):
        place = f'{path}:{n}'
        stray = next((ch for ch in line if unicodedata.category(ch)[0] == 'C' and ch != '\t'), None)
        if stray:
            sys.exit(f'{place}: contains the control character U+{ord(stray):04X}')
        if line.startswith('\t') and name:
            found[name] = found[name]._replace(gives=found[name].gives + [line[1:]])
        elif line.startswith((' ', '\t')) and line.strip():
            sys.exit(f'{place}: a result follows its operator and is indented by one tab')
        elif line.startswith('#') or not line.strip():
            name = None
        elif ': ' in line:
            name, args = line.split(': ', 1)
            if name in found:
                sys.exit(f'{place}: {name} has an example at {found[name].place}')
            found[name] = Example(args, [], place)
        else:
            sys.exit(f'{place}: an example is `OPERATOR: ARGUMENTS`, got {line!r}')
    return {name: e._replace(gives='\n'.join(e.gives)) for name, e in found.items()}


def load(folder, ops):
    examples, names = {}, {op.name for op in ops}
    for path in sorted(glob.glob(f'{folder}/*/*.txt')):
        found = parse(text_of(path), os.path.relpath(path))
        for name, example in found.items():
            if name not in names:
                sys.exit(f'{example.place}: there is no operator {name}')
            if name in examples:
                sys.exit(f'{example.place}: {name} has an example at {examples[name].place}')
        examples.update(found)
    return examples


def call(op, args, wanted='{}'):
    """The call as people read it. wanted: form of a pointer to result {1}."""
    results = ['results'] if op.list_result else [f'&{n}' for _, n in op.c_results()]
    more = [wanted.format(r, i) for i, r in enumerate(results)] + ['room'] * op.list_result
    return f'tensor_{op.c_name}({", ".join([args] * bool(args) + more)})'


def function(op, args):
    out = [f'static int run_{op.id}(tensor **r)\n{{\n']
    text = call(op, args, 'example_wanted({1}, {0})')
    if op.list_result:
        out.append('\ttensor **results = r;\n\tconst int64_t room = EXAMPLE_RESULTS;\n\n'
                   f'\treturn {text};\n')
    elif op.plain_result:
        value = 'result' if op.plain_result == 'Scalar' else \
            f'tensor_scalar_{op.plain_result}(result)'
        out.append(f'\t{CTYPES[op.plain_result]} result;\n\n\tif ({text} < 0)\n\t\treturn -1;\n'
                   f'\tr[0] = number({value});\n\treturn r[0] ? 1 : -1;\n')
    elif not op.returns:
        out.append(f'\tif ({text} < 0)\n\t\treturn -1;\n\treturn example_changed(r);\n')
    elif op.multi:
        names = op.returns
        out.append('\ttensor ' + ', '.join(f'*{n} = NULL' for n in names) + ';\n\n')
        out.append(f'\tif ({text} < 0)\n\t\treturn -1;\n')
        out += [f'\tr[{i}] = {n};\n' for i, n in enumerate(names)]
        out.append(f'\treturn {len(names)};\n')
    else:
        out.append(f'\tr[0] = {text};\n\treturn r[0] ? 1 : -1;\n')
    out.append('}\n\n')
    return ''.join(out)


def quoted(text):
    text = text.replace('\\', '\\\\').replace('"', '\\"').replace('\n', '\\n')
    return f'"{text}"'


def row(op, example):
    place = example.place if example else op.entry.place
    out = [f'\t{{\n\t\t.op = "{op.name}",\n\t\t.family = "{op.family}",\n\t\t.place = {quoted(place)},\n']
    if example:
        out.append(f'\t\t.code = {quoted(call(op, example.args))},\n'
                   f'\t\t.gives = {quoted(example.gives)},\n\t\t.run = run_{op.id},\n')
        if op.c_results():
            needed = op.list_result or op.plain_result
            out.append('\t\t.needs_pointer = true,\n' if needed else f'\t\t.pointers = {len(op.c_results())},\n')
    return ''.join(out) + '\t},\n'


def source(ops, folder):
    examples = load(folder, ops)
    entries = {}
    for op in ops:
        entries.setdefault(id(op.entry), []).append(op)
    firsts = [forms[0] for forms in entries.values()]
    out = [NOTE, '#include "tests/reference/inputs.h"\n\n']
    out += [function(op, examples[op.name].args) for op in firsts if op.name in examples]
    out.append('const struct example examples[] = {\n')
    out += [row(op, examples.get(op.name)) for op in firsts]
    out.append(f'}};\nconst int examples_count = {len(firsts)};\n')
    return ''.join(out)


def folder():
    here = os.path.dirname(os.path.abspath(__file__))
    return os.path.normpath(os.path.join(here, '../../../tests/reference/examples'))
