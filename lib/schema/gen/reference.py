# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The documentation of operators: reads the fields doc, shapes, dtypes, errors and source of the entries and derives those that
follow from the schema. describe() sets op.words; an operator without a sentence or without shapes is an error of the generator.

Derived where an entry does not have the field:

  doc     of `each` and `alias`: that of the operator that is called. Of an overload: that of the first entry of the same base
          name that has one
  shapes  the same, and: pointwise operators broadcast, reductions drop dimensions unless keepdim, factories with a size have
          that shape, in X_backward each gradient has the shape of its tensor
  dtypes  the rule of the field dtype
  errors  the ones that follow from the arguments are added to the entry's own
  source  PyTorch's operator of the same name
"""
FIELDS = ('doc', 'shapes', 'dtypes', 'errors', 'source')

RULES = {
    'same': '',
    'promote': 'The result has the promoted dtype of the arguments.',
    'float': 'Integers and bool are computed as f32; the result is floating or complex.',
    'bool': 'The result is bool.',
    'sum': 'Integers and bool give i64.',
    'index': 'The result is i64.',
}


class Words:
    """The text of the reference about one operator: str each, '' for nothing."""

    def __init__(self, entry):
        for field in FIELDS:
            setattr(self, field, ' '.join(str(entry.get(field, '')).split()))


def listed(names):
    return names[0] if len(names) == 1 else ', '.join(names[:-1]) + ' and ' + names[-1]


def tensor_names(op):
    return [a.name for a in op.args if a.is_tensor and a not in op.outs]


def pointwise_shapes(op):
    names = tensor_names(op)
    if not names:
        return ''
    if len(names) == 1:
        return f'The result has the shape of {names[0]}.'
    return f'{listed(names)} broadcast together; the result has that shape.'


def reduction_shapes(op):
    result = 'each result' if len(op.returns) > 1 else 'the result'
    has = {a.name for a in op.args}
    if 'keepdim' in has:
        return f'self of any shape; {result} lacks the reduced dimensions, or has size 1 there with keepdim.'
    if 'dim' in has:
        return f'self of any shape; {result} lacks the reduced dimensions.'
    return f'self of any shape; {result} has no dimensions.'


def backward_shapes(op, bases):
    forward = op.base.replace('_backward', '')
    if '_backward' not in op.base or not {forward, '_' + forward, forward.lstrip('_')} & bases:
        return ''
    grad = op.args[0].name
    others = [n for n in tensor_names(op) if n != grad]
    if 'pointwise' in op.tags and others:
        return f'{listed([grad] + others)} broadcast together; the result has that shape.'
    if not others:
        return f'{grad} has the shape of the result of {forward}.'
    return f'{grad} has the shape of the result of {forward}; the gradient of a tensor has its shape.'


def shapes(op, bases):
    args = {a.name for a in op.args}
    if '_backward' in op.base:
        return backward_shapes(op, bases)
    if 'pointwise' in op.tags:
        return pointwise_shapes(op)
    if 'reduction' in op.tags:
        return reduction_shapes(op)
    if 'size' in args and op.gathers:
        return 'The result has shape size.'
    return ''


def errors(op):
    """Those that follow from the arguments."""
    out = []
    args = {a.name for a in op.args}
    tensors = tensor_names(op)
    if 'pointwise' in op.tags and len(tensors) > 1:
        out.append('EINVAL where the shapes do not broadcast.')
    if args & {'dim', 'dims', 'dim0', 'dim1', 'dim2'}:
        out.append('ERANGE for a dimension out of range.')
    if len(tensors) > 1 or any(a.type.startswith('Tensor') and a.type.endswith('[]') for a in op.args):
        out.append('EINVAL for tensors on several devices.')
    if op.kind == 'each':
        out.append('EINVAL for an empty list, or lists of different lengths.')
    if op.gathers:
        out.append('EINVAL for a negative size.' if 'size' in args else '')
    return [text for text in out if text]


def borrow(words, other):
    """The fields that words lacks."""
    for field in FIELDS:
        if not getattr(words, field):
            setattr(words, field, getattr(other, field))


def called(op, words, heads):
    """For `each` and `alias`."""
    target = op.calls[0]
    of = heads.get((target.family, target.base), words[id(target.entry)])
    mine = words[id(op.entry)]
    if not mine.doc and of.doc:
        start = f'Calls {target.name} for each tensor of the lists: ' if op.kind == 'each' else \
            f'Another name of {target.name}: '
        mine.doc = start + of.doc
    if not mine.shapes:
        mine.shapes = of.shapes if op.kind == 'alias' else \
            f'Lists of one length; each result has the shape that {target.base} gives.'
    if not mine.errors:
        mine.errors = of.errors


def describe(ops):
    """Sets op.words. Returns what is missing, one text a line."""
    words = {id(op.entry): Words(op.entry) for op in ops}
    bases = {op.base for op in ops}
    heads, firsts = {}, {}
    for op in ops:
        firsts.setdefault(id(op.entry), op)
    for op in firsts.values():
        mine = words[id(op.entry)]
        if not mine.shapes and op.kind not in ('each', 'alias'):
            mine.shapes = shapes(op, bases)
        if mine.doc:
            heads.setdefault((op.family, op.base), mine)
            heads.setdefault(op.base, mine)
    for op in firsts.values():
        head = heads.get((op.family, op.base), heads.get(op.base))
        if op.kind not in ('each', 'alias') and head:
            borrow(words[id(op.entry)], head)
    for op in firsts.values():
        if op.calls:
            called(op, words, heads)
    missing = []
    for op in firsts.values():
        mine = words[id(op.entry)]
        for field in ('doc', 'shapes'):
            if not getattr(mine, field):
                missing.append(f'{op.entry.place}: {op.name} has no {field}: the reference needs a '
                               f'sentence about {"what it computes" if field == "doc" else "the shapes"}')
        mine.dtypes = ' '.join(text for text in (mine.dtypes, RULES[op.rule]) if text)
        mine.errors = ' '.join([mine.errors] * bool(mine.errors) +
                               [text for text in errors(op) if text not in mine.errors])
        mine.follows = not mine.source.startswith(('libtensor', 'PyTorch'))
    for op in ops:
        op.words = words[id(op.entry)]
    return missing
