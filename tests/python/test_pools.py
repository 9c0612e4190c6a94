# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Rings, messages of several tensors, pools and their leases, waiting for several channels."""
import asyncio
import gc
import multiprocessing as mp
import os
import signal
import threading
import time

import pytest

import devtensor as dt
from devtensor import sharing

RINGS = [False, True]


def load(channel, batches, n):
    """Fills the n buffers of a pool again and again: batch i has the number i everywhere."""
    with channel, sharing.Pool((8, 100), n=n) as pool:
        for i in range(batches):
            batch = pool.loan(timeout=60)
            batch.fill_(i)
            channel.send_many([batch, dt.tensor([i])], tag=i, timeout=60)
            del batch


def hold(channel):
    with channel:
        held = channel.recv_many()
        channel.send(dt.zeros(1))
        time.sleep(60)
        del held


def start(target, *args, **options):
    """A channel to a process that runs target(channel, *args)."""
    a, b = sharing.pair(**options)
    process = mp.get_context('fork').Process(target=run, args=(target, a, b, args))
    process.start()
    b.close()
    return a, process


def run(target, other, channel, args):
    other.close()
    target(channel, *args)


def connected(**options):
    """Two channels that use their rings by now."""
    a, b = sharing.pair(**options)
    for _ in range(3):
        a.send(dt.zeros(1))
        b.recv(timeout=10)
        b.send(dt.zeros(1))
        a.recv(timeout=10)
    return a, b


@pytest.mark.parametrize('ring', RINGS)
def test_a_buffer_does_not_change_while_the_receiver_reads_it(ring):
    channel, process = start(load, 200, 2, ring=ring)
    late = []
    for i in range(200):
        (batch, number), tag = channel.recv_many(timeout=60)
        if i % 50 == 49:
            time.sleep(0.02)
        assert batch.mean().item() == tag == number.item() == i
        late = (late + [batch[3:, ::2]])[-1:]
        del batch
        assert late[0].mean().item() == i
    del late, number
    process.join(60)
    assert process.exitcode == 0


@pytest.mark.parametrize('ring', RINGS)
def test_the_last_release_returns_a_buffer(ring):
    a, b = connected(ring=ring)
    with sharing.Pool((100,), n=1) as pool:
        x = pool.loan()
        assert pool.available == 0
        a.send(x)
        del x
        y = b.recv(timeout=10)
        view, weight = y[10:], dt.ones(90, requires_grad=True)
        loss = (weight * view).sum()
        del y, view
        gc.collect()
        with pytest.raises(TimeoutError):
            pool.loan(timeout=0.05)
        loss.backward()
        del loss
        assert pool.loan(timeout=10).shape == (100,)
        assert pool.available == 1      # that loan was released without having been sent


def test_a_full_pool_waits_drops_or_refuses():
    for full, error in ('wait', TimeoutError), ('refuse', BlockingIOError):
        with sharing.Pool((4,), n=1, full=full) as pool:
            loan = pool.loan()
            with pytest.raises(error):
                pool.loan(timeout=0.01)
            del loan
            pool.loan()
    a, b = connected(ring=True)
    with sharing.Pool((4,), n=2, full='drop') as pool:
        for i in range(5):
            x = pool.loan(timeout=10)
            x.fill_(i)
            a.send_many([x], i)
            del x
        tags = [b.recv_many(timeout=10)[1] for _ in range(2)]
        assert tags == [3, 4]


def test_the_death_of_a_receiver_returns_its_buffers():
    channel, process = start(hold, ring=True)
    with sharing.Pool((1000,), n=1) as pool:
        x = pool.loan()
        channel.send(x)
        del x
        channel.recv(timeout=60)
        with pytest.raises(TimeoutError):
            pool.loan(timeout=0.05)
        os.kill(process.pid, signal.SIGKILL)
        assert pool.loan(timeout=10).numel() == 1000
    process.join()


@pytest.mark.parametrize('ring', RINGS)
def test_messages_of_several_tensors(ring):
    a, b = connected(ring=ring)
    x = dt.arange(12)
    a.send_many([x, x[3:], x.reshape(3, 4).t()], tag=2 ** 64 - 1)
    a.send_many([])
    a.send(x)
    (p, q, r), tag = b.recv_many()
    assert tag == 2 ** 64 - 1 and r.shape == (4, 3) and q.tolist() == list(range(3, 12))
    p[5] = 50
    assert q[2].item() == 50 == x[5].item()
    assert b.recv_many(0) == ([], 0)
    assert [t.tolist() for t in b.recv_many()[0]] == [x.tolist()]
    assert b.try_recv_many() is None
    a.send_many([x, x])
    for call in b.recv, lambda: b.recv_many(1):
        with pytest.raises(OSError, match='2 tensors'):
            call()
    assert len(b.recv_many(2)[0]) == 2


