# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Devices, streams and events of devtensor.cuda."""
import contextlib
import threading
import types

from devtensor import _C

__all__ = ['Event', 'ExternalStream', 'Stream', 'current_device', 'current_stream', 'default_stream', 'device',
           'device_of', 'empty_cache', 'export_dmabuf', 'get_device_capability', 'get_device_name',
           'get_device_properties', 'is_bf16_supported', 'mem_get_info', 'set_device', 'set_stream', 'stream',
           'synchronize']


# ---- devices ----

def _index(device):
    """The number of a device: of None the current one, of an int itself, of 'cuda', 'cuda:1' and devices theirs."""
    if device is None:
        return current_device()
    if isinstance(device, int):
        return device
    device = _C.device(device)
    if device.type != 'cuda':
        raise ValueError(f'expected a CUDA device, got {device}')
    return device.index


def current_device():
    """The number of the calling thread's device, which 'cuda' names."""
    return _C._cuda_current_device()


def set_device(device):
    """Make it the calling thread's current device."""
    _C._cuda_set_device(_index(device))


class _Blocks:
    """What the blocks of an object set again at their end: threads may use one at the same time, and nest it."""

    def __init__(self):
        self._of_threads = {}

    def push(self, entered):
        self._of_threads.setdefault(threading.get_ident(), []).append(entered)

    def pop(self):
        return self._of_threads[threading.get_ident()].pop()


class device:
    """with cuda.device(1): the current device in the block. None, and a negative number, change nothing."""

    def __init__(self, device):
        self.idx = -1 if device is None else _index(device)
        self._blocks = _Blocks()

    def __enter__(self):
        before = current_device() if self.idx >= 0 else None
        if self.idx >= 0:
            set_device(self.idx)
        self._blocks.push(before)

    def __exit__(self, kind, value, traceback):
        before = self._blocks.pop()
        if before is not None:
            set_device(before)


class device_of(device):
    """with cuda.device_of(tensor): the tensor's device in the block, if it is on one."""

    def __init__(self, tensor):
        super().__init__(tensor.device.index if tensor.is_cuda else None)


def get_device_properties(device=None):
    """name, major, minor, total_memory, multi_processor_count, max_threads_per_multi_processor, L2_cache_size,
    shared_memory_per_block_optin, uuid (bytes), pci_domain_id, pci_bus_id, pci_device_id, is_integrated."""
    return types.SimpleNamespace(**_C._cuda_properties(_index(device)))


def get_device_name(device=None):
    return get_device_properties(device).name


def get_device_capability(device=None):
    """The compute capability, (9, 0)."""
    p = get_device_properties(device)
    return p.major, p.minor


def is_bf16_supported():
    """True if the current device multiplies bfloat16 in hardware."""
    return get_device_capability()[0] >= 8


def mem_get_info(device=None):
    """Bytes of the device that no process has, and all bytes."""
    return _C._cuda_memory_info(_index(device))


def empty_cache(device=None):
    """Return the memory that no tensor uses to the driver."""
    _C._cuda_memory_trim(_index(device))


def export_dmabuf(tensor):
    """A dma-buf of the tensor's memory for other devices, as (descriptor, offset, size): the first element is offset
    bytes after the start of size bytes. The caller closes the descriptor, which keeps the memory. The first export
    moves the tensor's memory, as the first send does, and waits for the device."""
    return _C._cuda_export_dmabuf(tensor)


def synchronize(device=None):
    """Wait for all work of a device. RuntimeError while a graph is captured on it."""
    _C._cuda_synchronize(_index(device))


# ---- streams ----

