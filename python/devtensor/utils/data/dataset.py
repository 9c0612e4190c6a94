# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Data sets: functions from an index to a sample, or iterators over samples."""
import bisect
import itertools
import math

from devtensor import _C
from devtensor.utils.data import _workers

__all__ = ['Dataset', 'IterableDataset', 'TensorDataset', 'StackDataset', 'ConcatDataset', 'ChainDataset', 'Subset',
           'random_split']


class Dataset:
    """dataset[i] is sample i; len(dataset) their number. __getitems__(indices), if defined, returns a list of
    samples."""

    def __getitem__(self, index):
        raise NotImplementedError(f'{type(self).__name__} has no __getitem__()')

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """A data set whose samples come in their own order: __iter__() returns an iterator."""

    def __iter__(self):
        raise NotImplementedError(f'{type(self).__name__} has no __iter__()')

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """The rows of tensors of the same length."""

    def __init__(self, *tensors):
        if not tensors or any(t.ndim == 0 or t.shape[0] != tensors[0].shape[0] for t in tensors):
            raise ValueError('TensorDataset: needs tensors with the same number of rows, got the shapes '
                             f'{[tuple(t.shape) for t in tensors]}')
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(t[index] for t in self.tensors)

    def __len__(self):
        return self.tensors[0].shape[0]

    def take_batch(self, indices):
        """The rows of all indices, in one new tensor for each of the data set's: DataLoader needs no collation then."""
        n = len(self)
        if any(not -n <= i < n for i in indices):
            raise IndexError(f'an index is out of range for {n} rows')
        rows = _C.tensor([i % n for i in indices], dtype=_C.int64)
        if _workers.worker_info() is None or any(t.requires_grad for t in self.tensors):
            return [t.index_select(0, rows) for t in self.tensors]
        return [_C.index_select(t, 0, rows, out=_workers.batch_buffer((len(indices), *t.shape[1:]), t.dtype))
                for t in self.tensors]


class StackDataset(Dataset):
    """Samples of several data sets side by side: tuples, or dicts of the keyword arguments."""

    def __init__(self, *args, **kwargs):
        if bool(args) == bool(kwargs):
            raise ValueError('StackDataset: either positional or keyword arguments')
        self.datasets = args or kwargs
        lengths = {len(d) for d in (args or kwargs.values())}
        if len(lengths) != 1:
            raise ValueError(f'StackDataset: data sets of different lengths {sorted(lengths)}')
        self._length = lengths.pop()

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {name: d[index] for name, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __len__(self):
        return self._length


class ConcatDataset(Dataset):
    """The samples of several data sets, one after the other."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets or any(isinstance(d, IterableDataset) for d in self.datasets):
            raise ValueError('ConcatDataset: needs data sets that have indices')
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        if not -len(self) <= index < len(self):
            raise IndexError(f'index {index} of {len(self)} samples')
        index %= len(self)
        i = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[i][index - (self.cumulative_sizes[i - 1] if i else 0)]


class ChainDataset(IterableDataset):
    """The samples of several iterable data sets, one after the other."""

    def __init__(self, datasets):
        self.datasets = list(datasets)

    def __iter__(self):
        return itertools.chain.from_iterable(self.datasets)

    def __len__(self):
        return sum(len(d) for d in self.datasets)


class Subset(Dataset):
    """The samples of a data set at these indices."""

    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, indices
        if isinstance(dataset, TensorDataset):
            self.take_batch = lambda indices: dataset.take_batch([int(self.indices[i]) for i in indices])

    def __getitem__(self, index):
        return self.dataset[self.indices[index]]

    def __len__(self):
        return len(self.indices)

    def __getstate__(self):
        return {'dataset': self.dataset, 'indices': self.indices}

    def __setstate__(self, state):
        self.__init__(**state)


def random_split(dataset, lengths, generator=None):
    """Subsets of these lengths, or of these parts that sum to 1, in a random order."""
    lengths, n = list(lengths), len(dataset)
    if all(isinstance(part, float) for part in lengths) and math.isclose(sum(lengths), 1):
        parts = [math.floor(n * part) for part in lengths]
        for i in range(n - sum(parts)):
            parts[i % len(parts)] += 1
        lengths = parts
    if any(not isinstance(length, int) or length < 0 for length in lengths) or sum(lengths) != n:
        raise ValueError(f'random_split: the lengths {lengths} do not sum to {n}')
    order = ints(_C.randperm(n, generator=generator))
    ends = list(itertools.accumulate(lengths))
    return [Subset(dataset, order[end - length:end]) for length, end in zip(lengths, ends)]


def ints(t):
    """The elements of a tensor of int64 as a list."""
    return t.tolist()
