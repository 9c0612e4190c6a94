#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Functions of the program under vmap and in forward mode, with torch and with devtensor. Run by test_function_rules.py
with an interpreter that has PyTorch. Prints a line for each difference; exit status 1 if there is one."""
import sys

import torch

import devtensor as dt
from peer_hooks import compare, data, plain


def transforms(lib):
    return lib.func if lib is dt else torch.func


def functions(lib):
    """Classes with each kind of rule."""
    Function = lib.autograd.Function

    class Cube(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x ** 3, 3 * x ** 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0], output[1])
            ctx.save_for_forward(inputs[0], output[1])

        @staticmethod
        def backward(ctx, gy, gd):
            x, d = ctx.saved_tensors
            return gy * d + gd * 6 * x

        @staticmethod
        def jvp(ctx, t):
            x, d = ctx.saved_tensors
            return t * d, 6 * x * t

    class Scale(Function):
        """An argument that is no tensor; a shape and a number as attributes."""
        generate_vmap_rule = True

        @staticmethod
        def forward(x, w, factor):
            return (x * w).sum() * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.shape, ctx.factor = tuple(inputs[0].shape), inputs[2]
            ctx.save_for_backward(inputs[0], inputs[1])
            ctx.save_for_forward(inputs[0], inputs[1])

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            assert ctx.shape == tuple(x.shape)
            return g * w * ctx.factor, g * x * ctx.factor if ctx.needs_input_grad[1] else None, None

        @staticmethod
        def jvp(ctx, tx, tw, _):
            x, w = ctx.saved_tensors
            return (tx * w + x * tw).sum() * ctx.factor

    class Outside(Function):
        """A rule of its own, and forward through NumPy, which samples cannot pass."""

        @staticmethod
        def forward(x, dim):
            return lib.as_tensor(x.detach().numpy().cumsum(dim))

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.dim = inputs[1]
            ctx.mark_non_differentiable()

        @staticmethod
        def backward(ctx, g):
            return g.flip(ctx.dim).cumsum(ctx.dim).flip(ctx.dim), None

        @staticmethod
        def vmap(info, in_dims, x, dim):
            assert info.batch_size == x.shape[in_dims[0]] and info.randomness == 'error'
            x = x.movedim(in_dims[0], 0)
            return Outside.apply(x, dim + 1 if dim >= 0 else dim), 0

    class Plain(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx, t):
            return 2 * t * ctx.saved_tensors[0]

    return Cube, Scale, Outside, Plain


def generated_values(lib, log):
    vmap, (cube, scale, *_) = transforms(lib).vmap, functions(lib)
    x, w = data(lib, False), data(lib, False)[0] + 1
    log.append(plain(vmap(cube.apply)(x)))
    log.append(plain(vmap(cube.apply, in_dims=1, out_dims=(1, 0))(x)))
    log.append(plain(vmap(scale.apply, in_dims=(0, None, None))(x, w, 2)))
    log.append(plain(vmap(scale.apply, in_dims=(None, 0, None))(w, x, 2)))
    log.append(plain(vmap(vmap(cube.apply))(x)))


def generated_backward(lib, log):
    vmap, (cube, scale, *_) = transforms(lib).vmap, functions(lib)
    x, w = data(lib), (data(lib, False)[0] + 1).requires_grad_()
    (vmap(cube.apply)(x)[0].sum() + vmap(cube.apply)(x)[1].sum()).backward()
    vmap(scale.apply, in_dims=(0, None, None))(x, w, 3).square().sum().backward()
    log.append(plain([x.grad, w.grad]))


def generated_second_derivative(lib, log):
    vmap, (cube, *_) = transforms(lib).vmap, functions(lib)
    x = data(lib)
    g, = lib.autograd.grad(vmap(cube.apply)(x)[0].sum(), [x], create_graph=True)
    g.sum().backward()
    log.append(plain([g, x.grad]))


def gradients_of_samples(lib, log):
    f, (cube, scale, *_) = transforms(lib), functions(lib)
    x, w = data(lib, False), data(lib, False)[0] + 1
    log.append(plain(f.vmap(f.grad(lambda r: cube.apply(r)[0].sum()))(x)))
    log.append(plain(f.vmap(f.grad(lambda r, v: scale.apply(r, v, 2) ** 2, argnums=1), in_dims=(0, None))(x, w)))
    log.append(plain(f.grad(lambda a: f.vmap(cube.apply)(a)[0].sum())(x)))


def forward_mode(lib, log):
    f, (cube, scale, *_) = transforms(lib), functions(lib)
    x, t, w = data(lib, False), data(lib, False) + 1, data(lib, False)[0] + 1
    log.append(plain(f.jvp(cube.apply, (x,), (t,))))
    log.append(plain(f.jvp(lambda a: scale.apply(a, w, 2), (x[0],), (t[0],))))
    log.append(plain(f.jvp(lambda a: f.vmap(cube.apply)(a), (x,), (t,))))
    log.append(plain(f.jvp(lambda a: f.vmap(scale.apply, in_dims=(0, None, None))(a, w, 2), (x,), (t,))))
    log.append(plain(f.vmap(lambda a, b: f.jvp(cube.apply, (a,), (b,)))(x, t)))


def forward_mode_of_dual_tensors(lib, log):
    fw, (*_, square) = lib.autograd.forward_ad, functions(lib)
    x = data(lib)
    with fw.dual_level():
        out = square.apply(fw.make_dual(x, x.detach() + 1))
        primal, tangent = fw.unpack_dual(out)
        log.append(plain([primal.detach(), tangent.detach()]))
    primal.sum().backward()
    log.append(plain(x.grad))


def jacobians(lib, log):
    f, (cube, *_) = transforms(lib), functions(lib)
    x = data(lib, False)[1] + 1
    log.append(plain(f.jacfwd(lambda a: cube.apply(a)[0])(x)))
    log.append(plain(f.jacrev(lambda a: cube.apply(a)[0])(x)))


def own_rule(lib, log):
    f, (_, _, outside, _) = transforms(lib), functions(lib)
    x = data(lib)
    log.append(plain(f.vmap(outside.apply, in_dims=(0, None))(x.detach(), 0)))
    log.append(plain(f.vmap(outside.apply, in_dims=(1, None), out_dims=1)(x.detach(), -1)))
    f.vmap(outside.apply, in_dims=(0, None))(x, 0).square().sum().backward()
    log.append(plain(x.grad))
    log.append(plain(f.vmap(f.grad(lambda r: outside.apply(r, 0).square().sum()))(x.detach())))
    nested = f.vmap(f.vmap(outside.apply, in_dims=(0, None)), in_dims=(0, None))
    log.append(plain(nested(x.detach().reshape(2, 2, 3), 0)))


def broken(lib, changes, call):
    """A Function with the changed attributes, called by vmap or jvp."""
    members = {'forward': staticmethod(lambda x: x * 2), 'backward': staticmethod(lambda ctx, g: g * 2),
               'setup_context': staticmethod(lambda ctx, inputs, output: None), **changes}
    cls = type('Broken', (lib.autograd.Function,), members)
    x, f = data(lib, False), transforms(lib)
    return f.vmap(cls.apply)(x) if call == 'vmap' else f.jvp(cls.apply, (x,), (x,))


def kind(lib, log, changes, call):
    """Only the class of the exception: texts differ."""
    try:
        log.append(plain(broken(lib, changes, call)))
    except Exception as error:  # noqa: BLE001
        log.append(type(error).__name__)


def both_rules(lib, log):
    kind(lib, log, {'generate_vmap_rule': True, 'vmap': staticmethod(lambda info, dims, x: (x, 0))}, 'vmap')


def one_return_of_the_rule(lib, log):
    kind(lib, log, {'vmap': staticmethod(lambda info, dims, x: x)}, 'vmap')


def rule_raises(lib, log):
    def fail(info, dims, x):
        raise LookupError('own')
    kind(lib, log, {'vmap': staticmethod(fail)}, 'vmap')


def no_jvp(lib, log):
    kind(lib, log, {}, 'jvp')


def jvp_with_the_wrong_number_of_tangents(lib, log):
    kind(lib, log, {'jvp': staticmethod(lambda ctx, t: (t, t))}, 'jvp')


def jvp_without_a_tangent(lib, log):
    kind(lib, log, {'jvp': staticmethod(lambda ctx, t: None)}, 'jvp')


PROGRAMS = [generated_values, generated_backward, generated_second_derivative, gradients_of_samples, forward_mode,
            forward_mode_of_dual_tensors, jacobians, own_rule, both_rules, one_return_of_the_rule, rule_raises, no_jvp,
            jvp_with_the_wrong_number_of_tangents, jvp_without_a_tangent]


if __name__ == '__main__':
    sys.exit(compare(PROGRAMS))
