# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The directory of a zip file, read for files that are not trusted.

Every number is compared with the size of the file before it is used: entries lie inside the file, do not
overlap each other or the directory, and have relative names without "..". Nothing is ever extracted.
"""
import os
import stat
import struct

_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64 = struct.Struct("<4sLQL")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")

MAX_ENTRIES = 1 << 20
STORED = 0


class Entry:
    """A member: its data is size bytes at offset, if method is STORED."""
    __slots__ = ("name", "method", "encrypted", "size", "compressed", "header", "offset")


def bad(path, text):
    """The exception for a file that violates its format."""
    return ValueError(f"{os.fspath(path)!r}: {text}")


def open_regular(path):
    """A descriptor of a regular file and its size. A FIFO or device is refused without waiting for it."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        st = os.fstat(fd)
        if not stat.S_ISREG(st.st_mode):
            raise bad(path, "not a regular file")
        return fd, st.st_size
    except BaseException:
        os.close(fd)
        raise


class Directory:
    """The entries of an open zip file by name. fd still belongs to the caller."""

    def __init__(self, fd, size, path):
        self.fd, self.size, self.path = fd, size, path
        self.entries = {}
        start, count, length = self._find()
        self._read_entries(self.read(start, length), count)
        self._locate(start)

    def read(self, offset, length):
        """Exactly length bytes. ValueError: beyond the end of the file."""
        if offset < 0 or length < 0 or offset + length > self.size:
            raise bad(self.path, f"{length} bytes at {offset} are outside the file of {self.size} bytes")
        out = bytearray(length)
        self.read_into(memoryview(out), offset)
        return bytes(out)

    def read_into(self, view, offset):
        """Fills a writable view of bytes."""
        done = 0
        while done < len(view):
            n = os.preadv(self.fd, [view[done:]], offset + done)
            if n == 0:
                raise bad(self.path, "the file has been truncated")
            done += n

    def data_of(self, entry, limit):
        """The bytes of a stored entry."""
        self.check_stored(entry)
        if entry.size > limit:
            raise bad(self.path, f"{entry.name!r} has {entry.size} bytes, more than {limit}")
        return self.read(entry.offset, entry.size)

    def check_stored(self, entry):
        """NotImplementedError for compressed and encrypted entries."""
        if entry.method != STORED or entry.encrypted:
            raise NotImplementedError(f"{os.fspath(self.path)!r}: {entry.name!r} is compressed or encrypted")

    # ---- directory ----

    def _find(self):
        """Offset, number of entries and length of the directory."""
        length = min(self.size, _END.size + 65535)
        tail = self.read(self.size - length, length)
        at = tail.rfind(b"PK\5\6", 0, length - _END.size + 4) if length >= _END.size else -1
        if at < 0:
            raise bad(self.path, "no end of a zip directory: the file is truncated, or no zip file")
        _, disk, first, here, count, size, offset, comment = _END.unpack_from(tail, at)
        if at + _END.size + comment != length:
            raise bad(self.path, "bytes after the end of the zip directory")
        end = self.size - length + at
        if 0xffff in (here, count) or 0xffffffff in (size, offset):
            disk, first, here, count, size, offset, end = self._find64(end)
        if disk or first or here != count:
            raise bad(self.path, "a zip file of several parts")
        if count > MAX_ENTRIES or offset + size > end or count * _ENTRY.size > size:
            raise bad(self.path, f"a zip directory of {count} entries, {size} bytes at {offset}")
        return offset, count, size

    def _find64(self, end):
        start = end - _LOCATOR64.size
        magic, disk, offset, _ = _LOCATOR64.unpack(self.read(start, _LOCATOR64.size))
        if magic != b"PK\6\7" or disk or offset + _END64.size > start:
            raise bad(self.path, "no end of a zip64 directory")
        magic, _, _, _, disk, first, here, count, size, at = _END64.unpack(self.read(offset, _END64.size))
        if magic != b"PK\6\6":
            raise bad(self.path, "no end of a zip64 directory")
        return disk, first, here, count, size, at, offset

    def _read_entries(self, data, count):
        at = 0
        for _ in range(count):
            if at + _ENTRY.size > len(data):
                raise bad(self.path, "the zip directory is too short")
            e = Entry()
            at = self._read_entry(e, data, at)
            if e.name in self.entries:
                raise bad(self.path, f"two entries {e.name!r}")
            self.entries[e.name] = e

    def _read_entry(self, e, data, at):
        """Fills e from the directory. Returns the offset of the next entry."""
        (magic, _, _, flags, e.method, _, _, _, e.compressed, e.size, name, extra, comment, disk, _, _,
         e.header) = _ENTRY.unpack_from(data, at)
        name += at + _ENTRY.size
        extra += name
        if magic != b"PK\1\2" or extra + comment > len(data):
            raise bad(self.path, "a broken entry of the zip directory")
        e.encrypted = bool(flags & 0x2041)
        e.name = self._check_name(data[at + _ENTRY.size:name])
        self._read_zip64(e, data[name:extra])
        if disk not in (0, 0xffff):
            raise bad(self.path, "a zip file of several parts")
        if e.method == STORED and e.size != e.compressed:
            raise bad(self.path, f"{e.name!r} is stored in {e.compressed} bytes, and has {e.size}")
        return extra + comment

    def _check_name(self, raw):
        try:
            name = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise bad(self.path, f"the name {raw[:80]!r} is no UTF-8") from None
        if (not name or "\0" in name or "\\" in name or name.startswith("/") or
                ".." in name.split("/") or name[1:2] == ":"):
            raise bad(self.path, f"the name {name[:80]!r} is empty, absolute, or leaves its folder")
        return name

    def _read_zip64(self, e, extra):
        """Numbers of 64 bits, in the order size, compressed size, offset, where the others are all ones."""
        at = 0
        while at + 4 <= len(extra):
            kind, length = struct.unpack_from("<2H", extra, at)
            at += 4
            if kind == 1:
                field = extra[at:at + length]
                for name in ("size", "compressed", "header"):
                    if getattr(e, name) == 0xffffffff:
                        if len(field) < 8:
                            raise bad(self.path, f"{e.name!r} has a broken zip64 field")
                        setattr(e, name, struct.unpack_from("<Q", field)[0])
                        field = field[8:]
                return
            at += length

    def _locate(self, directory):
        """Where the data of each entry begins: its local header is read, and must name the same entry."""
        end = 0
        for e in sorted(self.entries.values(), key=lambda e: e.header):
            if e.header < end or e.header + _LOCAL.size > directory:
                raise bad(self.path, f"{e.name!r} overlaps another entry or the directory")
            f = _LOCAL.unpack(self.read(e.header, _LOCAL.size))
            names, extra = f[9], f[10]
            e.offset = e.header + _LOCAL.size + names + extra
            end = e.offset + e.compressed
            if f[0] != b"PK\3\4" or f[3] != e.method or end > directory:
                raise bad(self.path, f"{e.name!r} overlaps the directory, or its header is broken")
            if self.read(e.header + _LOCAL.size, names) != e.name.encode():
                raise bad(self.path, f"the header of {e.name!r} has another name")
