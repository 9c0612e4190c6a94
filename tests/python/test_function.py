# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Functions with a backward in Python."""
import gc
import subprocess
import sys
import traceback
import weakref

import pytest

import devtensor as dt
from devtensor import autograd
from devtensor.autograd import Function
from devtensor.autograd.function import once_differentiable
from memory import skip_with_sanitizer


def values(t):
    return [e.item() for e in t.reshape(-1)]


def leaf(*data, dtype=dt.float32):
    return dt.tensor([float(d) for d in data], dtype=dtype, requires_grad=True)


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


class Same(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.mark_non_differentiable(y)
        return x, y

    @staticmethod
    def backward(ctx, gx, gy):
        return gx * 2, gy


def test_an_input_that_is_returned_as_non_differentiable_requires_no_gradient():
    x, y = leaf(1), leaf(2)
    a, b = Same.apply(x, y)
    assert a.requires_grad and not b.requires_grad and b.is_leaf and b.data_ptr() == y.data_ptr()
    (a * b).sum().backward()
    assert values(x.grad) == [4]


class Scale(Function):
    """Arguments that are no tensors, attributes, setup_context."""

    @staticmethod
    def forward(x, factor, name='none'):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]
        ctx.anything = {'output shape': output.shape}

    @staticmethod
    def backward(ctx, grad):
        assert ctx.anything == {'output shape': grad.shape}
        return grad * ctx.factor, None, None


def test_gradients_and_second_derivatives():
    x = leaf(0.5, 1)
    y = Exp.apply(x)
    assert y.grad_fn.name() == 'ExpBackward' and y.requires_grad and not y.is_leaf
    g, = autograd.grad(y.sum(), x, create_graph=True)
    h, = autograd.grad(g.sum(), x)
    assert values(h) == pytest.approx(values(x.exp()))
    assert autograd.gradcheck(Exp.apply, leaf(0.5, 1, dtype=dt.float64))
    assert autograd.gradgradcheck(Exp.apply, leaf(0.5, 1, dtype=dt.float64))


def test_setup_context_and_other_arguments():
    x = leaf(1, 2)
    Scale.apply(x, 3, 'name').sum().backward()
    assert values(x.grad) == [3, 3]


def test_keywords_are_refused():
    with pytest.raises(TypeError, match='keyword'):
        Exp.apply(x=leaf(1))


def test_without_a_gradient_nothing_is_recorded():
    y = Exp.apply(dt.tensor([1.]))
    assert not y.requires_grad and y.grad_fn is None
    with dt.no_grad():
        assert not Exp.apply(leaf(1)).requires_grad


def test_needs_input_grad():
    seen = []

    class F(Function):
        @staticmethod
        def forward(ctx, a, n, b, c):
            seen.append(ctx.needs_input_grad)
            return a * b * c

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            return g, None, g, None
    F.apply(leaf(1), 3, leaf(2), dt.tensor([1.])).sum().backward()
    assert seen == [(True, False, True, False)] * 2


