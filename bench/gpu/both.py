# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""What steps.py and operators.py share: the library that the first argument names, devtensor or torch, and the clock.
The second argument, tiny, makes everything small: for a machine without a GPU (the emulation of make test-cuda)."""
import importlib
import math
import sys
import time

m = importlib.import_module(sys.argv[1])
TORCH, TINY = sys.argv[1] == 'torch', sys.argv[2:] == ['tiny']


def numbers(*shape, scale=1, dtype=None):
    """Numbers in -scale..scale on cuda:0 that look random and are the same everywhere."""
    x = m.arange(1, math.prod(shape) + 1, dtype=m.float64, device='cuda') * 0.6180339887498949
    return ((x - m.floor(x)) * 2 - 1).mul(scale).to(dtype or m.float32).reshape(shape)


def below(n, *shape):
    """Integers from 0 to n - 1."""
    return (numbers(*shape, scale=0.5, dtype=m.float64) + 0.5).mul(n).to(m.int64).clamp(0, n - 1)


def measure(call):
    """Seconds of a call with many calls queued, the fastest of five samples of a tenth of a second."""
    def run(n):
        m.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(n):
            call()
        m.cuda.synchronize()
        return (time.perf_counter() - start) / n
    if TINY:
        return run(1)
    n = int(0.1 / run(3)) + 1
    return min(run(n) for _ in range(5))
