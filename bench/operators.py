# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Rows that compare operators with the peers, over sizes, layouts and dtypes; see bench/ours/call.c."""
import re

from layouts_rows import quantized, sparse
from models import models
from sampled import sampled

# Elements of an operand that fit L1 and L2, that need L3, and that need memory (f32).
SIZES = {"L1": (32, 64), "L2": (128, 512), "L3": (512, 1024), "DRAM": (4096, 2048)}

# ---- elementwise ----------------------------------------------------------------------------

REAL = ["f32", "bf16"]
ANY = REAL + ["i64"]
UNARY = {"abs": ANY, "neg": ANY, "relu": ANY, "exp": REAL, "log": REAL, "sqrt": REAL,
         "tanh": REAL, "sigmoid": REAL, "gelu": REAL, "floor": REAL, "sin": REAL}
BINARY = {"add.Tensor": ANY, "sub.Tensor": ANY, "mul.Tensor": ANY, "div.Tensor": REAL,
          "maximum": ANY, "gt.Tensor": ANY, "eq.Tensor": ANY, "pow.Tensor_Tensor": REAL,
          "bitwise_and.Tensor": ["i64"]}
POSITIVE = {"log", "sqrt", "pow.Tensor_Tensor"}


def operand(op, dtype, m, n, marks=""):
    return f"{dtype}[{m},{n}]{marks}{':p' if op in POSITIVE else ''}"


def elementwise():
    for m, n in SIZES.values():
        for op, dtypes in UNARY.items():
            yield from (f"{op} {operand(op, d, m, n, layout)}"
                        for d in dtypes for layout in ("", ":t", ":s2", ":s3"))
        for op, dtypes in BINARY.items():
            for d in dtypes:
                first = operand(op, d, m, n)
                seconds = ((m, n, ""), (1, n, ""), (m, 1, ""), (m, n, ":t"), (m, n, ":s2"))
                yield from (f"{op} {first} {operand(op, d, *second)}" for second in seconds)
                yield from (f"{op} {x} {x}" for x in (operand(op, d, m, n, layout)
                                                      for layout in (":t", ":s2", ":s3")))
        for d in ANY:
            x = f"{d}[{m},{n}]"
            half = "2" if d == "i64" else "0.5"
            yield from (f"{op}.Scalar {x} {half}" for op in ("add", "mul", "gt"))
            yield f"clamp {x} -{half} {half}"
            yield f"where.self bool[{m},{n}] {x} {x}"
            yield f"where.self bool[{m},{n}]:s2 {x}:s2 {d}[]"
            yield f"clone {x}:t"
            yield f"_to_copy {x} {'bf16' if d == 'f32' else 'f32'}"


# ---- reductions, scans, sorting, normalisation -------------------------------------------------

def reduce():
    for m, n in SIZES.values():
        for d in ANY:
            x = f"{d}[{m},{n}]"
            yield f"sum {x}"
            yield from (f"sum.dim_IntList {x} ({i})" for i in (0, 1))
            yield from (f"amax {x} ({i})" for i in (0, 1))
            yield from (f"max.dim {x} {i}" for i in (0, 1))
            yield from (f"argmax {x} {i}" for i in (0, 1))
            yield from (f"prod.dim_int {x} {i}" for i in (0, 1))
            yield from (f"cumsum {x} {i}" for i in (0, 1))
            yield from (f"sort {x} {i}" for i in (0, 1))
            yield f"topk {x} 5 1"
            if d == "i64":
                continue
            yield from (f"mean.dim {x} ({i})" for i in (0, 1))
            yield from (f"var.correction {x} ({i})" for i in (0, 1))
            yield from (f"_softmax {x} {i} false" for i in (0, 1))
            yield from (f"_log_softmax {x} {i} false" for i in (0, 1))
            yield f"logsumexp {x} (1)"
            yield f"native_layer_norm {x} ({n}) {d}[{n}] {d}[{n}] 0.00001"
            yield f"_softmax_backward_data {x} {x} 1 {d}"


# Short and long lines, few columns, dimensions in the middle.
SHAPES = [(3000, 100), (65536, 8), (8, 65536), (32, 64, 128)]


