# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The Python array API standard, version 2025.12, with the extensions linalg and fft."""
import math

from . import core, creation, elementwise, fft, linalg, manipulation, reductions

__array_api_version__ = core.API_VERSION
__version__ = '0.1.0'
e, pi, inf, nan, newaxis = math.e, math.pi, math.inf, math.nan, None
globals().update(core.DTYPES)
for module in (creation, elementwise, manipulation, reductions):
    globals().update((name, getattr(module, name)) for name in module.__all__)
globals().update((name, getattr(linalg, name)) for name in ('matmul', 'matrix_transpose', 'tensordot', 'vecdot'))
