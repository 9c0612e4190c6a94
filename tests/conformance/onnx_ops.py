# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""ONNX's operators in terms of ours: an adapter takes inputs and attributes, returns results."""
import struct

import golden
import onnx_proto

ADAPTERS = {}


class Missing(Exception):
    """Not applicable: a form that our operators do not have."""


class NotHere(Missing):
    """Not applicable yet: the library has no such operator."""


def onnx(*names):
    def put(fn):
        for n in names:
            ADAPTERS[n] = fn
        return fn
    return put


class Ops:
    """ops('add.Tensor', a, b): a boxed call with arguments in schema order or by name."""

    def __init__(self, lib, opset):
        self.lib, self.opset, self.wanted = lib, opset, 1

    def __call__(self, name, *args, **kwargs):
        op = self.lib.ops.get(name)
        if not op:
            raise NotHere(f'the library has no {name}')
        kwargs.update((a.name, v) for a, v in zip(op.args, args))
        res = self.lib.call(op, kwargs)
        return res[0] if len(res) == 1 else res

    def new(self, dtype, values, sizes):
        f = golden.FORMAT[dtype]
        return self.lib.storage(dtype, struct.pack(f'<{len(values)}{f}', *values), sizes=sizes)

    def full(self, like, value):
        return self('full', [], value, dtype=like.dtype)

    def fold(self, name, xs):
        out = xs[0]
        for x in xs[1:]:
            out = self(name, out, x)
        return out


def values(t):
    return golden.numbers(t.tobytes(), t.dtype)


def number(t):
    return values(t)[0]


def dims(t, axis):
    return axis + len(t.sizes) if axis < 0 else axis


def floating(t):
    return t.dtype[0] in 'fbc' and t.dtype != 'bool'


for name, ours in dict(
        Abs='abs', Acos='acos', Acosh='acosh', Asin='asin', Asinh='asinh', Atan='atan',
        Atanh='atanh', Ceil='ceil', Cos='cos', Cosh='cosh', Erf='erf', Exp='exp', Floor='floor',
        IsNaN='isnan', Log='log', Neg='neg', Not='logical_not', Reciprocal='reciprocal',
        Relu='relu', Round='round', Sigmoid='sigmoid', Sign='sign', Sin='sin', Sinh='sinh',
        Sqrt='sqrt', Tan='tan', Tanh='tanh', Identity='clone', Softplus='softplus',
        HardSwish='hardswish', Mish='mish', Det='linalg_det').items():
    ADAPTERS[name] = lambda o, x, a, ours=ours: o(ours, x[0])

for name, ours in dict(
        Add='add.Tensor', Sub='sub.Tensor', Mul='mul.Tensor', And='logical_and',
        Or='logical_or', Xor='logical_xor', Equal='eq.Tensor', Greater='gt.Tensor', Less='lt.Tensor',
        GreaterOrEqual='ge.Tensor', LessOrEqual='le.Tensor', MatMul='matmul').items():
    ADAPTERS[name] = lambda o, x, a, ours=ours: o(ours, x[0], x[1])


@onnx('Pow')
def power(o, x, a):
    res = o('pow.Tensor_Tensor', x[0], x[1])
    return res if res.dtype == x[0].dtype else o('_to_copy', res, dtype=x[0].dtype)


@onnx('Div')
def div(o, x, a):
    return o('div.Tensor', *x) if floating(x[0]) else \
        o('div.Tensor_mode', *x, rounding_mode='trunc')


@onnx('Mod')
def mod(o, x, a):
    return o('fmod.Tensor' if a.get('fmod') else 'remainder.Tensor', *x)


@onnx('BitShift')
def bitshift(o, x, a):
    way = 'right' if a['direction'] == 'RIGHT' else 'left'
    return o(f'bitwise_{way}_shift.Tensor', *x)


@onnx('Max')
def maximum(o, x, a):
    return o.fold('maximum', x)


@onnx('Min')
def minimum(o, x, a):
    return o.fold('minimum', x)


@onnx('Sum')
def add_all(o, x, a):
    return o.fold('add.Tensor', x)


