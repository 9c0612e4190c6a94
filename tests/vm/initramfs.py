# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The initramfs of the guest: files and the libraries they need, as a newc cpio archive."""
import os
import re
import stat
import subprocess

SYSTEM_LIBS = re.compile(r"^(/usr)?/lib(64|32)?/")


class Tree:
    """Collects files for an initramfs. A file added for an existing path is ignored."""

    def __init__(self):
        self.entries = {}       # guest path without leading slash -> (mode, content)

    def folder(self, path, mode=0o755):
        path = path.strip("/")
        if not path or path in self.entries:
            return
        self.folder(os.path.dirname(path))
        self.entries[path] = (stat.S_IFDIR | mode, b"")

    def data(self, path, content, mode=0o644):
        path = path.strip("/")
        if path in self.entries:
            return
        self.folder(os.path.dirname(path))
        self.entries[path] = (stat.S_IFREG | mode, content)

    def link(self, path, target):
        path = path.strip("/")
        self.folder(os.path.dirname(path))
        self.entries.setdefault(path, (stat.S_IFLNK | 0o777, target.encode()))

    def add(self, source, dest, private="/t"):
        """Adds a file or folder of the host. The libraries that ldd lists for an ELF file are added,
        too: system libraries at their own path, all others in the folder `private`."""
        if os.path.isdir(source):
            for base, _, names in os.walk(source):
                for name in names:
                    inner = os.path.relpath(os.path.join(base, name), source)
                    self.add(os.path.join(base, name), os.path.join(dest, inner), private)
            return
        with open(source, "rb") as f:
            content = f.read()
        mode = 0o755 if os.access(source, os.X_OK) else 0o644
        self.data(dest, content, mode)
        if content[:4] == b"\x7fELF" and not source.endswith(".ko"):
            for lib in libraries(source):
                to = lib if SYSTEM_LIBS.match(lib) else os.path.join(private, os.path.basename(lib))
                if to.strip("/") not in self.entries:
                    with open(lib, "rb") as f:
                        self.data(to, f.read(), 0o755)

    def write(self, out):
        """Writes newc entries: a header of 8-digit hex fields, the name and the content, each padded
        to 4 bytes."""
        def entry(number, name, mode, content):
            raw = name.encode() + b"\0"
            fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(raw), 0)
            head = b"070701" + b"".join(b"%08X" % field for field in fields) + raw
            out.write(head + b"\0" * (-len(head) % 4) + content + b"\0" * (-len(content) % 4))

        for number, (name, (mode, content)) in enumerate(self.entries.items(), 1):
            entry(number, name, mode, content)
        entry(0, "TRAILER!!!", 0, b"")


def libraries(binary):
    """Absolute paths of the shared libraries that the host loads for a binary."""
    done = subprocess.run(["ldd", binary], capture_output=True, text=True)
    missing = re.findall(r"^\s*(\S+) => not found", done.stdout, re.M)
    if missing:
        raise SystemExit(f"tests/vm/run: {binary} needs {', '.join(missing)}, not found here")
    return re.findall(r"(?:=> |^\s*)(/\S+) \(0x", done.stdout, re.M)
