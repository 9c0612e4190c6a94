# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Manipulation functions."""
from devtensor._names import broadcast_shapes

from .core import DTYPES, asarray, astype, axes_of, call, shape_of, together

__all__ = ['broadcast_arrays', 'broadcast_shapes', 'broadcast_to', 'concat', 'expand_dims', 'flip', 'moveaxis',
           'permute_dims', 'repeat', 'reshape', 'roll', 'squeeze', 'stack', 'tile', 'unstack']


def broadcast_arrays(*arrays):
    return call('broadcast_tensors', arrays)


def broadcast_to(x, /, shape):
    return call('broadcast_to', x, shape_of(shape))


def concat(arrays, /, *, axis=0):
    arrays = together(*arrays)
    if axis is None:
        arrays, axis = [call('reshape', a, [-1]) for a in arrays], 0
    return call('concat', arrays, axis)


def stack(arrays, /, *, axis=0):
    return call('stack', together(*arrays), axis)


def expand_dims(x, /, axis):
    axes = shape_of(axis)
    ndim = x.ndim + len(axes)
    if len({a % ndim for a in axes}) < len(axes):
        raise ValueError(f'expand_dims: {axis} names an axis twice')
    try:
        for a in sorted(a if not -ndim <= a < 0 else a + ndim for a in axes):
            x = call('unsqueeze', x, a)
    except (RuntimeError, ValueError) as e:
        raise IndexError(str(e)) from None
    return x


def squeeze(x, /, axis):
    axes = axes_of(axis, x.ndim)
    if any(x.shape[a] != 1 for a in axes):  # the library, like PyTorch, ignores them
        raise ValueError(f'squeeze: {axis} of shape {x.shape}')
    return call('squeeze', x, axes)


def flip(x, /, *, axis=None):
    return call('flip', x, axes_of(axis, x.ndim))


def moveaxis(x, source, destination, /):
    return call('moveaxis', x, axes_of(source, x.ndim), axes_of(destination, x.ndim))


def permute_dims(x, /, axes):
    return call('permute', x, list(axes))


def repeat(x, repeats, /, *, axis=None):
    if isinstance(repeats, int):
        return call('repeat_interleave', x, repeats, axis)
    repeats = astype(asarray(repeats), DTYPES['int64'], copy=False)
    return call('repeat_interleave', x, repeats, axis)


def reshape(x, /, shape, *, copy=None):
    try:
        return call('reshape' if copy is None else 'view', call('clone', x) if copy else x, shape_of(shape))
    except (RuntimeError, ValueError) as e:
        raise ValueError(str(e)) from None


def roll(x, /, shift, *, axis=None):
    shifts = shape_of(shift)
    axes = [] if axis is None else axes_of(axis, x.ndim)
    return call('roll', x, shifts * len(axes) if axes and len(shifts) == 1 else shifts, axes)


def tile(x, repetitions, /):
    return call('tile', x, list(repetitions))


def unstack(x, /, *, axis=0):
    return call('unbind', x, axis)
