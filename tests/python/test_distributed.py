# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Process groups in processes of their own: the ranks run functions of this file."""
import asyncio
import gc
import multiprocessing as mp
import os
import signal
import subprocess
import sys
import threading
import time
import traceback

import pytest

import devtensor as dt
from devtensor import distributed, nn
from devtensor.utils.data import DataLoader, TensorDataset

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.join(HERE, '..', '..', 'build')
addresses = 0


def rank_main(function, rank, size, address, results, timeout):
    try:
        with distributed.init('local', rank=rank, size=size, address=address, timeout=timeout) as group:
            results.send((True, function(group)))
    except BaseException:
        results.send((False, traceback.format_exc()))


def run(function, size=2, *, timeout=30, dead=()):
    """What a function returns on each rank. Ranks in dead end without a result."""
    global addresses
    addresses += 1
    context, ranks = mp.get_context('fork'), []
    for rank in range(size):
        ours, theirs = context.Pipe(duplex=False)
        address = f'test-{os.getpid()}-{addresses}'
        process = context.Process(target=rank_main, args=(function, rank, size, address, theirs, timeout))
        process.start()
        theirs.close()
        ranks.append((process, ours))
    found = []
    for rank, (process, pipe) in enumerate(ranks):
        try:
            assert pipe.poll(60), f'rank {rank} hangs'
            done, value = pipe.recv()
            assert done and rank not in dead, value
            found.append(value)
        except EOFError:
            assert rank in dead
        finally:
            process.join(10)
    return found


# ---- collectives ----

def collectives(group):
    r, n = group.rank, group.size
    base = dt.arange(6).reshape(2, 3)
    x = base + 10 * r
    total = base * n + 10 * sum(range(n))
    for dtype in dt.float64, dt.float32, dt.int64, dt.bfloat16:
        y = x.to(dtype).clone()
        assert distributed.all_reduce(y) is y and (y == total.to(dtype)).all()
    assert (group.all_reduce(x, 'max', out=(out := dt.empty_like(x))) == base + 10 * (n - 1)).all()
    assert (out == base + 10 * (n - 1)).all() and (x == base + 10 * r).all()
    assert (group.all_reduce(x.clone(), 'min') == base).all()
    assert (group.all_reduce(dt.full((3,), r + 1.), 'mean') == (n + 1) / 2).all()
    assert group.all_reduce(dt.tensor(r + 1), 'product').item() == [1, 2, 6, 24][n - 1]
    assert group.all_reduce(dt.tensor([r == 0])).tolist() == [True]
    strided = x.clone().T
    group.all_reduce(strided)
    assert (strided == total.T).all()

    y = x.clone()
    assert group.broadcast(y, src=n - 1) is y and (y == base + 10 * (n - 1)).all()
    found = group.reduce(x, 1, 'sum')
    assert (found == total).all() if r == 1 else found is None
    whole = dt.cat([base + 10 * i for i in range(n)])
    assert (group.all_gather(x) == whole).all() and distributed.all_gather(dt.tensor(r)).tolist() == list(range(n))
    found = group.gather(x, dst=1)
    assert (found == whole).all() if r == 1 else found is None
    part = group.scatter(whole if r == 1 else None, 1, out=None if r == 1 else dt.empty_like(x))
    assert (part == x).all()
    assert (group.reduce_scatter(whole) == n * x).all()
    assert group.all_to_all(dt.arange(n) + 100 * r).tolist() == [100 * i + r for i in range(n)]
    group.barrier()

    peer = r ^ 1
    if peer < n:
        requests = [group.send(x, peer, wait=False), group.recv(dt.empty_like(x), peer, wait=False)]
        assert requests[0].wait() is None and (requests[1].wait() == base + 10 * peer).all()
    stats = group.stats()
    assert stats['operations'] >= 17 and stats['bytes'] > 0 and stats['failed'] is None
    assert (group.rank, group.size) == (distributed.get_rank(), distributed.get_world_size())
    return group.engine


