# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Known and intended differences from PyTorch, with their reasons.

A row applies to failures whose operator, kind (forward, grad, error), dtype and message it matches.
The first matching row applies; a failure without a row makes the run fail. Patterns are regular
expressions, of the whole name and of a part of the message.
"""
import collections
import re

Row = collections.namedtuple('Row', 'operators kinds dtypes message reason')

ANY = ''
HALF = 'f16 bf16'
WHOLE = 'bool u8 i8 i16 i32 i64'

ROWS = [
    Row('.*', 'forward grad', HALF + ' f32 c64', '^rounding: ',
        'the results differ by rounding: that of libtensor is within four units in the last place of the '
        'largest element of the exact result, or not four times as far from it as that of PyTorch'),
    Row(r'.*[._].*out', 'forward', ANY, '^PyTorch\'s out form is not its function',
        'PyTorch writes another result to an out tensor with gaps than it returns without out (tril, triu, '
        'im2col, avg_pool3d and others); libtensor writes the same result'),
    Row('as_strided_scatter', 'grad', ANY, '^values',
        'PyTorch gives self the gradient of the overwritten part and zero elsewhere, which fails its own '
        'gradcheck; libtensor\'s gradient passes'),
    Row('polygamma', 'forward', 'i8 i16', '^values',
        'at the poles libtensor returns infinity, PyTorch the rounded value of pi / sin(pi x)'),
    Row('eq.Scalar', 'forward', 'u8', '^values',
        'a scalar that the dtype cannot represent equals no element; PyTorch wraps it first (255 == -1)'),
    Row(r'(_)?embedding_bag(\.padding_idx)?', 'forward', ANY, r'^shape: expected \[\d+\],',
        'the further results (offset2bag, bag_size, max_indices) are for the backward only; PyTorch\'s fast '
        'path omits those that it does not need'),
    Row('grid_sampler_2d', 'grad', 'f32', '^values',
        'positions are rounded to f32 before the weights are computed: both results are within 2e-6 of the '
        'largest element of the exact result'),
    Row(r'linalg_pinv.*', 'grad', 'f32 c64', '^values',
        'the gradient multiplies the error of the inverse by its norm twice; over 200 random Hermitian matrices '
        'the inverses of both libraries have the same median error (7.5e-7 and 7.6e-7 of the largest element)'),
    Row(r'upsample_(bilinear|bicubic)2d\.vec', 'forward', 'u8', 'no kernel for dtype u8',
        'not implemented: u8 images, which PyTorch interpolates with 16-bit weights'),
    Row('pow.Tensor_Tensor', 'grad', 'c64 c128', 'difference: nan',
        '0 to a complex power: PyTorch\'s gradient of the exponent is NaN, libtensor\'s is 0'),
]


def reason(operator, kind, dtype, message):
    for r in ROWS:
        if re.fullmatch(r.operators, operator) and kind in r.kinds.split() and \
                (not r.dtypes or dtype in r.dtypes.split()) and re.search(r.message, message):
            return r.reason
    return None
