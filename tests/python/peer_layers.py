#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Layers and functions of devtensor.nn beside torch.nn, with PyTorch's state dict. Run by test_nn.py with an
interpreter that has PyTorch. Prints a line for each difference; exit status 1 if there is one."""
import sys

import torch

import devtensor as dt

LIMIT = 1e-10
# PyTorch's derivatives of these have constants in f32.
ROUGH = {'nn.Hardsigmoid()': 1e-8, 'nn.CELU(0.7)': 1e-8}


def rand(*shape):
    return torch.rand(shape, dtype=torch.float64) * 2 - 1


def ids(high, *shape):
    return torch.randint(0, high, shape)


# Constructor with `nn`, inputs; the state dict is PyTorch's.
LAYERS = [
    ('nn.Linear(4, 3)', [rand(2, 4)]), ('nn.Linear(4, 3, bias=False)', [rand(5, 2, 4)]),
    ('nn.Bilinear(3, 4, 5)', [rand(2, 3), rand(2, 4)]),
    ('nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2)', [rand(2, 4, 9)]),
    ('nn.Conv2d(3, 5, (3, 2), padding=(1, 0), dilation=2, bias=False)', [rand(2, 3, 8, 8)]),
    ('nn.Conv2d(3, 5, 3, padding="same")', [rand(2, 3, 8, 7)]),
    ('nn.Conv2d(3, 5, 4, padding="same", padding_mode="reflect")', [rand(2, 3, 8, 7)]),
    ('nn.Conv2d(3, 5, 3, padding=1, padding_mode="circular")', [rand(2, 3, 8, 7)]),
    ('nn.Conv2d(3, 5, 3, padding=(1, 2), padding_mode="replicate")', [rand(2, 3, 8, 7)]),
    ('nn.Conv3d(2, 3, 2)', [rand(1, 2, 4, 5, 3)]),
    ('nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)', [rand(2, 4, 5)]),
    ('nn.ConvTranspose2d(4, 3, 3, stride=2, dilation=2)', [rand(2, 4, 5, 6)]),
    ('nn.ConvTranspose3d(2, 3, 2)', [rand(1, 2, 3, 3, 3)]),
    ('nn.BatchNorm1d(4)', [rand(5, 4)]), ('nn.BatchNorm1d(4)', [rand(5, 4, 3)]),
    ('nn.BatchNorm2d(3, momentum=None)', [rand(2, 3, 4, 4)]), ('nn.BatchNorm2d(3, affine=False)', [rand(2, 3, 4, 4)]),
    ('nn.BatchNorm3d(2, track_running_stats=False)', [rand(2, 2, 3, 3, 3)]),
    ('nn.BatchNorm1d(4).eval()', [rand(5, 4)]),
    ('nn.InstanceNorm1d(3)', [rand(2, 3, 5)]), ('nn.InstanceNorm2d(3, affine=True)', [rand(2, 3, 4, 5)]),
    ('nn.InstanceNorm2d(3, track_running_stats=True)', [rand(3, 4, 5)]),
    ('nn.InstanceNorm3d(2)', [rand(2, 2, 3, 3, 3)]),
    ('nn.LayerNorm(6)', [rand(2, 3, 6)]), ('nn.LayerNorm((3, 6), bias=False)', [rand(2, 3, 6)]),
    ('nn.GroupNorm(2, 4)', [rand(2, 4, 5)]), ('nn.RMSNorm(6)', [
     rand(2, 6)]), ('nn.RMSNorm((3, 6), eps=1e-3)', [rand(2, 3, 6)]),
    ('nn.LocalResponseNorm(3)', [rand(2, 5, 4, 4)]), ('nn.LocalResponseNorm(2)', [rand(2, 5, 4)]),
    ('nn.Embedding(7, 3, padding_idx=-2)', [ids(7, 2, 4)]), ('nn.Embedding(7, 3, max_norm=0.5)', [ids(7, 2, 4)]),
    ('nn.EmbeddingBag(7, 3)', [ids(7, 2, 4)]), ('nn.EmbeddingBag(7, 3, mode="max", padding_idx=1)', [ids(7, 2, 4)]),
    ('nn.EmbeddingBag(7, 3, mode="sum", include_last_offset=True)', [ids(7, 6), torch.tensor([0, 2, 6])]),
    ('nn.EmbeddingBag(7, 3, mode="sum")', [ids(7, 2, 4), None, rand(2, 4)]),
    ('nn.RNN(3, 4, 2, "relu", bidirectional=True)', [rand(5, 2, 3)]), ('nn.RNN(3, 4)', [rand(5, 3), rand(1, 4)]),
    ('nn.LSTM(3, 4, 2, batch_first=True)', [rand(2, 5, 3)]), ('nn.LSTM(3, 4, bias=False)', [rand(5, 3)]),
    ('nn.LSTM(3, 4)', [rand(5, 2, 3), (rand(1, 2, 4), rand(1, 2, 4))]),
    ('nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2)', [rand(5, 2, 3), (rand(4, 2, 2), rand(4, 2, 4))]),
    ('nn.LSTM(3, 4, 2, bias=False, batch_first=True, proj_size=3)', [rand(2, 5, 3)]),
    ('nn.GRU(3, 4, 2, bidirectional=True)', [rand(5, 2, 3), rand(4, 2, 4)]
     ), ('nn.GRU(3, 4, batch_first=True)', [rand(5, 3)]),
    ('nn.RNNCell(3, 4, nonlinearity="relu")', [rand(2, 3)]), ('nn.GRUCell(3, 4)', [rand(3), rand(4)]),
    ('nn.LSTMCell(3, 4)', [rand(2, 3), (rand(2, 4), rand(2, 4))]),
    ('nn.MultiheadAttention(8, 2)', [*[rand(5, 3, 8)] * 3]),
    ('nn.MultiheadAttention(8, 2, bias=False, batch_first=True)', [rand(3, 4, 8), rand(3, 6, 8), rand(3, 6, 8)]),
    ('nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True)', [rand(5, 8), rand(6, 8), rand(6, 8)]),
    ('nn.MultiheadAttention(8, 4, kdim=3, vdim=5)', [rand(4, 2, 8),
     rand(6, 2, 3), rand(6, 2, 5), torch.rand(2, 6) > 0.7, False]),
    ('nn.MultiheadAttention(8, 2, add_bias_kv=True)', [*[rand(4, 2, 8)] * 3, None, True, torch.rand(4, 4) > 0.8]),
    ('nn.TransformerEncoderLayer(8, 2, 16, dropout=0)', [rand(5, 2, 8), torch.triu(torch.ones(5, 5), 1).bool()]),
    ('nn.TransformerEncoderLayer(8, 2, 16, 0, "gelu", batch_first=True, norm_first=True, bias=False)', [rand(2, 5, 8)]),
    ('nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0), 2, nn.LayerNorm(8))', [rand(5, 2, 8)]),
    ('nn.TransformerDecoderLayer(8, 2, 16, 0)', [rand(5, 2, 8), rand(4, 2, 8)]),
    ('nn.Transformer(8, 2, 1, 1, 16, 0, batch_first=True)', [rand(2, 5, 8), rand(2, 4, 8)]),
    ('nn.PReLU(3)', [rand(2, 3, 4)]), ('nn.Softmax2d()', [rand(2, 3, 2, 2)]),
    ('nn.Sequential(nn.Linear(4, 8), nn.GELU("tanh"), nn.Flatten(0), nn.Unflatten(0, (2, 2, 8)))', [rand(2, 2, 4)]),
    *[(f'nn.{a}', [rand(3, 4) * 4]) for a in (
        'ReLU()', 'ReLU6()', 'SELU()', 'SiLU()', 'Mish()', 'Hardswish()', 'Hardsigmoid()', 'Sigmoid()', 'Tanh()',
        'LogSigmoid()',
        'Softsign()', 'Tanhshrink()', 'ELU(0.5)', 'CELU(0.7)', 'LeakyReLU(0.2)', 'Hardtanh(-2, 1.5)',
        'Threshold(0.1, 20)', 'GELU()',
        'GLU(0)', 'Softplus(2, 5)', 'Hardshrink(1)', 'Softshrink(0.3)', 'Softmax(1)', 'LogSoftmax(0)', 'Softmin(-1)',
        'Identity(5)')
      if a != 'GLU(0)'], ('nn.GLU()', [rand(3, 4)]),
    ('nn.MaxPool1d(3, 2)', [rand(2, 3, 9)]), ('nn.MaxPool2d(2, padding=1, return_indices=True)', [rand(2, 3, 8, 8)]),
    ('nn.MaxPool3d(2, ceil_mode=True)', [rand(1, 2, 5, 5, 5)]), ('nn.AvgPool1d(2)', [rand(2, 3, 8)]),
    ('nn.AvgPool2d(3, 2, 1, count_include_pad=False)', [rand(2, 3, 8, 8)]), ('nn.AvgPool3d(2)', [rand(1, 2, 4, 4, 4)]),
    ('nn.LPPool1d(2, 3)', [rand(2, 3, 9).abs()]), ('nn.LPPool2d(2, (2, 3))', [rand(2, 3, 8, 9)]),
    ('nn.AdaptiveAvgPool2d((2, None))', [rand(2, 3, 7, 5)]), ('nn.AdaptiveMaxPool1d(3)', [rand(2, 3, 7)]),
    ('nn.AdaptiveAvgPool1d(3)', [rand(2, 3, 7)]
     ), ('nn.AdaptiveMaxPool2d((2, 3), return_indices=True)', [rand(2, 3, 7, 5)]),
    ('nn.Upsample(scale_factor=2)', [rand(1, 2, 3, 4)]
     ), ('nn.Upsample((5, 7), mode="bilinear", align_corners=True)', [rand(1, 2, 3, 4)]),
    ('nn.Upsample(scale_factor=1.7, mode="bicubic")', [
     rand(1, 2, 3, 4)]), ('nn.Upsample(7, mode="linear")', [rand(1, 2, 3)]),
    ('nn.Upsample(scale_factor=(1.5, 2, 1), mode="trilinear")', [rand(1, 2, 3, 4, 2)]),
    ('nn.Upsample(scale_factor=0.6, mode="nearest-exact")',
     [rand(1, 2, 7)]), ('nn.Upsample((2, 3), mode="area")', [rand(1, 2, 5, 7)]),
    ('nn.PixelShuffle(2)', [rand(2, 8, 3, 4)]), ('nn.PixelUnshuffle(2)',
     [rand(8, 4, 6)]), ('nn.ChannelShuffle(2)', [rand(1, 4, 2, 2)]),
    ('nn.Unfold(2, padding=1)', [rand(1, 3, 4, 5)]), ('nn.Fold((4, 5), 2)', [rand(1, 12, 12)]),
    ('nn.ReflectionPad2d((1, 2, 0, 1))', [rand(1, 2, 4, 4)]), ('nn.ConstantPad1d(2, 3.5)', [rand(1, 2, 4)]),
    ('nn.ZeroPad2d(1)', [rand(1, 2, 4, 4)]), ('nn.ReplicationPad3d(1)',
     [rand(1, 2, 3, 3, 3)]), ('nn.CircularPad1d(2)', [rand(1, 2, 4)]),
    ('nn.CosineSimilarity()', [rand(2, 4), rand(2, 4)]
     ), ('nn.PairwiseDistance(1, keepdim=True)', [rand(2, 4), rand(2, 4)]),
    ('nn.ParameterList([])', []), ('nn.CrossEntropyLoss(label_smoothing=0.1)', [rand(4, 5), ids(5, 4)]),
    ('nn.CrossEntropyLoss(reduction="none", ignore_index=2)', [rand(2, 5, 3), ids(5, 2, 3)]),
    ('nn.NLLLoss(reduction="sum")', [rand(4, 5), ids(5, 4)]), ('nn.MSELoss()', [rand(3), rand(3)]),
    ('nn.L1Loss(reduction="sum")', [rand(3), rand(3)]), ('nn.SmoothL1Loss(beta=0.3)', [rand(9), rand(9)]),
    ('nn.SmoothL1Loss(beta=0)', [rand(9), rand(9)]), ('nn.HuberLoss(delta=0.4)', [rand(9), rand(9)]),
    ('nn.BCELoss()', [rand(9).sigmoid(), rand(9).sigmoid()]
     ), ('nn.BCEWithLogitsLoss(reduction="none")', [rand(9), rand(9).sigmoid()]),
    ('nn.KLDivLoss(reduction="batchmean", log_target=True)', [
     rand(2, 4), rand(2, 4)]), ('nn.KLDivLoss()', [rand(2, 4), rand(2, 4).abs()]),
    ('nn.PoissonNLLLoss(full=True)', [rand(9), rand(9).abs() * 4]
     ), ('nn.GaussianNLLLoss(full=True)', [rand(9), rand(9), rand(9).abs()]),
    ('nn.HingeEmbeddingLoss()', [rand(9), ids(2, 9) * 2 - 1]
     ), ('nn.MarginRankingLoss(0.1)', [rand(9), rand(9), ids(2, 9) * 2 - 1]),
    ('nn.SoftMarginLoss()', [rand(9), (ids(2, 9) * 2 - 1).double()]
     ), ('nn.MultiLabelSoftMarginLoss()', [rand(3, 4), ids(2, 3, 4).double()]),
    ('nn.CosineEmbeddingLoss(0.2)', [rand(3, 4), rand(3, 4), torch.tensor([1, -1, 1])]),
    ('nn.TripletMarginLoss(swap=True)', [rand(3, 4), rand(3, 4), rand(3, 4)]),
    ('nn.CTCLoss()', [rand(8, 2, 5).log_softmax(-1), ids(4, 2, 3) + 1, torch.tensor([8, 7]), torch.tensor([3, 2])]),
]

# Expressions with `F`, `special`, `linalg`, `fft`, `a` and `b`.
A, B = rand(2, 3, 4), rand(2, 3, 4)
EXPRESSIONS = [
    'F.softmax(a)', 'F.relu(a, inplace=False)', 'F.normalize(a)', 'F.normalize(a, 1, 2)', 'F.glu(a)',
    'F.dropout(a, 0.5, False)',
    'F.dropout(a, 1.0)', 'F.pad(a, (1, 2))', 'F.pad(a, (1, 2), "reflect")', 'F.pad(a, (1, 2), value=3)',
    'F.one_hot(a.argmax(-1), 4)',
    'F.linear(a, b[0])', 'F.conv1d(a, b, padding=1)', 'F.max_pool1d(a, 2)', 'F.interpolate(a, scale_factor=2)',
    'F.unfold(a[None], 2)',
    'F.scaled_dot_product_attention(a, b, b)', 'F.scaled_dot_product_attention(a, b, b, is_causal=True)',
    'F.mse_loss(a, b, reduction="none")',
    'F.l1_loss(a, b, reduction="sum")', 'F.cosine_similarity(a, b, dim=2)', 'F.layer_norm(a, (4,))',
    'F.gelu(a, approximate="tanh")',
    'F.triplet_margin_loss(a, b, a.flip(0))', 'F.grid_sample(a[None], b[:1, :, :2][None], align_corners=False)',
    'F.elu(a, 0.5)',
    'F.threshold(a, 0.1, 0)', 'F.leaky_relu(a, 0.3)', 'F.softplus(a, 3)', 'F.huber_loss(a, b, delta=0.3)',
    'F.hardtanh(a, -0.5, 0.5)',
    'special.expit(a)', 'special.logit(a.abs(), 1e-3)', 'special.entr(a.abs())', 'special.xlog1py(a, b)',
    'special.sinc(a)', 'special.ndtr(a)',
    'special.ndtri(a.abs())', 'special.gammaln(a + 3)', 'special.digamma(a + 3)', 'special.multigammaln(a + 3, 2)',
    'special.erfinv(a)',
    'special.logsumexp(a, 1)', 'special.softmax(a, 0)', 'special.log_softmax(a, 0)', 'special.xlogy(a, b.abs())',
    'linalg.norm(a)', 'linalg.inv(a @ b.mT + 5 * linalg.inv(a[:, :, :3]))', 'linalg.det(a[:, :, :3])',
    'linalg.solve(a[:, :, :3], b)',
    'linalg.vector_norm(a, 3, dim=1)', 'linalg.svdvals(a)', 'linalg.matrix_power(a[:, :, :3], 3)',
    'linalg.slogdet(a[:, :, :3])',
    'linalg.pinv(a)', 'linalg.multi_dot([a[0], b[0].mT, a[1]])', 'fft.fft(a).real', 'fft.rfft(a, dim=1).imag',
    'fft.irfft(fft.rfft(a), n=4)',
    'fft.fftn(a).real', 'fft.fftshift(a)', 'fft.fft(a, norm="ortho").imag',
]


def ours(x):
    if isinstance(x, torch.Tensor):
        return dt.tensor(x.detach().numpy())
    return type(x)(map(ours, x)) if isinstance(x, (tuple, list)) else x


def flat(x):
    return [y for part in x for y in flat(part)] if isinstance(x, (tuple, list)) else [x]


def numbers(x):
    return torch.tensor(x.detach().tolist(), dtype=torch.float64).reshape(tuple(x.shape))


def difference(mine, theirs, limit=LIMIT):
    """'' if all tensors are equal."""
    mine, theirs = flat(mine), flat(theirs)
    if len(mine) != len(theirs):
        return f'{len(mine)} results, PyTorch has {len(theirs)}'
    for m, t in zip(mine, theirs):
        if (m is None) != (t is None):
            return f'{m} and {t}'
        if m is None:
            continue
        if tuple(m.shape) != tuple(t.shape) or m.dtype.name.split('.')[-1] != str(t.dtype).split('.')[-1]:
            return f'{tuple(m.shape)} {m.dtype}, PyTorch has {tuple(t.shape)} {t.dtype}'
        if t.numel() and not torch.allclose(numbers(m), t.double(), rtol=limit, atol=limit, equal_nan=True):
            return f'values differ by {(numbers(m) - t.double()).abs().max():.1e}'
    return ''


def gradients(module, inputs, results):
    """The gradients of parameters and floating inputs, for the sum of all results."""
    total = sum(r.sum() for r in flat(results) if r is not None and r.requires_grad)
    total.backward()
    return [x.grad for x in [*module.parameters(), *flat(inputs)] if getattr(x, 'requires_grad', False)]


def check_layer(text, inputs):
    theirs = eval(text, {'nn': torch.nn}).double()
    mine = eval(text, {'nn': dt.nn}).double()
    if list(mine.state_dict()) != list(theirs.state_dict()):
        return f'names {list(mine.state_dict())}, PyTorch has {list(theirs.state_dict())}'
    if not inputs:
        return ''
    mine.load_state_dict(theirs.state_dict())
    copies = ours(inputs)
    # The targets of this loss have no gradient in PyTorch.
    n = 1 if 'SoftMargin' in text else len(inputs)
    for x in [*flat(inputs[:n]), *flat(copies[:n])]:
        if x is not None and getattr(x, 'dtype', None) in (torch.float64, dt.float64):
            x.grad = None
            x.requires_grad_()
    # One object for one object: attention looks at that.
    first = {id(x): y for x, y in reversed(list(zip(inputs, copies)))}
    copies = [first[id(x)] for x in inputs]
    a, b = mine(*copies), theirs(*inputs)
    found = difference(a, b)
    if found:
        return found
    found = difference(list(mine.state_dict().values()), list(theirs.state_dict().values()))
    if found:
        return f'state: {found}'
    if any(x is not None and x.requires_grad for x in flat(b)):
        found = difference(gradients(mine, copies, a), gradients(theirs, inputs, b), ROUGH.get(text, LIMIT))
    return found and f'gradients: {found}'


def check_expression(text):
    names = {
    'F': torch.nn.functional,
    'special': torch.special,
    'linalg': torch.linalg,
    'fft': torch.fft,
    'a': A,
     'b': B}
    mine = {
    'F': dt.nn.functional,
    'special': dt.special,
    'linalg': dt.linalg,
    'fft': dt.fft,
    'a': ours(A),
     'b': ours(B)}
    a, b = eval(text, mine), eval(text, names)
    return difference(list(a) if isinstance(a, tuple) else a, list(b) if isinstance(b, tuple) else b)


def main():
    failed = 0
    for text, *inputs in [*LAYERS, *((e,) for e in EXPRESSIONS)]:
        try:
            found = check_layer(text, *inputs) if inputs else check_expression(text)
        except Exception as error:
            found = f'{type(error).__name__}: {error}'
        if found:
            print(f'{text}: {found}')
            failed += 1
    print(f'{len(LAYERS)} layers, {len(EXPRESSIONS)} expressions, {failed} differences')
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
