# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Data loaders with worker processes."""
import functools
import os
import random
import signal
import time

import pytest

import devtensor as dt
from devtensor.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info

CONTEXTS = ['fork', 'spawn', 'forkserver']


class Squares(Dataset):
    def __init__(self, n=23, wait=0):
        self.n, self.wait = n, wait

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        time.sleep(self.wait * (i % 3))
        return {'x': dt.full((100,), i * i), 'i': i, 'name': str(i), 'pair': (dt.ones(2), float(i))}


class Noise(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        return dt.rand(3), random.random()


class Failing(Squares):
    def __getitem__(self, i):
        if i == 5:
            raise KeyError('five')
        return i


class Dying(Squares):
    def __getitem__(self, i):
        if i == 9:
            os.kill(os.getpid(), signal.SIGKILL)
        return i


class Sleeping(Squares):
    def __getitem__(self, i):
        time.sleep(30)


class Ending(Squares):
    def __getitem__(self, i):
        raise EOFError('the file is too short')


class Stubborn(Squares):
    def __getitem__(self, i):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(30 * (i > 3))
        return i


class Sharded(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        return iter(range(info.id if info else 0, 20, info.num_workers if info else 1))


def fails(worker):
    raise ValueError(f'no start of {worker}')


def rows(loader):
    return [(b['i'].tolist(), b['x'].sum().item(), b['name'], b['pair'][1].tolist()) for b in loader]


@pytest.mark.parametrize('context', CONTEXTS)
def test_batches_are_those_without_workers_in_order(context):
    data = Squares(wait=0.002)
    want = rows(DataLoader(data, batch_size=4))
    assert rows(DataLoader(data, batch_size=4, num_workers=3, multiprocessing_context=context)) == want


def is_shared(t):
    """Whether the memory of t is mapped by other processes, too."""
    with open('/proc/self/maps') as maps:
        for line in maps:
            where, rights = line.split()[:2]
            begin, end = (int(x, 16) for x in where.split('-'))
            if begin <= t.data_ptr() < end:
                return rights.endswith('s')


def test_batches_are_in_shared_buffers():
    for batch in DataLoader(Squares(), batch_size=4, num_workers=2):
        assert is_shared(batch['x']) and is_shared(batch['i']) and not is_shared(dt.ones(3))
        batch['x'].add_(1)  # writable


def test_random_numbers_do_not_depend_on_the_number_of_workers():
    def numbers(workers):
        loader = DataLoader(Noise(), batch_size=2, num_workers=workers, generator=dt.Generator().manual_seed(5))
        return [(x.tolist(), r.tolist()) for x, r in loader]
    assert numbers(1) == numbers(2) == numbers(3)
    flat = [v for x, _ in numbers(2) for row in x for v in row]
    assert len(set(flat)) == len(flat)


@pytest.mark.parametrize('persistent', [False, True])
def test_epochs_follow_each_other_and_leave_nothing(persistent):
    loader = DataLoader(Squares(), batch_size=4, num_workers=2, persistent_workers=persistent, shuffle=True,
                        generator=dt.Generator().manual_seed(1))
    before = len(os.listdir('/proc/self/fd'))
    for _ in range(3):
        assert sorted(i for b in loader for i in b['i'].tolist()) == list(range(23))
    if not persistent:
        assert len(os.listdir('/proc/self/fd')) <= before + 2
    it = iter(loader)
    next(it)
    del it  # an epoch that is not finished
    assert len(rows(loader)) == 6


def test_a_loader_continues_after_a_saved_state():
    def make():
        return DataLoader(Squares(), batch_size=4, num_workers=2, shuffle=True, generator=dt.Generator().manual_seed(3))
    whole = rows(make())
    first = make()
    it = iter(first)
    begin = [next(it) for _ in range(2)]
    second = make()
    second.load_state_dict(first.state_dict())
    assert [b['i'].tolist() for b in begin] + [r[0] for r in rows(second)] == [r[0] for r in whole]


def test_an_iterable_data_set_is_divided_by_its_workers():
    loader = DataLoader(Sharded(), batch_size=3, num_workers=3, persistent_workers=True)
    for _ in range(2):
        assert sorted(i for b in loader for i in b.tolist()) == list(range(20))


def test_an_exception_of_a_worker_is_raised_with_its_traceback():
    loader = DataLoader(Failing(), batch_size=2, num_workers=2)
    with pytest.raises(KeyError, match='worker 0'):
        list(loader)
    with pytest.raises(ValueError, match='no start of'):
        list(DataLoader(Squares(), num_workers=2, worker_init_fn=fails))


def test_a_killed_worker_is_reported():
    start = time.monotonic()
    with pytest.raises(RuntimeError, match='killed by SIGKILL'):
        list(DataLoader(Dying(), batch_size=2, num_workers=2))
    assert time.monotonic() - start < 20


def test_a_wait_ends_at_its_timeout():
    with pytest.raises(RuntimeError, match='within 0.2 seconds'):
        list(DataLoader(Sleeping(), num_workers=1, timeout=0.2))


def seconds_to_end(context):
    it = iter(DataLoader(Squares(), batch_size=4, num_workers=2, multiprocessing_context=context))
    for _ in it:
        start = time.monotonic()
    return time.monotonic() - start


@pytest.mark.parametrize('context', CONTEXTS)
def test_workers_end_when_the_loader_closes_their_pipes(context):
    # A join() that times out takes 1 s for each worker, every time. A busy machine may delay one exit as long.
    assert any(seconds_to_end(context) < 1.0 for _ in range(4))


def test_an_end_of_file_in_a_data_set_is_raised_with_its_traceback():
    with pytest.raises(EOFError, match='the file is too short'):
        list(DataLoader(Ending(), num_workers=1))


def test_a_worker_that_ignores_sigterm_is_killed():
    it = iter(DataLoader(Stubborn(), num_workers=1))
    next(it)
    start = time.monotonic()
    it.close()
    assert time.monotonic() - start < 20


def leave_descriptors(free, number):
    """A worker that can open as many files from here on."""
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    used = []
    try:
        while True:
            used.append(os.dup(2))
    except OSError:
        pass
    for fd in used[len(used) - free:]:
        os.close(fd)


@pytest.mark.parametrize('workers', [1, 2])
@pytest.mark.parametrize('free', [0, 1])     # a buffer needs one, its transfer another
def test_a_worker_at_the_limit_of_descriptors_reports_the_error(free, workers):
    class Large(Dataset):
        def __len__(self):
            return 50

        def __getitem__(self, i):
            return dt.ones(100000)
    with pytest.raises(OSError, match='Errno 24'):
        limit = functools.partial(leave_descriptors, free)
        for _ in DataLoader(Large(), batch_size=2, num_workers=workers, worker_init_fn=limit):
            pass


class Images(Dataset):
    """Sample i is i everywhere."""

    def __len__(self):
        return 200

    def __getitem__(self, i):
        return dt.full((40, 40), float(i)), i


def buffers():
    """The buffers that this process has mapped."""
    with open('/proc/self/maps') as maps:
        return {line.split()[4] for line in maps if 'memfd:tensor ' in line or '/dev/tensor' in line}


@pytest.mark.parametrize('rows', [False, True])
def test_batches_use_the_same_buffers_again(rows):
    data = TensorDataset(dt.arange(200.0).reshape(200, 1, 1).expand(200, 9, 9), dt.arange(200)) if rows else Images()
    before, seen = buffers(), set()
    for images, labels in DataLoader(data, batch_size=4, num_workers=2, prefetch_factor=2):
        assert images[:, 0, 0].tolist() == labels.tolist()
        seen |= buffers() - before
        del images, labels
    # 50 batches of two tensors: first one without a pool, then at most prefetch_factor + 2 of each worker and shape.
    assert len(seen) <= 2 * 2 * (1 + 4)


@pytest.mark.parametrize('context', CONTEXTS)
def test_a_batch_that_is_held_is_not_overwritten(context):
    loader = DataLoader(Images(), batch_size=4, num_workers=2, multiprocessing_context=context)
    held = list(loader)
    views = [images[1:3] for images, _ in held[::7]]
    loader = DataLoader(Images(), batch_size=4, num_workers=2, multiprocessing_context=context, persistent_workers=True)
    for epoch in range(2):
        kept = []
        for n, (images, labels) in enumerate(loader):
            assert (images == labels.reshape(-1, 1, 1)).all()
            if n % 5 == epoch:
                kept.append((images[2], labels[2].item()))
        assert all((image == label).all() for image, label in kept)
    for n, (images, labels) in enumerate(held):
        assert labels.tolist() == list(range(4 * n, 4 * n + 4)) and images[:, 3, 3].tolist() == labels.tolist()
    assert all((v[0] == float(4 * 7 * i + 1)).all() for i, v in enumerate(views))
