# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Transforms of functions: grad, vjp, jvp, vmap, Jacobians, and their compositions."""
from collections import namedtuple

import pytest

import devtensor as dt
from devtensor import autograd, func
from devtensor.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap


def values(t):
    return [e.item() for e in t.reshape(-1)]


def cube(v):
    return (v ** 3).sum()


A = dt.tensor([1., 2.])
M = dt.tensor([[1., 2.], [3., 4.], [5., 6.]])


# ---- grad ----

def test_grad_and_value():
    g, v = grad_and_value(cube)(A)
    assert values(g) == [3, 12] and v.item() == 9 and not g.requires_grad and not v.requires_grad
    g, (v, aux) = grad_and_value(lambda x: (cube(x), {'twice': x * 2}), has_aux=True)(A)
    assert values(aux['twice']) == [2, 4] and not aux['twice'].requires_grad
    g, aux = grad(lambda x: (cube(x), 'aux'), has_aux=True)(A)
    assert values(g) == [3, 12] and aux == 'aux'
    assert A.grad is None and not A.requires_grad


def test_argnums_and_structures():
    def f(p, x, scale=1):
        return ((p['w'] * x).sum() + p['b'][0]) * scale
    p = {'w': A, 'b': [dt.tensor(3.)]}
    g = grad(f)(p, A, scale=2)
    assert values(g['w']) == [2, 4] and g['b'][0].item() == 2
    gp, gx = grad(f, argnums=(0, 1))(p, A)
    assert values(gx) == [1, 2] and values(gp['w']) == [1, 2]
    assert values(grad(f, argnums=-1)(p, A)) == [1, 2]
    with pytest.raises(RuntimeError):
        grad(f, argnums=5)(p, A)
    with pytest.raises(RuntimeError):
        grad(f, argnums=(0, 0))(p, A)


def test_grad_errors():
    with pytest.raises(RuntimeError, match='scalar'):
        grad(lambda x: x * 2)(A)
    with pytest.raises(RuntimeError, match='tensor'):
        grad(lambda x: 3.0)(A)
    with pytest.raises(ValueError):
        grad(lambda x: x)(3.0)
    with pytest.raises(RuntimeError, match='tuple'):
        grad(cube, has_aux=True)(A)

    def fail(x):
        raise KeyError('inside')
    for transform in (grad, vmap, jacrev, jacfwd, hessian):
        with pytest.raises(KeyError, match='inside'):
            transform(fail)(A)
    assert func._state.reverse == 0 and func._state.tracked == 0


def test_an_independent_input_has_zeros():
    assert values(grad(lambda x: dt.ones(()) * 2)(A)) == [0, 0]
    assert values(grad(lambda x, y: y.sum())(A, A)) == [0, 0]


def test_grad_under_no_grad_and_around_autograd():
    with dt.no_grad():
        assert values(grad(cube)(A)) == [3, 12]
    x = dt.tensor([1., 2.], requires_grad=True)
    g = grad(cube)(x)
    assert g.requires_grad
    g.sum().backward()
    assert values(x.grad) == [6, 12]
    w = dt.tensor([1., 2.], requires_grad=True)
    g = grad(lambda v: (v * w).sum() ** 2)(A)
    g.sum().backward()
    assert values(w.grad) == [16, 22]


def test_nested_grad():
    f = lambda v: v ** 4    # noqa: E731
    x = dt.tensor(2.)
    assert grad(f)(x).item() == 32 and grad(grad(f))(x).item() == 48 and grad(grad(grad(f)))(x).item() == 48
    # derivatives with respect to different variables do not mix
    assert grad(lambda x: x * grad(lambda y: x * y)(dt.tensor(3.)))(x).item() == 4


# ---- vjp and jvp ----

def test_vjp():
    out, pull = vjp(lambda x, y: {'p': x * y, 's': x.sum()}, A, A + 2)
    assert values(out['p']) == [3, 8] and not out['p'].requires_grad
    gx, gy = pull({'p': A, 's': dt.tensor(10.)})
    assert values(gx) == [13, 18] and values(gy) == [1, 4]
    assert values(pull({'p': A, 's': dt.tensor(0.)})[0]) == [3, 8]
    with pytest.raises(RuntimeError):
        pull({'p': dt.ones(3), 's': dt.tensor(1.)})
    out, pull, aux = vjp(lambda x: (x * 2, 'aux'), A, has_aux=True)
    assert aux == 'aux' and values(pull(A)[0]) == [2, 4]


