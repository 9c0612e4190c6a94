# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Functions with a forward and a backward in Python."""
import functools

from devtensor import _C


class FunctionCtx(_C._Context):
    """The context of one call: save_for_backward(), saved_tensors, needs_input_grad, mark_dirty(),
    mark_non_differentiable(), set_materialize_grads(), and any attributes of the program. It lives as long as the
    graph of the call."""


class Function(_C._Function):
    """The base of functions with a backward of their own:

        class Exp(Function):
            @staticmethod
            def forward(ctx, x):
                y = x.exp()
                ctx.save_for_backward(y)
                return y

            @staticmethod
            def backward(ctx, grad):
                y, = ctx.saved_tensors
                return grad * y

        y = Exp.apply(x)

    forward returns a tensor or a tuple; operators inside are not recorded. backward gets a gradient for each output and
    returns one, or None, for each argument. Arguments and results that are no tensors have the gradient None. Operators
    in backward are recorded with create_graph, which makes second derivatives. With a staticmethod
    setup_context(ctx, inputs, output), forward has no ctx.

    In forward mode jvp(ctx, *tangents), which runs after forward, gets a tangent, or None, for each argument and
    returns one for each output; it finds what was saved by ctx.save_for_forward() in ctx.saved_tensors.

    Under vmap a class without a rule runs on the samples as they are. vmap(info, in_dims, *args) gets the batches,
    their dimensions, None for other arguments, and info.batch_size and info.randomness; it returns the outputs and
    their dimensions. With generate_vmap_rule = True forward, setup_context, backward and jvp are applied to samples,
    and the call is recorded for the batch. Both need setup_context."""

    generate_vmap_rule = False

    @staticmethod
    def forward(*args):
        raise NotImplementedError('a Function must have a forward')

    @staticmethod
    def setup_context(ctx, inputs, output):
        raise NotImplementedError('the Function has no setup_context')

    @staticmethod
    def backward(ctx, *grads):
        raise NotImplementedError('the Function has no backward')

    @staticmethod
    def jvp(ctx, *tangents):
        raise NotImplementedError('You must implement the jvp function for custom autograd.Function to use it with '
                                  'forward mode AD.')

    @staticmethod
    def vmap(info, in_dims, *args):
        raise NotImplementedError('the Function has no vmap')


def once_differentiable(fn):
    """A decorator of backward: its operators are not recorded, and a derivative of its result fails. Below
    @staticmethod."""
    @functools.wraps(fn)
    def backward(ctx, *grads):
        return fn(ctx, *grads)
    backward._once_differentiable = True
    return backward


# It needs the class Function.
from devtensor.autograd import _transforms  # noqa: E402,F401
