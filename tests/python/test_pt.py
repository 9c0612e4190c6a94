# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Tensors of PyTorch's .pt files: valid ones, and hostile ones, of which nothing may be executed."""
import os
import pickle
import struct
import time
from collections import OrderedDict

import pytest

import devtensor as dt
from devtensor import _unpickle
import pt_files as pt
from memory import growth

ERRORS = (ValueError, NotImplementedError)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.pt"


def load(path, v, *args, **kwargs):
    return dt.load_pt(pt.write(path, v, *args, **kwargs))


# ---- values ----

def test_tensors_have_their_values_and_strides(path):
    v = load(path, {"a": pt.tensor(), "t": pt.tensor(None, 0, (3, 2), (1, 3)), "n": pt.tensor(None, 0, (0, 3), (3, 1)),
                    "s": pt.tensor(None, 5, (), ()), "e": pt.tensor(None, 2, (4, 2), (0, 1))})
    assert v["a"].tolist() == [[0, 1, 2], [3, 4, 5]] and v["a"].dtype is dt.float32
    assert v["t"].tolist() == [[0, 3], [1, 4], [2, 5]] and v["t"].strides == (1, 3)
    assert v["n"].shape == (0, 3) and v["s"].item() == 5
    assert v["e"].tolist() == [[2, 3]] * 4 and v["e"].strides == (0, 1)


def test_tensors_share_their_storages(path):
    v = load(path, [pt.tensor(), pt.tensor(None, 3, (3,), (1,)), pt.tensor(pt.storage("1"))],
             {"0": pt.FLOATS, "1": pt.FLOATS})
    assert v[1].data_ptr() == v[0].data_ptr() + 12 and v[1].is_leaf
    v[1].zero_()
    assert v[0].tolist() == [[0, 1, 2], [0, 0, 0]] and v[2].tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("kind, dtype", [
    ("DoubleStorage", "float64"), ("FloatStorage", "float32"), ("HalfStorage", "float16"),
    ("BFloat16Storage", "bfloat16"), ("ComplexFloatStorage", "complex64"), ("ComplexDoubleStorage", "complex128"),
    ("LongStorage", "int64"), ("IntStorage", "int32"), ("ShortStorage", "int16"), ("CharStorage", "int8"),
    ("ByteStorage", "uint8"), ("BoolStorage", "bool")])
def test_every_storage_has_its_dtype(path, kind, dtype):
    d = getattr(dt, dtype)
    t = load(path, pt.tensor(pt.storage("0", 2, ("torch", kind)), 0, (2,), (1,)), {"0": bytes(2 * d.itemsize)})
    assert t.dtype is d and t.shape == (2,)


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "float32", "bool"])
def test_storages_of_bytes_get_the_dtype_of_the_tensor(path, dtype):
    d = getattr(dt, dtype)
    s = pt.storage("0", 3 * d.itemsize, ("torch.storage", "UntypedStorage"))
    t = load(path, pt.call("torch._utils", "_rebuild_tensor_v3", s, 0, (3,), (1,), False, pt.ORDERED,
                           pt.name("torch", dtype)), {"0": bytes(3 * d.itemsize)})
    assert t.dtype is d and t.shape == (3,)


def test_bools_are_0_or_1(path):
    s = pt.storage("0", 3, ("torch", "BoolStorage"))
    pt.write(path, [pt.tensor(s, 0, (3,), (1,))] * 2, {"0": b"\0\x02\xff"})
    for t in dt.load_pt(path):
        assert t.tolist() == [False, True, True] and bytes(t.view(dt.uint8)) == b"\0\1\1"
    with pytest.raises(ValueError, match="bool"):
        dt.load_pt(path, map="r")
    assert dt.load_pt(path, map="c")[1].tolist() == [False, True, True]


def test_containers_numbers_and_strings(path):
    v = {"i": 3, "big": 2 ** 70, "neg": -5, "f": 2.5, "none": None, "b": [True, False], "t": (1, ("x",)), "s": "äöü",
         1: {"nested": []}, 2.5: 0, None: 1}
    assert load(path, v) == v
    assert load(path, {"d": pt.name("torch", "float32"), "size": pt.call("torch", "Size", (2, 3)),
                       "c": pt.call("builtins", "complex", 1.0, 2.0)}) == {"d": dt.float32, "size": (2, 3), "c": 1 + 2j}


