# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The models of bench/ours/steps.c in PyTorch, training and inference: the same sizes, weights and batches."""
import contextlib
import ctypes
import math

import torch
from torch import nn
from torch.nn import functional as F

MASK = 0xffffffff


def numbers(shape, seed, scale=1.0):
    """f32 in -scale..scale, from the index of the element and the seed."""
    x = (torch.arange(math.prod(shape)) * 2654435761 + seed * 40503 + 12345) & MASK
    for _ in range(2):
        x = ((x ^ (x >> 16)) * 0x45d9f3b) & MASK
    return (((x ^ (x >> 16)).double() / 2147483648.0 - 1) * scale).float().reshape(shape)


def classes(shape, n, seed):
    x = (torch.arange(math.prod(shape)) * 2654435761 + seed * 40503 + 12345) & MASK
    for _ in range(2):
        x = ((x ^ (x >> 16)) * 0x45d9f3b) & MASK
    x = (x ^ (x >> 16)).double() / 2147483648.0 - 1
    return (((x + 1) / 2 * n).long() % n).reshape(shape)


def set_parameters(model):
    with torch.no_grad():
        for i, (name, p) in enumerate(model.named_parameters()):
            if p.dim() > 1:
                p.copy_(numbers(p.shape, i, math.sqrt(p.shape[0] / p.numel())))
            elif name.rpartition(".")[2].startswith("bias"):
                p.zero_()


# ---- models ----

class RnnCell(nn.Module):
    def __init__(self):
        super().__init__()
        self.W_x, self.W_h = nn.Parameter(torch.zeros(20, 10)), nn.Parameter(torch.zeros(20, 20))

    def forward(self, x, prev_h):
        i2h = torch.mm(self.W_x, x.t())
        h2h = torch.mm(self.W_h, prev_h.t())
        return torch.tanh(i2h + h2h).sum()


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 3, padding=1)
        self.fc1, self.fc2, self.fc3 = nn.Linear(64, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(64, 256, 2), nn.Linear(256, 1)

    def forward(self, x):
        return self.out(self.lstm(x)[0][-1])


class ResBlock(nn.Module):
    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.downsample = None
        if stride > 1 or channels_in != channels:
            self.downsample = nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride, bias=False),
                                            nn.BatchNorm2d(channels))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += self.downsample(x) if self.downsample else x
        return self.relu(y)


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        for i, channels in enumerate((64, 128, 256, 512)):
            before = 64 if i == 0 else channels // 2
            setattr(self, f"layer{i + 1}", nn.Sequential(ResBlock(before, channels, 1 if i == 0 else 2),
                                                         ResBlock(channels, channels, 1)))
        self.fc = nn.Linear(512, 10)

    def forward(self, x):
        x = F.max_pool2d(self.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Bottleneck(nn.Module):
    def __init__(self, before, expand, channels, stride):
        super().__init__()
        wide = before * expand
        if expand > 1:
            self.expand, self.bn1 = nn.Conv2d(before, wide, 1, bias=False), nn.BatchNorm2d(wide)
        self.depth = nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False)
        self.bn2 = nn.BatchNorm2d(wide)
        self.project, self.bn3 = nn.Conv2d(wide, channels, 1, bias=False), nn.BatchNorm2d(channels)
        self.wider, self.same = expand > 1, stride == 1 and before == channels

    def forward(self, x):
        y = F.relu6(self.bn1(self.expand(x)), inplace=True) if self.wider else x
        y = self.bn3(self.project(F.relu6(self.bn2(self.depth(y)), inplace=True)))
        return y + x if self.same else y


