# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Batches of 64 images [3, 224, 224] from the workers of a DataLoader to the program, and their memory back.

usage: loaders.py ours|torch

The data set gives one image again and again, so that a batch costs its collation and its way to the program. A row is the
median and the best of the time of a batch, in steady state, and the minor page faults of a batch in the program.
"""
import os
import resource
import sys
import time

BATCH, BATCHES, WARM_UP = 64, 40, 8
side = sys.argv[1]
if side == 'ours':
    import devtensor as lib
    from devtensor.utils.data import DataLoader, Dataset
else:
    import torch as lib
    from torch.utils.data import DataLoader, Dataset


class Image(Dataset):
    def __init__(self, image):
        self.image = image

    def __len__(self):
        return BATCH * (BATCHES + WARM_UP)

    def __getitem__(self, i):
        return self.image, i


def touch(batch):
    """Reads a number of each image, as a check that it is there."""
    return batch[:, 0, 0, 0].sum().item()


def measure(dtype, workers):
    loader = DataLoader(Image(lib.ones(3, 224, 224).to(dtype)), batch_size=BATCH, num_workers=workers)
    times, start, faults = [], time.perf_counter(), 0
    for i, (images, labels) in enumerate(loader):
        assert touch(images) == BATCH
        del images, labels
        times.append(time.perf_counter() - start)
        if i == WARM_UP:
            faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        start = time.perf_counter()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
    times = sorted(times[WARM_UP:])
    name = str(dtype).rsplit('.', maxsplit=1)[-1].strip("'<>")
    print(f'{side:6} {name:8} {workers:7} {1e3 * times[len(times) // 2]:10.2f} {1e3 * times[0]:9.2f} '
          f'{BATCH * len(times) / sum(times):10.0f} {faults / BATCHES:9.0f}', flush=True)


def main():
    if side == 'torch':
        lib.set_num_threads(1)
    if side == 'ours':
        print(f'{"":6} {"dtype":8} {"workers":>7} {"ms/batch":>10} {"best":>9} {"images/s":>10} {"faults":>9}')
    for dtype in (lib.float32, lib.uint8):
        for workers in (1, 2):
            if workers <= len(os.sched_getaffinity(0)):
                measure(dtype, workers)


main()