class Stream:
    """A queue of work of a device: one of 32 for each priority, 0 or less. Work of different streams may run at the
    same time. with stream: makes it current, as cuda.stream(stream) does."""

    def __init__(self, device=None, priority=0):
        self._set(_index(device), None, priority)

    def _set(self, index, stream, priority=0):
        self.device_index, self.priority = index, min(priority, 0)
        self.cuda_stream = _C._cuda_stream(index, priority) if stream is None else stream
        self._blocks = _Blocks()

    @property
    def device(self):
        return _C.device('cuda', self.device_index)

    def query(self):
        """True if all work of the stream has finished."""
        return _C._cuda_stream_query(self.device_index, self.cuda_stream)

    def synchronize(self):
        """Wait for the work of the stream."""
        _C._cuda_stream_synchronize(self.device_index, self.cuda_stream)

    def record_event(self, event=None):
        """The event, or a new one, recorded here."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event):
        """Later work of this stream follows what the event recorded. The host does not wait."""
        event.wait(self)

    def wait_stream(self, stream):
        """Later work of this stream follows what is queued in the other one."""
        self.wait_event(stream.record_event())

    def __enter__(self):
        self._blocks.push(_enter(self))
        return self

    def __exit__(self, kind, value, traceback):
        _leave(self._blocks.pop())

    def __eq__(self, other):
        return isinstance(other, Stream) and (other.device_index, other.cuda_stream) == (self.device_index,
                                                                                         self.cuda_stream)

    def __hash__(self):
        return hash((self.device_index, self.cuda_stream))

    def __repr__(self):
        return f'<devtensor.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>'


class ExternalStream(Stream):
    """A stream of other code, by the address of its cudaStream_t. It must live as long as memory that was allocated in
    it, and as tensors of other streams that operators used in it or that record_stream() was called for with it (see
    tensor_cuda_stream() in <tensor/cuda.h>)."""

    def __init__(self, stream_ptr, device=None):
        self._set(_index(device), int(stream_ptr))


def _wrap(index, stream):
    return ExternalStream(stream, index)


def current_stream(device=None):
    """The stream in which the calling thread's operators on the device run."""
    index = _index(device)
    return _wrap(index, _C._cuda_current_stream(index))


def default_stream(device=None):
    """CUDA's default stream."""
    return _wrap(_index(device), 0)


def set_stream(stream):
    """Make it current on its device; None changes nothing."""
    if stream is not None:
        _C._cuda_set_stream(stream.device_index, stream.cuda_stream)


def _enter(stream):
    """Device and stream become current; what _leave() sets again."""
    outer = device(stream.device_index)
    before = current_stream(stream.device_index)
    set_stream(stream)
    outer.__enter__()
    return outer, before


def _leave(entered):
    outer, before = entered
    outer.__exit__(None, None, None)
    set_stream(before)


@contextlib.contextmanager
def stream(stream):
    """with cuda.stream(s): s and its device are current in the block. None changes nothing."""
    if stream is None:
        yield
        return
    entered = _enter(stream)
    try:
        yield
    finally:
        _leave(entered)


# ---- events ----

class Event:
    """A point in the work of a stream. enable_timing: for elapsed_time(); blocking: synchronize() sleeps rather than
    spins. Its device is that of the first stream that records it."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False):
        if interprocess:
            raise NotImplementedError('events are not shared with other processes')
        self._flags = (1 if enable_timing else 0) | (2 if blocking else 0)
        self._event = None

    def record(self, stream=None):
        """After what is queued in the stream, by default the current one."""
        stream = current_stream() if stream is None else stream
        if self._event is None:
            self._event = _C._CUDAEvent(stream.device_index, self._flags)
        self._event.record(stream.cuda_stream)

    def wait(self, stream=None):
        """Later work of the stream, by default the current one, follows the event. The host does not wait."""
        stream = current_stream() if stream is None else stream
        if self._event is not None:
            self._event.wait(stream.device_index, stream.cuda_stream)

    def query(self):
        """True if the event is reached, or was never recorded."""
        return self._event is None or self._event.query()

    def synchronize(self):
        """Wait for the event."""
        if self._event is not None:
            self._event.synchronize()

    def elapsed_time(self, end_event):
        """Milliseconds to the other event; both have been reached."""
        if self._event is None or end_event._event is None:
            raise ValueError('elapsed_time: an event was not recorded')
        return self._event.elapsed(end_event._event)