@pytest.mark.parametrize('size', [2, 3, 4])
def test_collectives(size):
    assert run(collectives, size) == ['local'] * size


def test_a_group_of_one_needs_no_launcher():
    assert distributed.get_rank() == 0 and distributed.get_world_size() == 1
    with pytest.raises(RuntimeError, match='init'):
        distributed.barrier()
    with distributed.init() as group:
        assert (group.rank, group.size) == (0, 1) and distributed.default_group() is group
        x = dt.ones(3, requires_grad=True)
        assert group.all_reduce(x * 2).tolist() == [2, 2, 2]
        other = distributed.init(rank=0, size=1, timeout=float('inf'))
        assert distributed.default_group() is group
        other.close()
        other.close()
    assert group.closed and not distributed.is_initialized()
    for call in group.barrier, group.stats, lambda: group.rank:
        with pytest.raises(ValueError, match='closed'):
            call()


# ---- requests ----

def requests(group):
    late = group.rank == 1
    if late:
        time.sleep(0.3)
    x = dt.ones(1000)
    request = group.all_reduce(x, wait=False)
    if not late:
        assert not request.done
        with pytest.raises(TimeoutError):
            request.wait(0.01)
    del x
    assert request.wait(20).sum().item() == 2000 and request.done and request.wait() is not None
    # Requests that the program drops go on, and keep their tensors.
    x = dt.ones(1000)
    for _ in range(50):
        group.all_reduce(x, 'mean', wait=False)
        group.all_reduce(dt.ones(100), wait=False)
    gc.collect()
    group.barrier()
    assert x.sum().item() == 1000

    async def main():
        one, two = await asyncio.gather(*(wait(group.all_reduce(dt.full((2,), i), wait=False)) for i in (1, 2)))
        return one.tolist() + two.tolist()

    async def wait(request):
        return await request

    assert asyncio.run(main()) == [2, 2, 4, 4]
    # One that fails raises its error each time.
    bad = group.all_reduce(dt.ones(2 + group.rank), wait=False)
    for _ in range(2):
        with pytest.raises(ValueError, match=r'f32 \[2\].*f32 \[3\]|f32 \[3\].*f32 \[2\]'):
            bad.wait()
    left = group.barrier(wait=False) if not late else None
    if late:
        time.sleep(0.2)
    group.close()
    if left is not None:
        with pytest.raises(BrokenPipeError):
            left.wait()


def test_requests():
    run(requests)


def interrupted(group):
    if group.rank:
        time.sleep(1)
        return None
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        group.all_reduce(dt.ones(3))
    return time.monotonic() - begin


def test_ctrl_c_ends_a_wait():
    assert 0.1 < run(interrupted)[0] < 0.8


def test_ctrl_c_ends_joining():
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        distributed.init('local', rank=0, size=2, address=f'test-{os.getpid()}-never', timeout=5)
    assert time.monotonic() - begin < 2


def closed_under_a_thread(group):
    if group.rank == 0:
        thread = threading.Thread(target=group.barrier)
        thread.start()
        time.sleep(0.1)
        with pytest.raises(RuntimeError, match='another thread'):
            group.close()
        group.send(dt.ones(1), 1)
        thread.join()
    else:
        group.recv(dt.empty(1), 0)
        group.barrier()


def test_close_refuses_while_a_thread_waits():
    run(closed_under_a_thread)


# ---- errors ----

