# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Functions of neural networks with PyTorch's names and arguments."""
import math

from devtensor import _C
from devtensor._C import (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, avg_pool1d, avg_pool2d,
                          # noqa: F401
                          avg_pool3d, conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d,
                          cosine_similarity, linear, one_hot, pad, pairwise_distance, pdist, prelu,
                          scaled_dot_product_attention)

_log_sigmoid = logsigmoid = _C.log_sigmoid


# ---- activations ----

def _activation(name, doc):
    """An activation without other arguments than inplace."""
    out_of_place, in_place = getattr(_C, name), getattr(_C, name + '_', None)

    def function(input, inplace=False):
        if not inplace:
            return out_of_place(input)
        return in_place(input) if in_place else input.copy_(out_of_place(input))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


relu = _activation('relu', 'max(x, 0)')
relu6 = _activation('relu6', 'min(max(x, 0), 6)')
selu = _activation('selu', 'A scaled exponential linear unit with fixed constants.')
silu = _activation('silu', 'x * sigmoid(x)')
mish = _activation('mish', 'x * tanh(softplus(x))')
hardswish = _activation('hardswish', 'x * relu6(x + 3) / 6')
hardsigmoid = _activation('hardsigmoid', 'relu6(x + 3) / 6')
sigmoid = _C.sigmoid
tanh = _C.tanh


def _apply(input, inplace, name, *args):
    """An operator with further arguments, whose in-place form has the name with '_'."""
    if not inplace:
        return getattr(_C, name)(input, *args)
    in_place = getattr(_C, name + '_', None)
    return in_place(input, *args) if in_place else input.copy_(getattr(_C, name)(input, *args))


def elu(input, alpha=1.0, inplace=False):
    """x, or alpha * (exp(x) - 1) below 0."""
    return _apply(input, inplace, 'elu', alpha)


def celu(input, alpha=1.0, inplace=False):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))"""
    return _apply(input, inplace, 'celu', alpha)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """x, or negative_slope * x below 0."""
    return _apply(input, inplace, 'leaky_relu', negative_slope)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """x limited to min_val and max_val."""
    return _apply(input, inplace, 'hardtanh', min_val, max_val)


def threshold(input, threshold, value, inplace=False):
    """x where it is above the threshold, else value."""
    return _apply(input, inplace, 'threshold', threshold, value)


def gelu(input, approximate='none'):
    """x times the normal distribution function of x; approximate: 'none' or 'tanh'."""
    return _C.gelu(input, approximate=approximate)


def softplus(input, beta=1, threshold=20):
    """log(1 + exp(beta x)) / beta; x where beta x is above the threshold."""
    return _C.softplus(input, beta, threshold)


def hardshrink(input, lambd=0.5):
    """x, and 0 within lambd of 0."""
    return _C.hardshrink(input, lambd)


def softshrink(input, lambd=0.5):
    """x moved by lambd towards 0."""
    return _C.softshrink(input, lambd)


def tanhshrink(input):
    """x - tanh(x)"""
    return input - input.tanh()


def softsign(input):
    """x / (1 + |x|)"""
    return input / (input.abs() + 1)


def glu(input, dim=-1):
    """The first half along dim times the sigmoid of the second."""
    if input.shape[dim] % 2:
        raise ValueError(f'glu: dimension {dim} has the odd size {input.shape[dim]}')
    first, second = input.chunk(2, dim)
    return first * second.sigmoid()


def softmax(input, dim=None, dtype=None):
    """exp(x) divided by its sum along dim."""
    return _C.softmax(input, _softmax_dim(input, dim), dtype=dtype)


def log_softmax(input, dim=None, dtype=None):
    """The logarithm of softmax()."""
    return _C.log_softmax(input, _softmax_dim(input, dim), dtype=dtype)


def softmin(input, dim=None, dtype=None):
    """softmax() of -x."""
    return _C.softmax(-input, _softmax_dim(input, dim), dtype=dtype)


def _softmax_dim(input, dim):
    if dim is not None:
        return dim
    return 0 if input.ndim in (0, 1, 3) else 1


def gumbel_softmax(logits, tau=1.0, hard=False, dim=-1, generator=None):
    """A sample of a relaxed categorical distribution; hard: one-hot, with the gradient of the soft one."""
    noise = -_C.empty_like(logits).exponential_(generator=generator).log()
    soft = _C.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.argmax(dim, True)
    return _C.zeros_like(soft).scatter_(dim, index, 1.0) - soft.detach() + soft


# ---- dropout ----

def dropout(input, p=0.5, training=True, inplace=False):
    """Zeros with probability p, and the other elements divided by 1 - p; unchanged unless training."""
    return _apply(input, inplace, 'dropout', float(p), training)


def _dropout_channels(input, p, training, inplace, sample_dims):
    """Dropout of whole channels: input [N, C, ...], or [C, ...] with sample_dims dimensions."""
    if not 0 <= p <= 1:
        raise ValueError(f'dropout: p is {p}, which is no probability')
    if not training or p == 0:
        return input
    batched = input.ndim != sample_dims
    shape = list(input.shape[:2] if batched else input.shape[:1])
    noise = _C.dropout(_C.ones(shape, dtype=input.dtype, device=input.device), float(p), True)
    noise = noise.reshape(shape + [1] * (input.ndim - len(shape)))
    return input.mul_(noise) if inplace else input * noise


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of [N, C, L] or [C, L]."""
    return _dropout_channels(input, p, training, inplace, 2)


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of [N, C, H, W] or [C, H, W]."""
    return _dropout_channels(input, p, training, inplace, 3)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of [N, C, D, H, W] or [C, D, H, W]."""
    return _dropout_channels(input, p, training, inplace, 4)


