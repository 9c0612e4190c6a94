# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Automatic differentiation: backward and grad, Function, modes, hooks, checks."""
from devtensor import _C
from devtensor._C import Tensor, is_anomaly_enabled, is_grad_enabled, is_inference_mode_enabled

from devtensor.autograd.grad_mode import (detect_anomaly, enable_grad, inference_mode, no_grad, set_detect_anomaly,
                                          set_grad_enabled)
from devtensor.autograd.function import Function, FunctionCtx
from devtensor.autograd import function, graph
from devtensor.autograd.graph import saved_tensors_hooks

__all__ = ['Function', 'FunctionCtx', 'backward', 'detect_anomaly', 'enable_grad', 'forward_ad', 'function', 'functional',
           'grad', 'gradcheck', 'gradgradcheck', 'GradcheckError', 'graph', 'inference_mode', 'is_anomaly_enabled',
           'is_grad_enabled', 'is_inference_mode_enabled', 'no_grad', 'saved_tensors_hooks', 'set_detect_anomaly',
           'set_grad_enabled']

_RETAIN, _CREATE, _BATCHED = 1, 2, 4


def _as_tuple(value):
    return (value,) if isinstance(value, Tensor) else tuple(value)


def _check_outputs(tensors, grads, batched):
    """The gradients as a tuple, or None for those of ones."""
    grads = (None,) * len(tensors) if grads is None else _as_tuple(grads)
    if len(grads) != len(tensors):
        raise RuntimeError(f'got {len(tensors)} tensors and {len(grads)} gradients')
    for i, (t, g) in enumerate(zip(tensors, grads)):
        if not isinstance(t, Tensor):
            raise TypeError(f'element {i} of tensors is no tensor but {type(t).__name__}')
        if not t.requires_grad:
            raise RuntimeError(f'element {i} of tensors does not require grad and does not have a grad_fn')
        if g is None:
            if t.numel() != 1:
                raise RuntimeError('grad can be implicitly created only for scalar outputs')
        elif not isinstance(g, Tensor):
            raise TypeError(f'gradients must be tensors or None, got {type(g).__name__}')
        elif g.shape[1 if batched else 0:] != t.shape:
            raise RuntimeError(f'Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a '
                               f'shape of {t.shape}.')
    return None if all(g is None for g in grads) else grads


def _flags(retain_graph, create_graph, batched=False):
    retain = create_graph if retain_graph is None else retain_graph
    return (_RETAIN if retain else 0) | (_CREATE if create_graph else 0) | (_BATCHED if batched else 0)


def _accumulate(inputs, grads, create_graph):
    for t, g in zip(inputs, grads):
        if g is None:
            continue
        if t.grad is None:
            t.grad = g
        elif create_graph:
            t.grad = t.grad + g
        else:
            with no_grad():
                t.grad = t.grad + g


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Computes the gradients of the tensors with respect to the leaves of their graph, or to inputs, and adds them to
    grad. grad_tensors has a gradient of each tensor's shape, or None for one with a single element. retain_graph keeps
    the graph for another backward; its default is create_graph. create_graph records the backward. Hooks of
    register_post_accumulate_grad_hook() run for leaves only if inputs is not given. RuntimeError for a tensor without a
    graph."""
    if grad_tensors is None:
        grad_tensors = grad_variables
    tensors = _as_tuple(tensors)
    grads = _check_outputs(tensors, grad_tensors, False)
    if not tensors:
        return
    if inputs is None:
        _C._backward(tensors, grads, None, _flags(retain_graph, create_graph))
        return
    inputs = _as_tuple(inputs)
    if not inputs:
        raise RuntimeError('`inputs` argument to `backward()` cannot be empty')
    _accumulate(inputs, _C._backward(tensors, grads, inputs, _flags(retain_graph, create_graph)), create_graph)


def _tensor_backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    backward((self,), None if gradient is None else (gradient,), retain_graph, create_graph, inputs=inputs)


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True,
         allow_unused=None, is_grads_batched=False, materialize_grads=False):
    """Returns the gradients of the outputs with respect to inputs, a tuple; grad of leaves does not change. An input
    that the outputs do not depend on gives an error, None with allow_unused, or zeros with materialize_grads. With
    is_grads_batched the gradients of the outputs, and the results, have one more dimension in front: several backwards
    at once. Otherwise as backward()."""
    if not only_inputs:
        raise ValueError('grad: only_inputs must be True')
    if allow_unused is None:
        allow_unused = materialize_grads
    elif materialize_grads and not allow_unused:
        raise ValueError('Expected allow_unused to be True or not passed when materialize_grads=True, but got False')
    outputs, inputs = _as_tuple(outputs), _as_tuple(inputs)
    given = _check_outputs(outputs, grad_outputs, is_grads_batched)
    if not inputs:
        raise ValueError('grad requires non-empty inputs.')
    for i, t in enumerate(inputs):
        if not isinstance(t, Tensor):
            raise TypeError(f'element {i} of inputs is no tensor but {type(t).__name__}')
        if not t.requires_grad:
            raise RuntimeError('One of the differentiated Tensors does not require grad')
    grads = _C._backward(outputs, given, inputs, _flags(retain_graph, create_graph, is_grads_batched))
    if None in [g if g is None else 0 for g in grads]:
        if not allow_unused:
            raise RuntimeError('One of the differentiated Tensors appears to not have been used in the graph. Set '
                               'allow_unused=True if this is the desired behavior.')
        if materialize_grads:
            grads = tuple(_C.zeros_like(t) if g is None else g for t, g in zip(inputs, grads))
    return grads


Tensor.grad_fn = property(_C._grad_fn, doc='The node of the operator that returned the tensor; None for a leaf.')

from devtensor.autograd import forward_ad, functional  # noqa: E402
from devtensor.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck  # noqa: E402
