# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Activations, dropout and pooling as modules: each calls the function of its name in devtensor.nn.functional."""
from devtensor import _C
from devtensor.nn import functional as F
from devtensor.nn import init
from devtensor.nn._options import options_given
from devtensor.nn.module import Module
from devtensor.nn.parameter import Parameter

_REQUIRED = object()


def _function_module(name, function, options, doc=None):
    """A module that calls function(input, *options); options: names and defaults."""
    names = list(options)

    def __init__(self, *args, **kwargs):
        Module.__init__(self)
        values = options_given(name, options, args, kwargs)
        for key, default in options.items():
            value = values.get(key, default)
            if value is _REQUIRED:
                raise TypeError(f'{name}: an argument is missing: {key}')
            self.__dict__[key] = value

    def forward(self, input):
        own = self.__dict__
        return function(input, *[own[key] for key in names])

    def extra_repr(self):
        own = self.__dict__
        return ', '.join(f'{key}={own[key]}' for key in names if options[key] is _REQUIRED or own[key] != options[key])

    return type(name, (Module,), {'__init__': __init__, 'forward': forward, 'extra_repr': extra_repr,
                                  '__module__': __name__, '__doc__': doc or function.__doc__})


ReLU = _function_module('ReLU', F.relu, {'inplace': False})
ReLU6 = _function_module('ReLU6', F.relu6, {'inplace': False})
SELU = _function_module('SELU', F.selu, {'inplace': False})
SiLU = _function_module('SiLU', F.silu, {'inplace': False})
Mish = _function_module('Mish', F.mish, {'inplace': False})
Hardswish = _function_module('Hardswish', F.hardswish, {'inplace': False})
Hardsigmoid = _function_module('Hardsigmoid', F.hardsigmoid, {'inplace': False})
Sigmoid = _function_module('Sigmoid', F.sigmoid, {}, '1 / (1 + exp(-x))')
Tanh = _function_module('Tanh', F.tanh, {}, 'tanh(x)')
LogSigmoid = _function_module('LogSigmoid', F.logsigmoid, {}, 'log(sigmoid(x))')
Softsign = _function_module('Softsign', F.softsign, {})
Tanhshrink = _function_module('Tanhshrink', F.tanhshrink, {})
ELU = _function_module('ELU', F.elu, {'alpha': 1.0, 'inplace': False})
CELU = _function_module('CELU', F.celu, {'alpha': 1.0, 'inplace': False})
LeakyReLU = _function_module('LeakyReLU', F.leaky_relu, {'negative_slope': 0.01, 'inplace': False})
Hardtanh = _function_module('Hardtanh', F.hardtanh, {'min_val': -1.0, 'max_val': 1.0, 'inplace': False})
Threshold = _function_module('Threshold', F.threshold, {'threshold': _REQUIRED, 'value': _REQUIRED, 'inplace': False})
GELU = _function_module('GELU', F.gelu, {'approximate': 'none'})
GLU = _function_module('GLU', F.glu, {'dim': -1})
Softplus = _function_module('Softplus', F.softplus, {'beta': 1.0, 'threshold': 20.0})
Hardshrink = _function_module('Hardshrink', F.hardshrink, {'lambd': 0.5})
Softshrink = _function_module('Softshrink', F.softshrink, {'lambd': 0.5})
Softmax = _function_module('Softmax', F.softmax, {'dim': None})
LogSoftmax = _function_module('LogSoftmax', F.log_softmax, {'dim': None})
Softmin = _function_module('Softmin', F.softmin, {'dim': None})


class Softmax2d(Module):
    """softmax() over the channels of [N, C, H, W] or [C, H, W]."""

    def forward(self, input):
        if input.ndim not in (3, 4):
            raise ValueError(f'Softmax2d: an input has 3 or 4 dimensions, got {input.ndim}')
        return _C.softmax(input, -3)


class PReLU(Module):
    """x, or weight * x below 0; weight [num_parameters]."""

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(_C.empty([num_parameters], dtype=dtype, device=device))
        self.reset_parameters()

    def reset_parameters(self):
        init.constant_(self.weight, self.init)

    def forward(self, input):
        return _C.prelu(input, self.weight)

    def extra_repr(self):
        return f'num_parameters={self.num_parameters}'


# ---- dropout ----

class _Dropout(Module):
    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f'{type(self).__name__}: p is {p}, which is no probability')
        self.p, self.inplace = p, inplace

    def forward(self, input):
        return self._drop(input, self.p, self.training, self.inplace)

    def extra_repr(self):
        return f'p={self.p}, inplace={self.inplace}'


class Dropout(_Dropout):
    """Zeros with probability p in training, the other elements divided by 1 - p."""
    _drop = staticmethod(F.dropout)


class Dropout1d(_Dropout):
    """Dropout of whole channels of [N, C, L]."""
    _drop = staticmethod(F.dropout1d)


class Dropout2d(_Dropout):
    """Dropout of whole channels of [N, C, H, W]."""
    _drop = staticmethod(F.dropout2d)


class Dropout3d(_Dropout):
    """Dropout of whole channels of [N, C, D, H, W]."""
    _drop = staticmethod(F.dropout3d)


# ---- pooling ----

