# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Exchange with NumPy: the same memory both ways, operators on mixtures, numbers of NumPy as arguments."""
import array
import gc
import operator
import os
import sys

import pytest

import devtensor as dt
from memory import growth

np = pytest.importorskip("numpy")

ROUNDS = int(os.environ.get("DEVTENSOR_ROUNDS", "100000"))
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64",
          "complex128", "uint16", "uint32", "uint64"]


def address(a):
    return a.__array_interface__["data"][0]


# ---- to NumPy ----

@pytest.mark.parametrize("name", DTYPES)
def test_numpy_has_the_address_the_dtype_and_the_strides(name):
    t = dt.ones(3, 4, dtype=getattr(dt, name)).T[1:, ::2]
    for a in t.numpy(), np.asarray(t), t.__array__(), np.array(t, copy=False) if np.__version__ < "2" else t.numpy():
        assert address(a) == t.data_ptr() and a.dtype == name and a.shape == t.shape and a.flags.writeable
        assert a.strides == tuple(s * t.itemsize for s in t.strides) and (a == 1).all()


def test_array_interface_describes_the_memory():
    t = dt.ones(3, 4).T
    i = t.__array_interface__
    assert i == {"version": 3, "shape": (4, 3), "typestr": "<f4", "data": (t.data_ptr(), False), "strides": (4, 16)}
    assert dt.frombuffer(b"ab", dtype=dt.uint8).__array_interface__["data"][1] is True
    for bad in dt.ones(2, requires_grad=True), dt.ones(2, dtype=dt.bfloat16), dt.ones(2, 2).to_sparse():
        assert not hasattr(bad, "__array_interface__")


def test_arrays_keep_the_memory():
    t = dt.ones(1000)
    a = t.numpy()
    t.add_(1)
    del t
    gc.collect()
    dt.zeros(1000)
    assert (a == 2).all()


def test_read_only_tensors_are_read_only_arrays():
    t = dt.frombuffer(b"abcd", dtype=dt.uint8)
    a = t.numpy()
    assert address(a) == t.data_ptr() and not a.flags.writeable
    with pytest.raises(ValueError):
        a[0] = 1


def test_a_gradient_must_be_detached():
    t = dt.ones(2, requires_grad=True)
    for call in t.numpy, lambda: np.asarray(t), lambda: np.array(t):
        with pytest.raises(RuntimeError, match="detach"):
            call()
    assert address(t.numpy(force=True)) == t.data_ptr()
    with pytest.raises(TypeError):
        t.numpy(True)


def test_layouts_without_an_array_are_refused():
    for bad in dt.ones(2, 2).to_sparse(), dt.ones(2, 2).to_sparse_csr():
        with pytest.raises(TypeError, match="to_dense"):
            bad.numpy()


def test_array_converts_and_copies_as_asked():
    t = dt.arange(3)
    assert np.asarray(t, dtype=np.float32).dtype == np.float32
    assert address(t.__array__(np.int64)) == t.data_ptr()
    assert address(t.__array__(copy=True)) != t.data_ptr()
    assert address(t.__array__(None, copy=False)) == t.data_ptr()
    with pytest.raises(ValueError, match="copy"):
        t.__array__(np.float32, copy=False)


def test_extended_dtypes_need_ml_dtypes():
    t = dt.tensor([1.0, -2.0, 0.5]).to(dt.bfloat16)
    try:
        import ml_dtypes
    except ImportError:
        with pytest.raises(TypeError, match="ml_dtypes"):
            t.numpy()
        return
    for name in "bfloat16", "float8_e4m3fn", "float8_e5m2":
        t = dt.tensor([[1.0, -2.0, 0.5], [1, 2, 3]]).to(getattr(dt, name)).T
        a = t.numpy()
        assert a.dtype == getattr(ml_dtypes, name) and address(a) == t.data_ptr()
        assert a.astype(np.float32).tolist() == t.float().tolist()
        back = dt.from_numpy(a)
        assert back.dtype is t.dtype and back.data_ptr() == t.data_ptr() and back.strides == t.strides


