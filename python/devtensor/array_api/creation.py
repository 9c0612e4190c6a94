# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Creation, data type and inspection functions."""
from devtensor import _C, _names

from .core import (CPU, DEFAULT, DTYPES, KINDS, RANK, as_array, asarray, astype, call, dtype_of, kind_of, on_cpu,
                   promote, result_type, shape_of)

__all__ = ['arange', 'asarray', 'empty', 'empty_like', 'eye', 'from_dlpack', 'full', 'full_like', 'linspace',
           'meshgrid', 'ones', 'ones_like', 'tril', 'triu', 'zeros', 'zeros_like', 'astype', 'can_cast', 'finfo',
           'iinfo', 'isdtype', 'result_type', '__array_namespace_info__']
FLOAT = DEFAULT[float]


def filled(op):
    def fn(shape, *, dtype=None, device=None):
        on_cpu(device)
        return call(op, shape_of(shape), dtype=dtype or FLOAT)

    def like(x, /, *, dtype=None, device=None):
        on_cpu(device)
        return call(op + '_like', x, dtype=dtype)
    return fn, like


empty, empty_like = filled('empty')
ones, ones_like = filled('ones')
zeros, zeros_like = filled('zeros')


def full(shape, fill_value, *, dtype=None, device=None):
    value = asarray(fill_value, dtype=dtype)
    return call('fill_', empty(shape, dtype=value.dtype, device=device), value)


def full_like(x, /, fill_value, *, dtype=None, device=None):
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device)


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    on_cpu(device)
    start, stop = (0, start) if stop is None else (start, stop)
    dtype = dtype or DEFAULT[float if float in map(type, (start, stop, step)) else int]
    if (stop - start) * (1 if step > 0 else -1) <= 0:  # an error in the library, as in PyTorch
        return empty(0, dtype=dtype)
    return call('arange', start, stop, step, dtype=dtype)


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    on_cpu(device)
    dtype = dtype or DEFAULT[complex if complex in (type(start), type(stop)) else float]
    if endpoint:
        return call('linspace', start, stop, num, dtype=dtype)
    return call('linspace', start, stop, num + 1, dtype=dtype)[:-1]


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    n_cols = n_rows if n_cols is None else n_cols
    x = zeros((n_rows, n_cols), dtype=dtype, device=device)
    if -n_rows < k < n_cols:
        call('fill_', call('diagonal', x, k), 1)
    return x


def meshgrid(*arrays, indexing='xy'):
    return call('meshgrid', arrays, indexing=indexing) if arrays else ()


def tril(x, /, *, k=0):
    return call('tril', x, k)


def triu(x, /, *, k=0):
    return call('triu', x, k)


def from_dlpack(x, /, *, device=None, copy=None):
    on_cpu(device)
    return as_array(_C.from_dlpack(x, copy=copy))


# ---- data types ---------------------------------------------------------------------------------


def can_cast(from_, to, /):
    try:
        return promote(dtype_of(from_), to) is to
    except TypeError:  # no data type holds both
        return False


def isdtype(dtype, kind):
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    return dtype is kind if isinstance(kind, _C.dtype) else kind_of(dtype) in KINDS[kind]


class finfo(_names.finfo):
    """The dtype is a dtype, not its name."""

    def __init__(self, type, /):
        dtype = dtype_of(type)
        if RANK[kind_of(dtype)] < 2:
            raise TypeError(f'finfo of {dtype}')
        super().__init__(dtype)
        self.dtype = DTYPES[self.dtype]


class iinfo(_names.iinfo):
    """The dtype is a dtype, not its name."""

    def __init__(self, type, /):
        dtype = dtype_of(type)
        if RANK[kind_of(dtype)] != 1:
            raise TypeError(f'iinfo of {dtype}')
        super().__init__(dtype)
        self.dtype = dtype


class __array_namespace_info__:
    def capabilities(self):
        return {'boolean indexing': True, 'data-dependent shapes': True, 'max dimensions': 16}

    def default_device(self):
        return CPU

    def default_dtypes(self, *, device=None):
        on_cpu(device)
        return {'real floating': DEFAULT[float], 'complex floating': DEFAULT[complex], 'integral': DEFAULT[int],
                'indexing': DTYPES['int64']}

    def dtypes(self, *, device=None, kind=None):
        on_cpu(device)
        return {n: d for n, d in DTYPES.items() if kind is None or isdtype(d, kind)}

    def devices(self):
        return (CPU,)
