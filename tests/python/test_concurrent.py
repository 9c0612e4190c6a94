# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Threads that share parameters, while hooks raise and the garbage collector runs."""
import gc
import os
import random
import sys
import threading
import time

import pytest

import devtensor as dt
from devtensor import autograd

SECONDS = float(os.environ.get('SOAK_SECONDS', '3'))


class Raised(Exception):
    pass


@pytest.fixture
def often():
    """Threads switch often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def run(functions):
    """Runs each function in a thread; the exceptions of all."""
    errors = []

    def catch(function):
        try:
            function()
        except BaseException as e:  # noqa
            errors.append(e)
    threads = [threading.Thread(target=catch, args=(f,)) for f in functions]
    for t in threads:
        t.start()
    for t in threads:
        t.join(SECONDS + 120)
    assert not any(t.is_alive() for t in threads)
    return errors


class Product(autograd.Function):
    """Its ctx is in a cycle, and its backward raises sometimes."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        ctx.cycle = [ctx]
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        if random.random() < .3:
            raise Raised('backward')
        return g * b, g * a


def raising(g):
    if random.random() < .2:
        raise Raised('hook')
    return g * 1 if random.random() < .5 else None


def accumulated(p):
    if random.random() < .2:
        raise Raised('post-accumulate')
    if random.random() < .5:
        p.grad = None


def after_node(grads, output_grads):
    if random.random() < .1:
        raise Raised('node')


def step(params):
    """A graph over parameters that other threads use, with hooks that raise, and its backward."""
    p = random.choice(params)
    handles = [p.register_hook(raising), p.register_post_accumulate_grad_hook(accumulated)][:random.randrange(3)]
    y = p
    for _ in range(random.randrange(1, 5)):
        other = random.choice(params)
        y = Product.apply(y, other) if random.random() < .6 else y * other
        if random.random() < .3:
            y.register_hook(lambda g, y=y: raising(g))
        if random.random() < .2:
            y.grad_fn.register_hook(lambda a, b, y=y: after_node(a, b))
    try:
        kind = random.randrange(5)
        if kind == 0:
            autograd.grad(y.sum(), params[:2], allow_unused=True, create_graph=random.random() < .3)
        elif kind == 1:
            z = y.sum()
            z.backward(retain_graph=True)
            z.backward()
        else:
            y.sum().backward()
    finally:
        random.choice(params).grad = None
        for h in handles:
            h.remove()


@pytest.mark.parametrize('size', [64, 9000])    # the lock is released around operators on the larger one
def test_eight_threads_on_shared_parameters_with_hooks_that_raise(often, size):
    params = [dt.ones(size).requires_grad_() for _ in range(6)]
    end = time.monotonic() + SECONDS

    def work():
        kept = []
        while time.monotonic() < end:
            try:
                step(params)
            except Raised as e:
                kept = kept[-20:] + [e]
            if random.random() < .05:
                params[random.randrange(len(params))] = dt.ones(size).requires_grad_()

    def collect():
        while time.monotonic() < end:
            gc.collect()
    assert run([work] * 8 + [collect]) == []


def test_exceptions_of_many_threads_at_once_keep_their_type(often):
    """Each thread raises many exceptions while those of the others are on their way."""
    n = 150
    barrier = threading.Barrier(n)

    def work(i):
        y = dt.ones(2).requires_grad_() * 1

        def hook(g):
            raise Raised(i)
        y.register_hook(hook)
        z = y.sum()
        barrier.wait(60)
        for _ in range(40):
            with pytest.raises(Raised) as info:
                z.backward(retain_graph=True)
            assert info.value.args == (i,)
    assert run([lambda i=i: work(i) for i in range(n)]) == []


def test_exceptions_that_were_raised_are_freed():
    """None waits for ever: all of them are gone when they were caught."""
    before = sum(isinstance(o, Raised) for o in gc.get_objects())
    y = dt.ones(2).requires_grad_() * 1

    def hook(g):
        raise Raised('hook')
    y.register_hook(hook)
    for _ in range(300):
        with pytest.raises(Raised):
            y.sum().backward(retain_graph=True)
    gc.collect()
    assert sum(isinstance(o, Raised) for o in gc.get_objects()) - before <= 1


class FailsAtItsEnd:
    """Calls the library, which fails, when it is freed."""
    ended = 0

    def __del__(self):
        try:
            dt.ones(2) + dt.ones(3)
        except RuntimeError:
            FailsAtItsEnd.ended += 1
        except ValueError:
            FailsAtItsEnd.ended += 1


class KeepsOne(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.kept = FailsAtItsEnd()
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g


def test_an_error_on_its_way_is_not_replaced_by_that_of_a_destructor():
    def graph(g):
        with dt.enable_grad():
            return KeepsOne.apply(dt.ones(2).requires_grad_())
    x = dt.ones(2).requires_grad_()
    x.register_hook(graph)
    x.register_hook([0].__getitem__)     # no frame in its traceback keeps the gradient
    FailsAtItsEnd.ended = 0
    with pytest.raises(TypeError, match='integer'):
        (x * 2).sum().backward()
    assert FailsAtItsEnd.ended == 1


def test_a_result_of_a_hook_fails_at_its_end():
    class Wrong(FailsAtItsEnd):
        pass
    x = dt.ones(2).requires_grad_()
    x.register_hook(lambda g: Wrong())
    with pytest.raises(TypeError, match='Wrong'):
        (x * 2).sum().backward()
    y = x.detach().requires_grad_() * 2
    y.grad_fn.register_hook(lambda a, b: (Wrong(),))
    with pytest.raises(TypeError, match='Wrong'):
        y.sum().backward()


def test_a_tensor_that_an_operator_uses_without_the_lock_is_not_traversed():
    """A collection must not follow a graph that the operator may be replacing."""
    x = dt.ones(600, 600).requires_grad_()
    y = x * 1

    def hook(g):
        return None
    y.register_hook(hook)
    assert any(o is hook for o in gc.get_referents(y))
    begun, missing, end = threading.Event(), [], threading.Event()

    def work():
        with dt.no_grad():
            while not end.is_set():
                begun.set()
                dt.matmul(y, y)
    thread = threading.Thread(target=work)
    thread.start()
    begun.wait(60)
    stop = time.monotonic() + 20
    while not missing and time.monotonic() < stop:
        time.sleep(0.0005)
        if not any(o is hook for o in gc.get_referents(y)):
            missing.append(1)
    end.set()
    thread.join(60)
    assert missing
