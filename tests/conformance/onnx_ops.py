# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""ONNX's operators, implemented by libtensor's: an adapter takes inputs and attributes and returns results.

Helpers of adapters, elementwise functions, reductions. onnx_shapes.py and onnx_layers.py have the others."""
import struct

import golden

ADAPTERS = {}


class Missing(Exception):
    """Not applicable: a form that libtensor's operators do not have."""


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
    if o.opset < 7 and len(slope.sizes) == 1:  # one value for each channel
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
