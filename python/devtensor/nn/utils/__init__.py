# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Gradients and parameters of a list of tensors."""
from devtensor import _C
from devtensor._C import Tensor
from devtensor.nn.utils import rnn  # noqa: F401

__all__ = ['clip_grad_norm_', 'clip_grad_value_', 'get_total_norm', 'parameters_to_vector', 'vector_to_parameters']


def _list(parameters):
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return list({id(p): p for p in parameters}.values())


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scale the gradients so that the norm of all elements together is at most max_norm. Returns the norm before, a
    0-d tensor.

    error_if_nonfinite: RuntimeError for a norm that is inf or nan, with the gradients unchanged.
    """
    parameters = _list(parameters)
    norm = _C._clip_grad_norm_(parameters, float(max_norm), float(norm_type), error_if_nonfinite)
    dtypes = {p.grad.dtype for p in parameters if p.grad is not None}
    return _C.scalar_tensor(norm, dtype=_C.float64 if _C.float64 in dtypes else _C.float32)


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Limit each element of the gradients to -clip_value and clip_value."""
    _C._clip_grad_value_(_list(parameters), float(clip_value))


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all elements of the tensors together."""
    norm = _C._list_norm(_list(tensors), float(norm_type))
    if error_if_nonfinite and not bool(norm.isfinite()):
        raise RuntimeError(f'get_total_norm: the norm is {norm.item()}')
    return norm


def parameters_to_vector(parameters):
    """The elements of all parameters, one after the other."""
    return _C.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec, parameters):
    """Copy the elements of a vector to the parameters, unrecorded."""
    parameters = list(parameters)
    total = sum(p.numel() for p in parameters)
    if vec.ndim != 1 or vec.numel() != total:
        raise ValueError(f'vector_to_parameters: needs a vector of {total} elements, got the shape {tuple(vec.shape)}')
    at = 0
    for p in parameters:
        p.detach().copy_(vec.detach()[at:at + p.numel()].reshape(p.shape))
        at += p.numel()
