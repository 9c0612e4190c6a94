# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Tensors of PyTorch's .pt files, which are zip archives with a pickle.

The pickle is read by devtensor._unpickle, which executes nothing. Tensors that shared a storage share it
again, with their strides; each is checked against its storage, and each storage against its entry of the
archive.
"""
import mmap
import os
from collections import OrderedDict

from devtensor import _C
from devtensor._unpickle import Function, Reader, UnpicklingError, refuse_global, set_items
from devtensor._zip import Directory, bad, open_regular

MAX_PICKLE = 256 << 20
_INT64 = 1 << 63

_DTYPES = {
    "float64": "float64", "double": "float64", "float32": "float32", "float": "float32",
    "float16": "float16", "half": "float16", "bfloat16": "bfloat16", "complex64": "complex64",
    "complex128": "complex128", "int64": "int64", "long": "int64", "int32": "int32", "int": "int32",
    "int16": "int16", "short": "int16", "int8": "int8", "uint8": "uint8", "uint16": "uint16",
    "uint32": "uint32", "uint64": "uint64", "bool": "bool", "float8_e4m3fn": "float8_e4m3fn",
    "float8_e5m2": "float8_e5m2",
}

_STORAGES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16", "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool",
}


class _StorageType:
    """A class of storages; dtype is None for one of bytes."""
    internal_to_pickle = True

    def __init__(self, name, dtype):
        self.name, self.dtype = name, dtype


class _TensorType:
    """torch.Tensor or Parameter, as an argument of _rebuild_from_type_v2."""
    internal_to_pickle = True

    def __init__(self, name):
        self.name = name


class _Bytes:
    """The bytes of a storage: a tensor, and whether they are known to be 0 and 1."""

    def __init__(self, data):
        self.data, self.are_bools = data, False

    def check_bools(self):
        """Other values than 0 and 1 become 1; in a mapped file, where that is impossible, they are refused."""
        data = self.data
        if not self.are_bools and data.numel() and int(data.max()) > 1:
            with memoryview(data) as m:
                if m.readonly:
                    raise UnpicklingError("a mapped tensor of bool has other values than 0 and 1")
            data.copy_(data.ne(0))
        self.are_bools = True


class _Storage:
    """Bytes of the archive, and the dtype in which they were saved (None: bytes)."""
    internal_to_pickle = True
    name = "storage"

    def __init__(self, shared, dtype):
        self.shared, self.data, self.dtype = shared, shared.data, dtype


def _integers(value, what):
    if type(value) is not tuple or not all(type(i) is int and 0 <= i < _INT64 for i in value):
        raise UnpicklingError(f"a tensor has a broken {what}: {str(value)[:80]}")
    return value


def _ordered_dict(items=()):
    if type(items) not in (list, tuple):
        raise UnpicklingError("an OrderedDict of no list")
    flat = []
    for item in items:
        if type(item) not in (list, tuple) or len(item) != 2:
            raise UnpicklingError("an OrderedDict of no pairs")
        flat.extend(item)
    return set_items(OrderedDict(), flat)


def _complex(real, imag):
    if type(real) is not float or type(imag) is not float:
        raise UnpicklingError("a complex number of no floats")
    return complex(real, imag)


def _size(values):
    return _integers(values, "size")


# ---- tensors ----

def _view(storage, dtype, offset, size, stride, requires_grad):
    if type(storage) is not _Storage:
        raise UnpicklingError(f"a tensor has a {type(storage).__name__} as its storage")
    _integers(size, "size"), _integers(stride, "stride"), _integers((offset,), "offset")
    if len(size) != len(stride) or type(requires_grad) is not bool:
        raise UnpicklingError(f"a tensor of size {str(size)[:80]} and stride {str(stride)[:80]}")
    total = storage.data.numel() // dtype.itemsize
    last = offset + sum((n - 1) * s for n, s in zip(size, stride))
    if 0 in size:
        last = offset - 1
    if last >= total or offset > total:
        raise UnpicklingError(f"a tensor of size {str(size)[:80]}, stride {str(stride)[:80]} and offset {offset} "
                              f"leaves its storage of {total} elements")
    if storage.data.numel() % dtype.itemsize:
        raise UnpicklingError(f"a storage of {storage.data.numel()} bytes is no multiple of {dtype}")
    if dtype is _C.bool:
        storage.shared.check_bools()
    t = storage.data.view(dtype).as_strided(size, stride, offset)
    return t.detach().requires_grad_(requires_grad)


def _check_hooks(hooks):
    if hooks is not None and (type(hooks) is not OrderedDict or hooks):
        raise UnpicklingError("a tensor with hooks")


def _rebuild_tensor(storage, offset, size, stride):
    return _rebuild_tensor_v2(storage, offset, size, stride, False, None)


def _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks, metadata=None):
    _check_hooks(hooks)
    if metadata:
        raise UnpicklingError("a tensor with metadata (a conjugate or negative view) is not read")
    if type(storage) is _Storage and storage.dtype is None:
        raise UnpicklingError("a tensor without a dtype")
    dtype = storage.dtype if type(storage) is _Storage else None
    return _view(storage, dtype, offset, size, stride, requires_grad)


def _rebuild_tensor_v3(storage, offset, size, stride, requires_grad, hooks, dtype, metadata=None):
    _check_hooks(hooks)
    if metadata:
        raise UnpicklingError("a tensor with metadata (a conjugate or negative view) is not read")
    if type(dtype) is not type(_C.float32):
        raise UnpicklingError(f"a tensor has a {type(dtype).__name__} as its dtype")
    return _view(storage, dtype, offset, size, stride, requires_grad)


def _rebuild_parameter(data, requires_grad, hooks):
    _check_hooks(hooks)
    if not isinstance(data, _C.Tensor) or type(requires_grad) is not bool:
        raise UnpicklingError(f"a parameter of a {type(data).__name__}")
    return data.detach().requires_grad_(requires_grad)


def _rebuild_from_type(function, kind, arguments, state):
    if type(function) is not Function or function.call not in _REBUILD or type(kind) is not _TensorType:
        raise UnpicklingError("a tensor of a class that is not read")
    if type(arguments) is not tuple or state not in ({}, None):
        raise UnpicklingError("a tensor with attributes")
    return function.call(*arguments)


_REBUILD = (_rebuild_tensor, _rebuild_tensor_v2, _rebuild_tensor_v3, _rebuild_parameter)


def _make_globals():
    torch = {
        "torch._utils": {"_rebuild_tensor": _rebuild_tensor, "_rebuild_tensor_v2": _rebuild_tensor_v2,
                         "_rebuild_tensor_v3": _rebuild_tensor_v3, "_rebuild_parameter": _rebuild_parameter},
        "torch._tensor": {"_rebuild_from_type_v2": _rebuild_from_type},
        "torch": {"Size": _size},
        "collections": {"OrderedDict": _ordered_dict},
        "builtins": {"complex": _complex}, "__builtin__": {"complex": _complex},
    }
    known = {(module, name): Function(f"{module}.{name}", f) for module, names in torch.items()
             for name, f in names.items()}
    for name, dtype in _DTYPES.items():
        known["torch", name] = getattr(_C, dtype)
    for name, dtype in _STORAGES.items():
        known["torch", name] = _StorageType(f"torch.{name}", getattr(_C, dtype))
    known["torch.storage", "UntypedStorage"] = _StorageType("torch.storage.UntypedStorage", None)
    known["torch", "UntypedStorage"] = known["torch.storage", "UntypedStorage"]
    known["torch", "Tensor"] = known["torch._tensor", "Tensor"] = _TensorType("torch.Tensor")
    known["torch.nn.parameter", "Parameter"] = _TensorType("torch.nn.parameter.Parameter")
    return known


_GLOBALS = _make_globals()


def _find_global(module, name):
    try:
        return _GLOBALS[module, name]
    except KeyError:
        raise refuse_global(module, name) from None


# ---- the archive ----

class _Storages:
    """The storages of an archive, each loaded once."""

    def __init__(self, directory, prefix, mapping, max_bytes):
        self.directory, self.prefix, self.map = directory, prefix, mapping
        self.left, self.loaded = max_bytes, {}

    def persistent(self, pid):
        """A storage for its id: ('storage', class, key, location, number of elements)."""
        if type(pid) is not tuple or len(pid) != 5 or pid[0] != "storage" or type(pid[1]) is not _StorageType:
            raise UnpicklingError("a persistent id that is no storage")
        _, kind, key, _, count = pid
        if type(key) is not str or type(count) is not int or not 0 <= count < _INT64:
            raise UnpicklingError("a storage with a broken key or size")
        shared = self._load(key)
        nbytes = count * (kind.dtype.itemsize if kind.dtype else 1)
        if nbytes != shared.data.numel():
            raise UnpicklingError(f"the storage {key[:80]!r} should have {nbytes} bytes, its entry has "
                                  f"{shared.data.numel()}")
        return _Storage(shared, kind.dtype)

    def _load(self, key):
        if key not in self.loaded:
            entry = self.directory.entries.get(f"{self.prefix}data/{key}")
            if entry is None:
                raise UnpicklingError(f"the archive has no storage {key[:80]!r}")
            self.directory.check_stored(entry)
            if self.left is not None:
                self.left -= entry.size
                if self.left < 0:
                    raise bad(self.directory.path, "the tensors have more bytes than max_bytes")
            self.loaded[key] = _Bytes(self._read(entry))
        return self.loaded[key]

    def _read(self, entry):
        if self.map is not None and entry.size:
            return _C.frombuffer(self.map, dtype=_C.uint8, offset=entry.offset, count=entry.size)
        t = _C.empty((entry.size,), dtype=_C.uint8)
        if entry.size:
            with memoryview(t) as m:
                self.directory.read_into(m, entry.offset)
        return t


def _find_prefix(directory):
    """The folder of the archive, with a slash: that of the one data.pkl at its top."""
    found = [n for n in directory.entries if n.split("/")[-1] == "data.pkl" and n.count("/") < 2]
    if len(found) != 1:
        raise bad(directory.path, f"{len(found)} entries data.pkl instead of one: no file of torch.save()")
    return found[0][:-len("data.pkl")]


def _check_byteorder(directory, prefix):
    entry = directory.entries.get(prefix + "byteorder")
    if entry and directory.data_of(entry, 16) != b"little":
        raise NotImplementedError(f"{os.fspath(directory.path)!r}: the file has another byte order than little")


def _make_map(fd, size, mapping):
    if mapping is None:
        return None
    access = {"r": mmap.ACCESS_READ, "c": mmap.ACCESS_COPY}.get(mapping)
    if access is None:
        raise ValueError(f"map must be None, 'r' (read-only) or 'c' (copy on write), got {mapping!r}")
    return mmap.mmap(fd, size, access=access)


def load_pt(path, *, map=None, max_bytes=None):
    """The value that torch.save() wrote to a file: tensors in dicts, lists and tuples, numbers and strings.

    Tensors are on the CPU. map: None reads the storages; "r" and "c" map the file, read-only or copying pages
    that are written; a mapped file must not be truncated. max_bytes limits the bytes of all storages.

    Nothing in the file is executed. UnpicklingError (a ValueError): a file that is broken, or refers to another
    class or function, which the message names. NotImplementedError: the format before PyTorch 1.6, compression.
    """
    fd, size = open_regular(path)
    try:
        check_not_legacy(os.pread(fd, 16, 0), path)
        directory = Directory(fd, size, path)
        prefix = _find_prefix(directory)
        _check_byteorder(directory, prefix)
        storages = _Storages(directory, prefix, _make_map(fd, size, map), max_bytes)
        data = directory.data_of(directory.entries[prefix + "data.pkl"], MAX_PICKLE)
        return _read_pickle(data, storages, path)
    finally:
        os.close(fd)


def _read_pickle(data, storages, path):
    try:
        return Reader(data, _find_global, storages.persistent).load()
    except UnpicklingError as e:
        raise UnpicklingError(f"{os.fspath(path)!r}: {e}") from None


def check_not_legacy(start, path):
    """NotImplementedError for the format that torch.save() wrote before PyTorch 1.6."""
    if start[:1] == b"\x80" and start[1:2] in (b"\2", b"\3", b"\4", b"\5"):
        raise NotImplementedError(
            f"{os.fspath(path)!r} is a bare pickle, as torch.save() wrote before PyTorch 1.6, and is not read: "
            "load it with PyTorch and save it again")
