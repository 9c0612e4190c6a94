# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Second names of operators, and functions that are composed of operators, beside NumPy's."""
import devtensor as dt
import numpy as np
import pytest
from devtensor import _names


def near(tensor, array):
    return np.allclose(tensor.numpy(), array, 1e-5, 1e-6, equal_nan=True) and tensor.shape == np.shape(array)


@pytest.fixture
def x():
    dt.manual_seed(1)
    return dt.randn(4, 6)


def test_second_names():
    for name, operator in _names._ALIASES.items():
        assert getattr(dt, name) is getattr(dt, operator)
        assert getattr(dt.Tensor, name) is getattr(dt.Tensor, operator)
    t = dt.ones(3)
    assert t.multiply_(4).subtract_(1).clip_(0, 2) is t and t.tolist() == [2, 2, 2]


def test_unique():
    t = dt.tensor([[3, 1, 3], [3, 1, 3], [0, 2, 0]])
    assert dt.unique(t).tolist() == [0, 1, 2, 3]
    values, inverse, counts = t.unique(return_inverse=True, return_counts=True)
    assert (values[inverse] == t).all() and counts.tolist() == [2, 2, 1, 4]
    rows, counts = t.unique(dim=0, return_counts=True)
    assert rows.tolist() == [[0, 2, 0], [3, 1, 3]] and counts.tolist() == [1, 2]
    with pytest.raises(IndexError):
        t.unique(dim=2)


def test_statistics(x):
    a = x.numpy()
    assert near(x.cov(), np.cov(a)) and near(x.cov(correction=0), np.cov(a, ddof=0)) and near(x[0].cov(), np.cov(a[0]))
    assert near(x.corrcoef(), np.corrcoef(a)) and near(x[0].corrcoef(), 1.0)
    counts, weights = dt.tensor([1, 2, 0, 1, 3, 1]), dt.rand(6)
    for ddof in 0, 1:
        assert near(x.cov(correction=ddof, fweights=counts, aweights=weights),
                    np.cov(a, ddof=ddof, fweights=counts.numpy(), aweights=weights.numpy()))
    whole = dt.tensor([[0, 1, 2], [2, 1, 3]])
    assert near(whole.cov(), np.cov(whole.numpy())) and near(whole.corrcoef(), np.corrcoef(whole.numpy()))
    for weights in dt.ones(1), dt.ones(5), dt.ones(1, 6), dt.tensor([1.0, 2, -1, 1, 1, 1]), dt.zeros(6):
        for name in 'fweights', 'aweights':
            with pytest.raises(ValueError, match=name):
                x.cov(**{name: weights})
    with pytest.raises(ValueError):
        dt.ones(2, 2, 2).cov()
    z = dt.complex(x, x.flip(0))
    assert near(z.cov(), np.cov(z.numpy())) and near(z.corrcoef(), np.corrcoef(z.numpy()))
    whole = counts.reshape(2, 3)
    assert near(whole.cov(), np.cov(whole.numpy())) and near(whole.corrcoef(), np.corrcoef(whole.numpy()))
    assert near(x[:1].cov(), np.cov(a[:1]))
    line = dt.arange(7) / 7
    for factor in range(1, 200):
        assert dt.stack([line, line * (factor / 3)]).corrcoef().abs().max() <= 1
    for wrong in {'fweights': -counts}, {'aweights': weights - 9}, {'fweights': counts[:5]}, {'aweights': x}:
        with pytest.raises(ValueError):
            x.cov(**wrong)
    x[1, 2] = float('nan')
    a = x.numpy()
    assert near(x.nanmean(), np.nanmean(a)) and near(x.nanmean(1, True), np.nanmean(a, 1, keepdims=True))
    assert near(x.nanmean(keepdim=True), np.nanmean(a, keepdims=True))
    assert x.nanmean(dtype=dt.float64).dtype is dt.float64