def test_every_protocol_of_pickle(path):
    v = {"a": [1, -2, 300, 70000, 2 ** 40, -2 ** 65], "b": ("x" * 300, "é"), "c": {},
         "d": (1.5, None, True), "e": [[]] * 3}
    for protocol in 2, 3, 4, 5:
        assert load(path, None, raw=pickle.dumps(v, protocol)) == v
    for protocol in 0, 1:
        with pytest.raises(ValueError):
            load(path, None, raw=pickle.dumps(v, protocol))


def test_ordered_dicts_keep_their_metadata(path):
    state = pt.ORDERED + pt.MARK + pt.text("w") + pt.tensor() + pt.SETITEMS + \
        pt.value({"_metadata": pt.ORDERED}) + pt.BUILD
    v = load(path, state)
    assert type(v) is OrderedDict and v["w"].shape == (2, 3) and v._metadata == OrderedDict()
    assert load(path, pt.call("collections", "OrderedDict", [["a", 1], ("b", 2)])) == OrderedDict(a=1, b=2)


def test_parameters_require_their_gradient(path):
    p = pt.call("torch._utils", "_rebuild_parameter", pt.tensor(), True, pt.ORDERED)
    t = load(path, p)
    assert t.requires_grad and t.is_leaf
    assert load(path, pt.tensor(None, 0, (2, 3), (3, 1), True)).requires_grad
    typed = pt.call("torch._tensor", "_rebuild_from_type_v2", pt.name("torch._utils", "_rebuild_tensor_v2"),
                    pt.name("torch", "Tensor"), (pt.storage(), 0, (6,), (1,), False, pt.ORDERED), {})
    assert load(path, typed).shape == (6,)


def test_shared_values_stay_one_object(path):
    raw = b"\x80\x02" + pt.MARK + pt.tensor() + b"q\x05" + b"h\x05" + pt.TUPLE + pt.STOP
    a, b = load(path, None, raw=raw)
    assert a is b


@pytest.mark.parametrize("mapping", ["r", "c"])
def test_maps_use_the_pages_of_the_file(path, mapping):
    n = 1 << 20
    s = pt.storage("0", n)
    pt.write_aligned(path, [pt.tensor(s, 0, (n,), (1,)), pt.tensor(s, 4, (2,), (1,))],
                     {"0": struct.pack("<f", 1.5) * n})
    a, b = dt.load_pt(path, map=mapping)
    with open("/proc/self/maps") as f:
        assert any("file.pt" in line and int(line.split("-")[0], 16) <= a.data_ptr() for line in f)
    assert b.data_ptr() == a.data_ptr() + 16 and a[-1].item() == 1.5
    if mapping == "r":
        with pytest.raises(Exception):
            a.zero_()
    else:
        a.zero_()
        assert dt.load_pt(path)[0][0].item() == 1.5
    os.unlink(path)
    assert a.sum().item() == (1.5 * n if mapping == "r" else 0)


def test_misaligned_maps_are_refused(path):
    errors = 0
    for length in range(1, 5):
        pt.write(path, pt.tensor(), prefix="a" * length + "/")
        assert dt.load_pt(path).tolist() == [[0, 1, 2], [3, 4, 5]]
        try:
            assert dt.load_pt(path, map="r").tolist() == [[0, 1, 2], [3, 4, 5]]
        except ValueError:
            errors += 1
    assert errors >= 2
    with pytest.raises(ValueError, match="map"):
        dt.load_pt(path, map="w")


def test_max_bytes_limits_the_storages(path):
    pt.write(path, [pt.tensor(), pt.tensor(pt.storage("1"))], {"0": pt.FLOATS, "1": pt.FLOATS})
    assert len(dt.load_pt(path, max_bytes=48)) == 2
    for limit in 47, 24, 1, 0:
        with pytest.raises(ValueError, match="max_bytes"):
            dt.load_pt(path, max_bytes=limit)