def _max_pool(name, function):
    return _function_module(name, function, {'kernel_size': _REQUIRED, 'stride': None, 'padding': 0, 'dilation': 1,
                                             'return_indices': False, 'ceil_mode': False})


def _in_order(function):
    """The modules have return_indices before ceil_mode, the functions after it."""
    def call(input, kernel_size, stride, padding, dilation, return_indices, ceil_mode):
        return function(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)
    call.__doc__ = function.__doc__
    return call


MaxPool1d = _max_pool('MaxPool1d', _in_order(F.max_pool1d))
MaxPool2d = _max_pool('MaxPool2d', _in_order(F.max_pool2d))
MaxPool3d = _max_pool('MaxPool3d', _in_order(F.max_pool3d))


def _avg_pool(name, function, divisor):
    def call(input, kernel_size, stride, *others):
        return function(input, kernel_size, () if stride is None else stride, *others)
    options = {'kernel_size': _REQUIRED, 'stride': None, 'padding': 0, 'ceil_mode': False, 'count_include_pad': True}
    return _function_module(name, call, {**options, **divisor}, 'The mean of each window.')


AvgPool1d = _avg_pool('AvgPool1d', F.avg_pool1d, {})
AvgPool2d = _avg_pool('AvgPool2d', F.avg_pool2d, {'divisor_override': None})
AvgPool3d = _avg_pool('AvgPool3d', F.avg_pool3d, {'divisor_override': None})

_LP = {'norm_type': _REQUIRED, 'kernel_size': _REQUIRED, 'stride': None, 'ceil_mode': False}
LPPool1d = _function_module('LPPool1d', F.lp_pool1d, _LP)
LPPool2d = _function_module('LPPool2d', F.lp_pool2d, _LP)


def _adaptive(name, n, maximum):
    """A size of None is that of the input."""
    plain = getattr(F, f'adaptive_{"max" if maximum else "avg"}_pool{n}d')

    def call(input, output_size, *others):
        if not isinstance(output_size, int):
            output_size = [input.shape[i - n] if s is None else s for i, s in enumerate(output_size)]
        return plain(input, [output_size] * n if isinstance(output_size, int) else output_size, *others)
    options = {'output_size': _REQUIRED}
    return _function_module(name, call, {**options, 'return_indices': False} if maximum else options,
                            f'Windows such that the last {n} dimensions get output_size.')


AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d = (_adaptive(f'AdaptiveAvgPool{n}d', n, False) for n in (1, 2,
                                                                                                                 3))
AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d = (_adaptive(f'AdaptiveMaxPool{n}d', n, True) for n in (1, 2,
                                                                                                                3))


# ---- padding ----

class _Pad(Module):
    def __init__(self, padding, value=None):
        super().__init__()
        n = self.dims
        self.padding = (padding,) * (2 * n) if isinstance(padding, int) else tuple(padding)
        if len(self.padding) != 2 * n:
            raise ValueError(f'{type(self).__name__}: padding has {2 * n} numbers, got {self.padding}')
        self.value = value

    def forward(self, input):
        return _C.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self):
        return f'{self.padding}' if self.value is None else f'padding={self.padding}, value={self.value}'


_PADS = {}
for _n in (1, 2, 3):
    for _name, _mode in ('Constant', 'constant'), ('Zero', 'constant'), ('Reflection', 'reflect'), \
            ('Replication', 'replicate'), ('Circular', 'circular'):
        _PADS[f'{_name}Pad{_n}d'] = type(f'{_name}Pad{_n}d', (_Pad,), {
            'dims': _n, 'mode': _mode, '__module__': __name__,
            '__doc__': f'pad() of the last {_n} dimensions, {_mode}.'})
globals().update(_PADS)

__all__ = ['AdaptiveAvgPool1d', 'AdaptiveAvgPool2d', 'AdaptiveAvgPool3d', 'AdaptiveMaxPool1d', 'AdaptiveMaxPool2d',
           'AdaptiveMaxPool3d', 'AvgPool1d', 'AvgPool2d', 'AvgPool3d', 'CELU', 'CircularPad1d', 'CircularPad2d',
           'CircularPad3d', 'ConstantPad1d', 'ConstantPad2d', 'ConstantPad3d', 'Dropout', 'Dropout1d', 'Dropout2d',
           'Dropout3d', 'ELU', 'GELU', 'GLU', 'Hardshrink', 'Hardsigmoid', 'Hardswish', 'Hardtanh', 'LPPool1d',
           'LPPool2d', 'LeakyReLU', 'LogSigmoid', 'LogSoftmax', 'MaxPool1d', 'MaxPool2d', 'MaxPool3d', 'Mish', 'PReLU',
           'ReLU', 'ReLU6', 'ReflectionPad1d', 'ReflectionPad2d', 'ReflectionPad3d', 'ReplicationPad1d',
           'ReplicationPad2d', 'ReplicationPad3d', 'SELU', 'SiLU', 'Sigmoid', 'Softmax', 'Softmax2d', 'Softmin',
           'Softplus', 'Softshrink', 'Softsign', 'Tanh', 'Tanhshrink', 'Threshold', 'ZeroPad1d', 'ZeroPad2d',
           'ZeroPad3d']
