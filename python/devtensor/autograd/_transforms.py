# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Functions of the program under vmap and in forward mode.

A tensor with a tangent comes first: the tangent belongs to the tensor that the caller sees. Samples come next, and
their batches may have histories and tangents of their own, which belong to the caller of vmap.
"""
import threading
from collections import namedtuple

from devtensor import _C, _levels, _tree
from devtensor.autograd.function import Function, FunctionCtx
from devtensor.autograd.grad_mode import set_grad_enabled

Tensor = _C.Tensor
VmapInfo = namedtuple('VmapInfo', ['batch_size', 'randomness'])


class _Caller(threading.local):
    recording = True  # whether the caller of apply() records


_caller = _Caller()


def _has(cls, name):
    """True if the class has a function of its own."""
    return getattr(cls, name) is not getattr(Function, name)


def _has_rule(cls):
    return cls.generate_vmap_rule or _has(cls, 'vmap')


def call_transformed(cls, args):
    """cls.apply(*args) for arguments of which one is a sample or has a tangent."""
    if any(isinstance(a, Tensor) and _C._tangent(a) is not None for a in args):
        return _call_dual(cls, args)
    level = _levels.innermost()
    if level is None or not _has_rule(cls) or not any(map(_C._is_batched, args)):
        return _C._function_apply(cls, *args)[0]
    if _C.is_grad_enabled() and any(isinstance(a, Tensor) and a.requires_grad for a in args):
        return _apply_on_samples(cls, args)[0]
    return _call_batched(cls, args, level)


def _as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


# ---- forward mode ----

def _has_tangent(ctx, output, i):
    """False for output i if it is no tensor, has integers, or was marked as non-differentiable."""
    return (isinstance(output, Tensor) and (output.dtype.is_floating_point or output.dtype.is_complex) and
            not ctx._is_marked(i))


def _call_dual(cls, args):
    if not _has(cls, 'jvp'):
        cls.jvp(None)
    tangents = [_C._tangent(a) if isinstance(a, Tensor) else None for a in args]
    primals = [a if t is None else _C._primal(a) for a, t in zip(args, tangents)]
    batched = _levels.innermost() and _has_rule(cls) and any(map(_C._is_batched, primals))
    result, ctx = _apply_on_samples(cls, primals) if batched else _C._function_apply(cls, *primals)
    outputs = _as_tuple(result)
    if any(o is p for o in outputs for p in primals if isinstance(o, Tensor)):
        raise RuntimeError(f'{cls.__name__}: an input that has a tangent cannot be changed in place')
    if ctx.materialize_grads:
        tangents = [_C.zeros_like(p) if t is None and isinstance(p, Tensor) else t for p, t in zip(primals, tangents)]
    try:
        found = _as_tuple(cls.jvp(ctx, *tangents))
    finally:
        ctx._end_forward()
    if len(found) != len(outputs):
        raise RuntimeError(f'{cls.__name__}.jvp returned an incorrect number of tangents '
                           f'(expected {len(outputs)}, got {len(found)})')
    for i, (o, t) in enumerate(zip(outputs, found)):
        if not isinstance(t, Tensor if _has_tangent(ctx, o, i) else type(None)):
            raise RuntimeError(f'{cls.__name__}.jvp: tangent {i} is {type(t).__name__} for an output of type '
                               f'{type(o).__name__}' + ' without a tangent' * isinstance(t, Tensor))
    outputs = tuple(o if t is None else _C._make_dual(o, t) for o, t in zip(outputs, found))
    return outputs if isinstance(result, tuple) else outputs[0]


# ---- vmap ----

def _check_rules(cls):
    if cls.generate_vmap_rule and _has(cls, 'vmap'):
        raise RuntimeError(f'You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an '
                           'overridden vmap staticmethod')
    if not _has(cls, 'setup_context'):
        raise RuntimeError(f'{cls.__name__}: to be used with vmap, a Function must override the setup_context '
                           'staticmethod')


def _call_batched(cls, args, level):
    """The vmap rule of cls on the batches, outside of the level."""
    _check_rules(cls)
    batches, dims = _levels.unwrap(level, args)
    with _levels.suspended(level) as outside:
        if not outside:
            return _C._function_apply(cls, *args)[0]
        if not any(d is not None for d in dims):
            return cls.apply(*args)
        info = VmapInfo(level.size, level.randomness)
        if cls.generate_vmap_rule:
            made = Call(cls, tuple(dims), info)
            found = Vmapped.apply(made, *batches), made.out_dims
        else:
            found = cls.vmap(info, tuple(dims), *batches)
    if not isinstance(found, tuple) or len(found) != 2:
        raise RuntimeError('Expected the vmap staticmethod to have two returns, an output and out_dims with pytree '
                           f'structure compatible with the output. Got {type(found).__name__}')
    outputs, structure = _tree.flatten(found[0])
    dims = _tree.broadcast_prefix(found[1], found[0], f'{cls.__name__}.vmap: out_dims')
    return _tree.unflatten(_levels.wrap(level, outputs, dims), structure)


def _on_samples(cls):
    """A Function that is recorded for the samples, with the setup_context and backward of cls; its forward is the rule
    of cls. It is kept in the class."""
    found = cls.__dict__.get('_devtensor_on_samples')
    if found is None:
        _check_rules(cls)

        def forward(*args):
            # The batch is recorded as well: a tensor outside of vmap may require its gradient.
            with set_grad_enabled(_caller.recording):
                return _call_batched(cls, args, _levels.innermost())

        found = type(cls.__name__, (Function,), {
            'forward': staticmethod(forward), 'setup_context': staticmethod(cls.setup_context),
            'backward': staticmethod(cls.backward), '_records_batch': True})
        cls._devtensor_on_samples = found
    return found


def _apply_on_samples(cls, args):
    before, _caller.recording = _caller.recording, _C.is_grad_enabled()
    try:
        return _C._function_apply(_on_samples(cls), *args)
    finally:
        _caller.recording = before


# ---- generated rules ----

class Call:
    """A call of a Function on batches: in_dims of the arguments are 0, or None for one without a batch."""

    def __init__(self, cls, in_dims, info):
        self.cls, self.in_dims, self.info = cls, in_dims, info
        self.out_dims = self.saved_dims = self.forward_dims = self.shapes = self.single = None

    def run(self, function, *groups):
        """function(*samples of each group) in a level of its own: the batches of its results with their dimensions."""
        with _levels.entered(*self.info) as level:
            given = [_levels.wrap(level, values, dims) for values, dims in groups]
            result = function(*given)
            return result, *_levels.unwrap(level, _as_tuple(result))


class _Context:
    """The ctx of the samples: attributes are those of the ctx of the batches, saved tensors are samples."""

    def __init__(self, ctx, saved=()):
        self.__dict__.update(_ctx=ctx, saved_tensors=tuple(saved))

    def __getattr__(self, name):
        return getattr(self._ctx, name)

    def __setattr__(self, name, value):
        setattr(self._ctx, name, value)

    @property
    def needs_input_grad(self):
        return self._ctx.needs_input_grad[1:]


class _ForwardContext(_Context):
    """Notes what setup_context saves and marks; batches are those of the samples in `known`."""

    def __init__(self, ctx):
        super().__init__(ctx)
        self.__dict__.update(kept=[], for_forward=[], constant=())

    def save_for_backward(self, *tensors):
        self.__dict__['kept'] = tensors

    def save_for_forward(self, *tensors):
        self.__dict__['for_forward'] = tensors

    def mark_non_differentiable(self, *tensors):
        self.__dict__['constant'] = tensors

    def mark_dirty(self, *tensors):
        raise RuntimeError('generate_vmap_rule: a Function that changes its inputs in place needs a vmap staticmethod')


class _Batches:
    """Batches of samples: that of an argument or of a result is the tensor itself, which has its history."""

    def __init__(self, level, samples, batches, dims):
        self.level = level
        self.known = {id(s): (b, d) for s, b, d in zip(samples, batches, dims) if isinstance(s, Tensor)}

    def of(self, tensors):
        pairs = []
        for t in tensors:
            if id(t) not in self.known:
                batches, dims = _levels.unwrap(self.level, [t])
                self.known[id(t)] = batches[0], dims[0]
            pairs.append(self.known[id(t)])
        return tuple(b for b, _ in pairs), tuple(d for _, d in pairs)


def _reduced(grad, shape):
    """A gradient of a sample in the shape of the argument, which forward may have expanded."""
    return grad.sum_to_size(shape) if grad.shape != shape else grad


class Vmapped(Function):
    """A Function on the samples of its arguments. The first argument is the Call."""

    @staticmethod
    def forward(ctx, call, *args):
        cls = call.cls
        ctx.call = call
        with _levels.entered(*call.info) as level:
            samples = _levels.wrap(level, args, call.in_dims)
            result = cls.forward(*samples)
            results = _as_tuple(result)
            outputs, call.out_dims = _levels.unwrap(level, results)
            inner = _ForwardContext(ctx)
            cls.setup_context(inner, tuple(samples), result)
            batches = _Batches(level, [*samples, *results], [*args, *outputs], [*call.in_dims, *call.out_dims])
            call.shapes = [s.shape if isinstance(s, Tensor) else None for s in samples]
            saved, call.saved_dims = batches.of(inner.kept)
            for_forward, call.forward_dims = batches.of(inner.for_forward)
            constant = batches.of(inner.constant)[0]
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*for_forward)
        ctx.mark_non_differentiable(*constant)
        if isinstance(result, tuple):
            call.out_dims = tuple(call.out_dims)
            return tuple(outputs)
        call.out_dims = call.out_dims[0]
        return outputs[0]

    @staticmethod
    def backward(ctx, *grads):
        call = ctx.call
        out_dims = [d if g is not None else None for g, d in zip(grads, _as_tuple(call.out_dims))]

        def of_samples(saved, given):
            found = _as_tuple(call.cls.backward(_Context(ctx, saved), *given))
            return tuple(g if g is None or s is None else _reduced(g, s) for g, s in zip(found, call.shapes))

        _, found, dims = call.run(of_samples, (ctx.saved_tensors, call.saved_dims), (grads, out_dims))
        result = [None]
        for g, d, wanted in zip(found, dims, call.in_dims):
            if g is not None and d is not None and wanted is None:
                g = g.sum(0)
            elif g is not None and d is None and wanted is not None:
                g = g.expand(call.info.batch_size, *g.shape)
            result.append(g)
        return tuple(result)

    @staticmethod
    def jvp(ctx, _, *tangents):
        call = ctx.call
        in_dims = [d if t is not None else None for t, d in zip(tangents, call.in_dims)]

        def of_samples(saved, given):
            return call.cls.jvp(_Context(ctx, saved), *given)

        result, found, dims = call.run(of_samples, (ctx.saved_tensors, call.forward_dims), (tangents, in_dims))
        found = list(found)
        for i, (t, d, wanted) in enumerate(zip(found, dims, _as_tuple(call.out_dims))):
            if t is not None and d is None and wanted is not None:
                found[i] = t.expand(call.info.batch_size, *t.shape)
            elif t is not None and d is not None and wanted is None:
                raise RuntimeError(f'{call.cls.__name__}.jvp: the tangent of an output that is the same for all '
                                   'samples differs between them')
        return tuple(found) if isinstance(result, tuple) else found[0]


_C._set_function_classes(FunctionCtx, Function.setup_context, call_transformed)
