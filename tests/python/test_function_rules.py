# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Functions of the program under vmap and in forward mode."""
import gc
import weakref

import pytest

import devtensor as dt
from devtensor.autograd import Function, forward_ad
from devtensor.func import grad, jvp, vmap

from memory import live_tensors
from peers import check_peer

X = dt.arange(6, dtype=dt.float64).reshape(3, 2)


def test_rules_do_what_pytorchs_do():
    check_peer('peer_function.py')


class Square(Function):
    generate_vmap_rule = True
    shapes = []

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        Square.shapes.append(inputs[0].shape)
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def backward(ctx, g):
        Square.shapes.append(g.shape)
        return 2 * g * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, t):
        return 2 * t * ctx.saved_tensors[0]


class Own(Square):
    """The rule sees the whole batch."""
    generate_vmap_rule = False
    calls = []

    @staticmethod
    def vmap(info, in_dims, x):
        Own.calls.append((info.batch_size, info.randomness, in_dims, x.shape))
        return Own.apply(x), in_dims[0]


def test_generated_rules_see_samples():
    Square.shapes.clear()
    x = X.clone().requires_grad_()
    vmap(Square.apply)(x).sum().backward()
    assert Square.shapes == [(2,), (2,)] and x.grad.tolist() == (2 * X).tolist()


def test_own_rules_see_the_batch_with_its_dimension_in_front():
    Own.calls.clear()
    out = vmap(Own.apply, in_dims=1, out_dims=1, randomness='same')(X)
    assert Own.calls == [(2, 'same', (0,), (2, 3))] and out.tolist() == (X * X).tolist()
    Own.calls.clear()
    assert Own.apply(X).tolist() == (X * X).tolist() and not Own.calls


def test_an_outer_and_an_inner_gradient_go_through_one_call():
    for cls in Square, Own:
        w = dt.ones([], dtype=dt.float64, requires_grad=True)
        # d/dw of the sum over samples of d/dx (w x)^2 = 2 w^2 x: 4 w x summed.
        vmap(grad(lambda r, v: cls.apply(r * v).sum()), in_dims=(0, None))(X, w).sum().backward()
        assert w.grad.item() == pytest.approx(4 * X.sum().item())


def test_random_numbers_of_a_rule_are_those_of_the_caller():
    class Noise(Square):
        generate_vmap_rule = False

        @staticmethod
        def vmap(info, in_dims, x):
            return x + dt.rand(x.shape, dtype=x.dtype), 0

    assert len(set(vmap(Noise.apply)(dt.zeros(4, dtype=dt.float64)).tolist())) == 4


def test_samples_without_a_rule_go_through_forward():
    class Plain(Function):
        @staticmethod
        def forward(ctx, x):
            assert x.shape == (2,)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    assert vmap(Plain.apply)(X).tolist() == (2 * X).tolist()
    assert vmap(grad(lambda r: Plain.apply(r).sum()))(X).tolist() == [[2, 2]] * 3


def test_jvp_finds_only_what_was_saved_for_it():
    class Saved(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def jvp(ctx, t):
            return ctx.saved_tensors[0] * t

    with pytest.raises(RuntimeError, match='save_for_forward'):
        jvp(Saved.apply, (X,), (X,))


def test_tangents_that_are_not_given_are_zeros_or_none():
    seen = []

    class Two(Function):
        materialize = True

        @staticmethod
        def forward(ctx, x, y, n):
            ctx.set_materialize_grads(Two.materialize)
            return x * n + y, n

        @staticmethod
        def jvp(ctx, tx, ty, tn):
            seen.append([None if t is None else t.tolist() for t in (tx, ty, tn)])
            return tx * 3, None

    for Two.materialize in True, False:
        with forward_ad.dual_level():
            out, n = Two.apply(forward_ad.make_dual(X[0], X[1]), X[2], 3)
            assert n == 3 and forward_ad.unpack_dual(out).tangent.tolist() == [6, 9]
    assert seen == [[[2, 3], [0, 0], None], [[2, 3], None, None]]


@pytest.mark.parametrize('rule', [False, True])
def test_outputs_without_a_tangent(rule):
    class Largest(Function):
        generate_vmap_rule = rule

        @staticmethod
        def forward(x, tangents):
            value, index = x.max(dim=0)
            return value, index, value * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_forward(output[1])
            ctx.mark_non_differentiable(output[2])
            ctx.tangents = inputs[1]

        @staticmethod
        def jvp(ctx, t, _):
            index, = ctx.saved_tensors
            return t.gather(0, index.unsqueeze(0)).squeeze(0), *(ctx.tangents or (None, None))

    x, t = dt.tensor([[1., 5.], [4., 2.]]), dt.tensor([[10., 20.], [30., 40.]])
    with forward_ad.dual_level():
        made = Largest.apply(forward_ad.make_dual(x, t), None)
        value, index, twice = (forward_ad.unpack_dual(o) for o in made)
        assert value.tangent.tolist() == [30, 20] and index.primal.tolist() == [1, 0]
        assert index.tangent is None and twice.tangent is None and twice.primal.tolist() == [8, 10]
        made = vmap(Largest.apply, in_dims=(1, None))(forward_ad.make_dual(x, t), None)
        value, index, twice = (forward_ad.unpack_dual(o).tangent for o in made)
        assert value.tolist() == [30, 20] and index is None
        assert twice is None or not rule  # operators see the tangents of samples
        for tangents in (dt.tensor([0, 0]), None), (None, t[0]), (None, 1):
            with pytest.raises(RuntimeError, match='tangent [12] is'):
                Largest.apply(forward_ad.make_dual(x, t), tangents)


def test_an_input_with_a_tangent_is_not_changed_in_place():
    class Inplace(Square):
        @staticmethod
        def forward(x):
            return x.mul_(2)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_dirty(inputs[0])

    with forward_ad.dual_level(), pytest.raises(RuntimeError, match='in place'):
        Inplace.apply(forward_ad.make_dual(X.clone(), X))
    with pytest.raises(RuntimeError, match='vmap staticmethod'):
        vmap(Inplace.apply)(X.clone())


def test_an_exception_in_a_rule_leaves_no_level():
    class Fails(Square):
        @staticmethod
        def setup_context(ctx, inputs, output):
            raise LookupError('own')

    with pytest.raises(LookupError):
        vmap(Fails.apply)(X)
    without = {'generate_vmap_rule': True, 'forward': staticmethod(lambda ctx, x: x)}
    with pytest.raises(RuntimeError, match='setup_context'):
        vmap(type('Without', (Function,), without).apply)(X)
    assert dt.rand(3).shape == (3,) and vmap(Square.apply)(X).tolist() == (X * X).tolist()


def test_calls_keep_nothing():
    def calls():
        x = X.clone().requires_grad_()
        vmap(Square.apply)(x).sum().backward()
        vmap(grad(lambda r: Own.apply(r).sum()))(X)
        jvp(vmap(Square.apply), (X,), (X,))

    calls()
    gc.collect()
    before = live_tensors()
    for _ in range(20):
        calls()
    gc.collect()
    assert live_tensors() == before


def test_a_class_is_collected():
    def class_that_was_used():
        cls = type('Local', (Own,), {'vmap': staticmethod(lambda info, dims, x: (x * x, 0))})
        vmap(grad(lambda r: cls.apply(r).sum()))(X)
        return weakref.ref(cls)

    found = class_that_was_used()
    gc.collect()
    assert found() is None
