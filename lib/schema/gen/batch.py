# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Writes the table of batching rules: how each operator runs on the tensors of tensor_vmap().

A rule is a function batch_rule_NAME() in lib/batch. The field `batch` of an entry names it; without the field it follows
from the entry: an operator that calls others is left to these, a pointwise one aligns its arguments, a reduction, a view or
an operator with one tensor shifts its dimensions, and anything else is computed sample by sample.
"""
from api import NOTE

CALLS = ('composite', 'each', 'alias', 'explicit')
# Rules that call the in-place form itself. With the others an in-place form copies the result of the functional one.
IN_PLACE = ('pointwise', 'copy', 'dims', 'all', 'indexed', 'fill', 'random', 'loop', 'refuse')
DIMENSIONS = ('dim', 'dims', 'dim0', 'dim1', 'dim2', 'dimension')


def dimensions(op):
    """The positions of the arguments that name dimensions of the first tensor."""
    return [i for i, a in enumerate(op.args) if a.name in DIMENSIONS and a.type.startswith('int')]


def derived(op):
    """The rule of an entry without the field `batch`."""
    if op.kind in CALLS:
        return 'loop' if op.family == 'sparse' else 'decompose'
    for tag in ('pointwise', 'reduction'):
        if tag in op.tags:
            return tag
    one = len([a for a in op.args if a.is_tensor and not a.keyword]) == 1 and not any('Tensor' in a.type and '[]' in a.type for a in op.args)
    if one and op.kind != 'dispatch' and dimensions(op):
        return 'dims'
    return 'all' if op.kind == 'view' else 'factory' if op.kind == 'factory' else 'loop'


def rule(op):
    """(name of the rule, its number)"""
    name, _, number = op.entry.get('batch', derived(op)).partition(' ')
    return name, int(number or 0)


def row(op, ops):
    name, number = rule(op)
    mask = sum(1 << i for i in dimensions(op))
    own = [o for o in ops if o.entry is op.entry and o.variant == 'function' and o.id != op.id]
    function = f'&entry_{own[0].id}' if op.variant == 'inplace' and own and name not in IN_PLACE else 'NULL'
    return f'\t{{ &entry_{op.id}, batch_rule_{name}, {mask:#x}, {number}, {function} }},\n'


def header(ops):
    """The prototypes of the rules."""
    out = [NOTE, 'struct batch_call;\n\n']
    out += [f'int batch_rule_{name}(struct batch_call *c);\n' for name in sorted({rule(op)[0] for op in ops})]
    return ''.join(out)


def source(ops):
    out = [NOTE, '#include "batch/batch.h"\n\n']
    out += [f'extern struct tensor_op entry_{op.id};\n' for op in ops]
    out.append('\nconst struct batch_row batch_rows[] = {\n')
    out += [row(op, ops) for op in sorted(ops, key=lambda o: o.name)]
    out.append('};\nconst int batch_rows_count = ARRAY_SIZE(batch_rows);\n')
    return ''.join(out)
