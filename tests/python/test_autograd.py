# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""backward and grad, nodes, saved tensors in other forms, checkpoints, gradcheck, forward mode."""
import math
import os
import tempfile
import threading

import pytest

import devtensor as dt
from devtensor import autograd
from devtensor.autograd import forward_ad, functional
from devtensor.utils.checkpoint import checkpoint


def values(t):
    return [e.item() for e in t.reshape(-1)]


def leaf(*data, dtype=dt.float32):
    return dt.tensor(list(data), dtype=dtype, requires_grad=True)


def test_backward_accumulates_in_leaves():
    x = leaf(1, 2, 3)
    (x * x).sum().backward()
    (x * x).sum().backward()
    assert values(x.grad) == [4, 8, 12]


def test_backward_takes_a_gradient_and_inputs():
    x, y = leaf(1, 2), leaf(3, 4)
    z = x * y
    z.backward(dt.tensor([1., 10.]), retain_graph=True, inputs=[x])
    assert values(x.grad) == [3, 40] and y.grad is None
    z.backward(gradient=dt.tensor([1., 1.]), inputs=y)
    assert values(y.grad) == [1, 2] and values(x.grad) == [3, 40]


def test_backward_frees_the_graph_unless_told():
    x = leaf(2)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match='freed'):
        y.backward()


def test_backward_errors_are_those_of_pytorch():
    x = leaf(1, 2)
    with pytest.raises(RuntimeError):
        dt.tensor([1.]).backward()
    with pytest.raises(RuntimeError, match='does not require grad'):
        autograd.backward(dt.tensor([1.]))
    with pytest.raises(RuntimeError):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match='scalar outputs'):
        autograd.backward(x * 2)
    with pytest.raises(RuntimeError, match='shape'):
        (x * 2).backward(dt.ones(3))
    with pytest.raises(TypeError):
        (x * 2).backward(3)
    with pytest.raises(TypeError):
        (x * 2).backward(nonsense=1)
    with pytest.raises(RuntimeError, match='empty'):
        (x * 2).sum().backward(inputs=[])


def test_create_graph_gives_second_derivatives():
    x = leaf(2., 3.)
    g, = autograd.grad((x ** 3).sum(), x, create_graph=True)
    assert g.requires_grad
    h, = autograd.grad(g.sum(), x)
    assert values(h) == [12, 18] and not h.requires_grad and x.grad is None


def test_grad_of_unused_inputs():
    x, y = leaf(1), leaf(2)
    z = (x * 2).sum()
    with pytest.raises(RuntimeError, match='not have been used'):
        autograd.grad(z, (x, y), retain_graph=True)
    a, b = autograd.grad(z, (x, y), allow_unused=True, retain_graph=True)
    assert values(a) == [2] and b is None
    a, b = autograd.grad(z, (x, y), materialize_grads=True)
    assert values(b) == [0]
    with pytest.raises(ValueError):
        autograd.grad(z, (x, y), materialize_grads=True, allow_unused=False)
    with pytest.raises(RuntimeError):
        autograd.grad(z, dt.tensor([1.]))


def test_grad_of_batches():
    x = leaf(1, 2)
    y = x * x
    g, = autograd.grad(y, x, dt.tensor([[1., 0.], [0., 1.], [1., 1.]]), is_grads_batched=True)
    assert g.shape == (3, 2) and values(g) == [2, 0, 0, 4, 2, 4]


def test_grad_fn_leads_to_the_leaves():
    x, y = leaf(1, 2), leaf(3, 4)
    z = (x * y).sum()
    assert x.grad_fn is None and dt.tensor([1.]).grad_fn is None
    assert z.grad_fn.name().startswith('Sum')
    (mul, nr), = z.grad_fn.next_functions
    assert mul.name().startswith('Mul') and nr == 0
    (a, _), (b, _) = mul.next_functions
    assert a.name() == 'AccumulateGrad' and a.variable is x and b.variable is y
    assert a.next_functions == ()
    with pytest.raises(AttributeError):
        mul.variable
    assert (x * dt.tensor([1., 2.])).grad_fn.next_functions[1] == (None, 0)


def test_nodes_are_equal_by_node():
    x = leaf(1, 2)
    y, z = x * 2, x * 3
    assert y.grad_fn == y.grad_fn and hash(y.grad_fn) == hash(y.grad_fn)
    assert y.grad_fn != z.grad_fn and len({y.grad_fn, y.grad_fn, z.grad_fn}) == 2
    assert autograd.graph.get_gradient_node(x) == y.grad_fn.next_functions[0][0]
    with pytest.raises(TypeError):
        type(y.grad_fn)()


def test_metadata_stays_with_the_node():
    x = leaf(1, 2)
    y = x * 2
    y.grad_fn.metadata['who'] = 'me'
    assert y.grad_fn.metadata == {'who': 'me'}


