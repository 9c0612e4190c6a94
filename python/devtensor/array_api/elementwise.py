# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Elementwise functions, and the operators of the array object that use them."""
import sys

from .core import NUMBERS, RANK, Array, Tensor, asarray, call, kind_of, result_type, together

__all__ = []


def public(name, fn, doc=None):
    fn.__name__ = fn.__qualname__ = name
    globals()[name] = fn
    __all__.append(name)


def unary(op):
    def fn(x, /):
        return call(op, x)
    return fn


def binary(op):
    def fn(x1, x2, /):
        return call(op, *together(x1, x2))
    return fn


def inexact(x):
    return RANK[kind_of(x.dtype)] > 1


for name in ('abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite isinf isnan log log1p '
             'log2 log10 logical_not real reciprocal round signbit sin sinh square sqrt tan tanh trunc').split():
    public(name, unary(name))
for name, op in dict(bitwise_invert='bitwise_not', conj='conj_physical', imag='imag', negative='neg',
                     positive='clone').items():
    public(name, unary(op))
for name, op in dict(
        add='add', atan2='atan2', bitwise_and='bitwise_and', bitwise_or='bitwise_or',
        bitwise_xor='bitwise_xor', bitwise_left_shift='bitwise_left_shift',
        bitwise_right_shift='bitwise_right_shift', copysign='copysign', divide='div',
        equal='eq', greater='gt', greater_equal='ge',
        hypot='hypot', less='lt', less_equal='le', logaddexp='logaddexp', logical_and='logical_and',
        logical_or='logical_or', logical_xor='logical_xor', maximum='maximum', minimum='minimum',
        multiply='mul', nextafter='nextafter', not_equal='ne', pow='pow',
        subtract='sub').items():
    public(name, binary(op))


def clip(x, /, min=None, max=None):
    ends = [None if v is None else asarray(v, dtype=x.dtype) for v in (min, max)]
    return call('clamp', x, *ends) if ends != [None, None] else call('clone', x)


def floor_divide(x1, x2, /):
    """In Python, PyTorch and the library inf // 2 is NaN; in the standard it is inf."""
    x1, x2 = together(x1, x2)
    return call('floor', call('div', x1, x2)) if inexact(x1) else call('floor_divide', x1, x2)


def remainder(x1, x2, /):
    """A remainder of zero has the sign of x2; in PyTorch that of x1."""
    x1, x2 = together(x1, x2)
    rest = call('remainder', x1, x2)
    return call('copysign', rest, x2) if inexact(x1) else rest


def sign(x, /):
    """NaN for NaN; PyTorch returns 0."""
    return call('where', call('isnan', x), x, call('sgn', x)) if inexact(x) else call('sgn', x)


for fn in (clip, floor_divide, remainder, sign):
    public(fn.__name__, fn)

# ---- methods ------------------------------------------------------------------------------------


def known(*xs):
    return all(isinstance(x, (Tensor, *NUMBERS)) for x in xs)


def method(name, fn):
    def forward(self, other, /):
        return fn(self, other) if known(other) else NotImplemented

    def reflected(self, other, /):
        return fn(other, self) if known(other) else NotImplemented

    def inplace(self, other, /):
        if not known(other):
            return NotImplemented
        if result_type(self, other) is not self.dtype:
            raise TypeError(f'{self.dtype} cannot take what {name} makes of it and {other!r}')
        if name in INPLACE:
            return call(INPLACE[name], self, asarray(other, dtype=self.dtype))
        self[...] = fn(self, other)
        return self
    for prefix, m in (('', forward), ('r', reflected), ('i', inplace)):
        if not prefix or name not in COMPARISONS:
            m.__name__ = f'__{prefix}{name}__'
            setattr(Array, m.__name__, m)


INPLACE = {'add': 'add_', 'sub': 'sub_', 'mul': 'mul_', 'truediv': 'div_',
           'pow': 'pow_', 'and': 'bitwise_and_', 'or': 'bitwise_or_', 'xor': 'bitwise_xor_',
           'lshift': 'bitwise_left_shift_', 'rshift': 'bitwise_right_shift_'}
COMPARISONS = 'eq', 'ne', 'lt', 'le', 'gt', 'ge'
here = sys.modules[__name__]
for name, function in dict(
        add='add', sub='subtract', mul='multiply', truediv='divide', floordiv='floor_divide', mod='remainder',
        pow='pow', lshift='bitwise_left_shift', rshift='bitwise_right_shift', eq='equal', ne='not_equal',
        lt='less', le='less_equal', gt='greater', ge='greater_equal').items():
    method(name, getattr(here, function))
for name in ('and', 'or', 'xor'):
    method(name, getattr(here, 'bitwise_' + name))
for name, op in dict(abs='abs', neg='neg', invert='bitwise_not', pos='clone').items():
    m = (lambda op: lambda self, /: call(op, self))(op)
    m.__name__ = f'__{name}__'
    setattr(Array, m.__name__, m)
