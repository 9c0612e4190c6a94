# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Data sets, samplers, loaders."""
from collections import namedtuple

import pytest

import devtensor as dt
from devtensor.utils import data
from devtensor.utils.data import DataLoader


class Squares(data.Dataset):
    def __init__(self, n):
        self.n, self.read = n, []

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if not 0 <= i < self.n:
            raise IndexError(i)
        self.read.append(i)
        return i, dt.tensor(float(i * i))


class Stream(data.IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))

    def __len__(self):
        return self.n


def firsts(loader):
    return [batch[0].tolist() for batch in loader]


def seeded(n=7):
    return dt.Generator().manual_seed(n)


# ---- data sets ----

def test_rows_of_tensors_are_samples():
    d = data.TensorDataset(dt.arange(6).reshape(3, 2), dt.tensor([5, 6, 7]))
    assert len(d) == 3 and [t.tolist() for t in d[-1]] == [[4, 5], 7]
    assert [t.tolist() for t in d.take_batch([2, 0])] == [[[4, 5], [0, 1]], [7, 5]]
    with pytest.raises(IndexError):
        d.take_batch([3])
    with pytest.raises(ValueError):
        data.TensorDataset(dt.ones([2]), dt.ones([3]))


def test_data_sets_are_joined_split_and_stacked():
    both = Squares(2) + Squares(3)
    assert len(both) == 5 and [both[i][0] for i in range(5)] == [0, 1, 0, 1, 2] and both[-1][0] == 2
    with pytest.raises(IndexError):
        both[5]
    a, b = data.random_split(Squares(10), [0.75, 0.25], generator=seeded())
    assert len(a) == 8 and len(b) == 2 and sorted([x[0] for x in a] + [x[0] for x in b]) == list(range(10))
    assert [x[0] for x in data.random_split(Squares(10), [8, 2], generator=seeded())[0]] == [x[0] for x in a]
    with pytest.raises(ValueError):
        data.random_split(Squares(10), [5, 4])
    assert data.StackDataset(a=Squares(2), b=[7, 8])[1]['b'] == 8
    assert list(data.ChainDataset([Stream(2), Stream(1)])) == [0, 1, 0]
    subset = data.Subset(data.TensorDataset(dt.arange(5)), [4, 1])
    assert [b[0].tolist() for b in DataLoader(subset, 2)] == [[4, 1]]


# ---- samplers ----

