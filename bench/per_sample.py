# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Gradients of each sample of an MLP, 784-128-10 with a batch of 64, in ms: libtensor by tensor_vmap() and by a loop,
torch.func by vmap(grad()), in one run.

    make bench-per-sample

usage: per_sample.py PROGRAM
"""
import subprocess
import sys
import time

import torch
from torch.func import functional_call, grad, vmap


def torch_ms(threads):
    torch.set_num_threads(threads)
    model = torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    x, target = torch.randn(64, 784), torch.randint(10, (64,))

    def loss(parameters, x, target):
        out = functional_call(model, parameters, (x[None],))
        return torch.nn.functional.cross_entropy(out, target[None])

    of_samples, best = vmap(grad(loss), (None, 0, 0)), 1e9
    for _ in range(30):
        begin = time.perf_counter()
        of_samples(parameters, x, target)
        best = min(best, time.perf_counter() - begin)
    return best * 1e3


def main():
    print("| threads | tensor_vmap() | loop | torch.func |\n|---|---|---|---|")
    for threads in (1, 2):
        ours = subprocess.run([sys.argv[1], str(threads)], capture_output=True, text=True, check=True).stdout.split()
        print(f"| {threads} | {ours[0]} | {ours[1]} | {torch_ms(threads):.3f} |")


main()
