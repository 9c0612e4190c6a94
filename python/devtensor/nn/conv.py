# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Convolutions: weight [out, in / groups, *kernel], transposed ones [in, out / groups, *kernel], and bias [out]."""
import math

from devtensor import _C
from devtensor.nn import init
from devtensor.nn.module import Module
from devtensor.nn.parameter import Parameter

__all__ = ['Conv1d', 'Conv2d', 'Conv3d', 'ConvTranspose1d', 'ConvTranspose2d', 'ConvTranspose3d']

_PADDING_MODES = {'zeros': 'constant', 'reflect': 'reflect', 'replicate': 'replicate', 'circular': 'circular'}


def _tuple(value, n, name):
    value = (value,) * n if isinstance(value, int) else tuple(value)
    if len(value) != n:
        raise ValueError(f'{name}: {n} numbers are needed, got {value}')
    return value


class _Conv(Module):
    dims, transposed = 0, False

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode,
                 device,
                 dtype, output_padding=0):
        super().__init__()
        if groups <= 0 or in_channels % groups or out_channels % groups:
            raise ValueError(f'{in_channels} and {out_channels} channels are no multiples of {groups} groups')
        if padding_mode not in _PADDING_MODES or (self.transposed and padding_mode != 'zeros'):
            raise ValueError(f'padding_mode {padding_mode!r} does not exist here')
        if isinstance(padding, str) and (padding not in ('valid', 'same') or self.transposed):
            raise ValueError(f"padding is 'valid', 'same' or numbers, not {padding!r}")
        n = self.dims
        self.in_channels, self.out_channels = in_channels, out_channels
        self.groups, self.padding_mode = groups, padding_mode
        self.kernel_size, self.stride = _tuple(kernel_size, n, 'kernel_size'), _tuple(stride, n, 'stride')
        self.padding = padding if isinstance(padding, str) else _tuple(padding, n, 'padding')
        self.dilation, self.output_padding = _tuple(
    dilation, n, 'dilation'), _tuple(
        output_padding, n, 'output_padding')
        if padding == 'same' and any(s != 1 for s in self.stride):
            raise ValueError("padding='same' needs the stride 1")
        channels = (in_channels, out_channels // groups) if self.transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(_C.empty(channels + self.kernel_size, dtype=dtype, device=device))
        self.register_parameter(
    'bias',
    Parameter(
        _C.empty(
            [out_channels],
            dtype=dtype,
             device=device)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan = math.prod(self.weight.shape[1:])
        if self.bias is not None and fan:
            init.uniform_(self.bias, -1 / math.sqrt(fan), 1 / math.sqrt(fan))

    def _around(self):
        """Padding as pad() takes it: the last dimension first."""
        if self.padding == 'valid':
            return [0] * (2 * self.dims)
        if self.padding == 'same':
            total = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
            return [v for t in reversed(total) for v in (t // 2, t - t // 2)]
        return [v for p in reversed(self.padding) for v in (p, p)]

    def forward(self, input):
        if self.padding_mode != 'zeros':
            input = _C.pad(input, self._around(), _PADDING_MODES[self.padding_mode])
            return self._conv(input, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)
        return self._conv(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self):
        text = f'{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}'
        if self.padding != (0,) * self.dims:
            text += f', padding={self.padding}'
        if self.dilation != (1,) * self.dims:
            text += f', dilation={self.dilation}'
        if self.output_padding != (0,) * self.dims:
            text += f', output_padding={self.output_padding}'
        if self.groups != 1:
            text += f', groups={self.groups}'
        if self.bias is None:
            text += ', bias=False'
        return text if self.padding_mode == 'zeros' else text + f', padding_mode={self.padding_mode}'


class _Plain(_Conv):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
                 padding_mode='zeros', device=None, dtype=None):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode,
                         device,
                         dtype)


class Conv1d(_Plain):
    """[N, C, L] or [C, L]"""
    dims, _conv = 1, staticmethod(_C.conv1d)


class Conv2d(_Plain):
    """[N, C, H, W] or [C, H, W]"""
    dims, _conv = 2, staticmethod(_C.conv2d)


class Conv3d(_Plain):
    """[N, C, D, H, W] or [C, D, H, W]"""
    dims, _conv = 3, staticmethod(_C.conv3d)


class _Transposed(_Conv):
    transposed = True

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1,
                 bias=True,
                 dilation=1, padding_mode='zeros', device=None, dtype=None):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode,
                         device,
                         dtype, output_padding)

    def _padding_for(self, input, output_size):
        """The output_padding that gives this size."""
        if output_size is None:
            return self.output_padding
        size = tuple(output_size)[-self.dims:]
        least = [(input.shape[i - self.dims] - 1) * self.stride[i] - 2 * self.padding[i]
                 + self.dilation[i] * (self.kernel_size[i] - 1) + 1 for i in range(self.dims)]
        if len(size) != self.dims or any(not 0 <= s - n < self.stride[i] for i, (s, n) in enumerate(zip(size, least))):
            raise ValueError(f'output_size is {size}, possible are sizes from {least} to less than the stride more')
        return [s - n for s, n in zip(size, least)]

    def forward(self, input, output_size=None):
        return self._conv(input, self.weight, self.bias, self.stride, self.padding,
                          self._padding_for(input, output_size),
                          self.groups, self.dilation)


class ConvTranspose1d(_Transposed):
    """[N, C, L] or [C, L]"""
    dims, _conv = 1, staticmethod(_C.conv_transpose1d)


class ConvTranspose2d(_Transposed):
    """[N, C, H, W] or [C, H, W]"""
    dims, _conv = 2, staticmethod(_C.conv_transpose2d)


class ConvTranspose3d(_Transposed):
    """[N, C, D, H, W] or [C, D, H, W]"""
    dims, _conv = 3, staticmethod(_C.conv_transpose3d)
