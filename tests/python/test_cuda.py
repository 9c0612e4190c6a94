# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""CUDA from Python. With a device, which may be the emulated one of make test-cuda, else the tests are skipped."""
import ctypes
import gc
import os
import socket
import threading

import devtensor as dt
import pytest
from devtensor import cuda, sharing

if not cuda.is_available():
    pytest.skip('no CUDA device', allow_module_level=True)


def test_capture_and_replay():
    assert cuda.device_count() >= 1
    g = cuda.CUDAGraph()
    x = dt.ones(30, device='cuda')
    with cuda.graph(g):
        assert cuda.is_current_stream_capturing()
        y = x + x
    assert not cuda.is_current_stream_capturing()
    for i in range(3):
        x.fill_(i)
        g.replay()
        assert y.sum().item() == 60 * i
    g.wait()
    g.reset()
    with pytest.raises(ValueError):
        g.replay()


def test_step_of_training():
    def make():
        dt.manual_seed(1)
        model = dt.nn.Sequential(dt.nn.Linear(5, 8), dt.nn.ReLU(), dt.nn.Dropout(0.5), dt.nn.Linear(8, 3)).to('cuda')
        return model, dt.optim.Adam(model.parameters(), lr=0.01)

    x = dt.arange(20, dtype=dt.float32).reshape(4, 5).to('cuda') / 20
    target = dt.tensor([0, 2, 1, 1]).to('cuda')

    def train(model, optimizer):
        optimizer.zero_grad()
        loss = dt.nn.functional.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        return loss

    eager = make()
    losses = [train(*eager).item() for _ in range(8)]
    captured = make()
    assert [train(*captured).item() for _ in range(2)] == losses[:2]
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        loss = train(*captured)
    found = []
    for _ in range(6):
        g.replay()
        found.append(loss.item())
    assert found == losses[2:]
    after = []
    for each in eager, captured:
        dt.manual_seed(2)
        after.append(train(*each).item())
    assert after[0] == after[1]


def test_what_cannot_be_captured_raises_and_ends_the_capture():
    g = cuda.CUDAGraph()
    x = dt.ones(3, device='cuda')
    with pytest.raises(NotImplementedError, match='cannot capture'):
        with cuda.graph(g):
            x.sum().item()
    assert not cuda.is_current_stream_capturing()
    with pytest.raises(ZeroDivisionError):
        with cuda.graph(g):
            x.add_(1)
            1 // 0
    with cuda.graph(g):
        x.add_(1)
    g.replay()
    assert x.tolist() == [2, 2, 2]


def test_an_index_out_of_range_in_a_replay():
    g = cuda.CUDAGraph()
    x = dt.ones(3, device='cuda')
    i = dt.tensor([0, 1]).to('cuda')
    with cuda.graph(g):
        x.index_select(0, i)
    i.copy_(dt.tensor([0, 7]))
    g.replay()
    with pytest.raises((IndexError, ValueError)):
        g.wait()
    g.wait()


def test_checks_of_values():
    x, far = dt.ones(3, device='cuda'), dt.tensor([0, 7]).to('cuda')
    assert cuda.checks() == 'late'
    y = x.index_select(0, far)
    with pytest.raises(IndexError, match='index_select: index 7 is out of range .* size 3 .reported late'):
        y.sum().item()
    assert y.tolist() == [1, 0]
    assert cuda.set_checks('wait') == 'late'
    try:
        with pytest.raises(IndexError, match='size 3$'):
            x.index_select(0, far)
    finally:
        assert cuda.set_checks('late') == 'wait'
    with pytest.raises(ValueError, match="expected 'late' or 'wait', got 'never'"):
        cuda.set_checks('never')


def test_pools_and_generators():
    a, b = cuda.CUDAGraph(), cuda.CUDAGraph()
    own = dt.Generator().manual_seed(5)
    x = dt.empty(10, device='cuda')
    with pytest.raises(TypeError):
        a.register_generator_state(3)
    with pytest.raises(TypeError):
        b.capture_begin(pool=3)
    a.register_generator_state(own)
    with cuda.graph(a):
        x.normal_(generator=own)
    with cuda.graph(b, pool=a):
        y = x + x
    expected = dt.empty(10, device='cuda').normal_(generator=dt.Generator().manual_seed(5))
    a.replay()
    b.replay()
    assert (y == expected + expected).all().item()