# ---- refused: classes, calls and state ----

class Evil:
    def __reduce__(self):
        return os.mkdir, (Evil.target,)


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_nothing_is_executed(path, tmp_path, protocol):
    Evil.target = str(tmp_path / "executed")
    with pytest.raises(dt.UnpicklingError, match="posix.mkdir"):
        load(path, None, raw=pickle.dumps({"a": Evil()}, protocol))
    assert not os.path.exists(Evil.target)
    pickle.loads(pickle.dumps(Evil(), protocol))
    assert os.path.exists(Evil.target)


@pytest.mark.parametrize("module, attribute", [
    ("os", "system"), ("builtins", "eval"), ("builtins", "getattr"), ("torch", "load"), ("torch.nn", "Linear"),
    ("torch.storage", "_load_from_bytes"), ("collections", "OrderedDict.update"), ("torch._utils", "__builtins__"),
    ("torch", "QInt8Storage"), ("torch", "qint8"), ("", ""), ("devtensor", "load"), ("x" * 2000, "y")])
def test_other_names_are_refused_by_name(path, module, attribute):
    for raw in pt.name(module, attribute), pt.text(module) + pt.text(attribute) + b"\x93":
        with pytest.raises(dt.UnpicklingError) as e:
            load(path, raw + pt.EMPTY_TUPLE + pt.REDUCE)
        assert "truncated" in str(e.value) or f"{module[:80]}.{attribute}" in str(e.value)
        assert len(str(e.value)) < 1000


FUNCTION = pt.name("torch._utils", "_rebuild_tensor_v2")

REFUSED = {
    "a function as a value": [FUNCTION],
    "a class of storages as a value": {"a": pt.name("torch", "FloatStorage")},
    "a storage as a value": pt.storage(),
    "a class as a value": (pt.name("torch", "Tensor"),),
    "a call of a list": pt.EMPTY_LIST + pt.EMPTY_TUPLE + pt.REDUCE,
    "a call of a dtype": pt.name("torch", "float32") + pt.EMPTY_TUPLE + pt.REDUCE,
    "a call of a tensor": pt.tensor() + pt.EMPTY_TUPLE + pt.REDUCE,
    "a call with a list": FUNCTION + pt.EMPTY_LIST + pt.REDUCE,
    "a call without arguments": FUNCTION + pt.EMPTY_TUPLE + pt.REDUCE,
    "a call with too many arguments": pt.tensor(None, 0, (1,), (1,), False, pt.ORDERED, None, 1, 2),
    "state of a list": pt.EMPTY_LIST + pt.EMPTY_DICT + pt.BUILD,
    "state of a dict": pt.EMPTY_DICT + pt.EMPTY_DICT + pt.BUILD,
    "state of a tensor": pt.tensor() + pt.value({"requires_grad": True}) + pt.BUILD,
    "other state": pt.ORDERED + pt.value({"items": 3}) + pt.BUILD,
    "more state": pt.ORDERED + pt.value({"_metadata": 1, "x": 2}) + pt.BUILD,
    "state that is no dict": pt.ORDERED + pt.value([1]) + pt.BUILD,
    "a tensor as a key": pt.EMPTY_DICT + pt.tensor() + pt.NONE + b"s",
    "a list as a key": pt.EMPTY_DICT + pt.EMPTY_LIST + pt.NONE + b"s",
    "a tuple as a key": pt.EMPTY_DICT + pt.EMPTY_TUPLE + pt.NONE + b"s",
    "a key without a value": pt.EMPTY_DICT + pt.MARK + pt.NONE + pt.SETITEMS,
    "an append to a tuple": pt.EMPTY_TUPLE + pt.NONE + b"a",
    "an item of a list": pt.EMPTY_LIST + pt.NONE + pt.NONE + b"s",
    "a mark in a tuple": pt.MARK + b"\x85",
    "a mark as the value": pt.MARK,
    "no mark": pt.NONE + pt.TUPLE,
    "two values": pt.NONE + pt.NONE,
    "nothing": b"0",
    "bytes": b"C\x01x",
    "a set": b"\x8f",
    "a persistent id of a string": pt.value("storage") + pt.BINPERSID,
    "a persistent id of text": b"Pstorage\n",
    "an extension": b"\x82\x01",
    "an instance": b"(i__main__\nX\n",
    "an object": b"(c__main__\nX\no",
    "a new object": pt.ORDERED + pt.EMPTY_TUPLE + b"\x81",
    "an unknown opcode": b"\xff",
    "an unknown memo": b"h\x07",
    "a long without end": b"\x8b\xff\xff\xff\x7f",
    "a string without end": b"X\xff\xff\xff\xff",
    "a long string without end": b"\x8d" + b"\xff" * 8,
    "a string that is no UTF-8": b"X\x01\0\0\0\xff",
    "a surrogate": pt.text("\ud800"),
    "an OrderedDict of no pairs": pt.call("collections", "OrderedDict", [1, 2]),
    "an OrderedDict of a number": pt.call("collections", "OrderedDict", 3),
    "a complex number of strings": pt.call("builtins", "complex", "1", "2"),
    "a complex number of a string": pt.call("builtins", "complex", "1" * 1000),
    "a parameter of a list": pt.call("torch._utils", "_rebuild_parameter", [], True, pt.ORDERED),
    "a typed tensor of a list": pt.call("torch._tensor", "_rebuild_from_type_v2", pt.EMPTY_LIST,
                                        pt.name("torch", "Tensor"), (), {}),
    "a typed tensor of itself": pt.call("torch._tensor", "_rebuild_from_type_v2",
                                        pt.name("torch._tensor", "_rebuild_from_type_v2"), pt.name("torch", "Tensor"),
                                        (), {}),
    "a typed tensor with state": pt.call("torch._tensor", "_rebuild_from_type_v2", FUNCTION,
                                         pt.name("torch", "Tensor"),
                                         (pt.storage(), 0, (6,), (1,), False, pt.ORDERED), {"x": 1}),
}


