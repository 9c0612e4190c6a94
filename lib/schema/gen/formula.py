# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The notation of formulas (derivatives.py): what one of them reads."""
import re
import sys

QUERIES = {  # notation in a formula -> (C type of the field, its value, integers that it stores)
    'sizes': ('tensor_ints', 'node_ints(node, (tensor_ints){{{0}->sizes, {0}->ndim}})', '{0}->ndim'),
    'strides': ('tensor_ints', 'node_ints(node, (tensor_ints){{{0}->strides, {0}->ndim}})',
                '{0}->ndim'),
    'offset': ('int64_t', '{0}->offset', None),
    'options': ('tensor_options', 'TENSOR_OPTIONS(.dtype = {0}->dtype, .device = {0}->device)',
                None),
    'lengths': ('tensor_ints', 'node_lengths(node, {0}, {1})', '{0}.len'),
}
QUERY = re.compile(r'\b(' + '|'.join(QUERIES) + r')\((\w+)(?:, (\w+))?\)')
WORD = re.compile(r'(?<![\w.>])[A-Za-z_]\w*\b(?!\s*\()')


def fail(entry, text, field=None):
    sys.exit(f'{entry.at(field)}: {text}')


def camel(text):
    return ''.join(w[:1].upper() + w[1:] for w in text.split('_') if w)


class Formula:
    """The formula of one argument: its C text and the values that it reads."""

    def __init__(self, derivative, index, arg, text):
        self.index, self.arg = index, arg
        self.is_list = arg.type == 'Tensor[]'
        self.saved, self.values, self.queries, self.lists = [], [], [], []

        def query(m):
            what, name, extra = m.groups()
            q = (what, name, extra)
            kind = derivative.names.get(name)
            if kind != ('list' if what == 'lengths' else 'tensor') or (what == 'lengths') != (extra in derivative.names):
                fail(derivative.entry, f'{derivative.name}: {m.group(0)} needs {"a list" if what == "lengths" else "a tensor"} '
                     'among the arguments and results', arg.name)
            if q not in self.queries:
                self.queries.append(q)
            return f'fields->{what}_{name}'

        self.text = QUERY.sub(query, text)
        for word in WORD.findall(self.text):
            known = derivative.names.get(word)
            if known == 'tensor' and word not in self.saved:
                self.saved.append(word)
            elif known == 'value' and word not in self.values:
                self.values.append(word)
            elif known == 'list' and word not in self.lists:
                self.lists.append(word)

    @property
    def bit(self):
        return f'need & {hex(1 << self.index)}' if not self.is_list else \
            f'need >> {self.index}'