def test_jvp():
    out, t = jvp(lambda x, y: (x * y, x.reshape(1, 2)), (A, A), (dt.ones(2), dt.zeros(2)))
    assert values(out[0]) == [1, 4] and values(t[0]) == [1, 2] and values(t[1]) == [1, 1]
    out, t = jvp(lambda x: dt.ones(3), (A,), (A,))
    assert values(t) == [0, 0, 0]
    with pytest.raises(RuntimeError):
        jvp(lambda x: dt.ones(3), (A,), (A,), strict=True)
    with pytest.raises(RuntimeError):
        jvp(cube, A, A)
    assert jvp(lambda x: (cube(x), x), (A,), (A,), has_aux=True)[1].item() == 27


def test_nested_jvp_and_mixtures():
    second = jvp(lambda u: jvp(cube, (u,), (A,))[1], (A,), (A,))
    assert second[0].item() == 27 and second[1].item() == 54
    out, t = jvp(grad(cube), (A,), (A,))
    assert values(out) == [3, 12] and values(t) == [6, 24]
    assert values(grad(lambda x: jvp(cube, (x,), (A,))[1])(A)) == [6, 24]


# ---- vmap ----

def test_vmap_dims_and_structures():
    assert values(vmap(lambda r: r.sum())(M)) == [3, 7, 11]
    assert values(vmap(lambda r: r.sum(), in_dims=1)(M)) == [9, 12]
    assert values(vmap(lambda r: r.sum(), in_dims=-1)(M)) == [9, 12]
    out = vmap(lambda d, c: {'a': d['x'] * c, 'b': (d['y'] + c,)}, in_dims=({'x': 0, 'y': None}, None),
               out_dims={'a': 1, 'b': 0})({'x': M, 'y': A}, A)
    assert out['a'].shape == (2, 3) and values(out['a']) == [1, 3, 5, 4, 8, 12]
    assert out['b'][0].shape == (3, 2) and values(out['b'][0]) == [2, 4] * 3
    Pair = namedtuple('Pair', 'a b')
    out = vmap(lambda p: Pair(p.a + p.b, p.a))(Pair(M, M))
    assert isinstance(out, Pair) and values(out.a) == [2, 4, 6, 8, 10, 12]
    assert values(vmap(vmap(lambda x: x * 2))(M)) == [2, 4, 6, 8, 10, 12]
    assert values(vmap(lambda x, k=1: x * k)(A, k=3)) == [3, 6]
    assert vmap(lambda r: (r.sum(), dt.ones(2)), out_dims=(0, None))(M)[1].shape == (2,)


def test_vmap_chunks_give_the_same():
    f = lambda r: (r.outer(r), r.sum())     # noqa: E731
    whole, parts = vmap(f, out_dims=(1, 0))(M), vmap(f, out_dims=(1, 0), chunk_size=2)(M)
    assert values(whole[0]) == values(parts[0]) and values(whole[1]) == values(parts[1])


def test_vmap_randomness():
    with pytest.raises((RuntimeError, ValueError)):
        vmap(lambda r: r + dt.rand(2))(M)
    same = vmap(lambda r: dt.rand(1) + 0 * r[:1], randomness='same')(M)
    other = vmap(lambda r: dt.rand(1) + 0 * r[:1], randomness='different')(M)
    assert len(set(values(same))) == 1 and len(set(values(other))) == 3
    with pytest.raises(RuntimeError):
        vmap(lambda r: r, randomness='sometimes')


@pytest.mark.parametrize('call', [
    lambda: vmap(lambda r: 3)(M), lambda: vmap(lambda a, b: a)(M, A), lambda: vmap(lambda a: a)(3.0),
    lambda: vmap(lambda a: a)(), lambda: vmap(lambda a: a, in_dims=5)(M), lambda: vmap(lambda a: a, in_dims=(0, 0))(M),
    lambda: vmap(lambda a: a, in_dims=None)(M), lambda: vmap(lambda a: a, out_dims=7)(M),
    lambda: vmap(lambda a: a, out_dims=(0, 0))(M), lambda: vmap(lambda a: a, out_dims=None)(M),
    lambda: vmap(lambda a: a, in_dims='x')(M), lambda: vmap(lambda a: a, chunk_size=0)(M),
    lambda: vmap(lambda a: a)(dt.ones(0, 2))])
