# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Bytes of bool other than 0 and 1, which a program writes through a buffer or a view, are true, as in NumPy."""
import numpy as np
import pytest

import devtensor as dt

BYTES = [2, 255, 0, 1] * 40


def odd(dense=True):
    """The same elements as an array of NumPy and as a tensor."""
    t = dt.zeros(len(BYTES) if dense else (len(BYTES), 3), dtype=dt.bool)
    t = t if dense else t[:, 1]
    np.asarray(t).view(np.uint8)[:] = BYTES
    return np.array(BYTES, dtype=np.uint8).view(bool), t


def plain():
    a = np.array([True, False, False, True] * 40)
    return a, dt.tensor(a.tolist())


REDUCTIONS = [lambda a: a.sum(), lambda a: a.any(), lambda a: a.all(), lambda a: a[:1].all(),
              lambda a: a.reshape(-1, 4).sum(0),
              lambda a: a.reshape(-1, 4).sum(1), lambda a: a.reshape(-1, 4).all(1), lambda a: a[:2].prod()]


@pytest.mark.parametrize('dense', [True, False])
@pytest.mark.parametrize('call', REDUCTIONS)
def test_reductions(call, dense):
    a, t = odd(dense)
    assert call(t).tolist() == call(a).tolist()


@pytest.mark.parametrize('dense', [True, False])
def test_counts_and_sums(dense):
    a, t = odd(dense)
    assert t.count_nonzero().item() == np.count_nonzero(a)
    assert t.cumsum(0).tolist() == np.cumsum(a).tolist()
    assert t.mean(dtype=dt.float32).item() == a.mean()


@pytest.mark.parametrize('dtype', ['uint8', 'int8', 'int16', 'int32', 'int64', 'uint16', 'uint32', 'uint64', 'float16',
                                   'float32',
                                   'float64', 'complex64', 'complex128'])
def test_conversions(dtype):
    a, t = odd()
    assert t.to(dt.dtype(dtype)).tolist() == a.astype(dtype).tolist()


@pytest.mark.parametrize('dense', [True, False])
@pytest.mark.parametrize('op', [lambda a, b: a == b, lambda a, b: a != b, lambda a, b: a < b, lambda a, b: a <= b,
                                lambda a, b: a > b, lambda a, b: a >= b, lambda a, b: a & b, lambda a, b: a | b,
                                lambda a, b: a ^ b, lambda a, b: a * b])
def test_binary_operators(op, dense):
    (a, t), (b, u) = odd(dense), plain()
    assert op(t, u).tolist() == op(a, b).tolist() and op(u, t).tolist() == op(b, a).tolist()
    assert op(t, t).tolist() == op(a, a).tolist()


def test_arithmetic_with_other_dtypes():
    a, t = odd()
    assert (t + 1).tolist() == (a + 1).tolist() and (t * 2.5).tolist() == (a * 2.5).tolist()
    assert (t + dt.ones(len(BYTES))).tolist() == (a + np.ones(len(BYTES))).tolist()


def test_masks():
    a, t = odd()
    n = dt.arange(len(BYTES))
    assert n[t].tolist() == np.arange(len(BYTES))[a].tolist() and (~t).tolist() == (~a).tolist()
    assert dt.where(t, 1, 0).tolist() == np.where(a, 1, 0).tolist() and t.nonzero().shape[0] == 120
