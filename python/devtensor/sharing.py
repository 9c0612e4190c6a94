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


class AsyncChannel:
    """A channel for asyncio: `await channel.recv()`, `await channel.send(x)`, `async for x in channel`.

    Several tasks may call it; messages are sent, and received, one after the other. A task that is cancelled while it
    waits loses no message."""

    def __init__(self, channel):
        self.channel = channel if isinstance(channel, Channel) else Channel(channel)
        self._sending, self._receiving = asyncio.Lock(), asyncio.Lock()

    async def _ready(self, add, remove):
        fd, ready = self.channel.fileno(), asyncio.get_running_loop().create_future()

        def set_ready():
            if not ready.done():
                ready.set_result(None)
        add(fd, set_ready)
        try:
            await ready
        finally:
            remove(fd)

    async def recv(self):
        """The next tensor. EOFError when the peer has closed its end."""
        async with self._receiving:
            loop = asyncio.get_running_loop()
            while (t := self.channel.try_recv()) is None:
                await self._ready(loop.add_reader, loop.remove_reader)
            return t

    async def send(self, tensor, *, readonly=False):
        """Sends a tensor as Channel.send() does."""
        async with self._sending:
            loop = asyncio.get_running_loop()
            while not self.channel.try_send(tensor, readonly=readonly):
                await self._ready(loop.add_writer, loop.remove_writer)

    def close(self):
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
