# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Compares gradients of calls whose results agreed, for the same random incoming gradients."""
import re

import torch

import ambiguous
import boxed
import bridge
from bridge import Call, Unsupported, compare, fit
from replay import copy, flat, how_near, map_tensors, wide


def differentiate(func, args, kwargs, constant=()):
    """PyTorch's results, and the leaves among the arguments except those named constant."""
    leaves = []

    def leaf(t):
        if (t.is_floating_point() or t.is_complex()) and t.numel():
            t = t.detach().requires_grad_()
            leaves.append(t)
        return t
    names = [a.name for a in func._schema.arguments]
    with torch.enable_grad():
        a = [v if n in constant else map_tensors(leaf, v) for n, v in zip(names, copy(args))]
        k = {n: v if n in constant else map_tensors(leaf, v) for n, v in copy(kwargs).items()}
        outs = [o for o in flat([func(*a, **k)]) if isinstance(o, torch.Tensor)]
    return outs, leaves, a, k


def differentiate_some(func, args, kwargs):
    """The same; arguments that PyTorch does not differentiate by are constant."""
    constant = set()
    while True:
        try:
            return *differentiate(func, args, kwargs, constant), constant
        except RuntimeError as e:
            named = re.search("not differentiable with respect to argument '([a-z_0-9]+)'", str(e))
            if not named or named[1] in constant:
                raise
            constant.add(named[1])


def near_grads(func, args, kwargs, constant, wanted, given, gos, refs, grads):
    """how_near() of gradients; None if PyTorch cannot compute them in the wide dtype."""
    try:
        outs, leaves, _, _ = differentiate(func, map_tensors(wide, args), map_tensors(wide, kwargs),
                                           constant)
        turned = ambiguous.turn(func._opname, given, outs, {i: wide(g) for i, g in gos.items()})
        exact = torch.autograd.grad([outs[i] for i in wanted], leaves, [turned[i] for i in wanted],
                                    allow_unused=True)
        there = [i for i, g in enumerate(grads) if g is not None and refs[i] is not None]
        return how_near(*([list_[i] for i in there] for list_ in (exact, refs, grads)))
    except Exception:
        return None


def why_no_gradient(outs, leaves, gos):
    try:
        torch.autograd.grad(outs, leaves, gos, retain_graph=True, allow_unused=True)
    except Exception as e:
        return str(e)[:100]


def backward(lib, tally, calls, tolerance, progress=lambda s: None):
    """Compares the gradients of recorded functional calls."""
    for op, func, args, kwargs, text in calls:
        message, verdict, near = None, bridge.Verdict(), None
        try:
            outs, leaves, a, k, constant = differentiate_some(func, args, kwargs)
            wanted = [i for i, o in enumerate(outs) if o.requires_grad]
        except Exception as e:
            tally.not_applicable(op.name, 'grad', f'PyTorch: {str(e)[:100]}')
            continue
        if not wanted:
            continue
        gen = torch.Generator().manual_seed(1)
        gos = {i: torch.randn(outs[i].shape, dtype=outs[i].dtype, generator=gen) for i in wanted}
        progress('backward of ' + text)
        try:
            call = Call(lib)
            given = fit(op, func, bridge.bind(func, a, k))
            ours = {n: call.value(v) for n, v in given.items()}
            inputs = [call.tensor(t) for t in leaves]
            refused = why_no_gradient([outs[i] for i in wanted], leaves, [gos[i] for i in wanted])
            if refused:
                raise Unsupported(f'PyTorch: {refused}')
            for t in inputs:
                lib.check(lib.so.tensor_set_requires_grad(t.ptr, True))
            rets = [r for r in flat(lib.call(op, ours)) if isinstance(r, boxed.Tensor)]
            # Further results, such as the mean of a norm, have no gradient in libtensor.
            wanted = [i for i in wanted if i < len(rets) and
                      lib.so.tensor_requires_grad(rets[i].ptr)]
            if not wanted:
                raise boxed.Failed(0, 'the result does not require a gradient')
            turned = ambiguous.turn(func._opname, outs, [bridge.look(r) for r in rets], gos)
            refs = torch.autograd.grad([outs[i] for i in wanted], leaves, [gos[i] for i in wanted],
                                       allow_unused=True)
            grads = lib.backward([rets[i] for i in wanted], [Call(lib).tensor(turned[i]) for i in wanted],
                                 inputs)
            if any(r is not None and r.layout is not torch.strided for r in refs):
                raise Unsupported('a gradient that is not strided')
            given = bridge.bind(func, a, k)
            for leaf, r, g in zip(leaves, refs, grads):
                if message:
                    break
                if r is None and g is not None:
                    r = torch.zeros(g.sizes, dtype=bridge.TORCH[g.dtype])
                if g is None and r is not None:
                    message = 'no gradient' if r.count_nonzero() else None
                elif r is not None:
                    message = compare(g, r, tolerance, verdict=verdict).message
                    if message and ambiguous.is_same_gradient(func._opname, given, leaf, bridge.look(g), r):
                        message = None
            if message and message.startswith('values'):
                near = near_grads(func, args, kwargs, constant, wanted, outs, gos, refs, grads)
                message = f'rounding: {message}' if near == 'rounding' else message
        except boxed.Failed as e:
            message = e.text
        except boxed.Unsupported as e:
            tally.not_applicable(op.name, 'grad', e)
            continue
        finally:
            progress('')
        if message and near != 'closer':
            tally.failed(op.name, 'grad', f'{message} -- backward of {text}')
        else:
            tally.passed(op.name, 'grad', verdict, near == 'closer')
