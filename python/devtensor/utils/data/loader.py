# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Batches of a data set."""
import itertools

from devtensor import _C
from devtensor.nn._state import entries
from devtensor.utils.data import _workers
from devtensor.utils.data.collate import default_collate, default_convert
from devtensor.utils.data.dataset import IterableDataset
from devtensor.utils.data.sampler import (BatchSampler, RandomSampler, SequentialSampler, ShardSampler,
                                          new_generator)

__all__ = ['DataLoader', 'get_worker_info']


def get_worker_info():
    """None in a process that is no worker of a DataLoader."""
    return _workers.worker_info()


class DataLoader:
    """An iterable of batches; each iteration is an epoch.

    The state of the sampler at the beginning of the epoch is part of state_dict(): a loader that loads it continues
    with the batch after those that were returned, in the same order. The sampler is iterated again from its start for
    that: one of the program that has no state_dict() and load_state_dict() must give the same order each time. An
    IterableDataset is read again, too.

    rank and size, those of a process group: each rank gets another part of every epoch, of one length on all ranks (see
    ShardSampler). Without a generator the shuffled order is that of the seed 0; one that is given must have the same
    seed on all ranks, as an own sampler must have the same order.
    """

    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0,
                 collate_fn=None,
                 pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None, multiprocessing_context=None,
                 generator=None, *,
                 prefetch_factor=None, persistent_workers=False, pin_memory_device='', in_order=True, rank=None,
                 size=None):
        if not isinstance(num_workers, int) or num_workers < 0:
            raise ValueError(f'DataLoader: num_workers is at least 0, got {num_workers!r}')
        if timeout < 0 or (timeout and not num_workers):
            raise ValueError('DataLoader: timeout is at least 0, and needs workers')
        if num_workers == 0 and (prefetch_factor is not None or persistent_workers):
            raise ValueError('DataLoader: prefetch_factor and persistent_workers need workers')
        self.dataset, self.num_workers = dataset, num_workers
        self.timeout, self.worker_init_fn = timeout, worker_init_fn
        self.prefetch_factor, self.persistent_workers = prefetch_factor, persistent_workers
        self.pin_memory, self.multiprocessing_context, self.in_order = pin_memory, multiprocessing_context, in_order
        self.drop_last, self._iterable = drop_last, isinstance(dataset, IterableDataset)
        self.generator = new_generator() if generator is None else generator
        self._rank = rank or 0
        if rank is not None or size is not None:
            sampler = self._shard(bool(shuffle), sampler, batch_sampler, rank, size, generator)
            shuffle = False
        self._choose_order(batch_size, bool(shuffle), sampler, batch_sampler)
        self.collate_fn = collate_fn or (
    default_convert if self.batch_size is None and self.batch_sampler is None else default_collate)
        self._own_collate = collate_fn is None
        self._epoch, self._position, self._begin, self._resume = 0, 0, None, None

    def _shard(self, shuffle, sampler, batch_sampler, rank, size, generator):
        """The sampler of a rank."""
        if rank is None or size is None or self._iterable or batch_sampler is not None or (
                shuffle and sampler is not None):
            raise ValueError('DataLoader: rank and size go together, with a data set of a length, and without '
                             'batch_sampler; either sampler or shuffle')
        if sampler is None and shuffle:
            sampler = RandomSampler(self.dataset, generator=generator or _C.Generator().manual_seed(0))
        elif sampler is None:
            sampler = SequentialSampler(self.dataset)
        return ShardSampler(sampler, rank, size, self.drop_last)

    def _choose_order(self, batch_size, shuffle, sampler, batch_sampler):
        if self._iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError('DataLoader: an IterableDataset has its own order: no shuffle, sampler or batch_sampler')
        if sampler is not None and shuffle:
            raise ValueError('DataLoader: either sampler or shuffle')
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or self.drop_last):
            raise ValueError('DataLoader: batch_sampler excludes batch_size, shuffle, sampler and drop_last')
        if batch_size is None and self.drop_last:
            raise ValueError('DataLoader: batch_size=None excludes drop_last')
        if batch_size is not None and batch_sampler is None and (
                not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0):
            raise ValueError(f'DataLoader: batch_size is a positive int or None, got {batch_size!r}')
        if sampler is None and not self._iterable and batch_sampler is None:
            sampler = RandomSampler(
    self.dataset,
    generator=self.generator) if shuffle else SequentialSampler(
        self.dataset)
        if batch_sampler is None and batch_size is not None and not self._iterable:
            batch_sampler = BatchSampler(sampler, batch_size, self.drop_last)
            self.batch_size = batch_size
        else:
            self.batch_size = None if batch_sampler is not None else batch_size
        self.sampler, self.batch_sampler = sampler, batch_sampler

    # ---- order ----

    def _index_lists(self):
        """The samples of each batch: a list of indices, an index without batches, or a number of samples."""
        if self._iterable:
            return itertools.repeat(1 if self.batch_size is None else self.batch_size)
        return iter(self.sampler if self.batch_sampler is None else self.batch_sampler)

    def _samplers(self):
        return [s for s in (self.batch_sampler or self.sampler,) if hasattr(s, 'load_state_dict')]

    def _begin_epoch(self):
        """The lists of an epoch, without those that were returned before the state was saved."""
        skip, self._resume = self._resume, None
        if skip is not None:
            for sampler, state in zip(self._samplers(), skip['samplers']):
                sampler.load_state_dict(state)
        self._begin = {'samplers': [s.state_dict() for s in self._samplers()]}
        self._position = skip['position'] if skip is not None else 0
        return self._index_lists(), self._position

    # ---- batches ----

    def _fetch(self, indices):
        if self.batch_sampler is None:
            return self.collate_fn(self.dataset[indices])
        if self._own_collate and hasattr(self.dataset, 'take_batch'):
            return self.dataset.take_batch(indices)
        if hasattr(self.dataset, '__getitems__'):
            return self.collate_fn(self.dataset.__getitems__(indices))
        return self.collate_fn([self.dataset[i] for i in indices])

    def _fetch_stream(self, skip):
        """Batches of an iterable data set."""
        samples, size = iter(self.dataset), self.batch_size
        for _ in itertools.islice(samples, skip * (size or 1)):
            pass
        while True:
            batch = list(itertools.islice(samples, size or 1))
            if not batch or (size and len(batch) < size and self.drop_last):
                return
            yield self.collate_fn(batch if size else batch[0])

    def __iter__(self):
        lists, skip = self._begin_epoch()
        if self.num_workers:
            source = _workers.batches(self, itertools.islice(lists, skip, None))
        elif self._iterable:
            source = self._fetch_stream(skip)
        else:
            source = (self._fetch(indices) for indices in itertools.islice(lists, skip, None))
        return self._count(source)

    def _count(self, source):
        begin = self._begin
        for batch in source:
            if self._begin is begin:
                self._position += 1
            yield batch
        if self._begin is begin:
            self._epoch, self._position, self._begin = self._epoch + 1, 0, None

    def __len__(self):
        """The number of batches of an epoch; TypeError if the data set has no length."""
        if not self._iterable:
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)
        n, size = len(self.dataset), self.batch_size or 1
        return n // size if self.drop_last else -(-n // size)

    # ---- state ----

    def state_dict(self):
        """The state after the last batch that was returned: numbers, lists and tuples, and those of the samplers."""
        if self._resume is not None:
            return dict(self._resume)
        begin = self._begin or {'samplers': [s.state_dict() for s in self._samplers()]}
        return {'epoch': self._epoch, 'position': self._position, **begin}

    def load_state_dict(self, state_dict):
        """The next iteration continues after the batches that were returned when the state was saved."""
        names = 'epoch', 'position', 'samplers'
        state = dict(zip(names, entries(state_dict, names, 'DataLoader')))
        if not all(isinstance(state[key], int) and state[key] >= 0 for key in ('epoch', 'position')):
            raise ValueError(f'DataLoader: epoch {state["epoch"]!r} or position {state["position"]!r} is no count')
        self._epoch, self._position, self._resume = state['epoch'], state['position'], state

