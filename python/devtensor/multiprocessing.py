# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""multiprocessing with tensors that are shared instead of copied.

The names are those of the standard library's multiprocessing. Queues, pipes and arguments of processes, of every
start method, pass a tensor as a descriptor of its buffer: the receiver gets a tensor on the same memory, with the same
sizes and strides. The tensor is moved to a shareable buffer first if need be. The receiver's descriptor holds the
buffer: it outlives the sender once it was received. A leaf keeps requires_grad; the result of a recorded operator is
refused.

Importing devtensor is enough to register the tensors; this module is for programs that say
`import devtensor.multiprocessing as mp`.
"""
import multiprocessing
import multiprocessing.connection
import os
import weakref
from multiprocessing import *  # noqa: F401,F403
from multiprocessing import context, reduction

from devtensor import _C

__all__ = [*multiprocessing.__all__, 'spawn']

# Descriptors that a process which is being started inherits: id of the tensor -> (descriptor, buffer).
_inherited = {}


def _close(key):
    os.close(_inherited.pop(key)[0])


def _inherited_fd(tensor, shared, info):
    """A descriptor that stays open as long as the tensor uses the buffer: the new process gets it when it starts."""
    key, buffer = id(tensor), tuple(info.values())
    fd, before = _inherited.get(key, (None, None))
    if before != buffer:
        new = _C._buffer_fd(shared, not (info['readonly'] or info['sealed']))
        _inherited[key] = new, buffer
        if fd is None:
            weakref.finalize(tensor, _close, key)
        else:
            os.close(fd)
        fd = new
    return fd


def _shareable(tensor):
    """A tensor without history on the same memory, in a buffer; on a copy of memory that cannot be shared."""
    tensor = tensor.detach()
    try:
        return _C._share_memory(tensor)
    except (NotImplementedError, OSError):
        return _C._share_memory(tensor.clone())


def _rebuild(df, dtype, shape, strides, offset, requires_grad, cls):
    fd = df.detach()
    try:
        t = _C._from_buffer_fd(fd, dtype, None, 0)
    finally:
        os.close(fd)
    t = _C.as_strided(t, shape, strides, offset)
    if cls is not _C.Tensor:
        t = t.as_subclass(cls)
    return t.requires_grad_(True) if requires_grad else t


def _rebuild_empty(dtype, shape, requires_grad, cls):
    t = _C.empty(shape, dtype=dtype)
    if cls is not _C.Tensor:
        t = t.as_subclass(cls)
    return t.requires_grad_(True) if requires_grad else t


def _reduce(tensor):
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError('a tensor that a recorded operator returned cannot be sent to another process: detach() it, '
                           'or send the leaves')
    if tensor.layout is not _C.strided or tensor.device != 'cpu':
        return tensor.__reduce_ex__(4)
    attributes = getattr(tensor, '__dict__', None) or None
    if not tensor.numel():
        return _rebuild_empty, (tensor.dtype, tensor.shape, tensor.requires_grad, type(tensor)), attributes
    shared = _shareable(tensor)
    info = _C._buffer_info(shared)
    writable = not (info['readonly'] or info['sealed'])
    if context.get_spawning_popen() is not None:
        df = reduction.DupFd(_inherited_fd(tensor, shared, info))
    else:
        fd = _C._buffer_fd(shared, writable)
        try:
            df = reduction.DupFd(fd)
        finally:
            os.close(fd)
    return _rebuild, (df, tensor.dtype, tensor.shape, tensor.strides, shared.storage_offset(), tensor.requires_grad,
                      type(tensor)), attributes


def _rebuild_channel(socket):
    return _C.Channel(socket)


def _reduce_channel(channel):
    """Before its first use: the tables of buffers are those of the process that used it."""
    return _rebuild_channel, (channel.socket,)


def register(cls):
    """Tensors of the subclass cls are passed as descriptors, too, with the attributes of their objects."""
    reduction.ForkingPickler.register(cls, _reduce)
    return cls


register(_C.Tensor)
reduction.ForkingPickler.register(_C.Channel, _reduce_channel)


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method='spawn'):
    """Calls fn(i, *args) in nprocs new processes. With join waits for them, and raises RuntimeError if one failed,
    after the others were terminated; otherwise returns the list of processes."""
    ctx = multiprocessing.get_context(start_method)
    processes = [ctx.Process(target=fn, args=(i, *args), daemon=daemon) for i in range(nprocs)]
    for p in processes:
        p.start()
    if not join:
        return processes
    waiting = {p.sentinel: p for p in processes}
    failed = None
    while waiting:
        for sentinel in multiprocessing.connection.wait(list(waiting)):
            p = waiting.pop(sentinel)
            p.join()
            if p.exitcode and failed is None:
                failed = p
                for other in waiting.values():
                    other.terminate()
    if failed is not None:
        raise RuntimeError(f'process {processes.index(failed)} ended with exit code {failed.exitcode}')
    return None
