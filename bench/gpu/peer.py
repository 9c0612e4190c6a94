# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The rows of ours.c with PyTorch on cuda:0; prints "NAME SECONDS" for each."""
import sys
import time

import torch


def run(call, n):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(n):
        call()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def measure(call):
    run(call, 3)
    once = run(call, 10) / 10
    n = 100000 if once < 2e-7 else int(0.02 / once) + 1
    return min(run(call, n) / n for _ in range(7))


def rows():
    n = 1 << 26
    make = {"device": "cuda"}
    large, other = torch.rand(n, **make), torch.rand(n, **make)
    table, grad, bias = torch.rand(8192, 4096, **make), torch.rand(8192, 4096, **make), torch.rand(4096, **make)
    small = torch.rand(4, 4, **make)
    m, d = torch.rand(4096, 4096, **make), torch.rand(4096, 4096, dtype=torch.float64, **make)
    pick, each = torch.randint(8192, (8192,), **make), torch.randint(4096, (8192, 1024), **make)
    host, quarter = torch.rand(1 << 24), torch.rand(1 << 24, **make)
    square, y = large.reshape(8192, 8192), torch.softmax(table, 1)
    yield "add 4x4", lambda: small + small
    yield "add 2^26", lambda: large + other
    yield "mul by a number 2^26", lambda: large * 1.5
    yield "relu 2^26", lambda: torch.relu(large)
    yield "clone 2^26", lambda: large.clone()
    yield "add 8192x4096 + 4096", lambda: table + bias
    yield "transposed copy 8192x8192", lambda: square.t().contiguous()
    yield "sum 2^26", lambda: large.sum()
    yield "sum 8192x4096 rows", lambda: table.sum(1)
    yield "sum 8192x4096 columns", lambda: table.sum(0)
    yield "softmax 8192x4096", lambda: torch.softmax(table, 1)
    yield "log_softmax 8192x4096", lambda: torch.log_softmax(table, 1)
    yield "softmax_backward 8192x4096", lambda: torch._softmax_backward_data(grad, y, 1, torch.float32)
    yield "index_select 8192x4096", lambda: torch.index_select(table, 0, pick)
    yield "gather 8192x1024", lambda: torch.gather(table, 1, each)
    yield "index_add 8192x4096", lambda: torch.index_add(table, 0, pick, grad)
    yield "mm f32 4096", lambda: m @ m
    yield "mm f32 4096, transposed", lambda: m @ m.t()
    yield "mm f64 4096", lambda: d @ d
    half = m.bfloat16()
    heads = torch.rand(96, 1024, 64, **make)
    halves = heads.bfloat16()
    weight, shift = torch.rand(4096, **make), torch.rand(4096, **make)
    _, mean, rstd = torch.native_layer_norm(table, (4096,), weight, shift, 1e-5)
    vocabulary, words = torch.rand(50257, 768, **make), torch.randint(50257, (8192,), **make)
    states = torch.rand(8192, 768, **make)
    logits, targets = torch.rand(4096, 50257, **make), torch.randint(50257, (4096,), **make)
    aten, functional = torch.ops.aten, torch.nn.functional
    state = [[t] for t in (quarter, large[: 1 << 24], other[: 1 << 24], other[1 << 24 : 1 << 25])]
    step = [torch.tensor(3.0, **make)]
    adam = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.0, "eps": 1e-8, "amsgrad": False, "maximize": False}
    yield "mm bf16 4096", lambda: half @ half
    yield "bmm f32 96x1024x64", lambda: torch.bmm(heads, heads.transpose(1, 2))
    yield "bmm bf16 96x1024x64", lambda: torch.bmm(halves, halves.transpose(1, 2))
    yield "amax 8192x4096 rows", lambda: table.amax(1)
    yield "argmax 8192x4096 rows", lambda: table.argmax(1)
    yield "var 8192x4096 rows", lambda: table.var(1)
    yield "layer_norm 8192x4096", lambda: functional.layer_norm(table, (4096,), weight, shift)
    yield "layer_norm_backward 8192x4096", lambda: aten.native_layer_norm_backward(
        grad, table, (4096,), mean, rstd, weight, shift, [True, True, True]
    )
    yield "cross_entropy 4096x50257", lambda: functional.cross_entropy(logits, targets)
    yield "embedding 8192 of 50257x768", lambda: functional.embedding(words, vocabulary)
    yield "embedding_backward 50257x768", lambda: aten.embedding_dense_backward(states, words, 50257, -1, False)
    yield "adam 2^24", lambda: torch._fused_adam_(*state, [], step, **adam)
    yield "to the device 64 MiB", lambda: host.to("cuda")
    yield "to the host 64 MiB", lambda: quarter.to("cpu")


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    print(f"# {torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}", file=sys.stderr)
    for name, call in rows():
        print(f"{name}\t{measure(call):.4g}", flush=True)


main()
