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
        'PyTorch\'s result and ours differ by rounding: ours is within two units in the last place '
        'of the largest element of the exact result'),
]


def reason(operator, kind, dtype, message):
    for r in ROWS:
        if re.fullmatch(r.operators, operator) and kind in r.kinds.split() and \
                (not r.dtypes or dtype in r.dtypes.split()) and re.search(r.message, message):
            return r.reason
    return None
