# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Forward mode: dual tensors, which have a tangent."""
import threading
from collections import namedtuple

from devtensor import _C

UnpackedDualTensor = namedtuple('UnpackedDualTensor', 'primal tangent')

_state = threading.local()


class dual_level:
    """make_dual() works inside. One level at a time: RuntimeError for a nested one."""

    def __enter__(self):
        if getattr(_state, 'level', 0):
            raise RuntimeError('Nested forward mode AD is not supported at the moment')
        _state.level = 1
        return 0

    def __exit__(self, *exception):
        _state.level = 0


def make_dual(tensor, tangent, *, level=None):
    """A new tensor on the memory of tensor with the tangent, which has its shape, dtype and device."""
    if not getattr(_state, 'level', 0):
        raise RuntimeError('Trying to create a dual Tensor for forward AD but no level exists, make sure to '
                           'enter_dual_level() first.')
    return _C._make_dual(tensor, tangent)


def unpack_dual(tensor, *, level=None):
    """(primal, tangent) of a tensor; the tangent is None for one that is not dual."""
    if not isinstance(tensor, _C.Tensor):
        raise TypeError(f'unpack_dual: a tensor is needed, got {type(tensor).__name__}')
    tangent = _C._tangent(tensor)
    return UnpackedDualTensor(tensor if tangent is None else _C._primal(tensor), tangent)
