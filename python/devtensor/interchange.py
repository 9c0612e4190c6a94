# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Exchange of tensors with NumPy, PyTorch and other libraries, without a copy where their types allow it.

from_dlpack(), from_arrow() and frombuffer() are in the extension module. NumPy and PyTorch are imported
when a function needs them.
"""
import importlib
import sys

from devtensor import _C
from devtensor._C import Tensor

__all__ = ["as_tensor", "asarray", "from_numpy", "from_torch", "to_torch"]

# dtypes that NumPy has only with the package ml_dtypes, and the integers that carry their bits.
_EXTENDED = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}

_TYPE_CODES = {
    "bool": "|b1", "uint8": "|u1", "int8": "|i1", "int16": "<i2", "int32": "<i4", "int64": "<i8",
    "uint16": "<u2", "uint32": "<u4", "uint64": "<u8", "float16": "<f2", "float32": "<f4",
    "float64": "<f8", "complex64": "<c8", "complex128": "<c16",
}


def _require(name, purpose):
    module = sys.modules.get(name)
    if module is not None:
        return module
    try:
        return importlib.import_module(name)
    except ImportError as e:
        raise ImportError(f"{purpose} needs the package {name}") from e


# ---- to NumPy ----

def _exportable(t):
    """The reason why NumPy cannot use the memory of t, as an exception, or None."""
    if t.requires_grad:
        return RuntimeError("a tensor that requires a gradient is no array: call detach() first, or numpy(force=True)")
    if t.device.type != "cpu":
        return TypeError(f"a tensor on {t.device} is no array: call cpu() first, or numpy(force=True)")
    if t.layout is not _C.strided:
        return TypeError(f"a tensor of layout {t.layout} is no array: call to_dense() first")
    return None


def _numpy(self, *, force=False):
    """numpy(*, force=False)

    An array of NumPy on the memory of the tensor, which stays alive with the array; read-only if the
    tensor is. With force a tensor that requires a gradient is detached first, and one of another device
    is copied. bfloat16 and 8-bit floats need the package ml_dtypes.

    RuntimeError: requires a gradient. TypeError: another device or layout, or a dtype NumPy does not have.
    """
    np = _require("numpy", "Tensor.numpy()")
    t = self.detach().cpu() if force else self
    problem = _exportable(t)
    if problem:
        raise problem
    name = t.dtype.name
    if name not in _EXTENDED:
        return np.asarray(memoryview(t))
    try:
        extended = getattr(importlib.import_module("ml_dtypes"), name)
    except ImportError:
        raise TypeError(f"NumPy has {name} only with the package ml_dtypes; float() converts the tensor") from None
    bits = t.detach().view(_C.dtype(_EXTENDED[name]))
    return np.asarray(memoryview(bits)).view(extended)


def _array(self, dtype=None, copy=None):
    """The array that numpy.asarray() makes: on the same memory unless dtype or copy=True need another."""
    np = _require("numpy", "Tensor.__array__()")
    a = self.numpy()
    if dtype is not None and np.dtype(dtype) != a.dtype:
        if copy is False:
            raise ValueError(f"an array of {np.dtype(dtype)} is a copy of a tensor of {self.dtype}")
        return a.astype(dtype)
    return a.copy() if copy else a


def _array_interface(self):
    """Version 3 of NumPy's array interface. AttributeError if NumPy cannot use the memory or the dtype."""
    problem = _exportable(self)
    code = _TYPE_CODES.get(self.dtype.name)
    if problem or not code:
        raise AttributeError(f"__array_interface__: {problem or f'NumPy does not have {self.dtype}'}")
    with memoryview(self) as m:
        return {"version": 3, "shape": self.shape, "typestr": code, "data": (self.data_ptr(), m.readonly),
                "strides": m.strides}


def _cuda_array_interface(self):
    """Version 3 of the CUDA array interface, with the current stream. AttributeError for host memory and dtypes that it
    does not have, RuntimeError for a tensor that requires a gradient."""
    code = _TYPE_CODES.get(self.dtype.name)
    if self.device.type != "cuda" or self.layout is not _C.strided or not code:
        raise AttributeError(f"__cuda_array_interface__: a tensor of {self.dtype} on {self.device}")
    if self.requires_grad:
        raise RuntimeError("a tensor that requires a gradient is no array: call detach() first")
    stream = _C._cuda_current_stream(self.device.index)
    strides = None if self.is_contiguous() else tuple(n * self.itemsize for n in self.stride())
    data = self.data_ptr() if self.numel() else 0, not _C._is_writable(self)
    return {"version": 3, "shape": self.shape, "typestr": code, "data": data, "strides": strides,
            "stream": stream or 1}


# ---- from NumPy ----

def _wrap_array(a):
    """A tensor on the memory of an array. TypeError: a dtype without a counterpart. ValueError: alignment."""
    try:
        return _C._from_buffer(a)
    except (TypeError, ValueError, BufferError):
        name = a.dtype.name
        if name in _EXTENDED:
            return _C._from_buffer(a.view(_EXTENDED[name])).view(_C.dtype(name))
        if not a.dtype.isnative:
            raise TypeError(f"an array in the other byte order ({a.dtype.str}) is no tensor: "
                            "astype(a.dtype.newbyteorder('=')) converts it") from None
        if a.dtype.kind not in "biufc":
            raise TypeError(f"an array of {a.dtype} is no tensor") from None
        raise


