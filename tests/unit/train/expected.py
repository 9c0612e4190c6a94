#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Writes the numbers of test_layers.c and test_losses.c, from PyTorch.

    $(bench/peers python) tests/unit/train/expected.py layers >tests/unit/train/layers.inc
    $(bench/peers python) tests/unit/train/expected.py losses >tests/unit/train/losses.inc

Tensors are filled by a formula (fill), and a tensor is recorded as a weighted sum (checksum), both as in
tests/unit/train/filled.h. A case is a name, then name and checksum of the output, of the gradient of x and of
each parameter, and of each buffer.
"""
import math
import sys

import torch
import torch.nn.functional as F
from torch import nn

torch.set_default_dtype(torch.float64)


def fill(*sizes, seed=0):
    n = math.prod(sizes)
    return torch.tensor([math.sin(0.7 * i + seed) * 0.5 for i in range(n)]).reshape(sizes)


def weights(t):
    return torch.tensor([math.cos(0.3 * i + 1) for i in range(t.numel())]).reshape(t.shape)


def checksum(t):
    return float((t.detach().double() * weights(t)).sum())


def show(name, rows):
    print(f'\t{{ "{name}", "' + " ".join(f"{key} {value!r}" for key, value in rows) + '" },')


def layer(name, module, *x, call=None, train=True):
    module.train(train)
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_(fill(*p.shape, seed=i + 1))
    x = [t.requires_grad_() if t.is_floating_point() else t for t in x]
    y = call(module, *x) if call else module(*x)
    rows = [("y", checksum(y))]
    y.backward(weights(y))
    rows += [("x", checksum(t.grad)) for t in x if t.is_floating_point()]
    rows += [(key, checksum(p.grad)) for key, p in module.named_parameters()]
    rows += [(key, checksum(b)) for key, b in module.named_buffers()]
    show(name, rows)


def first(module, x):
    return module(x)[0]


def with_state(module, x):
    n = module.num_layers * (2 if module.bidirectional else 1)
    h, c = fill(n, 2, module.hidden_size, seed=20), fill(n, 2, module.hidden_size, seed=21)
    y, (h, c) = module(x, (h, c))
    return torch.cat([y.flatten(), h.flatten(), c.flatten()])


def gru_state(module, x):
    h = fill(module.num_layers, 2, module.hidden_size, seed=20)
    y, h = module(x, h)
    return torch.cat([y.flatten(), h.flatten()])


def twice(module, x):
    module(x)
    return module(x * 2)


def attend(**options):
    return lambda module, *x: module(*(x * 3 if len(x) == 1 else x), need_weights=False, **options)[0]


def layers():
    causal = torch.triu(torch.ones(5, 5), 1).bool()
    layer("linear", nn.Linear(4, 3), fill(2, 5, 4))
    layer("linear_no_bias", nn.Linear(4, 3, bias=False), fill(4))
    layer("embedding", nn.Embedding(7, 3, padding_idx=2), torch.tensor([[1, 2, 6], [0, 1, 1]]))
    layer("conv1d", nn.Conv1d(3, 4, 3, padding=1, bias=False), fill(2, 3, 7))
    layer("conv2d", nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), fill(2, 4, 7, 6))
    layer("conv2d_lists", nn.Conv2d(2, 3, (3, 2), stride=(1, 2), padding=(0, 1), dilation=(2, 1)), fill(2, 8, 6))
    layer("conv3d", nn.Conv3d(2, 3, 2, stride=2), fill(1, 2, 4, 5, 6))
    layer("conv_transpose2d", nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
          fill(2, 4, 3, 4))
    layer("batch_norm", nn.BatchNorm2d(3), fill(2, 3, 4, 5), call=twice)
    layer("batch_norm_eval", nn.BatchNorm1d(3, eps=1e-3), fill(4, 3), train=False)
    layer("batch_norm_cumulative", nn.BatchNorm1d(3, momentum=None, affine=False), fill(4, 3), call=twice)
    layer("layer_norm", nn.LayerNorm((4, 5)), fill(2, 3, 4, 5))
    layer("layer_norm_no_bias", nn.LayerNorm(5, eps=1e-6, bias=False), fill(3, 5))
    layer("rms_norm", nn.RMSNorm(5), fill(3, 5))
    layer("group_norm", nn.GroupNorm(2, 4), fill(2, 4, 3, 2))
    layer("instance_norm", nn.InstanceNorm2d(3), fill(2, 3, 4, 5))
    layer("instance_norm_all", nn.InstanceNorm1d(3, affine=True, track_running_stats=True), fill(2, 3, 6), call=twice)
    layer("lstm", nn.LSTM(3, 4), fill(5, 2, 3), call=first)
    layer("lstm_unbatched", nn.LSTM(3, 4, bias=False), fill(5, 3), call=first)
    layer("lstm_all", nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True), fill(2, 5, 3),
          call=with_state)
    layer("gru", nn.GRU(3, 4, num_layers=2), fill(5, 2, 3), call=gru_state)
    layer("gru_bidirectional", nn.GRU(3, 4, bidirectional=True, batch_first=True, bias=False), fill(2, 5, 3),
          call=first)
    layer("attention", nn.MultiheadAttention(6, 2), fill(5, 2, 6), call=attend())
    layer("attention_causal", nn.MultiheadAttention(6, 3, batch_first=True, bias=False), fill(2, 5, 6),
          call=attend(attn_mask=causal))
    layer("attention_cross", nn.MultiheadAttention(6, 2, kdim=3, vdim=4, batch_first=True), fill(2, 5, 6),
          fill(2, 4, 3, seed=30), fill(2, 4, 4, seed=31), call=attend())
    layer("attention_masks", nn.MultiheadAttention(6, 2, batch_first=True), fill(2, 5, 6),
          call=attend(attn_mask=fill(4, 5, 5, seed=32).masked_fill(causal, -math.inf),
                      key_padding_mask=torch.tensor([[False] * 5, [False] * 3 + [True] * 2])))
    layer("transformer_block", nn.TransformerEncoderLayer(6, 2, 8, dropout=0), fill(5, 2, 6))
    layer("transformer_block_first", nn.TransformerEncoderLayer(
        6, 2, 8, dropout=0, activation="gelu", norm_first=True, batch_first=True), fill(2, 5, 6),
        call=lambda module, x: module(x, src_mask=causal))


def loss(name, function, *x, **options):
    for reduction in ("none", "mean", "sum"):
        a = [x[0].detach().clone().requires_grad_(), *x[1:]]
        y = function(*a, reduction=reduction, **options)
        y.backward(weights(y))
        show(name, [("y", checksum(y)), ("x", checksum(a[0].grad))])


def losses():
    x, y = fill(4, 5), fill(4, 5, seed=3)
    p, q = torch.sigmoid(x * 4), torch.sigmoid(y * 4)
    classes = torch.tensor([1, 4, 0, 2])
    signs = torch.tensor([1, -1, -1, 1])
    w = fill(5, seed=5) + 1
    loss("cross_entropy", F.cross_entropy, x, classes)
    loss("cross_entropy", F.cross_entropy, x, classes, weight=w, ignore_index=4, label_smoothing=0.1)
    loss("nll", F.nll_loss, x, classes, weight=w)
    loss("mse", F.mse_loss, x, y)
    loss("l1", F.l1_loss, x, y)
    loss("smooth_l1", F.smooth_l1_loss, x, y, beta=0.3)
    loss("huber", F.huber_loss, x, y, delta=0.3)
    loss("bce", F.binary_cross_entropy, p, q.detach(), weight=w)
    loss("bce_with_logits", F.binary_cross_entropy_with_logits, x, q.detach(), weight=w, pos_weight=w + 1)
    loss("kl_div", F.kl_div, x, q)
    loss("kl_div", F.kl_div, x, y, log_target=True)
    loss("hinge_embedding", F.hinge_embedding_loss, x, torch.sign(y))
    loss("soft_margin", F.soft_margin_loss, x, torch.sign(y))
    loss("margin_ranking", F.margin_ranking_loss, x, y, torch.sign(fill(4, 5, seed=7)), margin=0.2)
    loss("cosine_embedding", F.cosine_embedding_loss, x, y, signs, margin=-0.1)
    loss("triplet_margin", F.triplet_margin_loss, x, y, fill(4, 5, seed=8), swap=True, margin=0.5)
    loss("ctc", F.ctc_loss, F.log_softmax(fill(6, 2, 4), -1), torch.tensor([[1, 2, 2], [3, 1, 1]]),
         torch.tensor([6, 5]), torch.tensor([3, 2]))


if __name__ == "__main__":
    print("/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */")
    print(f"/* From expected.py with PyTorch {torch.__version__.split('+')[0]}. */")
    {"layers": layers, "losses": losses}[sys.argv[1]]()
