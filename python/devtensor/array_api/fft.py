# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The extension of Fourier transforms."""
from .core import DEFAULT, axes_of, call, on_cpu

__all__ = ['fft', 'ifft', 'fftn', 'ifftn', 'rfft', 'irfft', 'rfftn', 'irfftn', 'hfft', 'ihfft', 'fftfreq', 'rfftfreq',
           'fftshift', 'ifftshift']


def along(name):
    def fn(x, /, *, n=None, axis=-1, norm='backward'):
        return call('fft_' + name, x, n, axis, norm)
    fn.__name__ = name
    return fn


def along_all(name):
    def fn(x, /, *, s=None, axes=None, norm='backward'):
        return call('fft_' + name, x, None if s is None else list(s), None if axes is None else list(axes), norm)
    fn.__name__ = name
    return fn


def frequencies(name):
    def fn(n, /, *, d=1.0, dtype=None, device=None):
        on_cpu(device)
        return call('fft_' + name, n, d, dtype=dtype or DEFAULT[float])
    fn.__name__ = name
    return fn


def shifted(name):
    def fn(x, /, *, axes=None):
        return call('fft_' + name, x, axes_of(axes, x.ndim))
    fn.__name__ = name
    return fn


for make, names in ((along, 'fft ifft rfft irfft hfft ihfft'), (along_all, 'fftn ifftn rfftn irfftn'),
                    (frequencies, 'fftfreq rfftfreq'), (shifted, 'fftshift ifftshift')):
    globals().update((n, make(n)) for n in names.split())
