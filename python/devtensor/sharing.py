# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Tensors between processes: channels over unix sockets, and their use in asyncio.

    a, b = sharing.pair()              # two connected channels: one for a child process
    a.send(x)                          # no copy: the receiver gets a tensor on the same memory
    y = b.recv(timeout=1.0)

A received tensor is an ordinary tensor. Its memory lives until the last process has released it, whatever
happens to the sender. A process that writes makes sure that no other process reads at that moment.
"""
import asyncio
import os
import socket
import stat
import weakref

from devtensor._C import Channel

__all__ = ['Channel', 'AsyncChannel', 'pair', 'connect', 'Listener']


def pair():
    """Two connected channels."""
    return tuple(Channel(s) for s in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))


def connect(path):
    """A channel to the process that listens at path (see Listener)."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        s.connect(os.fspath(path))
        return Channel(s)
    except BaseException:
        s.close()
        raise


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

    def accept(self, timeout=None):
        """The next channel; TimeoutError after timeout seconds."""
        self.socket.settimeout(timeout)
        s, _ = self.socket.accept()
        try:
            return Channel(s)
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

    async def send(self, tensor, *, readonly=False):
        """Sends a tensor as Channel.send() does."""
        async with self._lock(1):
            while not self.channel.try_send(tensor, readonly=readonly):
                await self._ready('writer')

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