def errors(group):
    r = group.rank
    with pytest.raises(ValueError, match=r'\[2\].*\[3\]|\[3\].*\[2\]'):
        group.all_reduce(dt.ones(2 + r))
    with pytest.raises(ValueError, match='f32.*i64|i64.*f32'):
        group.all_reduce(dt.ones(2) if r else dt.ones(2, dtype=dt.int64))
    with pytest.raises(ValueError):
        group.all_reduce(dt.ones(2, dtype=dt.int64), 'mean')
    for call, error in ((lambda: group.all_reduce(dt.ones(2), 'median'), ValueError),
                        (lambda: group.all_reduce([1, 2]), TypeError),
                        (lambda: group.all_gather(3), TypeError),
                        (lambda: group.broadcast(dt.ones(2), 7), ValueError),
                        (lambda: group.reduce_scatter(dt.ones(3)), ValueError),
                        (lambda: group.reduce_scatter(dt.tensor(1.)), ValueError),
                        (lambda: group.scatter(None, r), TypeError),
                        (lambda: group.scatter(None, 1 - r), TypeError),
                        (lambda: group.send(dt.ones(1), -1), ValueError),
                        (lambda: group.all_reduce(dt.ones(2), out=dt.ones(3)), ValueError)):
        with pytest.raises(error):
            call()
    assert group.all_reduce(dt.ones(2)).tolist() == [2, 2]   # the group goes on


def test_errors_are_the_same_on_all_ranks():
    run(errors)


def test_wrong_arguments_of_init():
    for options in {'rank': 0}, {'size': 2}, {'rank': 0, 'size': 0}, {'timeout': 0}, {'timeout': -1.0}:
        with pytest.raises(ValueError):
            distributed.init(**options)
    with pytest.raises(ValueError):
        distributed.init('local', rank=2, size=2, address='x')
    with pytest.raises(NotImplementedError, match='carrier pigeon'):
        distributed.init('carrier pigeon')
    with pytest.raises(TimeoutError, match='1'):
        distributed.init('local', rank=0, size=2, address=f'test-{os.getpid()}-alone', timeout=0.1)


def dies(group):
    if group.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(ConnectionResetError, match='rank 1'):
        while True:
            group.all_reduce(dt.ones(3))
    return group.stats()['failed']


def test_a_rank_that_dies_is_named():
    assert run(dies, 3, dead=[1]) == [1, 1]


def leaves(group):
    if group.rank:
        with pytest.raises(BrokenPipeError, match='rank 0'):
            group.barrier()


def test_a_rank_that_leaves_is_named():
    run(leaves)


def is_late(group):
    if group.rank:
        time.sleep(0.6)
    else:
        with pytest.raises(TimeoutError, match='rank 1'):
            group.barrier()


def test_a_rank_that_does_not_come_is_named():
    run(is_late, timeout=0.3)


# ---- training ----

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(5, 8), nn.Linear(8, 2)
        self.unused = nn.Linear(2, 2)

    def forward(self, x):
        return self.last(self.first(x).tanh())


def rows():
    x = dt.arange(24 * 5, dtype=dt.float64).reshape(24, 5).sin()
    return x, x[:, :2] * x[:, 2:4]


def steps(model, backward, optimizer, part, *, after=lambda: None, accumulate=None):
    x, target = (t[part] for t in rows())
    for _ in range(4):
        model.zero_grad()
        if accumulate is not None:
            half = len(x) // 2
            with accumulate():
                backward(nn.functional.mse_loss(model(x[:half]), target[:half]) / 2)
            backward(nn.functional.mse_loss(model(x[half:]), target[half:]) / 2)
        else:
            backward(nn.functional.mse_loss(model(x), target))
        optimizer.step()
        after()
    return [p.detach().clone() for p in model.parameters()]


def alone():
    """Parameters after the steps of one process with all rows."""
    dt.manual_seed(3)
    model = Net().double()
    return steps(model, lambda loss: loss.backward(), dt.optim.Adam(model.parameters(), lr=0.02), slice(0, 24))


def close_to(found, wanted, tolerance=1e-12):
    return all((a - b).abs().max().item() <= tolerance for a, b in zip(found, wanted, strict=True))


