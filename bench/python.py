# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Calls from Python: devtensor beside NumPy and PyTorch, in one process, interleaved.

usage: python bench/python.py [--rounds N] [--markdown]

Each figure is the minimum over the rounds of the mean time of a call in a loop of timeit, in ns. A row that misses its
mark says so, and the exit status is 1. Without NumPy or PyTorch their columns are left out."""
import argparse
import sys
import timeit

import devtensor as dt

try:
    import numpy as np
except ImportError:
    np = None
try:
    import torch
    torch.set_num_threads(1)
except ImportError:
    torch = None

# name, statement for devtensor and PyTorch (m is the module), for NumPy, the mark: (peer, ratio) or ns
ROWS = [
    ('a + b, 4 x 4', 'a + b', 'a + b', 150),
    ('a + 1.0', 'a + 1.0', 'a + one', ('numpy', 1)),
    ('add(a, b)', 'm.add(a, b)', 'm.add(a, b)', ('numpy', 1)),
    ('a[1]', 'a[1]', 'a[1]', ('numpy', 1)),
    ('a[1:3, None]', 'a[1:3, None]', 'a[1:3, None]', ('numpy', 1)),
    ('a.shape', 'a.shape', 'a.shape', ('numpy', 1)),
    ('a.dtype', 'a.dtype', 'a.dtype', ('torch', 1)),
    ('a.sum()', 'a.sum()', 'a.sum()', ('numpy', 1)),
    ('a.sum(0)', 'a.sum(0)', 'a.sum(0)', ('numpy', 1)),
    ('a @ b, 4 x 4', 'a @ b', 'a @ b', ('numpy', 1)),
    ('a.reshape(2, 8)', 'a.reshape(2, 8)', 'a.reshape(2, 8)', ('torch', 1)),
    ('zeros(4, 4)', 'm.zeros(4, 4)', 'm.zeros((4, 4))', ('numpy', 1)),
    ('zeros((4, 4))', 'm.zeros((4, 4))', 'm.zeros((4, 4))', ('numpy', 1)),
    ('zeros((4, 4), dtype=f32)', 'm.zeros((4, 4), dtype=f32)', 'm.zeros((4, 4), dtype=f32)', ('numpy', 1)),
    ('tensor of 16 numbers', 'm.tensor(numbers)', 'm.array(numbers)', ('torch', 1)),
    ('a.tolist()', 'a.tolist()', 'a.tolist()', ('torch', 1)),
    ('a.add_(b)', 'a.add_(b)', 'm.add(a, b, a)', ('numpy', 1)),
    ('a.exp()', 'a.exp()', 'm.exp(a)', ('numpy', 1)),
    ('MLP 64-128-10, batch 32, forward and backward', 'mlp()', None, ('torch', 5)),
]


def mlp(m):
    m.manual_seed(0)
    x = m.randn(32, 64)
    target = m.randint(0, 10, (32,))
    w1, b1 = m.randn(64, 128, requires_grad=True), m.zeros(128, requires_grad=True)
    w2, b2 = m.randn(128, 10, requires_grad=True), m.zeros(10, requires_grad=True)
    loss = m.nn.functional.cross_entropy

    def step():
        for p in (w1, b1, w2, b2):
            p.grad = None
        loss((x @ w1 + b1).relu() @ w2 + b2, target).backward()
    return step


def scope(m):
    """The names of the statements."""
    numbers = [float(i) for i in range(16)]
    names = {'m': m, 'numbers': numbers, 'f32': m.float32}
    if m is np:
        names.update(a=np.ones((4, 4), np.float32), b=np.ones((4, 4), np.float32), one=np.float32(1))
    else:
        names.update(a=m.ones(4, 4), b=m.ones(4, 4), mlp=mlp(m))
    return names


def measure(rounds):
    """{(row, peer): ns}"""
    peers = {name: scope(m) for name, m in (('devtensor', dt), ('numpy', np), ('torch', torch)) if m is not None}
    timers, best = {}, {}
    for name, ours, theirs, _ in ROWS:
        for peer, names in peers.items():
            statement = theirs if peer == 'numpy' else ours
            if statement:
                timer = timeit.Timer(statement, globals=names)
                number, _ = timer.autorange()
                timers[name, peer] = timer, max(number // 20, 1)
    for _ in range(rounds):
        for key, (timer, number) in timers.items():
            ns = timer.timeit(number) / number * 1e9
            best[key] = min(best.get(key, ns), ns)
    return best


def verdict(best, name, mark):
    """'yes', 'no', or '' without the peer."""
    ours = best[name, 'devtensor']
    if not isinstance(mark, tuple):
        return 'yes' if ours <= mark else 'no'
    peer = best.get((name, mark[0]))
    return '' if peer is None else 'yes' if peer >= mark[1] * ours else 'no'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--rounds', type=int, default=30)
    args = parser.parse_args()
    best = measure(args.rounds)
    peers = [p for p in ('numpy', 'torch') if any(key[1] == p for key in best)]
    print('| call | devtensor, ns | ' + ''.join(f'{p}, ns | {p} / ours | ' for p in peers) + 'mark | met |')
    print('|---|---|' + '---|---|' * len(peers) + '---|---|')
    missed = 0
    for name, _, _, mark in ROWS:
        ours = best[name, 'devtensor']
        cells = ''.join(f'{best[name, p]:.0f} | {best[name, p] / ours:.1f} | ' if (name, p) in best else '- | - | '
                        for p in peers)
        met = verdict(best, name, mark)
        missed += met == 'no'
        text = f'{mark} ns' if not isinstance(mark, tuple) else f'{mark[1]} x {mark[0]}'
        print(f'| {name} | {ours:.0f} | {cells}{text} | {met} |')
    return 1 if missed else 0


if __name__ == '__main__':
    sys.exit(main())