@onnx('Mean')
def mean_all(o, x, a):
    return o('div.Scalar', o.fold('add.Tensor', x), len(x))


@onnx('Where')
def where(o, x, a):
    return o('where.self', *x)


@onnx('PRelu')
def prelu(o, x, a):
    t, slope = x
    if o.opset < 7 and len(slope.sizes) == 1:  # one for each channel
        slope = o('reshape', slope, [-1] + [1] * (len(t.sizes) - 2))
    return o('where.self', o('lt.Scalar', t, 0), o('mul.Tensor', t, slope), t)


@onnx('IsInf')
def isinf(o, x, a):
    if a.get('detect_negative', 1) and a.get('detect_positive', 1):
        return o('isinf', x[0])
    sign = 'isneginf' if a.get('detect_negative', 1) else 'isposinf'
    return o(sign, x[0])


@onnx('Clip')
def clip(o, x, a):
    x = x + [None, None]
    if o.opset < 11:
        return o('clamp', x[0], a.get('min'), a.get('max'))
    if not x[1] and not x[2]:
        return x[0]
    return o('clamp.Tensor', x[0], x[1], x[2])


# ---- activations ---------------------------------------------------------------------------------

@onnx('Elu')
def elu(o, x, a):
    return o('elu', x[0], a.get('alpha', 1.0))


@onnx('Selu')
def selu(o, x, a):
    return o('elu', x[0], a.get('alpha', 1.6732632), a.get('gamma', 1.0507010))


@onnx('Celu')
def celu(o, x, a):
    return o('celu', x[0], a.get('alpha', 1.0))


@onnx('LeakyRelu')
def leaky(o, x, a):
    return o('leaky_relu', x[0], a.get('alpha', 0.01))


@onnx('ThresholdedRelu')
def thresholded(o, x, a):
    return o('threshold', x[0], a.get('alpha', 1.0), 0)


@onnx('HardSigmoid')
def hardsigmoid(o, x, a):
    y = o('add.Scalar', o('mul.Scalar', x[0], a.get('alpha', 0.2)), a.get('beta', 0.5))
    return o('clamp', y, 0, 1)


@onnx('Shrink')
def shrink(o, x, a):
    t, lambd, bias = x[0], a.get('lambd', 0.5), a.get('bias', 0.0)
    low, high = o('lt.Scalar', t, -lambd), o('gt.Scalar', t, lambd)
    zero = o('zeros_like', t)
    return o('where.self', low, o('add.Scalar', t, bias),
             o('where.self', high, o('sub.Scalar', t, bias), zero))


@onnx('Softsign')
def softsign(o, x, a):
    return o('div.Tensor', x[0], o('add.Scalar', o('abs', x[0]), 1))


def soft(ours):
    def run(o, x, a):
        t, axis = x[0], a.get('axis', -1 if o.opset >= 13 else 1)
        if o.opset >= 13:
            return o(ours, t, axis)
        head = 1
        for n in t.sizes[:dims(t, axis)]:
            head *= n
        return o('reshape', o(ours, o('reshape', t, [head, -1]), 1), t.sizes)
    return run


ADAPTERS.update(Softmax=soft('softmax.int'), LogSoftmax=soft('log_softmax.int'))


# ---- reductions ----------------------------------------------------------------------------------

def axes_of(x, a):
    if len(x) > 1 and x[1] is not None:
        return values(x[1])
    return a.get('axes') or []


def reduction(fn):
    def run(o, x, a):
        t, axes, keep = x[0], axes_of(x, a), bool(a.get('keepdims', 1))
        if not axes:
            if a.get('noop_with_empty_axes'):
                return t
            axes = list(range(len(t.sizes)))
        return fn(o, t, [dims(t, i) for i in axes], keep)
    return run


def product(o, t, axes, keep):
    for i in sorted(axes, reverse=True):
        t = o('prod.dim_int', t, i, keep)
    return t


def total(o, t, axes, keep):
    res = o('sum.dim_IntList', t, axes, keep)
    return res if res.dtype == t.dtype else o('_to_copy', res, dtype=t.dtype)


