# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Further names of PyTorch: second names of operators, and functions that are composed of operators."""
import types

from devtensor import _C
from devtensor import special as _special
from devtensor._C import Tensor

# Second name: operator. Methods and in-place methods have them, too.
_ALIASES = {
    'absolute': 'abs', 'arccos': 'acos', 'arccosh': 'acosh', 'arcsin': 'asin', 'arcsinh': 'asinh', 'arctan': 'atan',
    'arctan2': 'atan2', 'arctanh': 'atanh', 'clip': 'clamp', 'conj': 'conj_physical', 'divide': 'div', 'fix': 'trunc',
    'greater': 'gt', 'greater_equal': 'ge', 'less': 'lt', 'less_equal': 'le', 'multiply': 'mul', 'negative': 'neg',
    'not_equal': 'ne', 'subtract': 'sub',
}
_FUNCTIONS = ['broadcast_shapes', 'complex', 'corrcoef', 'cov', 'deg2rad', 'dist', 'equal', 'finfo',
              'get_default_dtype', 'iinfo', 'is_complex', 'is_floating_point', 'is_tensor', 'logit', 'nanmean',
              'numel', 'polar', 'positive', 'rad2deg', 'sinc', 'trapezoid', 'unique']
# Those that are methods, too.
_METHODS = ['corrcoef', 'cov', 'deg2rad', 'dist', 'equal', 'logit', 'nanmean', 'positive', 'rad2deg', 'sinc',
            'unique']
__all__ = [*_ALIASES, *_FUNCTIONS]

logit, sinc = _special.logit, _special.sinc


# ---- questions ----

def is_tensor(obj):
    """True for a tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input):
    """True if the dtype of a tensor is one of floats; false for complex numbers."""
    return input.is_floating_point()


def is_complex(input):
    """True if the dtype of a tensor is complex."""
    return input.is_complex()


def numel(input):
    """The number of elements."""
    return input.numel()


def equal(input, other):
    """True if two tensors have the same sizes and elements."""
    return input.shape == other.shape and bool(_C.eq(input, other).all())


def get_default_dtype():
    """The dtype of Python's floats: float32."""
    return _C.float32


def broadcast_shapes(*shapes):
    """The sizes of the tensor that operators make of tensors of these sizes. ValueError if there are none."""
    number = _C.tensor(0)
    views = [_C.broadcast_to(number, (s,) if isinstance(s, int) else tuple(s)) for s in shapes]
    return _C.broadcast_tensors(views)[0].shape if views else ()


# ---- limits of dtypes ----

# Bits of the mantissa and the largest exponent; e4m3fn has no infinity, and its largest mantissa is one less.
_FLOATS = {_C.float16: (10, 15), _C.bfloat16: (7, 127), _C.float32: (23, 127), _C.float64: (52, 1023),
           _C.float8_e4m3fn: (3, 8), _C.float8_e5m2: (2, 15)}
_REAL = {_C.complex64: _C.float32, _C.complex128: _C.float64}
_INTEGERS = {_C.uint8, _C.int8, _C.int16, _C.int32, _C.int64, _C.uint16, _C.uint32, _C.uint64}


class finfo(types.SimpleNamespace):
    """Limits of floats: bits, eps, max, min, tiny (also smallest_normal), resolution, dtype."""

    def __init__(self, dtype=_C.float32):
        dtype = _C.dtype(dtype)
        real = _REAL.get(dtype, dtype)
        if real not in _FLOATS:
            raise TypeError(f'finfo: {dtype.name} is no dtype of floats')
        mantissa, exponent = _FLOATS[real]
        e4m3fn = real is _C.float8_e4m3fn
        largest = (2.0 - 2.0 ** -mantissa * (2 if e4m3fn else 1)) * 2.0 ** exponent
        tiny = 2.0 ** (-6 if e4m3fn else 1 - exponent)
        digits = int(mantissa * 0.30103)
        super().__init__(bits=real.itemsize * 8, eps=2.0 ** -mantissa, max=largest, min=-largest, tiny=tiny,
                         smallest_normal=tiny, resolution=10.0 ** -digits, dtype=real.name)


class iinfo(types.SimpleNamespace):
    """Limits of integers: bits, max, min, dtype."""

    def __init__(self, dtype):
        dtype = _C.dtype(dtype)
        if dtype not in _INTEGERS:
            raise TypeError(f'iinfo: {dtype.name} is no dtype of integers')
        bits, unsigned = dtype.itemsize * 8, dtype.name.startswith('u')
        super().__init__(bits=bits, max=2 ** (bits - (not unsigned)) - 1, min=0 if unsigned else -2 ** (bits - 1),
                         dtype=dtype.name)


# ---- functions ----

def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different elements, or with dim the different slices, in ascending order. A tuple with the places of
    input's elements in the result, and the number of each, where they are asked for."""
    if dim is None:
        values, inverse, counts = _C._unique2(input, sorted, return_inverse, return_counts)
    else:
        values, inverse, counts = _C.unique_dim(input, dim, sorted, return_inverse, return_counts)
    result = (values,) + (inverse,) * bool(return_inverse) + (counts,) * bool(return_counts)
    return result if len(result) > 1 else values


