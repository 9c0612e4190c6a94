# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Compares gradients of calls whose results agreed, for the same random incoming gradients."""
import re

import torch

import ambiguous
import boxed
import bridge
from bridge import Call, Unsupported, compare, fit
from replay import CPU_FAILS, copy, flat, how_near, map_tensors, wide


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


class NotComparable(Exception):
    """PyTorch or boxed calls cannot express the gradient."""


def difference(lib, op, func, args, kwargs, tolerance, begin):
    """(message or None, verdict, near) of the gradients of a call; None if nothing requires a gradient. begin() is called
    before libtensor's part."""
    try:
        outs, leaves, a, k, constant = differentiate_some(func, args, kwargs)
        wanted = [i for i, o in enumerate(outs) if o.requires_grad]
    except Exception as e:
        raise NotComparable(f'PyTorch: {str(e)[:100]}')
    if not wanted:
        return None
    gen = torch.Generator().manual_seed(1)
    gos = {i: torch.randn(outs[i].shape, dtype=outs[i].dtype, generator=gen) for i in wanted}
    begin()
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
    wanted = [i for i in wanted if i < len(rets) and lib.so.tensor_requires_grad(rets[i].ptr)]
    if not wanted:
        raise boxed.Failed(0, 'the result does not require a gradient')
    turned = ambiguous.turn(func._opname, outs, [bridge.look(r) for r in rets], gos)
    refs = torch.autograd.grad([outs[i] for i in wanted], leaves, [gos[i] for i in wanted], allow_unused=True)
    grads = lib.backward([rets[i] for i in wanted], [Call(lib).tensor(turned[i]) for i in wanted], inputs)
    if any(r is not None and r.layout is not torch.strided for r in refs):
        raise Unsupported('a gradient that is not strided')
    message, verdict = compare_all(func, bridge.bind(func, a, k), leaves, refs, grads, tolerance)
    near = None
    if message and message.startswith('values'):
        near = near_grads(func, args, kwargs, constant, wanted, outs, gos, refs, grads)
        message = f'rounding: {message}' if near == 'rounding' else message
    return message, verdict, near


def compare_all(func, given, leaves, refs, grads, tolerance):
    """The first difference of the gradients or None, and the verdict."""
    verdict = bridge.Verdict()
    for leaf, r, g in zip(leaves, refs, grads):
        message = None
        if r is None and g is not None:
            r = torch.zeros(g.sizes, dtype=bridge.TORCH[g.dtype])
        if g is None and r is not None:
            message = 'no gradient' if r.count_nonzero() else None
        elif r is not None:
            message = compare(g, r, tolerance, verdict=verdict).message
            if message and ambiguous.is_same_gradient(func._opname, given, leaf, bridge.look(g), r):
                message = None
        if message:
            return message, verdict
    return None, verdict


def attempt(lib, call, tolerance, begin=lambda: None):
    """difference(), with a failed call as a message."""
    op, func, args, kwargs, _ = call
    try:
        return difference(lib, op, func, args, kwargs, tolerance, begin)
    except boxed.Failed as e:
        return e.text, None, None


def host_fails(lib, call, tolerance):
    try:
        message, _, near = attempt(lib, call, tolerance)
        return message and near != 'closer'
    except (boxed.Unsupported, NotComparable):
        return True


def backward(lib, tally, calls, tolerance, progress):
    """Compares the gradients of recorded functional calls."""
    for call in calls:
        op, text = call[0], call[-1]
        crash, before = progress.crashed_before('backward of ' + text), lib.fallbacks()
        if crash:
            tally.failed(op.name, 'grad', f'CRASH, {crash} -- backward of {text}')
            continue
        try:
            found = attempt(lib, call, tolerance, lambda: progress.begin('backward of ' + text))
        except (boxed.Unsupported, NotComparable) as e:
            tally.not_applicable(op.name, 'grad', e)
            continue
        finally:
            progress.end()
        if found is None:
            continue
        message, verdict, near = found
        if not message or near == 'closer':
            tally.passed(op.name, 'grad', verdict, near == 'closer', lib.fallbacks() > before)
        elif not lib.is_host and host_fails(lib.on_host(), call, tolerance):
            tally.not_applicable(op.name, 'grad', CPU_FAILS)
        else:
            tally.failed(op.name, 'grad', f'{message} -- backward of {text}')
