# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""ONNX's operators: products, convolution, pooling, norms, losses."""
from onnx_ops import Missing, dims, floating, onnx
from onnx_shapes import whole

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
    """Reshapes [n, c, d...] to rows, [n * d..., c]."""
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
