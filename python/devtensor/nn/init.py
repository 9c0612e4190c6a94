# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Initial values of parameters: each function fills a tensor in place, unrecorded, and returns it.

generator: where random numbers come from, None is the default generator.
"""
import math

from devtensor import _C

__all__ = ['calculate_gain', 'constant_', 'dirac_', 'eye_', 'kaiming_normal_', 'kaiming_uniform_', 'normal_', 'ones_',
           'orthogonal_', 'sparse_', 'trunc_normal_', 'uniform_', 'xavier_normal_', 'xavier_uniform_', 'zeros_']

_GAINS = {'tanh': 5.0 / 3, 'relu': math.sqrt(2.0), 'selu': 0.75}
_LINEAR = {'linear', 'sigmoid'} | {f'conv{t}{n}d' for t in ('', '_transpose') for n in (1, 2, 3)}


def calculate_gain(nonlinearity, param=None):
    """The gain that keeps the variance of activations; param: the slope of leaky_relu."""
    if nonlinearity in _LINEAR:
        return 1.0
    if nonlinearity == 'leaky_relu':
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f'calculate_gain: the slope is a number, got {slope!r}')
        return math.sqrt(2.0 / (1 + slope ** 2))
    if nonlinearity not in _GAINS:
        raise ValueError(f'calculate_gain: {nonlinearity!r} is not known')
    return _GAINS[nonlinearity]


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    tensor.detach().uniform_(a, b, generator=generator)
    return tensor


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    tensor.detach().normal_(mean, std, generator=generator)
    return tensor


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Normal numbers within a and b."""
    def below(x):
        return (1 + math.erf(x / math.sqrt(2))) / 2
    data = tensor.detach()
    low, high = below((a - mean) / std), below((b - mean) / std)
    data.uniform_(2 * low - 1, 2 * high - 1, generator=generator)
    data.erfinv_().mul_(std * math.sqrt(2)).add_(mean).clamp_(a, b)
    return tensor


def constant_(tensor, val):
    tensor.detach().fill_(val)
    return tensor


def ones_(tensor):
    return constant_(tensor, 1.0)


def zeros_(tensor):
    return constant_(tensor, 0.0)


def eye_(tensor):
    """The identity matrix."""
    if tensor.ndim != 2:
        raise ValueError(f'eye_: needs a matrix, got {tensor.ndim} dimensions')
    tensor.detach().copy_(_C.eye(*tensor.shape, dtype=tensor.dtype))
    return tensor


def dirac_(tensor, groups=1):
    """Kernels of a convolution that returns its input, as far as it has as many channels."""
    if tensor.ndim not in (3, 4, 5) or tensor.shape[0] % groups:
        raise ValueError(f'dirac_: needs a kernel of 3 to 5 dimensions and a multiple of {groups} channels')
    data, size = tensor.detach().zero_(), tensor.shape[0] // groups
    centre = tuple(n // 2 for n in tensor.shape[2:])
    for g in range(groups):
        for d in range(min(size, tensor.shape[1])):
            data[(g * size + d, d) + centre] = 1
    return tensor


def _fans(tensor):
    if tensor.ndim < 2:
        raise ValueError(f'the fan of a tensor with {tensor.ndim} dimensions is not defined')
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Uniform with the variance gain ** 2 * 2 / (fan_in + fan_out)."""
    bound = gain * math.sqrt(6.0 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Normal with the variance gain ** 2 * 2 / (fan_in + fan_out)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))), generator)


def _kaiming_std(tensor, a, mode, nonlinearity):
    if mode not in ('fan_in', 'fan_out'):
        raise ValueError(f"mode is 'fan_in' or 'fan_out', not {mode!r}")
    fan = _fans(tensor)[mode == 'fan_out']
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(tensor, a=0, mode='fan_in', nonlinearity='leaky_relu', generator=None):
    """Uniform with the variance gain ** 2 / fan."""
    if 0 in tensor.shape:
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode='fan_in', nonlinearity='leaky_relu', generator=None):
    """Normal with the variance gain ** 2 / fan."""
    if 0 in tensor.shape:
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor, gain=1, generator=None):
    """A matrix, of dimension 0 and all others, with orthogonal rows or columns."""
    if tensor.ndim < 2:
        raise ValueError(f'orthogonal_: needs 2 dimensions, got {tensor.ndim}')
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    if rows * columns == 0:
        return tensor
    flat = _C.empty([max(rows, columns), min(rows, columns)], dtype=tensor.dtype).normal_(generator=generator)
    q, r = _C.linalg_qr(flat)
    q = q * r.diagonal().sgn()
    tensor.detach().copy_((q if rows >= columns else q.t()).reshape(tensor.shape)).mul_(gain)
    return tensor


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """A matrix of normal numbers with this part of zeros in each column."""
    if tensor.ndim != 2:
        raise ValueError(f'sparse_: needs a matrix, got {tensor.ndim} dimensions')
    rows, columns = tensor.shape
    data = tensor.detach().normal_(0, std, generator=generator)
    for column in range(columns):
        zeros = _C.randperm(rows, generator=generator)[:math.ceil(sparsity * rows)]
        data[:, column].index_fill_(0, zeros, 0)
    return tensor