def test_saved_tensors_are_attributes_of_nodes():
    x, y = leaf(1, 2), leaf(3, 4)
    z = x * y
    assert values(z.grad_fn._saved_self) == [1, 2] and values(z.grad_fn._saved_other) == [3, 4]
    with pytest.raises(AttributeError):
        z.grad_fn._saved_nothing
    x.detach().mul_(2)
    with pytest.raises(RuntimeError, match='changed in place'):
        z.grad_fn._saved_self


def test_node_keeps_graph_alive():
    node = (leaf(1, 2) * leaf(3, 4)).grad_fn
    assert [n.name() for n, _ in node.next_functions] == ['AccumulateGrad'] * 2
    assert values(node._saved_self) == [1, 2]


# ---- saved tensors in other forms ----

def test_saved_tensors_hooks_pack_and_unpack():
    packed, unpacked = [], []

    def pack(t):
        packed.append(t.shape)
        return values(t)

    def unpack(v):
        unpacked.append(v)
        return dt.tensor(v)
    x = leaf(1, 2)
    with autograd.graph.saved_tensors_hooks(pack, unpack):
        y = (x * x).sum()
    z = (x * x).sum()
    assert packed == [(2,), (2,)] and not unpacked
    y.backward()
    assert values(x.grad) == [2, 4] and unpacked == [[1, 2], [1, 2]]
    z.backward()
    assert len(unpacked) == 2


def test_saved_tensors_in_half_precision_and_in_a_file():
    x = leaf(1.5, 2.25)
    half = autograd.graph.saved_tensors_hooks(lambda t: t.half(), lambda t: t.float())
    with half:
        y = (x.exp() * x).sum()
    y.backward()
    assert values(x.grad)[0] == pytest.approx(math.exp(1.5) * 2.5, rel=1e-2)
    with tempfile.TemporaryDirectory() as folder:
        def pack(t):
            path = os.path.join(folder, str(len(os.listdir(folder))))
            with open(path, 'w', encoding='utf-8') as f:
                f.write(repr(values(t)))
            return path

        def unpack(path):
            with open(path, encoding='utf-8') as f:
                return dt.tensor(eval(f.read()))
        x.grad = None
        with autograd.graph.saved_tensors_hooks(pack, unpack):
            y = x.exp().sum()
        assert len(os.listdir(folder)) == 1
        y.backward()
    assert values(x.grad)[0] == pytest.approx(math.exp(1.5), rel=1e-6)


def test_save_on_cpu():
    x = leaf(1, 2)
    with autograd.graph.save_on_cpu():
        y = (x * x).sum()
    y.backward()
    assert values(x.grad) == [2, 4]


def test_exceptions_of_pack_and_unpack_arrive():
    x = leaf(1, 2)

    def fail(_):
        raise LookupError('here')
    with pytest.raises(LookupError, match='here'):
        with autograd.graph.saved_tensors_hooks(fail, fail):
            x * x
    with autograd.graph.saved_tensors_hooks(lambda t: t, fail):
        y = (x * x).sum()
    with pytest.raises(LookupError, match='here'):
        y.backward()
    with autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = (x * x).sum()
    with pytest.raises(TypeError, match='unpack'):
        y.backward()
    with pytest.raises(TypeError):
        with autograd.graph.saved_tensors_hooks(1, 2):
            pass


# ---- checkpoints ----

def test_checkpoint_runs_again_and_gives_the_same_gradients():
    x, w = leaf(1, 2), leaf(3, 4)
    calls = []

    def f(a, more, scale=1):
        calls.append(a.requires_grad)
        return {'out': (a.exp() * more['w'] * scale, 'text')}
    out, text = checkpoint(f, x, {'w': w}, scale=2, use_reentrant=False)['out']
    assert text == 'text' and len(calls) == 1
    out.sum().backward()
    assert len(calls) == 2 and calls[1]
    got = values(x.grad), values(w.grad)
    x.grad = w.grad = None
    (x.exp() * w * 2).sum().backward()
    assert got == (values(x.grad), values(w.grad))


def test_checkpoint_saves_nothing_and_raises_exceptions():
    x = leaf(1, 2)
    saved = []
    with autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        y = checkpoint(lambda a: a.exp().sin().cos(), x)
    assert len(saved) == 1     # the input
    y.sum().backward()
    state = []

    def f(a):
        if state:
            raise ZeroDivisionError('second run')
        state.append(1)
        return a.exp()
    y = checkpoint(f, x)
    with pytest.raises(ZeroDivisionError, match='second run'):
        y.sum().backward()

    def first(a):
        raise KeyError('first run')
    with pytest.raises(KeyError, match='first run'):
        checkpoint(first, x)


