# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Orders of samples: iterables of indices. generator: where random numbers come from; None is the default generator."""
from devtensor import _C
from devtensor.nn._state import entries
from devtensor.utils.data.dataset import ints

__all__ = [
    'Sampler',
    'SequentialSampler',
    'RandomSampler',
    'SubsetRandomSampler',
    'WeightedRandomSampler',
    'BatchSampler',
    'ShardSampler']


class Sampler:
    """An iterable of indices, or of lists of them for batch_sampler."""

    def __init__(self, data_source=None):
        pass

    def __iter__(self):
        raise NotImplementedError(f'{type(self).__name__} has no __iter__()')


class _RandomOrder(Sampler):
    """Draws from the generator, or from one of its own whose seed comes from the default generator. Its state at the
    beginning of an epoch gives the order again."""

    def __init__(self, generator):
        self.generator = new_generator() if generator is None else generator

    def state_dict(self):
        return {'generator': self.generator.get_state()}

    def load_state_dict(self, state_dict):
        self.generator.set_state(tuple(*entries(state_dict, ['generator'], 'Sampler')))


def new_generator():
    """A generator with a seed from the default generator."""
    return _C.Generator().manual_seed(int(_C.randint(2 ** 62, [], dtype=_C.int64).item()))


class SequentialSampler(Sampler):
    """0, 1, 2, ..."""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(_RandomOrder):
    """All indices in a random order, or with replacement num_samples random ones."""

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        if num_samples is not None and (not isinstance(num_samples, int) or num_samples <= 0):
            raise ValueError(f'RandomSampler: num_samples is a positive int, got {num_samples!r}')
        super().__init__(generator)
        self.data_source, self.replacement, self._num_samples = data_source, replacement, num_samples

    @property
    def num_samples(self):
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        n, left = len(self.data_source), self.num_samples
        while left > 0 and n > 0:
            if self.replacement:
                order = ints(_C.randint(n, [min(left, 65536)], dtype=_C.int64, generator=self.generator))
            else:
                order = ints(_C.randperm(n, generator=self.generator))[:left]
            yield from order
            left -= len(order)

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(_RandomOrder):
    """These indices in a random order."""

    def __init__(self, indices, generator=None):
        super().__init__(generator)
        self.indices = list(indices)

    def __iter__(self):
        return (self.indices[i] for i in ints(_C.randperm(len(self.indices), generator=self.generator)))

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(_RandomOrder):
    """num_samples random indices with probabilities in proportion to the weights."""

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        if not isinstance(num_samples, int) or num_samples <= 0:
            raise ValueError(f'WeightedRandomSampler: num_samples is a positive int, got {num_samples!r}')
        self.weights = _C.tensor(weights, dtype=_C.float64)
        if self.weights.ndim != 1:
            raise ValueError(
                f'WeightedRandomSampler: the weights are a list, got the shape {tuple(self.weights.shape)}')
        super().__init__(generator)
        self.num_samples, self.replacement = num_samples, replacement

    def __iter__(self):
        return iter(ints(_C.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)))

    def __len__(self):
        return self.num_samples


class ShardSampler(Sampler):
    """Every size-th index of another sampler, from number rank on: the part of one rank. All ranks need the same order
    of that sampler. The parts have one length: the order goes on at its beginning for it, or with drop_last leaves out
    its rest."""

    def __init__(self, sampler, rank, size, drop_last=False):
        if not isinstance(size, int) or size < 1 or not isinstance(rank, int) or not 0 <= rank < size:
            raise ValueError(f'rank is 0 to size - 1, got rank {rank!r} and size {size!r}')
        self.sampler, self.rank, self.size, self.drop_last = sampler, rank, size, bool(drop_last)

    def __iter__(self):
        order = list(self.sampler)
        return (order[i % len(order)] for i in range(self.rank, self._count(len(order)) * self.size, self.size))

    def _count(self, n):
        return n // self.size if self.drop_last else -(-n // self.size)

    def state_dict(self):
        """That of the sampler, if it has one."""
        return self.sampler.state_dict() if hasattr(self.sampler, 'state_dict') else {}

    def load_state_dict(self, state_dict):
        if hasattr(self.sampler, 'load_state_dict'):
            self.sampler.load_state_dict(state_dict)

    def __len__(self):
        return self._count(len(self.sampler))


class BatchSampler(Sampler):
    """Lists of batch_size indices of another sampler; drop_last: without a shorter last one."""

    def __init__(self, sampler, batch_size, drop_last):
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f'batch_size is a positive int, got {batch_size!r}')
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, bool(drop_last)

    def __iter__(self):
        batch = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def state_dict(self):
        """That of the sampler, if it has one."""
        return self.sampler.state_dict() if hasattr(self.sampler, 'state_dict') else {}

    def load_state_dict(self, state_dict):
        if hasattr(self.sampler, 'load_state_dict'):
            self.sampler.load_state_dict(state_dict)

    def __len__(self):
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
