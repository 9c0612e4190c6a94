# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Modes of the calling thread, as context managers and as decorators of functions and generator functions."""
import functools
import inspect

from devtensor import _C


class _Mode:
    """A mode that is entered with `with`, or for each call of a decorated function. An object may be entered several
    times, also inside of itself. A generator function has the mode while it runs, and its caller does not."""

    def __init__(self):
        self._before = []

    def _clone(self):
        return self.__class__()

    def __call__(self, fn):
        if inspect.isclass(fn):
            raise TypeError(f'{type(self).__name__}: a class cannot be decorated')
        if inspect.isgeneratorfunction(fn):
            return _wrap_generator(self._clone, fn)

        @functools.wraps(fn)
        def call(*args, **kwargs):
            with self._clone():
                return fn(*args, **kwargs)
        return call

    def _enter(self, kind, enabled):
        self._before.append(_C._mode_enter(kind, enabled))

    def __exit__(self, *exception):
        _C._mode_leave(self._before.pop())


def _wrap_generator(mode, fn):
    @functools.wraps(fn)
    def generator(*args, **kwargs):
        g = fn(*args, **kwargs)
        step, value = g.send, None
        try:
            while True:
                try:
                    with mode():
                        result = step(value)
                except StopIteration as end:
                    return end.value
                try:
                    value = yield result
                    step = g.send
                except GeneratorExit:
                    raise
                except BaseException as e:  # pylint: disable=broad-except
                    step, value = g.throw, e
        finally:
            with mode():
                g.close()
    return generator


class _ModeWithoutArguments(_Mode):
    """Also a decorator without parentheses: @no_grad."""

    def __new__(cls, fn=None):
        return super().__new__(cls) if fn is None else cls()(fn)


class no_grad(_ModeWithoutArguments):
    """Operators inside record nothing."""

    def __enter__(self):
        self._enter('grad', False)


class enable_grad(_ModeWithoutArguments):
    """Operators inside are recorded, also within no_grad."""

    def __enter__(self):
        self._enter('grad', True)


class set_grad_enabled(_Mode):
    """Sets whether operators of this thread are recorded: set_grad_enabled(mode) at once, until the end of a with
    block if it is used in one; as a decorator for each call."""

    def __init__(self, mode):
        super().__init__()
        self.mode = bool(mode)
        self._first = _C._set_grad_enabled(self.mode)

    def __call__(self, fn):
        _C._set_grad_enabled(self._first)
        return super().__call__(fn)

    def _clone(self):
        clone = object.__new__(set_grad_enabled)
        clone._before, clone.mode, clone._first = [], self.mode, None
        return clone

    def __enter__(self):
        first, self._first = self._first, None
        self._enter('grad', self.mode)
        if first is not None:
            # The state to come back to is the one before the object was made.
            self._before[-1] = (self._before[-1] & ~1) | first


class inference_mode(_Mode):
    """As no_grad, and faster: tensors that are made inside stay inference tensors, which can be read, but not be changed
    in place, require a gradient, or be saved for a backward outside; a clone can. inference_mode(False) ends it."""

    def __new__(cls, mode=True):
        return super().__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __init__(self, mode=True):
        super().__init__()
        self.mode = mode

    def _clone(self):
        return inference_mode(self.mode)

    def __enter__(self):
        self._enter('inference', self.mode)


class set_detect_anomaly(_Mode):
    """As detect_anomaly, if mode is true; at once, and until the end of a with block if it is used in one."""

    def __init__(self, mode, check_nan=True):
        super().__init__()
        if not check_nan:
            raise ValueError('set_detect_anomaly: check_nan must be True')
        self.mode = bool(mode)
        self._first = _C._mode_enter('anomaly', self.mode)

    def _clone(self):
        clone = object.__new__(set_detect_anomaly)
        clone._before, clone.mode, clone._first = [], self.mode, None
        return clone

    def __call__(self, fn):
        _C._mode_leave(self._first)
        return super().__call__(fn)

    def __enter__(self):
        if self._first is not None:
            self._before.append(self._first)
            self._first = None
        else:
            self._enter('anomaly', self.mode)


class detect_anomaly(_Mode):
    """A backward inside fails with RuntimeError at the first node that computes a NaN, and errors of nodes name the
    place in the program's C code where the operator was called. Slow."""

    def __init__(self, check_nan=True):
        super().__init__()
        if not check_nan:
            raise ValueError('detect_anomaly: check_nan must be True')

    def __enter__(self):
        self._enter('anomaly', True)
