# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Hooks of modules in backward.

A node is put before the inputs of a call, and one after its outputs. The second one gets the gradients of the outputs
first, the first one those of the inputs when backward has left the module.
"""
import warnings

from devtensor import _C
from devtensor.autograd.function import Function

Tensor = _C.Tensor


class BackwardHookFunction(Function):
    """Returns its arguments, with one node for all."""

    @staticmethod
    def forward(ctx, *tensors):
        ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx, *grads):
        return grads


def _with_node(values):
    """The tuple with tensors behind one node, the positions of tensors, and the node; (values, None, None) if no
    gradient is recorded."""
    places = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
    if not (_C.is_grad_enabled() and any(values[i].requires_grad for i in places)):
        return values, None, None
    behind = BackwardHookFunction.apply(*[values[i] for i in places])
    values = list(values)
    for i, t in zip(places, behind):
        values[i] = t
    return tuple(values), places, next(t.grad_fn for t in behind if t.requires_grad)


def _spread(places, grads, n):
    """A tuple of n gradients, None where the argument or result is no tensor."""
    spread = [None] * n
    for i, g in zip(places, grads):
        spread[i] = g
    return tuple(spread)


def _check_count(found, expected, what):
    if len(found) != expected:
        raise RuntimeError(f'{what}, got {len(found)}, but expected {expected}')
    return found


class BackwardHooks:
    """The hooks for one call of a module."""

    def __init__(self, module, hooks, pre_hooks):
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_outputs = self.inputs = self.outputs = None
        self.ninputs = self.noutputs = 0

    def around_inputs(self, args):
        args, self.inputs, node = _with_node(args)
        self.ninputs = len(args)
        if node is not None:
            node.register_hook(self._after_module)
        return args

    def around_outputs(self, result):
        values = result if isinstance(result, tuple) else (result,)
        if not isinstance(result, (tuple, Tensor)):
            warnings.warn('For backward hooks to be called, module output should be a Tensor or a tuple of Tensors '
                          f'but received {type(result)}', stacklevel=4)
        values, self.outputs, node = _with_node(values)
        self.noutputs = len(values)
        if node is None:
            return result
        node.register_prehook(self._before_module)
        if not isinstance(result, tuple):
            return values[0]
        if hasattr(result, '_fields'):
            return type(result)(*values)
        return type(result)(values)

    def _before_module(self, grads):
        """The gradients of the outputs arrive."""
        grads = _spread(self.outputs, grads, self.noutputs)
        for hook in self.pre_hooks:
            changed = hook(self.module, grads)
            if changed is not None:
                changed = changed if isinstance(changed, tuple) else (changed,)
                grads = _check_count(changed, self.noutputs,
                                     'Backward pre hook returned an invalid number of grad_output')
        self.grad_outputs = grads
        if self.inputs is None:
            self._without_inputs(grads)
        return tuple(grads[i] for i in self.outputs)

    def _without_inputs(self, grads):
        """No input requires a gradient: the hooks get None for all of them."""
        self.grad_outputs = None
        if self.hooks:
            warnings.warn('Full backward hook is firing when gradients are computed with respect to module outputs '
                          'since no inputs require gradients', stacklevel=2)
        for hook in self.hooks:
            changed = hook(self.module, (None,) * self.ninputs, grads)
            if changed is not None and not (isinstance(changed, tuple) and all(g is None for g in changed)):
                raise RuntimeError('Backward hook for Modules where no input requires gradient should always return '
                                   'None or None for all gradients.')

    def _after_module(self, grads, _):
        """The gradients of the inputs are complete."""
        if self.grad_outputs is None:  # The gradient did not come through an output.
            return None
        grads = _spread(self.inputs, grads, self.ninputs)
        for hook in self.hooks:
            changed = hook(self.module, grads, self.grad_outputs)
            if changed is not None:
                changed = changed if isinstance(changed, tuple) else (changed,)
                grads = _check_count(changed, self.ninputs, 'Backward hook returned an invalid number of grad_input')
        self.grad_outputs = None
        return tuple(grads[i] for i in self.inputs)
