# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Tensors between processes: channels over unix sockets, their use in asyncio, and channels between machines.

    a, b = sharing.pair()              # two connected channels: one for a child process
    a.send(x)                          # no copy: the receiver gets a tensor on the same memory
    y = b.recv(timeout=1.0)

A received tensor is an ordinary tensor. Its memory lives until the last process has released it, whatever
happens to the sender. A process that writes makes sure that no other process reads at that moment: a Pool lends
buffers that no receiver uses any more.

    with sharing.Pool((64, 784), n=4) as pool:
        batch = pool.loan()            # waits for a free buffer
        fill(batch)
        a.send_many([batch], tag=7)    # the buffer returns when the receiver has released its tensors
        del batch

Between machines the same calls copy the tensors:

    with sharing.listen('ucx://0.0.0.0:4711') as listener:
        a = listener.accept()
    b = sharing.connect('ucx://host:4711', timeout=10)      # on another machine
"""
import asyncio
import functools
import os
import socket
import stat
import weakref

import devtensor as dt
from devtensor._C import Channel, _channel_wait, _connect_remote, _from_buffer_fd, _Group, _Pool, _RemoteListener

__all__ = ['Channel', 'AsyncChannel', 'Group', 'Pool', 'pair', 'connect', 'listen', 'wait', 'Listener',
           'RemoteListener', 'from_buffer_fd']

_FULL = {'wait': 0, 'drop': 1, 'refuse': 2}     # enum tensor_pool_full
_TO = {'all': 0, 'next': 1}                     # enum tensor_channel_group_kind


def _choice(name, value, choices):
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return choices[value]


def pair(**options):
    """Two connected channels. options: those of Channel, for example ring=True."""
    return tuple(Channel(s, **options) for s in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))


def _is_remote(address):
    return isinstance(address, str) and '://' in address


def connect(path, **options):
    """A channel to the process that listens at path (see Listener). options: those of Channel.

    With an address, 'ucx://host:port', to the machine where listen() was called; see RemoteListener for the options.
    Besides them timeout: seconds, as silence by default."""
    if _is_remote(path):
        return _connect_remote_to(path, **options)
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        s.connect(os.fspath(path))
        return Channel(s, **options)
    except BaseException:
        s.close()
        raise


def _connect_remote_to(address, *, timeout=None, silence=10.0, max_bytes=0, records=0, spin=None, progress=None):
    return _connect_remote(address, timeout, silence, max_bytes, records, spin, progress)


def listen(address, **options):
    """A Listener at a path, or a RemoteListener at an address, 'ucx://0.0.0.0:port'. options: of that class."""
    return RemoteListener(address, **options) if _is_remote(address) else Listener(address, **options)


def wait(channels, timeout=None):
    """The channel of several from which recv() would not wait: it has a message, or the peer has ended. Of several such
    the one that was returned longest ago. TimeoutError after timeout seconds."""
    channels = list(channels)
    return channels[_channel_wait(channels, timeout)]


def from_buffer_fd(fd, shape=None, *, dtype=None, offset=0):
    """A tensor on the memory of a descriptor: a buffer of /dev/tensor, a dma-buf of any driver, or a memfd sealed
    against shrinking and growing. Nothing is copied; the descriptor remains the caller's.

    dtype None: shape and dtype that are stored in the buffer. shape None: one dimension with all elements from
    offset in bytes. The tensor is read-only if the descriptor has no right to write. NotImplementedError: memory
    that only devices can use, as that of most GPUs, or a dma-buf without /dev/tensor."""
    return _from_buffer_fd(fd, dtype, shape, offset)


class Pool(_Pool):
    """n buffers of one shape that are lent, sent, and lent again.

    A message with a tensor of the pool gives its receivers the buffers until they have released the last tensor of the
    message, with its views and what autograd saved of it; then they return by themselves, and also when a receiver
    dies. full says what loan() does while no buffer is free: 'wait', 'drop' the message that was sent longest ago and
    not received, or 'refuse' with BlockingIOError. tensors instead of shape: the pool lends these, which are on
    different memory and are left to it.
    """

    def __new__(cls, shape=None, *, n=4, dtype=None, full='wait', tensors=None):
        if (shape is None) == (tensors is None):
            raise TypeError('Pool needs a shape or tensors')
        number = _choice('full', full, _FULL)
        if tensors is None:
            if not 1 <= n <= 4096:
                raise ValueError(f'n must be 1 to 4096, got {n}')
            tensors = [dt.zeros(shape, dtype=dtype) for _ in range(n)]
        return super().__new__(cls, tensors, number)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


class Group(_Group):
    """One send to several channels: each message goes to 'all' receivers, or to the 'next', the one with the fewest.

    At most window messages are on their way to a receiver or with it, until it has released their tensors. full says
    what send() does then: 'wait', 'drop' the oldest message that the slow receiver has not received, or 'refuse' with
    BlockingIOError. Receivers join at any time; one that dies is passed over.
    """

    def __new__(cls, channels=(), *, to='all', full='wait', window=8):
        if not 1 <= window <= 4096:
            raise ValueError(f'window must be 1 to 4096, got {window}')
        self = super().__new__(cls, _choice('to', to, _TO), _choice('full', full, _FULL), window)
        for channel in channels:
            self.add(channel)
        return self

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


class Listener:
    """Accepts channels at a path, which it removes when it is closed. A socket that an earlier process left
    there, and to which nothing listens, is replaced."""

    def __init__(self, path, *, backlog=16, mode=0o600):
        self.path = os.fspath(path)
        self._remove_stale()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        before = os.umask(0o777 & ~mode)
        try:
            self.socket.bind(self.path)
        except BaseException:
            self.socket.close()
            raise
        finally:
            os.umask(before)
        self.socket.listen(backlog)
        self._inode = os.stat(self.path).st_ino

    def _remove_stale(self):
        try:
            if not stat.S_ISSOCK(os.lstat(self.path).st_mode):
                return
        except FileNotFoundError:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            try:
                s.connect(self.path)
            except ConnectionRefusedError:
                os.unlink(self.path)
            except OSError:
                pass  # bind() names the reason

    def accept(self, timeout=None, **options):
        """The next channel; TimeoutError after timeout seconds. options: those of Channel."""
        self.socket.settimeout(timeout)
        s, _ = self.socket.accept()
        try:
            return Channel(s, **options)
        except BaseException:
            s.close()
            raise

    def fileno(self):
        return self.socket.fileno()

    def close(self):
        if self.socket.fileno() < 0:
            return
        self.socket.close()
        try:
            if os.lstat(self.path).st_ino == self._inode:
                os.unlink(self.path)
        except FileNotFoundError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


class RemoteListener(_RemoteListener):
    """Accepts channels of other machines at an address, 'ucx://0.0.0.0:4711'; address has the port if that is 0.

    silence: seconds after which a peer that sends nothing is gone (ConnectionResetError). max_bytes: of a message,
    and of all that wait to be received; 0: a quarter of the memory. records: messages that wait to be received; 0: 64.
    progress of a channel: called as progress(sending, done, total) with bytes while a long message is sent, or received
    in recv(); an exception ends the transfer, and the send of a peer fails with RuntimeError.
    """

    def __new__(cls, address, *, silence=10.0, max_bytes=0, records=0, spin=None):
        return super().__new__(cls, address, silence, max_bytes, records, spin)

    def accept(self, timeout=None, *, progress=None):
        """The next channel; TimeoutError after timeout seconds."""
        return super().accept(timeout, progress)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


# The tasks that wait, of all loops: descriptor -> {_Waiter}. A loop has one callback for a descriptor and an event, and
# wakes all tasks that wait for it. The channel is held, so that the descriptor stays open. The tasks of a loop that was
# closed are freed by the garbage collector.
_waiting = {}


class _Waiter:
    """A task that waits until it can read from ('reader') or write to ('writer') a channel."""

    def __init__(self, channel, event):
        self.loop, self.event = asyncio.get_running_loop(), event
        self.future = self.loop.create_future()
        self.channel, self.fd = channel, channel._hold()
        first = not self._others()
        _waiting.setdefault(self.fd, weakref.WeakSet()).add(self)
        if first:
            getattr(self.loop, f'add_{event}')(self.fd, self._wake)

    def _others(self):
        return [w for w in _waiting.get(self.fd, ()) if w is not self and w.loop is self.loop and w.event == self.event]

    def _wake(self):
        for w in [self, *self._others()]:
            if not w.future.done():
                w.future.set_result(None)

    def end(self):
        """Ends the wait; again: no effect."""
        if self.channel is None:
            return
        others = self._others()
        if not self.loop.is_closed():
            if others:
                getattr(self.loop, f'add_{self.event}')(self.fd, others[0]._wake)
            else:
                getattr(self.loop, f'remove_{self.event}')(self.fd)
        waiters = _waiting.get(self.fd, set())
        waiters.discard(self)
        if not waiters:
            _waiting.pop(self.fd, None)
        self.channel._release()
        self.channel = None

    def _fail(self):
        if not self.future.done():
            self.future.set_exception(ValueError('the channel is closed'))

    def close(self):
        """Ends the wait with an exception, also from another thread."""
        self.end()
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._fail)


class AsyncChannel:
    """A channel for asyncio: `await channel.recv()`, `await channel.send(x)`, `async for x in channel`.

    Several tasks may call it; messages are sent, and received, one after the other. A task that is cancelled while it
    waits loses no message. close() ends the tasks that wait with a ValueError."""

    def __init__(self, channel):
        self.channel = channel if isinstance(channel, Channel) else Channel(channel)
        self._locks = weakref.WeakKeyDictionary()   # loop -> those of senders and of receivers

    def _lock(self, index):
        loop = asyncio.get_running_loop()
        if loop not in self._locks:
            self._locks[loop] = asyncio.Lock(), asyncio.Lock()
        return self._locks[loop][index]

    async def _ready(self, event):
        waiter = _Waiter(self.channel, event)
        try:
            await waiter.future
        finally:
            waiter.end()

    async def recv(self):
        """The next tensor. EOFError when the peer has closed its end."""
        async with self._lock(0):
            while (t := self.channel.try_recv()) is None:
                await self._ready('reader')
            return t

    async def recv_many(self, most=64):
        """The next message, as Channel.recv_many(): the list of its tensors, and its number."""
        async with self._lock(0):
            while (message := self.channel.try_recv_many(most)) is None:
                await self._ready('reader')
            return message

    async def _space(self, delay):
        """Waits until a send may succeed. With a ring the socket does not tell, so that the task looks again after a
        delay, which grows."""
        if not self.channel.has_ring:
            await self._ready('writer')
            return delay
        await asyncio.sleep(delay)
        return min(2 * delay, 0.01)

    async def _in_thread(self, function, *args, **options):
        """A long message to another machine takes its time, in a thread."""
        call = functools.partial(function, *args, **options)
        await asyncio.get_running_loop().run_in_executor(None, call)

    async def send(self, tensor, *, readonly=False):
        """Sends a tensor as Channel.send() does."""
        delay = 1e-4
        async with self._lock(1):
            if self.channel.is_remote:
                return await self._in_thread(self.channel.send, tensor, readonly=readonly)
            while not self.channel.try_send(tensor, readonly=readonly):
                delay = await self._space(delay)

    async def send_many(self, tensors, tag=0, *, readonly=False):
        """Sends a message as Channel.send_many() does."""
        delay, tensors = 1e-4, list(tensors)
        async with self._lock(1):
            if self.channel.is_remote:
                return await self._in_thread(self.channel.send_many, tensors, tag, readonly=readonly)
            while True:
                try:
                    return self.channel.send_many(tensors, tag, readonly=readonly, timeout=0)
                except TimeoutError:
                    delay = await self._space(delay)

    def close(self):
        """Closes the channel, as Channel.close()."""
        if not self.channel.closed:
            for waiter in list(_waiting.get(self.channel.fileno(), ())):
                waiter.close()
        self.channel.close()

    def __aiter__(self):
        return self

    async def __anext__(self):
        try:
            return await self.recv()
        except EOFError:
            raise StopAsyncIteration from None

    async def __aenter__(self):
        return self

    async def __aexit__(self, *exc):
        self.close()
