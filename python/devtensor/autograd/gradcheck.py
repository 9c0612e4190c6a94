# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Comparison of gradients with finite differences."""
from devtensor import _C
from devtensor.autograd.grad_mode import enable_grad


class GradcheckError(RuntimeError):
    """The gradients differ from finite differences."""


def _outputs(result):
    return (result,) if isinstance(result, _C.Tensor) else tuple(result)


def _differentiable(result):
    return [i for i, t in enumerate(_outputs(result)) if isinstance(t, _C.Tensor) and t.dtype.is_floating_point
            and t.requires_grad]


def _check(kinds, fn, inputs, eps, atol, rtol, raise_exception):
    inputs = _outputs(inputs)
    places = [i for i, t in enumerate(inputs) if isinstance(t, _C.Tensor)]

    def call(tensors):
        args = list(inputs)
        for i, t in zip(places, tensors):
            args[i] = t
        return fn(*args)

    tensors = tuple(inputs[i] for i in places)
    if not any(t.requires_grad for t in tensors):
        raise ValueError('gradcheck expects at least one input tensor to require gradient, but none of them have '
                         'requires_grad=True.')
    with enable_grad():
        outputs = _differentiable(call(tensors))
    if not outputs:
        raise ValueError('gradcheck: no output of the function requires a gradient')
    for kind in kinds:
        for k in outputs:
            text = _C._gradcheck(kind, lambda *t, k=k: _outputs(call(t))[k], tensors, eps, atol, rtol)
            if text is not None and raise_exception:
                raise GradcheckError(f'output {k}: {text}')
            if text is not None:
                return False
    return True


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, check_forward_ad=False,
              check_backward_ad=True):
    """Compares the gradients of func(*inputs), a tensor or a tuple, with central differences of step eps, for each
    element of each input that requires a gradient: leaves of float64. A gradient may differ by
    atol + rtol * |difference|. True; GradcheckError, or False without raise_exception. With check_forward_ad also
    compares forward mode with backward. Other exceptions are those of func."""
    kinds = ['first'] * bool(check_backward_ad) + ['forward'] * bool(check_forward_ad)
    return _check(kinds, func, inputs, eps, atol, rtol, raise_exception)


def gradgradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True):
    """As gradcheck() for second derivatives, with respect to the inputs and the gradient of the output."""
    return _check(['second'], func, inputs, eps, atol, rtol, raise_exception)
