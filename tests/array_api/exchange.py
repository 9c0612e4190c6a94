# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Tests DLPack between libtensor, NumPy and PyTorch: both sides share memory, which either side keeps alive."""
import ctypes as C
import gc
import os
import sys
import weakref

import numpy as np
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
import array_api as xp  # noqa: E402
from array_api import dlpack  # noqa: E402
from array_api.core import boxed, lib  # noqa: E402

TYPES = [n for n in xp.core.DTYPES]


def refused(fn, *words):
    try:
        fn()
    except BufferError as e:
        assert all(w in str(e) for w in words), e
    else:
        raise AssertionError('not refused')


def ours_in_numpy_and_theirs_here():
    for name in TYPES:
        x = xp.astype(xp.asarray([[1, 0, 1], [0, 1, 1]]), getattr(xp, name))
        a = np.from_dlpack(x)
        assert a.dtype == name and a.tolist() == x.tolist(), name
        y = xp.from_dlpack(np.arange(6).astype(name).reshape(2, 3)[:, ::-1])
        assert y.dtype is x.dtype and y.tolist() == np.arange(6).astype(name).reshape(2, 3)[:, ::-1].tolist(), name
        assert lib.so.tensor_data(x._t.ptr) == a.__array_interface__['data'][0]


def ours_in_pytorch_and_theirs_here():
    for name in TYPES:
        x = xp.astype(xp.asarray([[1, 0, 1], [0, 1, 1]]), getattr(xp, name))
        t = torch.from_dlpack(x.T)
        assert t.dtype == getattr(torch, name) and t.tolist() == x.T.tolist() and t.stride() == (1, 3), name
        assert t.data_ptr() == lib.so.tensor_data(x._t.ptr)
        y = xp.from_dlpack(t.T)
        assert y.tolist() == x.tolist() and lib.so.tensor_data(y._t.ptr) == t.data_ptr()


def writes_are_seen_on_the_other_side():
    a = np.zeros((3, 4), np.float32)
    x = xp.from_dlpack(a[::-1])
    x[0, 1:] = 7
    assert a[2].tolist() == [0, 7, 7, 7]
    t = torch.from_dlpack(x[::-1, 1])  # PyTorch does not support negative strides
    t.add_(1)
    assert a[:, 1].tolist() == [1, 1, 8]


def copies_are_not():
    x = xp.zeros(3)
    a = np.from_dlpack(x, copy=True)
    a[0] = 1
    y = xp.from_dlpack(a, copy=True)
    y[1] = 2
    assert x.tolist() == [0, 0, 0] and a.tolist() == [1, 0, 0]


def read_only_stays_read_only():
    a = np.arange(3.0)
    a.flags.writeable = False
    x = xp.from_dlpack(a)
    try:
        x[0] = 1
    except (boxed.Failed, IndexError) as e:
        assert 'read-only' in str(e), e
    else:
        raise AssertionError('written')
    assert not np.from_dlpack(x).flags.writeable
    refused(lambda: x.__dlpack__(), 'read-only')


def memory_lives_as_long_as_either_side():
    used = lib.used()
    for n in (3, 1 << 20):
        a = np.arange(float(n))
        gone = weakref.ref(a.base if a.base is not None else a)
        x = xp.from_dlpack(a)[1:]
        t = torch.from_dlpack(x)
        del a, x
        gc.collect()
        assert gone() is not None and t[0] == 1
        del t
        gc.collect()
        assert gone() is None
        b = np.from_dlpack(xp.arange(n, dtype=xp.float64))[2:]
        gc.collect()
        assert b[0] == 2
        del b
    xp.ones(1 << 20).__dlpack__()  # a capsule that is not consumed
    xp.ones(1 << 20).__dlpack__(max_version=(1, 0))
    gc.collect()
    assert lib.used() == used


def what_is_not_plain_is_refused():
    x = xp.ones(3)
    lib.check(lib.so.tensor_set_requires_grad(x._t.ptr, True))
    refused(lambda: np.from_dlpack(x), 'gradient')
    refused(lambda: xp.from_dlpack(torch.zeros(2).to(torch.float8_e5m2fnuz)), 'data type')
    refused(lambda: torch.from_dlpack(x), 'gradient')


def functions_of_pytorch():
    """The functions of the table that its tensors have: to an object, and from one."""
    table = dlpack.api.PyCapsule_GetPointer(torch.Tensor.__dlpack_c_exchange_api__, b'dlpack_exchange_api')
    major, minor = (C.c_uint32 * 2).from_address(table)
    assert major == 1 and minor >= 3
    return (C.PYFUNCTYPE(C.c_int, C.c_void_p, C.POINTER(C.py_object))(C.c_void_p.from_address(table + 32).value),
            C.PYFUNCTYPE(C.c_int, C.py_object, C.POINTER(C.c_void_p))(C.c_void_p.from_address(table + 24).value))


def table_of_pytorch_exchanges_our_structures():
    to_object, from_object = functions_of_pytorch()
    x, t, managed = xp.asarray([[1., 2.], [3., 4.]]), C.py_object(), C.c_void_p()
    assert to_object(lib.so.tensor_to_dlpack(x._t.ptr, 0), C.byref(t)) == 0
    assert t.value.tolist() == x.tolist() and t.value.data_ptr() == lib.so.tensor_data(x._t.ptr)
    assert from_object(t.value.T, C.byref(managed)) == 0
    y = boxed.Tensor(lib, lib.so.tensor_from_dlpack(managed))
    assert y.strides == [1, 2] and lib.so.tensor_data(y.ptr) == lib.so.tensor_data(x._t.ptr)


def main():
    for test in (ours_in_numpy_and_theirs_here, ours_in_pytorch_and_theirs_here, writes_are_seen_on_the_other_side,
                 copies_are_not, read_only_stays_read_only, memory_lives_as_long_as_either_side,
                 what_is_not_plain_is_refused, table_of_pytorch_exchanges_our_structures):
        test()
        print(f'ok {test.__name__}')


if __name__ == '__main__':
    main()
