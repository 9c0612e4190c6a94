# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The least time of a row on this machine: its bytes over STREAM's rate, or its operations over that of multiply-adds.

The bytes are those of its inputs and results, each once. The rate is the greater of copy and triad on arrays of that
size, in the first cache that holds them or in memory. The operations are those of products and convolutions.
"""
import math
import re

STREAMS = ("l1", "l2", "l3", "dram")
KINDS = ("f32", "f64", "bf16")


class Limits:
    """Rates in bytes and operations per ns, the best of all measurements. side: bench/ours."""

    def __init__(self, side):
        self.side, self.streams, self.flops = side, [], {}
        for level in STREAMS:
            rates = [self.rate(f"{name}_{level}") for name in ("copy", "triad")]
            self.streams.append((rates[1][0], max(r[0] / r[2] for r in rates)))
        for kind in KINDS:
            _, flops, ns = self.rate("fma_" + kind)
            self.flops[kind] = flops / ns
        # bf16 can be converted where the processor multiplies pairs of it more slowly.
        self.flops["bf16"] = max(self.flops["bf16"], self.flops["f32"])

    def rate(self, row):
        """Bytes, operations and the ns that they take at best."""
        times = self.side.ask("time", 15, 4, row)
        work = self.side.ask("work", row)
        if not isinstance(times, list) or not isinstance(work, list):
            raise RuntimeError(f"{row}: {times} {work}")
        return int(work[0]), int(work[1]), min(map(float, times))

    def least(self, row):
        """The least time of a row in ns, and what limits it; None if its work is not known."""
        work = self.side.ask("work", row)
        if not isinstance(work, list):
            return None
        bytes_ = int(work[0])
        rate = next((r for size, r in self.streams if size >= bytes_), self.streams[-1][1])
        flops, kind = operations(row)
        times = [(bytes_ / rate, "memory"), (flops / self.flops[kind], "arithmetic")]
        return max(times)

    def text(self):
        streams = ", ".join(f"{r:.0f} GB/s in {name.upper()}" for name, (_, r) in zip(STREAMS, self.streams))
        return streams + "; " + ", ".join(f"{self.flops[k]:.0f} GFLOP/s {k}" for k in KINDS)


def shapes(row):
    """The dtype and the sizes of each tensor."""
    return [(d, [int(n) for n in sizes.split(",") if n]) for d, sizes in re.findall(r"\b([a-z]+\d+)\[([\d,]*)\]", row)]


def operations(row):
    """Multiplications and additions of a row, and the dtype of its operands: 0 where memory is the limit."""
    name = row.split()[0].partition(".")[0]
    tensors = shapes(row)
    kind = tensors[0][0] if tensors and tensors[0][0] in KINDS else "f32"
    sizes = [s for _, s in tensors]
    if "@" in row:  # the operations of sparse products depend on the entries
        return 0, kind
    if name in ("mm", "bmm", "mv") and len(sizes) > 1:
        return 2 * math.prod(sizes[0]) * (1 if name == "mv" else sizes[1][-1]), kind
    if name == "addmm" and len(sizes) > 2:
        return 2 * math.prod(sizes[1]) * sizes[2][-1], kind
    if name in ("linear", "mkldnn_linear") and len(sizes) > 1:
        return 2 * math.prod(sizes[0]) * sizes[1][0], kind
    if name == "scaled_dot_product_attention" and len(sizes) > 1:
        return 4 * math.prod(sizes[0]) * sizes[1][-2] / (2 if row.endswith("true") else 1), kind
    if name == "convolution_backward" and len(sizes) > 2:  # of the gradient: every output uses a weight's row
        return 2 * math.prod(sizes[0]) * math.prod(sizes[2][1:]), kind
    if name in ("convolution", "mkldnn_convolution") and len(sizes) > 1:
        return 2 * outputs(row, name, sizes) * math.prod(sizes[1][1:]), kind
    return 0, kind


def outputs(row, name, sizes):
    """The elements of the result of a convolution."""
    lists = [[int(n) for n in l.split(",")] for l in re.findall(r"\(([\d,]+)\)", row)]
    steps, pads = (lists[0], lists[1]) if name == "convolution" else (lists[1], lists[0])
    space = [(n + 2 * p - k) // s + 1 for n, k, s, p in zip(sizes[0][2:], sizes[1][2:], steps, pads)]
    return sizes[0][0] * sizes[1][0] * math.prod(space)
