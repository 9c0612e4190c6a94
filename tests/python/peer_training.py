#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Trainings with devtensor beside PyTorch: the same program, weights and batches give the same losses.

    peer_training.py MODEL f32|f64 STEPS     prints the largest relative difference of the losses, and for f32 that of
    PyTorch's
                                             losses with weights that are changed by one rounding
    peer_training.py time                    prints the median seconds of a step of the MLP, ours and PyTorch's
"""
import copy
import math
import statistics
import sys
import time

import torch

import devtensor as dt


def mlp(t):
    return t.nn.Sequential(t.nn.Linear(64, 128), t.nn.ReLU(), t.nn.Linear(128, 10))


def lenet(t):
    nn = t.nn
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 3, padding=1),
                         nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                         nn.Linear(84, 10))


def adder(t):
    class Adder(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.out = t.nn.LSTM(2, 32), t.nn.Linear(32, 1)

        def forward(self, x):
            return self.out(self.lstm(x)[0][-1])
    return Adder()


def gpt(t):
    class GPT(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.symbol, self.position = t.nn.Embedding(32, 32), t.nn.Embedding(16, 32)
            self.blocks = t.nn.ModuleList(t.nn.TransformerEncoderLayer(32, 4, 128, 0, 'gelu', batch_first=True,
                                                                       norm_first=True)
                                          for _ in range(2))
            self.norm, self.head = t.nn.LayerNorm(32), t.nn.Linear(32, 32)

        def forward(self, x):
            mask = t.nn.Transformer.generate_square_subsequent_mask(x.shape[1], dtype=self.norm.weight.dtype)
            x = self.symbol(x) + self.position(t.arange(x.shape[1]))
            for block in self.blocks:
                x = block(x, mask, is_causal=True)
            return self.head(self.norm(x)).flatten(0, 1)
    return GPT()


def classes(n, *shape):
    return lambda: (torch.rand(shape, dtype=torch.float64), torch.randint(0, n, shape[:1]))


def texts():
    rows = torch.randint(0, 32, (8, 17))
    return rows[:, :-1], rows[:, 1:].flatten()


# Model, batch, loss, optimizer with its options.
PROGRAMS = {
    'mlp': (mlp, classes(10, 32, 64), 'cross_entropy', 'SGD', {'lr': 0.1, 'momentum': 0.9, 'weight_decay': 1e-3}),
    'lenet': (lenet, classes(10, 16, 1, 8, 8), 'cross_entropy', 'Adam', {'lr': 2e-3}),
    'lstm': (adder, lambda: (torch.rand(12, 16, 2, dtype=torch.float64), torch.rand(16, 1, dtype=torch.float64)),
             'mse_loss', 'RMSprop',
             {'lr': 1e-3}),
    'gpt': (gpt, texts, 'cross_entropy', 'AdamW', {'lr': 1e-3}),
}


def convert(t, x, dtype):
    x = x.to(getattr(torch, dtype)) if x.dtype is torch.float64 else x
    return x if t is torch else dt.tensor(x.numpy())


def losses(t, model, batches, loss, optimizer):
    found = []
    for x, y in batches:
        value = getattr(t.nn.functional, loss)(model(x), y)
        optimizer.zero_grad()
        value.backward()
        t.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        found.append(value.item())
    return found


def train(t, name, dtype, state, batches):
    make, _, loss, method, options = PROGRAMS[name]
    model = make(t).to(getattr(t, dtype))
    model.load_state_dict(state)
    return losses(t, model, [[convert(t, x, dtype) for x in batch] for batch in batches], loss,
                  getattr(t.optim, method)(model.parameters(), **options))


def largest(ours, theirs):
    return max(abs(a - b) / max(1, abs(b)) for a, b in zip(ours, theirs))


def compare(name, dtype, steps):
    torch.manual_seed(1)
    state = PROGRAMS[name][0](torch).to(getattr(torch, dtype)).state_dict()
    batches = [PROGRAMS[name][1]() for _ in range(steps)]
    ours, theirs = train(dt, name, dtype, state, batches), train(torch, name, dtype, state, batches)
    assert len(ours) == steps and all(map(math.isfinite, ours))
    changed = copy.deepcopy(state)
    for value in changed.values():
        value.mul_(1 + (torch.rand_like(value) - 0.5) * 4 * torch.finfo(value.dtype).eps)
    print(largest(ours, theirs), largest(train(torch, name, dtype, changed, batches), theirs))


def seconds_of_steps(t, n):
    """Seconds of n steps of the MLP on one batch: forward, backward, and the step of the optimizer."""
    model, parts = mlp(t), [[], [], []]
    optimizer = t.optim.SGD(model.parameters(), lr=0.01)
    x, y = t.rand([32, 64]), t.randint(10, [32], dtype=t.int64) if t is dt else torch.randint(0, 10, (32,))
    for _ in range(n):
        optimizer.zero_grad()
        a = time.perf_counter()
        loss = t.nn.functional.cross_entropy(model(x), y)
        b = time.perf_counter()
        loss.backward()
        c = time.perf_counter()
        optimizer.step()
        d = time.perf_counter()
        for part, value in zip(parts, (b - a, c - b, d - c)):
            part.append(value)
    return [statistics.median(part) for part in parts]


def measure():
    torch.set_num_threads(1)
    rounds = [(seconds_of_steps(dt, 200), seconds_of_steps(torch, 200)) for _ in range(5)]
    for i, part in enumerate(('forward', 'backward', 'step')):
        ours, theirs = (statistics.median(r[k][i] for r in rounds) for k in (0, 1))
        print(f'{part}: {ours * 1e6:.1f} us, PyTorch {theirs * 1e6:.1f} us, ratio {theirs / ours:.1f}')
    ours, theirs = (statistics.median(sum(r[k]) for r in rounds) for k in (0, 1))
    print(f'all: {ours * 1e6:.1f} us, PyTorch {theirs * 1e6:.1f} us, ratio {theirs / ours:.1f}')


if __name__ == '__main__':
    if sys.argv[1] == 'time':
        measure()
    else:
        compare(sys.argv[1], {'f32': 'float32', 'f64': 'float64'}[sys.argv[2]], int(sys.argv[3]))