# ---- from NumPy ----

@pytest.mark.parametrize("name", DTYPES)
def test_from_numpy_has_the_address_and_the_strides(name):
    a = np.ones((4, 6), dtype=name)
    for view in a, a.T, a[1:, ::2], a[::-1, 1], a[:0], a[2, 3:4].reshape(()), np.broadcast_to(a, (2, 4, 6)):
        t = dt.from_numpy(view)
        assert t.data_ptr() == address(view) or not view.size
        assert t.shape == view.shape and t.dtype.name == name
        assert not view.size or t.strides == tuple(s // view.itemsize for s in view.strides)
        assert t.tolist() == view.tolist()


def test_writes_are_seen_on_both_sides():
    a = np.zeros(4)
    t = dt.from_numpy(a)
    t[1] = 5
    a[2] = 7
    assert a.tolist() == t.tolist() == [0, 5, 7, 0]


def test_from_numpy_keeps_the_array_and_releases_it():
    a = np.ones(1000)
    references = sys.getrefcount(a)
    t = dt.from_numpy(a)
    view = t[3:]
    assert sys.getrefcount(a) > references
    del t
    assert sys.getrefcount(a) > references and view[0] == 1
    del view
    gc.collect()
    assert sys.getrefcount(a) == references


def test_read_only_arrays_stay_read_only():
    a = np.arange(4.0)
    a.flags.writeable = False
    with pytest.raises(Exception):
        dt.from_numpy(a).add_(1)
    assert a.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("make", [
    lambda: np.array(["a"]), lambda: np.array([None]), lambda: np.array(["2020-01-01"], dtype="datetime64[D]"),
    lambda: np.zeros(2, dtype=[("a", "f4")]), lambda: np.zeros(2, dtype=">i4"), lambda: np.zeros(2, dtype="V4"),
    lambda: np.zeros(2, dtype=np.longdouble), lambda: np.zeros(2, dtype=np.clongdouble), lambda: [1, 2], lambda: 3,
    lambda: None])
def test_arrays_that_are_no_tensors_are_refused(make):
    with pytest.raises(TypeError):
        dt.from_numpy(make())


def test_misaligned_arrays_are_refused_or_copied():
    a = np.frombuffer(bytearray(17), dtype=np.uint8)[1:].view(np.float32)
    with pytest.raises(ValueError):
        dt.from_numpy(a)
    with pytest.raises(ValueError):
        dt.asarray(a, copy=False)
    assert dt.asarray(a).tolist() == [0] * 4
    odd = np.zeros(3, dtype=[("a", "u1"), ("b", "f4")])["b"]
    assert dt.asarray(odd).tolist() == [0] * 3


def test_bools_other_than_0_and_1_are_refused():
    a = np.array([0, 1, 2], dtype=np.uint8).view(bool)
    with pytest.raises(ValueError):
        dt.from_numpy(a)


def test_more_dimensions_than_tensors_have_are_refused():
    with pytest.raises((TypeError, ValueError)):
        dt.from_numpy(np.zeros((1,) * 32))


# ---- asarray ----

class OnlyInterface:
    def __init__(self, a):
        self.a = a
        self.__array_interface__ = a.__array_interface__


class OnlyArray:
    def __init__(self, a):
        self.a = a

    def __array__(self, dtype=None, copy=None):
        return self.a


def test_asarray_shares_memory_where_it_can():
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = dt.from_numpy(a)
    for obj in a, t, memoryview(a), OnlyInterface(a), OnlyArray(a):
        for kwargs in {}, {"copy": False}, {"dtype": dt.float32}, {"dtype": "float32", "device": "cpu"}, \
                {"dtype": np.float32}:
            assert dt.asarray(obj, **kwargs).data_ptr() == address(a), (obj, kwargs)
        assert dt.as_tensor(obj).data_ptr() == address(a)
        copied = dt.asarray(obj, copy=True)
        assert copied.data_ptr() != address(a) and copied.tolist() == a.tolist()
        other = dt.asarray(obj, dtype=dt.float64)
        assert other.dtype is dt.float64 and other.tolist() == a.tolist()
        with pytest.raises(ValueError, match="copy"):
            dt.asarray(obj, dtype=dt.float64, copy=False)
    assert dt.asarray(t) is t


def test_asarray_takes_numbers_and_sequences():
    assert dt.asarray(3).dtype is dt.int64 and dt.asarray(1.5).dtype is dt.float32
    assert dt.asarray([[True, False]]).dtype is dt.bool and dt.asarray((1j,)).dtype is dt.complex64
    assert dt.asarray([1, 2], dtype=dt.float16).dtype is dt.float16
    assert dt.asarray([np.float32(1), np.int64(2)]).tolist() == [1, 2]
    assert dt.asarray([dt.tensor(1), dt.tensor(2)]).tolist() == [1, 2]
    for bad in 3, [1], (1.5,):
        with pytest.raises(ValueError, match="copy"):
            dt.asarray(bad, copy=False)


def test_asarray_takes_buffers():
    b = array.array("d", [1, 2, 3])
    t = dt.asarray(b)
    assert t.data_ptr() == b.buffer_info()[0] and t.dtype is dt.float64
    assert dt.asarray(b"ab").tolist() == [97, 98] and dt.asarray(bytearray(b"ab"), copy=True).tolist() == [97, 98]


def test_asarray_converts_the_other_byte_order():
    a = np.arange(3, dtype=">i4")
    assert dt.asarray(a).tolist() == [0, 1, 2]
    with pytest.raises(TypeError):
        dt.asarray(a, copy=False)


def test_asarray_requires_a_gradient_of_a_new_leaf():
    t = dt.ones(2)
    g = dt.asarray(t, requires_grad=True)
    assert g.requires_grad and not t.requires_grad and g.data_ptr() == t.data_ptr()


@pytest.mark.parametrize("bad", [None, "text", object(), {1: 2}, {1, 2}, np.ndarray, dt.Tensor, np.array(["a"]), len])
def test_asarray_refuses_other_objects(bad):
    with pytest.raises((TypeError, ValueError)):
        dt.asarray(bad)


def test_asarray_refuses_odd_arguments():
    with pytest.raises(TypeError):
        dt.asarray([1], copy=2)
    with pytest.raises((TypeError, ValueError)):
        dt.asarray([1], dtype="int3")
    with pytest.raises((TypeError, ValueError)):
        dt.asarray(dt.ones(1), device="nowhere")


# ---- operators on mixtures ----

BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
          operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge]


