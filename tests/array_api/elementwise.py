# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Elementwise functions, and the operators of the array object that use them."""
import sys

from .core import RANK, Array, asarray, call, result_type, together

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
    return RANK[x.dtype.kind] > 1


for name in ('abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite isinf isnan log log1p '
             'log2 log10 logical_not real reciprocal round signbit sin sinh square sqrt tan tanh trunc').split():
    public(name, unary(name))
for name, op in dict(bitwise_invert='bitwise_not', conj='conj_physical', imag='imag', negative='neg',
                     positive='clone').items():
    public(name, unary(op))
for name, op in dict(
        add='add.Tensor', atan2='atan2', bitwise_and='bitwise_and.Tensor', bitwise_or='bitwise_or.Tensor',
        bitwise_xor='bitwise_xor.Tensor', bitwise_left_shift='bitwise_left_shift.Tensor',
        bitwise_right_shift='bitwise_right_shift.Tensor', copysign='copysign.Tensor', divide='div.Tensor',
        equal='eq.Tensor', greater='gt.Tensor', greater_equal='ge.Tensor',
        hypot='hypot', less='lt.Tensor', less_equal='le.Tensor', logaddexp='logaddexp', logical_and='logical_and',
        logical_or='logical_or', logical_xor='logical_xor', maximum='maximum', minimum='minimum',
        multiply='mul.Tensor', nextafter='nextafter', not_equal='ne.Tensor', pow='pow.Tensor_Tensor',
        subtract='sub.Tensor').items():
    public(name, binary(op))


def clip(x, /, min=None, max=None):
    ends = [None if v is None else asarray(v, dtype=x.dtype) for v in (min, max)]
    return call('clamp.Tensor', x, *ends) if ends != [None, None] else call('clone', x)


def floor_divide(x1, x2, /):
    """In Python, PyTorch and the library inf // 2 is NaN; in the standard it is inf."""
    x1, x2 = together(x1, x2)
    return call('floor', call('div.Tensor', x1, x2)) if inexact(x1) else call('floor_divide', x1, x2)


def remainder(x1, x2, /):
    """A remainder of zero has the sign of x2; in PyTorch that of x1."""
    x1, x2 = together(x1, x2)
    rest = call('remainder.Tensor', x1, x2)
    return call('copysign.Tensor', rest, x2) if inexact(x1) else rest


def sign(x, /):
    """NaN for NaN; PyTorch returns 0."""
    return call('where.self', call('isnan', x), x, call('sgn', x)) if inexact(x) else call('sgn', x)


for fn in (clip, floor_divide, remainder, sign):
    public(fn.__name__, fn)

# ---- methods ------------------------------------------------------------------------------------


def known(*xs):
    return all(isinstance(x, (Array, bool, int, float, complex)) for x in xs)


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


INPLACE = {'add': 'add_.Tensor', 'sub': 'sub_.Tensor', 'mul': 'mul_.Tensor', 'truediv': 'div_.Tensor',
           'pow': 'pow_.Tensor', 'and': 'bitwise_and_.Tensor', 'or': 'bitwise_or_.Tensor', 'xor': 'bitwise_xor_.Tensor',
           'lshift': 'bitwise_left_shift_.Tensor', 'rshift': 'bitwise_right_shift_.Tensor'}
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
