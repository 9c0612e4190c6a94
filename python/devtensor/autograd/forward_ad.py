# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Forward mode: dual tensors, which have a tangent."""
import threading
from collections import namedtuple

from devtensor import _C

UnpackedDualTensor = namedtuple('UnpackedDualTensor', 'primal tangent')

_state = threading.local()


def _in_level():
    return getattr(_state, 'level', 0)


def enter_dual_level():
    """Begin a level, in which make_dual() works: 0, its number. One at a time: RuntimeError for a nested one."""
    if _in_level():
        raise RuntimeError('Nested forward mode AD is not supported at the moment')
    _state.level = 1
    return 0


def exit_dual_level(*, level=None):
    """End the level. RuntimeError without one."""
    if not _in_level() or level not in (None, 0):
        raise RuntimeError('Trying to exit a forward AD level that was not the last one that was created. This is not '
                           'supported.')
    _state.level = 0


class dual_level:
    """A level for the time of a with statement."""

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *exception):
        _state.level = 0


def make_dual(tensor, tangent, *, level=None):
    """A new tensor on the memory of tensor with the tangent, which has its shape, dtype and device."""
    if not _in_level():
        raise RuntimeError('Trying to create a dual Tensor for forward AD but no level exists, make sure to '
                           'enter_dual_level() first.')
    return _C._make_dual(tensor, tangent)


def unpack_dual(tensor, *, level=None):
    """(primal, tangent) of a tensor; the tangent is None for one that is not dual, and outside of a level."""
    if not isinstance(tensor, _C.Tensor):
        raise TypeError(f'unpack_dual: a tensor is needed, got {type(tensor).__name__}')
    tangent = _C._tangent(tensor)
    return UnpackedDualTensor(tensor if tangent is None else _C._primal(tensor), tangent if _in_level() else None)
