# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Checks of results that are not unique: eigenvectors and singular vectors have an arbitrary phase.

A result that differs from PyTorch's is correct if it has the property that defines it.
"""
import torch

import bridge


def adjoint(t):
    return t.mH.resolve_conj()


def are_unitary(vectors, rtol, atol):
    """Whether the columns are orthonormal."""
    product = adjoint(vectors) @ vectors
    unit = torch.eye(product.shape[-1], dtype=product.dtype).expand_as(product)
    return torch.allclose(product, unit, rtol, atol)


def are_hermitian_eigenvectors(args, results, rtol, atol):
    """For a matrix of which only one triangle is read."""
    values, vectors = results
    self = args['self'] if 'self' in args else args['A']
    part = self.tril() if args.get('UPLO', 'L').upper() == 'L' else self.triu()
    whole = part + adjoint(part) - torch.diag_embed(part.diagonal(dim1=-2, dim2=-1)).real
    atol *= max(1, float(values.abs().max()))
    return torch.allclose(whole @ vectors, vectors * values.unsqueeze(-2), rtol, atol) and \
        are_unitary(vectors, rtol, atol)


def are_eigenvectors(args, results, rtol, atol):
    values, vectors = results
    atol *= max(1, float(values.abs().max()))
    norms = vectors.norm(dim=-2)
    return torch.allclose(args['self'].to(vectors.dtype) @ vectors, vectors * values.unsqueeze(-2), rtol, atol) \
        and torch.allclose(norms, torch.ones_like(norms), rtol, atol)


def are_singular_vectors(args, results, rtol, atol):
    u, s, vh = results
    self = args.get('self', args.get('A'))
    if 'self' in args:  # torch.svd returns V
        vh = adjoint(vh)
    k = s.shape[-1]
    atol *= max(1, float(s.max()))
    return are_unitary(u, rtol, atol) and are_unitary(adjoint(vh), rtol, atol) and \
        torch.allclose((u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], self, rtol, atol)


# operator -> (test, unique results)
TESTS = {'linalg_eigh': (are_hermitian_eigenvectors, 0), '_linalg_eigh': (are_hermitian_eigenvectors, 0),
         'linalg_eig': (are_eigenvectors, 0),
         'linalg_svd': (are_singular_vectors, 1), '_linalg_svd': (are_singular_vectors, 1),
         'svd': (are_singular_vectors, 1)}


def is_one(operator, i, args, results, tolerance):
    """Whether result i, which differs from PyTorch's, has the property that defines it."""
    if operator not in TESTS:
        return False
    test, unique = TESTS[operator]
    rtol, atol = bridge.default_tolerances(results[0].dtype)
    return i != unique and test(args, results, rtol, max(atol, tolerance[1] if tolerance else 0))