# ---- embeddings ----

def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """The rows of weight [num, dim] at the indices input [*]: [*, dim]."""
    padding = -1 if padding_idx is None else _row(padding_idx, weight)
    if max_norm is not None:
        _renorm(weight, input, max_norm, norm_type)
    return _C.embedding(weight, input, padding, scale_grad_by_freq, sparse)


def _row(index, weight):
    if not -weight.shape[0] <= index < weight.shape[0]:
        raise ValueError(f'padding_idx is {index}, weight has {weight.shape[0]} rows')
    return index % weight.shape[0]


def _renorm(weight, indices, max_norm, norm_type):
    """Scale the rows that are used down to max_norm, in place and unrecorded."""
    rows = _C._unique2(indices.reshape(-1), True, False, False)[0]
    used = weight.detach().index_select(0, rows)
    norms = _C.linalg_vector_norm(used, norm_type, 1, True)
    weight.detach().index_copy_(0, rows, used * (max_norm / (norms + 1e-7)).clamp(max=1.0))


_BAG_MODES = {'sum': 0, 'mean': 1, 'max': 2}


def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode='mean',
                  sparse=False,
                  per_sample_weights=None, include_last_offset=False, padding_idx=None):
    """Sums, means or maxima of rows of weight for each bag: input [B, N], or [N] with the beginnings of bags in
    offsets."""
    if mode not in _BAG_MODES:
        raise ValueError(f"embedding_bag: mode is 'sum', 'mean' or 'max', not {mode!r}")
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError('embedding_bag: offsets are given with an input of one dimension only')
        offsets = _C.arange(0, input.numel(), max(1, input.shape[1]), dtype=input.dtype)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
        input = input.reshape(-1)
    elif offsets is None:
        raise ValueError('embedding_bag: an input of one dimension needs offsets')
    if max_norm is not None:
        _renorm(weight, input, max_norm, norm_type)
    padding = None if padding_idx is None else _row(padding_idx, weight)
    return _C.embedding_bag(weight, input, offsets, scale_grad_by_freq, _BAG_MODES[mode], sparse, per_sample_weights,
                            include_last_offset, padding)[0]


# ---- normalization ----

