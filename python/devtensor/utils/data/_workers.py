# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Batches from worker processes: what a DataLoader uses with num_workers > 0.

A worker collates a batch into buffers of a pool and sends its tensors over a channel, without a copy; the structure
around them (lists, dicts, numbers) goes over a pipe. A buffer is used again when the parent has released the batch.
Batch i is made by worker i % num_workers, and random numbers are seeded anew for each batch, so that neither the order
nor the numbers depend on how many workers there are.
"""
import hashlib
import io
import itertools
import multiprocessing
import pickle
import random
import signal
import struct
import sys
import traceback
import weakref
from multiprocessing import connection, reduction

from devtensor import _C, sharing

BATCH, END, ERROR = range(3)
MOST = 64       # tensors of a message of a channel
SHAPES = 32     # that a worker has pools for
_info = None
_buffers = None
_started = weakref.WeakSet()  # the workers of this process


class WorkerInfo:
    """A worker: its number `id`, `num_workers`, the data set's copy `dataset`, and `seed` of the current batch."""

    def __init__(self, id, num_workers, dataset):
        self.id, self.num_workers, self.dataset, self.seed = id, num_workers, dataset, 0


def worker_info():
    """None in a process that is no worker."""
    return _info


# ---- buffers of a worker ------------------------------------------------------------------------


class _Buffers:
    """Pools by shape and dtype. A shape gets a pool when it comes again: the last batch of an epoch is smaller."""

    def __init__(self, n):
        self.n, self.pools = n, {}

    def take(self, shape, dtype):
        key = shape, dtype
        if key not in self.pools and len(self.pools) == SHAPES:
            self.pools.clear()      # loans and received tensors stay valid
        if key not in self.pools:
            self.pools[key] = None
        elif self.pools[key] is None:
            self.pools[key] = sharing.Pool(shape, n=self.n, dtype=dtype, full='refuse')
        pool = self.pools[key]
        try:
            if pool is not None:
                return pool.loan(0)
        except BlockingIOError:     # the parent keeps more batches than it has asked for
            pass
        return _C.empty(shape, dtype=dtype, shareable=True)


def batch_buffer(shape, dtype):
    """Uninitialised memory for a batch, in a worker."""
    return _buffers.take(tuple(shape), dtype)


# ---- messages -----------------------------------------------------------------------------------


class _Pickler(reduction.ForkingPickler):
    """Leaves out tensors that a channel can send; they follow in the order of their numbers."""

    def __init__(self, file):
        super().__init__(file)
        self.tensors, self.numbers = [], {}

    def persistent_id(self, obj):
        if type(obj) is not _C.Tensor or obj.layout is not _C.strided or obj.device != 'cpu':
            return None
        if id(obj) not in self.numbers:
            self.numbers[id(obj)] = len(self.tensors)
            self.tensors.append(obj)
        return self.numbers[id(obj)], obj.requires_grad


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, tensors):
        super().__init__(file)
        self.tensors = tensors

    def persistent_load(self, pid):
        t = self.tensors[pid[0]]
        return t.requires_grad_(True) if pid[1] and not t.requires_grad else t


