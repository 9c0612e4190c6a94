# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Tensors in files: .npy, .npz and safetensors, and the tensors of PyTorch's .pt files.

Loading reads directly into the memory of the tensors, or maps the file. Saving replaces a file when all is
written, and keeps the old one otherwise. Files are not trusted: a file that violates its format is a
ValueError, one with a valid feature that is not supported a NotImplementedError, and a failed system call an
OSError.

map: None reads the data; "r" maps the file, so that its pages are read when they are used, and the tensors
are read-only; "c" maps it so that pages which are written become copies, and the file never changes. A mapped
file must not be truncated.
max_bytes: a larger tensor, or more bytes of tensors in all, is a ValueError before memory is allocated.
"""
import os
from collections.abc import Mapping

from devtensor import _C
from devtensor._unpickle import UnpicklingError
from devtensor._zip import open_regular
from devtensor.pt import check_not_legacy, load_pt

__all__ = ["Archive", "UnpicklingError", "load", "load_npy", "load_npz", "load_pt", "load_safetensors", "open_npz",
           "open_safetensors", "save", "save_npy", "save_npz", "save_safetensors"]


class Archive(Mapping):
    """An open file of named tensors: a mapping whose tensors are loaded when they are looked up.

    Each look-up loads a new tensor, which stays valid after the archive is closed. Use it as a context
    manager, or call close(); afterwards it raises ValueError. May be used by several threads.
    """

    def __init__(self, handle):
        self._handle = handle
        self._names = dict.fromkeys(handle.names())
        self.metadata = handle.metadata()

    def __getitem__(self, name):
        return self._handle.get(name)

    def __iter__(self):
        return iter(self._names)

    def __len__(self):
        return len(self._names)

    def __contains__(self, name):
        return name in self._names

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __repr__(self):
        return f"<Archive of {len(self)} tensors>"

    def close(self):
        """Close the file. Tensors that were loaded stay."""
        self._handle.close()


def _load_all(archive, max_bytes):
    tensors, left = {}, max_bytes
    with archive:
        for name in archive:
            t = tensors[name] = archive[name]
            if left is not None:
                left -= t.nbytes
                if left < 0:
                    raise ValueError(f"the tensors have more than {max_bytes} bytes")
    return tensors


def _pairs(tensors, what):
    if not isinstance(tensors, Mapping):
        raise TypeError(f"{what}: expected a mapping of names to tensors, got {type(tensors).__name__}")
    items = list(tensors.items())
    return tuple(name for name, _ in items), tuple(t for _, t in items)


# ---- npy ----

def save_npy(path, t):
    """Save a tensor of any strides and device in NumPy's format."""
    _C._save_npy(path, t)


def load_npy(path, *, map=None, max_bytes=None, shareable=False):
    """The tensor of a .npy file. shareable: in a buffer that can be sent to other processes."""
    return _C._load_npy(path, map, max_bytes, shareable)


# ---- npz ----

def save_npz(path, tensors, *, compressed=False):
    """Save a mapping of names to tensors as a zip file of .npy files. Compressed ones cannot be mapped."""
    _C._save_npz(path, *_pairs(tensors, "save_npz"), compressed)


def open_npz(path, *, map=None, max_bytes=None, shareable=False):
    """An Archive of a .npz file; max_bytes limits each tensor."""
    return Archive(_C._open_npz(path, map, max_bytes, shareable))


def load_npz(path, *, map=None, max_bytes=None, shareable=False):
    """A dict of all tensors of a .npz file."""
    return _load_all(open_npz(path, map=map, max_bytes=max_bytes, shareable=shareable), max_bytes)


# ---- safetensors ----

def save_safetensors(path, tensors, *, metadata=None):
    """Save a mapping of names to tensors, and one of strings to strings, in the format safetensors."""
    metadata = dict(metadata or {})
    _C._save_safetensors(path, *_pairs(tensors, "save_safetensors"), tuple(metadata), tuple(metadata.values()))


def open_safetensors(path, *, map=None, max_bytes=None, shareable=False):
    """An Archive of a safetensors file, whose metadata is a dict; max_bytes limits each tensor."""
    return Archive(_C._open_safetensors(path, map, max_bytes, shareable))


def load_safetensors(path, *, map=None, max_bytes=None, shareable=False):
    """A dict of all tensors of a safetensors file."""
    return _load_all(open_safetensors(path, map=map, max_bytes=max_bytes, shareable=shareable), max_bytes)


# ---- any format ----

def save(obj, path):
    """Save a dict of names to tensors, such as a state dict, in the format safetensors.

    TypeError: obj is no such dict. Tensors that share memory are saved independently of each other.
    """
    if not isinstance(obj, Mapping):
        raise TypeError(f"save: expected a dict of names to tensors, got {type(obj).__name__}: save_npy() saves a "
                        "single tensor")
    save_safetensors(path, obj)


def _first_bytes(path):
    """The begin of a file, with the name of the first member of a zip file."""
    fd, _ = open_regular(path)
    try:
        return os.pread(fd, 30 + 65535, 0)
    finally:
        os.close(fd)


def _is_npz(start):
    """True if the first member of a zip file is a .npy file, or there is none."""
    return start[:4] == b"PK\5\6" or start[30:30 + int.from_bytes(start[26:28], "little")].endswith(b".npy")


def load(path, *, map=None, max_bytes=None):
    """The content of a file: of save(), save_npy(), save_npz() or torch.save(). The format is found by content.

    A dict of tensors, the tensor of a .npy file, or the value that torch.save() wrote: see load_pt().
    """
    start = _first_bytes(path)
    if start[:6] == b"\x93NUMPY":
        return load_npy(path, map=map, max_bytes=max_bytes)
    if start[:4] in (b"PK\3\4", b"PK\5\6"):
        function = load_npz if _is_npz(start) else load_pt
        return function(path, map=map, max_bytes=max_bytes)
    check_not_legacy(start, path)
    return load_safetensors(path, map=map, max_bytes=max_bytes)
