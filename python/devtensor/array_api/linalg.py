# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Linear algebra: the extension, and the functions that the main namespace has of it."""
from collections import namedtuple

from .core import Array, Tensor, axes_of, call, together
from .reductions import sum

__all__ = ['cholesky', 'cross', 'det', 'diagonal', 'eig', 'eigh', 'eigvals', 'eigvalsh', 'inv', 'matmul', 'matrix_norm',
           'matrix_power', 'matrix_rank', 'matrix_transpose', 'outer', 'pinv', 'qr', 'slogdet', 'solve', 'svd',
           'svdvals', 'tensordot', 'trace', 'vecdot', 'vector_norm']
Eig = namedtuple('eig', 'eigenvalues eigenvectors')
Eigh = namedtuple('eigh', 'eigenvalues eigenvectors')
QR = namedtuple('qr', 'Q R')
Slogdet = namedtuple('slogdet', 'sign logabsdet')
SVD = namedtuple('svd', 'U S Vh')


def cholesky(x, /, *, upper=False):
    return call('linalg_cholesky', x, upper=upper)


def cross(x1, x2, /, *, axis=-1):
    return call('linalg_cross', *call('broadcast_tensors', together(x1, x2)), dim=axis)


def det(x, /):
    return call('linalg_det', x)


def diagonal(x, /, *, offset=0):
    return call('linalg_diagonal', x, offset=offset)


def eig(x, /):
    return Eig(*call('linalg_eig', x))


def eigvals(x, /):
    return call('linalg_eigvals', x)


def eigh(x, /):
    return Eigh(*call('linalg_eigh', x))


def eigvalsh(x, /):
    return call('linalg_eigvalsh', x)


def inv(x, /):
    return call('linalg_inv', x)


def matmul(x1, x2, /):
    return call('matmul', *together(x1, x2))


def matrix_norm(x, /, *, keepdims=False, ord='fro'):
    name = 'linalg_matrix_norm' if isinstance(ord, str) else 'linalg_matrix_norm'
    return call(name, x, ord, keepdim=keepdims)


def matrix_power(x, n, /):
    return call('linalg_matrix_power', x, n)


def matrix_rank(x, /, *, rtol=None):
    if isinstance(rtol, Tensor):
        return call('linalg_matrix_rank', x, rtol=rtol)
    return call('linalg_matrix_rank', x, rtol=rtol)


def matrix_transpose(x, /):
    return call('mT', x)


def outer(x1, x2, /):
    return call('outer', *together(x1, x2))


def pinv(x, /, *, rtol=None):
    if isinstance(rtol, Tensor):
        return call('linalg_pinv', x, rtol=rtol)
    return call('linalg_pinv', x, rtol=rtol)


def qr(x, /, *, mode='reduced'):
    return QR(*call('linalg_qr', x, mode))


def slogdet(x, /):
    return Slogdet(*call('linalg_slogdet', x))


def solve(x1, x2, /):
    x1, x2 = together(x1, x2)
    if x2.ndim > 1 and x2.shape == x1.shape[:-1]:  # the library, like PyTorch, takes it as a batch of vectors
        x2 = call('unsqueeze', x2, 0)
        x1 = call('unsqueeze', x1, 0) if x1.ndim == x2.ndim - 1 else x1
    return call('linalg_solve', x1, x2)


def svd(x, /, *, full_matrices=True):
    return SVD(*call('linalg_svd', x, full_matrices))


def svdvals(x, /):
    return call('linalg_svdvals', x)


def tensordot(x1, x2, /, *, axes=2):
    x1, x2 = together(x1, x2)
    if isinstance(axes, int):
        axes = range(x1.ndim - axes, x1.ndim), range(axes)
    return call('tensordot', x1, x2, *map(list, axes))


def trace(x, /, *, offset=0, dtype=None):
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vecdot(x1, x2, /, *, axis=-1):
    if x1.shape[axis] != x2.shape[axis]:  # the library, like PyTorch, would broadcast
        raise ValueError(f'vecdot: {x1.shape} and {x2.shape} along {axis}')
    return call('linalg_vecdot', *together(x1, x2), dim=axis)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    if axis == ():  # for each element; in PyTorch an empty list means all dimensions
        return call('linalg_vector_norm', call('unsqueeze', x, -1), ord, [-1], False)
    return call('linalg_vector_norm', x, ord, axes_of(axis, x.ndim), keepdims)


def matmul_with(self, other, /):
    return matmul(self, other) if isinstance(other, Tensor) else NotImplemented


def matmul_into(self, other, /):
    self[...] = matmul(self, other)
    return self


matmul_with.__name__, matmul_into.__name__ = '__matmul__', '__imatmul__'
Array.__matmul__, Array.__imatmul__ = matmul_with, matmul_into  # type: ignore[attr-defined]