def shapes():
    for shape in SHAPES:
        last = len(shape) - 1
        for d in ANY:
            x = f"{d}[{','.join(map(str, shape))}]"
            yield f"sum {x}"
            for i in range(len(shape)):
                yield from (f"{op} {x} ({i})" for op in ("sum.dim_IntList", "amax"))
                yield from (f"{op} {x} {i}" for op in ("argmax", "cumsum"))
            if d == "i64":
                continue
            for i in range(len(shape)):
                yield from (f"{op} {x} ({i})" for op in ("logsumexp", "var.correction"))
                yield from (f"{op} {x} {i} false" for op in ("_softmax", "_log_softmax"))
            yield f"_softmax_backward_data {x} {x} {last} {d}"
        if len(shape) == 2:
            x, n = f"f32[{shape[0]},{shape[1]}]", shape[1]
            yield f"scatter_add {x} 1 i64[{shape[0]},{n}]<{n} {x}"
            yield f"cat {x}*8 1"
    yield from (f"sum.dim_IntList f32[32,64,128] {dims}" for dims in ("(0,2)", "(0,1)"))


def normalize():
    for b, c, h in ((8, 16, 8), (32, 64, 28), (4, 512, 7)):
        x, w, p = f"f32[{b},{c},{h},{h}]", f"f32[{c}]", f"f32[{c}]:p"
        yield f"native_group_norm {x} {w} {w} {b} {c} {h * h} 4 0.00001"
        yield f"native_batch_norm {x} {w} {w} - - true 0.1 0.00001"
        yield f"native_batch_norm {x} {w} {w} {w} {p} false 0.1 0.00001"
        yield f"native_batch_norm_backward {x} {x} {w} - - {w} {p} true 0.00001 (1,1,1)"
    for m, n in ((512, 768), (32768, 64)):
        x, w = f"f32[{m},{n}]", f"f32[{n}]"
        yield f"native_layer_norm {x} ({n}) {w} {w} 0.00001"
        yield (f"native_layer_norm_backward {x} {x} ({n}) f32[{m},1] f32[{m},1]:p {w} {w} (1,1,1)")
    for n, c in ((128, 1000), (65536, 10)):
        yield f"nll_loss_forward f32[{n},{c}] i64[{n}]<{c} - 1 -100"
    yield "embedding_dense_backward f32[4096,256] i64[4096]<30000 30000 -1 false"


# ---- movement and indices ----------------------------------------------------------------------

def movement():
    for m, n in SIZES.values():
        for d in ANY:
            x = f"{d}[{m},{n}]"
            rows, cols = f"i64[{m},{n}]<{m}", f"i64[{m},{n}]<{n}"
            yield f"gather {x} 0 {rows}"
            yield f"gather {x} 1 {cols}"
            yield f"scatter.src {x} 1 {cols} {x}"
            yield f"scatter_add {x} 0 {rows} {x}"
            yield f"scatter_add {x} 1 {cols} {x}"
            yield f"index_select {x} 0 i64[{m}]<{m}"
            yield f"index_select {x} 1 i64[{n}]<{n}"
            yield f"index_add {x} 0 i64[{m}]<{m} {x}"
            yield f"index_add {x} 1 i64[{n}]<{n} {x}"
            yield f"index_add {d}[{m * n}] 0 i64[{m * n}]<{m * n} {d}[{m * n}]"
            yield f"cat {x}*4 0"
            yield f"cat {x}*4 1"
            yield f"stack {x}*4 0"
            yield f"flip {x} (0)"
            yield f"flip {x} (1)"
            yield f"roll {x} (3) (1)"
            yield f"repeat {x} (2,2)"
            yield f"masked_fill.Scalar {x} bool[{m},{n}] 1"
            yield f"constant_pad_nd {x} (1,1,1,1)"
            yield f"embedding {d}[{m},{n}] i64[{m}]<{m}" if d != "i64" else f"nonzero {x}"


# ---- products ------------------------------------------------------------------------------------

