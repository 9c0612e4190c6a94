# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Tensors on the memory of descriptors: sharing.from_buffer_fd()."""
import errno
import fcntl
import os

import pytest

import devtensor as dt
from devtensor import sharing

SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW


def memfd(size=4096, seals=SEALS):
    fd = os.memfd_create('test', os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    if seals:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


@pytest.fixture
def fd():
    fd = memfd()
    yield fd
    os.close(fd)


def test_memory_is_that_of_the_descriptor(fd):
    t = sharing.from_buffer_fd(fd, (2, 3), dtype=dt.float32, offset=8)
    t.copy_(dt.arange(6.0).reshape(2, 3))
    all_of_it = sharing.from_buffer_fd(fd, dtype=dt.float32)
    assert all_of_it.shape == (1024,) and all_of_it[:9].tolist() == [0, 0, 0, 1, 2, 3, 4, 5, 0]
    assert os.pread(fd, 4, 12) == memoryview(dt.ones(1)).tobytes()
    os.pwrite(fd, memoryview(dt.full((1,), 7.0)).tobytes(), 8)
    assert t[0, 0].item() == 7


def test_tensor_keeps_the_memory():
    fd = memfd()
    t = sharing.from_buffer_fd(fd, [4], dtype='int64')
    os.close(fd)
    assert t.fill_(3).sum().item() == 12


def test_descriptor_for_reading_gives_a_read_only_tensor(fd):
    ro = os.open(f'/proc/self/fd/{fd}', os.O_RDONLY)
    t = sharing.from_buffer_fd(ro, dtype=dt.uint8)
    os.close(ro)
    with pytest.raises(PermissionError):
        t.fill_(1)


def test_shape_and_dtype_of_a_buffer_are_stored():
    x = dt._C._share_memory(dt.arange(6).reshape(2, 3))
    fd = dt._C._buffer_fd(x, True)
    y = sharing.from_buffer_fd(fd)
    os.close(fd)
    assert y.shape == (2, 3) and y.dtype == x.dtype and y.tolist() == x.tolist()
    y[1, 1] = 50
    assert x[1, 1].item() == 50


@pytest.mark.parametrize('shape, options', [
    ((1025,), dict(dtype=dt.float32)), ((1,), dict(dtype=dt.float32, offset=4096)),
    ((1,), dict(dtype=dt.float32, offset=-4)), ((1,), dict(dtype=dt.float32, offset=2)),
    ((1,), dict(dtype=dt.float32, offset=2**63 - 4)), ((-1,), dict(dtype=dt.uint8)),
    ((2**62, 8), dict(dtype=dt.uint8)), ((1,) * 17, dict(dtype=dt.uint8)), ((3,), {}), (None, dict(offset=8)),
    (None, {})])
def test_what_does_not_fit_is_a_value_error(fd, shape, options):
    with pytest.raises(ValueError, match='from_buffer_fd'):
        sharing.from_buffer_fd(fd, shape, **options)


def test_other_arguments_are_refused(fd):
    for arguments, options in (((3.5,), {}), ((fd, 'abc'), dict(dtype=dt.uint8)), ((fd, (1.5,)), dict(dtype=dt.uint8)),
                               ((fd,), dict(dtype=7)), ((fd,), dict(dtype=dt.uint8, offset='1'))):
        with pytest.raises(TypeError):
            sharing.from_buffer_fd(*arguments, **options)
    for number in (2**40, -2**40):
        with pytest.raises(OverflowError):
            sharing.from_buffer_fd(number, dtype=dt.uint8)
    with pytest.raises(OverflowError):
        sharing.from_buffer_fd(fd, dtype=dt.uint8, offset=2**64)


def test_other_descriptors_are_refused():
    before = len(os.listdir('/proc/self/fd'))
    for number, code in ((-1, errno.EBADF), (2**31 - 1, errno.EBADF)):
        with pytest.raises(OSError) as e:
            sharing.from_buffer_fd(number, dtype=dt.uint8)
        assert e.value.errno == code
    ends = os.pipe()
    for fd in (*ends, os.open('/', os.O_RDONLY), os.eventfd(0), memfd(seals=0), memfd(seals=fcntl.F_SEAL_GROW)):
        with pytest.raises(RuntimeError, match='no dma-buf'):
            sharing.from_buffer_fd(fd, dtype=dt.uint8)
        os.close(fd)
    assert len(os.listdir('/proc/self/fd')) == before