@pytest.mark.parametrize("op", BINARY, ids=lambda f: f.__name__)
def test_mixtures_are_tensors(op):
    a = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    t = dt.from_numpy(a.copy()) + 1
    for result, expected in (op(a, t), op(a, a + 1)), (op(t, a), op(a + 1, a)), \
            (op(np.float32(2), t), op(np.float32(2), a + 1)), (op(t, np.float32(2)), op(a + 1, np.float32(2))), \
            (op(np.float64(2), t), op(np.float32(2), a + 1)), (op(t, np.float64(2)), op(a + 1, np.float32(2))), \
            (op(np.int64(2), t), op(np.float32(2), a + 1)), (op(t, np.bool_(True)), op(a + 1, np.float32(1))), \
            (op(a[0], t), op(a[0], a + 1)):
        assert type(result) is dt.Tensor and np.allclose(result.numpy(), expected)
        assert result.dtype is (dt.bool if expected.dtype == bool else dt.float32)


@pytest.mark.parametrize("op", [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift])
def test_mixtures_of_integers_are_tensors(op):
    a = np.array([1, 2, 3])
    t = dt.tensor([3, 2, 1])
    assert op(a, t).tolist() == op(a, t.numpy()).tolist() and op(t, a).tolist() == op(t.numpy(), a).tolist()
    assert type(op(a, t)) is type(op(t, a)) is dt.Tensor


