# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Jacobians and Hessians of functions of tensors."""
from devtensor import _C
from devtensor.autograd.grad_mode import enable_grad


def _as_tuple(value, what):
    single = isinstance(value, _C.Tensor)
    value = (value,) if single else tuple(value)
    for t in value:
        if not isinstance(t, _C.Tensor):
            raise TypeError(f'{what} must be tensors, got {type(t).__name__}')
    return value, single


def _check_strict(strict, outputs, inputs):
    """An output or a gradient that does not depend on an input."""
    from devtensor import autograd
    for i, o in enumerate(outputs if strict else ()):
        if not o.requires_grad:
            raise RuntimeError(f'Output {i} of the user-provided function does not require gradients.')
        for k, g in enumerate(autograd.grad((o.sum(),), inputs, retain_graph=True, allow_unused=True)):
            if g is None:
                raise RuntimeError(f'Output {i} of the user-provided function is independent of input {k}.')


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy='reverse-mode'):
    """The Jacobian of func(*inputs): a tensor with the sizes of the output followed by those of the input; a tuple for
    several inputs, and a tuple of these for several outputs. With create_graph it can be differentiated. strict:
    RuntimeError for an output that does not depend on an input, instead of zeros. All rows are always computed at
    once."""
    from devtensor.func import _fresh, _jacobian_of_output, jacfwd
    inputs, single = _as_tuple(inputs, 'inputs')
    if strategy == 'forward-mode':
        if strict:
            raise RuntimeError('jacobian: strict=True is not supported with strategy="forward-mode"')
        return jacfwd(func, 0 if single else tuple(range(len(inputs))))(*inputs)
    if strategy != 'reverse-mode':
        raise ValueError(f'jacobian: strategy must be "reverse-mode" or "forward-mode", got {strategy!r}')
    with enable_grad():
        fresh = [_fresh(t) if create_graph else t.detach().requires_grad_() for t in inputs]
        outputs, one = _as_tuple(func(*fresh), 'outputs')
        _check_strict(strict, outputs, fresh)
        rows = [tuple(_jacobian_of_output(o, fresh, create_graph, None)) for o in outputs]
    if single:
        rows = [r[0] for r in rows]
    return rows[0] if one else tuple(rows)


def _scalar(func):
    def call(*values):
        out = func(*values)
        if not isinstance(out, _C.Tensor) or out.numel() != 1:
            raise RuntimeError('The function given to hessian must return a tensor with a single element')
        return out.reshape(())
    return call


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy='reverse-mode'):
    """The second derivatives of func(*inputs), which returns a tensor with one element: as jacobian() of its gradient."""
    inputs, single = _as_tuple(inputs, 'inputs')

    def gradient(*values):
        return jacobian(_scalar(func), values, create_graph=True, strict=strict)

    result = jacobian(gradient, inputs, create_graph, strict, strategy=outer_jacobian_strategy)
    return result[0][0] if single else result
