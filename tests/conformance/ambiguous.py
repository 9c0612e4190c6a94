# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Gradients of results that are not unique.

Eigenvectors and singular vectors may be multiplied by a phase, equal elements have no order, and of a triangular factor
one triangle is not read. Gradients are compared up to that.
"""
import torch

# operator -> the results that hold vectors, and the dimension that counts them
VECTORS = {'linalg_eigh': {1: -1}, '_linalg_eigh': {1: -1}, 'linalg_svd': {0: -1, 2: -2}, '_linalg_svd': {0: -1, 2: -2},
           'svd': {0: -1, 2: -1}}
# operator -> the default of dim
TIES = {'topk': -1, 'mode': -1, 'sort': -1, 'msort': 0, 'kthvalue': -1, 'median': None, 'nanmedian': None}
# operator -> the triangular factor
FACTORS = {'cholesky_solve': 'input2', 'cholesky_inverse': 'self'}


def turn(operator, refs, got, grads):
    """The gradients of the results `got` that mean the same as `grads` mean for `refs`, which differ in the phases of
    vectors; {number of the result: gradient}."""
    grads = dict(grads)
    for i, dim in VECTORS.get(operator, {}).items():
        if i not in grads or not refs[i].numel():
            continue
        with torch.no_grad():
            phase = (refs[i].conj() * got[i]).sum(-2 if dim == -1 else -1, keepdim=True)
            phase = torch.where(phase.abs() > 0.5, phase, 1).sgn()
            grads[i] = grads[i] * (phase if operator != 'linalg_svd' or dim == -1 else phase.conj())
    return grads


def sums_of_equal(values, grads):
    """For each element of a line the sum of the gradients of the elements equal to it."""
    order = values.sort(stable=True).indices
    sorted_values, g = values[order], grads[order].double()
    same = (sorted_values[1:] == sorted_values[:-1]) | (sorted_values[1:].isnan() & sorted_values[:-1].isnan())
    group = torch.cat([torch.zeros(1, dtype=torch.int64), (~same).cumsum(0)])
    return torch.zeros(len(values), dtype=torch.float64).index_add(0, group, g)


def is_same_up_to_ties(values, got, ref, dim):
    if not values.dim() or dim is None:
        lines = [t.reshape(1, -1) for t in (values, got, ref)]
    else:
        lines = [t.movedim(dim, -1).reshape(-1, t.shape[dim]) for t in (values, got, ref)]
    return all(torch.allclose(sums_of_equal(v, g), sums_of_equal(v, r), 1e-9, 1e-9) for v, g, r in zip(*lines))


def is_same_gradient(operator, given, leaf, got, ref):
    """Whether two gradients of an argument that differ mean the same."""
    if operator in TIES:
        return is_same_up_to_ties(leaf.detach(), got, ref, given.get('dim', TIES[operator]))
    if operator in FACTORS and given[FACTORS[operator]] is leaf:
        part = ref.triu() if given.get('upper') else ref.tril()
        return bool((got.triu(1) if not given.get('upper') else got.tril(-1)).count_nonzero() == 0) and \
            torch.allclose(got, part, 1e-4 if ref.dtype in (torch.float32, torch.complex64) else 1e-7, 1e-4)
    return False
