# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Pickling by value.

A pickle has the elements once: an expanded dimension stays expanded. Strides are kept where the elements fill their
memory; a view with gaps or overlaps is packed in the order of its strides. Tensors that shared memory do not share it
afterwards. With protocol 5 the memory is a pickle.PickleBuffer, which is not copied if it goes out of band.

A pickle can run any code, so only trusted ones may be loaded; but what is in the tensors of one is checked.
"""
import pickle

from devtensor import _C
from devtensor._tensor import without_history

_Tensor = _C.Tensor


def _fills_memory(tensor):
    """True if the elements are at the offsets from 0 to numel - 1, in any order."""
    step = 1
    for stride, size in sorted((stride, size) for stride, size in zip(tensor.strides, tensor.shape) if size != 1):
        if stride != step:
            return False
        step *= size
    return True


def _compact(tensor):
    """A tensor that fills its memory, and the strides on it that give the elements of tensor."""
    if tensor.numel() == 0 or tensor.ndim == 0:
        return tensor.contiguous(), None
    once = tensor
    for dim, (stride, size) in enumerate(zip(tensor.strides, tensor.shape)):
        if stride == 0 and size > 1:
            once = once.narrow(dim, 0, 1)
    if not _fills_memory(once):
        once = once.clone()
    if not _fills_memory(once):
        once = once.contiguous()
    strides = [0 if stride == 0 and size > 1 else new
               for stride, size, new in zip(tensor.strides, tensor.shape, once.strides)]
    return once, strides


def _with_strides(memory, shape, strides):
    """A tensor of its own on memory, which has one dimension. ValueError if it is too small."""
    if strides is None:
        return memory.reshape(shape)
    # The storage may be larger than the memory, and has old data there.
    if 0 not in shape and sum((size - 1) * stride for size, stride in zip(shape, strides)) >= memory.numel():
        raise ValueError(f'pickle of a tensor: {memory.numel()} elements for the shape {shape} with strides {strides}')
    return memory.as_strided(shape, strides).detach()


def _flat(tensor):
    """The memory that tensor fills, as a tensor of one dimension."""
    return tensor.as_strided((tensor.numel(),), (1,))


def copied(tensor):
    """A tensor with a copy of the memory and the same strides, as far as a pickle keeps them."""
    if tensor.layout is not _C.strided or tensor.is_quantized or tensor.device != 'cpu':
        return tensor.clone()
    once, strides = _compact(tensor)
    return _with_strides(_flat(once).clone(), tensor.shape, strides)


# ---- parts of each layout ----

def _pack_strided(tensor, protocol):
    once, strides = _compact(tensor)
    memory = _flat(once).view(_C.uint8)
    buffer = pickle.PickleBuffer(memory) if protocol >= 5 else memoryview(memory).tobytes()
    return buffer, tensor.dtype, tensor.shape, strides


def _unpack_strided(buffer, dtype, shape, strides):
    if not isinstance(dtype, _C.dtype):
        raise TypeError(f'pickle of a tensor: {dtype!r} is no dtype')
    memory = _C._from_buffer(buffer)
    if memory.dtype is not _C.uint8 or memory.ndim != 1 or not memory.is_contiguous():
        memory = _C._from_buffer(memoryview(buffer).cast('B'))
    # bytes are shared by all who have them.
    if isinstance(buffer, bytes) or memory.data_ptr() % min(dtype.itemsize, 8):
        memory = memory.clone()
    if dtype is _C.bool and memory.numel() and int(memory.max()) > 1:
        raise ValueError('pickle of a tensor: a bool is neither 0 nor 1')
    return _with_strides(memory.view(dtype), shape, strides)


def _pack_coo(tensor, protocol):
    return tensor._indices(), tensor._values(), tensor.shape, tensor.is_coalesced()


def _unpack_coo(indices, values, shape, coalesced):
    tensor = _C.sparse_coo_tensor(indices, values, shape)
    # The claim is not trusted: sorting what is sorted is cheap.
    return tensor.coalesce() if coalesced else tensor


def _pack_csr(tensor, protocol):
    return tensor.crow_indices(), tensor.col_indices(), tensor.values(), tensor.shape


def _pack_quantized(tensor, protocol):
    if tensor.qscheme() == 'per_tensor_affine':
        return tensor.int_repr(), tensor.q_scale(), tensor.q_zero_point(), None
    return (tensor.int_repr(), tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points(),
            tensor.q_per_channel_axis())


def _unpack_quantized(integers, scale, zero_point, axis):
    if axis is None:
        return _C._make_per_tensor_quantized_tensor(integers, scale, zero_point)
    return _C._make_per_channel_quantized_tensor(integers, scale, zero_point, axis)


def _pack_blocked(tensor, protocol):
    return (tensor.to_dense(),)


_UNPACK = {
    'strided': _unpack_strided,
    'coo': _unpack_coo,
    'csr': lambda *parts: _C.sparse_csr_tensor(*parts),
    'quantized': _unpack_quantized,
    'blocked': lambda dense: _C.to_mkldnn(dense),
}


def _pack(tensor, protocol):
    """The name of the kind and its parts."""
    if tensor.is_quantized:
        return 'quantized', _pack_quantized(tensor, protocol)
    if tensor.layout is _C.sparse_coo:
        return 'coo', _pack_coo(tensor, protocol)
    if tensor.layout is _C.sparse_csr:
        return 'csr', _pack_csr(tensor, protocol)
    if tensor.layout is not _C.strided:
        return 'blocked', _pack_blocked(tensor, protocol)
    return 'strided', _pack_strided(tensor, protocol)


def rebuild(cls, kind, parts, requires_grad, device):
    """The tensor of a pickle. TypeError, ValueError and others for parts that do not fit."""
    if not isinstance(cls, type) or not issubclass(cls, _Tensor):
        raise TypeError(f'pickle of a tensor: {cls!r} is no subclass of Tensor')
    if kind not in _UNPACK:
        raise ValueError(f'pickle of a tensor: there is no kind {kind!r}')
    tensor = _UNPACK[kind](*parts)
    if device is not None:
        tensor = tensor.to(device)
    if cls is not _Tensor:
        tensor = tensor.as_subclass(cls)
    # Last: as_subclass() of a leaf is the result of an operator.
    return tensor.requires_grad_(True) if requires_grad else tensor


def reduce_ex(self, protocol):
    """For pickle: the elements, requires_grad and the attributes of a subclass. Gradients and graphs are left out."""
    plain = without_history(self)
    device = None if plain.device == 'cpu' else plain.device
    kind, parts = _pack(plain.cpu() if device else plain, int(protocol))
    args = (type(self), kind, parts, self.requires_grad, device)
    state = self.__getstate__() if type(self) is not _Tensor else None
    return (rebuild, args) if state is None else (rebuild, args, state)


_Tensor.__reduce_ex__ = reduce_ex
_Tensor.__reduce__ = lambda self: reduce_ex(self, 2)
