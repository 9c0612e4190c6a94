# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The calls of vmap that run on a thread, outermost first."""
import contextlib
import threading
from collections import namedtuple

from devtensor import _C

RANDOMNESS = {'error': 0, 'different': 1, 'same': 2}

Level = namedtuple('Level', ['handle', 'size', 'randomness'])


class _Stack(threading.local):
    def __init__(self):
        self.levels = []


_stack = _Stack()


def innermost():
    """The level of the innermost vmap, None outside of all."""
    return _stack.levels[-1] if _stack.levels else None


@contextlib.contextmanager
def entered(size, randomness):
    """A level for `size` samples, while the with statement runs."""
    level = Level(_C._vmap_enter(size, RANDOMNESS[randomness]), size, randomness)
    _stack.levels.append(level)
    try:
        yield level
    finally:
        _stack.levels.pop()
        _C._vmap_leave(level.handle)


@contextlib.contextmanager
def suspended(level):
    """Operators are those of the caller of vmap, while the with statement runs. level: the innermost one. Yields False,
    without an effect, if the library has a further one inside."""
    if not _C._vmap_suspend(level.handle):
        yield False
        return
    _stack.levels.pop()
    try:
        yield True
    finally:
        _stack.levels.append(level)
        _C._vmap_resume(level.handle)


def unwrap(level, values):
    """The batches of the samples among the values, whose batch is dimension 0; and a list of 0 for each, None for other
    values."""
    dims = [0 if _C._vmap_has_samples(level.handle, v) else None for v in values]
    return [v if d is None else _C._vmap_batch(level.handle, v, 0) for v, d in zip(values, dims)], dims


def wrap(level, values, dims):
    """The samples of the values that have a dimension in dims."""
    return [v if d is None else _C._vmap_samples(level.handle, v, d) for v, d in zip(values, dims)]
