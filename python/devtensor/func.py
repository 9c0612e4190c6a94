# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Functions that transform functions of tensors: grad, vjp, jvp, vmap, jacobians. They compose, and work around and
inside of autograd: a result has a history if an argument, or a tensor that the function reads, requires a gradient."""
import functools
import threading

from devtensor import _C, _levels, _tree
from devtensor import autograd
from devtensor.autograd import enable_grad

__all__ = ['grad', 'grad_and_value', 'hessian', 'jacfwd', 'jacrev', 'jvp', 'vjp', 'vmap']

Tensor = _C.Tensor


class _State(threading.local):
    reverse = 0  # reverse-mode transforms that run, outermost to innermost
    tracked = 0  # vmap calls with an input that requires a gradient


_state = _State()


class _reverse:
    """While the function of a reverse-mode transform runs."""

    def __enter__(self):
        _state.reverse += 1

    def __exit__(self, *exception):
        _state.reverse -= 1


# ---- arguments ----

def _check_tensors(leaves, what):
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ValueError(f'{what}: expected tensors, got {type(leaf).__name__}')
    return leaves


def _select(args, argnums, what):
    """The arguments that are differentiated as (indices, structure, leaves)."""
    nums = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    indices = []
    for n in nums:
        if not isinstance(n, int) or not -len(args) <= n < len(args):
            raise RuntimeError(f'{what}: argnum {n!r} with {len(args)} arguments')
        indices.append(n % len(args))
    if len(set(indices)) != len(indices) or not indices:
        raise RuntimeError(f'{what}: argnums {argnums!r}')
    chosen = args[indices[0]] if isinstance(argnums, int) else tuple(args[i] for i in indices)
    leaves, structure = _tree.flatten(chosen)
    return indices, structure, _check_tensors(leaves, what)


def _replace(args, argnums, indices, structure, leaves):
    args = list(args)
    chosen = _tree.unflatten(leaves, structure)
    for i, value in zip(indices, (chosen,) if isinstance(argnums, int) else chosen):
        args[i] = value
    return args


def _fresh(t):
    """A tensor for differentiation: connected to t if t requires a gradient."""
    a = _C._alias(t)
    return a if a.requires_grad else a.requires_grad_()


def _split_aux(result, has_aux, what):
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(f'{what}: with has_aux the function must return a tuple (output, aux)')
    return result


# ---- whether results are differentiated again ----

def _recorded(recording, originals, outputs, fresh):
    """Whether a derivative must have a history: it is differentiated by an outer transform, or depends on a tensor that
    requires a gradient."""
    if not recording:
        return False
    if _state.reverse or _state.tracked or any(t.requires_grad for t in originals):
        return True
    return _C._has_other_leaves(tuple(outputs), tuple(fresh))


def _plain(tree, recorded):
    """Results without the history that leads to the tensors of the transform alone."""
    if recorded:
        return tree
    return _tree.tree_map(lambda t: t.detach() if isinstance(t, Tensor) and t.requires_grad and _C._tangent(t) is None
                          else t, tree)


def _gradients(outputs, inputs, cotangents, create, retain=None):
    """Gradients of those outputs that have a graph; zeros where there is none."""
    pairs = [(o, c) for o, c in zip(outputs, cotangents) if o.requires_grad]
    if not pairs:
        return [_C.zeros_like(t) for t in inputs]
    found = autograd.grad([o for o, _ in pairs], inputs, [c for _, c in pairs], retain_graph=retain,
                          create_graph=create, allow_unused=True)
    return [_C.zeros_like(t) if g is None else g for t, g in zip(inputs, found)]


# ---- reverse mode ----

def grad_and_value(func, argnums=0, has_aux=False):
    """A function that returns (gradient, value) of func, which returns a tensor with one element; (gradient, (value,
    aux)) with has_aux. The gradient has the structure of the argument argnums, or of a tuple of arguments."""
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        recording = _C.is_grad_enabled()
        indices, structure, leaves = _select(args, argnums, 'grad')
        with enable_grad():
            fresh = [_fresh(t) for t in leaves]
            with _reverse():
                result = func(*_replace(args, argnums, indices, structure, fresh), **kwargs)
            value, aux = _split_aux(result, has_aux, 'grad')
            if not isinstance(value, Tensor):
                raise RuntimeError('Expected the function given to grad to return a tensor, got '
                                   f'{type(value).__name__}')
            if value.dim() and value.numel() != 1 or not value.dtype.is_floating_point:
                raise RuntimeError('Expected the function given to grad to return a scalar tensor of a floating '
                                   f'dtype, got shape {value.shape}, {value.dtype}')
            create = _recorded(recording, leaves, [value], fresh)
            grads = _gradients([value], fresh, [_C.ones_like(value)], create)
        grads = _tree.unflatten(grads, structure)
        value, aux = _plain(value, create), _plain(aux, create)
        return grads, ((value, aux) if has_aux else value)
    return wrapper


def grad(func, argnums=0, has_aux=False):
    """A function that returns the gradient of func, which returns a tensor with one element; (gradient, aux) with
    has_aux."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient
    return wrapper


