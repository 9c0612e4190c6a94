# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The archives of PyTorch's .pt files: broken ones, and files with random changes."""
import io
import os
import pickle
import random
import struct
import zipfile
import zlib

import pytest

import devtensor as dt
import pt_files as pt
from memory import growth

MUTATIONS = int(os.environ.get("DEVTENSOR_MUTATIONS", "1000"))
ERRORS = (ValueError, NotImplementedError)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.pt"


def load(path, v, *args, **kwargs):
    return dt.load_pt(pt.write(path, v, *args, **kwargs))


# ---- refused: archives ----

def test_the_format_before_pytorch_1_6_is_refused(path):
    path.write_bytes(pickle.dumps(0x1950a86a20f9469cfc6c, 2) + pickle.dumps(1001, 2) + pickle.dumps({}, 2))
    for function in dt.load_pt, dt.load:
        with pytest.raises(NotImplementedError, match="before PyTorch 1.6"):
            function(path)


def test_archives_without_one_pickle_are_refused(path):
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("a/other", b"x")
    with pytest.raises(ValueError, match="data.pkl"):
        dt.load_pt(path)
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("a/data.pkl", pt.pickled(1))
        z.writestr("b/data.pkl", pt.pickled(2))
    with pytest.raises(ValueError, match="data.pkl"):
        dt.load_pt(path)


def test_other_byte_orders_are_refused(path):
    with pytest.raises(NotImplementedError, match="byte order"):
        load(path, 1, byteorder=b"big")
    assert load(path, 1, byteorder=None) == 1


def test_compressed_archives_are_refused(path):
    with pytest.raises(NotImplementedError, match="compressed"):
        load(path, pt.tensor(), compression=zipfile.ZIP_DEFLATED)


def member(name, data, *, header=None, size=None, flags=0, method=0):
    """A local header with its data, and a function that makes the entry of the directory for an offset."""
    raw, size = name.encode(), len(data) if size is None else size
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, flags, method, 0, 0x21, zlib.crc32(data), size, size, len(raw), 0)

    def entry(offset):
        return struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, flags, method, 0, 0x21, zlib.crc32(data), size, size,
                           len(raw), 0, 0, 0, 0, 0, offset) + raw
    return (local + raw if header is None else header) + data, entry


def archive(*members, offsets=None, count=None, tail=b""):
    """A zip file of member() results, with other offsets or another number of entries if given."""
    body, entries = b"", []
    for i, (data, entry) in enumerate(members):
        entries.append(entry(len(body) if offsets is None or offsets[i] is None else offsets[i]))
        body += data
    directory = b"".join(entries)
    n = len(members) if count is None else count
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, n, n, len(directory), len(body), len(tail))
    return body + directory + end + tail


PICKLE = member("a/data.pkl", pt.pickled(pt.tensor()))
DATA = member("a/data/0", pt.FLOATS)


def test_the_archive_of_this_test_is_read(path):
    path.write_bytes(archive(PICKLE, DATA))
    assert dt.load_pt(path).tolist() == [[0, 1, 2], [3, 4, 5]]
    path.write_bytes(archive(PICKLE, DATA, tail=b"comment"))
    assert dt.load(path).shape == (2, 3)


ARCHIVES = {
    "entries that overlap": archive(PICKLE, DATA, member("a/data/1", pt.FLOATS), offsets=(None, None, len(PICKLE[0]))),
    "an entry in another": archive(member("a/data.pkl", pt.pickled(1) + DATA[0]), DATA,
                                   offsets=(0, 30 + len("a/data.pkl") + len(pt.pickled(1)))),
    "an offset beyond the file": archive(PICKLE, DATA, offsets=(0, 1 << 30)),
    "an offset in the directory": archive(PICKLE, DATA, offsets=(0, len(PICKLE[0]) + len(DATA[0]))),
    "a size beyond the file": archive(PICKLE, member("a/data/0", pt.FLOATS, size=1 << 31)),
    "a size into the directory": archive(PICKLE, member("a/data/0", pt.FLOATS, size=30)),
    "two entries of a name": archive(PICKLE, DATA, DATA),
    "a header of another name": archive(PICKLE, member("a/data/0", pt.FLOATS, header=member("a/data/1", b"")[0])),
    "no header": archive(PICKLE, member("a/data/0", pt.FLOATS, header=b"\0" * 38)),
    "fewer entries than it says": archive(PICKLE, DATA, count=3),
    "many entries": archive(PICKLE, DATA, count=60000),
    "an encrypted entry": archive(PICKLE, member("a/data/0", pt.FLOATS, flags=1)),
    "an unknown method": archive(PICKLE, member("a/data/0", pt.FLOATS, method=99)),
    "bytes after the end": archive(PICKLE, DATA) + b"x",
    "no end": archive(PICKLE, DATA)[:-22], "nothing": b"", "the magic": b"PK\3\4", "an end": b"PK\5\6" + bytes(17),
    "a text": b"hello" * 100,
    "a zip64 end at nowhere": archive(PICKLE, DATA)[:-22] + b"PK\6\7" + b"\xff" * 16 +
    struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xffff, 0xffff, 0xffffffff, 0xffffffff, 0),
    "several disks": archive(PICKLE, DATA)[:-18] + b"\1\0" + archive(PICKLE, DATA)[-16:],
}


@pytest.mark.parametrize("what", ARCHIVES)
def test_broken_archives_are_refused(path, what):
    path.write_bytes(ARCHIVES[what])
    with pytest.raises(ERRORS):
        dt.load_pt(path)
    with pytest.raises((*ERRORS, OSError, RuntimeError)):
        dt.load(path)


