# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Fourier transforms: the operators fft_NAME as fft.NAME."""
from devtensor import _C

_names = [name for name in dir(_C) if name.startswith('fft_') and not name.endswith('_')]
for _name in _names:
    globals()[_name[len('fft_'):]] = getattr(_C, _name)
__all__ = [name[len('fft_'):] for name in _names]