def _message(kind, obj):
    """The bytes for the pipe, and the tensors that follow on the channel."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(obj)
    return struct.pack('<BI', kind, len(pickler.tensors)) + file.getbuffer(), pickler.tensors


def _send(pipe, channel, message):
    data, tensors = message
    pipe.send_bytes(data)
    tensors = [t.detach() for t in tensors]
    for i in range(0, len(tensors), MOST):
        channel.send_many(tensors[i:i + MOST])


def _receive(pipe, channel, timeout):
    data = pipe.recv_bytes()
    kind, n = struct.unpack_from('<BI', data)
    tensors = []
    while len(tensors) < n:
        tensors += channel.recv_many(MOST, timeout)[0]
    return kind, _Unpickler(io.BytesIO(memoryview(data)[struct.calcsize('<BI'):]), tensors).load()


# ---- a worker -----------------------------------------------------------------------------------


def _close_inherited():
    """A forked worker has copies of the parent's ends. They are closed, so that each worker sees when the parent closes
    its own."""
    for worker in list(_started):
        worker.pipe.close()
        try:
            worker.channel.close()
        except RuntimeError:
            pass  # another thread of the parent was in a call when the process forked
    _started.clear()


def batch_seed(base, number):
    """The seed of a batch: the same for any number of workers."""
    digest = hashlib.blake2b(struct.pack('<QQ', base & (2**64 - 1), number), digest_size=8).digest()
    return int.from_bytes(digest, 'little') >> 1


def _seed(seed):
    _info.seed = seed
    _C.default_generator.manual_seed(seed)
    random.seed(seed)
    if 'numpy' in sys.modules:
        sys.modules['numpy'].random.seed(seed & 0xffffffff)


class _Failure:
    """An exception of a worker, with its traceback as text."""

    def __init__(self, exception, worker):
        self.worker, self.text = worker, ''.join(traceback.format_exception(exception))
        try:
            self.type = pickle.loads(pickle.dumps(type(exception)))
        except Exception:
            self.type = RuntimeError

    def reraise(self):
        text = f'Caught {self.type.__name__} in worker {self.worker} of a DataLoader.\nOriginal {self.text}'
        try:
            exception = self.type(text)
        except Exception:
            exception = RuntimeError(text)
        raise exception


def _work(loader, number, workers, pipe, channel, base):
    """The main function of a worker."""
    try:
        _answer_tasks(loader, number, workers, pipe, channel, base)
    except (BrokenPipeError, ConnectionResetError, EOFError):
        pass  # the parent has closed its ends
    except Exception as e:
        # As a call of the system at the limit of descriptors. The parent may be waiting for tensors of a batch: it
        # finds the channel closed, and this message in the pipe.
        try:
            pipe.send_bytes(_message(ERROR, _Failure(e, number))[0])
        except OSError:
            pass
        channel.close()


def _answer_tasks(loader, number, workers, pipe, channel, base):
    """Answers each task until the pipe is closed or the parent is gone."""
    global _info, _buffers
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the workers
    _close_inherited()
    _info = WorkerInfo(number, workers, loader.dataset)
    _buffers = _Buffers((loader.prefetch_factor or 2) + 2)
    parent = multiprocessing.parent_process()
    stream = None
    try:
        if loader.worker_init_fn is not None:
            _seed(batch_seed(base, number))
            loader.worker_init_fn(number)
        failure = None
    except Exception as e:
        failure = _Failure(e, number)
    while pipe in connection.wait([pipe] + ([parent.sentinel] if parent else [])):
        task = pipe.recv()
        if task is None:
            return
        at, indices, fresh = task
        kind, answer = ERROR, failure
        if failure is None:
            try:
                _seed(batch_seed(base, at))
                if loader._iterable and (stream is None or fresh):
                    stream = loader._fetch_stream(0)
                batch = next(stream, _info) if loader._iterable else loader._fetch(indices)
                kind, answer = (END, None) if batch is _info else (BATCH, batch)
                message = _message(kind, answer)
            except Exception as e:
                kind, answer = ERROR, _Failure(e, number)
        _send(pipe, channel, message if kind != ERROR else _message(kind, answer))
        answer = batch = message = None     # the parent has the buffers now


# ---- the parent ---------------------------------------------------------------------------------


class _Worker:
    def __init__(self, context, loader, number, base):
        self.number = number
        self.pipe, theirs = context.Pipe()
        self.channel, their_channel = sharing.pair()
        self.process = context.Process(target=_work, name=f'DataLoader {number}', daemon=True,
                                       args=(loader, number, loader.num_workers, theirs, their_channel, base))
        _started.add(self)
        self.process.start()
        theirs.close()
        their_channel.close()

    def give(self, task):
        try:
            self.pipe.send(task)
        except OSError:
            pass  # take() reports the end of the process

    def take(self, timeout):
        """The answer to the oldest task."""
        ready = connection.wait([self.pipe, self.process.sentinel], timeout or None)
        if not ready:
            raise RuntimeError(f'DataLoader: no batch from worker {self.number} within {timeout} seconds')
        try:
            if self.pipe in ready:
                return _receive(self.pipe, self.channel, timeout or None)
        except (EOFError, ConnectionResetError, TimeoutError):
            pass
        failure = self.last_message()
        if failure is not None:
            return ERROR, failure
        self.process.join(1)
        code = self.process.exitcode
        how = f'was killed by {signal.Signals(-code).name}' if code and code < 0 else f'ended with exit code {code}'
        raise RuntimeError(f'DataLoader: worker {self.number} (pid {self.process.pid}) {how}')

    def last_message(self):
        """The failure that a worker reported before it ended, or None."""
        try:
            while self.pipe.poll():
                kind, obj = _receive(self.pipe, self.channel, 0)
                if kind == ERROR:
                    return obj
        except (EOFError, OSError, ValueError):
            pass
        return None

    def stop(self):
        self.pipe.close()
        self.channel.close()
        self.process.join(1)
        if self.process.is_alive():
            self.process.terminate()
            self.process.join(1)
        if self.process.is_alive():  # it ignores SIGTERM
            self.process.kill()
            self.process.join()


class _Pool:
    """The workers of a loader, for one epoch or for all."""

    def __init__(self, loader, base):
        context = loader.multiprocessing_context
        if context is None or isinstance(context, str):
            context = multiprocessing.get_context(context or 'fork')
        self.workers = []
        # A loader that is sent to a worker has no workers.
        pool, loader._pool = getattr(loader, '_pool', None), None
        try:
            for i in range(loader.num_workers):
                self.workers.append(_Worker(context, loader, i, base))
        except BaseException:
            self.stop()
            raise
        finally:
            loader._pool = pool

    def stop(self):
        for worker in self.workers:
            worker.pipe.close()
        for worker in self.workers:
            worker.stop()


def _epoch(loader, pool, tasks, skip):
    """The batches of an epoch. Each worker has prefetch_factor tasks at most; a task is (number of the batch, indices,
    whether an IterableDataset begins anew)."""
    n, ahead, timeout = loader.num_workers, loader.prefetch_factor or 2, loader.timeout
    numbered = iter(enumerate(tasks, 0 if loader._iterable else skip))
    pending = [0] * n  # answers that are due
    ended = [False] * n

    def give():
        """Gives the next task. False when there is none."""
        nonlocal following
        for _ in range(n):
            worker, following = following, (following + 1) % n
            if not ended[worker]:
                at, indices = next(numbered, (None, None))
                if at is None:
                    return False
                pool.workers[worker].give((at, indices, at < n and loader._iterable))
                pending[worker] += 1
                return True
        return False

    following = turn = 0
    for _ in range(n * ahead):
        give()
    discard = skip if loader._iterable else 0
    while any(pending):
        worker, turn = turn, (turn + 1) % n
        if not pending[worker]:
            continue
        kind, obj = pool.workers[worker].take(timeout)
        pending[worker] -= 1
        if kind == ERROR:
            obj.reraise()
        if kind == END:
            ended[worker] = True
            continue
        give()
        if discard:
            discard -= 1
        else:
            yield obj


def _run(loader, tasks, skip):
    base = loader.generator.initial_seed() + loader._epoch + (loader._rank << 40)     # ranks may have one generator
    pool = getattr(loader, '_pool', None)
    try:
        if pool is None:
            pool = loader._pool = _Pool(loader, base)
        yield from _epoch(loader, pool, tasks, skip)
        if not loader.persistent_workers:
            pool.stop()
            loader._pool = None
    except BaseException:
        # Answers that are still due would be taken for those of the next epoch.
        loader._pool = None
        if pool is not None:
            pool.stop()
        raise


def batches(loader, index_lists):
    """An iterator over the batches of an epoch of a loader with num_workers > 0, in the order of index_lists: lists of
    indices, or numbers of samples for an IterableDataset."""
    return _run(loader, itertools.chain(index_lists), loader._position)
