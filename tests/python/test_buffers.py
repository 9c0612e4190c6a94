# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The buffer protocol both ways, and the Arrow C data interface."""
import ctypes
import gc
import io
import os
import sys
from ctypes import c_uint8

import pytest

import devtensor as dt
from dlpack_producer import Producer, name_of
from memory import growth

ROUNDS = int(os.environ.get("DEVTENSOR_ROUNDS", "100000"))


# ---- buffers ----

def test_buffer_has_the_address_the_format_and_the_strides():
    for name, code in dict(bool="?", uint8="B", int8="b", int16="h", int32="i", int64="l", float16="e", float32="f",
                           float64="d", complex64="Zf", complex128="Zd", uint16="H", uint32="I", uint64="L").items():
        t = dt.zeros(2, 3, dtype=getattr(dt, name)).T
        m = memoryview(t)
        assert (m.format, m.shape, m.strides) == (code, (3, 2), (t.itemsize, 3 * t.itemsize)) and not m.readonly
    t = dt.zeros(4, dtype=dt.uint8)
    assert ctypes.addressof((c_uint8 * 4).from_buffer(t)) == t.data_ptr()


def test_buffer_writes_the_tensor_and_outlives_it():
    t = dt.zeros(4, dtype=dt.int32)
    m = memoryview(t)
    m[2] = 7
    assert t.tolist() == [0, 0, 7, 0]
    del t
    assert m.tolist() == [0, 0, 7, 0]


def test_buffer_of_memory_that_the_tensor_left_stays_valid():
    t = dt.ones(4)
    m = memoryview(t)
    t.resize_(1 << 16)
    assert m.tolist() == [1, 1, 1, 1] and m.shape == (4,)


def test_buffer_is_read_only_if_the_tensor_is():
    t = dt.frombuffer(b"abcd", dtype=dt.uint8)
    assert memoryview(t).readonly
    with pytest.raises(TypeError):
        (c_uint8 * 4).from_buffer(t)


def test_buffer_without_strides_needs_contiguous_memory():
    assert bytes(dt.arange(4, dtype=dt.uint8)) == b"\0\1\2\3"
    with pytest.raises(BufferError, match="contiguous"):
        io.BytesIO().write(dt.zeros(2, 4, dtype=dt.uint8)[:, 0])


@pytest.mark.parametrize("make", [lambda: dt.ones(2, requires_grad=True), lambda: dt.ones(2, dtype=dt.bfloat16),
                                  lambda: dt.ones(2, 2).to_sparse()])
def test_buffers_that_do_not_exist_are_refused(make):
    with pytest.raises(BufferError):
        memoryview(make())


def test_empty_and_scalar_tensors_have_buffers():
    assert memoryview(dt.zeros(0, 3)).tolist() == [] and memoryview(dt.tensor(3)).tolist() == 3


def test_frombuffer_uses_the_memory():
    b = bytearray(range(16))
    t = dt.frombuffer(b, dtype=dt.uint8, offset=4, count=8)
    assert t.data_ptr() == ctypes.addressof(c_uint8.from_buffer(b)) + 4 and t.tolist() == list(range(4, 12))
    t.zero_()
    assert b[4:12] == bytes(8) and b[3] == 3
    with pytest.raises(BufferError):
        b.append(1)
    del t
    gc.collect()
    b.append(1)
    assert dt.frombuffer(b[:16], dtype=dt.float64).shape == (2,)


@pytest.mark.parametrize("kwargs", [
    dict(offset=-1), dict(offset=-4), dict(offset=-4, count=1), dict(offset=17), dict(offset=20), dict(count=-2),
    dict(count=5), dict(count=2 ** 62), dict(offset=3), dict(offset=13, count=1), dict(offset=1, count=1)])
def test_frombuffer_stays_inside_the_buffer(kwargs):
    b = bytearray(16)
    with pytest.raises(ValueError):
        dt.frombuffer(b, dtype=dt.float32, **kwargs)
    b.append(0)


def test_frombuffer_refuses_other_objects():
    for bad in 3, "text", None:
        with pytest.raises(TypeError):
            dt.frombuffer(bad, dtype=dt.uint8)
    with pytest.raises(TypeError):
        dt.frombuffer(b"abc")
    with pytest.raises(TypeError):
        dt.frombuffer(b"abc", dtype=3)


# ---- Arrow ----

@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
                                  "float32", "float64"])
