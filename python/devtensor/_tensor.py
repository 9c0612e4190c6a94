# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Methods of Tensor that are no operators and need no speed."""
import copy

from devtensor import _C

_Tensor = _C.Tensor

_SIGNED = {_C.int8, _C.int16, _C.int32, _C.int64}

# The names of PyTorch's tensor types, for type().
_TYPE_NAMES = {
    _C.bool: 'BoolTensor', _C.uint8: 'ByteTensor', _C.int8: 'CharTensor', _C.int16: 'ShortTensor',
    _C.int32: 'IntTensor', _C.int64: 'LongTensor', _C.float16: 'HalfTensor', _C.bfloat16: 'BFloat16Tensor',
    _C.float32: 'FloatTensor', _C.float64: 'DoubleTensor', _C.complex64: 'ComplexFloatTensor',
    _C.complex128: 'ComplexDoubleTensor', _C.uint16: 'UInt16Tensor', _C.uint32: 'UInt32Tensor',
    _C.uint64: 'UInt64Tensor', _C.float8_e4m3fn: 'Float8_e4m3fnTensor', _C.float8_e5m2: 'Float8_e5m2Tensor',
}
_TYPES = {name: dtype for dtype, name in _TYPE_NAMES.items()}


class Size(int):
    """The number of elements, as NumPy and the array API have it; called, the sizes, as PyTorch's x.size().

    x.size == 6, x.size() == (2, 3), x.size(0) == 2. IndexError for a dimension out of range.
    """

    def __new__(cls, tensor):
        self = int.__new__(cls, tensor.numel())
        self._shape = tensor.shape
        return self

    def __call__(self, dim=None):
        if dim is None:
            return self._shape
        dim = dim.__index__()
        if not -len(self._shape) <= dim < len(self._shape):
            raise IndexError(f'dimension {dim} of a tensor with {len(self._shape)} dimensions')
        return self._shape[dim]

    def __reduce__(self):
        return int, (int(self),)


def without_history(self):
    """The tensor as one of the exact type that requires no gradient, on the same memory."""
    plain = self if type(self) is _Tensor else self.as_subclass(_Tensor)
    return plain.detach()


def _type(self, dtype=None, non_blocking=False):
    """Without an argument the name of the type, as "devtensor.FloatTensor"; else the tensor in the dtype, itself if it
    has it. dtype: a dtype, or such a name, also with PyTorch's prefix. ValueError for an unknown name."""
    if dtype is None:
        return 'devtensor.' + _TYPE_NAMES[self.dtype]
    if isinstance(dtype, str) and dtype.rsplit('.', 1)[-1] in _TYPES:
        dtype = _TYPES[dtype.rsplit('.', 1)[-1]]
    elif isinstance(dtype, str):
        raise ValueError(f'type: there is no type {dtype!r}')
    return self.to(dtype=dtype, non_blocking=non_blocking)


def _type_as(self, other):
    """The tensor in the dtype and on the device of other, itself if nothing changes."""
    return self.to(other)


def _new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    """tensor(data) with the dtype and device of self where they are not given. Always a copy."""
    return _C.tensor(data, dtype=self.dtype if dtype is None else dtype,
                     device=self.device if device is None else device, requires_grad=requires_grad)


def _is_floating_point(self):
    """True for a dtype of real floating-point numbers."""
    return self.dtype.is_floating_point


def _is_complex(self):
    """True for a dtype of complex numbers."""
    return self.dtype.is_complex


def _is_signed(self):
    """True for a dtype with negative numbers."""
    dtype = self.dtype
    return dtype in _SIGNED or dtype.is_floating_point or dtype.is_complex


def _get_device(self):
    """The index of the device, -1 for the CPU."""
    index = self.device.index
    return -1 if index is None else index


def _qscheme(self):
    """How a quantized tensor is scaled: "per_tensor_affine" or "per_channel_affine"."""
    try:
        self.q_per_channel_axis()
    except (ValueError, RuntimeError):
        self.q_scale()
        return 'per_tensor_affine'
    return 'per_channel_affine'