def vjp(func, *primals, has_aux=False):
    """Returns (output, vjp_fn), and aux with has_aux. vjp_fn(cotangents), which have the structure of output, returns
    the products with the Jacobian: a tuple with the structure of primals. It may be called several times."""
    recording = _C.is_grad_enabled()
    leaves, structure = _tree.flatten(primals)
    _check_tensors(leaves, 'vjp')
    with enable_grad():
        fresh = [_fresh(t) for t in leaves]
        with _reverse():
            output, aux = _split_aux(func(*_tree.unflatten(fresh, structure)), has_aux, 'vjp')
    outputs, shape = _tree.flatten(output)
    _check_tensors(outputs, 'vjp: the function must return tensors')
    create = _recorded(recording, leaves, outputs, fresh)

    def vjp_fn(*cotangents):
        if len(cotangents) != 1:
            cotangents = (tuple(cotangents),)
        given, given_shape = _tree.flatten(cotangents[0])
        if len(given) != len(outputs):
            raise RuntimeError(f'vjp: {len(outputs)} outputs and {len(given)} cotangents')
        _check_tensors(given, 'vjp: cotangents')
        again = create or (_C.is_grad_enabled() and (bool(_state.reverse) or any(t.requires_grad for t in given)))
        with enable_grad():
            return _tree.unflatten(_gradients(outputs, fresh, given, again, retain=True), structure)

    output = _plain(output, create)
    return (output, vjp_fn, _plain(aux, create)) if has_aux else (output, vjp_fn)


# ---- forward mode ----

def _jvp_by_reverse(outputs, inputs, tangents):
    """J t as the derivative of J^T u, which is linear in u: for tensors that have a tangent of an outer jvp already."""
    u = [_C.ones_like(o).requires_grad_() for o in outputs]
    g = _gradients(outputs, inputs, u, True)
    pairs = [(a, t) for a, t in zip(g, tangents) if a.requires_grad]
    if not pairs:
        return [_C.zeros_like(o) for o in outputs]
    found = autograd.grad([a for a, _ in pairs], u, [t for _, t in pairs], create_graph=True, allow_unused=True)
    return [_C.zeros_like(o) if f is None else f for o, f in zip(outputs, found)]


def _nested_jvp(func, leaves, structure, tangents, has_aux):
    with enable_grad():
        fresh = [_fresh(t) for t in leaves]
        output, aux = _split_aux(func(*_tree.unflatten(fresh, structure)), has_aux, 'jvp')
        outputs, shape = _tree.flatten(output)
        _check_tensors(outputs, 'jvp: the function must return tensors')
        return outputs, _jvp_by_reverse(outputs, fresh, tangents), shape, aux


def _primals(tree):
    return _tree.tree_map(lambda t: _C._primal(t) if isinstance(t, Tensor) and _C._tangent(t) is not None else t, tree)


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """Returns (output, tangent of output), and aux with has_aux: the product of the Jacobian of func at primals with
    tangents, a tuple of the same structure."""
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple) or not primals:
        raise RuntimeError('jvp: primals and tangents must be tuples with at least one element')
    leaves, structure = _tree.flatten(primals)
    directions, other = _tree.flatten(tangents)
    _check_tensors(leaves, 'jvp')
    _check_tensors(directions, 'jvp')
    if len(leaves) != len(directions):
        raise RuntimeError(f'jvp: {len(leaves)} primals and {len(directions)} tangents')
    if any(_C._tangent(t) is not None for t in leaves):
        outputs, found, shape, aux = _nested_jvp(func, leaves, structure, directions, has_aux)
    else:
        duals = [_C._make_dual(p, t) for p, t in zip(leaves, directions)]
        output, aux = _split_aux(func(*_tree.unflatten(duals, structure)), has_aux, 'jvp')
        outputs, shape = _tree.flatten(output)
        _check_tensors(outputs, 'jvp: the function must return tensors')
        found = [_C._tangent(o) for o in outputs]
        outputs = [o if t is None else _C._primal(o) for o, t in zip(outputs, found)]
        if strict and None in [t if t is None else 0 for t in found]:
            raise RuntimeError('jvp: an output does not depend on the primals, with strict=True')
        found = [_C.zeros_like(o) if t is None else t for o, t in zip(outputs, found)]
    result = _tree.unflatten(outputs, shape), _tree.unflatten(found, shape)
    if not has_aux:
        return result
    return *result, _primals(aux)


