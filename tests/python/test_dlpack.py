# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""DLPack both ways, and the table of C functions."""
import ctypes
import gc
import os
import sys
import threading
from ctypes import c_int32, c_uint8, c_void_p

import pytest

import devtensor as dt
from dlpack_producer import (COPIED, DELETER, READ_ONLY, DataType, Device, DLTensor, OldProducer, Producer, Versioned,
                             content, name_of)
from memory import growth

ROUNDS = int(os.environ.get("DEVTENSOR_ROUNDS", "100000"))


# ---- export ----

def test_capsule_is_versioned_for_consumers_of_version_1():
    t = dt.zeros(2, 3)
    assert name_of(t.__dlpack__()) == "dltensor"
    assert name_of(t.__dlpack__(max_version=None)) == "dltensor"
    assert name_of(t.__dlpack__(max_version=(0, 8))) == "dltensor"
    for version in (1, 0), (1, 3), (1, 99), (2, 0):
        capsule = t.__dlpack__(max_version=version)
        assert name_of(capsule) == "dltensor_versioned"
        assert (content(capsule).major, content(capsule).minor) == (1, 3)


def test_export_has_the_address_and_the_strides_of_the_tensor():
    t = dt.arange(24, dtype=dt.float32).view(4, 6)[1:, ::2].T
    for capsule in t.__dlpack__(), t.__dlpack__(max_version=(1, 0)):
        d = content(capsule).t
        assert d.data + d.byte_offset == t.data_ptr()
        assert tuple(d.shape[:2]) == t.shape and tuple(d.strides[:2]) == t.strides
        assert (d.dtype.code, d.dtype.bits, d.dtype.lanes) == (2, 32, 1)
        assert (d.device.type, d.device.id) == t.__dlpack_device__() == (1, 0)


def test_export_keeps_the_memory_until_the_capsule_dies():
    t = dt.ones(4)
    capsule = t.__dlpack__()
    t.add_(1)
    del t
    assert dt.from_dlpack(capsule).tolist() == [2, 2, 2, 2]


def test_copy_is_other_memory_and_marked():
    t = dt.ones(4)
    capsule = t.__dlpack__(max_version=(1, 0), copy=True)
    assert content(capsule).t.data != t.data_ptr() and content(capsule).flags & COPIED
    for copy in False, None:
        capsule = t.__dlpack__(max_version=(1, 0), copy=copy, dl_device=(1, 0))
        assert content(capsule).t.data == t.data_ptr() and not content(capsule).flags & COPIED


def test_read_only_memory_is_exported_only_where_it_can_be_marked():
    t = dt.frombuffer(b"abcd", dtype=dt.uint8)
    assert content(t.__dlpack__(max_version=(1, 0))).flags & READ_ONLY
    with pytest.raises(BufferError, match="read-only"):
        t.__dlpack__()
    assert not content(t.__dlpack__(max_version=(1, 0), copy=True)).flags & READ_ONLY
    back = dt.from_dlpack(t)
    assert back.data_ptr() == t.data_ptr()
    with pytest.raises(Exception):
        back.add_(1)
    assert back.tolist() == [97, 98, 99, 100]


@pytest.mark.parametrize("kwargs", [{}, {"max_version": (1, 0)}, {"copy": True}, {"max_version": (1, 0), "copy": True}])
def test_a_tensor_that_requires_a_gradient_is_refused(kwargs):
    with pytest.raises(BufferError, match="gradient"):
        dt.ones(2, requires_grad=True).__dlpack__(**kwargs)
    with pytest.raises(BufferError, match="gradient"):
        dt.from_dlpack(dt.ones(2, requires_grad=True) * 2)


@pytest.mark.parametrize("kwargs, error", [
    ({"stream": 1}, BufferError), ({"dl_device": (2, 0)}, BufferError), ({"dl_device": (1, 1)}, BufferError),
    ({"dl_device": 1}, TypeError), ({"dl_device": (1, 0, 0)}, TypeError), ({"dl_device": ("a", 0)}, TypeError),
    ({"max_version": 1}, TypeError), ({"max_version": (1,)}, TypeError), ({"max_version": (1.5, 0)}, TypeError),
    ({"max_version": (2 ** 80, 0)}, OverflowError), ({"copy": 1}, TypeError), ({"other": 1}, TypeError)])
def test_invalid_arguments_of_export_are_refused(kwargs, error):
    with pytest.raises(error):
        dt.ones(2).__dlpack__(**kwargs)


def test_sparse_tensors_are_refused():
    with pytest.raises(BufferError):
        dt.ones(2, 2).to_sparse().__dlpack__()


# ---- import ----

@pytest.mark.parametrize("make", [Producer, OldProducer])
def test_import_has_the_address_and_deletes_once(make):
    p = make(range(12), shape=(3, 4), strides=(1, 3))
    t = dt.from_dlpack(p)
    assert t.data_ptr() == ctypes.addressof(p.memory) and t.strides == (1, 3) and t.dtype is dt.int32
    t.add_(1)
    assert p.memory[5] == 6
    view = t[1:]
    del t
    gc.collect()
    assert p.deleted == 0
    del view
    assert p.deleted == 1