def test_arguments_that_do_not_fit_are_refused():
    a, b = sharing.pair(ring=True)
    x = dt.zeros(2)
    for error, call in [(TypeError, lambda: a.send_many([x, 1])), (TypeError, lambda: a.send_many(x, 'tag')),
                        (OverflowError, lambda: a.send_many([x], -1)),
                        (OverflowError, lambda: a.send_many([x], 2 ** 64)),
                        (ValueError, lambda: a.send_many([x] * 65)), (ValueError, lambda: b.recv_many(65)),
                        (ValueError, lambda: b.recv_many(-1)), (ValueError, lambda: a.send_many([x], timeout=-1)),
                        (ValueError, lambda: sharing.pair(records=-1)), (ValueError, lambda: sharing.pair(spin=2)),
                        (ValueError, lambda: sharing.Pool((2,), n=0)),
                        (ValueError, lambda: sharing.Pool((2,), full='no')),
                        (TypeError, lambda: sharing.Pool()), (TypeError, lambda: sharing.Pool((2,), tensors=[x])),
                        (ValueError, lambda: sharing.Pool(tensors=[])),
                        (ValueError, lambda: sharing.Pool(tensors=[x, x])),
                        (TypeError, lambda: sharing.wait([a, 1])), (ValueError, lambda: sharing.wait([]))]:
        with pytest.raises(error):
            call()
    pool = sharing.Pool(tensors=[dt.zeros(2), dt.zeros(3, dtype=dt.int8)])
    assert {pool.loan().dtype for _ in range(3)} <= {dt.float32, dt.int8}
    pool.close()
    pool.close()
    for call in pool.loan, lambda: pool.available:
        with pytest.raises(ValueError, match='closed'):
            call()
    a.close()
    with pytest.raises(ValueError, match='closed'):
        sharing.wait([b, a])
    b.close()      # wait() released it


def test_a_full_ring_ends_at_the_timeout_and_at_a_signal():
    a, b = connected(ring=True, records=4)
    assert a.has_ring and b.has_ring
    x = dt.zeros(1)
    while a.try_send(x):
        pass
    begin = time.monotonic()
    with pytest.raises(TimeoutError):
        a.send(x, timeout=0.2)
    assert 0.2 <= time.monotonic() - begin < 2
    before = signal.signal(signal.SIGALRM, lambda *args: 1 / 0)
    try:
        for call in lambda: a.send(x), lambda: a.send_many([x]), lambda: sharing.wait([a]), a.recv_many:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(ZeroDivisionError):
                call()
    finally:
        signal.signal(signal.SIGALRM, before)
    threading.Timer(0.1, lambda: b.recv(timeout=10)).start()
    a.send(x, timeout=10)


def test_waiting_for_several_channels():
    pairs = [connected(ring=ring) for ring in RINGS * 2]
    ours = [a for a, _ in pairs]
    with pytest.raises(TimeoutError):
        sharing.wait(ours, timeout=0.01)
    for i in 2, 0, 3:
        pairs[i][1].send(dt.tensor([i]))
        ready = sharing.wait(ours, timeout=10)
        assert ready is ours[i] and ready.recv(timeout=10).item() == i
    threading.Timer(0.05, pairs[1][1].close).start()
    assert sharing.wait(ours, timeout=10) is ours[1]
    with pytest.raises(EOFError):
        ours[1].recv()


@pytest.mark.parametrize('ring', RINGS)
def test_asyncio(ring):
    async def produce(channel, n):
        for i in range(n):
            if i % 2:
                await channel.send(dt.tensor([i]))
            else:
                await channel.send_many([dt.tensor([i]), dt.zeros(1)], i)

    async def consume(channel, n):
        found = []
        for _ in range(n):
            tensors, tag = await channel.recv_many()
            assert tag == (0 if len(tensors) == 1 else tensors[0].item())
            found.append(tensors[0].item())
            if len(found) % 100 == 0:
                await asyncio.sleep(0.01)
        return found

    async def both():
        a, b = map(sharing.AsyncChannel, connected(ring=ring, records=8))
        _, found = await asyncio.wait_for(asyncio.gather(produce(a, 500), consume(b, 500)), 60)
        assert found == list(range(500))
        task = asyncio.create_task(b.recv_many())
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await a.send(dt.ones(1))
        assert (await b.recv()).item() == 1
        a.close()
        b.close()

    asyncio.run(both())


def test_nothing_is_left_open():
    def once():
        a, b = connected(ring=True)
        with sharing.Pool((10,), n=3) as pool, a, b:
            for i in range(10):
                x = pool.loan(timeout=10)
                a.send_many([x], i)
                del x
                b.recv_many(timeout=10)

    once()
    gc.collect()
    before = len(os.listdir('/proc/self/fd'))
    for _ in range(20):
        once()
    gc.collect()
    assert len(os.listdir('/proc/self/fd')) <= before + 1
