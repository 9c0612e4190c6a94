# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Differences from PyTorch that are known, meant and explained.

A row holds for failures of operators whose name, kind (forward, grad, error), dtype and message it
matches, and for nothing else; what no row holds for makes the run fail. The first row counts.
Patterns are regular expressions, of the whole name and of a part of the message.
"""
import collections
import re

Row = collections.namedtuple('Row', 'operators kinds dtypes message reason')

ANY = ''
HALF = 'f16 bf16'
WHOLE = 'bool u8 i8 i16 i32 i64'

ROWS = [
    Row('.*', 'forward grad', HALF + ' f32 c64', '^rounding: ',
        'PyTorch\'s result and ours differ by rounding: ours is within four units in the last place '
        'of the largest element of the exact result'),
    Row(r'.*[._].*out', 'forward', ANY, '^PyTorch\'s out form is not its function',
        'PyTorch writes another result into an out with gaps than it returns without out (tril, triu, '
        'im2col, avg_pool3d and others); ours writes what it returns'),
    Row('as_strided_scatter', 'grad', ANY, '^values',
        'PyTorch gives self the gradient of the part that was overwritten and zero elsewhere; its own '
        'gradcheck refuses that, ours passes it'),
    Row('polygamma', 'forward', 'i8 i16', '^values',
        'at the poles ours is infinite, PyTorch\'s the rounding of pi / sin(pi x)'),
    Row('eq.Scalar', 'forward', 'u8', '^values',
        'a number that the dtype cannot hold equals no element; PyTorch wraps it first (255 == -1)'),
    Row(r'(topk|mode|sort|msort|kthvalue|median|nanmedian)([._].*)?', 'grad', ANY, '^values',
        'of equal elements PyTorch and we may name different ones, and the gradient goes there'),
    Row(r'(_)?embedding_bag(\.padding_idx)?', 'forward', ANY, r'^shape: expected \[\d+\],',
        'what is beside the result (offset2bag, bag_size, max_indices) for the backward alone: PyTorch leaves '
        'out what its fast path does without'),
    Row('grid_sampler_2d', 'grad', 'f32', '^values',
        'positions are rounded to f32 before they are weighed: PyTorch and we are both 2e-6 of the '
        'largest element from the exact result'),
    Row(r'linalg_(eigh|eig|svd)|svd', 'grad', ANY, '^values',
        'eigenvectors and singular vectors have any phase, and gradients of what depends on it differ with it'),
    Row(r'cholesky_(solve|inverse)', 'grad', ANY, '^values',
        'one triangle of the factor is read: ours has a gradient of zero in the other, PyTorch\'s does not'),
    Row(r'upsample_(bilinear|bicubic)2d\.vec', 'forward', 'u8', 'no kernel for dtype u8',
        'missing: images of bytes, which PyTorch interpolates with weights of 16 bits'),
    Row(r'_foreach_(maximum|minimum)\.Scalar(List)?', 'grad', HALF, '^values',
        'where an element equals the number PyTorch passes half of the gradient, ours what clamp does: all of it'),
    Row('pow.Tensor_Tensor', 'grad', 'c64 c128', 'difference: nan',
        '0 to a complex power: PyTorch\'s gradient of the exponent is NaN, ours 0'),
]


def reason(operator, kind, dtype, message):
    for r in ROWS:
        if re.fullmatch(r.operators, operator) and kind in r.kinds.split() and \
                (not r.dtypes or dtype in r.dtypes.split()) and re.search(r.message, message):
            return r.reason
    return None