def test_several_outputs_and_values_that_are_no_tensors():
    class F(Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2, 'text', None, a * 3

        @staticmethod
        def backward(ctx, *grads):
            assert grads[1] is None and grads[2] is None
            return grads[0] * 2 + grads[3] * 3
    x = leaf(1)
    a, text, none, b = F.apply(x)
    assert text == 'text' and none is None
    (a + b * 10).sum().backward()
    assert values(x.grad) == [32]
    x.grad = None
    a, _, _, b = F.apply(x)
    b.sum().backward()      # the gradient of a is zeros
    assert values(x.grad) == [3]


def test_no_tensor_as_output():
    class F(Function):
        @staticmethod
        def forward(ctx, a):
            return 'text'
    assert F.apply(leaf(1)) == 'text'


def test_materialize_grads():
    seen = []

    class F(Function):
        @staticmethod
        def forward(ctx, a):
            ctx.set_materialize_grads(False)
            return a * 2, a * 3

        @staticmethod
        def backward(ctx, g, h):
            seen.append(g)
            return h * 3
    x = leaf(1)
    F.apply(x)[1].sum().backward()
    assert seen == [None] and values(x.grad) == [3]


def test_mark_non_differentiable():
    class F(Function):
        @staticmethod
        def forward(ctx, a):
            index = a.argmax()
            copy = a * 1
            ctx.mark_non_differentiable(index, copy)
            return a * 2, index, copy

        @staticmethod
        def backward(ctx, g, h, i):
            return g * 2
    x = leaf(1, 2)
    a, index, copy = F.apply(x)
    assert a.requires_grad and not index.requires_grad and not copy.requires_grad
    a.sum().backward()
    assert values(x.grad) == [2, 2]


def test_mark_dirty_returns_the_same_object():
    class Double(Function):
        @staticmethod
        def forward(ctx, a):
            ctx.mark_dirty(a)
            return a.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2
    x = leaf(1, 2)
    y = x * 1
    z = Double.apply(y)
    assert z is y and values(y) == [2, 4] and y.grad_fn.name() == 'DoubleBackward'
    y.sum().backward()
    assert values(x.grad) == [2, 2]
    with pytest.raises(RuntimeError, match='leaf'):
        Double.apply(x)


def test_an_input_that_is_returned_gets_a_history():
    class Same(Function):
        @staticmethod
        def forward(ctx, a):
            return a

        @staticmethod
        def backward(ctx, g):
            return g * 7
    x = leaf(1)
    y = Same.apply(x)
    assert y is not x
    y.sum().backward()
    assert values(x.grad) == [7]


@pytest.mark.parametrize('change', [lambda a, y: y.mul_(2), lambda a, y: (a.mul_(2), y.sum())[1]])
def test_an_input_that_is_returned_is_not_changed_in_place(change):
    class Same(Function):
        @staticmethod
        def forward(ctx, a):
            return a

        @staticmethod
        def backward(ctx, g):
            return g
    a = leaf(1, 2) * 1
    with pytest.raises((RuntimeError, ValueError), match='a function of the program'):
        change(a, Same.apply(a))


def test_once_differentiable():
    class F(Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            assert not dt.is_grad_enabled()
            return g * 2 * ctx.saved_tensors[0]
    x = leaf(3)
    g, = autograd.grad(F.apply(x).sum(), x, create_graph=True)
    assert values(g) == [6]
    with pytest.raises((RuntimeError, NotImplementedError), match='differentiable once'):
        g.sum().backward()


def test_saved_none_and_wrong_values():
    class F(Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(None, a)
            return a * 2

        @staticmethod
        def backward(ctx, g):
            none, a = ctx.saved_tensors
            assert none is None
            a.requires_grad_()      # the saved tensor itself is not changed
            return g * 2

    class G(F):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward('text')
            return a * 2
    x = leaf(1)
    y = F.apply(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert values(x.grad) == [4]
    with pytest.raises(TypeError, match='save_for_backward'):
        G.apply(x)


def test_a_sparse_tensor_may_be_saved():
    class F(Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a.to_sparse())
            return a * a

        @staticmethod
        def backward(ctx, g):
            sparse, = ctx.saved_tensors
            return g * 2 * sparse.to_dense()
    x = leaf(1, 2)
    F.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 4]


def test_saved_tensors_after_a_change_or_release_are_errors():
    class F(Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * 2

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]
    x = leaf(1)
    y = F.apply(x).sum()
    x.detach().add_(1)
    with pytest.raises(RuntimeError, match='changed in place'):
        y.backward()
    y = F.apply(x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match='freed'):
        y.backward()


@pytest.mark.parametrize('result, kind', [((1, 2), TypeError), (('text', None), TypeError), ((), RuntimeError),
                                          ((None, dt.ones(1)), RuntimeError), ((None, None, None, 3), RuntimeError)])
def test_wrong_gradients(result, kind):
    class F(Function):
        @staticmethod
        def forward(ctx, a, n):
            return a * 2

        @staticmethod
        def backward(ctx, g):
            return result
    with pytest.raises(kind):
        F.apply(leaf(1), 5).sum().backward()


def test_gradient_of_a_wrong_shape():
    class F(Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, g):
            return dt.ones(5)
    with pytest.raises(RuntimeError):
        F.apply(leaf(1, 2)).sum().backward()


def test_exceptions_in_forward_and_backward():
    error = KeyError('mine')

    class F(Function):
        @staticmethod
        def forward(ctx, a, fail):
            if fail:
                raise error
            return a * 2

        @staticmethod
        def backward(ctx, g):
            raise error
    with pytest.raises(KeyError) as info:
        F.apply(leaf(1), True)
    assert info.value is error
    error.__traceback__ = None
    with pytest.raises(KeyError) as info:
        F.apply(leaf(1), False).sum().backward()
    assert info.value is error
    assert [f.name for f in traceback.extract_tb(info.value.__traceback__)][-1] == 'backward'


def test_missing_backward_and_forward():
    class F(Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2
    with pytest.raises(NotImplementedError):
        F.apply(leaf(1)).sum().backward()
    with pytest.raises(NotImplementedError):
        Function.apply(leaf(1))


def test_functions_inside_of_functions_and_backward_in_forward():
    class F(Function):
        @staticmethod
        def forward(ctx, a):
            with dt.enable_grad():
                b = a.detach().requires_grad_()
                c = Exp.apply(b).sum()
            c.backward()
            ctx.save_for_backward(b.grad)
            return a.exp()

        @staticmethod
        def backward(ctx, g):
            with dt.enable_grad():
                z = leaf(2)
                (z * z).sum().backward()
            assert values(z.grad) == [4]
            return g * ctx.saved_tensors[0]
    x = leaf(1)
    F.apply(x).sum().backward()
    assert values(x.grad) == pytest.approx([2.7182818])


def test_ctx_refuses_calls_outside():
    kept = []

    class F(Function):
        @staticmethod
        def forward(ctx, a):
            kept.append(ctx)
            return a * 2

        @staticmethod
        def backward(ctx, g):
            with pytest.raises(RuntimeError):
                ctx.save_for_backward(g)
            with pytest.raises(RuntimeError):
                ctx.mark_dirty(g)
            return g
    F.apply(leaf(1)).sum().backward()
    with pytest.raises(RuntimeError):
        kept[0].saved_tensors
    with pytest.raises(RuntimeError):
        kept[0].mark_non_differentiable(leaf(1))
    with pytest.raises(TypeError):
        type(kept[0])()


def test_long_and_strange_names():
    for name in ('F' * 200, 'Größe' * 12, "quo'te", ''):
        cls = type(name, (Exp,), {})
        x = leaf(1)
        y = cls.apply(x)
        assert y.grad_fn.name().endswith('Backward')
        y.sum().backward()
        assert values(x.grad) == pytest.approx([2.7182818])


def test_ctx_is_freed_with_the_graph():
    gone = []

    class F(Function):
        @staticmethod
        def forward(ctx, a):
            gone.append(weakref.ref(ctx))
            return a * 2

        @staticmethod
        def backward(ctx, g):
            return g
    x = leaf(1)
    y = F.apply(x)
    assert gone[0]() is not None
    del y
    assert gone[0]() is None
    F.apply(dt.ones(1))
    assert gone[1]() is None
    gc.collect()


def test_many_calls_do_not_grow_memory():
    import resource
    skip_with_sanitizer()
    x = leaf(*range(16))

    def work(n):
        for _ in range(n):
            Exp.apply(Scale.apply(x, 0.1)).sum().backward()
            x.grad = None
    work(500)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work(5000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096


def test_a_call_keeps_the_functions_that_a_class_has_lost():
    """In a process of its own, because a use of freed memory ends it."""
    code = """
import ctypes, devtensor as dt
class Double(dt.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        del Double._devtensor_function
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2
malloc = ctypes.CDLL(None).malloc
malloc.restype = ctypes.c_void_p
x = dt.ones(4, requires_grad=True)
for _ in range(50):
    y = Double.apply(x)
    for size in range(64, 160, 8):
        ctypes.memset(malloc(size), 0x41, size)
    y.sum().backward()
assert x.grad.tolist() == [100.0] * 4
"""
    subprocess.run([sys.executable, '-c', code], check=True)