def trains(group, *, sharded=False, accumulate=False, **options):
    dt.manual_seed(3 + group.rank)      # rank 0's parameters are taken
    model = Net().double()
    parallel = distributed.DataParallel(model, group, **options)
    owned = parallel.owned()
    assert all(any(p is q for q in model.parameters()) for p in owned)
    optimizer = dt.optim.Adam(owned if sharded else model.parameters(), lr=0.02)
    n = 24 // group.size
    found = steps(parallel, parallel.backward, optimizer, slice(group.rank * n, (group.rank + 1) * n),
                  after=parallel.share if sharded else lambda: None,
                  accumulate=parallel.no_sync if accumulate else None)
    assert model.unused.weight.grad is None
    return [p.tolist() for p in found], len(owned)


@pytest.mark.parametrize('options', [{}, {'bucket_bytes': 1}, {'accumulate': True}, {'sharded': True}])
def test_ranks_make_the_steps_of_one_process(options):
    results = run(lambda group: trains(group, **options))
    wanted = alone()
    for found, _ in results:
        assert close_to([dt.tensor(p, dtype=dt.float64) for p in found], wanted)
    assert results[0][0] == results[1][0]
    assert sum(n for _, n in results) == len(wanted) and all(n for _, n in results)


def test_gradients_travel_in_another_dtype():
    (found, _), _ = run(lambda group: trains(group, dtype=dt.float32))
    assert close_to([dt.tensor(p, dtype=dt.float64) for p in found], alone(), 1e-5)


def has_buffers(group):
    model = nn.BatchNorm1d(3)
    with dt.no_grad():
        model.running_mean.fill_(group.rank)
    parallel = distributed.DataParallel(model)
    assert model.running_mean.tolist() == [0, 0, 0]
    parallel.backward(parallel(dt.ones(4, 3) * group.rank).sum())
    assert model.running_mean.tolist() == [0, 0, 0]
    operations = group.stats()['operations']
    with parallel.no_sync():
        parallel.backward(parallel(dt.ones(4, 3) * group.rank).sum())
    assert group.stats()['operations'] == operations
    assert abs(model.running_mean[0].item() - 0.1 * group.rank) < 1e-6
    # Attributes, and the end with the group.
    assert parallel.eval() is model and not parallel.training and parallel.num_features == 3
    assert list(parallel.state_dict()) == list(model.state_dict())
    with pytest.raises(AttributeError, match='nothing'):
        parallel.nothing
    group.barrier()
    group.close()
    model(dt.ones(4, 3)).sum().backward()
    model(dt.ones(4, 3)).sum().backward()
    for call in parallel.finish, parallel.share, parallel.owned:
        with pytest.raises(ValueError, match='closed'):
            call()
    with pytest.raises(ValueError, match='closed'):
        distributed.DataParallel(model, group)


def test_buffers_and_attributes_of_a_module():
    run(has_buffers)


def differs(group):
    for options, error in (({'bucket_bytes': -1}, ValueError), ({'dtype': dt.int64}, ValueError),
                           ({'dtype': 3}, TypeError)):
        with pytest.raises(error):
            distributed.DataParallel(nn.Linear(2, 2), group, **options)
    with pytest.raises(ValueError, match='no parameters'):
        distributed.DataParallel(nn.ReLU(), group)
    with pytest.raises(TypeError, match='Group'):
        distributed.DataParallel(nn.Linear(2, 2), 'group')
    with pytest.raises(ValueError, match=r'\[2, 3\]'):
        distributed.DataParallel(nn.Linear(3, 2 + group.rank), group)
    model = nn.Linear(2, 2)
    parallel = distributed.DataParallel(model, group)
    parallel(dt.ones(1, 2)).sum().backward()
    with pytest.raises(RuntimeError, match='second backward'):
        parallel(dt.ones(1, 2)).sum().backward()
    parallel.finish()
    del parallel        # its hooks go with it
    model(dt.ones(1, 2)).sum().backward()
    model(dt.ones(1, 2)).sum().backward()


def test_wrong_use_of_data_parallel():
    run(differs)


def dies_in_a_step(group):
    parallel = distributed.DataParallel(nn.Linear(3, 2), group)
    with pytest.raises(ConnectionResetError, match='rank 1'):
        for step in range(10 ** 6):
            if (group.rank, step) == (1, 3):
                os.kill(os.getpid(), signal.SIGKILL)
            parallel.backward(parallel(dt.ones(4, 3)).sum())