def test_import_passes_its_version_and_only_what_was_given():
    p = Producer()
    dt.from_dlpack(p)
    dt.from_dlpack(p.capsule())
    assert p.calls == [{"max_version": (1, 3)}] and p.deleted == 2
    dt.from_dlpack(p, copy=False)
    assert p.calls[-1] == {"max_version": (1, 3), "copy": False}
    assert dt.from_dlpack(p, device="cpu").device == "cpu"


def test_copy_of_an_old_producer_is_made_by_the_consumer():
    p = OldProducer()
    t = dt.from_dlpack(p, copy=True)
    assert t.data_ptr() != ctypes.addressof(p.memory) and t.tolist() == [1, 2, 3] and p.deleted == 1


def test_copies_of_the_producer_are_refused_with_copy_false():
    p = Producer(flags=COPIED)
    with pytest.raises(BufferError, match="copy=False"):
        dt.from_dlpack(p, copy=False)
    assert p.deleted == 0
    assert dt.from_dlpack(p, copy=True).data_ptr() == ctypes.addressof(p.memory)


def test_data_of_another_device_is_requested_in_host_memory():
    class Elsewhere(Producer):
        def __dlpack_device__(self):
            return (10, 1)

    p = Elsewhere()
    for kwargs in {}, {"device": "cpu", "copy": False}:
        with pytest.raises(BufferError, match="on the device"):
            dt.from_dlpack(p, **kwargs)
    assert dt.from_dlpack(p, device="cpu").tolist() == [1, 2, 3]
    assert p.calls == [{"max_version": (1, 3), "dl_device": (1, 0)}]


@pytest.mark.parametrize("make", [Producer, OldProducer])
def test_a_capsule_is_consumed_once(make):
    p = make()
    capsule = p.capsule()
    t = dt.from_dlpack(capsule)
    assert name_of(capsule) == ("used_dltensor_versioned" if p.versioned else "used_dltensor")
    with pytest.raises(ValueError, match="consumed"):
        dt.from_dlpack(capsule)
    del t, capsule
    assert p.deleted == 1


def test_the_capsule_of_a_tensor_releases_once_consumed_or_not():
    p = Producer()
    t = dt.from_dlpack(p)
    for version in (0, 8), (1, 0):
        capsule = t.__dlpack__(max_version=version)
        del capsule
        capsule = t.__dlpack__(max_version=version)
        other = dt.from_dlpack(capsule)
        del capsule
        assert p.deleted == 0 and other.tolist() == [1, 2, 3]
        del other
    capsule = t.__dlpack__()
    del t
    assert p.deleted == 0
    del capsule
    assert p.deleted == 1


BROKEN = [
    dict(version=(2, 0)), dict(code=(0, 24)), dict(code=(77, 32)), dict(lanes=4), dict(device=(2, 0)), dict(ndim=-1),
    dict(ndim=65), dict(shape=(-1,)), dict(shape=(2 ** 62, 4)), dict(data=False), dict(byte_offset=1),
    dict(code=(6, 8), kind=c_uint8, values=(0, 1, 2)), dict(strides=(2 ** 62,)),
]


@pytest.mark.parametrize("arguments", BROKEN, ids=str)
def test_broken_tensors_are_refused_and_left_to_the_producer(arguments):
    p = Producer(**arguments)
    capsule = p.capsule()
    with pytest.raises((BufferError, ValueError, OverflowError)):
        dt.from_dlpack(capsule)
    assert p.deleted == 0 and name_of(capsule) == "dltensor_versioned"


class Raises:
    def __init__(self, error):
        self.error = error

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **kwargs):
        raise self.error


def test_exceptions_of_a_producer_are_kept():
    for error in ZeroDivisionError("x"), BufferError("y"), TypeError("z"):
        with pytest.raises(type(error), match=str(error)):
            dt.from_dlpack(Raises(error))


@pytest.mark.parametrize("x", [1, None, "a", [1.0], object()])
def test_objects_without_dlpack_are_refused(x):
    with pytest.raises((AttributeError, TypeError)):
        dt.from_dlpack(x)


def test_results_that_are_no_capsules_are_refused():
    class Odd:
        device, result = (1, 0), None

        def __dlpack_device__(self):
            return self.device

        def __dlpack__(self, **kwargs):
            return self.result

    o = Odd()
    for o.device, o.result in ((1, 0), 3), ((1, 0), None), (1, None), ((1,), None), (None, None), (("x", 0), None):
        with pytest.raises(TypeError):
            dt.from_dlpack(o)


def test_a_structure_without_deleter_is_imported():
    p = Producer(deleter=False)
    assert dt.from_dlpack(p).tolist() == [1, 2, 3]


def test_the_deleter_runs_on_the_thread_that_releases_last():
    p, seen = Producer(), []
    delete = DELETER(lambda address: seen.append(threading.get_ident()))
    p.m.deleter = ctypes.cast(delete, c_void_p)
    box = [dt.from_dlpack(p)]
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    assert seen == [thread.ident]