# ---- vmap ----

def _batch_size(leaves, dims):
    sizes = set()
    for t, d in zip(leaves, dims):
        if d is None:
            continue
        if not isinstance(d, int) or isinstance(d, bool):
            raise ValueError(f'vmap: in_dims must have ints and None, got {d!r}')
        if not isinstance(t, Tensor):
            raise ValueError(f'vmap: got in_dim={d} for an input of type {type(t).__name__}, which is no tensor; '
                             'use None as its in_dim')
        if not -t.dim() <= d < t.dim():
            raise ValueError(f'vmap: got in_dim={d} for an input with {t.dim()} dimensions')
        sizes.add(t.shape[d])
    if not sizes:
        raise ValueError('vmap: at least one input must be a tensor with an in_dim')
    if len(sizes) > 1:
        raise ValueError(f'vmap: Expected all tensors to have the same size in the mapped dimension, got sizes '
                         f'{sorted(sizes)} for the mapped dimension')
    return sizes.pop()


def _run_level(call, leaves, dims, out_dims, size, randomness):
    """One call on `size` samples: the outputs with their batch, their dimensions and their structure."""
    with _levels.entered(size, randomness) as level:
        samples = [t if d is None else _C._vmap_samples(level.handle, t, d) for t, d in zip(leaves, dims)]
        result, shape = _tree.flatten(call(samples))
        if shape is not _tree.LEAF or not isinstance(out_dims, int):
            places = _tree.broadcast_prefix(out_dims, _tree.unflatten(result, shape), 'vmap: out_dims')
        else:
            places = [out_dims]
        outputs = []
        for o, d in zip(result, places):
            if not isinstance(o, Tensor):
                raise ValueError(f'vmap: the function must only return tensors, got type {type(o).__name__}')
            if d is None and _C._is_batched(o):
                raise ValueError('vmap: out_dims is None for an output that differs between the samples')
            outputs.append(o if d is None else _C._vmap_batch(level.handle, o, d))
    return outputs, places, shape


def vmap(func, in_dims=0, out_dims=0, randomness='error', *, chunk_size=None):
    """A function that calls func once, for all samples of a batch: func sees tensors without their batch dimension.
    in_dims has the batch dimension of each argument, or None for one that is the same for all samples: an int for all,
    or a tuple whose elements may have the structure of the arguments. out_dims, likewise, has that of the outputs.
    randomness: 'error', 'different' numbers for each sample, or the 'same'. chunk_size: samples that are computed at
    once. Keyword arguments are the same for all samples."""
    if randomness not in _levels.RANDOMNESS:
        raise RuntimeError("Only allowed values for randomness are 'error', 'different', or 'same'. "
                           f'Got {randomness!r}')
    if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size < 1):
        raise ValueError(f'vmap: chunk_size should be None or greater than 0. (got {chunk_size})')

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        leaves, structure = _tree.flatten(args)
        dims = _tree.broadcast_prefix(tuple(in_dims) if isinstance(in_dims, list) else in_dims, args, 'vmap: in_dims')
        size = _batch_size(leaves, dims)
        if not size:
            raise ValueError('vmap: the batch has no samples')
        tracked = _C.is_grad_enabled() and any(isinstance(t, Tensor) and t.requires_grad for t in leaves)
        step = min(chunk_size or size, size)

        def call(samples):
            return func(*_tree.unflatten(samples, structure), **kwargs)

        parts = []
        _state.tracked += tracked
        try:
            for first in range(0, size, step):
                n = min(step, size - first)
                chunk = leaves
                if n < size:
                    chunk = [t if d is None else t.narrow(d, first, n) for t, d in zip(leaves, dims)]
                parts.append(_run_level(call, chunk, dims, out_dims, n, randomness))
        finally:
            _state.tracked -= tracked
        outputs, places, shape = parts[0]
        if len(parts) > 1:
            outputs = [o if d is None else _C.cat([p[0][i] for p in parts], d)
                       for i, (o, d) in enumerate(zip(outputs, places))]
        return _tree.unflatten(outputs, shape)
    return wrapper


