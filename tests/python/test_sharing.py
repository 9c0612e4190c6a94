# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Channels, and tensors through multiprocessing."""
import asyncio
import gc
import multiprocessing as mp
import os
import signal
import socket
import threading
import time

import pytest

import devtensor as dt
import devtensor.multiprocessing as dmp
from devtensor import sharing

METHODS = ['fork', 'spawn', 'forkserver']


def add_one_to(channel, n):
    with channel:
        for _ in range(n):
            channel.send(channel.recv(timeout=60).add_(1))


def fill(t, value):
    t.fill_(value)


def echo(queue, answer):
    t = queue.get()
    t.detach().mul_(2)
    answer.put((t.shape, t.strides, t.requires_grad))
    queue.get()  # holds the tensor until the parent has looked


def produce(queue, n, received):
    for i in range(n):
        queue.put(dt.full((1000,), i))
    received.wait(60)  # the sender answers for descriptors that were not received yet


def die(t):
    t.fill_(5)
    os.kill(os.getpid(), signal.SIGKILL)


def fail_at(i, t):
    if i == 1:
        raise SystemExit(3)
    time.sleep(0 if t is None else 0.01)


def fds():
    return len(os.listdir('/proc/self/fd'))


def test_a_sent_tensor_is_the_same_memory():
    a, b = sharing.pair()
    x = dt.zeros(64, 64)
    a.send(x)
    y = b.recv()
    y[3, 4] = 7
    assert x[3, 4].item() == 7 and y.shape == (64, 64)
    view = x[1:, ::2]
    a.send(view)
    z = b.recv()
    assert z.shape == view.shape and z.strides == view.strides
    assert z[2, 2].item() == 7


def test_a_readonly_send_cannot_be_written():
    a, b = sharing.pair()
    a.send(dt.ones(2000), readonly=True)
    y = b.recv()
    with pytest.raises(OSError):
        y.add_(1)
    assert y.sum().item() == 2000


def test_waits_end_at_their_timeout():
    a, b = sharing.pair()
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        a.recv(timeout=0.05)
    assert 0.04 < time.monotonic() - start < 2
    with pytest.raises(ValueError):
        a.recv(timeout=-1)
    assert b.try_recv() is None
    with pytest.raises(TimeoutError):  # nobody receives: the socket is full
        for _ in range(100000):
            a.send(dt.zeros(1), timeout=0.05)


def test_a_closed_peer_is_the_end_of_iteration():
    a, b = sharing.pair()
    for i in range(3):
        a.send(dt.full((10,), i))
    a.close()
    assert [t[0].item() for t in b] == [0, 1, 2]
    with pytest.raises(EOFError):
        b.recv()
    with pytest.raises(EOFError):
        b.send(dt.zeros(1))
    with pytest.raises(ValueError):
        a.send(dt.zeros(1))
    assert a.closed and not b.closed


def test_wrong_arguments_raise():
    with pytest.raises((TypeError, ValueError)):
        dt.Channel(object())
    with open('/dev/null') as null, pytest.raises(OSError):
        dt.Channel(null)
    a, b = sharing.pair()
    with pytest.raises(TypeError):
        a.send([1, 2])
    with pytest.raises(TypeError):
        a.send(dt.zeros(1), timeout='x')


def test_a_signal_handler_ends_a_wait():
    a, b = sharing.pair()

    def handler(*_):
        raise KeyboardInterrupt
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(KeyboardInterrupt):
            a.recv()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_other_threads_run_while_one_waits():
    a, b = sharing.pair()
    got = []
    thread = threading.Thread(target=lambda: got.append(b.recv()))
    thread.start()
    a.send(dt.ones(3))
    thread.join(10)
    assert got[0].sum().item() == 3