def test_deleters_take_the_lock_when_the_library_releases_without_it():
    """Operators above the size where the lock is released, in several threads, on memory of Python objects."""
    def work():
        for _ in range(20):
            t = dt.frombuffer(bytearray(1 << 17), dtype=dt.uint8)
            (t + 1).sum()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert not any(t.is_alive() for t in threads)


# ---- the table of C functions ----

class Table(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", c_void_p),
                ("allocate", c_void_p), ("export", c_void_p), ("import_", c_void_p), ("describe", c_void_p),
                ("stream", c_void_p)]


def table():
    capsule = dt.Tensor.__dlpack_c_exchange_api__
    assert name_of(capsule) == "dlpack_exchange_api"
    get = ctypes.pythonapi.PyCapsule_GetPointer
    return Table.from_address(get(capsule, b"dlpack_exchange_api"))


def function(name, *types):
    return ctypes.PYFUNCTYPE(ctypes.c_int, *types)(getattr(table(), name))


def test_table_has_its_version_and_all_functions():
    t = table()
    assert (t.major, t.minor) == (1, 3) and t.previous is None
    assert all(getattr(t, name) for name in ("allocate", "export", "import_", "describe", "stream"))


def test_table_exports_and_imports_without_a_copy():
    x, m, out = dt.ones(2, 3), ctypes.POINTER(Versioned)(), ctypes.py_object()
    before = sys.getrefcount(x)
    assert function("export", ctypes.py_object, c_void_p)(x, ctypes.addressof(m)) == 0
    assert m.contents.t.data == x.data_ptr()
    assert function("import_", c_void_p, c_void_p)(ctypes.cast(m, c_void_p), ctypes.addressof(out)) == 0
    y = out.value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(y))
    out = None
    after = sys.getrefcount(x)
    assert after == before
    assert type(y) is dt.Tensor and y.data_ptr() == x.data_ptr()


def test_table_import_fails_with_an_exception_and_leaves_the_tensor():
    p, out = Producer(lanes=3), c_void_p()
    with pytest.raises(BufferError):
        function("import_", c_void_p, c_void_p)(ctypes.addressof(p.m), ctypes.addressof(out))
    assert p.deleted == 0 and not out.value


def test_table_describes_a_tensor():
    x, d = dt.ones(2, 3).T, DLTensor()
    describe = function("describe", ctypes.py_object, c_void_p)
    assert describe(x, ctypes.addressof(d)) == 0
    assert d.data == x.data_ptr() and tuple(d.shape[:2]) == (3, 2) and tuple(d.strides[:2]) == (1, 3)
    for bad, error in (dt.ones(2, requires_grad=True), BufferError), (3, TypeError), \
            (dt.frombuffer(b"ab", dtype=dt.uint8), BufferError):
        with pytest.raises(error):
            describe(bad, ctypes.addressof(d))


def test_table_allocates():
    shape = (ctypes.c_int64 * 2)(3, 4)
    prototype = DLTensor(None, Device(1, 0), 2, DataType(2, 64, 1), shape, None, 0)
    m, out = c_void_p(), ctypes.py_object()
    assert function("allocate", c_void_p, c_void_p, c_void_p, c_void_p)(
        ctypes.addressof(prototype), ctypes.addressof(m), None, None) == 0
    assert function("import_", c_void_p, c_void_p)(m, ctypes.addressof(out)) == 0
    assert out.value.shape == (3, 4) and out.value.dtype is dt.float64


def test_table_has_no_stream_on_the_cpu():
    out = c_void_p(7)
    stream = function("stream", ctypes.c_int, c_int32, c_void_p)
    assert stream(1, 0, ctypes.addressof(out)) == 0 and out.value is None
    with pytest.raises(BufferError):
        stream(10, 0, ctypes.addressof(out))


# ---- leaks ----

def round_trip(t):
    dt.from_dlpack(t)


def consume_unversioned(t):
    dt.from_dlpack(t.__dlpack__())


def abandon(t):
    t.__dlpack__(max_version=(1, 0))


def fail_export(t):
    try:
        t.__dlpack__(dl_device=(2, 0))
    except BufferError:
        pass


def fail_import(t):
    try:
        dt.from_dlpack(t.__dlpack__(copy=True), copy=3)
    except TypeError:
        pass


@pytest.mark.parametrize("call", [round_trip, consume_unversioned, abandon, fail_export, fail_import])
def test_calls_do_not_grow_memory(call):
    t = dt.ones(16)
    references = sys.getrefcount(t)
    assert growth(lambda: call(t), ROUNDS) < 1024
    assert sys.getrefcount(t) == references


def test_imports_of_a_foreign_producer_delete_each_time():
    p = Producer()
    broken = Producer(lanes=2)

    def call():
        dt.from_dlpack(p.capsule())
        try:
            dt.from_dlpack(broken.capsule())
        except BufferError:
            pass

    assert growth(call, 20000) < 1024
    assert p.deleted == 22001 and broken.deleted == 0
