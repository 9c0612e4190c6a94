# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The buffer protocol of tensors."""
import gc
import hashlib
import io
import subprocess
import sys
import threading

import numpy as np
import pytest

import devtensor as dt

FORMATS = {
    dt.bool: '?', dt.uint8: 'B', dt.int8: 'b', dt.int16: 'h', dt.uint16: 'H', dt.int32: 'i', dt.uint32: 'I',
    dt.int64: 'l', dt.uint64: 'L', dt.float16: 'e', dt.float32: 'f', dt.float64: 'd', dt.complex64: 'Zf',
    dt.complex128: 'Zd',
}


@pytest.mark.parametrize('dtype', FORMATS, ids=str)
def test_shape_strides_and_format_are_those_of_the_tensor(dtype):
    x = dt.tensor([[1, 0, 1], [0, 1, 1]]).to(dtype)
    for view in (x, x.T, x[:, ::2], x[1], x[0, 0]):
        m = memoryview(view)
        assert m.format == FORMATS[dtype] and m.itemsize == x.itemsize and m.shape == view.shape and not m.readonly
        assert m.strides == tuple(s * x.itemsize for s in view.strides) and m.nbytes == view.nbytes
        a = np.asarray(m)
        assert a.__array_interface__['data'][0] == view.data_ptr() and a.tolist() == view.tolist()
        assert str(a.dtype) == str(dtype).rsplit('.', 1)[-1]


def test_writes_are_seen_on_both_sides():
    x = dt.zeros(2, 2)
    m = memoryview(x)
    m[1, 0] = 5.0
    x[0, 1] = 7
    assert x.tolist() == m.tolist() == [[0, 7], [5, 0]]


def test_tensors_without_elements_or_dimensions_have_buffers():
    assert memoryview(dt.zeros(0, 3)).shape == (0, 3) and bytes(dt.zeros(0)) == b''
    assert memoryview(dt.tensor(1.5)).shape == () and memoryview(dt.tensor(1.5))[()] == 1.5
    assert bytes(dt.tensor([1, 2], dtype=dt.uint8)) == b'\1\2'


@pytest.mark.parametrize('make', [
    lambda: dt.ones(2, requires_grad=True),
    lambda: dt.ones(2, requires_grad=True) * 2,
    lambda: dt.ones(2, 2).to_sparse(),
    lambda: dt.quantize_per_tensor(dt.ones(2), 0.1, 0, dt.uint8),
    lambda: dt.ones(2).to(dt.bfloat16),
    lambda: dt.ones(2).to(dt.float8_e5m2),
])
def test_what_has_no_buffer_is_refused(make):
    with pytest.raises(BufferError):
        memoryview(make())


def test_only_contiguous_memory_is_given_without_strides():
    x = dt.zeros(4, 4)
    assert len(bytearray(x)) == 64 and bytes(x.T) == bytes(64)
    with pytest.raises(BufferError):
        hashlib.sha256(x.T)


def test_read_only_memory_gives_read_only_buffers():
    x = dt._C._from_buffer(b'abcd')
    m = memoryview(x)
    assert m.readonly and bytes(m) == b'abcd'
    with pytest.raises(TypeError):
        m[0] = 1
    with pytest.raises((BufferError, TypeError)):
        io.BytesIO(b'zz').readinto(x)


def test_a_buffer_keeps_the_memory():
    x = dt.arange(1000)
    m = memoryview(x[10:20])
    del x
    gc.collect()
    others = [dt.zeros(1000) for _ in range(100)]
    assert m.tolist() == list(range(10, 20)) and len(others) == 100


def test_resizing_an_exported_tensor_leaves_its_buffer():
    x = dt.ones(4)
    m = memoryview(x)
    x.resize_(100000)
    x.zero_()
    m[0] = 3.0
    assert m.tolist() == [3, 1, 1, 1] and x.shape == (100000,) and x[0] == 0


def test_sharing_an_exported_tensor_leaves_its_buffer():
    x = dt.ones(4)
    m = memoryview(x)
    x.share_memory_()
    m[0] = 3.0
    assert m[0] == 3 and x[1:].tolist() == [1, 1, 1]


def test_exports_are_released():
    x = dt.zeros(64, 1024)
    for _ in range(2000):
        memoryview(x).release()
        np.asarray(memoryview(x[1]))
    gc.collect()
    m = memoryview(x)
    m.release()
    with pytest.raises(ValueError):
        m[0, 0]


def test_buffers_may_be_released_on_any_thread():
    held = [memoryview(dt.ones(1000)) for _ in range(100)]
    threads = [threading.Thread(target=lambda: held.pop().release()) for _ in range(100)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not held


def test_a_long_chain_of_buffers_is_released_without_recursion():
    code = """
import devtensor as dt
t = dt.zeros(4, dtype=dt.uint8)
for _ in range(100000):
    t = dt.frombuffer(memoryview(t), dtype=dt.uint8)
del t
"""
    subprocess.run([sys.executable, '-c', code], check=True)


def test_the_sizes_are_those_of_one_moment():
    """A collection, which the allocation of the tuple begins, resizes the tensor."""
    sizes = (1,) * 10 + (2, 3)
    x, threshold = dt.zeros(sizes), gc.get_threshold()
    seen, young = set(), []

    def resize(phase, info):
        x.resize_(4)
    gc.callbacks.append(resize)
    try:
        for _ in range(2000):
            gc.disable()
            x.resize_(sizes)
            young[:] = [[] for _ in range(3)]
            gc.set_threshold(1)
            gc.enable()
            seen.update((x.shape, x.strides))
    finally:
        gc.callbacks.remove(resize)
        gc.set_threshold(*threshold)
        gc.enable()
    assert seen <= {sizes, (4,), (6,) * 10 + (3, 1), (1,)}