@pytest.mark.parametrize("what", REFUSED)
def test_other_pickles_are_refused(path, what):
    with pytest.raises(dt.UnpicklingError):
        load(path, REFUSED[what])


TENSORS = {
    "beyond the storage": pt.tensor(None, 0, (7,), (1,)), "by its offset": pt.tensor(None, 1, (2, 3), (3, 1)),
    "by its stride": pt.tensor(None, 0, (2, 3), (4, 1)), "an offset beyond it": pt.tensor(None, 7, (0,), (1,)),
    "a negative stride": pt.tensor(None, 5, (6,), (-1,)), "a negative offset": pt.tensor(None, -1, (1,), (1,)),
    "a negative size": pt.tensor(None, 0, (-1,), (1,)), "lengths that differ": pt.tensor(None, 0, (2, 3), (1,)),
    "a huge size": pt.tensor(None, 0, (2 ** 62, 2 ** 62), (0, 0)),
    "a size beyond 64 bits": pt.tensor(None, 0, (2 ** 64,), (0,)),
    "a stride beyond 64 bits": pt.tensor(None, 0, (1,), (2 ** 80,)),
    "overflowing strides": pt.tensor(None, 0, (2 ** 40, 2), (2 ** 40, 1)),
    "floats as sizes": pt.tensor(None, 0, (1.0,), (1,)), "bools as sizes": pt.tensor(None, 0, (True,), (1,)),
    "a list as size": pt.tensor(None, 0, [1], (1,)), "too many dimensions": pt.tensor(None, 0, (1,) * 100, (1,) * 100),
    "a number as requires_grad": pt.tensor(None, 0, (1,), (1,), 1), "hooks": pt.tensor(
        None, 0, (1,), (1,), False, pt.call("collections", "OrderedDict", [["a", 1]])),
    "metadata": pt.tensor(None, 0, (1,), (1,), False, pt.ORDERED, {"conj": True}),
    "no storage": pt.tensor(pt.EMPTY_LIST), "a tensor as storage": pt.tensor(pt.tensor()),
    "no dtype": pt.tensor(pt.storage("0", 24, ("torch.storage", "UntypedStorage"))),
    "a gradient of integers": pt.tensor(pt.storage("0", 6, ("torch", "IntStorage")), 0, (1,), (1,), True),
    "a missing storage": pt.tensor(pt.storage("1")), "another folder": pt.tensor(pt.storage("../data/0")),
    "too many elements": pt.tensor(pt.storage("0", 7)), "too few elements": pt.tensor(pt.storage("0", 5)),
    "a negative count": pt.tensor(pt.storage("0", -6)), "a huge count": pt.tensor(pt.storage("0", 2 ** 62)),
    "a count beyond 64 bits": pt.tensor(pt.storage("0", 2 ** 64 + 6)),
    "a float as count": pt.tensor(pt.storage("0", 6.0)), "a number as key": pt.tensor(pt.storage(0)),
    "another kind": pt.tensor(pt.storage("0", 6, ("torch", "float32"))),
}


