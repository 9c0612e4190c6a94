# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Random programs on tensors: their statements, their generator, shortening and printing.

A statement is (operator, arguments by name, whether under no_grad); ('$', i) is variable i. Two statements
are not operators: leaf creates a variable, requires_grad changes one.
"""

UNARY = ['sin', 'cos', 'exp', 'tanh', 'sigmoid', 'neg', 'abs', 'relu', 'square', 'clone', 'softplus', 'erf',
         'atan', 'sinh', 'gelu', 'silu', 'expm1', 'sign', 'contiguous']
BINARY = ['add.Tensor', 'sub.Tensor', 'mul.Tensor', 'div.Tensor', 'maximum', 'minimum', 'atan2', 'hypot']
IN_PLACE = ['sin_', 'exp_', 'tanh_', 'sigmoid_', 'neg_', 'relu_', 'square_', 'zero_', 'abs_', 'cos_']
IN_PLACE_BINARY = ['add_.Tensor', 'sub_.Tensor', 'mul_.Tensor', 'div_.Tensor', 'copy_']


def variable(i):
    return ('$', i)


def pick(r, values):
    return r.randrange(len(values))


def a_dim(r, t):
    return r.randrange(-t.dim(), t.dim()) if t.dim() else 0


def view_statement(r, i, t):
    """A view of variable i, with any valid shape."""
    d, x = a_dim(r, t), {'self': variable(i)}
    if not t.dim():
        return r.choice([('unsqueeze', {**x, 'dim': 0}), ('expand', {**x, 'size': [2]}), ('alias', x)])
    size = t.shape[d]
    choices = [('transpose.int', {**x, 'dim0': d, 'dim1': a_dim(r, t)}), ('unsqueeze', {**x, 'dim': d}),
               ('squeeze', x), ('alias', x), ('detach', x), ('view', {**x, 'size': [-1]}),
               ('reshape', {**x, 'shape': [-1]}), ('permute', {**x, 'dims': r.sample(range(t.dim()), t.dim())}),
               ('flatten.using_ints', x)]
    if size:
        begin = r.randrange(size)
        choices += [('select.int', {**x, 'dim': d, 'index': begin}),
                    ('slice.Tensor', {**x, 'dim': d, 'start': begin, 'end': r.randrange(begin, size) + 1,
                                      'step': r.choice([1, 1, 2])}),
                    ('narrow', {**x, 'dim': d, 'start': begin, 'length': r.randrange(size - begin + 1)}),
                    ('unfold', {**x, 'dimension': d, 'size': r.randrange(1, size + 1), 'step': 1})]
    if size == 1:
        choices.append(('expand', {**x, 'size': [3 if k == d % t.dim() else s for k, s in enumerate(t.shape)]}))
    if t.dim() > 1:
        choices.append(('diagonal', x))
        choices.append(('t', x) if t.dim() == 2 else ('movedim.int', {**x, 'source': 0, 'destination': -1}))
    if size and size % 2 == 0:
        choices.append(('view_as_complex', x) if d in (-1, t.dim() - 1) and size == 2 else
                       ('unflatten.int', {**x, 'dim': d, 'sizes': [2, -1]}))
    return r.choice(choices)


def reduction(r, i, t):
    x, d = {'self': variable(i)}, a_dim(r, t)
    choices = [('sum', x), ('mean', x), ('sum.dim_IntList', {**x, 'dim': [d], 'keepdim': r.random() < .5}),
               ('mean.dim', {**x, 'dim': [d], 'keepdim': r.random() < .5}), ('cumsum', {**x, 'dim': d}),
               ('softmax.int', {**x, 'dim': d}), ('var', {**x, 'unbiased': False}), ('prod', x),
               ('logsumexp', {**x, 'dim': [d]}), ('flip', {**x, 'dims': [d]} if t.dim() else {**x, 'dims': []}),
               ('linalg_vector_norm', x), ('max', x), ('amax', {**x, 'dim': [d]})]
    return r.choice(choices)


def several(r, n, values):
    i, j = pick(r, values), pick(r, values)
    a = values[i]
    choices = [('cat', {'tensors': [variable(i), variable(j)], 'dim': a_dim(r, a)}),
               ('stack', {'tensors': [variable(i), variable(i)], 'dim': 0}),
               ('matmul', {'self': variable(i), 'other': variable(j)}),
               ('where.self', {'condition': variable(n), 'self': variable(i), 'other': variable(j)}),
               ('lerp.Tensor', {'self': variable(i), 'end': variable(j), 'weight': variable(pick(r, values))}),
               ('addcmul', {'self': variable(i), 'tensor1': variable(j), 'tensor2': variable(i), 'value': 0.5})]
    if choices[3] and r.random() < .4:
        return choices[2]
    return r.choice(choices[:3] + choices[4:])


def in_place(r, i, values):
    x = {'self': variable(i)}
    kind = r.random()
    if kind < .4:
        return r.choice(IN_PLACE), x
    if kind < .8:
        name = r.choice(IN_PLACE_BINARY)
        return name, {**x, 'src' if name == 'copy_' else 'other': variable(pick(r, values))}
    return r.choice([('fill_.Scalar', {**x, 'value': 0.5}), ('mul_.Scalar', {**x, 'other': 1.5}),
                     ('add_.Scalar', {**x, 'other': 0.25}), ('clamp_', {**x, 'min': -0.5, 'max': 0.5})])


def leaf(r):
    shape = [r.choice([1, 2, 2, 3, 4]) for _ in range(r.choice([0, 1, 1, 2, 2, 3]))]
    return 'leaf', {'shape': shape, 'seed': r.randrange(1 << 30), 'grad': r.random() < .7}


def statement(r, values):
    """The next statement, for the current values of the variables."""
    kind = r.random()
    if len(values) < 2 or kind < .08:
        return (*leaf(r), False)
    quiet = r.random() < .12
    i = pick(r, values)
    if r.random() < .6:  # prefer newer variables
        i = max(i, pick(r, values))
    if kind < .35:
        out = view_statement(r, i, values[i])
    elif kind < .55:
        out = in_place(r, i, values)
    elif kind < .70:
        out = r.choice(UNARY), {'self': variable(i)}
    elif kind < .85:
        out = r.choice(BINARY), {'self': variable(i), 'other': variable(pick(r, values))}
    elif kind < .93:
        out = reduction(r, i, values[i])
    elif kind < .97:
        out = several(r, len(values), values)
    else:
        # only for the newest variable: in PyTorch it affects variables that were computed before
        out = 'requires_grad', {'self': variable(len(values) - 1), 'value': r.random() < .5}
    return (*out, quiet)


def makes(s):
    base = s[0].split('.')[0]
    return s[0] != 'requires_grad' and (s[0] == 'leaf' or not base.endswith('_'))


def without(statements, gone):
    """The program without one statement and those that read its variable; variables are renumbered."""
    out, number, dead, n = [], {}, set(), 0
    for k, s in enumerate(statements):
        used = {v[1] for x in s[1].values() for v in (x if isinstance(x, list) else [x])
                if isinstance(v, tuple) and v[0] == '$'}
        drop = k == gone or used & dead
        if makes(s):
            if drop:
                dead.add(n)
            else:
                number[n] = len(number)
            n += 1
        if not drop:
            args = {a: [variable(number[v[1]]) if isinstance(v, tuple) else v for v in x] if isinstance(x, list) else
                    variable(number[x[1]]) if isinstance(x, tuple) else x for a, x in s[1].items()}
            out.append((s[0], args, s[2]))
    return out


def text(statements):
    lines, n = [], 0
    for name, args, quiet in statements:
        words = ', '.join(f'{k}={show(v)}' for k, v in args.items())
        new = makes((name, args, quiet))
        lines.append(f'    {f"v{n} = " if new else ""}{name}({words}){"  # no_grad" if quiet else ""}')
        n += new
    return '\n'.join(lines)


def show(x):
    if isinstance(x, list):
        return '[' + ', '.join(show(i) for i in x) + ']'
    return f'v{x[1]}' if isinstance(x, tuple) else str(x)
