# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""A batch from a list of samples."""
from collections.abc import Mapping, Sequence

from devtensor import _C
from devtensor._C import Tensor
from devtensor.utils.data import _workers

__all__ = ['default_collate', 'default_convert']


def _is_array(value):
    return hasattr(value, '__array__') and hasattr(value, 'dtype') and not isinstance(value, Tensor)


def _is_text_array(value):
    return _is_array(value) and value.dtype.kind in 'SUO'


def _stack(tensors):
    """A worker process writes the batch into a buffer that it shares."""
    first = tensors[0]
    if _workers.worker_info() is None or any(t.dtype is not first.dtype or t.shape != first.shape or t.requires_grad
                                             for t in tensors):
        return _C.stack(tensors)
    return _C.stack(tensors, out=_workers.batch_buffer((len(tensors), *first.shape), first.dtype))


def _numbers(batch, dtype=None):
    t = _C.tensor(batch, dtype=dtype)
    return t if _workers.worker_info() is None else _workers.batch_buffer(t.shape, t.dtype).copy_(t)


def _rebuild(like, values):
    """A list of the type of another sequence."""
    if hasattr(like, '_fields'):
        return type(like)(*values)
    return tuple(values) if isinstance(like, tuple) else list(values)


def default_collate(batch):
    """Samples of the same structure as one: tensors, arrays and numbers are stacked along a new first dimension, in
    one buffer; lists, tuples and dicts are collated element by element; strings stay a list."""
    if not batch:
        raise ValueError('default_collate: an empty batch')
    first = batch[0]
    if isinstance(first, Tensor):
        return _stack(list(batch))
    if _is_array(first):
        if _is_text_array(first):
            raise TypeError(f'default_collate: an array of {first.dtype}')
        return _stack([_C.tensor(x) for x in batch])
    if isinstance(first, float):
        return _numbers(batch, _C.float64)
    if isinstance(first, int):
        return _numbers(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return {key: default_collate([sample[key] for sample in batch]) for key in first}
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError('default_collate: samples of different lengths')
        return _rebuild(first, [default_collate(list(values)) for values in zip(*batch)])
    raise TypeError(
        f'default_collate: samples are tensors, arrays, numbers, strings, dicts or lists, got {type(first).__name__}')


def default_convert(sample):
    """A sample with its arrays as tensors, for loaders without batches."""
    if isinstance(sample, Tensor) or _is_text_array(sample):
        return sample
    if _is_array(sample):
        return _C.tensor(sample)
    if isinstance(sample, Mapping):
        return {key: default_convert(value) for key, value in sample.items()}
    if isinstance(sample, Sequence) and not isinstance(sample, (str, bytes)):
        return _rebuild(sample, [default_convert(value) for value in sample])
    return sample
