# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Hooks of tensors and of nodes."""
import gc
import traceback
import weakref

import pytest

import devtensor as dt
from devtensor import autograd


def values(t):
    return [e.item() for e in t.reshape(-1)]


def leaf(*data):
    return dt.tensor([float(d) for d in data], requires_grad=True)


def test_hooks_run_in_order_and_may_replace():
    x = leaf(1, 2)
    seen = []

    def first(g):
        seen.append(values(g))
        return g * 10

    def second(g):
        seen.append(values(g))
    x.register_hook(first)
    x.register_hook(second)
    (x * 2).sum().backward()
    assert seen == [[2, 2], [20, 20]] and values(x.grad) == [20, 20]


def test_handles_remove_hooks():
    x = leaf(1)
    with x.register_hook(lambda g: g * 10):
        (x * 1).sum().backward()
    h = x.register_hook(lambda g: g * 100)
    h.remove()
    h.remove()
    (x * 1).sum().backward()
    assert values(x.grad) == [11]


def test_a_hook_removes_itself_while_it_runs():
    x = leaf(1)
    calls = []

    def once(g):
        calls.append(1)
        handle.remove()
    handle = x.register_hook(once)
    for _ in range(3):
        (x * 1).sum().backward()
    assert calls == [1]


def test_exceptions_go_through_unharmed():
    class Mine(Exception):
        pass
    x = leaf(1)
    error = Mine('text', {'data': 1})

    def raiser(g):
        raise error
    x.register_hook(raiser)
    with pytest.raises(Mine) as info:
        (x * 1).sum().backward()
    assert info.value is error
    assert 'raiser' in [f.name for f in traceback.extract_tb(info.value.__traceback__)]
    assert x.grad is None


@pytest.mark.parametrize('what', [3, 'text', (), [1]])
def test_wrong_results_raise_type_errors(what):
    x = leaf(1)
    h = x.register_hook(lambda g: what)
    with pytest.raises(TypeError):
        (x * 1).sum().backward()
    h.remove()
    x.register_post_accumulate_grad_hook(lambda t: what)
    with pytest.raises(TypeError):
        (x * 1).sum().backward()


def test_wrong_shapes_and_registrations_are_refused():
    x = leaf(1)
    h = x.register_hook(lambda g: dt.ones(3))
    with pytest.raises(RuntimeError):
        (x * 1).sum().backward()
    h.remove()
    with pytest.raises(RuntimeError, match='require'):
        dt.ones(2).register_hook(lambda g: g)
    with pytest.raises(RuntimeError, match='leaf'):
        (x * 2).register_post_accumulate_grad_hook(lambda t: None)
    for register in (x.register_hook, x.register_post_accumulate_grad_hook, (x * 2).grad_fn.register_hook):
        with pytest.raises(TypeError):
            register(3)


def test_post_accumulate_hooks_see_the_gradient():
    x = leaf(1, 2)

    def step(t):
        assert t is x
        with dt.no_grad():
            t.sub_(t.grad)
        t.grad = None
    x.register_post_accumulate_grad_hook(step)
    (x * 3).sum().backward()
    assert values(x) == [-2, -1] and x.grad is None


def test_retain_grad_keeps_the_gradient_after_hooks():
    x = leaf(1)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 5)
    y.sum().backward()
    assert y.retains_grad and values(y.grad) == [5] and values(x.grad) == [10]


def test_node_hooks():
    x, y = leaf(2), leaf(3)
    z = x * y
    seen = []

    def after(grad_inputs, grad_outputs):
        seen.append(([values(g) for g in grad_inputs], [values(g) for g in grad_outputs]))
        return grad_inputs[0] * 10, None

    def before(grad_outputs):
        return (grad_outputs[0] * 2,)
    z.grad_fn.register_hook(after)
    h = z.grad_fn.register_prehook(before)
    z.sum().backward(retain_graph=True)
    assert seen == [([[6.0], [4.0]], [[2.0]])]
    assert values(x.grad) == [60] and y.grad is None
    h.remove()
    for wrong in (3, [1, 2], (1,), (None,), (1, 2)):
        with z.grad_fn.register_hook(lambda a, b: wrong):
            with pytest.raises(TypeError):
                z.sum().backward(retain_graph=True)
        with z.grad_fn.register_prehook(lambda a: wrong):
            if wrong != (None,):
                with pytest.raises(TypeError):
                    z.sum().backward(retain_graph=True)


def test_a_backward_inside_of_a_hook():
    x = leaf(1)
    inner = leaf(5)

    def hook(g):
        assert not dt.is_grad_enabled()
        with dt.enable_grad():
            (inner * inner).sum().backward()
    (y := x * 2).register_hook(hook)
    y.sum().backward()
    assert values(inner.grad) == [10] and values(x.grad) == [2]


def test_deeply_nested_backwards_keep_exceptions():
    x = leaf(1)

    def nested(depth):
        if depth == 0:
            raise KeyError('deep')
        with dt.enable_grad():
            y = x * 1
            y.register_hook(lambda g: nested(depth - 1))
            y.sum().backward()
    with pytest.raises(KeyError, match='deep'):
        nested(80)


def test_hooks_are_freed_with_their_tensor_and_by_remove():
    class Hook:
        def __call__(self, g):
            return None
    hook = Hook()
    gone = weakref.ref(hook)
    x = leaf(1)
    handle = x.register_hook(hook)
    del hook
    gc.collect()
    assert gone() is not None
    handle.remove()
    assert gone() is None
    hook = Hook()
    gone = weakref.ref(hook)
    handle = x.register_hook(hook)
    del hook, x
    assert gone() is None      # also with the handle alive
    handle.remove()


def test_hooks_run_in_grad():
    x = leaf(1)
    x.register_hook(lambda g: g * 3)
    g, = autograd.grad((x * 2).sum(), x)
    assert values(g) == [6]


def test_a_backward_that_calls_itself_without_end_is_refused():
    """Each sixty of them use the stack of another thread, where Python counts its recursion anew."""
    x = leaf(1)
    z = (x * 2).sum()
    x.register_hook(lambda g: z.backward(retain_graph=True))
    with pytest.raises(RuntimeError, match='inside of one another|recursion'):
        z.backward(retain_graph=True)