def test_checkpoint_repeats_random_numbers():
    x = dt.ones(100).requires_grad_()
    kept = []

    def f(a):
        mask = dt.rand(100)
        kept.append(values(mask))
        return (a * mask).exp()
    checkpoint(f, x).sum().backward()
    assert kept[0] == kept[1]


def test_release_of_a_checkpoint_does_not_wait_for_its_second_run():
    x = dt.ones(4).requires_grad_()
    y = None
    entered, released = threading.Event(), threading.Event()

    def f(a):
        b = a.exp().sin()
        if entered_once:
            entered.set()
            assert released.wait(30)
        entered_once.append(1)
        return b, a.cos().exp()
    entered_once = []
    y, z = checkpoint(f, x)
    t = threading.Thread(target=lambda: y.sum().backward())
    t.start()
    assert entered.wait(30)
    del z       # frees nodes with numbers of the checkpoint that runs
    released.set()
    t.join(30)
    assert not t.is_alive()


# ---- checks ----

def test_gradcheck_accepts_and_refuses():
    x = leaf(0.5, 1.5, dtype=dt.float64)

    class Wrong(autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2, a * 3

        @staticmethod
        def backward(ctx, g, h):
            return g * 2 + h * 3.5
    assert autograd.gradcheck(lambda a: (a.exp(), a * 3), x, check_forward_ad=True)
    assert autograd.gradgradcheck(lambda a: a.exp() * a, (x,))
    assert not autograd.gradcheck(Wrong.apply, x, raise_exception=False)
    with pytest.raises(autograd.GradcheckError, match='output 1'):
        autograd.gradcheck(Wrong.apply, x)
    with pytest.raises(ValueError):
        autograd.gradcheck(lambda a: a, dt.tensor([1.], dtype=dt.float64))

    def fail(a):
        raise OSError('inside')
    with pytest.raises(OSError, match='inside'):
        autograd.gradcheck(fail, x)


def test_gradgradcheck_finds_a_wrong_second_derivative():
    class Cube(autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a ** 3

        @staticmethod
        def backward(ctx, g):
            a, = ctx.saved_tensors
            return g * 3 * a.detach() ** 2
    x = leaf(0.5, 1.5, dtype=dt.float64)
    assert autograd.gradcheck(Cube.apply, x)
    with pytest.raises(RuntimeError):
        autograd.gradgradcheck(Cube.apply, x)


# ---- forward mode ----

def test_dual_tensors():
    x, t = dt.tensor([1., 2.]), dt.tensor([1., 10.])
    with pytest.raises(RuntimeError, match='no level'):
        forward_ad.make_dual(x, t)
    with forward_ad.dual_level():
        d = forward_ad.make_dual(x, t)
        y = d * d
        primal, tangent = forward_ad.unpack_dual(y)
        assert values(primal) == [1, 4] and values(tangent) == [2, 40]
        assert forward_ad.unpack_dual(x).tangent is None
        with pytest.raises(RuntimeError):
            with forward_ad.dual_level():
                pass
        with pytest.raises(ValueError):
            forward_ad.make_dual(x, dt.ones(3))


def test_tangents_are_those_of_a_level():
    x = dt.tensor([1., 2.])
    with pytest.raises(RuntimeError, match='not the last one'):
        forward_ad.exit_dual_level()
    assert forward_ad.enter_dual_level() == 0
    d = forward_ad.make_dual(x, x)
    with pytest.raises(RuntimeError, match='not the last one'):
        forward_ad.exit_dual_level(level=1)
    forward_ad.exit_dual_level(level=0)
    primal, tangent = forward_ad.unpack_dual(d * d)
    assert values(primal) == [1, 4] and tangent is None
    with forward_ad.dual_level():
        assert forward_ad.unpack_dual(primal).tangent is None
        forward_ad.make_dual(primal, x)


def test_functional_jacobian_and_hessian():
    x, y = dt.tensor([1., 2.]), dt.tensor([3., 4.])
    j = functional.jacobian(lambda a: a ** 2, x)
    assert j.shape == (2, 2) and values(j) == [2, 0, 0, 4] and not j.requires_grad
    j = functional.jacobian(lambda a, b: (a * b, a.sum()), (x, y))
    assert values(j[0][1]) == [1, 0, 0, 2] and values(j[1][0]) == [1, 1] and values(j[1][1]) == [0, 0]
    assert values(functional.jacobian(lambda a: a ** 2, x, strategy='forward-mode')) == [2, 0, 0, 4]
    h = functional.hessian(lambda a, b: (a * b).sum() ** 2, (x, y))
    assert values(h[0][0]) == [18, 24, 24, 32] and values(h[0][1]) == [28, 12, 8, 38]
    with pytest.raises(RuntimeError, match='independent'):
        functional.jacobian(lambda a, b: a * 2, (x, y), strict=True)
    with pytest.raises(RuntimeError, match='single element'):
        functional.hessian(lambda a: a * 2, x)