def test_graphs_that_are_collected_in_a_capture():
    x = dt.ones(10, device='cuda')
    old = cuda.CUDAGraph()
    with cuda.graph(old):
        x + x
    old.replay()
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        del old
        gc.collect()
        y = x + x
    g.replay()
    assert y.sum().item() == 20


def test_a_thread_that_does_not_capture():
    g = cuda.CUDAGraph()
    x = dt.ones(10, device='cuda')
    found = []

    def work():
        found.append((x * 3).sum().item())
        try:
            cuda.synchronize()
        except RuntimeError as e:
            found.append(type(e))

    with cuda.graph(g):
        y = x + x
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    g.replay()
    assert y.sum().item() == 20
    assert found[0] == 30 and len(found) == 2
    cuda.synchronize()


def test_devices():
    last = cuda.device_count() - 1
    assert cuda.current_device() == 0 and dt.device('cuda').index == 0
    with cuda.device(last):
        assert cuda.current_device() == last and dt.device('cuda').index == last
        x = dt.ones(3, device='cuda')
        assert x.device == f'cuda:{last}' and x.device == 'cuda'
        with cuda.device(None), cuda.device(-1):
            assert cuda.current_device() == last
        with cuda.device_of(dt.ones(2, device='cuda:0')):
            assert cuda.current_device() == 0
    assert cuda.current_device() == 0
    with pytest.raises(OSError, match='cuda:99'):
        cuda.set_device(99)
    with pytest.raises(ValueError):
        cuda.set_device('cpu')
    assert x.cuda(0).device == 'cuda:0' and x.cpu().cuda().device == 'cuda:0' and x.cuda(last) is x
    assert dt.nn.Linear(2, 2).cuda().weight.device == 'cuda:0'


def test_blocks_nest_and_run_in_threads():
    last = cuda.device_count() - 1
    one, s = cuda.device(last), cuda.Stream()
    with one, one:
        assert cuda.current_device() == last
    assert cuda.current_device() == 0
    outer = [cuda.Stream(), cuda.Stream()]
    # The second thread enters the stream after the first one, which leaves it first.
    steps, found = threading.Barrier(2), {}

    def work(i):
        with outer[i]:
            if i:
                steps.wait()
            with s:
                if not i:
                    steps.wait()
                steps.wait()
                if i:
                    steps.wait()
            if not i:
                steps.wait()
            found[i] = cuda.current_stream() == outer[i]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == {0: True, 1: True}


def test_properties():
    p = cuda.get_device_properties()
    assert cuda.get_device_name(0) == p.name and cuda.get_device_capability('cuda:0') == (p.major, p.minor)
    assert p.multi_processor_count > 0 and len(p.uuid) == 16
    unused, total = cuda.mem_get_info()
    assert 0 < unused <= total == p.total_memory
    cuda.empty_cache()
    assert cuda.is_bf16_supported() == (p.major >= 8)
    with pytest.raises(OSError):
        cuda.get_device_properties(99)


def test_dmabuf():
    x = dt.arange(100, dtype=dt.float32, device='cuda')
    try:
        fd, offset, size = cuda.export_dmabuf(x[25:])
    except NotImplementedError as e:
        pytest.skip(str(e))
    try:
        assert offset == 100 and size >= 400 and os.lseek(fd, 0, os.SEEK_END) == size
        try:
            host = sharing.from_buffer_fd(fd, (3, 25), dtype=dt.float32, offset=offset)
        except NotImplementedError as e:    # no /dev/tensor, or memory that a GPU's driver does not map
            assert '/dev/tensor' in str(e)
            host = None
    finally:
        os.close(fd)
    assert x.sum().item() == 4950
    if host is not None:
        assert host.device == 'cpu' and host[1].tolist() == list(range(50, 75))
        host.fill_(1.0)
        assert x.sum().item() == sum(range(25)) + 75
    with pytest.raises(ValueError):
        cuda.export_dmabuf(dt.ones(3))
    with pytest.raises(TypeError):
        cuda.export_dmabuf(3)