@pytest.mark.parametrize("bad", ["/a/data.pkl", "/etc/passwd", "../x", "a/../../x", "C:/x", "a\\x", "", "a/..", "a\0"])
def test_names_that_leave_the_archive_are_refused(path, bad):
    path.write_bytes(archive(PICKLE, DATA, member(bad, b"")))
    with pytest.raises(ValueError, match="name"):
        dt.load_pt(path)


def test_zip64_archives_are_read(path):
    with zipfile.ZipFile(path, "w") as z:
        for name, data in ("a/data.pkl", pt.pickled(pt.tensor())), ("a/data/0", pt.FLOATS):
            with z.open(name, "w", force_zip64=True) as f:
                f.write(data)
    assert dt.load_pt(path).shape == (2, 3)


def test_files_that_are_no_files_are_refused(path, tmp_path):
    os.mkfifo(path)
    for bad in path, tmp_path, "/dev/zero":
        with pytest.raises((ValueError, OSError)):
            dt.load_pt(bad)
        with pytest.raises((ValueError, OSError)):
            dt.load(bad)
    with pytest.raises(FileNotFoundError):
        dt.load_pt(tmp_path / "missing")
    with pytest.raises(TypeError):
        dt.load_pt(3.5)


def test_every_truncation_is_refused(path):
    data = archive(PICKLE, DATA)
    for n in range(len(data)):
        path.write_bytes(data[:n])
        with pytest.raises(ERRORS):
            dt.load_pt(path)
    raw = pt.pickled({"a": [1, "x", pt.tensor(), 2.5, (None, 2 ** 40)]})
    for n in range(len(raw)):
        with pytest.raises(ERRORS):
            load(path, None, raw=raw[:n])


def test_descriptors_are_closed(path):
    pt.write(path, pt.tensor(), {"0": b"x"})
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        with pytest.raises(ValueError):
            dt.load_pt(path)
    assert len(os.listdir("/proc/self/fd")) == before


# ---- mutations ----

def sample():
    """An archive with most of what is read, as bytes."""
    f = io.BytesIO()
    state = pt.ORDERED + pt.MARK + pt.text("w") + pt.tensor() + pt.text("p") + pt.call(
        "torch._utils", "_rebuild_parameter", pt.tensor(None, 0, (3,), (2,)), True, pt.ORDERED) + pt.SETITEMS
    v = {"state": state, "l": [1, 2.5, (True, None)], "d": pt.name("torch", "float16"),
         "b": pt.tensor(pt.storage("1", 4, ("torch", "BoolStorage")), 0, (4,), (1,)),
         "v3": pt.call("torch._utils", "_rebuild_tensor_v3",
                       pt.storage("0", 24, ("torch.storage", "UntypedStorage")), 0, (12,), (1,), False, pt.ORDERED,
                       pt.name("torch", "uint16"))}
    pt.write(f, v, {"0": pt.FLOATS, "1": b"\0\1\1\0"})
    return f.getvalue()


def mutate(data, random):
    """A few changes: bits, bytes, copies, insertions, removals, numbers at their limits."""
    b = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        at, kind = random.randrange(len(b)), random.randrange(6)
        if kind == 0:
            b[at] ^= 1 << random.randrange(8)
        elif kind == 1:
            b[at] = random.choice(b"\0\1\x7f\x80\xff.(]}RbQhqtcKJ\x8a\x8d\x93\x94\x85")
        elif kind == 2:
            n = random.choice((1, 2, 4, 8))
            b[at:at + n] = random.choice((b"\0", b"\xff", b"\x7f")) * n
        elif kind == 3:
            other = random.randrange(len(b))
            b[at:at + 8] = b[other:other + 8]
        elif kind == 4:
            b[at:at] = bytes(random.randrange(256) for _ in range(random.randrange(1, 6)))
        else:
            del b[at:at + random.randrange(1, 6)]
    return bytes(b)


def use(v, depth=0):
    """Reads all of a loaded value."""
    assert depth <= 100
    if isinstance(v, dt.Tensor):
        if v.numel() <= 1 << 16:
            v.detach().tolist() if v.dtype not in (dt.float8_e4m3fn, dt.float8_e5m2) else v.detach().float()
    elif isinstance(v, dict):
        for x in v.values():
            use(x, depth + 1)
    elif isinstance(v, (list, tuple)):
        for x in v:
            use(x, depth + 1)
    else:
        assert v is None or isinstance(v, (bool, int, float, complex, str, dt.dtype))


@pytest.mark.parametrize("part", ["archive", "pickle"])
def test_mutated_files_are_read_or_refused(path, part, monkeypatch):
    """No mutation crashes, hangs, executes or allocates beyond the limits; most are refused."""
    random_, data = random.Random(16), sample()
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        raw = z.read("archive/data.pkl")
    for f in "system", "popen", "mkdir", "execv":
        monkeypatch.setattr(os, f, lambda *a: pytest.fail("executed"))
    loaded = 0
    for i in range(MUTATIONS):
        if part == "archive":
            path.write_bytes(mutate(data, random_))
        else:
            pt.write(path, None, {"0": pt.FLOATS, "1": b"\0\1\1\0"}, raw=mutate(raw, random_))
        try:
            use(dt.load_pt(path, map=random_.choice((None, "r", "c"))))
            loaded += 1
        except ERRORS:
            pass
    assert 0 < loaded < MUTATIONS


def test_loading_does_not_grow_memory(path):
    pt.write_aligned(path, {"a": pt.tensor(), "b": pt.tensor(None, 0, (3,), (1,), True)})

    def call():
        for mapping in None, "c":
            dt.load_pt(path, map=mapping)

    def fail():
        try:
            load(path.with_name("bad"), pt.tensor(None, 0, (7,), (1,)))
        except ValueError:
            pass

    assert growth(call, 1000) < 1024 and growth(fail, 500) < 1024
