# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Channels in asyncio: closing, cancelling and several tasks at any moment."""
import asyncio
import gc
import random
import threading

import pytest

import devtensor as dt
from devtensor import sharing


def run(main):
    return asyncio.run(asyncio.wait_for(main, 60))


async def waiting(coroutine):
    """A task that has begun to wait."""
    task = asyncio.create_task(coroutine)
    await asyncio.sleep(0.05)
    assert not task.done()
    return task


async def fill(channel):
    while True:
        await channel.send(dt.ones(10))


@pytest.mark.parametrize('call', [lambda c: c.recv(), fill, anext])
def test_close_ends_a_task_that_waits(call):
    async def main():
        a, b = sharing.pair()
        channel = sharing.AsyncChannel(a)
        task = await waiting(call(channel))
        channel.close()
        with pytest.raises(ValueError, match='closed'):
            await asyncio.wait_for(task, 10)
        assert a.closed and not sharing._waiting
        channel.close()
        with pytest.raises(ValueError, match='closed'):
            await channel.recv()
    run(main())


def test_the_channel_refuses_to_close_under_a_task():
    async def main():
        a, b = sharing.pair()
        task = await waiting(sharing.AsyncChannel(a).recv())
        with pytest.raises(RuntimeError, match='uses the channel'):
            a.close()
        b.send(dt.tensor([5]))
        assert (await task).tolist() == [5]
        a.close()
    run(main())


def test_close_from_another_thread():
    async def main():
        a, b = sharing.pair()
        channel = sharing.AsyncChannel(a)
        task = await waiting(channel.recv())
        thread = threading.Thread(target=channel.close)
        thread.start()
        with pytest.raises(ValueError, match='closed'):
            await asyncio.wait_for(task, 10)
        thread.join()
    run(main())


def test_two_objects_for_one_channel():
    async def main():
        a, b = sharing.pair()
        tasks = [await waiting(sharing.AsyncChannel(a).recv()) for _ in range(3)]
        tasks[0].cancel()
        b.send(dt.tensor([1]))
        b.send(dt.tensor([2]))
        received = await asyncio.wait_for(asyncio.gather(*tasks[1:]), 10)
        assert sorted(int(t[0]) for t in received) == [1, 2] and not sharing._waiting
    run(main())


def test_cancelling_at_any_moment_loses_no_message():
    async def main():
        a, b = map(sharing.AsyncChannel, sharing.pair())
        received, n = [], 300

        async def send():
            for i in range(n):
                await a.send(dt.tensor([i]))
                await asyncio.sleep(0)

        async def receive():
            while len(received) < n:
                task = asyncio.create_task(b.recv())
                for _ in range(random.randrange(4)):
                    await asyncio.sleep(0)
                task.cancel()
                try:
                    received.append(int((await task)[0]))
                except asyncio.CancelledError:
                    pass
        await asyncio.gather(send(), receive())
        assert received == list(range(n))
    run(main())


def test_a_peer_that_closes_ends_all_tasks():
    async def main():
        a, b = sharing.pair()
        channel = sharing.AsyncChannel(a)
        tasks = [await waiting(channel.recv()) for _ in range(3)]
        b.close()
        assert [type(e) for e in await asyncio.gather(*tasks, return_exceptions=True)] == [EOFError] * 3
    run(main())


def test_a_loop_that_is_closed_leaves_the_channel_to_the_next():
    a, b = sharing.pair()
    channel = sharing.AsyncChannel(a)
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: None)  # "Task was destroyed but it is pending"
    task = loop.create_task(channel.recv())
    loop.run_until_complete(asyncio.sleep(0.05))
    loop.close()
    del task, loop
    gc.collect()
    assert not sharing._waiting

    async def main():
        b.send(dt.tensor([3]))
        assert (await channel.recv()).tolist() == [3]
        channel.close()
    run(main())
