# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Resident memory of the process, for tests of leaks."""
import ctypes
import gc
import os

import pytest

import devtensor._C


def resident():
    """Kilobytes of resident memory that no file backs."""
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("RssAnon"))


class _Counts(ctypes.Structure):
    _fields_ = [("tensors", ctypes.c_uint64), ("storages", ctypes.c_uint64)]


def live():
    """The numbers of tensors and of storages of the process."""
    counts = _Counts()
    library = os.path.join(os.path.dirname(devtensor._C.__file__), "libtensor.so.0")
    ctypes.CDLL(library).tensor_live_counts(ctypes.byref(counts))
    return counts.tensors, counts.storages


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
