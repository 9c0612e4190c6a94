# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Rows with the shapes that models have: transformers, vision, speech, recommendation; see bench/ours/call.c."""

BOTH = ("f32", "bf16")


def transformers():
    """GPT-2, BERT base, a layer of 4096 and ViT, as the operators that their layers call."""
    for d in BOTH:
        for tokens, width, inner in ((512, 768, 3072), (128, 1024, 4096), (1, 4096, 11008), (197, 384, 1536)):
            x = f"{d}[{tokens},{width}]"
            yield f"linear {x} {d}[{3 * width},{width}] {d}[{3 * width}]"
            yield f"linear {x} {d}[{inner},{width}] {d}[{inner}]"
            yield f"linear {d}[{tokens},{inner}] {d}[{width},{inner}] {d}[{width}]"
            yield f"gelu {d}[{tokens},{inner}]"
            yield f"gelu_backward {d}[{tokens},{inner}] {d}[{tokens},{inner}]"
            yield f"silu {d}[{tokens},{inner}]"
            yield f"native_layer_norm {x} ({width}) {d}[{width}] {d}[{width}] 0.00001"
            yield f"add.Tensor {x} {x}"
        for b, h, t, k in ((1, 12, 128, 64), (4, 12, 256, 64), (8, 8, 64, 32), (1, 32, 512, 128)):
            q = f"{d}[{b},{h},{t},{k}]"
            yield f"scaled_dot_product_attention {q} {q} {q} - 0.0 true"
            yield f"scaled_dot_product_attention {q} {q} {q}"
            yield f"bmm {d}[{b * h},{t},{k}] {d}[{b * h},{k},{t}]"
            yield f"bmm {d}[{b * h},{t},{k}] {d}[{b * h},{k},{t}]:t"
            yield f"bmm {d}[{b * h},{t},{t}] {d}[{b * h},{t},{k}]"
            yield f"_softmax {d}[{b},{h},{t},{t}] -1 false"
            yield f"_softmax_backward_data {d}[{b},{h},{t},{t}] {d}[{b},{h},{t},{t}] -1 {d}"
        yield f"_log_softmax {d}[128,50257] -1 false"
        yield f"_log_softmax_backward_data {d}[128,50257] {d}[128,50257] -1 {d}"
        yield f"embedding {d}[50257,768] i64[8,128]<50257"
        yield f"native_layer_norm_backward {d}[512,768] {d}[512,768] (768) f32[512,1] f32[512,1]:p {d}[768] {d}[768] (1,1,1)"
        yield f"masked_fill.Scalar {d}[4,12,128,128] bool[128,128] -1.0"
    yield "nll_loss_forward f32[512,50257] i64[512]<50257 - 1 -100"
    yield "embedding_dense_backward f32[1024,768] i64[1024]<50257 50257 -1 false"


def feed_forward():
    """A linear layer and its activation in one call: GPT-2, BERT large, ViT-S, MLP-Mixer S/16 (channels, tokens)."""
    for d in BOTH:
        for rows, width, inner in ((1, 768, 3072), (32, 768, 3072), (128, 768, 3072), (512, 768, 3072), (2048, 768, 3072),
                                   (128, 1024, 4096), (197, 384, 1536), (196, 512, 2048), (512, 196, 256)):
            yield f"_addmm_activation {d}[{inner}] {d}[{rows},{width}] {d}[{width},{inner}]:t"
            yield f"_addmm_activation {d}[{inner}] {d}[{rows},{width}] {d}[{width},{inner}]:t 1 1 true"


def convolution(d, co, x, taps, y, rest):
    """Forward, gradient of the input, gradient of the weights: co channels; the sizes of input, taps and result."""
    x, w, y = f"{d}[{x}]", f"{d}[{co},{taps}]", f"{d}[{y}]"
    yield f"convolution {x} {w} {d}[{co}] {rest}"
    yield f"convolution_backward {y} {x} {w} - {rest} (1,0,0)"
    yield f"convolution_backward {y} {x} {w} - {rest} (0,1,0)"


