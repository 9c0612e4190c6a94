#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Errors of operators beside those of PyTorch, against the result of PyTorch in f64 from the same inputs.

usage: python bench/errors.py [--seed N] [--match REGEX]

Functions of single numbers: the greatest and the root mean square error in units of the last place (ulp) of the
result's dtype. Sums and products: the norm of the error over that of the result, in units of the dtype's epsilon. For f64 the
reference is NumPy's longdouble where it has the function. A row is short if both of its figures are above PyTorch's and
above what one rounding makes; a tenth is left for chance. The exit status is 1 if a row is short."""
import argparse
import re
import sys

import devtensor as dt
import numpy as np
import torch
import torch.nn.functional as F

N = 1 << 18

# The inputs of functions of one number: uniform in an interval, or spread over powers of two.
NEAR, WIDE, UNIT, POSITIVE, TINY = (-4, 4), (-60, 60), (-1, 1), (1e-6, 100), (-1e-3, 1e-3)
FUNCTIONS = {
    'exp': (NEAR, WIDE, TINY), 'exp2': (NEAR, WIDE), 'expm1': (NEAR, WIDE, TINY), 'log': (POSITIVE,),
    'log2': (POSITIVE,),
    'log10': (POSITIVE,), 'log1p': (UNIT, POSITIVE, TINY), 'sqrt': (POSITIVE,), 'rsqrt': (POSITIVE,),
    'sin': (NEAR, WIDE, TINY), 'cos': (NEAR, WIDE), 'tan': (UNIT,), 'asin': (UNIT,), 'acos': (UNIT,),
    'atan': (NEAR, WIDE),
    'sinh': (NEAR, WIDE, TINY), 'cosh': (NEAR, WIDE), 'tanh': (NEAR, TINY), 'asinh': (NEAR, WIDE), 'atanh': (UNIT,),
    'erf': (NEAR, TINY), 'erfc': (NEAR,), 'erfinv': (UNIT,), 'lgamma': (POSITIVE,), 'digamma': (POSITIVE,),
    'sigmoid': (NEAR, WIDE), 'reciprocal': (POSITIVE,),
}
ACTIVATIONS = ('gelu', 'silu', 'mish', 'softplus', 'elu', 'selu', 'logsigmoid', 'hardswish')


def uniform(random, low, high, *shape):
    return torch.from_numpy(random.uniform(low, high, shape))


def numbers(random, *shape):
    return torch.from_numpy(random.standard_normal(shape))


def functions(random):
    """Name, function of a module, inputs in f64."""
    for name, intervals in FUNCTIONS.items():
        for low, high in intervals:
            x = uniform(random, low, high, N)
            yield f'{name}, {low:g} to {high:g}', lambda m, x, name=name: getattr(m, name)(x), (x,)
    for name in ACTIVATIONS:
        x = uniform(random, -6, 6, N)
        yield f'{name}, -6 to 6', lambda m, x, name=name: getattr(m.nn.functional, name)(x), (x,)
    x, y = uniform(random, 1e-3, 20, N), uniform(random, -6, 6, N)
    yield 'pow', lambda m, x, y: m.pow(x, y), (x, y)
    yield 'atan2', lambda m, x, y: m.atan2(x, y), (numbers(random, N), numbers(random, N))
    yield 'hypot', lambda m, x, y: m.hypot(x, y), (numbers(random, N), numbers(random, N))
    yield 'addcmul', lambda m, x, y, z: m.addcmul(x, y, z), tuple(numbers(random, N) for _ in range(3))


def sums(random):
    big = numbers(random, 64, 4096)
    for name in ('sum', 'mean', 'prod', 'logsumexp', 'var', 'std', 'cumsum'):
        x = 1 + big * 1e-2 if name == 'prod' else big + 3 if name in ('sum', 'mean', 'cumsum') else big
        yield f'{name} of 4096', lambda m, x, name=name: getattr(m, name)(x, 1), (x,)
        yield f'{name} over 64 rows', lambda m, x, name=name: getattr(m, name)(x, 0), (x,)
    yield 'sum of 2^18', lambda m, x: m.sum(x), (big + 1,)
    yield 'softmax of 4096', lambda m, x: m.softmax(x, 1), (big,)
    yield 'log_softmax of 4096', lambda m, x: m.log_softmax(x, 1), (big,)
    yield 'layer_norm of 4096', lambda m, x: m.nn.functional.layer_norm(x, (4096,)), (big + 1,)
    yield 'group_norm', lambda m, x: m.nn.functional.group_norm(x, 8), (numbers(random, 4, 64, 28, 28) + 1,)
    yield 'cross_entropy', lambda m, x: -m.log_softmax(x, 1)[:, 7].mean(), (big,)
    yield 'cdist', lambda m, x, y: m.cdist(x, y), (numbers(random, 1, 200, 64), numbers(random, 1, 300, 64))


def products(random):
    for m_, k, n in ((64, 64, 64), (16, 256, 1024), (197, 768, 768), (77, 301, 513), (1, 4096, 512), (300, 5, 300)):
        yield f'mm {m_} x {k} x {n}', lambda m, x, y: m.mm(x, y), (numbers(random, m_, k), numbers(random, k, n))
    q = tuple(numbers(random, 2, 4, 128, 64) for _ in range(3))
    yield 'bmm', lambda m, x, y: m.bmm(x, y), (numbers(random, 8, 64, 96), numbers(random, 8, 96, 80))
    for causal in (False, True):
        yield (f'attention{", causal" * causal}', lambda m, q, k, v, c=causal:
               m.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=c), q)
    for name, x, w, more in (('conv1d', (4, 32, 200), (48, 32, 5), {}),
                             ('conv2d 3 x 3', (2, 64, 28, 28), (64, 64, 3, 3), {'padding': 1}),
                             ('conv2d 7 x 7, stride 2', (2, 3, 112, 112), (64, 3, 7, 7), {'stride': 2, 'padding': 3}),
                             ('conv2d 1 x 1', (2, 256, 14, 14), (512, 256, 1, 1), {}),
                             ('conv2d depthwise', (2, 96, 28, 28), (96, 1, 7, 7), {'padding': 3, 'groups': 96}),
                             ('conv3d', (1, 16, 8, 14, 14), (32, 16, 3, 3, 3), {'padding': 1})):
        yield (name, lambda m, x, w, f=name.split()[0], more=more: getattr(m.nn.functional, f)(x, w, **more),
               (numbers(random, *x), numbers(random, *w)))
    yield 'rfft of 4096', lambda m, x: m.view_as_real(m.fft.rfft(x)), (numbers(random, 16, 4096),)
    yield 'rfft of 1009', lambda m, x: m.view_as_real(m.fft.rfft(x)), (numbers(random, 16, 1009),)


KINDS = {'functions': functions, 'sums': sums, 'products': products}
DTYPES = {'f32': torch.float32, 'bf16': torch.bfloat16, 'f16': torch.float16, 'f64': torch.float64}


def exact_f64(name, inputs):
    """The function in longdouble, or None."""
    fn = getattr(np, {'asin': 'arcsin', 'acos': 'arccos', 'atan': 'arctan', 'asinh': 'arcsinh', 'atanh': 'arctanh',
                      'atan2': 'arctan2', 'pow': 'power'}.get(name.split(',')[0], name.split(',')[0]), None)
    if not isinstance(fn, np.ufunc):
        return None
    return fn(*(x.numpy().astype(np.longdouble) for x in inputs))


def ulps(found, exact, dtype):
    """Greatest and root mean square error in ulp of the exact result."""
    info = torch.finfo(dtype)
    size = np.maximum(np.abs(exact), info.smallest_normal)
    ulp = np.exp2(np.floor(np.log2(size.astype(np.float64)))) * info.eps
    with np.errstate(invalid='ignore', over='ignore'):
        error = np.abs(found.astype(exact.dtype) - exact) / ulp
    error = error[np.isfinite(exact) & (np.abs(exact) < info.max) & np.isfinite(error)]
    return float(error.max()), float(np.sqrt((error.astype(np.float64) ** 2).mean()))


def norms(found, exact, dtype):
    """Norm of the error, and the greatest, over norm and greatest of the result, in epsilons."""
    error, eps = np.abs(found.astype(exact.dtype) - exact), torch.finfo(dtype).eps
    return (float(error.max() / np.abs(exact).max() / eps),
            float(np.sqrt((error ** 2).mean() / (exact ** 2).mean()) / eps))


def measure(kind, name, fn, inputs, dtype):
    """((greatest, rms) of ours, of PyTorch); None if one of them lacks the row."""
    narrow = [x.to(dtype) for x in inputs]
    wide = [x.to(torch.float64) for x in narrow]
    if dtype is torch.float64:
        exact = exact_f64(name, wide) if kind == 'functions' else None
    else:
        exact = fn(torch, *wide).numpy()
    if exact is None:
        return None
    try:
        theirs = fn(torch, *narrow)
        ours = dt.to_torch(fn(dt, *(dt.from_torch(x) for x in narrow)))
    except (RuntimeError, NotImplementedError, TypeError, AttributeError):
        return None
    measure_error = ulps if kind == 'functions' else norms
    return tuple(measure_error(y.to(torch.float64).numpy(), exact, dtype) for y in (ours, theirs))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--match', default='', help='only rows whose name this expression finds')
    args = parser.parse_args()
    short = rows = 0
    for kind, made in KINDS.items():
        unit = 'ulp' if kind == 'functions' else 'eps'
        print(f'\n| {kind} | dtype | ours: greatest, rms ({unit}) | PyTorch: greatest, rms | |\n|---|---|---|---|---|')
        for name, fn, inputs in made(np.random.default_rng(args.seed)):
            for d, dtype in DTYPES.items():
                found = measure(kind, name, fn, inputs, dtype) if re.search(args.match, f'{name} {d}') else None
                if not found:
                    continue
                ours, theirs = found
                worse = all(a > 1.1 * max(b, least) for a, b, least in zip(ours, theirs, (0.52, 0.3)))
                rows += 1
                short += worse
                print(f'| {name} | {d} | {ours[0]:.3g}, {ours[1]:.3g} | {theirs[0]:.3g}, {theirs[1]:.3g} | '
                      f'{"**short**" if worse else ""} |')
    print(f'\n{rows} rows, {short} short')
    return 1 if short else 0


if __name__ == '__main__':
    sys.exit(main())
