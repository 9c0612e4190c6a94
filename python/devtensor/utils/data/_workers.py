# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Where a DataLoader gets batches from worker processes.

batches(loader, index_lists) is called for an epoch of a loader with num_workers > 0 and returns an iterator over its
batches, in the order of index_lists: lists of indices, or numbers of samples for an IterableDataset. The state of the
loader counts the batches that the iterator has returned, so an order or random numbers of workers must not depend on
their number.
"""


def batches(loader, index_lists):
    raise NotImplementedError(f'DataLoader: num_workers is {loader.num_workers}; batches are loaded '
                              'by the calling process only, num_workers=0')


def worker_info():
    """None in a process that is no worker."""
    return None