def from_numpy(array, /):
    """A tensor on the memory of a numpy.ndarray of any strides, which stays alive with the tensor.

    The tensor is read-only if the array is. TypeError: no array, or a dtype that tensors do not have.
    ValueError: elements that are not aligned to their type; use asarray(), which copies them.
    """
    np = _require("numpy", "from_numpy()")
    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy: expected a numpy.ndarray, got {type(array).__name__}")
    return _wrap_array(array)


def _from_array(np, a, copy):
    """A tensor with an array's elements: on its memory where that is possible, else a copy, if copy allows it."""
    if copy is not True:
        try:
            return _wrap_array(a), False
        except (TypeError, ValueError):
            if copy is False or a.dtype.hasobject or a.dtype.kind not in "biufcV":
                raise
    # A copy in the machine's byte order and alignment.
    native = np.array(a, dtype=a.dtype.newbyteorder("="), copy=True)
    return _wrap_array(native), True


def _is_data(obj):
    return isinstance(obj, (bool, int, float, complex, list, tuple))


def _has(obj, name):
    """True if the class of obj has the attribute, or its instance: modules and classes are no arrays."""
    return not isinstance(obj, type) and hasattr(obj, name)


def _convert(obj, copy):
    """A tensor with the elements of obj, and whether it is a copy."""
    # Before the program has imported NumPy no object can be one of its arrays.
    np = sys.modules.get("numpy")
    if isinstance(obj, Tensor):
        return obj, False
    if np and isinstance(obj, np.ndarray):
        return _from_array(np, obj, copy)
    if np and isinstance(obj, np.generic):
        return _from_array(np, np.asarray(obj), copy)
    if _is_data(obj):
        return None
    if _has(obj, "__dlpack__"):
        return _C.from_dlpack(obj, copy=copy), copy is True
    try:
        return _C._from_buffer(obj), False
    except (TypeError, ValueError, BufferError):
        if not (_has(obj, "__array_interface__") or _has(obj, "__array__")):
            return None
    np = _require("numpy", f"a tensor from {type(obj).__name__}")
    return _from_array(np, np.asarray(obj), copy)


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    """A tensor with the elements of obj.

    obj: a tensor, an array of NumPy, an object with __dlpack__, with the buffer protocol, __array_interface__
    or __array__, a number, or nested sequences of numbers.
    dtype, device: of the result; None keeps those of obj. Floats of Python become float32.
    copy: True: always a copy. None: the same memory where dtype, device and the kind of obj allow it.
    False: ValueError (BufferError from another library) instead of a copy.

    A tensor that already fits is returned itself.
    """
    if copy not in (True, False, None):
        raise TypeError(f"copy must be True, False or None, got {copy!r}")
    converted = _convert(obj, copy)
    if converted is None:
        if copy is False:
            raise ValueError(f"asarray: a tensor of {type(obj).__name__} is a copy, which copy=False forbids")
        converted = _C.tensor(obj, dtype=dtype), True
    t, copied = converted
    changes = ((dtype is not None and t.dtype is not _C.dtype(dtype)) or
               (device is not None and t.device != _C.device(device)))
    if changes and copy is False:
        raise ValueError("asarray: another dtype or device needs a copy, which copy=False forbids")
    if changes:
        t = t.to(dtype=None if dtype is None else _C.dtype(dtype), device=device)
    elif copy and not copied:
        t = t.clone()
    if requires_grad:
        t = (t.detach() if t is obj else t).requires_grad_()
    return t


def as_tensor(data, dtype=None, device=None):
    """A tensor with the elements of data, on the same memory where dtype and device allow it: see asarray()."""
    return asarray(data, dtype=dtype, device=device)


# ---- PyTorch ----

def from_torch(t, /):
    """A tensor on the memory of a torch.Tensor, on the host or a CUDA device, through DLPack. The current streams
    of both libraries are put in order.

    TypeError: no torch.Tensor. BufferError: requires a gradient (call t.detach() first), another device or
    layout, or a dtype that devtensor does not have.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(t, torch.Tensor):
        raise TypeError(f"from_torch: expected a torch.Tensor, got {type(t).__name__}")
    return _C.from_dlpack(t)


def to_torch(t, /):
    """A torch.Tensor on the memory of a tensor, through DLPack.

    BufferError: requires a gradient (call t.detach() first), another device or layout, or read-only memory,
    which PyTorch cannot mark: call t.clone() first.
    """
    torch = _require("torch", "to_torch()")
    if not isinstance(t, Tensor):
        raise TypeError(f"to_torch: expected a tensor, got {type(t).__name__}")
    stream = None
    if t.is_cuda:
        # 0, the default stream, has the number 1 in the protocol.
        stream = torch.cuda.current_stream(t.device.index).cuda_stream or 1
    # The form without a version exists only for memory that may be written.
    return torch.utils.dlpack.from_dlpack(t.__dlpack__(stream=stream))


def _add_methods():
    _numpy.__name__, _array.__name__ = "numpy", "__array__"
    Tensor.numpy = _numpy
    Tensor.__array__ = _array
    Tensor.__array_interface__ = property(_array_interface)
    Tensor.__cuda_array_interface__ = property(_cuda_array_interface)
    # Operators of NumPy's arrays leave a mixture to the tensor, whose operators take arrays.
    Tensor.__array_ufunc__ = None
    Tensor.__array_priority__ = 1000


_add_methods()
