# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Operators of models on cuda:0 that run long enough for Python's call not to matter, by one program for both
libraries; bench/gpu/ours.c has those of which the call is measured, too.

usage: python bench/gpu/operators.py devtensor|torch [tiny]

Prints "NAME SECONDS" for each row, separated by a tab."""
import os
import subprocess
import sys

from both import TINY, below, m, measure, numbers

WITHOUT_CUSPARSE = os.environ.get('TENSOR_CUSPARSE') == '0'
F = m.nn.functional


def size(n, tiny):
    return tiny if TINY else n


def gradients(y, inputs):
    """The backward alone: the graph is kept."""
    grad = m.ones_like(y)
    return lambda: m.autograd.grad(y, inputs, grad, retain_graph=True)


def convolutions():
    """Layers of ResNet-50, ConvNeXt, a 1-d and a 3-d network: b, channels in, out, size, taps, stride, groups."""
    for b, ci, co, h, k, stride, groups in (
            (32, 3, 64, 224, 7, 2, 1), (32, 64, 64, 56, 3, 1, 1), (32, 128, 128, 28, 3, 1, 1),
            (32, 512, 512, 7, 3, 1, 1), (32, 256, 1024, 14, 1, 1, 1),
            (32, 96, 96, 56, 7, 1, 96), (32, 128, 128, 28, 3, 1, 32)):
        shape = f'{b}x{ci}x{h}x{h}, {co} of {k}x{k}, stride {stride}, groups {groups}'
        if TINY:
            b, ci, co, h, groups = 2, min(ci, 4), 4, 8, min(groups, 4)
        for dtype in 'float32', 'bfloat16':
            x = numbers(b, ci, h, h, dtype=getattr(m, dtype)).requires_grad_()
            w = numbers(co, ci // groups, k, k, dtype=getattr(m, dtype)).requires_grad_()
            call = (lambda x=x, w=w: F.conv2d(x, w, None, stride, k // 2, 1, groups))
            yield f'conv2d {dtype} {shape}', call
            yield f'its gradients {dtype} {shape}', gradients(call(), (x, w))
    x, w = numbers(8, size(512, 4), size(1600, 9)), numbers(size(512, 4), size(512, 4), 3)
    yield 'conv1d float32 8x512x1600, 512 of 3, stride 2', lambda: F.conv1d(x, w, None, 2)
    volume, taps = numbers(4, size(64, 2), 8, size(56, 6), size(56, 6)), numbers(size(64, 2), size(64, 2), 3, 3, 3)
    yield 'conv3d float32 4x64x8x56x56, 64 of 3x3x3', lambda: F.conv3d(volume, taps, None, 1, 1)


def attention():
    for dtype in 'float32', 'bfloat16':
        for b, h, t, k in (8, 12, 1024, 64), (4, 16, 2048, 128):
            shape = (b, h, t, k) if not TINY else (1, 2, 20, 16)
            q = [numbers(*shape, dtype=getattr(m, dtype)).requires_grad_() for _ in range(3)]
            call = (lambda q=q: F.scaled_dot_product_attention(*q, is_causal=True))
            yield f'causal attention {dtype} {b}x{h}x{t}x{k}', call
            yield f'its gradients {dtype} {b}x{h}x{t}x{k}', gradients(call(), q)


def others():
    n = size(1 << 24, 300)
    line, table = numbers(n), numbers(size(8192, 9), size(4096, 33))
    image = numbers(size(32, 2), 64, size(56, 8), size(56, 8))
    weight = numbers(64)
    yield 'sort 2^24', lambda: m.sort(line)
    yield 'topk 64 of 8192x4096', lambda: m.topk(table, size(64, 5), 1)
    yield 'cumsum 8192x4096', lambda: m.cumsum(table, 1)
    yield 'cumsum 2^24', lambda: m.cumsum(line, 0)
    yield 'nonzero 2^24', lambda: m.nonzero(line)
    yield 'rfft 8192x4096', lambda: m.fft.rfft(table)
    yield 'dropout 8192x4096', lambda: F.dropout(table, 0.1)
    yield 'gelu 8192x4096', lambda: F.gelu(table)
    yield 'group_norm 32x64x56x56', lambda: F.group_norm(image, 8, weight, weight)
    yield 'batch_norm 32x64x56x56', lambda: F.batch_norm(image, None, None, weight, weight, training=True)
    yield 'max_pool2d 32x64x56x56', lambda: F.max_pool2d(image, 3, 2, 1)
    yield 'interpolate 32x64x56x56', lambda: F.interpolate(image, scale_factor=2, mode='bilinear')
    yield 'cat of 8', lambda: m.cat([image] * 8, 1)
    square = numbers(size(1024, 12), size(1024, 12)) + m.eye(size(1024, 12), device='cuda') * 64
    yield 'solve 1024', lambda: m.linalg.solve(square, square)
    yield 'cholesky 1024', lambda: m.linalg.cholesky(square @ square.t())


def sparse():
    """A matrix with 32 entries in each row, by 1, 8 and 64 columns. PyTorch calls cuSPARSE in any case."""
    own = ', without cuSPARSE' if WITHOUT_CUSPARSE else ''
    n, count = size(1 << 17, 40), size(32, 4)
    columns = m.arange(0, count, device='cuda') * (n // count) + below(n // count, n, count)
    a = m.sparse_csr_tensor(m.arange(0, n + 1, device='cuda') * count, columns.reshape(-1), numbers(n * count), (n, n))
    for columns in 1, 8, 64:
        x = numbers(n, columns)
        yield f'CSR 2^17 x 2^17, 32 in a row, by {columns} columns{own}', lambda x=x: m.mm(a, x)


def main():
    for group in (sparse,) if WITHOUT_CUSPARSE else (convolutions, attention, others, sparse):
        for name, call in group():
            print(f'{name}\t{measure(call):.4g}', flush=True)
    if not WITHOUT_CUSPARSE:  # the variable is read once
        subprocess.run([sys.executable] + sys.argv, env={**os.environ, 'TENSOR_CUSPARSE': '0'}, check=True)


main()
