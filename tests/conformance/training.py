#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The programs of examples/training beside PyTorch: the same weights, batches and steps give the same losses.

    $(bench/peers python) tests/conformance/training.py BUILD [STEPS [PROGRAM...]]

The models are written with torch.nn, and their state dict is the file that the program loads. Losses in f64 must
agree to 1e-12, in f32 to 1e-3: two orders of summation differ, and steps of training enlarge a difference. How much
depends on the learning rate: for ResNet-18 on batches of 8, PyTorch's own losses after 50 steps change by 6e-9 at a
rate of 0.01 if its initial weights are changed by one rounding, by 3e-10 at 0.001. The program uses 5e-5. In f32 a
larger difference than 1e-3 is compared with this one of PyTorch. KTAP.
"""
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "bench"))
from peer_steps import LeNet, ResNet18  # noqa: E402

TYPES = {torch.float64: "F64", torch.float32: "F32", torch.int64: "I64"}
LIMITS = {torch.float64: 1e-12, torch.float32: 1e-3}
TEXT = "/usr/share/common-licenses/GPL-3"


def save(path, state):
    """A safetensors file."""
    header, data = {}, b""
    for name, t in state.items():
        raw = t.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": TYPES[t.dtype], "shape": list(t.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


# ---- models, as examples/training has them; LeNet and ResNet18 are those of the benchmark ----

class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(2, 32), nn.Linear(32, 1)

    def forward(self, x):
        return self.out(self.lstm(x)[0][-1])


class GPT(nn.Module):
    def __init__(self, symbols=128, embed=64, heads=4, layers=2, length=32):
        super().__init__()
        self.symbol, self.position = nn.Embedding(symbols, embed), nn.Embedding(length, embed)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(
            embed, heads, 4 * embed, dropout=0, activation="gelu", norm_first=True, batch_first=True)
            for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(embed), nn.Linear(embed, symbols)

    def forward(self, x):
        n = x.shape[1]
        mask = torch.triu(torch.ones(n, n), 1).bool()
        x = self.symbol(x) + self.position(torch.arange(n))
        for block in self.blocks:
            x = block(x, src_mask=mask)
        return self.head(self.norm(x)).flatten(0, 1)


# ---- batches ----

def digits(dtype):
    rows = torch.tensor([[int(v) for v in line.split(",")] for line in open("examples/digits/digits.csv")])
    return (rows[:, :64].double() / 16).to(dtype).reshape(-1, 1, 8, 8), rows[:, 64]


def digit_batch(size, rows, enlarge):
    data = {}

    def batch(step, dtype):
        images, labels = data.setdefault(dtype, digits(dtype))
        at = step * size % rows
        x = images[at:at + size]
        if enlarge:
            x = x.repeat_interleave(4, 2).repeat_interleave(4, 3).repeat_interleave(3, 1)
        return x, labels[at:at + size]
    return batch


def adding_batch(step, dtype, size=32, time=16):
    state = step + 1

    def number():
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2 ** 64
        return (state >> 33) / 2147483648.0

    x, y = torch.zeros(time, size, 2, dtype=torch.float64), torch.zeros(size, 1, dtype=torch.float64)
    for b in range(size):
        for i in range(time):
            x[i, b, 0] = number()
        first = int(number() * time / 2)
        second = time // 2 + int(number() * time / 2)
        x[first, b, 1] = x[second, b, 1] = 1
        y[b] = x[first, b, 0] + x[second, b, 0]
    return x.to(dtype), y.to(dtype)


def text_batch(step, dtype, size=16, length=32):
    text = torch.tensor([c % 128 for c in open(TEXT, "rb").read(40000)])
    begin = [(step * size + b) * 7919 % (len(text) - length - 1) for b in range(size)]
    x = torch.stack([text[i:i + length] for i in begin])
    return x, torch.stack([text[i + 1:i + 1 + length] for i in begin]).flatten()


# ---- comparison ----

PROGRAMS = {
    "lenet": (LeNet, digit_batch(64, 1536, False), F.cross_entropy,
              lambda p: torch.optim.Adam(p, lr=0.002)),
    "lstm": (Adder, adding_batch, F.mse_loss, lambda p: torch.optim.Adam(p, lr=0.01)),
    "resnet": (ResNet18, digit_batch(8, 512, True), F.cross_entropy,
               lambda p: torch.optim.SGD(p, lr=5e-5, momentum=0.9, weight_decay=1e-4)),
    "gpt": (GPT, text_batch, F.cross_entropy, lambda p: torch.optim.AdamW(p, lr=3e-3)),
}


def losses_of_torch(model, batch, loss, optim, dtype, steps):
    found = []
    for step in range(steps):
        x, y = batch(step, dtype)
        value = loss(model(x), y)
        optim.zero_grad()
        value.backward()
        optim.step()
        found.append(float(value.detach()))
    return found


def losses_of_program(program, path, dtype, steps):
    out = subprocess.run([program, str(steps), path] + ["f64"] * (dtype == torch.float64), check=True,
                         capture_output=True, text=True).stdout
    return [float(line.split()[1]) for line in out.splitlines()[:steps]]


def changed_by_rounding(model):
    """The model with each weight changed by about one rounding."""
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(1 + (torch.rand_like(p) - 0.5) * 4 * torch.finfo(p.dtype).eps)
    return model


def largest(ours, theirs):
    """The largest relative difference of the losses of all steps."""
    assert len(ours) == len(theirs) and not any(map(math.isnan, ours))
    return max(abs(a - b) / max(1, abs(b)) for a, b in zip(ours, theirs))


def compare(build, name, dtype, steps):
    """The largest difference of program and PyTorch, and what is allowed."""
    make, batch, loss, optim = PROGRAMS[name]
    torch.set_default_dtype(dtype)

    def losses(change):
        torch.manual_seed(1)
        model = change(make())
        return losses_of_torch(model, batch, loss, optim(model.parameters()), dtype, steps)

    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        save(f"{folder}/x.safetensors", {**make().state_dict(), "step": torch.tensor(0)})
        ours = losses_of_program(f"{build}/examples/{name}", f"{folder}/x.safetensors", dtype, steps)
    theirs = losses(lambda model: model)
    worst, limit = largest(ours, theirs), LIMITS[dtype]
    if worst > limit and dtype == torch.float32:
        limit = 4 * largest(losses(changed_by_rounding), theirs)
    return worst, limit


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    build, steps = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 50
    failed, number, names = False, 0, sys.argv[3:] or PROGRAMS
    print(f"1..{2 * len(names)}")
    for name in names:
        for dtype in LIMITS:
            number += 1
            worst, limit = compare(build, name, dtype, steps)
            failed |= worst > limit
            print(f"{'not ok' if worst > limit else 'ok'} {number} {name} {dtype}: {steps} steps differ by "
                  f"{worst:.1e}, limit {limit:.1e}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
