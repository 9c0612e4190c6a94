# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Whole models on cuda:0, by one program for both libraries.

usage: python bench/gpu/steps.py devtensor|torch [tiny]

Prints "NAME SECONDS LOSS" for each row, separated by tabs. The loss is that of the first step: both libraries must have
the same, since weights and batches are the same. "training" is forward, backward and a step of Adam, "inference" the
forward alone; "graph" is the same step captured once and replayed."""
import math

from both import TINY, TORCH, below, m, measure, numbers

nn, F = m.nn, m.nn.functional


def fill(model):
    with m.no_grad():
        for name, p in model.named_parameters():
            if p.dim() > 1:
                p.copy_(numbers(*p.shape, scale=math.sqrt(3 * p.shape[0] / p.numel())))
            else:
                p.fill_(0 if 'bias' in name else 1)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, vocabulary, width, heads, layers, length):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.register_buffer('place', m.arange(length))

    def forward(self, x):
        x = self.words(x) + self.places(self.place)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).flatten(0, 1)


class Residual(nn.Module):
    def __init__(self, before, channels, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels)
        self.conv2, self.norm2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels)
        self.shortcut = None
        if stride > 1 or before != channels:
            self.shortcut = nn.Conv2d(before, channels, 1, stride, bias=False)

    def forward(self, x):
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + (self.shortcut(x) if self.shortcut else x))


class ResNet18(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        steps = [(width, width, 1)] + [(width << i - 1, width << i, 2) for i in (1, 2, 3)]
        self.blocks = nn.Sequential(*[nn.Sequential(Residual(*s), Residual(s[1], s[1], 1)) for s in steps])
        self.out = nn.Linear(width * 8, 1000)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 3, 2, 1)
        return self.out(F.adaptive_avg_pool2d(self.blocks(x), 1).flatten(1))


class Lstm(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.lstm, self.out = nn.LSTM(width, width, layers, batch_first=True), nn.Linear(width, 1000)

    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1])


def models():
    """Name, model, input and classes: GPT-2 small, ResNet-18, an LSTM, and an MLP of which launches take the time."""
    vocabulary, width, layers, batch, length = (97, 32, 2, 2, 8) if TINY else (50257, 768, 12, 8, 512)
    words = below(vocabulary, batch, length)
    gpt = Gpt(vocabulary, width, width // (16 if TINY else 64), layers, length)
    yield 'GPT', gpt, words, (words.flatten() * 7 + 1) % vocabulary
    batch, size, width = (2, 16, 4) if TINY else (64, 224, 64)
    yield 'ResNet-18', ResNet18(width), numbers(batch, 3, size, size), m.arange(batch, device='cuda') % 1000
    batch, length, width = (2, 3, 8) if TINY else (64, 128, 512)
    yield 'LSTM', Lstm(width, 2), numbers(batch, length, width), m.arange(batch, device='cuda') % 1000
    mlp = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    yield 'MLP 64-128-128-10', mlp, numbers(32, 64), m.arange(32, device='cuda') % 10


def captured(step):
    graph = m.cuda.CUDAGraph()
    with m.cuda.graph(graph):
        step()
    return graph.replay


def training(model, x, classes):
    options = {'fused': True, 'capturable': True} if TORCH else {}
    optimizer = m.optim.Adam(model.parameters(), lr=1e-5, **options)

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).float(), classes)
        loss.backward()
        optimizer.step()
        return loss
    return step


def inference(model, x, classes):
    def step():
        with m.no_grad():
            return F.cross_entropy(model(x).float(), classes)
    return step


def warm(step):
    """As PyTorch asks for before a capture; the losses before and after show what the steps did."""
    if not TORCH:
        return [step() for _ in range(3)]
    stream = m.cuda.Stream()
    stream.wait_stream(m.cuda.current_stream())
    with m.cuda.stream(stream):
        losses = [step() for _ in range(3)]
    m.cuda.current_stream().wait_stream(stream)
    return losses


def main():
    for name, model, x, classes in models():
        for dtype in 'float32', 'bfloat16':
            for kind in training, inference:
                model = model.to('cuda', m.float32)
                fill(model)
                model = model.to(getattr(m, dtype))
                step = kind(model, x.to(getattr(m, dtype)) if x.is_floating_point() else x, classes)
                loss = warm(step)[0].item()
                for way, call in ('eager', step), ('graph', captured(step)):
                    print(f'{name} {dtype} {kind.__name__} {way}\t{measure(call):.4g}\t{loss:.4f}', flush=True)


main()
