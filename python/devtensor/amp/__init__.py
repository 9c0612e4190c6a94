# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Mixed precision: operators in bf16 or f16, and a scale of the loss for gradients in f16."""
import functools

from devtensor import _C
from devtensor.nn._state import entries

__all__ = ['autocast', 'GradScaler', 'is_autocast_enabled']


class autocast:
    """with autocast(dtype=bfloat16): matrix products, convolutions and attention are computed in the lower dtype,
    losses in f32.

    Parameters and gradients keep their dtypes; call backward() outside. Also a decorator. Scopes nest; enabled=False
    turns conversion off inside. A scope belongs to one thread and is left in the reverse order of entering.
    """

    def __init__(self, device_type='cpu', dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str) or device_type.split(':')[0] not in ('cpu', 'cuda'):
            raise ValueError(f"autocast: device_type is 'cpu' or 'cuda', not {device_type!r}")
        self.dtype = _C.bfloat16 if dtype is None else dtype
        if self.dtype not in (_C.bfloat16, _C.float16):
            raise ValueError(f'autocast: dtype is bfloat16 or float16, not {dtype}')
        self.enabled, self._guards = enabled, []

    def __enter__(self):
        self._guards.append(_C._autocast_enter(self.dtype if self.enabled else None))
        return self

    def __exit__(self, *error):
        _C._autocast_leave(self._guards.pop())

    def __call__(self, function):
        @functools.wraps(function)
        def inside(*args, **kwargs):
            with autocast(dtype=self.dtype, enabled=self.enabled):
                return function(*args, **kwargs)
        return inside


def is_autocast_enabled(device_type='cpu'):
    return _C._autocast_dtype() is not None


class GradScaler:
    """Scales the loss so that gradients in f16 do not underflow; a step whose gradients are not finite is left out and
    lowers the scale. Every method but state_dict() does nothing with enabled=False."""

    def __init__(self, device='cpu', init_scale=2.0 ** 16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000,
                 enabled=True):
        self._enabled = enabled
        self._options = (float(growth_factor), float(backoff_factor), growth_interval)
        self._c = _C._GradScaler(float(init_scale), *self._options, 0)

    def is_enabled(self):
        return self._enabled

    def scale(self, outputs):
        """A tensor, or tensors in lists and tuples, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(x) for x in outputs)
        return self._c.scale(outputs)

    def unscale_(self, optimizer):
        """Divide the gradients by the scale, for example to clip them."""
        if self._enabled:
            self._c.unscale(optimizer._c)

    def step(self, optimizer, *args, **kwargs):
        """Step if all gradients are finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if 'closure' in kwargs or args:
            raise RuntimeError('GradScaler.step: a closure is not supported')
        optimizer._c.sync(optimizer.param_groups)
        self._c.step(optimizer._c)
        return None

    def update(self, new_scale=None):
        """Set the scale for the next step, after the steps of all optimizers."""
        if not self._enabled:
            return
        if new_scale is None:
            self._c.update()
        else:
            self._c = _C._GradScaler(float(new_scale), *self._options, self._c.state()[1])

    def get_scale(self):
        return self._c.state()[0] if self._enabled else 1.0

    def get_growth_factor(self):
        return self._options[0]

    def get_backoff_factor(self):
        return self._options[1]

    def get_growth_interval(self):
        return self._options[2]

    def state_dict(self):
        if not self._enabled:
            return {}
        scale, steps = self._c.state()
        growth, backoff, interval = self._options
        return {'scale': scale, 'growth_factor': growth, 'backoff_factor': backoff, 'growth_interval': interval,
                '_growth_tracker': steps}

    def load_state_dict(self, state_dict):
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError('GradScaler: the state is empty: it is that of a scaler with enabled=False')
        names = ['scale', 'growth_factor', 'backoff_factor', 'growth_interval', '_growth_tracker']
        scale, *options, steps = entries(state_dict, names, 'GradScaler')
        self._c = _C._GradScaler(float(scale), *options, steps)
        self._options = tuple(options)