REDUCTIONS = dict(
    ReduceSum=total, ReduceProd=product,
    ReduceMean=lambda o, t, x, k: o('mean.dim', t, x, k),
    ReduceMax=lambda o, t, x, k: o('amax', t, x, k),
    ReduceMin=lambda o, t, x, k: o('amin', t, x, k),
    ReduceL1=lambda o, t, x, k: total(o, o('abs', t), x, k),
    ReduceL2=lambda o, t, x, k: o('sqrt', total(o, o('mul.Tensor', t, t), x, k)),
    ReduceSumSquare=lambda o, t, x, k: total(o, o('mul.Tensor', t, t), x, k),
    ReduceLogSum=lambda o, t, x, k: o('log', total(o, t, x, k)),
    ReduceLogSumExp=lambda o, t, x, k: o('logsumexp', t, x, k))
ADAPTERS.update({n: reduction(f) for n, f in REDUCTIONS.items()})


def arg_of(ours):
    def run(o, x, a):
        if a.get('select_last_index'):
            raise Missing('the last index of equal ones')
        return o(ours, x[0], a.get('axis', 0), bool(a.get('keepdims', 1)))
    return run


ADAPTERS.update(ArgMax=arg_of('argmax'), ArgMin=arg_of('argmin'))


@onnx('CumSum')
def cumsum(o, x, a):
    t, axis = x[0], int(number(x[1]))
    axis = dims(t, axis)
    if a.get('reverse'):
        t = o('flip', t, [axis])
    y = o('cumsum', t, axis)
    if a.get('exclusive'):
        zero = o('zeros_like', o('slice.Tensor', y, axis, 0, 1))
        y = o('cat', [zero, o('slice.Tensor', y, axis, 0, y.sizes[axis] - 1)], axis)
    return o('flip', y, [axis]) if a.get('reverse') else y


@onnx('TopK')
def topk(o, x, a):
    k = int(number(x[1])) if len(x) > 1 else a['k']
    return o('topk', x[0], k, a.get('axis', -1), bool(a.get('largest', 1)),
             bool(a.get('sorted', 1)))


# ---- shapes --------------------------------------------------------------------------------------

@onnx('Concat')
def concat(o, x, a):
    return o('cat', x, a['axis'])