# ---- Jacobians ----

def _basis(t, first, n):
    """Rows first to first + n - 1 of the identity, in the shape of t."""
    rows = _C.zeros(n, t.numel(), dtype=t.dtype, device=t.device)
    rows.diagonal(first).fill_(1)
    return rows.reshape(n, *t.shape)


def _jacobian_of_output(output, inputs, create, chunk):
    """The Jacobians of one output with respect to each input: its sizes followed by those of the input."""
    size = output.numel()
    parts = []
    for first in range(0, size if output.requires_grad else 0, chunk or size):
        n = min(chunk or size, size - first)
        parts.append(autograd.grad((output,), inputs, (_basis(output, first, n),), retain_graph=True,
                                   create_graph=create, allow_unused=True, is_grads_batched=True))
    result = []
    for i, t in enumerate(inputs):
        rows = [p[i] for p in parts]
        if not rows or rows[0] is None:
            result.append(_C.zeros(*output.shape, *t.shape, dtype=t.dtype, device=t.device))
        else:
            result.append((rows[0] if len(rows) == 1 else _C.cat(rows, 0)).reshape(*output.shape, *t.shape))
    return result


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None):
    """A function that returns the Jacobian of func by reverse mode: for each output the structure of the argument
    argnums, whose tensors have the sizes of the output followed by those of the argument. chunk_size: rows that are
    computed at once."""
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        recording = _C.is_grad_enabled()
        indices, structure, leaves = _select(args, argnums, 'jacrev')
        with enable_grad():
            fresh = [_fresh(t) for t in leaves]
            with _reverse():
                result = func(*_replace(args, argnums, indices, structure, fresh), **kwargs)
            output, aux = _split_aux(result, has_aux, 'jacrev')
            outputs, shape = _tree.flatten(output)
            _check_tensors(outputs, 'jacrev: the function must return tensors')
            create = _recorded(recording, leaves, outputs, fresh)
            parts = [_tree.unflatten(_jacobian_of_output(o, fresh, create, chunk_size), structure) for o in outputs]
        jacobian = _tree.unflatten(parts, shape)
        return (jacobian, _plain(aux, create)) if has_aux else jacobian
    return wrapper


def _tangent_bases(leaves):
    """For each leaf the tangents of all directions: one dimension of all elements of all leaves in front."""
    total, first, bases = sum(t.numel() for t in leaves), 0, []
    for t in leaves:
        rows = _C.zeros(total, t.numel(), dtype=t.dtype, device=t.device)
        rows.narrow(0, first, t.numel()).diagonal().fill_(1)
        bases.append(rows.reshape(total, *t.shape))
        first += t.numel()
    return bases, total


def jacfwd(func, argnums=0, has_aux=False, *, randomness='error'):
    """As jacrev() by forward mode, with all directions at once."""
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        indices, structure, leaves = _select(args, argnums, 'jacfwd')
        bases, total = _tangent_bases(leaves)
        if not total:
            raise RuntimeError('jacfwd: the argument has no elements')
        aux = []

        def of_leaves(*values):
            result = func(*_replace(args, argnums, indices, structure, values), **kwargs)
            output, extra = _split_aux(result, has_aux, 'jacfwd')
            aux.append(extra)
            return output

        def push(*tangents):
            return jvp(of_leaves, tuple(leaves), tangents)[1]

        columns, shape = _tree.flatten(vmap(push, randomness=randomness)(*bases))
        parts = []
        for c in columns:
            row, first = [], 0
            for t in leaves:
                part = c.narrow(0, first, t.numel()).movedim(0, -1)
                row.append(part.reshape(*c.shape[1:], *t.shape))
                first += t.numel()
            parts.append(_tree.unflatten(row, structure))
        jacobian = _tree.unflatten(parts, shape)
        if not has_aux:
            return jacobian
        return jacobian, _primals(aux[0])
    return wrapper


def hessian(func, argnums=0):
    """A function that returns the second derivatives of func, which returns a tensor with one element."""
    return jacrev(jacrev(func, argnums), argnums)