def vision():
    for d in BOTH:
        for b, ci, co, h, k, s, g in ((8, 3, 64, 112, 7, 2, 1), (8, 64, 64, 28, 3, 1, 1), (8, 128, 256, 14, 3, 2, 1),
                                      (8, 256, 1024, 14, 1, 1, 1), (2, 512, 512, 7, 3, 1, 1), (4, 96, 96, 56, 7, 1, 96),
                                      (4, 192, 192, 28, 3, 1, 192), (4, 144, 144, 28, 5, 2, 144), (4, 32, 64, 56, 3, 1, 4),
                                      (1, 3, 32, 224, 3, 2, 1), (1, 256, 256, 14, 3, 1, 1), (8, 512, 512, 7, 3, 1, 1),
                                      (8, 2048, 512, 7, 1, 1, 1), (4, 96, 96, 28, 3, 2, 96), (1, 768, 768, 7, 7, 1, 768)):
            rest = f"({s},{s}) ({k // 2},{k // 2}) (1,1) false (0,0) {g}"
            out = (h + 2 * (k // 2) - k) // s + 1
            yield from convolution(d, co, f"{b},{ci},{h},{h}", f"{ci // g},{k},{k}", f"{b},{co},{out},{out}", rest)
        x = f"{d}[8,64,56,56]"
        yield f"native_batch_norm {x} {d}[64] {d}[64] {d}[64] {d}[64]:p false 0.1 0.00001"
        yield f"native_batch_norm {x} {d}[64] {d}[64] - - true 0.1 0.00001"
        yield f"native_batch_norm_backward {x} {x} {d}[64] - - {d}[64] {d}[64]:p true 0.00001 (1,1,1)"
        yield f"native_group_norm {x} {d}[64] {d}[64] 8 64 3136 8 0.00001"
        yield f"native_group_norm_backward {x} {x} {d}[8,8] {d}[8,8]:p {d}[64] 8 64 3136 8 (1,1,1)"
        yield f"relu {x}"
        yield f"hardswish {x}"
        yield f"max_pool2d_with_indices {x} (3,3) (2,2) (1,1)"
        yield f"_adaptive_avg_pool2d {d}[8,512,7,7] (1,1)"
        yield f"upsample_bilinear2d {d}[2,32,64,64] (128,128) false"
        yield f"upsample_nearest2d {d}[2,64,40,40] (80,80)"
        yield f"cat {d}[4,64,40,40]*3 1"
        yield f"pixel_shuffle {d}[4,64,40,40] 2"
        yield f"convolution {d}[2,16,8,28,28] {d}[32,16,3,3,3] {d}[32] (1,1,1) (1,1,1) (1,1,1) false (0,0,0) 1"
        # The transposed convolutions of a U-Net.
        for b, ci, co, h in ((1, 512, 256, 16), (1, 128, 64, 64)):
            yield f"convolution {d}[{b},{ci},{h},{h}] {d}[{ci},{co},2,2] {d}[{co}] (2,2) (0,0) (1,1) true (0,0) 1"
    yield "grid_sampler_2d f32[4,32,32,32] f32[4,32,32,2] 0 0 false"


def video():
    """R3D-18 (stride 1 and 2), the separate axes of R(2+1)D-18 and the depthwise layers of X3D."""
    for d in BOTH:
        for b, ci, co, t, h, k, s, g in ((1, 64, 64, 8, 28, (3, 3, 3), 1, 1), (1, 64, 128, 8, 28, (3, 3, 3), 2, 1),
                                         (1, 64, 144, 8, 28, (1, 3, 3), 1, 1), (1, 144, 64, 8, 28, (3, 1, 1), 1, 1),
                                         (1, 54, 54, 8, 28, (3, 3, 3), 1, 54)):
            pad = tuple(n // 2 for n in k)
            rest = "({0},{0},{0}) ({1},{2},{3}) (1,1,1) false (0,0,0) {4}".format(s, *pad, g)
            out = ",".join(str((n + 2 * p - m) // s + 1) for n, p, m in zip((t, h, h), pad, k))
            taps = f"{ci // g},{k[0]},{k[1]},{k[2]}"
            yield from convolution(d, co, f"{b},{ci},{t},{h},{h}", taps, f"{b},{co},{out}", rest)
        x, w = f"{d}[1,16,17,15,8]", f"{d}[39,16,5,5,5]"
        yield f"convolution {x} {w} {d}[39] (2,2,2) (2,2,2) (1,1,1) false (0,0,0) 1"


def audio():
    """wav2vec 2.0's feature extractor, HiFi-GAN's dilated residual blocks, Vocos' depthwise layers."""
    for d in BOTH:
        for b, ci, co, n, k, s, dil, g in ((1, 512, 512, 1599, 3, 2, 1, 1), (1, 1, 512, 16000, 10, 5, 1, 1),
                                           (1, 128, 128, 2048, 3, 1, 3, 1), (1, 64, 64, 4096, 7, 1, 5, 1),
                                           (2, 512, 512, 400, 7, 1, 1, 512)):
            pad = dil * (k // 2) if s == 1 else 0
            rest = f"({s}) ({pad}) ({dil}) false (0) {g}"
            out = (n + 2 * pad - dil * (k - 1) - 1) // s + 1
            yield from convolution(d, co, f"{b},{ci},{n}", f"{ci // g},{k}", f"{b},{co},{out}", rest)


def speech_and_signals():
    for d in BOTH:
        yield f"convolution {d}[4,80,1500] {d}[384,80,3] {d}[384] (1) (1) (1) false (0) 1"
        yield f"convolution {d}[4,384,1500] {d}[384,384,3] {d}[384] (2) (1) (1) false (0) 1"
        yield f"convolution {d}[8,256,200] {d}[256,1,31] {d}[256] (1) (15) (1) false (0) 256"
        yield f"glu {d}[8,512,200] 1"
    yield "fft_rfft f32[64,400] - -1"
    yield "stft f32[8,16000] 400 160 400 f32[400]:p false true true"
    yield "cumsum f32[16,16000] 1"


def tables_and_points():
    """Recommendation, nearest neighbours, graphs, sorting, losses, optimizers."""
    yield "cdist f32[300,64] f32[400,64]"
    yield "unique_dim f32[2000,4] 0"
    yield "_unique2 i64[300000]<100000 true true true"
    yield "sort f32[100000]"
    yield "topk f32[128,50257] 50"
    yield "bincount i64[300000]<1000"
    yield "histc f32[300000] 100 -1 1"
    yield "searchsorted.Tensor f32[10000]:o f32[100000]"
    yield "cummax f32[1000,1000] 1"
    yield "index_add f32[10000,64] 0 i64[50000]<10000 f32[50000,64]"
    yield "scatter_add f32[10000,64] 0 i64[50000,64]<10000 f32[50000,64]"
    yield "linalg_eigh f32[4,32,32]"
    for d in BOTH:
        yield f"embedding {d}[100000,64] i64[4096]<100000"
        yield f"index_add {d}[1000,128] 0 i64[4096]<1000 {d}[4096,128]"
        for n in ("1000000", "1024,1000"):
            x = f"{d}[{n}]"
            yield f"addcmul {x} {x} {x}"
            yield f"addcdiv {x} {x} {x}:p"
            yield f"lerp.Scalar {x} {x} 0.1"
            yield f"mse_loss {x} {x} 1"
            yield f"smooth_l1_loss {x} {x} 1"
            yield f"huber_loss {x} {x} 1"
            yield f"binary_cross_entropy_with_logits {x} {x} - - 1"
            yield f"sigmoid {x}"
            yield f"tanh {x}"
            yield f"exp {x}"
            yield f"sigmoid_backward {x} {x}"
            yield f"tanh_backward {x} {x}"
            yield f"sum {x}"
            yield f"linalg_vector_norm {x}"
            yield f"_to_copy {x} {'bf16' if d == 'f32' else 'f32'}"
    for op in ("exp", "log", "tanh", "sin", "erf"):
        yield f"{op} f64[100000]{':p' if op == 'log' else ''}"
    for m, k, n in ((77, 301, 513), (127, 63, 257), (1, 4095, 1001), (1000, 1001, 1)):
        yield f"mm f32[{m},{k}] f32[{k},{n}]"
        yield f"mm bf16[{m},{k}] bf16[{k},{n}]"
    yield "mv f32[4096,4096] f32[4096]"


def models():
    yield from transformers()
    yield from feed_forward()
    yield from vision()
    yield from video()
    yield from audio()
    yield from speech_and_signals()
    yield from tables_and_points()