def _copy_of(self):
    """A shallow copy, as PyTorch's: another tensor on the same memory, with the same attributes. A leaf."""
    new = without_history(self)
    new = (new if type(self) is _Tensor else new.as_subclass(type(self))).requires_grad_(self.requires_grad)
    if getattr(self, '__dict__', None):
        new.__dict__.update(self.__dict__)
    return new


def _deepcopy_of(self, memo):
    """A copy of the memory, of the gradient and of the attributes.

    RuntimeError for the result of a recorded operator.
    """
    if id(self) in memo:
        return memo[id(self)]
    if self.requires_grad and not self.is_leaf:
        raise RuntimeError('only leaves can be copied by deepcopy(), not results of operators: detach() them')
    from devtensor._pickle import copied
    new = copied(without_history(self))
    new = (new if type(self) is _Tensor else new.as_subclass(type(self))).requires_grad_(self.requires_grad)
    memo[id(self)] = new
    if self.grad is not None:
        new.grad = copy.deepcopy(self.grad, memo)
    if getattr(self, '__dict__', None):
        new.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return new


def _to_device(self, device, /, *, stream=None):
    """The tensor on a device: of the array API standard. stream: a devtensor.cuda.Stream in which it is copied.
    ValueError for a device that is not there, and for a stream if there is no CUDA device among both."""
    device = _C.device(device)
    if stream is not None and 'cuda' not in (device.type, self.device.type):
        raise ValueError('to_device: devices without streams')
    if device == self.device:
        return self
    from devtensor import cuda
    with cuda.stream(stream):
        return self.to(device)


def _cuda(self, device=None, non_blocking=False):
    """The tensor on a CUDA device, by default the current one; itself if it is there. non_blocking: return before a
    copy of shareable memory has finished; it must not change until then."""
    from devtensor import cuda
    return self.to(_C.device('cuda', cuda._streams._index(device)), non_blocking=non_blocking)


def _record_stream(self, stream):
    """For work that is not the library's: the memory is not reused before the work that is in the stream when it is
    released has finished; a cuda.ExternalStream must exist until then. It does nothing for memory of another
    library."""
    _C._cuda_record_stream(self, stream.cuda_stream)


_API_VERSIONS = '2021.12', '2022.12', '2023.12', '2024.12', '2025.12'


def _array_namespace(self, /, *, api_version=None):
    """The namespace of the array API standard."""
    if api_version is not None and api_version not in _API_VERSIONS:
        raise ValueError(f'there is no version {api_version} of the standard')
    from devtensor import array_api
    return array_api


def _set_methods():
    _Tensor.size = property(Size, doc=Size.__doc__)
    _Tensor.is_cpu = property(lambda self: self.device == 'cpu', doc='True if the memory is host memory.')
    _Tensor.is_cuda = property(lambda self: self.device.type == 'cuda', doc='True if the memory is that of a GPU.')
    _Tensor.is_sparse = property(lambda self: self.layout is _C.sparse_coo, doc='True for the layout sparse_coo.')
    _Tensor.is_sparse_csr = property(lambda self: self.layout is _C.sparse_csr, doc='True for the layout sparse_csr.')
    methods = {
        'type': _type, 'type_as': _type_as, 'new_tensor': _new_tensor, 'is_floating_point': _is_floating_point,
        'is_complex': _is_complex, 'is_signed': _is_signed, 'get_device': _get_device, '__copy__': _copy_of,
        '__deepcopy__': _deepcopy_of,
        'qscheme': _qscheme, 'to_device': _to_device, 'cuda': _cuda, 'record_stream': _record_stream,
        '__array_namespace__': _array_namespace,
    }
    for name, method in methods.items():
        method.__name__ = name
        method.__qualname__ = f'Tensor.{name}'
        setattr(_Tensor, name, method)
    _Tensor.nelement = _Tensor.numel
    _Tensor.ndimension = _Tensor.dim


_set_methods()
