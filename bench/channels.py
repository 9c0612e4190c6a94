# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Latency of a tensor of 256 KiB through queues of torch.multiprocessing, as bench/channels.c measures channels.

With the argument `throughput` messages a second, as bench/throughput.c: of one tensor that both have, and of new ones that the
sender fills and the receiver reads.
"""

import os
import sys
import time

import torch
import torch.multiprocessing as mp

ROUNDS, WARM_UP = 2000, 200


def answer(there, back):
    while (t := there.get()) is not None:
        back.put(t)


def measure(name, context, processors):
    there, back = context.SimpleQueue(), context.SimpleQueue()
    peer = context.Process(target=answer, args=(there, back))
    peer.start()
    t = torch.ones(64, 1024).share_memory_()
    times = []
    for i in range(-WARM_UP, ROUNDS):
        start = time.perf_counter_ns()
        there.put(t)
        back.get()
        if i >= 0:
            times.append((time.perf_counter_ns() - start) / 2000)
    there.put(None)
    peer.join()
    times.sort()
    quantiles = ' '.join(f'{times[int(len(times) * q)]:9.2f}' for q in (0.5, 0.99, 0.999))
    print(f'{name:18} {len(processors):10} {quantiles}', flush=True)


def consume(there, back, n, reads):
    for _ in range(n):
        t = there.get()
        if reads:
            t.view(torch.int64).sum()
    back.put(0)


def flood(name, context, processors, fresh, n):
    there, back = context.Queue(8), context.SimpleQueue()
    peer = context.Process(target=consume, args=(there, back, n, fresh))
    peer.start()
    t = torch.ones(64, 1024).share_memory_()
    start = time.perf_counter()
    for i in range(n):
        there.put(torch.full((64, 1024), float(i)) if fresh else t)
    back.get()
    seconds = time.perf_counter() - start
    peer.join()
    rate = f'{n * t.nbytes / seconds / 1e9:9.2f}' if fresh else f'{"-":>9}'
    print(f'{name:20} {len(processors):10} {n / seconds:12.0f} {rate}', flush=True)


def main():
    torch.set_num_threads(1)
    throughput = sys.argv[1:] == ['throughput']
    context = mp.get_context('fork')
    everything = sorted(os.sched_getaffinity(0))
    for n in (2, 1):
        if len(everything) < n:
            continue
        os.sched_setaffinity(0, everything[:n])
        for strategy in ('file_descriptor', 'file_system'):
            mp.set_sharing_strategy(strategy)
            if throughput:
                flood(f'torch, {strategy[5:]}', context, everything[:n], False, 5000)
                flood(f'torch, {strategy[5:]}, new', context, everything[:n], True, 2000)
                continue
            measure(f'torch, {strategy[5:]}', context, everything[:n])


if __name__ == '__main__':
    main()
