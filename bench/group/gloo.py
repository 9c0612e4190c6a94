# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Collectives of torch.distributed with gloo; prints the lines of group.c.   usage: gloo.py RANKS BYTES..."""
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

BATCH, ROW, ROUNDS = 5e-3, 0.2, 15


def calls(rank, ranks, size):
    whole, out = torch.zeros(size // 4), torch.zeros(size // 4)
    found = {"all_reduce": lambda: dist.all_reduce(whole), "broadcast": lambda: dist.broadcast(whole, 0)}
    if size // 4 >= ranks:
        part, parts = whole[:size // 4 // ranks], list(out.chunk(ranks))
        found["all_gather"] = lambda: dist.all_gather(parts, part)
    if ranks == 2:
        def ping():
            if rank == 0:
                dist.send(whole, 1)
            dist.recv(out, 1 - rank)
            if rank == 1:
                dist.send(whole, 0)
        found["send_recv"] = ping
    return found


def batch(call, n):
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(n):
        call()
    return (time.perf_counter() - begin) / n


def agreed(number):
    t = torch.tensor([int(number)])
    dist.broadcast(t, 0)
    return int(t)


def worker(rank, ranks, sizes):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    for size in sizes:
        for name, call in calls(rank, ranks, size).items():
            batch(call, 1)
            took = batch(call, 1)
            n = agreed(max(1, BATCH / took))
            times = sorted(batch(call, n) for _ in range(agreed(min(ROUNDS, max(3, ROW / took / n)))))
            half = 2 if name == "send_recv" else 1
            if rank == 0:
                print(name, size, "gloo", f"{times[len(times) // 4] / half * 1e6:.3f}",
                      f"{times[len(times) // 2] / half * 1e6:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(20000 + os.getpid() % 20000), GLOO_SOCKET_IFNAME="lo")
    world = int(sys.argv[1])
    mp.spawn(worker, (world, [int(a) for a in sys.argv[2:]]), nprocs=world)
