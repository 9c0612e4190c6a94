# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Special functions, by the names that PyTorch and SciPy have for them."""
from devtensor import _C
from devtensor._C import (digamma, erf, erfc, erfinv, exp2, expm1, log1p, log_softmax, logsumexp,  # noqa: F401
                          polygamma, round, softmax, xlogy)

gammaln = _C.lgamma
psi = _C.digamma
expit = _C.sigmoid


def logit(input, eps=None):
    """log(p / (1 - p)) of probabilities; with eps they are limited to eps and 1 - eps before."""
    if eps is not None:
        input = input.clamp(eps, 1 - eps)
    return _C.log(input) - _C.log1p(-input)


def entr(input):
    """-x * log(x); 0 for 0 and -inf below."""
    return -_C.xlogy(input, input)


def xlog1py(input, other):
    """x * log1p(y) of tensors, and 0 where x is 0, unless y is nan."""
    product = input * other.log1p()
    return _C.where(input.eq(0) & ~other.isnan(), _C.zeros_like(product), product)


def sinc(input):
    """sin(pi x) / (pi x), and 1 for 0."""
    x = input * 3.141592653589793
    return _C.where(x.eq(0), _C.ones_like(x), x.sin() / x)


def ndtr(input):
    """The distribution function of the standard normal distribution."""
    return _C.erfc(input * -0.7071067811865476) * 0.5


def ndtri(input):
    """The inverse of ndtr()."""
    return _C.erfinv(input * 2 - 1) * 1.4142135623730951


def multigammaln(input, p):
    """The logarithm of the multivariate gamma function with p dimensions."""
    terms = [(input - 0.5 * i).lgamma() for i in range(p)]
    return _C.stack(terms).sum(0) + 0.25 * p * (p - 1) * 1.1447298858494002