def test_products_of_matrices_are_tensors():
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = dt.from_numpy(a)
    assert type(a @ t.T) is type(t @ a.T) is dt.Tensor
    assert (a @ t.T).tolist() == (t @ a.T).tolist() == (a @ a.T).tolist()


def test_in_place_operators_with_arrays():
    t = dt.ones(3)
    same = t
    t += np.arange(3, dtype=np.float32)
    assert t is same and t.tolist() == [1, 2, 3]
    a = np.ones(3, dtype=np.float32)
    with pytest.raises(TypeError):
        a += t
    with pytest.raises(TypeError):
        np.add(a, t)


# ---- numbers of NumPy as arguments ----

@pytest.mark.parametrize("n", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64])
def test_integers_of_numpy_are_arguments(n):
    t = dt.arange(12).view(n(3), n(4))
    assert t.sum(dim=n(1)).shape == (3,) and t[n(1), n(2)] == 6 and t[n(0):n(2)].shape == (2, 4)
    assert dt.zeros((n(2), n(3))).shape == (2, 3) and t.reshape((n(4), n(3))).shape == (4, 3)
    assert (t + n(1)).dtype is dt.int64 and dt.full((2,), n(7)).tolist() == [7, 7]


@pytest.mark.parametrize("f", [np.float16, np.float32, np.float64])
def test_floats_of_numpy_are_arguments(f):
    t = dt.ones(2)
    assert t.add(f(0.5)).tolist() == [1.5, 1.5] and (t * f(2)).dtype is dt.float32
    assert t.clamp(min=f(2), max=f(3)).tolist() == [2, 2] and dt.full((1,), f(1.5)).tolist() == [1.5]
    assert dt.linspace(f(0), f(1), 3).tolist() == [0, 0.5, 1] and dt.tensor(f(1.5)).item() == 1.5
    with pytest.raises(TypeError):
        dt.zeros(f(2))


def test_bools_of_numpy_are_arguments():
    t = dt.ones(2, 3)
    for b in np.bool_(True), np.True_:
        assert t.sum(dim=1, keepdim=b).shape == (2, 1) and dt.tensor(b).dtype is dt.bool
        assert (t * b).dtype is dt.float32
    assert t.sum(dim=1, keepdim=np.bool_(False)).shape == (2,)


def test_complex_numbers_of_numpy_are_arguments():
    assert (dt.ones(1) * np.complex64(2j)).tolist() == [2j] and (np.complex128(2j) * dt.ones(1)).tolist() == [2j]


def test_dtypes_of_numpy_are_dtypes():
    for name in DTYPES:
        for d in np.dtype(name), np.dtype(name).type:
            assert dt.zeros(1, dtype=d).dtype.name == name
    with pytest.raises((TypeError, ValueError)):
        dt.zeros(1, dtype=np.dtype("datetime64[s]"))


def test_arrays_index_and_assign():
    t = dt.arange(6).view(2, 3)
    assert t[np.array([1, 0])].tolist() == [[3, 4, 5], [0, 1, 2]]
    assert t[np.array([[True, False, True], [False, False, False]])].tolist() == [0, 2]
    t[0] = np.array([7, 8, 9])
    assert t[0].tolist() == [7, 8, 9]


# ---- leaks ----

A = np.ones(16, dtype=np.float32)


def fail(obj):
    try:
        dt.from_numpy(obj)
    except (TypeError, ValueError):
        pass


@pytest.mark.parametrize("call", [lambda t: t.numpy(), np.asarray, lambda t: dt.from_numpy(A), lambda t: dt.asarray(A),
                                  lambda t: A + t, lambda t: t.__array_interface__,
                                  lambda t: fail(A[::-1].astype(">f4")),
                                  lambda t: fail(np.zeros(1, dtype="M8[s]"))])
def test_calls_do_not_grow_memory(call):
    t = dt.ones(16)
    references = sys.getrefcount(t), sys.getrefcount(A)
    assert growth(lambda: call(t), ROUNDS // 4) < 1024
    assert (sys.getrefcount(t), sys.getrefcount(A)) == references