def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """Normalization of each channel of [N, C, *] over the batch, or with the running statistics."""
    if training and input.numel() == input.shape[1]:
        raise ValueError(f'batch_norm: training needs more than one value for each channel, the shape is {input.shape}')
    return _C.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True,
                  momentum=0.1,
                  eps=1e-5):
    """Normalization of each channel of each sample of [N, C, *]."""
    return _C.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Normalization over the last dimensions, which have the shape normalized_shape."""
    return _C.layer_norm(input, normalized_shape, weight, bias, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Normalization of num_groups groups of channels of each sample of [N, C, *]."""
    return _C.group_norm(input, num_groups, weight, bias, eps)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Division by the root of the mean square over the last dimensions."""
    return _C.rms_norm(input, normalized_shape, weight, eps)


def normalize(input, p=2.0, dim=1, eps=1e-12):
    """x divided by its norm along dim, or by eps if that is larger."""
    return input / _C.linalg_vector_norm(input, p, dim, True).clamp_min(eps)


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Division by a power of the mean square over size neighbouring channels of [N, C, *]."""
    square = (input * input).unsqueeze(1)
    flat = square.reshape(square.shape[0], 1, square.shape[2], -1)
    flat = _C.constant_pad_nd(flat, [0, 0, size // 2, (size - 1) // 2])
    mean = _C.avg_pool2d(flat, [size, 1], [1, 1]).reshape(input.shape)
    return input / (mean * alpha + k) ** beta


# ---- pooling ----

def _max_pool(n):
    plain, indices = getattr(_C, f'max_pool{n}d'), getattr(_C, f'max_pool{n}d_with_indices')

    def function(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        pool = indices if return_indices else plain
        return pool(input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)

    function.__name__ = function.__qualname__ = f'max_pool{n}d'
    function.__doc__ = f'The maximum of each window of the last {n} dimensions; with return_indices also its position.'
    return function


max_pool1d, max_pool2d, max_pool3d = _max_pool(1), _max_pool(2), _max_pool(3)


def _adaptive_max_pool(n):
    pool = getattr(_C, f'adaptive_max_pool{n}d')

    def function(input, output_size, return_indices=False):
        result = pool(input, output_size)
        return result if return_indices else result[0]

    function.__name__ = function.__qualname__ = f'adaptive_max_pool{n}d'
    function.__doc__ = f'Maxima of windows such that the last {n} dimensions get output_size.'
    return function


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (_adaptive_max_pool(n) for n in (1, 2, 3))


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The norm of each window of the last dimension."""
    out = avg_pool1d(input ** norm_type, kernel_size, () if stride is None else stride, 0, ceil_mode)
    return (out.sign() * relu(out.abs()) * kernel_size) ** (1.0 / norm_type)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The norm of each window of the last two dimensions."""
    height, width = (kernel_size, kernel_size) if isinstance(kernel_size, int) else kernel_size
    out = avg_pool2d(input ** norm_type, kernel_size, () if stride is None else stride, 0, ceil_mode)
    return (out.sign() * relu(out.abs()) * (height * width)) ** (1.0 / norm_type)


# ---- pictures ----

def _pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The windows of [N, C, H, W] as columns: [N, C * kernel elements, windows]."""
    return _C.im2col(input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """The sum of columns at their windows: the transpose of unfold()."""
    return _C.col2im(input, _pair(output_size), _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


def pixel_shuffle(input, upscale_factor):
    """[*, C r r, H, W] to [*, C, H r, W r]."""
    *batch, c, h, w = input.shape
    r = upscale_factor
    if r < 1 or c % (r * r):
        raise ValueError(f'pixel_shuffle: {c} channels are no multiple of {r} * {r}')
    out = input.reshape([-1, c // (r * r), r, r, h, w]).permute(0, 1, 4, 2, 5, 3)
    return out.reshape(batch + [c // (r * r), h * r, w * r])


def pixel_unshuffle(input, downscale_factor):
    """[*, C, H r, W r] to [*, C r r, H, W]."""
    *batch, c, h, w = input.shape
    r = downscale_factor
    if r < 1 or h % r or w % r:
        raise ValueError(f'pixel_unshuffle: {h} x {w} is no multiple of {r}')
    out = input.reshape([-1, c, h // r, r, w // r, r]).permute(0, 1, 3, 5, 2, 4)
    return out.reshape(batch + [c * r * r, h // r, w // r])


def channel_shuffle(input, groups):
    """[N, C, *]: channels of the groups alternate."""
    n, c, *rest = input.shape
    if groups < 1 or c % groups:
        raise ValueError(f'channel_shuffle: {c} channels are no multiple of {groups} groups')
    return input.reshape([n, groups, c // groups] + rest).transpose(1, 2).reshape(input.shape)


_SAMPLING = {'bilinear': 0, 'nearest': 1, 'bicubic': 2}
_BORDER = {'zeros': 0, 'border': 1, 'reflection': 2}


def grid_sample(input, grid, mode='bilinear', padding_mode='zeros', align_corners=None):
    """Values of [N, C, H, W] at the positions grid [N, h, w, 2] between -1 and 1."""
    if mode not in _SAMPLING or padding_mode not in _BORDER:
        raise ValueError(f'grid_sample: mode {mode!r} or padding_mode {padding_mode!r} does not exist')
    return _C.grid_sampler_2d(input, grid, _SAMPLING[mode], _BORDER[padding_mode], bool(align_corners))


_LINEAR = {'linear': (3, 'upsample_linear1d'), 'bilinear': (4, 'upsample_bilinear2d'),
           'bicubic': (4, 'upsample_bicubic2d'),
           'trilinear': (5, 'upsample_trilinear3d')}


def interpolate(input, size=None, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None,
                antialias=False):
    """[N, C, *] with other sizes: nearest, nearest-exact, linear, bilinear, bicubic, trilinear or area."""
    n = input.ndim - 2
    if (size is None) == (scale_factor is None):
        raise ValueError('interpolate: either size or scale_factor is given')
    if antialias:
        raise NotImplementedError('interpolate: antialias is not supported')
    if n not in (1, 2, 3):
        raise NotImplementedError(f'interpolate: an input has 3 to 5 dimensions, got {input.ndim}')
    if size is not None:
        size = [size] * n if isinstance(size, int) else list(size)
    else:
        scale_factor = [float(scale_factor)] * n if isinstance(scale_factor,
                              (int, float)) else [float(s) for s in scale_factor]
    if len(size or scale_factor) != n:
        raise ValueError(f'interpolate: the input has {n} spatial dimensions, got {size or scale_factor}')
    if scale_factor is not None and (recompute_scale_factor or mode == 'area'):
        size, scale_factor = [math.floor(d * s) for d, s in zip(input.shape[2:], scale_factor)], None
    if mode == 'area':
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[n - 1](input, size)
    if mode in ('nearest', 'nearest-exact'):
        name = 'upsample_nearest' if mode == 'nearest' else '_upsample_nearest_exact'
        return getattr(_C, f'{name}{n}d')(input, size, scale_factor)
    ndim, name = _LINEAR.get(mode, (0, None))
    if ndim != input.ndim:
        raise NotImplementedError(f'interpolate: mode {mode!r} with an input of {input.ndim} dimensions')
    return getattr(_C, name)(input, size, bool(align_corners), scale_factor)


def upsample(input, size=None, scale_factor=None, mode='nearest', align_corners=None):
    """interpolate()"""
    return interpolate(input, size, scale_factor, mode, align_corners)


def bilinear(input1, input2, weight, bias=None):
    """x1 W x2 for each of the matrices weight [out, in1, in2]."""
    out = _C.einsum('...i,oij,...j->...o', [input1, weight, input2])
    return out if bias is None else out + bias


from devtensor.nn._losses import *  # noqa: E402,F401,F403
from devtensor.nn._attention import multi_head_attention_forward  # noqa: E402,F401
