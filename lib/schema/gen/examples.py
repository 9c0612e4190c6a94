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

from api import NOTE

CTYPES = {'Scalar': 'tensor_scalar', 'int': 'int64_t', 'bool': 'bool', 'float': 'double'}


def parse(text):
    """{operator: (arguments, what it prints)}"""
    found, name = {}, None
    for line in text.split('\n'):
        if line.startswith('\t') and name:
            found[name][1].append(line[1:])
        elif ': ' in line and not line.startswith('#'):
            name, args = line.split(': ', 1)
            found[name] = (args, [])
    return {name: (args, '\n'.join(lines)) for name, (args, lines) in found.items()}


def load(folder, ops):
    examples = {}
    for path in sorted(glob.glob(f'{folder}/*/*.txt')):
        with open(path) as f:
            examples.update(parse(f.read()))
    unknown = sorted(set(examples) - {op.name for op in ops})
    if unknown:
        sys.exit(f'{folder}: there is no operator {unknown[0]}')
    return examples


def call(op, args):
    """The call as people read it."""
    more = ['results', 'room'] if op.list_result else [f'&{n}' for _, n in op.c_results()]
    return f'tensor_{op.c_name}({", ".join([args] * bool(args) + more)})'


def function(op, args):
    out = [f'static int run_{op.id}(tensor **r)\n{{\n']
    text = call(op, args)
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
    out = [f'\t{{\n\t\t.op = "{op.name}",\n\t\t.family = "{op.family}",\n']
    if example:
        out.append(f'\t\t.code = {quoted(call(op, example[0]))},\n'
                   f'\t\t.gives = {quoted(example[1])},\n\t\t.run = run_{op.id},\n')
    return ''.join(out) + '\t},\n'


def source(ops, folder):
    examples = load(folder, ops)
    entries = {}
    for op in ops:
        entries.setdefault(id(op.entry), []).append(op)
    firsts = [forms[0] for forms in entries.values()]
    out = [NOTE, '#include "tests/reference/inputs.h"\n\n']
    out += [function(op, examples[op.name][0]) for op in firsts if op.name in examples]
    out.append('const struct example examples[] = {\n')
    out += [row(op, examples.get(op.name)) for op in firsts]
    out.append(f'}};\nconst int examples_count = {len(firsts)};\n')
    return ''.join(out)


def folder():
    here = os.path.dirname(os.path.abspath(__file__))
    return os.path.normpath(os.path.join(here, '../../../tests/reference/examples'))