@onnx('Split')
def split(o, x, a):
    axis = a.get('axis', 0)
    sizes = values(x[1]) if len(x) > 1 else a.get('split')
    if not sizes:
        n = x[0].sizes[axis]
        each = -(-n // o.wanted)
        sizes = [min(each, n - i * each) for i in range(o.wanted)]
    return o('split_with_sizes', x[0], sizes, axis)


@onnx('Slice')
def slice_(o, x, a):
    t = x[0]
    if o.opset < 10:
        starts, ends, axes, steps = a['starts'], a['ends'], a.get('axes'), None
    else:
        starts, ends = values(x[1]), values(x[2])
        axes = values(x[3]) if len(x) > 3 and x[3] else None
        steps = values(x[4]) if len(x) > 4 and x[4] else None
    for i, s in enumerate(starts):
        axis = dims(t, axes[i] if axes else i)
        n, step = t.sizes[axis], steps[i] if steps else 1
        first, last, step = slice(s, ends[i], step).indices(n)
        if step < 0:  # the same elements from the other end
            t = o('flip', t, [axis])
            first, last, step = n - 1 - first, n - 1 - last, -step
        t = o('slice.Tensor', t, axis, first, max(first, last), step)
    return t


@onnx('Squeeze')
def squeeze(o, x, a):
    axes = axes_of(x, a)
    if not axes:
        return o('squeeze', x[0])
    t = x[0]
    for i in sorted((dims(t, i) for i in axes), reverse=True):
        t = o('squeeze.dim', t, i)
    return t


@onnx('Unsqueeze')
def unsqueeze(o, x, a):
    axes, t = axes_of(x, a), x[0]
    n = len(t.sizes) + len(axes)
    for i in sorted(i % n for i in axes):
        t = o('unsqueeze', t, i)
    return t


@onnx('Transpose')
def transpose(o, x, a):
    return o('permute', x[0], a.get('perm') or list(range(len(x[0].sizes)))[::-1])


@onnx('Reshape')
def reshape(o, x, a):
    shape = values(x[1]) if len(x) > 1 else a['shape']
    if not a.get('allowzero'):
        shape = [x[0].sizes[i] if n == 0 else n for i, n in enumerate(shape)]
    return o('reshape', x[0], shape)


@onnx('Flatten')
def flatten(o, x, a):
    head, t = 1, x[0]
    for n in t.sizes[:dims(t, a.get('axis', 1))]:
        head *= n
    tail = 1
    for n in t.sizes[dims(t, a.get('axis', 1)):]:
        tail *= n
    return o('reshape', t, [head, tail])


@onnx('Expand')
def expand(o, x, a):
    t, shape = x[0], values(x[1])
    n = max(len(shape), len(t.sizes))
    mine, theirs = [1] * (n - len(t.sizes)) + t.sizes, [1] * (n - len(shape)) + shape
    return o('expand', t, [max(p, q) for p, q in zip(mine, theirs)])


@onnx('Tile')
def tile(o, x, a):
    return o('repeat', x[0], values(x[1]))


@onnx('Shape')
def shape(o, x, a):
    sizes = x[0].sizes[slice(a.get('start'), a.get('end'))]
    return o.new('i64', sizes, [len(sizes)])


@onnx('Size')
def size(o, x, a):
    return o.new('i64', [x[0].numel], [])


@onnx('Trilu')
def trilu(o, x, a):
    return o('triu' if a.get('upper', 1) else 'tril', x[0], int(number(x[1])) if len(x) > 1 else 0)


@onnx('DepthToSpace')
def depth_to_space(o, x, a):
    n, c, h, w = x[0].sizes
    b = a['blocksize']
    if a.get('mode', 'DCR') == 'CRD':
        return o('pixel_shuffle', x[0], b)
    t = o('permute', o('reshape', x[0], [n, b, b, c // b // b, h, w]), [0, 3, 4, 1, 5, 2])
    return o('reshape', t, [n, c // b // b, h * b, w * b])


@onnx('SpaceToDepth')
def space_to_depth(o, x, a):
    n, c, h, w = x[0].sizes
    b = a['blocksize']
    t = o('permute', o('reshape', x[0], [n, c, h // b, b, w // b, b]), [0, 3, 5, 1, 2, 4])
    return o('reshape', t, [n, c * b * b, h // b, w // b])


@onnx('Pad')
def pad(o, x, a):
    pads = values(x[1]) if len(x) > 1 else a['pads']
    n, mode, flat = len(x[0].sizes), a.get('mode', 'constant'), []
    if len(x) > 3:
        raise Missing('Pad with axes')
    for i in reversed(range(n)):
        flat += [pads[i], pads[i + n]]
    if mode == 'constant':
        value = number(x[2]) if len(x) > 2 and x[2] else a.get('value', 0)
        return o('constant_pad_nd', x[0], flat, value)
    if any(flat[2 * (n - 2):]):
        raise Missing('Pad of the leading dimensions by reflection')
    ours = {'reflect': 'reflection_pad', 'edge': 'replication_pad'}.get(mode)
    if not ours:
        raise Missing(f'Pad {mode}')
    return o(f'{ours}{n - 2}d', x[0], flat[:2 * (n - 2)])


# ---- indices -------------------------------------------------------------------------------------

def positive(o, index, n):
    """Negative indices count from the end."""
    return o('where.self', o('lt.Scalar', index, 0), o('add.Scalar', index, n), index)


def whole(o, index):
    return index if index.dtype == 'i64' else o('_to_copy', index, dtype='i64')


@onnx('Gather')
def gather(o, x, a):
    t, axis = x[0], dims(x[0], a.get('axis', 0))
    index = positive(o, whole(o, x[1]), t.sizes[axis])
    flat = o('index_select', t, axis, o('reshape', index, [-1]))
    return o('reshape', flat, t.sizes[:axis] + index.sizes + t.sizes[axis + 1:])


@onnx('GatherElements')
def gather_elements(o, x, a):
    axis = dims(x[0], a.get('axis', 0))
    return o('gather', x[0], axis, positive(o, whole(o, x[1]), x[0].sizes[axis]))


@onnx('GatherND')
def gather_nd(o, x, a):
    if a.get('batch_dims'):
        raise Missing('GatherND with batch dimensions')
    index = [o('select.int', whole(o, x[1]), -1, i) for i in range(x[1].sizes[-1])]
    return o('index.Tensor', x[0], index)


@onnx('ScatterElements', 'Scatter')
def scatter(o, x, a):
    axis, reduce = dims(x[0], a.get('axis', 0)), a.get('reduction', 'none')
    index = positive(o, whole(o, x[1]), x[0].sizes[axis])
    if reduce == 'none':
        return o('scatter.src', x[0], axis, index, x[2])
    ours = dict(add='sum', mul='prod', max='amax', min='amin')[reduce]
    return o('scatter_reduce.two', x[0], axis, index, x[2], ours)


@onnx('ScatterND')
def scatter_nd(o, x, a):
    reduce = a.get('reduction', 'none')
    if reduce not in ('none', 'add'):
        raise Missing(f'ScatterND {reduce}')
    index = [o('select.int', whole(o, x[1]), -1, i) for i in range(x[1].sizes[-1])]
    return o('index_put', x[0], index, x[2], reduce == 'add')


@onnx('NonZero')
def nonzero(o, x, a):
    return o('t', o('nonzero', x[0]))


@onnx('Compress')
def compress(o, x, a):
    t, axis = x[0], a.get('axis')
    if axis is None:
        t, axis = o('reshape', t, [-1]), 0
    where_ = o('reshape', o('nonzero', x[1]), [-1])
    return o('index_select', t, dims(t, axis), where_)


@onnx('OneHot')
def one_hot(o, x, a):
    axis, depth = a.get('axis', -1), int(number(x[1]))
    index = positive(o, whole(o, x[0]), depth)
    axis = axis % (len(index.sizes) + 1)
    rng = o('reshape', o('arange', depth, dtype='i64'),
            [depth] + [1] * (len(index.sizes) - axis))
    hot = o('eq.Tensor', o('unsqueeze', index, axis), rng)
    off, on = (o('select.int', x[2], 0, i) for i in (0, 1))
    return o('where.self', hot, on, off)


# ---- making --------------------------------------------------------------------------------------

@onnx('Constant')
def constant(o, x, a):
    (key, v), = a.items()
    if key == 'value':
        return o.lib.storage(v[0], v[2], sizes=v[1])
    if key in ('value_float', 'value_floats', 'value_int', 'value_ints'):
        dtype = 'f32' if 'float' in key else 'i64'
        return o.new(dtype, v, [len(v)]) if key.endswith('s') else o.new(dtype, [v], [])
    raise Missing(f'Constant {key}')


@onnx('ConstantOfShape')
def constant_of_shape(o, x, a):
    dtype, _, raw = a.get('value', ('f32', [1], bytes(4)))
    return o('full', values(x[0]), golden.numbers(raw, dtype)[0], dtype=dtype)


@onnx('Range')
def range_(o, x, a):
    return o('arange.start_step', *(number(t) for t in x), dtype=x[0].dtype)


@onnx('EyeLike')
def eye_like(o, x, a):
    n, m = x[0].sizes
    k = a.get('k', 0)
    dtype = onnx_proto.DTYPES.get(a['dtype'], '') if 'dtype' in a else x[0].dtype
    if k:
        ones = o('ones', [n, m], dtype=dtype)
        return o('tril', o('triu', ones, k), k)
    return o('eye.m', n, m, dtype=dtype)


@onnx('Cast')
def cast(o, x, a):
    if a['to'] not in onnx_proto.DTYPES:
        raise onnx_proto.Foreign(f'ONNX data type {a["to"]}')
    return o('_to_copy', x[0], dtype=onnx_proto.DTYPES[a['to']])


@onnx('CastLike')
def cast_like(o, x, a):
    return o('_to_copy', x[0], dtype=x[1].dtype)


@onnx('Dropout')
def dropout(o, x, a):
    if len(x) > 2 and x[2] and number(x[2]) and (not x[1] or number(x[1])):
        raise Missing('random numbers of a given seed')
    return [x[0], o('ones_like', x[0], dtype='bool')]


# ---- products, convolution, pooling, norms -------------------------------------------------------

@onnx('Einsum')
def einsum(o, x, a):
    return o('einsum', a['equation'], x)


@onnx('Gemm')
def gemm(o, x, a):
    p = o('t', x[0]) if a.get('transA') else x[0]
    q = o('t', x[1]) if a.get('transB') else x[1]
    if len(x) < 3:
        return o('mul.Scalar', o('mm', p, q), a.get('alpha', 1.0))
    return o('addmm', x[2], p, q, beta=a.get('beta', 1.0), alpha=a.get('alpha', 1.0))


def window(t, a, kernel):
    """strides, padding at both ends and dilations of a convolution or a pool."""
    n = len(kernel)
    strides, dilations = a.get('strides') or [1] * n, a.get('dilations') or [1] * n
    pads, auto = a.get('pads') or [0] * 2 * n, a.get('auto_pad', 'NOTSET')
    if auto.startswith('SAME'):
        pads = [0] * 2 * n
        for i in range(n):
            size = t.sizes[2 + i]
            need = max((-(-size // strides[i]) - 1) * strides[i] +
                       (kernel[i] - 1) * dilations[i] + 1 - size, 0)
            pads[i] = need // 2 if auto == 'SAME_UPPER' else need - need // 2
            pads[i + n] = need - pads[i]
    return strides, pads[:n], pads[n:], dilations


def pad_ends(o, t, before, after, value=0):
    flat = [v for b, e in reversed(list(zip(before, after))) for v in (b, e)]
    return o('constant_pad_nd', t, flat, value)


@onnx('Conv')
def conv(o, x, a):
    strides, before, after, dilations = window(x[0], a, x[1].sizes[2:])
    t = x[0]
    if before != after:
        t, before = pad_ends(o, t, before, after), [0] * len(before)
    return o('convolution', t, x[1], x[2] if len(x) > 2 else None, strides, before, dilations,
             False, [0] * len(before), a.get('group', 1))


@onnx('ConvTranspose')
def conv_transpose(o, x, a):
    n = len(x[1].sizes) - 2
    kernel = x[1].sizes[2:]
    strides, dilations = a.get('strides') or [1] * n, a.get('dilations') or [1] * n
    extra = a.get('output_padding') or [0] * n
    pads = a.get('pads') or [0] * 2 * n
    full = [(x[0].sizes[2 + i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 + extra[i]
            for i in range(n)]
    auto = a.get('auto_pad', 'NOTSET')
    shape = a.get('output_shape') or ([s * p for s, p in zip(x[0].sizes[2:], strides)]
                                      if auto.startswith('SAME') else None)
    if shape:
        need = [f - s for f, s in zip(full, shape)]
        if min(need) < 0:
            raise Missing('ConvTranspose with a larger output_shape')
        half = [d // 2 for d in need]
        rest = [d - h for d, h in zip(need, half)]
        pads = half + rest if auto == 'SAME_UPPER' else rest + half
    y = o('convolution', x[0], x[1], x[2] if len(x) > 2 else None, strides, [0] * n, dilations,
          True, extra, a.get('group', 1))
    for i in range(n):
        y = o('slice.Tensor', y, 2 + i, pads[i], y.sizes[2 + i] - pads[i + n])
    return y


@onnx('MaxPool')
def max_pool(o, x, a):
    kernel = a['kernel_shape']
    n = len(kernel)
    strides, before, after, dilations = window(x[0], a, kernel)
    if o.wanted > 1:
        raise Missing('MaxPool with indices')
    t, lead = x[0], 2
    if before != after or any(2 * b > k for b, k in zip(before, kernel)):
        if not floating(t):
            raise Missing('MaxPool with uneven padding of integers')
        t, before = pad_ends(o, t, before, after, float('-inf')), [0] * n
    if n == 1:
        t = o('unsqueeze', t, lead)
        kernel, strides, before, dilations = ([1] + kernel, [1] + strides, [0] + before,
                                              [1] + dilations)
    y, _ = o(f'max_pool{max(n, 2)}d_with_indices', t, kernel, strides, before, dilations,
             bool(a.get('ceil_mode')))
    return o('squeeze.dim', y, lead) if n == 1 else y


@onnx('AveragePool')
def avg_pool(o, x, a):
    kernel = a['kernel_shape']
    strides, before, after, _ = window(x[0], a, kernel)
    count, t = bool(a.get('count_include_pad')), x[0]
    if before != after or any(2 * b > k for b, k in zip(before, kernel)):
        if not count:
            raise Missing('AveragePool with uneven padding that does not count')
        t, before = pad_ends(o, t, before, after), [0] * len(before)
    return o(f'avg_pool{len(kernel)}d', t, kernel, strides, before, bool(a.get('ceil_mode')), count)


@onnx('GlobalAveragePool')
def global_avg(o, x, a):
    return o('mean.dim', x[0], list(range(2, len(x[0].sizes))), True)


@onnx('GlobalMaxPool')
def global_max(o, x, a):
    return o('amax', x[0], list(range(2, len(x[0].sizes))), True)


@onnx('BatchNormalization')
def batch_norm(o, x, a):
    if a.get('training_mode') or o.wanted > 1:
        raise Missing('BatchNormalization in training')
    res = o('native_batch_norm', x[0], x[1], x[2], x[3], x[4], False, 0.0, a.get('epsilon', 1e-5))
    return res[0]


@onnx('InstanceNormalization')
def instance_norm(o, x, a):
    n, c = x[0].sizes[:2]
    t = o('reshape', x[0], [1, n * c] + x[0].sizes[2:])
    w, b = (o('repeat', v, [n]) for v in x[1:3])
    y = o('native_batch_norm', t, w, b, None, None, True, 0.0, a.get('epsilon', 1e-5))[0]
    return o('reshape', y, x[0].sizes)


@onnx('LayerNormalization')
def layer_norm(o, x, a):
    axis = dims(x[0], a.get('axis', -1))
    y, mean, rstd = o('native_layer_norm', x[0], x[0].sizes[axis:], x[1],
                      x[2] if len(x) > 2 else None, a.get('epsilon', 1e-5))
    return [y, mean, rstd]


@onnx('GridSample')
def grid_sample(o, x, a):
    mode = dict(bilinear=0, nearest=1, bicubic=2)[a.get('mode', 'bilinear')]
    pads = dict(zeros=0, border=1, reflection=2)[a.get('padding_mode', 'zeros')]
    return o('grid_sampler_2d', x[0], x[1], mode, pads, bool(a.get('align_corners', 0)))


# ---- losses --------------------------------------------------------------------------------------

def reduction_of(a):
    return dict(none=0, mean=1, sum=2)[a.get('reduction', 'mean')]


def nll(o, logp, x, a):
    """Any number of dimensions as one of rows: [n, c, d...] to [n * d..., c]."""
    t, target = logp, whole(o, x[1])
    n, c = t.sizes[:2]
    flat = o('reshape', o('permute', o('reshape', t, [n, c, -1]), [0, 2, 1]), [-1, c])
    how = reduction_of(a)
    res = o('nll_loss', flat, o('reshape', target, [-1]), weight=x[2] if len(x) > 2 else None,
            reduction=how, ignore_index=a.get('ignore_index', -100))
    return o('reshape', res, target.sizes) if how == 0 else res


@onnx('NegativeLogLikelihoodLoss')
def nll_loss(o, x, a):
    return nll(o, x[0], x, a)


@onnx('SoftmaxCrossEntropyLoss')
def softmax_cross_entropy(o, x, a):
    logp = o('log_softmax.int', x[0], 1)
    return [nll(o, logp, x, a), logp]
