# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""A producer of DLPack written with ctypes, which counts the calls of its deleters and may be malformed."""
import ctypes
from ctypes import POINTER, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

READ_ONLY, COPIED = 1, 2
CPU = (1, 0)


class Device(ctypes.Structure):
    _fields_ = [("type", c_int), ("id", c_int32)]


class DataType(ctypes.Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device", Device), ("ndim", c_int32), ("dtype", DataType),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class Plain(ctypes.Structure):
    _fields_ = [("t", DLTensor), ("context", c_void_p), ("deleter", c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p),
                ("flags", c_uint64), ("t", DLTensor)]


DELETER = ctypes.CFUNCTYPE(None, c_void_p)
DESTRUCTOR = ctypes.CFUNCTYPE(None, c_void_p)
_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [c_void_p, ctypes.c_char_p, c_void_p]
_api.PyCapsule_GetName.restype = ctypes.c_char_p
_api.PyCapsule_GetName.argtypes = [ctypes.py_object]
_api.PyCapsule_GetPointer.restype = c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_names = [b"dltensor", b"dltensor_versioned"]


def name_of(capsule):
    """The name of a capsule as a string."""
    return _api.PyCapsule_GetName(capsule).decode()


def content(capsule):
    """The structure in a capsule that has not been consumed."""
    name = _api.PyCapsule_GetName(capsule)
    kind = Versioned if name == b"dltensor_versioned" else Plain
    return kind.from_address(_api.PyCapsule_GetPointer(capsule, name))


class Producer:
    """An object with __dlpack__ on memory of its own. deleted counts the calls of the deleter."""

    def __init__(self, values=(1, 2, 3), *, versioned=True, kind=c_int32, code=(0, 32), shape=None, strides=None,
                 flags=0, version=(1, 0), device=CPU, byte_offset=0, ndim=None, lanes=1, deleter=True, data=True):
        shape = (len(values),) if shape is None else shape
        self.memory = (kind * len(values))(*values)
        self.shape = (c_int64 * max(1, len(shape)))(*shape)
        self.strides = None if strides is None else (c_int64 * max(1, len(strides)))(*strides)
        self.deleted, self.calls, self.device = 0, [], device
        self.m = Versioned() if versioned else Plain()
        self.versioned = versioned
        self._deleter = DELETER(self._delete)
        self.m.deleter = ctypes.cast(self._deleter, c_void_p) if deleter else None
        if versioned:
            self.m.major, self.m.minor, self.m.flags = *version, flags
        self.m.t = DLTensor(ctypes.addressof(self.memory) if data else None, Device(*device),
                            len(shape) if ndim is None else ndim, DataType(*code, lanes), self.shape,
                            self.strides, byte_offset)

    def _delete(self, address):
        assert address == ctypes.addressof(self.m)
        self.deleted += 1

    def capsule(self):
        """A capsule without a destructor: whether the deleter runs is up to the consumer."""
        return _api.PyCapsule_New(ctypes.addressof(self.m), _names[self.versioned], None)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **kwargs):
        self.calls.append(kwargs)
        return self.capsule()


class OldProducer(Producer):
    """A producer of DLPack before 1.0, which knows only stream."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, versioned=False, **kwargs)

    def __dlpack__(self, stream=None):
        return super().__dlpack__()