def test_a_listener_gives_channels_and_removes_its_path(tmp_path):
    path = tmp_path / 'socket'
    with sharing.Listener(path) as listener:
        client = sharing.connect(path)
        server = listener.accept(timeout=5)
        client.send(dt.ones(4))
        assert server.recv().sum().item() == 4
        with pytest.raises(TimeoutError):
            listener.accept(timeout=0.01)
        assert os.stat(path).st_mode & 0o777 == 0o600
    assert not path.exists()
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.bind(str(path))
    s.close()  # left behind, as by a process that was killed
    with sharing.Listener(path):
        assert sharing.connect(path)


def test_asyncio_receives_and_sends():
    async def run():
        a, b = map(sharing.AsyncChannel, sharing.pair())
        task = asyncio.create_task(b.recv())
        await asyncio.sleep(0.01)
        assert not task.done()
        await a.send(dt.ones(5))
        assert (await task).sum().item() == 5
        cancelled = asyncio.create_task(b.recv())
        await asyncio.sleep(0.01)
        cancelled.cancel()
        for i in range(100):
            await a.send(dt.full((2,), i))
        a.close()
        assert [t[0].item() async for t in b] == list(range(100))
    asyncio.run(asyncio.wait_for(run(), 20))


@pytest.mark.parametrize('method', METHODS)
def test_a_channel_goes_to_a_child(method):
    mine, theirs = sharing.pair()
    child = mp.get_context(method).Process(target=add_one_to, args=(theirs, 5))
    child.start()
    theirs.close()
    x = dt.zeros(4096)
    for i in range(5):
        mine.send(x)
        y = mine.recv(timeout=60)
        assert x[0].item() == i + 1 and y[-1].item() == i + 1
    mine.close()
    child.join(60)
    assert child.exitcode == 0


@pytest.mark.parametrize('method', METHODS)
def test_an_argument_of_a_process_is_shared(method):
    x = dt.zeros(3, 1000)
    children = [mp.get_context(method).Process(target=fill, args=(x[i], i + 1)) for i in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    if method == 'fork':  # no pickle: private memory is copied on write
        x.zero_()
        dt._C._share_memory(x)
        child = mp.get_context('fork').Process(target=fill, args=(x, 9))
        child.start()
        child.join(60)
        assert x[1, 5].item() == 9
    else:
        assert [x[i, 7].item() for i in range(3)] == [1, 2, 3]


@pytest.mark.parametrize('method', METHODS)
def test_a_tensor_through_a_queue_is_shared(method):
    ctx = mp.get_context(method)
    queue, answer = ctx.Queue(), ctx.Queue()
    child = ctx.Process(target=echo, args=(queue, answer))
    child.start()
    x = dt.ones(50, 40).t()[::2].requires_grad_()
    queue.put(x)
    assert answer.get(timeout=60) == (x.shape, x.strides, True)
    assert x.sum().item() == 2 * x.numel()
    queue.put(None)
    child.join(60)
    assert child.exitcode == 0


def test_a_result_with_history_is_refused_and_an_empty_tensor_is_not():
    from multiprocessing.reduction import ForkingPickler
    import pickle
    x = dt.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match='detach'):
        ForkingPickler.dumps(x * 2)
    y = pickle.loads(ForkingPickler.dumps(dt.zeros(0, 3, dtype=dt.int32)))
    assert y.shape == (0, 3) and y.dtype is dt.int32


def test_memory_outlives_a_child_that_is_killed():
    x = dt.zeros(10000)
    child = mp.get_context('spawn').Process(target=die, args=(x,))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL and x.sum().item() == 50000


def test_a_stream_of_tensors_leaves_no_descriptors():
    ctx = mp.get_context('spawn')
    queue, received = ctx.Queue(maxsize=4), ctx.Event()
    child = ctx.Process(target=produce, args=(queue, 40, received))
    child.start()
    assert queue.get(timeout=60)[0].item() == 0
    gc.collect()
    before = fds()
    for i in range(1, 40):
        t = queue.get(timeout=60)
        assert t[999].item() == i
    del t
    gc.collect()
    assert fds() <= before + 1
    received.set()
    child.join(60)