def complex(real, imag):
    """Complex numbers of their parts, which are of one dtype of floats."""
    if real.dtype is not imag.dtype:
        raise TypeError(f'complex: parts of {real.dtype.name} and {imag.dtype.name}')
    return _C.view_as_complex(_C.stack(_C.broadcast_tensors([real, imag]), -1))


def polar(abs, angle):
    """Complex numbers of absolute values and angles."""
    return complex(abs * angle.cos(), abs * angle.sin())


def positive(input):
    """The tensor itself. TypeError for bool."""
    if input.dtype is _C.bool:
        raise TypeError('positive: bool has no sign')
    return input


def deg2rad(input):
    """Radians of degrees."""
    return input * 0.017453292519943295


def rad2deg(input):
    """Degrees of radians."""
    return input * 57.29577951308232


def dist(input, other, p=2):
    """The p-norm of the difference."""
    return _C.norm(input - other, p)


def nanmean(input, dim=None, keepdim=False, *, dtype=None):
    """The mean of the elements that are not nan."""
    return input.nansum(dim, keepdim, dtype=dtype) / (~input.isnan()).sum(dim, keepdim)


def _floats(input):
    """input, or its elements as float32 if they are integers or bool."""
    return input if input.is_floating_point() or input.is_complex() else input.to(_C.float32)


def _check_weights(name, weights, n):
    """ValueError if these are not weights of n columns."""
    if weights.dim() > 1 or weights.numel() != n:
        raise ValueError(f'cov: {name} of shape {list(weights.shape)} for {n} columns')
    if (weights < 0).any():
        raise ValueError(f'cov: {name} has a negative number')
    if n and not weights.any():
        raise ValueError(f'cov: {name} is zero')


def cov(input, *, correction=1, fweights=None, aweights=None):
    """The covariance of variables, rows of input, over its columns. fweights are counts of the columns, aweights
    their importance. ValueError for weights that are negative or all zero."""
    if input.dim() > 2:
        raise ValueError(f'cov: {input.dim()} dimensions, at most 2')
    x = _floats(input if input.dim() == 2 else input.reshape(1, -1))
    n = x.shape[1]
    weights = None
    for name, w in ('fweights', fweights), ('aweights', aweights):
        if w is not None:
            _check_weights(name, w, n)
            weights = w if weights is None else weights * w
    if weights is None:
        divisor = n - correction
        x = x - x.mean(1, True) if n else x
        product = x @ x.conj().t()
    else:
        total = weights.sum()
        divisor = total - correction
        if aweights is not None and correction:
            divisor = total - correction * (weights * aweights).sum() / total
        x = x - (x * weights).sum(1, True) / total
        product = (x * weights) @ x.conj().t()
        divisor = divisor.clamp(min=0)
    return (product / (max(divisor, 0) if weights is None else divisor)).squeeze()


def corrcoef(input):
    """The coefficients of correlation of variables, rows of input."""
    c = cov(input)
    if c.dim() == 0:
        return c / c
    deviation = (c.diag().real if c.is_complex() else c.diag()).sqrt()
    c = c / deviation.unsqueeze(1) / deviation
    # Rounded values may be above 1.
    return complex(c.real.clamp(-1, 1), c.imag.clamp(-1, 1)) if c.is_complex() else c.clamp(-1, 1)


def trapezoid(y, x=None, *, dx=1, dim=-1):
    """The integral along a dimension by trapezoids: x are the places of y's values, or dx their distance."""
    if not -y.dim() <= dim < y.dim():
        raise IndexError(f'trapezoid: dimension {dim} of {y.dim()}')
    if y.dtype is _C.bool:
        raise TypeError('trapezoid: bool has no integral')
    y, n = _floats(y), y.shape[dim]
    if x is not None:
        at = -1 if x.dim() == 1 else dim
        if not -x.dim() <= at < x.dim() or x.shape[at] != n:
            raise ValueError(f'trapezoid: places of shape {list(x.shape)} for {n} values')
    if n < 2:
        return y.narrow(dim, 0, 0).sum(dim)
    low, high = y.narrow(dim, 0, n - 1), y.narrow(dim, 1, n - 1)
    if x is None:
        return (low + high).sum(dim) * (dx / 2)
    width = x.diff(dim=at)
    if x.dim() == 1:
        width = width.reshape([-1 if i == dim % y.dim() else 1 for i in range(y.dim())])
    return ((low + high) * width).sum(dim) / 2


def _add_names():
    for name, first in _ALIASES.items():
        globals()[name] = getattr(_C, first)
        for suffix in '', '_':
            if hasattr(Tensor, first + suffix):
                setattr(Tensor, name + suffix, getattr(Tensor, first + suffix))
    for name in _METHODS:
        setattr(Tensor, name, globals()[name])


_add_names()
