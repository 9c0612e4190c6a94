# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The operators for the pages: entries of lib/schema/ops with their descriptions, examples and facts."""
import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, '../..'))
GEN = os.path.join(ROOT, 'lib/schema/gen')
OPS = os.path.join(ROOT, 'lib/schema/ops')
sys.path.insert(0, GEN)
import examples  # noqa: E402
import schema  # noqa: E402

COMPOSITE = ('composite', 'each', 'alias')


def wrapped(text, width):
    """Wraps text to `width` columns, after commas only."""
    lines = ['']
    for piece in re.findall(r'.+?(?:, |$)', text):
        if len(lines[-1]) + len(piece.rstrip()) > width and lines[-1]:
            lines.append('        ')
        lines[-1] += piece
    return [line.rstrip() for line in lines]


class Entry:
    """One entry: an operator with its in-place and out forms."""

    def __init__(self, forms, example, facts):
        self.forms, self.op, self.words = forms, forms[0], forms[0].words
        self.name, self.family = self.op.name, self.op.family
        self.code = examples.call(self.op, example[0]) if example else ''
        self.gives = example[1] if example else ''
        self.dtypes, self.differentiable = facts

    @property
    def functions(self):
        return [name for name, _ in self.prototypes()]

    def prototypes(self):
        """(name, declaration)"""
        out = []
        for form in self.forms:
            out.append((f'tensor_{form.c_name}', f'{form.ctype}tensor_{form.c_name}({form.params(hide=True)});'))
            if form.hidden:
                out.append((f'tensor_{form.c_name_full}', f'{form.ctype}tensor_{form.c_name_full}({form.params()});'))
        return out

    def dtype_text(self):
        ran = f'The example runs with inputs of {self.dtypes}.' if self.dtypes else ''
        return ' '.join(text for text in (self.words.dtypes, ran) if text)

    def gradient_text(self):
        if self.op.kind in COMPOSITE:
            return 'Differentiable where the operators that it calls are.'
        return 'Differentiable.' if self.differentiable else 'Not differentiable.'

    def form_text(self):
        """The sentence about the in-place and out forms."""
        out = []
        variants = {form.variant for form in self.forms}
        if 'inplace' in variants and self.op.variant != 'inplace':
            out.append('The form with _ at its end writes to self, which must have the shape of the result.')
        if 'out' in variants:
            out.append('The form with _out writes to out, which gets the shape of the result.')
        if any(form.hidden for form in self.forms):
            out.append('The form with _opt takes the arguments that the short one leaves at their defaults.')
        return ' '.join(out)

    def returns_text(self):
        if self.op.list_result:
            return 'The number of results, or -errno. results has space for room tensors.'
        if self.op.plain_result:
            return '0 with the number in *result, or -errno.'
        if self.op.multi:
            return '0 with the results in the last arguments, or -errno.' if self.op.returns else '0 or -errno.'
        return 'The tensor, or NULL.'

    def source_text(self):
        follows = f'PyTorch\'s aten::{self.name}.' if self.words.follows else ''
        return ' '.join(text for text in (follows, self.words.source.rstrip('.') + '.' if self.words.source else '')
                        if text)


class Group:
    """All entries of one base name, in-place ones included: one man page."""

    def __init__(self, key):
        self.key, self.entries = key, []

    @property
    def page(self):
        return self.entries[0].functions[0]

    @property
    def functions(self):
        return [name for entry in self.entries for name in entry.functions]


def shorter(dtypes, every):
    """Describes a set of dtypes by its members, or by the missing ones if these are fewer."""
    lacks = [dtype for dtype in every if dtype not in dtypes]
    if not lacks:
        return 'all dtypes'
    if len(lacks) * 2 < len(dtypes):
        return f'all dtypes but {", ".join(lacks)}'
    return ', '.join(dtypes)


def facts(program):
    out = subprocess.run([program, '--facts'], check=True, capture_output=True, text=True).stdout
    rows = [line.split('\t') for line in out.splitlines()]
    every = max((dtypes for _, dtypes, _ in rows), key=len)
    return {name: ('' if dtypes == '' else shorter(dtypes.split(', '), every.split(', ')), own == '1')
            for name, dtypes, own in rows}


def load(program):
    ops = schema.load(glob.glob(f'{OPS}/**/*.yaml', recursive=True))
    found = examples.load(examples.folder(), ops)
    known = facts(program)
    forms = {}
    for op in ops:
        forms.setdefault(id(op.entry), []).append(op)
    return [Entry(form, found.get(form[0].name), known[form[0].name]) for form in forms.values()]


def groups(entries):
    out = {}
    for entry in entries:
        base = entry.op.base
        key = base if base.endswith('__') or not base.endswith('_') else base[:-1]
        out.setdefault(key, Group(key)).entries.append(entry)
    return list(out.values())


def family_titles():
    """Returns {family: description in the first comment of its file}."""
    out = {}
    for path in glob.glob(f'{OPS}/**/*.yaml', recursive=True):
        with open(path) as f:
            head = ' '.join(line[2:].strip() for line in f.read().split('\n\n')[0].split('\n') if line.startswith('# '))
        m = re.search(r'Operators?: (.*?)(?:\. |\.$|$)', head.split('SPDX-License-Identifier: LGPL-2.1-only OR MIT ')[-1])
        out[os.path.splitext(os.path.basename(path))[0]] = m.group(1) if m else ''
    return out
