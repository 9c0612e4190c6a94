# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Rows drawn at random: operators, shapes of 1 to 5 dimensions with odd sizes, dtypes and layouts; `make bench-random`."""
import os
import random

COUNT = 200
SEED = int(os.environ.get("SEED", "1"))

UNARY = ("abs neg relu exp log sqrt rsqrt tanh sigmoid gelu silu sin cos floor round reciprocal erf softplus hardswish "
         "leaky_relu elu logical_not sign").split()
POSITIVE = {"log", "sqrt", "rsqrt", "reciprocal"}
BINARY = "add.Tensor sub.Tensor mul.Tensor div.Tensor maximum minimum gt.Tensor le.Tensor atan2 pow.Tensor_Tensor".split()
REDUCE = "sum.dim_IntList mean.dim amax amin logsumexp var.correction linalg_vector_norm".split()
SCAN = "cumsum cumprod argmax argmin max.dim min.dim sort topk any.dim cummax median.dim".split()
INTEGERS = {"abs", "neg", "relu", "sign", "logical_not", "add.Tensor", "sub.Tensor", "mul.Tensor", "maximum", "minimum",
            "gt.Tensor", "le.Tensor", "amax", "amin", "cumsum", "argmax", "argmin", "max.dim", "min.dim", "sort", "topk",
            "any.dim", "cummax", "sum.dim_IntList"}


class Draw:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def one_of(self, choices):
        return self.random.choice(choices)

    def shape(self, most=5, elements=21):
        """Sizes whose product is between 2^10 and 2^elements; half of them are odd."""
        n, left, sizes = self.random.randint(1, most), 2 ** self.random.uniform(10, elements), []
        for i in range(n):
            size = left ** (1 / (n - i)) * 2 ** self.random.uniform(-1.5, 1.5) if i < n - 1 else left
            size = max(1, int(size))
            sizes.append(size | 1 if self.random.random() < 0.5 and size > 1 else size)
            left = max(1, left / sizes[-1])
        self.random.shuffle(sizes)
        return sizes

    def dtype(self, op):
        return self.one_of(["f32", "f32", "bf16", "f64"] + ["i64", "i32"] * (op in INTEGERS))

    def layout(self):
        return self.one_of(["", "", "", ":t", ":s2"])


def text(dtype, sizes, marks=""):
    return f"{dtype}[{','.join(map(str, sizes))}]{marks}"


def unary(d):
    op = d.one_of(UNARY)
    return f"{op} {text(d.dtype(op), d.shape(), d.layout() + ':p' * (op in POSITIVE))}"


def binary(d):
    op = d.one_of(BINARY)
    dtype, sizes, positive = d.dtype(op), d.shape(), ":p" * op.startswith(("pow", "div"))
    second = [1 if d.random.random() < 0.25 else n for n in sizes][d.random.randint(0, 1) * (len(sizes) > 1):]
    return f"{op} {text(dtype, sizes, d.layout() + positive)} {text(dtype, second, d.layout() + positive)}"


def reduction(d):
    op, sizes = d.one_of(REDUCE), d.shape()
    dims = sorted(d.random.sample(range(len(sizes)), d.random.randint(1, len(sizes))))
    order = " 2" if op == "linalg_vector_norm" else ""
    return f"{op} {text(d.dtype(op), sizes, d.layout())}{order} ({','.join(map(str, dims))})"


def scan(d):
    op, sizes = d.one_of(SCAN), d.shape()
    x, dim = text(d.dtype(op), sizes, d.layout()), d.random.randrange(len(sizes))
    return f"topk {x} {min(7, sizes[dim])} {dim}" if op == "topk" else f"{op} {x} {dim}"


def rows_of(d):
    op, sizes, dtype = d.one_of(["_softmax", "_log_softmax", "native_layer_norm", "softmax_backward"]), d.shape(4), \
        d.one_of(["f32", "bf16", "f64"])
    x, n = text(dtype, sizes), sizes[-1]
    if op == "native_layer_norm":
        return f"{op} {x} ({n}) {dtype}[{n}] {dtype}[{n}] 0.00001"
    dim = d.random.randrange(len(sizes))
    return f"_softmax_backward_data {x} {x} {dim} {dtype}" if op == "softmax_backward" else f"{op} {x} {dim} false"