@pytest.mark.parametrize('method', ['spawn', 'forkserver'])
def test_a_tensor_that_was_resized_is_passed_with_its_new_memory(method):
    x = dt.zeros(2000)
    for n in (2000, 4000):
        x.resize_(n)
        child = mp.get_context(method).Process(target=fill, args=(x, n))
        child.start()
        child.join(60)
        assert child.exitcode == 0 and (x == n).all()


def test_spawn_reports_the_process_that_failed():
    dmp.spawn(fail_at, args=(None,), nprocs=1)
    with pytest.raises(RuntimeError, match='process 1 ended with exit code 3'):
        dmp.spawn(fail_at, args=(dt.ones(2),), nprocs=3)


def test_a_mapped_file_comes_as_a_mapping(tmp_path):
    path = tmp_path / 'weights.safetensors'
    dt.save_safetensors(path, {'w': dt.ones(100, 100)})
    w = dt.open_safetensors(path, map='r')['w']
    for files in [False, True]:
        a, b = sharing.pair(ring=True, files=files)
        a.send(dt.zeros(1))
        b.send(b.recv(timeout=10))
        a.recv(timeout=10)
        a.send(w)
        got = b.recv(timeout=10)
        assert got.sum().item() == 10000
        with open('/proc/self/maps') as maps:
            assert sum(str(path) in line for line in maps) == 1 + files
        if files:
            with pytest.raises(Exception, match='read-only'):
                got.fill_(0)


def test_a_version_counts_changes_by_the_receiver_unless_parameters_are_shared():
    a, b = sharing.pair()
    x = dt.zeros(4).share_memory_()
    net = dt.nn.Linear(4, 4)
    net.share_memory()
    for t, counted in [(x, 2), (net.weight, 0)]:
        before = t._version
        a.send(t.detach())
        got = b.recv(timeout=10)
        got.fill_(1)
        got.add_(1)
        assert t._version == before + counted and (t == 2).all()
    w = dt.ones(4, requires_grad=True)
    got = None
    for own in [False, True]:
        if own:
            x.count_own_writes_()
        a.send(x)
        got = b.recv(timeout=10)
        loss = (w * x).sum()
        got.fill_(3)
        if own:
            loss.backward()
        else:
            with pytest.raises(Exception, match='changed in place'):
                loss.backward()


# ---- between machines ----

def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and bool((a == b).all())


def listen_remote(**options):
    os.environ.setdefault('UCX_TLS', 'tcp')
    # The package in a build folder has a libtensor of its own, and the plugin is beside the other one.
    plugin = os.path.join(os.path.dirname(dt.__file__), '../../libtensor_ucx.so.0')
    if os.path.exists(plugin):
        os.environ.setdefault('TENSOR_UCX_PLUGIN', plugin)
    try:
        return sharing.listen('ucx://127.0.0.1:0', **options)
    except NotImplementedError as e:
        pytest.skip(str(e))


def remote_pair(**options):
    with listen_remote() as listener:
        a = sharing.connect(listener.address, timeout=10, **options)
        return a, listener.accept(timeout=10)


def echo_remote(address):
    with sharing.connect(address, timeout=20) as channel:
        for t in channel:
            channel.send(t * 2)


def test_remote_channel_to_another_process():
    with listen_remote() as listener:
        process = mp.get_context('spawn').Process(target=echo_remote, args=(listener.address,))
        process.start()
        channel = listener.accept(timeout=60)
        assert channel.is_remote and channel.socket is None
        for n in (1, 100_000):
            x = dt.arange(n, dtype=dt.float32)
            channel.send(x, timeout=20)
            assert same(channel.recv(timeout=20), x * 2)
        channel.close()
        process.join(20)
        assert process.exitcode == 0


