# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Process groups, collective operations, and data-parallel training.

    # tensorrun -n 4 python3 program.py        or mpirun
    with distributed.init() as group:
        model = distributed.DataParallel(model, group)
        loader = DataLoader(data, 32, shuffle=True, rank=group.rank, size=group.size)
        for x, y in loader:
            optimizer.zero_grad()
            model.backward(loss(model(x), y))
            optimizer.step()

All ranks of a group call the same operations in the same order. A program that no launcher has started is a group of
one.

Errors: ValueError on all ranks where ranks called different operations, or with different shapes or dtypes, after which
the group goes on. ConnectionResetError: a rank has died, which the text names; BrokenPipeError: a rank has left the
group; TimeoutError: one did not call the operation within the group's timeout. After these the group can only be
closed.
"""
import asyncio
import contextlib
import math
import threading

from devtensor import _C
from devtensor._C import _DataParallel, _ProcessGroup

__all__ = ['init', 'Group', 'Request', 'DataParallel', 'default_group', 'is_initialized', 'get_rank', 'get_world_size',
           'barrier', 'broadcast', 'all_reduce', 'reduce', 'reduce_scatter', 'all_gather', 'gather', 'scatter',
           'all_to_all', 'send', 'recv']

_OPS = {'sum': 0, 'mean': 1, 'product': 2, 'min': 3, 'max': 4}     # enum tensor_group_op


def _number_of(op):
    if op not in _OPS:
        raise ValueError(f"op must be one of {', '.join(map(repr, _OPS))}, got {op!r}")
    return _OPS[op]


def _nanoseconds(timeout):
    """Of a group: 0 is the default of the library, negative no limit."""
    if timeout is None:
        return 0
    if not timeout > 0:
        raise ValueError(f'timeout must be positive seconds, math.inf or None, got {timeout!r}')
    return -1 if math.isinf(timeout) else max(1, min(int(timeout * 1e9), 2 ** 62))


def _call_in_thread(function, *args):
    """The result of a call that cannot be interrupted: KeyboardInterrupt and other signals end the wait for it."""
    result = []

    def call():
        try:
            result.append((function(*args), None))
        except BaseException as e:
            result.append((None, e))

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join()
    value, error = result.pop()
    if error is not None:
        try:
            raise error
        finally:
            del error
    return value


class Request:
    """An operation that was begun with wait=False: its tensors are not to be changed, nor its result read, before it
    has ended. It keeps them; a request that is dropped goes on. `await request` gives the result in asyncio."""

    __slots__ = '_request', '_result'

    def __init__(self, request, result):
        self._request, self._result = request, result

    def wait(self, timeout=None):
        """The result of the operation, or its error. TimeoutError after timeout seconds: it goes on."""
        self._request.wait(timeout)
        return self._result

    @property
    def done(self):
        """Whether the operation has ended: wait() returns at once."""
        return self._request.done

    def __await__(self):
        delay = 1e-4
        while not self.done:
            yield from asyncio.sleep(delay).__await__()
            delay = min(2 * delay, 0.01)
        return self.wait()


class Group(_ProcessGroup):
    """A process group that this process has joined; init() makes one, and has the arguments.

    op is 'sum', 'mean', 'product', 'min' or 'max' of the elements of all ranks; results have the same bits on all
    ranks. out is where a result goes, or a new tensor. With wait=False a method returns a Request. Tensors may have any
    strides and be on any device; nothing is recorded for autograd.
    """

    def __new__(cls, engine=None, *, rank=None, size=None, address=None, timeout=None):
        if (rank is None) != (size is None):
            raise ValueError('a Group needs both rank and size, or none of them')
        if size is not None and size < 1:
            raise ValueError(f'size must be at least 1, got {size!r}')
        return _call_in_thread(super().__new__, cls, engine, rank or 0, size or 0, address, _nanoseconds(timeout))

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def _call(self, name, out, input, wait, *, op='sum', root=0, result=None):
        request = self._start(name, out, input, _number_of(op), root)
        if not wait:
            return Request(request, result)
        request.wait(None)
        return result

    def barrier(self, *, wait=True):
        """Wait until all ranks have called it."""
        return self._call('barrier', None, None, wait)

    def broadcast(self, tensor, src=0, *, wait=True):
        """Give the elements of rank src's tensor to the tensors of all ranks."""
        return self._call('broadcast', tensor, None, wait, root=src, result=tensor)

    def all_reduce(self, tensor, op='sum', *, out=None, wait=True):
        """The elements of all ranks, reduced; in place without out."""
        out = tensor if out is None else out
        return self._call('all_reduce', out, tensor, wait, op=op, result=out)

    def reduce(self, tensor, dst=0, op='sum', *, out=None, wait=True):
        """The elements of all ranks, reduced, on rank dst; None on the others."""
        out = self._result_on(dst, out, lambda: tensor.shape, tensor)
        return self._call('reduce', out, tensor, wait, op=op, root=dst, result=out)

    def reduce_scatter(self, tensor, op='sum', *, out=None, wait=True):
        """The tensors [size * n, ...] of all ranks, reduced: this rank's part [n, ...]."""
        out = self._part_of(tensor) if out is None else out
        return self._call('reduce_scatter', out, tensor, wait, op=op, result=out)

    def all_gather(self, tensor, *, out=None, wait=True):
        """The tensors [n, ...] of all ranks one after the other: [size * n, ...]. A scalar counts as [1]."""
        tensor = _at_least_1d(tensor)
        out = _empty(self._whole_shape(tensor), tensor) if out is None else out
        return self._call('all_gather', out, tensor, wait, result=out)

    def gather(self, tensor, dst=0, *, out=None, wait=True):
        """As all_gather() on rank dst; None on the others."""
        tensor = _at_least_1d(tensor)
        out = self._result_on(dst, out, lambda: self._whole_shape(tensor), tensor)
        return self._call('gather', out, tensor, wait, root=dst, result=out)

    def scatter(self, tensor=None, src=0, *, out=None, wait=True):
        """Rank src's tensor [size * n, ...] in parts [n, ...], one for each rank. Ranks without a tensor need out."""
        if self.rank != src:
            tensor = None
        elif tensor is None:
            raise TypeError(f'scatter: rank {src} needs a tensor')
        if out is None and tensor is None:
            raise TypeError('scatter: a rank that receives needs out')
        out = self._part_of(tensor) if out is None else out
        return self._call('scatter', out, tensor, wait, root=src, result=out)

    def all_to_all(self, tensor, *, out=None, wait=True):
        """Tensors [size * n, ...]: part i of rank j becomes part j of rank i's result."""
        out = _empty(_shape(tensor), tensor) if out is None else out
        return self._call('all_to_all', out, tensor, wait, result=out)

    def send(self, tensor, dst, *, wait=True):
        """Send a tensor to a rank, which may wait for its recv()."""
        return self._call('send', None, tensor, wait, root=dst)

    def recv(self, out, src, *, wait=True):
        """Receive from a rank into a tensor of the same shape and dtype. Messages of two ranks keep their order."""
        return self._call('recv', out, None, wait, root=src, result=out)

    def _whole_shape(self, part):
        return (self.size * part.shape[0], *part.shape[1:])

    def _part_of(self, whole):
        shape = _shape(whole)
        if not shape or shape[0] % self.size:
            raise ValueError(f'dimension 0 of {list(shape)} cannot be divided among {self.size} ranks')
        return _empty((shape[0] // self.size, *shape[1:]), whole)

    def _result_on(self, rank, out, shape, like):
        """The result of an operation with a result on one rank."""
        if self.rank != rank:
            return None
        return _empty(shape(), like) if out is None else out


def _shape(tensor):
    if not isinstance(tensor, _C.Tensor):
        raise TypeError(f'expected a tensor, got {type(tensor)!r}')
    return tensor.shape


def _empty(shape, like):
    return _C.empty(shape, dtype=like.dtype, device=like.device)


def _at_least_1d(tensor):
    return tensor if _shape(tensor) else tensor.detach().reshape(1)


# ---- the default group ----

_default = None


def init(engine=None, *, rank=None, size=None, address=None, timeout=None):
    """Join a process group, when all ranks have called it.

    engine: 'local', for processes of one machine, 'mpi', 'nccl', for a CUDA device each (group.device), or None: what
    the environment says. tensorrun and mpirun say which rank of how many a process is; otherwise rank, size and an
    address, a name that the ranks share, say it.
    timeout: seconds for the ranks to join and for each operation; None: ten minutes, math.inf: no limit.

    The first group that is open is that of the functions of this module. A group is closed by close(), or at the end of
    a `with`: ranks that end without it have died for the others.
    """
    global _default
    group = Group(engine, rank=rank, size=size, address=address, timeout=timeout)
    if not is_initialized():
        _default = group
    return group


def is_initialized():
    """Whether there is a default group."""
    return _default is not None and not _default.closed


def default_group():
    """The group that init() has joined. RuntimeError if there is none."""
    if not is_initialized():
        raise RuntimeError('there is no process group: call devtensor.distributed.init()')
    return _default


def get_rank(group=None):
    """The rank of this process; 0 if it has joined no group."""
    return (group or default_group()).rank if group or is_initialized() else 0


def get_world_size(group=None):
    """The number of ranks; 1 if this process has joined no group."""
    return (group or default_group()).size if group or is_initialized() else 1


def _function(name):
    method = getattr(Group, name)

    def call(*args, group=None, **options):
        return method(group or default_group(), *args, **options)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f'Group.{name}() of the default group, or of group=. {method.__doc__}'
    return call


barrier = _function('barrier')
broadcast = _function('broadcast')
all_reduce = _function('all_reduce')
reduce = _function('reduce')
reduce_scatter = _function('reduce_scatter')
all_gather = _function('all_gather')
gather = _function('gather')
scatter = _function('scatter')
all_to_all = _function('all_to_all')
send = _function('send')
recv = _function('recv')


# ---- training ----

class DataParallel:
    """A module that each rank trains on its own part of every batch; attributes are those of the module.

    Parameters and buffers of all ranks become rank 0's. backward() averages the gradients over the ranks while it
    computes the next ones, so that all ranks make the same step: with the mean over a batch as loss, that of one
    process with all batches. Make it after the module has its dtype and device. Gradients travel in buckets of
    bucket_bytes (0: the library chooses), in a dtype or their own. With keep_buffers each rank keeps its own buffers;
    otherwise they are rank 0's after each backward.
    """

    def __init__(self, module, group=None, *, bucket_bytes=0, dtype=None, keep_buffers=False):
        self.module, self.group, self.keep_buffers = module, group or default_group(), keep_buffers
        self._sync = True
        self._parallel = _DataParallel(
            list(module.parameters()), list(module.buffers()), self.group, bucket_bytes, dtype)

    def __call__(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def __getattr__(self, name):
        if name == 'module':    # an object that __init__ has not finished, or a copy
            raise AttributeError(name)
        return getattr(self.module, name)

    def backward(self, loss, gradient=None):
        """loss.backward(), and the averages of the gradients of all ranks."""
        loss.backward(gradient)
        self.finish()

    def finish(self):
        """After another kind of backward: wait for the averages of the gradients. A parameter that no rank used keeps
        its gradient, or none; one that this rank did not use counts as zero here."""
        self._parallel.finish()
        if self._sync and not self.keep_buffers:
            for buffer in self.module.buffers():
                self.group.broadcast(buffer)

    @contextlib.contextmanager
    def no_sync(self):
        """Within it gradients are only accumulated on this rank; the next backward after it averages what has come
        together."""
        before = self._sync
        self._set_sync(False)
        try:
            yield
        finally:
            self._set_sync(before)

    def _set_sync(self, sync):
        self._parallel.set_sync(sync)
        self._sync = sync

    def owned(self):
        """This rank's part of the parameters, for an optimizer that keeps state for them alone; it can be empty. Set
        the gradients of all parameters back: zero_grad() of the module, not of the optimizer."""
        return self._parallel.owned()

    def share(self):
        """After the step of an optimizer with owned(): give its parameters to all ranks."""
        self._parallel.share()