def indexed(d):
    op, sizes = d.one_of(["gather", "index_select", "scatter_add", "index_add", "flip", "cat", "roll"]), d.shape(4, 20)
    dtype, dim = d.one_of(["f32", "bf16", "i64"]), d.random.randrange(len(sizes))
    x, n = text(dtype, sizes), sizes[dim]
    index = text("i64", sizes, f"<{n}")
    return {"gather": f"gather {x} {dim} {index}", "index_select": f"index_select {x} {dim} i64[{n}]<{n}",
            "scatter_add": f"scatter_add {x} {dim} {index} {x}", "index_add": f"index_add {x} {dim} i64[{n}]<{n} {x}",
            "flip": f"flip {x} ({dim})", "cat": f"cat {x}*3 {dim}", "roll": f"roll {x} (3) ({dim})"}[op]


def product(d):
    m, k, n = (int(2 ** d.random.uniform(2, 9.5)) | d.random.randint(0, 1) for _ in range(3))
    dtype = d.one_of(["f32", "f32", "bf16", "f64"])
    b = d.random.randint(2, 9)
    if d.random.random() < 0.5:
        return f"mm {dtype}[{m},{k}]{d.one_of(['', ':t'])} {dtype}[{k},{n}]{d.one_of(['', ':t'])}"
    return f"bmm {dtype}[{b},{m},{k}] {dtype}[{b},{k},{n}]{d.one_of(['', ':t'])}"


def convolution(d):
    dims, dtype = d.random.randint(1, 3), d.one_of(["f32", "f32", "bf16"])
    k, s, groups = d.one_of([1, 3, 5]), d.random.randint(1, 2), d.one_of([1, 1, 2])
    ci, co = (groups * d.random.randint(1, 40) for _ in range(2))
    size = {1: (60, 900), 2: (9, 60), 3: (5, 18)}[dims]
    sizes = [d.random.randint(1, 4), ci] + [max(k, d.random.randint(*size)) for _ in range(dims)]

    def all_of(n):
        return "(" + ",".join([str(n)] * dims) + ")"
    return (f"convolution {text(dtype, sizes)} {text(dtype, [co, ci // groups] + [k] * dims)} {dtype}[{co}] {all_of(s)} "
            f"{all_of(k // 2)} {all_of(1)} false {all_of(0)} {groups}")


def movement(d):
    sizes, dtype = d.shape(), d.one_of(["f32", "bf16", "f64", "i64"])
    kind = d.one_of(["clone", "to", "where", "masked_fill"])
    x = text(dtype, sizes, d.layout())
    if kind == "clone":
        return f"clone {x}"
    if kind == "to":
        return f"_to_copy {x} {d.one_of([t for t in ('f32', 'bf16', 'f64', 'i64') if t != dtype])}"
    mask = text("bool", sizes)
    return f"where.self {mask} {x} {x}" if kind == "where" else f"masked_fill.Scalar {x} {mask} 1"


def of_models(d):
    """Operators of models that the other kinds do not draw: pooling, norms, embedding, padding, losses, addcmul."""
    dtype, n, c, h, w = d.one_of(["f32", "f32", "bf16"]), *(d.random.randint(*r) for r in ((1, 6), (1, 40), (6, 60), (6, 60)))
    image, channels = text(dtype, [n, c, h, w]), text(dtype, [c])
    sizes, real = d.shape(4), d.one_of(["f32", "bf16", "f64"])
    x, rows, cols = text(real, sizes, d.layout()), d.random.randint(10, 3000), d.random.randint(3, 400)
    return d.one_of([
        f"max_pool2d_with_indices {image} (3,3) (2,2) (1,1)", f"avg_pool2d {image} (3,3) (2,2) (1,1)",
        f"native_batch_norm {image} {channels} {channels} - - true 0.1 0.00001",
        f"native_group_norm {image} {channels} {channels} {n} {c} {h * w} 1 0.00001",
        f"constant_pad_nd {image} (1,2,3,1)", f"stack {x}*3 0", f"clamp {x} -0.5 0.5",
        f"embedding {text(real, [rows, cols])} i64[{d.random.randint(5, 3000)}]<{rows}",
        f"scatter.src {text(real, [rows, cols])} 1 i64[{rows},{cols}]<{cols} {text(real, [rows, cols])}",
        f"mse_loss {x} {text(real, sizes)}", f"addcmul {x} {text(real, sizes)} {text(real, sizes)}",
        f"lerp.Scalar {x} {text(real, sizes)} 0.25", f"masked_select {text(real, sizes)} {text('bool', sizes)}",
        f"nonzero {text('bool', sizes)}", f"addmm {real}[{cols}] {real}[{rows},33] {real}[33,{cols}]"])


KINDS = [unary, unary, binary, binary, reduction, reduction, scan, rows_of, indexed, product, convolution, movement, of_models]


def sampled():
    d, seen = Draw(SEED), {}
    while len(seen) < COUNT:
        spec = d.one_of(KINDS)(d)
        if len(spec) < 250:
            seen[spec] = None
    yield from seen