def test_random_samplers_give_each_index_once():
    assert sorted(data.RandomSampler(range(9), generator=seeded())) == list(range(9))
    assert sorted(data.SubsetRandomSampler([3, 5, 8])) == [3, 5, 8]
    assert len(list(data.RandomSampler(range(3), num_samples=7))) == 7
    drawn = list(data.RandomSampler(range(3), replacement=True, num_samples=100))
    assert len(drawn) == 100 and set(drawn) == {0, 1, 2}
    weighted = list(data.WeightedRandomSampler([0, 1, 3], 400, generator=seeded()))
    assert 0 not in weighted and 240 < weighted.count(2) < 360
    assert list(data.BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(data.BatchSampler(range(5), 2, True)) == [
                [0, 1], [2, 3]] and len(data.BatchSampler(range(5), 2, True)) == 2


def test_orders_repeat_with_the_seed_and_differ_by_epoch():
    loader = DataLoader(range(50), batch_size=50, shuffle=True, generator=seeded())
    one, two = [b.tolist() for b in loader], [b.tolist() for b in loader]
    assert one != two and one == [b.tolist() for b in DataLoader(range(50), 50, shuffle=True, generator=seeded())]
    dt.manual_seed(4)
    a = [b.tolist() for b in DataLoader(range(50), 50, shuffle=True)]
    dt.manual_seed(4)
    assert a == [b.tolist() for b in DataLoader(range(50), 50, shuffle=True)]


# ---- batches ----

def test_batches_are_stacked_in_one_buffer():
    batches = list(DataLoader(Squares(5), batch_size=2))
    assert [b[0].tolist() for b in batches] == [[0, 1], [2, 3], [4]] and batches[1][1].tolist() == [4, 9]
    assert batches[0][1].is_contiguous() and isinstance(batches[0], tuple) is isinstance(Squares(1)[0], tuple)
    assert len(DataLoader(Squares(5), 2)) == 3 and len(DataLoader(Squares(5), 2, drop_last=True)) == 2
    assert firsts(DataLoader(Squares(5), 2, drop_last=True)) == [[0, 1], [2, 3]]


def test_samples_of_any_structure_are_collated():
    Point = namedtuple('Point', 'x y')
    sample = {'a': 1, 'b': (2.5, 'text'), 'c': Point(dt.ones([2]), [True]), 'd': b'x'}
    batch = data.default_collate([sample, sample])
    assert batch['a'].tolist() == [1, 1] and batch['b'][0].dtype is dt.float64 and batch['b'][1] == ['text', 'text']
    assert batch['c'].x.shape == (2, 2) and batch['c'].y[0].dtype is dt.bool and batch['d'] == [b'x', b'x']
    numpy = pytest.importorskip('numpy')
    assert data.default_collate([numpy.ones((2, 3)), numpy.zeros((2, 3))]).shape == (2, 2, 3)
    for bad, error in ([[object()], TypeError], [[[1], [1, 2]], RuntimeError], [
                       [], ValueError], [[dt.ones([1]), dt.ones([2])], ValueError]):
        with pytest.raises(error):
            data.default_collate(bad)


def test_loaders_take_functions_samplers_and_lists_of_samples():
    assert list(DataLoader(range(4), 2, collate_fn=tuple)) == [(0, 1), (2, 3)]
    assert [b.tolist() for b in DataLoader(range(4), 2, sampler=[3, 1, 0])] == [[3, 1], [0]]
    assert [b.tolist() for b in DataLoader(range(4), batch_sampler=[[1], [3, 2]])] == [[1], [3, 2]]
    assert list(DataLoader(range(3), batch_size=None)) == [0, 1, 2]

    class Batches(Squares):
        def __getitems__(self, indices):
            return [(-i, i) for i in indices]
    assert firsts(DataLoader(Batches(3), 2)) == [[0, -1], [-2]]


def test_streams_are_batched():
    assert [b.tolist() for b in DataLoader(Stream(5), 2)] == [
                     [0, 1], [2, 3], [4]] and len(DataLoader(Stream(5), 2)) == 3
    assert [b.tolist() for b in DataLoader(Stream(5), 2, drop_last=True)] == [[0, 1], [2, 3]]
    assert list(DataLoader(Stream(2), batch_size=None)) == [0, 1]


def test_an_exception_of_the_data_set_reaches_the_caller():
    class Broken(Squares):
        def __getitem__(self, i):
            raise KeyError(i)
    with pytest.raises(KeyError):
        list(DataLoader(Broken(2)))


@pytest.mark.parametrize('options', [
    {'batch_size': 0}, {'batch_size': 1.5}, {'shuffle': True,
        'sampler': [0]}, {'batch_size': 2, 'batch_sampler': [[0]]},
    {'num_workers': -1}, {'timeout': 5}, {'prefetch_factor': 2}, {'batch_size': None, 'drop_last': True}])
def test_wrong_options_are_refused(options):
    with pytest.raises(ValueError):
        DataLoader(range(3), **options)


def test_streams_have_no_other_order():
    with pytest.raises(ValueError):
        DataLoader(Stream(3), shuffle=True)
    assert data.get_worker_info() is None


# ---- state ----

@pytest.mark.parametrize('make', [
    lambda: DataLoader(
    Squares(11), 3, shuffle=True, generator=seeded()), lambda: DataLoader(
        Squares(11), 3), lambda: DataLoader(
            Stream(11), 3),
    lambda: DataLoader(Squares(11), 3, sampler=data.SubsetRandomSampler(range(11), generator=seeded(3)))])
@pytest.mark.parametrize('taken', [0, 2, 4, 5])
def test_a_loaded_state_continues_with_the_next_batch(make, taken):
    def endless(loader):
        while True:
            for batch in loader:
                yield batch[0].tolist()

    def take(loader, n):
        source = endless(loader)
        return [next(source) for _ in range(n)]
    whole, first, second = take(make(), 12), make(), make()
    dt.Generator().seed()
    assert take(first, taken) == whole[:taken]
    second.load_state_dict(first.state_dict())
    assert second.state_dict() == first.state_dict()
    assert take(second, 12 - taken) == whole[taken:]


def test_batches_before_the_state_are_not_read_again():
    loader = DataLoader(Squares(8), 2)
    source = iter(loader)
    next(source), next(source)
    other = DataLoader(Squares(8), 2)
    other.load_state_dict(loader.state_dict())
    assert firsts(other) == [[4, 5], [6, 7]] and other.dataset.read == [4, 5, 6, 7]
    assert firsts(other)[0] == [0, 1]
    with pytest.raises(ValueError):
        other.load_state_dict({'epoch': -1, 'position': 0, 'samplers': []})
    for state in {}, None, {'epoch': 0, 'position': 0}:
        with pytest.raises((TypeError, ValueError)):
            other.load_state_dict(state)


# ---- shards ----

def epochs(loader, n=2):
    return [[int(i) for batch in loader for i in batch] for _ in range(n)]


@pytest.mark.parametrize('n,size', [(20, 4), (22, 4), (3, 8), (7, 1)])
def test_ranks_get_disjoint_parts_of_the_same_order(n, size):
    whole = epochs(DataLoader(range(n), 5, shuffle=True, generator=dt.Generator().manual_seed(0)))
    parts = [epochs(DataLoader(range(n), 5, shuffle=True, rank=r, size=size)) for r in range(size)]
    each = -(-n // size)
    assert whole[0] != whole[1] or n < 4
    for epoch in range(2):
        order = (whole[epoch] * size)[:each * size]
        assert [part[epoch] for part in parts] == [order[r::size] for r in range(size)]
    loaders = [DataLoader(range(n), 5, rank=r, size=size, drop_last=True) for r in range(size)]
    kept = n // size // 5 * 5
    assert [epochs(loader, 1)[0] for loader in loaders] == [list(range(r, n, size))[:kept] for r in range(size)]
    assert len(loaders[0]) == kept // 5


def test_a_sharded_loader_continues():
    def new():
        return DataLoader(range(30), 4, shuffle=True, rank=1, size=2, generator=seeded())
    loader = new()
    list(loader)
    batches = iter(loader)
    next(batches)
    other = new()
    other.load_state_dict(loader.state_dict())
    assert [b.tolist() for b in batches] == [b.tolist() for b in other]


@pytest.mark.parametrize('options', [
    {'rank': 2, 'size': 2}, {'rank': -1, 'size': 2}, {'rank': 0, 'size': 0}, {'rank': 0}, {'size': 2},
    {'rank': 0, 'size': 2, 'batch_sampler': [[0]]}, {'rank': 0, 'size': 2, 'sampler': [0], 'shuffle': True}])
def test_wrong_shards_are_refused(options):
    with pytest.raises(ValueError, match='rank'):
        DataLoader(range(4), **options)
    with pytest.raises(ValueError, match='rank'):
        DataLoader(Stream(4), rank=0, size=1)