@pytest.mark.parametrize("what", TENSORS)
def test_tensors_that_do_not_fit_are_refused(path, what):
    with pytest.raises(ERRORS):
        load(path, TENSORS[what])


# ---- refused: bombs ----

def test_memo_indices_need_no_memory(path):
    raw = b"\x80\x02" + pt.NONE + b"r\xff\xff\xff\x7f" + b"j\xff\xff\xff\x7f" + b"\x86" + pt.STOP
    assert growth(lambda: load(path, None, raw=raw), 3) < 4096
    assert load(path, None, raw=raw) == (None, None)


def nested(depth):
    return pt.EMPTY_LIST * depth + b"a" * (depth - 1)


def test_depth_is_limited(path):
    assert load(path, nested(100)) is not None
    for depth in 101, 1000, 100_000:
        with pytest.raises(ValueError, match="deep"):
            load(path, nested(depth))
    with pytest.raises(ValueError, match="deep"):
        load(path, pt.EMPTY_TUPLE + b"\x85" * 100_000)


def test_depth_through_shared_parts_is_limited(path):
    """Each list is finished before the next one, which is 50 deep, refers to it."""
    raw, n = pt.EMPTY_LIST + b"q\0" + pt.EMPTY_LIST + b"q\1" + b"a", 8
    for _ in range(n):
        raw += pt.EMPTY_LIST * 50 + b"h\1" + b"a" * 50 + b"q\1" + b"a"
    with pytest.raises(ValueError, match="deep"):
        load(path, raw)


def test_values_that_contain_themselves_are_refused(path):
    with pytest.raises(ValueError, match="itself"):
        load(path, pt.EMPTY_LIST + b"q\0" + b"h\0" + b"a")
    with pytest.raises(ValueError, match="itself"):
        load(path, pt.EMPTY_DICT + b"q\0" + pt.text("x") + b"h\0" + b"\x85" + b"s")


def test_a_billion_laughs_are_refused(path):
    def laughs(n):
        """A tuple of n lists, each with the one before it twice."""
        raw = pt.EMPTY_LIST + b"q\0"
        for i in range(1, n):
            raw += pt.EMPTY_LIST + pt.MARK + (b"h" + bytes([i - 1])) * 2 + pt.APPENDS + b"q" + bytes([i])
        return pt.MARK + raw + pt.TUPLE

    assert len(load(path, laughs(20))) == 20
    with pytest.raises(ValueError, match="parts"):
        load(path, laughs(40))


def test_many_containers_are_refused(path, monkeypatch):
    monkeypatch.setattr(_unpickle, "MAX_CONTAINERS", 1000)
    assert len(load(path, pt.MARK + pt.EMPTY_DICT * 999 + b"l")) == 999
    for container in pt.EMPTY_DICT, pt.EMPTY_LIST, pt.EMPTY_TUPLE, pt.MARK + pt.TUPLE, pt.ORDERED:
        with pytest.raises(ValueError, match="containers"):
            load(path, pt.MARK + container * 1001 + b"l")


def test_many_tensors_on_one_storage_are_quick(path):
    n = 5000
    s = pt.storage("0", 1 << 22, ("torch", "BoolStorage"))
    start = time.monotonic()
    v = load(path, [pt.tensor(s, 0, (3,), (1,))] * n, {"0": bytes(1 << 22)})
    assert len(v) == n and time.monotonic() - start < 30