def test_functions(x):
    a = x.numpy()
    assert near(dt.rad2deg(x), np.rad2deg(a)) and near(x.deg2rad(), np.deg2rad(a)) and near(x.sinc(), np.sinc(a))
    assert near(x.sigmoid().logit(), a) and near(x.dist(-x), np.linalg.norm(2 * a)) and x.positive() is x
    with pytest.raises(TypeError):
        (x > 0).positive()
    assert near(dt.polar(x.abs(), x), np.abs(a) * np.exp(1j * a))
    assert dt.complex(dt.ones(2, 1), dt.zeros(3)).shape == (2, 3)
    with pytest.raises(TypeError):
        dt.complex(dt.ones(2), dt.ones(2, dtype=dt.float64))
    places = dt.tensor([0.0, 1, 3, 4, 7, 8])
    assert near(dt.trapezoid(x, places), np.trapz(a, places.numpy()))
    assert near(dt.trapezoid(x, dx=0.5, dim=0), np.trapz(a, dx=0.5, axis=0))
    assert near(dt.trapezoid(x, x, dim=0), np.trapz(a, a, axis=0)) and dt.trapezoid(x[:, :1]).tolist() == [0] * 4
    assert dt.trapezoid(dt.tensor([200, 200, 250], dtype=dt.uint8)).item() == 425
    assert dt.trapezoid(dt.tensor([float('inf')])).item() == 0
    for wrong in places[:2], places[:1], places[0], x[:, :2]:
        with pytest.raises(ValueError, match='places'):
            dt.trapezoid(x, wrong)
    for y, dim in (x[0, 0], -1), (x, 2), (x, -3):
        with pytest.raises(IndexError, match='trapezoid'):
            dt.trapezoid(y, dim=dim)
    assert dt.trapezoid(dt.tensor([4])).dtype is dt.float32
    with pytest.raises(TypeError):
        dt.trapezoid(x > 0)
    y = x.clone().requires_grad_()
    dt.trapezoid(y, places).sum().backward()
    assert y.grad[0].tolist() == [0.5, 1.5, 1.5, 2, 2, 0.5]


def test_questions(x):
    assert dt.is_tensor(x) and not dt.is_tensor(3) and dt.is_floating_point(x) and not dt.is_complex(x)
    assert dt.numel(x) == 24 and dt.get_default_dtype() is dt.float32
    assert x.equal(x.clone()) and not x.equal(x + 1) and not dt.equal(x, x[:2])
    for shapes in ((2, 1), (1, 3)), ((), (4,)), ((5,), (3, 1, 5)), ((0,), (1,)), (3, (2, 3)), ():
        assert dt.broadcast_shapes(*shapes) == np.broadcast_shapes(*shapes)
    for shapes in ((2,), (3,)), ((0,), (2,)), ((-1,),):
        with pytest.raises(ValueError):
            dt.broadcast_shapes(*shapes)
    for shapes in ((1.5,),), ('ab',), (None,):
        with pytest.raises(TypeError):
            dt.broadcast_shapes(*shapes)


def test_limits():
    for name in 'float16', 'float32', 'float64':
        ours, numpy = dt.finfo(getattr(dt, name)), np.finfo(name)
        assert (ours.bits, ours.eps, ours.max, ours.min, ours.tiny) == (numpy.bits, numpy.eps, numpy.max, numpy.min,
                                                                        numpy.tiny)
        assert ours.resolution == pytest.approx(float(numpy.resolution), rel=0.01) and ours.dtype == name
    assert dt.finfo(dt.complex128).eps == dt.finfo('float64').eps and dt.finfo().bits == 32
    assert dt.finfo(dt.bfloat16).max == dt.tensor(0x7f7f, dtype=dt.int16).view(dt.bfloat16).item()
    for name in 'uint8', 'int8', 'int16', 'int64', 'uint32', 'uint64':
        ours, numpy = dt.iinfo(name), np.iinfo(name)
        assert (ours.bits, ours.max, ours.min, ours.dtype) == (numpy.bits, numpy.max, numpy.min, name)
    for wrong in lambda: dt.finfo(dt.int32), lambda: dt.iinfo(dt.float32), lambda: dt.iinfo(dt.bool):
        with pytest.raises(TypeError):
            wrong()


def test_threads():
    before = dt.get_num_threads()
    dt.set_num_threads(1)
    assert dt.get_num_threads() == 1
    dt.set_num_threads(before)
    for wrong in 0, -1, 257, 2 ** 40:
        with pytest.raises(ValueError):
            dt.set_num_threads(wrong)
    with pytest.raises(TypeError):
        dt.set_num_threads('two')
    assert dt.get_num_threads() == before
