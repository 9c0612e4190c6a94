# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Calls of autograd do not grow memory: live tensors, blocks of Python (tracemalloc) and resident memory.

GROWTH_CALLS: the number of calls of each kind; `make torture-python` sets it to a million.
"""
import gc
import os
import tracemalloc

import pytest

import devtensor as dt
from devtensor import autograd, func
from devtensor.autograd import forward_ad
from devtensor.utils.checkpoint import checkpoint
from memory import live, resident, skip_with_sanitizer

CALLS = int(os.environ.get('GROWTH_CALLS', '3000'))


class Raised(Exception):
    pass


class Square(autograd.Function):
    @staticmethod
    def forward(ctx, x, raises=False):
        ctx.save_for_backward(x)
        ctx.raises, ctx.cycle = raises, ctx
        return x * x

    @staticmethod
    def backward(ctx, g):
        if ctx.raises:
            raise Raised
        x, = ctx.saved_tensors
        return g * x * 2, None


class WithSetup(autograd.Function):
    @staticmethod
    def forward(x):
        return x * 2, 3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable()

    @staticmethod
    def backward(ctx, g, none):
        return g * 2


class FailsInForward(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        raise Raised


X = dt.ones(3).requires_grad_()
Y = dt.full((3,), 2.0).requires_grad_()


def raising(*args):
    raise Raised


def expect(error, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except error:
        return
    raise AssertionError('no exception')


def backward():
    (X * Y).sum().backward()
    X.grad = Y.grad = None


def backward_with_arguments():
    z = X * Y
    z.backward(dt.ones(3), retain_graph=True, inputs=[X])
    z.backward(dt.ones(3))
    X.grad = Y.grad = None


def backward_twice():
    z = (X * Y).sum()
    z.backward()
    expect(RuntimeError, z.backward)
    X.grad = Y.grad = None


def backward_with_wrong_arguments():
    expect(TypeError, (X * 2).sum().backward, inputs=[1])
    expect(RuntimeError, (X * 2).backward)
    expect(RuntimeError, (X * 2).backward, dt.ones(2))
    expect(RuntimeError, dt.ones(1).backward)


def grad():
    autograd.grad((X * Y).sum(), [X, Y])


def grad_of_grad():
    g, = autograd.grad((X * X * Y).sum(), X, create_graph=True)
    autograd.grad(g.sum(), [X, Y])


def grad_of_unused():
    autograd.grad((X * 2).sum(), [X, Y], allow_unused=True)
    expect(RuntimeError, autograd.grad, (X * 2).sum(), [X, Y])


def hooks():
    y = X * Y
    y.retain_grad()
    handle = X.register_hook(lambda g: g * 2)
    y.register_hook(lambda g, y=y: None)
    y.grad_fn.register_hook(lambda a, b: None)
    y.grad_fn.register_prehook(lambda a: (a[0] * 2,))
    after = X.register_post_accumulate_grad_hook(lambda t: setattr(t, 'grad', None))
    y.sum().backward()
    handle.remove()
    after.remove()
    X.grad = Y.grad = None


def hooks_that_raise():
    y = X * Y
    handle = X.register_post_accumulate_grad_hook(raising)
    expect(Raised, y.sum().backward, retain_graph=True)
    handle.remove()
    with X.register_hook(raising):
        expect(Raised, y.sum().backward)
    with X.register_hook(lambda g: 'text'):
        expect(TypeError, (X * 2).sum().backward)
    X.grad = Y.grad = None


def function():
    Square.apply(X).sum().backward()
    y, three = WithSetup.apply(X)
    y.sum().backward()
    X.grad = None


def function_that_raises():
    expect(Raised, Square.apply(X, True).sum().backward)
    expect(Raised, FailsInForward.apply, X)
    X.grad = None


def graph_objects():
    y = Square.apply(X * Y)
    node = y.grad_fn
    node.metadata['y'] = y
    while node.next_functions:
        node = node.next_functions[0][0]
    assert node.variable is X
    (X * Y).grad_fn.saved_tensors


def saved_hooks():
    with autograd.graph.saved_tensors_hooks(lambda t: [t], lambda packed: packed[0]):
        y = X * Y
    y.sum().backward()
    with autograd.graph.saved_tensors_hooks(raising, raising):
        expect(Raised, lambda: X * Y)
    X.grad = Y.grad = None


def checkpoints():
    checkpoint(lambda a: a * Y, X, use_reentrant=False).sum().backward()
    X.grad = Y.grad = None


def vmap():
    func.vmap(lambda a: a * 2 + a.sum())(dt.ones(2, 3))
    expect(Raised, func.vmap(raising), dt.ones(2, 3))


def vmap_of_grad():
    func.vmap(func.grad(lambda a: (a * a).sum()))(dt.ones(2, 3))


def jvp():
    func.jvp(lambda a: a * a, (dt.ones(3),), (dt.ones(3),))
    expect(Raised, func.jvp, raising, (dt.ones(3),), (dt.ones(3),))


def dual_numbers():
    with forward_ad.dual_level():
        forward_ad.unpack_dual(forward_ad.make_dual(dt.ones(3), dt.ones(3)) * 2)


def vjp_and_jacobian():
    out, pull = func.vjp(lambda a: a * a, dt.ones(3))
    pull(dt.ones(3))
    func.jacrev(lambda a: a * a)(dt.ones(2))


def gradcheck():
    autograd.gradcheck(lambda a: a * a, (dt.ones(1, dtype=dt.float64).requires_grad_(),))
    expect(Raised, autograd.gradcheck, raising, (dt.ones(1, dtype=dt.float64).requires_grad_(),))


def modes():
    with dt.no_grad():
        X * 2
    with dt.enable_grad(), dt.inference_mode():
        X * 2
    dt.no_grad()(lambda: X * 2)()


KINDS = [backward, backward_with_arguments, backward_twice, backward_with_wrong_arguments, grad, grad_of_grad,
         grad_of_unused, hooks, hooks_that_raise, function, function_that_raises, graph_objects, saved_hooks,
         checkpoints, vmap, vmap_of_grad, jvp, dual_numbers, vjp_and_jacobian, gradcheck, modes]
SLOW = (gradcheck, vjp_and_jacobian)


def repeat(call, n):
    for i in range(n):
        call()
        if i % 1000 == 999:
            gc.collect()    # Square's ctx and graph_objects' metadata are in cycles
    gc.collect()


@pytest.mark.parametrize('call', KINDS, ids=lambda f: f.__name__)
def test_calls_do_not_grow_memory(call):
    n = CALLS // 10 if call in SLOW else CALLS
    repeat(call, min(n, 2000))
    before = live()
    skip_with_sanitizer()
    tracemalloc.start()
    try:
        repeat(call, 200)
        blocks = tracemalloc.get_traced_memory()[0]
        repeat(call, min(n, 20000))     # tracemalloc makes each allocation slow
        more = tracemalloc.get_traced_memory()[0] - blocks
    finally:
        tracemalloc.stop()
    assert live() == before and more < 4096
    resident_before = resident()
    repeat(call, n)
    assert live() == before and resident() - resident_before < 2048
