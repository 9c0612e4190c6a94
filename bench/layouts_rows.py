# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Rows of sparse and quantized operators; bench/ours/layouts.c describes the operands."""

# Rows and columns, and entries: densities of 0.1, 1 and 10 %, and ten entries in a row.
MATRICES = [(1000, 1000), (1000, 10000), (1000, 100000), (10000, 100000), (10000, 1000000), (100000, 1000000)]


def sparse_products():
    for m, n in MATRICES:
        for columns in (1, 4, 16, 64, 256):
            if columns * m > 10 ** 7:
                continue
            yield f"mm f32[{m},{m}]@{n}:c f32[{m},{columns}]"
            if columns in (1, 16, 256):
                yield f"mm f64[{m},{m}]@{n}:c f64[{m},{columns}]"
            if columns in (1, 16, 64):
                yield f"mm f32[{m},{m}]@{n}:k f32[{m},{columns}]"
    for columns in (1, 16, 64):
        yield f"mm f32[10000,10000]@1000000:z:c f32[10000,{columns}]"
        yield f"mm bf16[1000,1000]@10000:c bf16[1000,{columns}]"
        yield f"mm f32[{columns},1000] f32[1000,1000]@10000:c"
        yield f"mm f32[{columns},10000] f32[10000,10000]@1000000:c"
    yield "addmm f32[1000,64] f32[1000,1000]@10000:c f32[1000,64]"
    for layout in "ck":
        for m, n in ((1000, 10000), (10000, 100000), (100000, 300000)):
            yield f"mm f32[{m},{m}]@{n}:{layout} f32[{m},{m}]@{n}:{layout}"
    for m, n, k in ((1000, 10000, 64), (1000, 100000, 64), (10000, 100000, 256)):
        yield f"_sparse_sampled_mm f32[{m},{k}] f32[{k},{m}] f32[{m},{m}]@{n}:c"
    for m, n, columns in ((1000, 10000, 16), (1000, 100000, 64), (10000, 100000, 64)):
        for layout in "ck":
            yield f"backward:_sparse_mm f32[{m},{m}]@{n}:{layout} f32[{m},{columns}]"


def sparse():
    yield from sparse_products()
    for layout in "ck":
        for m, n in ((1000, 10000), (1000, 100000), (10000, 1000000)):
            x = f"f32[{m},{m}]@{n}:{layout}"
            yield f"add.Tensor {x} {x}"
            yield f"t {x}"
            if m == 1000:
                yield f"to_dense {x}"
            yield f"to_sparse_csr f32[{m},{m}]@{n}:k" if layout == "k" else f"to_sparse {x}"
    for sizes, n in (("1000,100", 100000), ("10000,10000", 100000), ("100000,100000", 1000000)):
        yield f"coalesce f32[{sizes}]@{n}"
        yield f"backward:coalesce f32[{sizes}]@{n}"
        yield f"mul.Tensor f32[{sizes}]@{n}:k f32[{sizes}]@{n}:k"
        yield f"sum.dim_IntList f32[{sizes}]@{n}:k (1)"
    for m, n in ((1000, 1000), (1000, 100000), (3000, 90000)):
        yield f"to_sparse f32[{m},{m}]@{n}:d"
        yield f"to_sparse_csr f32[{m},{m}]@{n}:d"


# Channels in, channels out, height, kernel, stride, groups: layers of ResNet-18 and 50, then of MobileNetV2.
IMAGES = [(3, 64, 224, 7, 2, 1), (64, 64, 56, 1, 1, 1), (64, 64, 56, 3, 1, 1), (64, 256, 56, 1, 1, 1), (128, 128, 28, 3, 1, 1),
          (256, 512, 56, 1, 2, 1), (256, 256, 14, 3, 1, 1), (1024, 256, 14, 1, 1, 1), (256, 512, 14, 3, 2, 1),
          (512, 512, 7, 3, 1, 1), (2048, 512, 7, 1, 1, 1), (3, 32, 224, 3, 2, 1), (32, 32, 112, 3, 1, 32),
          (96, 96, 112, 3, 2, 96), (384, 384, 14, 3, 1, 384), (96, 24, 56, 1, 1, 1), (64, 384, 14, 1, 1, 1), (64, 64, 56, 3, 1, 4)]


def quantized():
    for sizes in ("64,128", "1024,1024", "4096,2048"):
        rows = sizes.partition(",")[0]
        for d, zero in (("u8", 128), ("i8", 0)):
            yield f"quantize_per_tensor f32[{sizes}] 0.01 {zero} {d}"
            yield f"dequantize.self {d}[{sizes}]:q"
        yield f"quantize_per_channel f32[{sizes}] f64[{rows}]:p i64[{rows}]<10 0 i8"
        yield f"dequantize.self i8[{sizes}]:Q"
        yield f"int_repr u8[{sizes}]:q"
        yield f"relu u8[{sizes}]:q"
        for op in ("add", "mul"):
            yield f"quantized_{op} u8[{sizes}]:q u8[{sizes}]:q 0.02 100"
    for m in (1, 32, 512):
        for k, n in ((768, 768), (768, 3072), (3072, 768), (1024, 4096), (4096, 1024)):
            for relu in ("false", "true")[:1 + (m == 32)]:
                yield f"quantized_linear u8[{m},{k}]:q i8[{n},{k}]:Q f32[{n}] 0.5 128 {relu}"
    for b in (1, 8):
        for ci, co, h, k, s, g in IMAGES:
            weight = f"i8[{co},{ci // g},{k},{k}]:Q f32[{co}]"
            yield f"quantized_conv2d u8[{b},{ci},{h},{h}]:q {weight} ({s},{s}) ({k // 2},{k // 2}) (1,1) {g} 0.2 128 true"