def test_streams():
    a, b = cuda.Stream(), cuda.Stream(priority=-1)
    assert a != b and a == cuda.ExternalStream(a.cuda_stream) and len({a, cuda.ExternalStream(a.cuda_stream)}) == 1
    assert cuda.current_stream() == cuda.default_stream() != a
    x = dt.ones(5000, device='cuda')
    a.wait_stream(cuda.current_stream())
    with cuda.stream(a):
        assert cuda.current_stream() == a
        y = x + x
        done = a.record_event()
        with b:
            b.wait_event(done)
            assert cuda.current_stream() == b
            z = y + y
        assert cuda.current_stream() == a
    with pytest.raises(KeyError), cuda.stream(a):
        raise KeyError
    assert cuda.current_stream() == cuda.default_stream()
    b.synchronize()
    assert b.query() and done.query()
    cuda.current_stream().wait_stream(b)
    assert z.sum().item() == 20000
    x.record_stream(b)
    with pytest.raises(ValueError):
        dt.ones(2).record_stream(b)
    with cuda.stream(None):
        pass
    assert x.to_device('cpu', stream=cuda.current_stream()).sum() == 5000
    with pytest.raises(ValueError):
        dt.ones(2).to_device('cpu', stream=a)
    with pytest.raises(OSError):
        cuda.Stream(99)
    with pytest.raises(ValueError):
        cuda.Stream(priority=1)


def test_events():
    start, end, never = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True, blocking=True), cuda.Event()
    assert never.query()
    never.synchronize()
    never.wait()
    start.record()
    x = dt.ones(1000, device='cuda')
    for _ in range(5):
        x = x + x
    end.record()
    end.synchronize()
    assert end.query() and start.elapsed_time(end) > 0
    with pytest.raises(ValueError):
        start.elapsed_time(never)
    never.record()
    with pytest.raises(ValueError, match='TIMING'):
        start.elapsed_time(never)
    with pytest.raises(NotImplementedError):
        cuda.Event(interprocess=True)


def test_streams_in_a_capture():
    g = cuda.CUDAGraph()
    other = cuda.Stream()
    with pytest.raises(NotImplementedError, match='streams of the program'):
        with cuda.graph(g):
            other.wait_stream(cuda.current_stream())
    assert cuda.current_stream() == cuda.default_stream()
    with cuda.graph(g):
        y = dt.ones(3, device='cuda') + 1
    g.replay()
    assert y.sum() == 6


def test_memory_statistics():
    cuda.empty_cache()
    cuda.reset_peak_memory_stats()
    cuda.reset_accumulated_memory_stats()
    before = cuda.memory_allocated()
    x = dt.empty(3 << 20, dtype=dt.uint8, device='cuda')
    y = dt.empty(100, dtype=dt.uint8, device='cuda:0')
    stats = cuda.memory_stats('cuda:0')
    assert len(stats) == 9 * 3 * 4 + 4 and list(stats) == sorted(stats)
    assert stats['requested_bytes.all.allocated'] == (3 << 20) + 100
    assert stats['allocated_bytes.small_pool.allocated'] == 512
    assert stats['allocation.large_pool.allocated'] == 1
    assert stats['num_ooms'] == stats['num_alloc_retries'] == 0
    assert cuda.memory_allocated() == before + (3 << 20) + 512
    del x, y
    assert cuda.memory_allocated() == before
    assert cuda.max_memory_allocated() == before + (3 << 20) + 512
    assert cuda.max_memory_reserved() == cuda.memory_reserved() >= 20 << 20
    cuda.reset_peak_memory_stats()
    assert cuda.max_memory_allocated() == before
    cuda.empty_cache()
    assert cuda.memory_stats()['reserved_bytes.large_pool.freed'] == 20 << 20
    with pytest.raises(OSError, match='cuda:100'):
        cuda.memory_stats(100)


def test_memory_summary():
    text = cuda.memory_summary()
    assert 'cuda:0' in text and len(text.splitlines()) == 2 + 7 * 3
    x = dt.empty(1 << 24, dtype=dt.uint8, device='cuda')
    row = next(line for line in cuda.memory_summary(abbreviated=True).splitlines() if line.startswith('requested'))
    assert 'MiB' in row and x.numel() == 1 << 24