def test_vmap_errors(call):
    with pytest.raises((ValueError, TypeError)):
        call()


def test_samples_cannot_leave_vmap():
    kept = []
    vmap(lambda r: kept.append(r) or r * 2)(M)
    with pytest.raises(Exception):
        kept[0] * 2
    assert values(M * 2) == [2, 4, 6, 8, 10, 12]


# ---- compositions ----

def test_per_sample_gradients():
    w = A
    g = vmap(grad(lambda w, x: ((w * x).sum() - 1) ** 2), in_dims=(None, 0))(w, M)
    expected = []
    for i in range(3):
        expected += values(grad(lambda w: ((w * M[i]).sum() - 1) ** 2)(w))
    assert values(g) == expected and not g.requires_grad


def test_grad_of_vmap_and_histories():
    assert values(grad(lambda m: vmap(lambda r: (r * r).sum())(m).sum())(M)) == [2, 4, 6, 8, 10, 12]
    w = dt.tensor([1., 2.], requires_grad=True)
    vmap(grad(lambda x: (x * w).sum() ** 2))(M[:2]).sum().backward()
    assert values(w.grad) == [56, 68]
    m = M.detach().requires_grad_()
    vmap(grad(cube))(m).sum().backward()
    assert values(m.grad) == [6, 12, 18, 24, 30, 36]
    assert values(vmap(grad(grad(lambda x: x ** 3)))(A)) == [6, 12]
    assert values(grad(lambda x: vmap(grad(lambda r: r ** 3))(x).sum())(A)) == [6, 12]


def test_jacobians():
    f = lambda x, y: (x * y, (x ** 2).sum())    # noqa: E731
    for jac in (jacrev, jacfwd):
        j = jac(f)(A, A + 2)
        assert values(j[0]) == [3, 0, 0, 4] and values(j[1]) == [2, 4]
        j = jac(f, argnums=(0, 1))(A, A + 2)
        assert values(j[0][1]) == [1, 0, 0, 2] and values(j[1][1]) == [0, 0]
        j, aux = jac(lambda x: (x * 2, x + 1), has_aux=True)(A)
        assert values(j) == [2, 0, 0, 2]
        assert jac(lambda x: x.reshape(2, 1).exp().reshape(1, 2, 1))(A).shape == (1, 2, 1, 2)
        assert values(jac(lambda d: d['a'] * 2)({'a': A})['a']) == [2, 0, 0, 2]
    assert values(jacrev(lambda x: x ** 2, chunk_size=1)(A)) == [2, 0, 0, 4]


def test_jacobians_of_composite_operators_agree():
    """Forward mode inside of vmap goes through operators that consist of others."""
    def f(x):
        y = x.reshape(2, 3).flatten().outer(x)
        return dt.linear(y, y.softmax(0)).reshape(-1).cumsum(0).unflatten(0, (6, 6)).std(1)
    x = dt.linspace(0.1, 1.3, 6, dtype=dt.float64)
    assert values(jacfwd(f)(x)) == pytest.approx(values(jacrev(f)(x)), rel=1e-9)
    both = vmap(jacfwd(f))(dt.stack([x, x * 2])), vmap(jacrev(f))(dt.stack([x, x * 2]))
    assert values(both[0]) == pytest.approx(values(both[1]), rel=1e-9)


def test_hessians():
    expected = [6, 0, 0, 12]
    assert values(hessian(cube)(A)) == expected
    for outer in (jacrev, jacfwd):
        for inner in (jacrev, jacfwd):
            assert values(outer(inner(cube))(A)) == expected, (outer, inner)
    h = hessian(lambda d: (d['a'] * d['b']).sum() ** 2)({'a': A, 'b': A + 2})
    assert values(h['a']['b']) == [28, 12, 8, 38]
    assert values(vmap(hessian(lambda x: (x ** 3).sum()))(M[:2])) == [6, 0, 0, 12, 18, 0, 0, 24]


def test_functions_and_checkpoints_inside_of_transforms():
    class Square(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0]
    assert values(grad(lambda x: Square.apply(x).sum())(A)) == [2, 4]
    assert values(grad(lambda x: grad(lambda y: Square.apply(y).sum())(x).sum())(A)) == [2, 2]
    assert values(vmap(grad(lambda x: Square.apply(x).sum()))(M)) == [2, 4, 6, 8, 10, 12]
    assert values(jacrev(Square.apply)(A)) == [2, 0, 0, 4]