class MobileNet(nn.Module):
    """MobileNetV2."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32)
        blocks, before = [], 32
        for expand, channels, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                                (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
            for i in range(count):
                blocks.append(Bottleneck(before, expand, channels, 1 if i else stride))
                before = channels
        self.blocks = nn.Sequential(*blocks)
        self.conv2, self.bn2 = nn.Conv2d(before, 1280, 1, bias=False), nn.BatchNorm2d(1280)
        self.fc = nn.Linear(1280, 10)

    def forward(self, x):
        x = self.blocks(F.relu6(self.bn1(self.conv1(x)), inplace=True))
        x = F.relu6(self.bn2(self.conv2(x)), inplace=True)
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Attention(nn.Module):
    """The parameters and the order of nn.MultiheadAttention, on the fused operator without a mask in memory."""

    def __init__(self, embed, heads):
        super().__init__()
        self.heads = heads
        self.in_proj_weight = nn.Parameter(torch.zeros(3 * embed, embed))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * embed))
        self.out_proj = nn.Linear(embed, embed)

    def forward(self, x):
        b, n, embed = x.shape
        q, k, v = F.linear(x, self.in_proj_weight, self.in_proj_bias).chunk(3, 2)
        q, k, v = (t.view(b, n, self.heads, embed // self.heads).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(y.transpose(1, 2).reshape(b, n, embed))


class Block(nn.Module):
    def __init__(self, embed, heads):
        super().__init__()
        self.self_attn = Attention(embed, heads)
        self.linear1, self.linear2 = nn.Linear(embed, 4 * embed), nn.Linear(4 * embed, embed)
        self.norm1, self.norm2 = nn.LayerNorm(embed), nn.LayerNorm(embed)

    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return x + self.linear2(F.gelu(self.linear1(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, symbols=128, embed=256, heads=8, layers=6, length=128):
        super().__init__()
        self.symbol, self.position = nn.Embedding(symbols, embed), nn.Embedding(length, embed)
        self.blocks = nn.ModuleList(Block(embed, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(embed), nn.Linear(embed, symbols)

    def forward(self, x):
        x = self.symbol(x) + self.position(torch.arange(x.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).flatten(0, 1)


def mlp():
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))


# ---- rows ----

def sgd(p, **how):
    return torch.optim.SGD(p, lr=0.001, momentum=0.9, weight_decay=1e-4, **how)


# name: model, input, target, loss of output and target, optimizer
MODELS = {
    "rnn": (RnnCell, lambda: numbers((1, 10), 100), lambda: numbers((1, 20), 101), None,
            lambda p, **how: torch.optim.SGD(p, lr=0.01, **how)),
    "mlp": (mlp, lambda: numbers((32, 64), 100), lambda: classes((32,), 10, 101), F.cross_entropy,
            lambda p, **how: torch.optim.SGD(p, lr=0.01, momentum=0.9, **how)),
    "lenet": (LeNet, lambda: numbers((8, 1, 8, 8), 100), lambda: classes((8,), 10, 101), F.cross_entropy,
              lambda p, **how: torch.optim.Adam(p, lr=0.002, **how)),
    "lenet_64": (LeNet, lambda: numbers((64, 1, 8, 8), 100), lambda: classes((64,), 10, 101), F.cross_entropy,
                 lambda p, **how: torch.optim.Adam(p, lr=0.002, **how)),
    "lstm": (Lstm, lambda: numbers((32, 16, 64), 100), lambda: numbers((16, 1), 101), F.mse_loss,
             lambda p, **how: torch.optim.Adam(p, lr=0.001, **how)),
    "resnet": (ResNet18, lambda: numbers((8, 3, 32, 32), 100), lambda: classes((8,), 10, 101), F.cross_entropy, sgd),
    "resnet_224": (ResNet18, lambda: numbers((8, 3, 224, 224), 100), lambda: classes((8,), 10, 101),
                   F.cross_entropy, sgd),
    "mobilenet": (MobileNet, lambda: numbers((8, 3, 224, 224), 100), lambda: classes((8,), 10, 101),
                  F.cross_entropy, sgd),
    "gpt": (Gpt, lambda: classes((4, 128), 128, 100), lambda: classes((512,), 128, 101), F.cross_entropy,
            lambda p, **how: torch.optim.AdamW(p, lr=3e-4, weight_decay=0.01, **how)),
}


def under(dtype):
    """The context of a forward and its loss."""
    return torch.autocast("cpu", dtype) if dtype else contextlib.nullcontext()


def stepper(name, dtype=None, compiled=False, **how):
    """A function that makes one step and returns the loss."""
    make, x, y, loss_of, make_optim = MODELS[name]
    model, x, y = make(), x(), y()
    set_parameters(model)
    optim = make_optim(model.parameters(), **how)
    called = torch.compile(model) if compiled else model

    def step():
        optim.zero_grad()
        with under(dtype):
            loss = loss_of(called(x), y) if loss_of else called(x, y)
        loss.backward()
        optim.step()
        return loss
    return step


def step_row(name, **how):
    def setup():
        step = stepper(name, **how)

        def run(n):
            for _ in range(n):
                step()

        def value():
            for _ in range(4):
                loss = step()
            return loss.item()
        return run, value
    return setup


def inference_row(name, dtype=None, compiled=False):
    def setup():
        make, x, *_ = MODELS[name]
        model, x = make(), x()
        set_parameters(model)
        model.eval()
        called = torch.compile(model) if compiled else model

        def run(n):
            with torch.inference_mode(), under(dtype):
                for _ in range(n):
                    y = called(x)
            return y

        return run, lambda: run(1).double().square().mean().log().item()
    return setup


HOW = {"": {}, "_fused": {"fused": True}, "_compiled": {"fused": True, "compiled": True}}
DTYPES = {"": None, "_bf16": torch.bfloat16}
ROWS = {f"step_{name}{d}{suffix}": step_row(name, dtype=dtype, **how)
        for name in MODELS for d, dtype in DTYPES.items() for suffix, how in HOW.items()}
ROWS.update({f"infer_{name}{d}{suffix}": inference_row(name, dtype, bool(suffix))
             for name in MODELS for d, dtype in DTYPES.items() for suffix in ("", "_compiled")})


def heap(row):
    """The largest number of bytes in blocks of 4 KiB and more in the third step, of all that were allocated since the
    row was set up: bench/heap.c counts them. A step of a small model loads first what PyTorch loads with the first step
    of any."""
    name, fused, _ = row.removeprefix("step_").partition("_fused")
    how = {"fused": True} if fused else {}
    bytes_now, most = ctypes.CDLL(None).heap_bytes, ctypes.c_int64()
    bytes_now.restype = ctypes.c_int64
    small = nn.Linear(8, 8)
    optim = MODELS[name][4](small.parameters(), **how)
    for _ in range(2):
        F.cross_entropy(small(torch.ones(4, 8)), torch.zeros(4, dtype=torch.int64)).backward()
        optim.step()
    del small, optim
    before = bytes_now(ctypes.byref(most))
    run, _ = ROWS[row]()
    run(2)
    bytes_now(ctypes.byref(most))
    run(1)
    bytes_now(ctypes.byref(most))
    return most.value - before


def peak(row):
    """The largest number of bytes in CPU tensors in the third step, all that exist before it included."""
    profiler = torch.profiler
    with contextlib.redirect_stdout(None), profiler.profile(activities=[profiler.ProfilerActivity.CPU],
                                                            profile_memory=True) as profile:
        run, _ = ROWS[row]()
        run(2)
        with profiler.record_function("last step"):
            run(1)
    events = sorted(profile.profiler.kineto_results.events(), key=lambda e: e.start_ns())
    begin = next(e.start_ns() for e in events if e.name() == "last step")
    now = most = 0
    for e in events:
        if e.name() == "[memory]":
            now += e.nbytes()
            most = max(most, now) if e.start_ns() >= begin else now
    return most