def test_remote_messages_waits_and_ends():
    a, b = remote_pair()
    a.send_many([dt.ones(3), dt.zeros(2, 2)], tag=7)
    tensors, tag = b.recv_many(timeout=10)
    assert tag == 7 and [t.shape for t in tensors] == [(3,), (2, 2)]
    assert b.try_recv() is None
    with pytest.raises(TimeoutError):
        b.recv(timeout=0.05)
    assert a.try_send(dt.ones(3)) and not a.try_send(dt.ones(100_000))
    assert sharing.wait([b], timeout=10) is b
    b.recv(timeout=10)
    a.close()
    with pytest.raises(EOFError):
        b.recv(timeout=10)
    b.close()


def test_remote_progress():
    seen = []
    a, b = remote_pair(progress=lambda *args: seen.append(args))
    x = dt.arange(1_000_000)
    a.send(x, timeout=20)
    assert same(b.recv(timeout=20), x)
    assert seen[-1][0] is True and seen[-1][2] == 8_000_000
    assert [s[1] for s in seen] == sorted(s[1] for s in seen)
    a.close()
    b.close()

    def fail(sending, done, total):
        if done > 1 << 20:
            raise RuntimeError('enough')
    a, b = remote_pair(progress=fail)
    with pytest.raises(RuntimeError, match='enough'):
        a.send(dt.zeros(4_000_000), timeout=20)
    a.send(dt.ones(5))
    assert b.recv(timeout=10).shape == (5,)
    a.close()
    b.close()


def test_remote_signal_ends_a_send():
    with listen_remote(max_bytes=1 << 20) as listener:
        a = sharing.connect(listener.address, timeout=10)
        b = listener.accept(timeout=10)
    a.send(dt.zeros(200_000))   # fills the receiver
    signal.signal(signal.SIGALRM, lambda *args: (_ for _ in ()).throw(InterruptedError('alarm')))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(InterruptedError, match='alarm'):
            a.send(dt.zeros(200_000))
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert b.recv(timeout=10).shape == (200_000,)
    a.close()
    b.close()


def stop_remote(address):
    channel = sharing.connect(address, timeout=20)
    os.kill(os.getpid(), signal.SIGSTOP)
    channel.close()


def test_remote_release_lets_other_threads_run():
    with listen_remote(silence=0.6) as listener:
        process = mp.get_context('spawn').Process(target=stop_remote, args=(listener.address,))
        process.start()
        channel = listener.accept(timeout=20)
    time.sleep(0.1)
    turns, over = [], threading.Event()

    def run():
        while not over.wait(0.01):
            turns.append(time.monotonic())
    thread = threading.Thread(target=run)
    thread.start()
    begin = time.monotonic()
    del channel     # waits for the peer
    took = time.monotonic() - begin
    over.set()
    thread.join()
    process.kill()
    process.join()
    assert took > 0.2 and len(turns) > 5


def test_remote_in_asyncio():
    async def main():
        a, b = map(sharing.AsyncChannel, remote_pair())
        async with a, b:
            for n in (4, 500_000):
                x = dt.arange(n)
                await a.send(x)
                assert same(await b.recv(), x)
            await a.send_many([dt.ones(2)], tag=3)
            assert (await b.recv_many())[1] == 3
    asyncio.run(main())


def test_remote_errors():
    listen_remote().close()
    with pytest.raises(ValueError, match='ucx://HOST:PORT'):
        sharing.connect('tcp://x:1')
    with pytest.raises(ValueError, match='silence'):
        sharing.connect('ucx://127.0.0.1:1', silence=0)
    with pytest.raises(ValueError, match='100 ms'):
        sharing.connect('ucx://127.0.0.1:1', silence=1e-10)
    for n in -1, 1 << 70:
        with pytest.raises(OverflowError):
            sharing.connect('ucx://127.0.0.1:1', max_bytes=n)
    with listen_remote() as listener:
        address = listener.address
        with pytest.raises(TimeoutError):
            listener.accept(timeout=0.05)
    with pytest.raises(ConnectionRefusedError):
        sharing.connect(address, timeout=10)
    with pytest.raises(ValueError, match='closed'):
        listener.accept()