def test_a_death_ends_the_step():
    run(dies_in_a_step, 3, dead=[1])


def interrupted_step(group):
    parallel = distributed.DataParallel(nn.Linear(3, 2), group)
    if group.rank:
        time.sleep(1)
        return None
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        parallel.backward(parallel(dt.ones(4, 3)).sum())
    return time.monotonic() - begin


def test_ctrl_c_ends_a_step():
    assert 0.1 < run(interrupted_step)[0] < 0.8


def loads(group):
    data = TensorDataset(dt.arange(22))
    loader = DataLoader(data, 4, shuffle=True, rank=group.rank, size=group.size)
    seen = dt.cat([x for _ in range(2) for x, in loader])
    return group.all_gather(seen).tolist()


def test_ranks_load_parts_of_an_epoch():
    for seen in run(loads, 4):
        for epoch in range(2):
            parts = [seen[r * 12 + epoch * 6:r * 12 + epoch * 6 + 6] for r in range(4)]
            assert sorted(set(sum(parts, []))) == list(range(22))
            assert len({i for part in parts for i in part[:5]}) == 20


# ---- programs ----

def tensorrun(size, *program, **variables):
    launcher = os.path.join(BUILD, 'bin', 'tensorrun')
    if not os.path.exists(launcher):
        pytest.skip('tensorrun is not built')
    env = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(dt.__file__)), **variables)
    return subprocess.run([launcher, '-n', str(size), sys.executable, '-B', *program], env=env, text=True, timeout=60,
                          capture_output=True)


def test_a_program_is_started_by_tensorrun():
    done = tensorrun(3, '-c', 'from devtensor import *; from devtensor import distributed as d\n'
                     'with d.init() as g:\n x = g.all_gather(tensor(g.rank))\n'
                     ' if g.rank == 0: print(x.tolist(), end="")')
    assert done.returncode == 0 and done.stdout == '[0, 1, 2]', done.stderr


NCCL_PROGRAM = """
from devtensor import *
from devtensor import distributed, nn, optim

with distributed.init('nccl') as group:
    x = full([3], group.rank + 1.0, device=group.device)
    summed = group.all_reduce(x.clone())
    request = group.all_gather(x, wait=False)
    model = nn.Linear(3, 2).to(group.device)
    parallel = distributed.DataParallel(model, group)
    parallel.backward(parallel(x).sum())
    gradient = model.weight.grad[0].tolist()
    try:
        group.broadcast(x if group.rank else x.cpu())
    except ValueError as e:
        differs = 'f32 [3] on cuda' in str(e)
    if group.rank == 0:
        print(group.engine, group.device.type, summed.tolist(), request.wait().tolist(), gradient, differs)
    else:
        request.wait()
"""


def test_tensors_of_devices_go_through_nccl():
    host = os.path.join(BUILD, 'cuda-host')
    plugins = {f'TENSOR_{name.upper()}_PLUGIN': os.path.join(host, f'libtensor_{name}.so.0')
               for name in ('cuda', 'nccl')}
    if not all(map(os.path.exists, plugins.values())):
        pytest.skip('make test-cuda builds the emulation of CUDA and NCCL')
    done = tensorrun(2, '-c', NCCL_PROGRAM, **plugins)
    assert done.stdout == 'nccl cuda [3.0, 3.0, 3.0] [1.0, 1.0, 1.0, 2.0, 2.0, 2.0] [1.5, 1.5, 1.5] True\n', done.stderr


def test_the_example_trains_on_two_ranks():
    done = tensorrun(2, os.path.join(HERE, '..', '..', 'examples', 'python', 'mlp.py'), '6')
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split('\n')
    assert [line.split()[0] for line in lines[:-1]] == [str(i) for i in range(1, 7)], done.stdout
    assert float(lines[-2].split()[2]) > 0.7
