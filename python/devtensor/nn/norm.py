# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Normalization."""
from devtensor import _C
from devtensor.nn import functional as F
from devtensor.nn import init
from devtensor.nn.module import Module
from devtensor.nn.parameter import Parameter

__all__ = ['BatchNorm1d', 'BatchNorm2d', 'BatchNorm3d', 'InstanceNorm1d', 'InstanceNorm2d', 'InstanceNorm3d',
           'LayerNorm',
           'GroupNorm', 'RMSNorm', 'LocalResponseNorm']


class _ChannelNorm(Module):
    """weight and bias [C], and running statistics."""

    def __init__(self, num_features, eps, momentum, affine, track_running_stats, device, dtype):
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        options = {'device': device, 'dtype': dtype}
        for name in 'weight', 'bias':
            self.register_parameter(name, Parameter(_C.empty([num_features], **options)) if affine else None)
        for name in 'running_mean', 'running_var':
            self.register_buffer(name, _C.empty([num_features], **options) if track_running_stats else None)
        self.register_buffer(
    'num_batches_tracked',
    _C.zeros(
        [],
        dtype=_C.int64,
         device=device) if track_running_stats else None)
        self.reset_parameters()

    def reset_running_stats(self):
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            init.zeros_(self.bias)

    def _check(self, input):
        if input.ndim not in self.dims:
            raise ValueError(
                f'{type(self).__name__}: an input has {" or ".join(map(str, self.dims))} dimensions, got {input.ndim}')

    def extra_repr(self):
        return (f'{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, '
                f'track_running_stats={self.track_running_stats}')


class _BatchNorm(_ChannelNorm):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True,
                 track_running_stats=True, device=None, dtype=None):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)

    def forward(self, input):
        self._check(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / self.num_batches_tracked.item()
        use_batch = self.training or self.running_mean is None
        return F.batch_norm(input, self.running_mean, self.running_var,
                            self.weight, self.bias, use_batch, factor, self.eps)


class BatchNorm1d(_BatchNorm):
    """[N, C] or [N, C, L]"""
    dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """[N, C, H, W]"""
    dims = (4,)


class BatchNorm3d(_BatchNorm):
    """[N, C, D, H, W]"""
    dims = (5,)


class _InstanceNorm(_ChannelNorm):
    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=False,
                 track_running_stats=False, device=None, dtype=None):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)

    def forward(self, input):
        self._check(input)
        single = input.ndim == self.dims[0]
        input = input.unsqueeze(0) if single else input
        out = F.instance_norm(input, self.running_mean, self.running_var, self.weight, self.bias,
                              self.training or not self.track_running_stats, self.momentum or 0.0, self.eps)
        return out.squeeze(0) if single else out


class InstanceNorm1d(_InstanceNorm):
    """[N, C, L] or [C, L]"""
    dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """[N, C, H, W] or [C, H, W]"""
    dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """[N, C, D, H, W] or [C, D, H, W]"""
    dims = (4, 5)


def _shape(normalized_shape):
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


class LayerNorm(Module):
    """Normalization over the last dimensions; weight and bias have their shape."""

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape, self.eps, self.elementwise_affine = _shape(normalized_shape), eps, elementwise_affine
        options = {'device': device, 'dtype': dtype}
        self.register_parameter(
    'weight',
    Parameter(
        _C.empty(
            self.normalized_shape,
             **options)) if elementwise_affine else None)
        self.register_parameter('bias', Parameter(_C.empty(self.normalized_shape, **options))
                                if elementwise_affine and bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input):
        return _C.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f'{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}'


class RMSNorm(Module):
    """Division by the root of the mean square over the last dimensions; weight has their shape."""

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape, self.eps, self.elementwise_affine = _shape(normalized_shape), eps, elementwise_affine
        weight = Parameter(_C.ones(self.normalized_shape, dtype=dtype, device=device)) if elementwise_affine else None
        self.register_parameter('weight', weight)

    def reset_parameters(self):
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input):
        return _C.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f'{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}'


class GroupNorm(Module):
    """Normalization of groups of channels; weight and bias [C]."""

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None):
        super().__init__()
        if num_groups <= 0 or num_channels % num_groups:
            raise ValueError(f'{num_channels} channels are no multiple of {num_groups} groups')
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        for name in 'weight', 'bias':
            value = Parameter(_C.empty([num_channels], dtype=dtype, device=device)) if affine else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self):
        if self.affine:
            init.ones_(self.weight)
            init.zeros_(self.bias)

    def forward(self, input):
        return _C.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f'{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}'


class LocalResponseNorm(Module):
    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input):
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self):
        return f'{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}'
