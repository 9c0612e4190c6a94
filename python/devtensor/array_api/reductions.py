# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Statistical, searching, sorting, set and utility functions."""
from collections import namedtuple

from .core import DTYPES, astype, axes_of, call, kind_of, together

__all__ = ['cumulative_prod', 'cumulative_sum', 'max', 'mean', 'min', 'prod', 'std', 'sum', 'var', 'argmax', 'argmin',
           'count_nonzero', 'nonzero', 'searchsorted', 'where', 'argsort', 'sort', 'isin', 'unique_all',
           'unique_counts', 'unique_inverse', 'unique_values', 'all', 'any', 'diff', 'take', 'take_along_axis']


def accumulator(x, dtype):
    """The data type of a sum: 64 bits for integers."""
    if dtype is None and kind_of(x.dtype) == 'unsigned integer':
        return DTYPES.get('uint64', DTYPES['int64'])
    return dtype or (DTYPES['int64'] if kind_of(x.dtype) == 'signed integer' else x.dtype)


def reduced(op, x, axis, keepdims, **kwargs):
    """Handles an empty list of dimensions, which the library would take as all dimensions."""
    axes = axes_of(axis, x.ndim)
    if axes or not x.ndim:
        return call(op, x, dim=axes, keepdim=keepdims, **kwargs)
    return call(op, call('unsqueeze', x, 0), dim=[0], **kwargs)


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    return reduced('sum', x, axis, keepdims, dtype=accumulator(x, dtype))


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    dtype = accumulator(x, dtype)
    if axis is None and not keepdims:
        return call('prod', x, dtype=dtype)
    x = astype(x, dtype, copy=False)
    for a in sorted(axes_of(axis, x.ndim), reverse=True):
        x = call('prod', x, a, keepdims, dtype=dtype)
    return x


def max(x, /, *, axis=None, keepdims=False):
    return reduced('amax', x, axis, keepdims)


def min(x, /, *, axis=None, keepdims=False):
    return reduced('amin', x, axis, keepdims)


def mean(x, /, *, axis=None, keepdims=False):
    return reduced('mean', x, axis, keepdims)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    return reduced('var', x, axis, keepdims, correction=correction)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    return reduced('std', x, axis, keepdims, correction=correction)


def all(x, /, *, axis=None, keepdims=False):
    x = astype(x, DTYPES['bool'], copy=False)  # for uint8 the result would be uint8, as in PyTorch
    return call('all', x, axes_of(axis, x.ndim), keepdims)


def any(x, /, *, axis=None, keepdims=False):
    x = astype(x, DTYPES['bool'], copy=False)
    return call('any', x, axes_of(axis, x.ndim), keepdims)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    return reduced('sum', call('ne', x, 0), axis, keepdims)


def cumulative(op, identity):
    def fn(x, /, *, axis=None, dtype=None, include_initial=False):
        if axis is None:
            if x.ndim > 1:
                raise ValueError('axis: needed with several dimensions')
            axis = 0
        result = call(op, x, axis, dtype=accumulator(x, dtype))
        if not include_initial:
            return result
        shape = list(result.shape)
        shape[axis] = 1
        return call('cat', [call('full', shape, identity, dtype=result.dtype), result], axis)
    return fn


cumulative_sum, cumulative_prod = cumulative('cumsum', 0), cumulative('cumprod', 1)


# ---- searching and sorting ----------------------------------------------------------------------


def argmax(x, /, *, axis=None, keepdims=False):
    return call('argmax', x, axis, keepdims)


def argmin(x, /, *, axis=None, keepdims=False):
    return call('argmin', x, axis, keepdims)


def nonzero(x, /):
    if not x.ndim:
        raise ValueError('nonzero: of a number')
    return call('nonzero_numpy', x)


def searchsorted(x1, x2, /, *, side='left', sorter=None):
    return call('searchsorted', *together(x1, x2), side=side, sorter=sorter)


def where(condition, x1, x2, /):
    return call('where', condition, *together(x1, x2))


def sort(x, /, *, axis=-1, descending=False, stable=True):
    return call('sort', x, dim=axis, descending=descending, stable=stable)[0]


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    return call('argsort', x, dim=axis, descending=descending, stable=stable)


def take(x, indices, /, *, axis=None):
    if axis is None and x.ndim != 1:
        raise ValueError('axis: needed with several dimensions')
    at = [None] * ((axis or 0) % x.ndim) + [astype(indices, DTYPES['int64'], copy=False)]
    return call('index', x, at)


def take_along_axis(x, indices, /, *, axis=-1):
    return call('take_along_dim', x, astype(indices, DTYPES['int64'], copy=False), axis)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    return call('diff', x, n, axis, prepend, append)


# ---- sets ---------------------------------------------------------------------------------------

UniqueAll = namedtuple('unique_all', 'values indices inverse_indices counts')
UniqueCounts = namedtuple('unique_counts', 'values counts')
UniqueInverse = namedtuple('unique_inverse', 'values inverse_indices')


def isin(x1, x2, /, *, invert=False):
    return call('isin', *together(x1, x2), invert=invert)


def unique_all(x, /):
    return UniqueAll(*call('unique_all', x))


def unique_counts(x, /):
    return UniqueCounts(*call('_unique2', x, return_counts=True)[::2])


def unique_inverse(x, /):
    return UniqueInverse(*call('_unique2', x, return_inverse=True)[:2])


def unique_values(x, /):
    return call('_unique2', x)[0]
