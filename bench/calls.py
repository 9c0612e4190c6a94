# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Runs rows that are a line of text on the peers; bench/ours/call.c describes the format."""
import re

import numpy as np

import layouts
from operators import numpy_has

NUMPY = {"bool": np.bool_, "u8": np.uint8, "i8": np.int8, "i16": np.int16, "i32": np.int32,
         "i64": np.int64, "f16": np.float16, "f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}
# NumPy's names that differ from PyTorch's.
RENAMED = {"div": "divide", "sub": "subtract", "mul": "multiply", "pow": "power", "neg": "negative",
           "gt": "greater", "eq": "equal", "amax": "max", "amin": "min", "mm": "matmul"}
ALONG = {"sum", "mean", "prod", "amax", "argmax", "cumsum"}
FORM = re.compile(r"(\w+)\[([\d,]*)\]((?::t|:s\d+|:[pobrcdkqQz]|[<@*]\d+)*)$")


def numbers(dtype, sizes, seed, below, positive, skewed=False):
    """The numbers that call_numbers() of call.c makes; f32 for every floating or complex dtype."""
    i = np.arange(int(np.prod(sizes)), dtype=np.uint64)
    h = (i * np.uint64(2654435761) + np.uint64(seed * 12345)).astype(np.uint32)
    h = (h ^ h >> np.uint32(15)) * np.uint32(2246822519)
    h = h ^ h >> np.uint32(13)
    if dtype[0] in "fbc" and dtype != "bool" and not below:
        x = (h >> np.uint32(8)).astype(np.float32) / np.float32(8388608) - np.float32(1)
        x = np.abs(x) + np.float32(0.0625) if positive else x
    else:
        x = h.astype(np.int64)
        if skewed:
            h = h.astype(np.uint64)
            return ((h * h >> np.uint64(32)) * h >> np.uint64(32)) * np.uint64(below) >> np.uint64(32)
        x = x % below if below else x % 2 if dtype == "bool" else x % 101 - 50
        x = np.abs(x) + 1 if positive else x
    return x.reshape(sizes)


def reorder(torch, values):
    """A row's weight, argument 1, in the layout that the row's product needs."""
    x, w = values[:2]
    return (torch.ops.mkldnn._reorder_linear_weight(w.to_dense(), x.size(0)) if w.dim() == 2 else
            torch._C._nn.mkldnn_reorder_conv2d_weight(w, *values[3:], list(x.size())))


def tensor(word, seed, finish):
    """A tensor as the word describes it; finish converts the numbers to a tensor of the peer with a dtype."""
    dtype, sizes, marks = FORM.match(word).groups()
    sizes = [int(s) for s in sizes.split(",") if s]
    if re.search("@|:[qQ]", marks):
        return layouts.tensor(dtype, sizes, marks, seed, finish, numbers)
    step = int((re.findall(r":s(\d+)", marks) or [1])[0])
    below = int((re.findall(r"<(\d+)", marks) or [0])[0])
    copies = int((re.findall(r"\*(\d+)", marks) or [0])[0])
    blocked = re.search(":[br]", marks)
    transposed = ":t" in marks and len(sizes) > 1
    stored = list(sizes)
    if stored:
        stored[-1] *= step
    if transposed:
        stored[-1], stored[-2] = sizes[-2], sizes[-1]

    def one(seed):
        t = finish(numbers(dtype, stored, seed, below, ":p" in marks), dtype)
        if step > 1:
            t = t[..., ::step]
        t = t.swapaxes(-1, -2) if transposed else t
        if ":o" in marks:
            t = t.sort(0).values if hasattr(t, "to_mkldnn") else np.sort(t, 0)
        return t.to_mkldnn() if blocked else t
    return [one(seed + i) for i in range(copies)] if copies else one(seed), max(copies, 1)


def arguments(words, finish, dtypes):
    seed, out = 0, []
    for w in words:
        if FORM.match(w):
            value, made = tensor(w, seed, finish)
            seed += made
        elif w[0] == "(":
            value = [int(x) for x in w[1:-1].split(",") if x]
        elif w in ("true", "false", "-"):
            value = {"true": True, "false": False, "-": None}[w]
        elif re.match(r"-?\d", w):
            value = float(w) if re.search(r"[.e]", w) else int(w)
        else:
            value = dtypes.get(w, w)
        out.append(value)
    return out


def torch_row(torch):
    """spec -> (run, value), called as in PyTorch programs: torch.NAME, else the operator."""
    names = {"bool": "bool", "u8": "uint8", "i8": "int8", "i16": "int16", "i32": "int32",
             "i64": "int64", "f16": "float16", "bf16": "bfloat16", "f32": "float32",
             "f64": "float64", "c64": "complex64", "c128": "complex128"}
    dtypes = {k: getattr(torch, v) for k, v in names.items()}

    def finish(x, dtype):
        # In memory of PyTorch: large arrays of NumPy use huge pages.
        return torch.from_numpy(x).to(dtypes[dtype], copy=True)

    def row(spec):
        name, *words = spec.split()
        if layouts.has(spec):
            call = layouts.call(torch, name, lambda: arguments(words, finish, dtypes))
            return layouts.runs(torch, call, name)
        base, _, overload = name.partition(".")
        op = getattr(getattr(torch.ops.aten, base), overload or "default")
        with torch.inference_mode():
            values = arguments(words, finish, dtypes)
            if ":r" in spec:
                values[1] = reorder(torch, values)
        values = [list(map(bool, v)) if str(a.type) == "List[bool]" else v
                  for a, v in zip(op._schema.arguments, values)]
        keyword = {a.name: v for a, v in zip(op._schema.arguments, values) if a.kwarg_only}
        plain = values[:len(values) - len(keyword)]
        places = (torch, torch._C._nn, torch.special)
        call = next((getattr(p, base) for p in places if hasattr(p, base)), op)
        call = getattr(torch.fft, base[4:]) if base.startswith("fft_") else call
        with torch.inference_mode():
            try:
                call(*plain, **keyword)
            except TypeError:
                call = op

        def run(n):
            with torch.inference_mode():
                for _ in range(n):
                    call(*plain, **keyword)

        def value():
            with torch.inference_mode():
                r = call(*plain, **keyword)
                r = r[0] if isinstance(r, (tuple, list)) else r
                r = r.to_dense() if r.is_mkldnn else r
                r = r.abs() if r.dtype != torch.bool else r
                r = r.double()
                return torch.where(r.isfinite(), r, 0).mean().item() if r.numel() else 0.0
        return run, value
    return row


def numpy_row(spec):
    """The same in NumPy; None if NumPy has no such function."""
    if not numpy_has(spec):
        return None
    name, *words = spec.split()
    base = name.partition(".")[0]
    call = getattr(np.fft, base[4:]) if base.startswith("fft_") else getattr(np, RENAMED.get(base, base))
    values = arguments(words, lambda x, dtype: x.astype(NUMPY[dtype]), NUMPY)
    named = {}
    if base in ALONG:
        axis = values[1] if len(values) > 1 else None
        named, values = {"axis": tuple(axis) if isinstance(axis, list) else axis}, values[:1]

    def run(n):
        for _ in range(n):
            call(*values, **named)

    def value():
        r = np.abs(np.asarray(call(*values, **named))).astype(np.float64)
        return float(np.where(np.isfinite(r), r, 0).mean())
    return run, value