def product():
    for d in REAL:
        for n in (8, 16, 32, 64, 128, 256, 512, 1024, 2048):
            yield f"mm {d}[{n},{n}] {d}[{n},{n}]"
        for n in (8, 32, 256, 1024):
            yield f"mm {d}[{n},{n}]:t {d}[{n},{n}]"
            yield f"mm {d}[{n},{n}] {d}[{n},{n}]:t"
        yield f"addmm {d}[1024] {d}[32,1024] {d}[1024,1024]:t"
        for m, k, n in ((1, 1024, 1024), (16, 1024, 1024), (1024, 16, 1024), (1024, 1024, 16),
                        (64, 4096, 64), (4096, 64, 64)):
            yield f"mm {d}[{m},{k}] {d}[{k},{n}]"
        for b, n in ((64, 8), (64, 32), (16, 128), (8, 256)):
            yield f"bmm {d}[{b},{n},{n}] {d}[{b},{n},{n}]"
        yield f"linear {d}[128,768] {d}[3072,768] {d}[3072]"


# ---- convolution: the layers of ResNet-50 at batch 1, depthwise ones of MobileNet --------------------

# Channels in, channels out, height, kernel, stride, groups.
LAYERS = [(3, 64, 224, 7, 2, 1), (64, 64, 56, 1, 1, 1), (64, 64, 56, 3, 1, 1), (64, 256, 56, 1, 1, 1),
          (256, 64, 56, 1, 1, 1), (256, 128, 56, 1, 1, 1), (128, 128, 56, 3, 2, 1),
          (128, 512, 28, 1, 1, 1), (256, 512, 56, 1, 2, 1), (512, 128, 28, 1, 1, 1),
          (128, 128, 28, 3, 1, 1), (512, 256, 28, 1, 1, 1), (256, 256, 28, 3, 2, 1),
          (256, 1024, 14, 1, 1, 1), (512, 1024, 28, 1, 2, 1), (1024, 256, 14, 1, 1, 1),
          (256, 256, 14, 3, 1, 1), (1024, 512, 14, 1, 1, 1), (512, 512, 14, 3, 2, 1),
          (512, 2048, 7, 1, 1, 1), (1024, 2048, 14, 1, 2, 1), (2048, 512, 7, 1, 1, 1),
          (512, 512, 7, 3, 1, 1), (32, 32, 112, 3, 1, 32), (96, 96, 112, 3, 2, 96),
          (384, 384, 14, 3, 1, 384)]


def convolution():
    for ci, co, h, k, s, g in LAYERS:
        p, out = k // 2, (h + 2 * (k // 2) - k) // s + 1
        x, w, grad = f"f32[1,{ci},{h},{h}]", f"f32[{co},{ci // g},{k},{k}]", f"f32[1,{co},{out},{out}]"
        rest = f"({s},{s}) ({p},{p}) (1,1) false (0,0) {g}"
        yield f"convolution {x} {w} - {rest}"
        yield f"convolution_backward {grad} {x} {w} - {rest} (1,0,0)"
        yield f"convolution_backward {grad} {x} {w} - {rest} (0,1,0)"
    # 3 by 3 taps at batch 8: weights are read often enough to be worth the transform.
    for c, h, s in ((64, 56, 1), (128, 56, 2), (128, 28, 1), (256, 28, 2), (256, 14, 1), (512, 14, 2),
                    (512, 7, 1)):
        yield f"convolution f32[8,{c},{h},{h}] f32[{c},{c},3,3] - ({s},{s}) (1,1) (1,1) false (0,0) 1"
    for h, c in ((112, 64), (56, 64)):
        yield f"max_pool2d_with_indices f32[1,{c},{h},{h}] (3,3) (2,2) (1,1)"
        yield f"avg_pool2d f32[1,{c},{h},{h}] (3,3) (2,2) (1,1)"


# ---- the blocked layout: the same layers and the operators between them; the peer is PyTorch's mkldnn -----

