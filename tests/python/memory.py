# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Resident memory and live tensors of the process, for tests of leaks."""
import ctypes
import gc

import pytest

from devtensor import _C


class _Counts(ctypes.Structure):
    _fields_ = [("tensors", ctypes.c_uint64), ("storages", ctypes.c_uint64)]


def live():
    """The numbers of tensors and of storages of the C library in this process."""
    counts = _Counts()
    ctypes.CDLL(_C.__file__).tensor_live_counts(ctypes.byref(counts))
    return counts.tensors, counts.storages


def live_tensors():
    return live()[0]


def resident():
    """Kilobytes of resident memory that no file backs."""
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("RssAnon"))


def skip_with_sanitizer():
    """Skips a test of resident memory where freed memory is kept."""
    if hasattr(ctypes.CDLL(None), "__asan_init"):
        pytest.skip("AddressSanitizer keeps memory that was freed")


def growth(function, n, warm=None):
    """Kilobytes by which n calls let the resident memory grow, after a tenth as many to warm up."""
    skip_with_sanitizer()
    for _ in range(warm or n // 10 + 1):
        function()
    gc.collect()
    before = resident()
    for _ in range(n):
        function()
    gc.collect()
    return resident() - before