def test_dlpack_shares_memory():
    x = dt.arange(12, dtype=dt.float32, device='cuda').reshape(3, 4)
    assert x.__dlpack_device__() == (2, 0)
    y = dt.from_dlpack(x)
    assert y.device == 'cuda:0' and y.data_ptr() == x.data_ptr()
    y.add_(1)
    assert x.sum() == 78
    z = dt.from_dlpack(x.t()[1:], copy=True)
    assert z.device == 'cuda:0' and z.data_ptr() != x.data_ptr() and (z == x.t()[1:]).all()
    assert dt.from_dlpack(x, device='cuda').data_ptr() == x.data_ptr()
    host = dt.from_dlpack(x, device='cpu')
    assert host.device == 'cpu' and host.sum() == 78
    assert dt.from_dlpack(dt.ones(3), device='cuda').device == 'cuda:0'
    for source, device in (x, 'cpu'), (dt.ones(3), 'cuda'):
        with pytest.raises(BufferError):
            dt.from_dlpack(source, device=device, copy=False)
    capsule = x.__dlpack__(stream=1, max_version=(1, 0), dl_device=(2, 0))
    assert dt.from_dlpack(capsule).data_ptr() == x.data_ptr()
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 7))
    for stream in 0, -2:
        with pytest.raises(BufferError, match='stream'):
            x.__dlpack__(stream=stream)
    with pytest.raises(TypeError):
        x.__dlpack__(stream='side')
    x.__dlpack__(stream=-1)
    with pytest.raises(BufferError):
        dt.ones(2).__dlpack__(stream=1)
    with pytest.raises(BufferError):
        x.clone().requires_grad_().__dlpack__()


def test_dlpack_orders_streams():
    """The consumer's stream follows the producer's current one, and memory stays until the consumer's work is done."""
    a, b = cuda.Stream(), cuda.Stream()
    for i in range(5):
        with cuda.stream(a):
            x = dt.full((5000,), float(i), device='cuda')
            for _ in range(10):
                x = x + x
            capsule = x.__dlpack__(stream=b.cuda_stream)
            del x
        with cuda.stream(b):
            y = dt.from_dlpack(capsule)
            z = y + y
            del y
        with cuda.stream(a):
            dt.zeros(5000, device='cuda')
        with cuda.stream(b):
            assert z.sum().item() == 5000 * i * 2048


def test_objects_of_old_producers():
    class Old:
        def __init__(self, tensor):
            self.tensor, self.stream = tensor, None

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

        def __dlpack__(self, stream=None):
            self.stream = stream
            return self.tensor.__dlpack__(stream=stream)

    old = Old(dt.ones(5, device='cuda'))
    assert dt.from_dlpack(old).sum() == 5 and old.stream == 1
    with cuda.stream(cuda.Stream()) as _, cuda.Stream() as s:
        assert dt.from_dlpack(old, copy=True).sum() == 5 and old.stream == s.cuda_stream


def read_only(x):
    """A tensor on the memory of x, from a producer that marks it read-only."""
    capsule = x.__dlpack__(max_version=(1, 0))
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    # DLManagedTensorVersioned: version, manager_ctx, deleter, flags.
    ctypes.c_uint64.from_address(pointer(capsule, b'dltensor_versioned') + 24).value |= 1
    return dt.from_dlpack(capsule)


def test_cuda_array_interface():
    x = dt.arange(12, dtype=dt.int16, device='cuda').reshape(3, 4)
    i = x.__cuda_array_interface__
    assert i == {'shape': (3, 4), 'typestr': '<i2', 'data': (x.data_ptr(), False), 'strides': None, 'version': 3,
                 'stream': 1}
    assert x.t().__cuda_array_interface__['strides'] == (2, 8)
    with cuda.Stream() as s:
        assert x.__cuda_array_interface__['stream'] == s.cuda_stream
    assert x[:0].__cuda_array_interface__['data'] == (0, False)
    assert not hasattr(dt.ones(2), '__cuda_array_interface__')
    assert not hasattr(x.bfloat16(), '__cuda_array_interface__')
    with pytest.raises(RuntimeError):
        x.float().requires_grad_().__cuda_array_interface__
    assert read_only(x).__cuda_array_interface__['data'] == (x.data_ptr(), True)


def test_channels_send_tensors_of_the_device():
    a, b = socket.socketpair()
    out, back = sharing.Channel(a), sharing.Channel(b)
    x = dt.arange(6, device='cuda').float()
    out.send(x[1:4])
    y = back.recv()
    assert y.device == x.device
    y.add_(1)
    assert x.cpu().tolist() == [0, 2, 3, 4, 4, 5]
    with pytest.raises(Exception, match='another process'):
        back.send(y)