def blocked():
    for d in REAL:
        for ci, co, h, k, s, g in LAYERS:
            p = k // 2
            yield (f"mkldnn_convolution {d}[1,{ci},{h},{h}]:b {d}[{co},{ci // g},{k},{k}]:r - "
                   f"({p},{p}) ({s},{s}) (1,1) {g}")
        for m, k, n in ((1, 1024, 1024), (16, 1024, 1024), (128, 768, 3072), (32, 2048, 1000)):
            for mark in "br":
                yield f"mkldnn_linear {d}[{m},{k}]:b {d}[{n},{k}]:{mark} {d}[{n}]:b"
        for c, h in ((64, 112), (256, 14)):
            x = f"{d}[1,{c},{h},{h}]:b"
            yield f"relu {x}"
            yield f"add.Tensor {x} {x}"
            yield f"mkldnn_max_pool2d {x} (3,3) (2,2) (1,1)"
            yield f"avg_pool2d {x} (2,2) (2,2)"
            yield f"to_dense {x}"
            yield f"to_mkldnn {x[:-2]}"


# ---- Fourier transforms -------------------------------------------------------------------------------

# Lines: powers of two, products of small primes, primes; one long line and batches of short ones.
LINES = [(1, 256), (1, 1024), (1, 4096), (1, 65536), (1, 1048576), (1, 1155), (1, 10000), (1, 44100), (1, 1009),
         (1, 10007), (256, 16), (256, 64), (256, 100), (256, 105), (256, 128), (256, 210), (256, 251), (256, 256),
         (64, 1000), (64, 1009), (64, 1024), (16, 4096)]


def fft():
    for real, complex_ in (("f32", "c64"), ("f64", "c128")):
        for m, n in LINES:
            yield f"fft_fft {complex_}[{m},{n}] - -1"
            yield f"fft_rfft {real}[{m},{n}] - -1"
            yield f"fft_irfft {complex_}[{m},{n // 2 + 1}] {n} -1"
        # Frames of speech, images, layers that multiply spectra.
        for n in (400, 512):
            yield f"fft_rfft {real}[1000,{n}] - -1"
            yield f"fft_irfft {complex_}[1000,{n // 2 + 1}] {n} -1"
        for b, n in ((3, 224), (1, 256), (64, 64), (1, 1024)):
            yield f"fft_fft2 {complex_}[{b},{n},{n}] - (-2,-1)"
            yield f"fft_rfft2 {real}[{b},{n},{n}] - (-2,-1)"
            yield f"fft_irfft2 {complex_}[{b},{n},{n // 2 + 1}] ({n},{n}) (-2,-1)"
        yield f"fft_fft {complex_}[16,256,64] - 1"
        yield f"fft_rfft {real}[16,256,64] - 1"
        yield f"fft_irfft {complex_}[16,129,64] 256 1"


# Operators that NumPy has with the same results; its sort returns no indices, so it is not compared.
NUMPY = {"add", "sub", "mul", "div", "pow", "maximum", "neg", "abs", "gt", "eq", "floor", "exp", "log",
         "sqrt", "tanh", "sin", "where", "sum", "mean", "prod", "amax", "argmax", "cumsum",
         "bitwise_and", "mm"}


def numpy_has(spec):
    base = spec.split()[0].partition(".")[0]
    return base.startswith("fft_") or base in NUMPY and not re.search(r"\bbf16|\bc64|:b|@|:q", spec)


def mark(group, spec):
    """The required ratio of the row: 2 for products below 64."""
    if group in LEAST:
        return LEAST[group]
    sizes = [int(n) for n in re.findall(r"\d+(?=[,\]])", spec)]
    if "@" in spec:
        return 1
    return 2 if spec.startswith(("mm ", "bmm ")) and max(sizes[-2:]) < 64 else 1


# The required geometric mean of a group; each row must reach 1.0 as well, drawn ones LEAST.
LEAST = {"random": 0.8}
GROUPS = {"elementwise": (elementwise, 1.5), "reduce": (reduce, 1.5), "shapes": (shapes, 1.5),
          "normalize": (normalize, 1.5), "movement": (movement, 1.5),
          "product": (product, None), "convolution": (convolution, None),
          "blocked": (blocked, None), "sparse": (sparse, None), "quantized": (quantized, None), "fft": (fft, None), "models": (models, None),
          "random": (sampled, None)}
