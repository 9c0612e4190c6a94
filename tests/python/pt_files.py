# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Writes files as torch.save() does, without PyTorch, so that tests can also write wrong ones."""
import struct
import zipfile

MARK, STOP, TUPLE, REDUCE, BINPERSID, EMPTY_TUPLE = b"(", b".", b"t", b"R", b"Q", b")"
EMPTY_LIST, EMPTY_DICT, APPENDS, SETITEMS, BUILD = b"]", b"}", b"e", b"u", b"b"
NONE, TRUE, FALSE = b"N", b"\x88", b"\x89"


def text(s):
    raw = s.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(raw)) + raw


def number(i):
    if -2 ** 31 <= i < 2 ** 31:
        return b"J" + struct.pack("<i", i)
    raw = i.to_bytes(i.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


def value(v):
    """The opcodes of a value; bytes are opcodes already."""
    if isinstance(v, bytes):
        return v
    if v is None or isinstance(v, bool):
        return {None: NONE, True: TRUE, False: FALSE}[v]
    if isinstance(v, int):
        return number(v)
    if isinstance(v, float):
        return b"G" + struct.pack(">d", v)
    if isinstance(v, str):
        return text(v)
    if isinstance(v, tuple):
        return MARK + b"".join(map(value, v)) + TUPLE
    if isinstance(v, list):
        return EMPTY_LIST + MARK + b"".join(map(value, v)) + APPENDS
    return EMPTY_DICT + MARK + b"".join(value(k) + value(x) for k, x in v.items()) + SETITEMS


def name(module, attribute):
    return f"c{module}\n{attribute}\n".encode()


def call(module, function, *arguments):
    return name(module, function) + value(arguments) + REDUCE


ORDERED = call("collections", "OrderedDict")


def storage(key="0", count=6, kind=("torch", "FloatStorage"), location="cpu"):
    return value(("storage", name(*kind), key, location, count)) + BINPERSID


def tensor(s=None, offset=0, size=(2, 3), stride=(3, 1), requires_grad=False, hooks=ORDERED, *more):
    """_rebuild_tensor_v2 of a storage."""
    return call("torch._utils", "_rebuild_tensor_v2", storage() if s is None else s, offset, size, stride,
                requires_grad, hooks, *more)


def pickled(v):
    return b"\x80\x02" + value(v) + STOP


FLOATS = struct.pack("<6f", *range(6))


def write(path, v, storages=None, *, raw=None, prefix="archive/", byteorder=b"little", version=b"3\n", **kwargs):
    """An archive with a value and its storages, by key. raw: the bytes of data.pkl."""
    storages = {"0": FLOATS} if storages is None else storages
    with zipfile.ZipFile(path, "w", kwargs.get("compression", zipfile.ZIP_STORED)) as z:
        z.writestr(prefix + "data.pkl", pickled(v) if raw is None else raw)
        if byteorder is not None:
            z.writestr(prefix + "byteorder", byteorder)
        for key, data in storages.items():
            z.writestr(f"{prefix}data/{key}", data)
        z.writestr(prefix + "version", version)
    return path


def write_aligned(path, v, storages=None, alignment=16):
    """As write(), with the data of the storage 0 at a multiple of the alignment, as PyTorch does it by padding."""
    for length in range(1, alignment + 1):
        write(path, v, storages, prefix="a" * length + "/")
        with zipfile.ZipFile(path) as z:
            info = z.getinfo("a" * length + "/data/0")
            if (info.header_offset + 30 + len(info.filename)) % alignment == 0:
                return path
    raise AssertionError("the data could not be aligned")