def test_arrow_round_trip_has_the_same_address(name):
    t = dt.arange(5, dtype=getattr(dt, name)) if name != "float16" else dt.ones(5, dtype=dt.float16)
    back = dt.from_arrow(t)
    assert back.data_ptr() == t.data_ptr() and back.dtype is t.dtype and back.tolist() == t.tolist()
    with pytest.raises(Exception):
        back.add_(1)
    del t
    assert back.shape == (5,)


def test_arrow_bools_are_copied():
    t = dt.tensor([True, False, True])
    assert dt.from_arrow(t.__arrow_c_array__(None)).tolist() == [True, False, True]


def test_arrow_capsules_release_once():
    p = Producer()
    t = dt.from_dlpack(p)
    pair = t.__arrow_c_array__()
    assert [name_of(c) for c in pair] == ["arrow_schema", "arrow_array"]
    del t
    back = dt.from_arrow(pair)
    with pytest.raises(ValueError):
        dt.from_arrow(pair)
    del pair
    assert p.deleted == 0 and back.tolist() == [1, 2, 3]
    del back
    assert p.deleted == 1
    t = dt.from_dlpack(p)
    pair = t.__arrow_c_array__(), t.__arrow_c_schema__()
    del t, pair
    assert p.deleted == 2


@pytest.mark.parametrize("make, error", [(lambda: dt.ones(2, 2), ValueError), (lambda: dt.ones(4)[::2], ValueError),
                                         (lambda: dt.ones(2, dtype=dt.complex64), NotImplementedError),
                                         (lambda: dt.ones(2, requires_grad=True), ValueError)])
def test_arrow_refuses_what_is_no_column(make, error):
    with pytest.raises(error):
        make().__arrow_c_array__()
    with pytest.raises(error):
        make().__arrow_c_schema__()


def test_from_arrow_refuses_other_objects():
    t = dt.ones(2)
    schema, array = t.__arrow_c_array__()
    for bad in 3, (1, 2), (array, schema), (schema,), (schema, schema), t.__dlpack__():
        with pytest.raises(TypeError):
            dt.from_arrow(bad)
    assert dt.from_arrow((schema, array)).tolist() == [1, 1]


def test_arrow_library_uses_the_memory():
    pa = pytest.importorskip("pyarrow")
    t = dt.arange(5, dtype=dt.float32)
    a = pa.array(t)
    assert a.buffers()[1].address == t.data_ptr() and a.to_pylist() == [0, 1, 2, 3, 4]
    back = dt.from_arrow(a[2:])
    assert back.data_ptr() == t.data_ptr() + 8 and back.tolist() == [2, 3, 4]
    assert pa.array(dt.tensor([True, False])).to_pylist() == [True, False]
    assert dt.from_arrow(pa.array([True, False])).tolist() == [True, False]
    for bad in pa.array([1, None]), pa.array(["a"]), pa.array([[1]]):
        with pytest.raises(NotImplementedError):
            dt.from_arrow(bad)


# ---- leaks ----

def view_buffer(t):
    memoryview(t)


def arrow(t):
    dt.from_arrow(t)


def frombuffer(t):
    dt.frombuffer(bytearray(64), dtype=dt.float32)


def fail_frombuffer(t):
    try:
        dt.frombuffer(bytearray(64), dtype=dt.float32, offset=1, count=2)
    except ValueError:
        pass


def fail_buffer(t):
    try:
        memoryview(t.bfloat16())
    except BufferError:
        pass


@pytest.mark.parametrize("call", [view_buffer, arrow, frombuffer, fail_frombuffer, fail_buffer])
def test_calls_do_not_grow_memory(call):
    t = dt.ones(16)
    references = sys.getrefcount(t)
    assert growth(lambda: call(t), ROUNDS) < 1024
    assert sys.getrefcount(t) == references


class Pair(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_int)]


def test_buffers_of_ctypes_have_no_strides():
    a = (ctypes.c_int * 3)(1, 2, 3)
    t = dt.asarray(a)
    assert t.tolist() == [1, 2, 3] and t.data_ptr() == ctypes.addressof(a)
    t[1] = 7
    assert list(a) == [1, 7, 3]
    assert dt.asarray((ctypes.c_double * 2 * 3)()).shape == (3, 2)
    assert dt.asarray(ctypes.c_float(2.5)).tolist() == 2.5
    for other in (Pair(), (Pair * 2)(), ctypes.py_object(3), ctypes.pointer(ctypes.c_int(3))):
        with pytest.raises((TypeError, ValueError)):
            dt.asarray(other)
