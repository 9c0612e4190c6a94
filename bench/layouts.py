# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Sparse and quantized operands and operators of rows in PyTorch; bench/ours/layouts.c describes the operands."""
import contextlib
import re

import numpy as np

BACKWARD = "backward:"


def has(spec):
    return bool(re.search(r"@|:[qQ]|^quantize", spec))


def sparse(torch, dtype, sizes, marks, seed, finish, numbers):
    n = int(re.search(r"@(\d+)", marks).group(1))
    at = [numbers("i64", [n], seed + i, sizes[i], False, i == 0 and ":z" in marks).astype(np.int64) for i in (0, 1)]
    values = finish(numbers(dtype, [n], seed + 2, 0, False), dtype)
    t = torch.sparse_coo_tensor(torch.from_numpy(np.stack(at)), values, sizes)
    t = t.coalesce() if re.search(":[kcd]", marks) else t
    return t.to_sparse_csr() if ":c" in marks else t.to_dense() if ":d" in marks else t


def tensor(dtype, sizes, marks, seed, finish, numbers):
    """The operand, and the number of seeds that it took."""
    import torch
    if "@" in marks:
        return sparse(torch, dtype, sizes, marks, seed, finish, numbers), 3
    x = finish(numbers("f32", sizes, seed, 0, False), "f32")
    kind = {"u8": torch.quint8, "i8": torch.qint8}[dtype]
    if ":q" in marks:
        return torch.quantize_per_tensor(x, 1 / 128, 128 if dtype == "u8" else 0, kind), 1
    scales = (1 + torch.arange(sizes[0]) % 8).double() / 128
    return torch.quantize_per_channel(x, scales, torch.zeros(sizes[0], dtype=torch.int64), 0, kind), 1


def linear(torch, x, w, b, scale, zero, relu=False):
    op = torch.ops.quantized.linear_relu if relu else torch.ops.quantized.linear
    packed = torch.ops.quantized.linear_prepack(w, b)
    return lambda: op(x, packed, scale, zero)


def conv2d(torch, x, w, b, stride, padding, dilation, groups, scale, zero, relu=False):
    """With images in PyTorch's own order for quantized ones, channels last."""
    op = torch.ops.quantized.conv2d_relu if relu else torch.ops.quantized.conv2d
    packed = torch.ops.quantized.conv2d_prepack(w, b, stride, padding, dilation, groups)
    x = x.contiguous(memory_format=torch.channels_last)
    return lambda: op(x, packed, scale, zero)


def quantized(torch, dtype):
    return {torch.uint8: torch.quint8, torch.int8: torch.qint8, torch.int32: torch.qint32}[dtype]


# Operators that PyTorch has under another name, or as a method. Each returns a function without arguments.
CALLS = {
    "quantized_linear": linear,
    "quantized_conv2d": conv2d,
    "quantized_add": lambda t, a, b, scale, zero: lambda: t.ops.quantized.add(a, b, scale, zero),
    "quantized_mul": lambda t, a, b, scale, zero: lambda: t.ops.quantized.mul(a, b, scale, zero),
    "quantize_per_tensor": lambda t, x, scale, zero, d: lambda: t.quantize_per_tensor(x, scale, zero, quantized(t, d)),
    "quantize_per_channel": lambda t, x, scales, zeros, axis, d:
        lambda: t.quantize_per_channel(x, scales, zeros, axis, quantized(t, d)),
    "dequantize.self": lambda t, x: x.dequantize,
    "int_repr": lambda t, x: x.int_repr,
    "relu": lambda t, x: x.relu,
    "coalesce": lambda t, x: x.coalesce,
    "to_sparse": lambda t, x: x.to_sparse,
    "to_sparse_csr": lambda t, x: x.to_sparse_csr,
    "to_dense": lambda t, x: x.to_dense,
    # The transpose of CSR is a view in another layout, which PyTorch has and libtensor has not; both make CSR here.
    "t": lambda t, x: (lambda: x.t().to_sparse_csr()) if x.layout == t.sparse_csr else x.t,
    "add.Tensor": lambda t, a, b: lambda: a + b,
    "mul.Tensor": lambda t, a, b: lambda: a * b,
    "mm": lambda t, a, b: lambda: t.mm(a, b),
    "addmm": lambda t, c, a, b: lambda: t.addmm(c, a, b),
    "_sparse_mm": lambda t, a, b: lambda: t.sparse.mm(a, b),
    "_sparse_sampled_mm": lambda t, a, b, mask: lambda: t.sparse.sampled_addmm(mask, a, b, beta=0.0),
    "sum.dim_IntList": lambda t, x, dims: lambda: t.sparse.sum(x, dims),
}


def call(torch, name, make):
    """A function without arguments that computes the row; make() returns its arguments."""
    if not name.startswith(BACKWARD):
        with torch.inference_mode():
            return CALLS[name](torch, *make())
    values = [v.requires_grad_() if isinstance(v, torch.Tensor) else v for v in make()]
    inputs = [v for v in values if isinstance(v, torch.Tensor)]
    forward = CALLS[name[len(BACKWARD):]](torch, *values)

    def once():
        result = forward()
        total = result.sum() if result.layout == torch.strided else torch.sparse.sum(result)
        return torch.autograd.grad(total, inputs)[0]
    return once


def numbers_of(torch, r):
    """The result as bench/ours compares it: values of sparse tensors, coalesced."""
    if r.layout in (torch.sparse_csr, torch.sparse_csc):
        return r.values()
    if r.layout == torch.sparse_coo:
        return r.coalesce().values()
    return r.dequantize() if r.is_quantized else r


def runs(torch, call, name):
    mode = contextlib.nullcontext if name.startswith(BACKWARD) else torch.inference_mode

    def run(n):
        with mode():
            for _ in range(n):
                call()

    def value():
        with mode(), torch.no_grad() if mode is torch.inference_mode else contextlib.nullcontext():
            r = numbers_of(torch, call()).detach().double().abs()
        return torch.where(r.isfinite(), r, 0).mean().item() if r.numel() else 0.0
    return run, value
