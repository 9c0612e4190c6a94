# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""devtensor.array_api keeps the promises of the standard that implementations break most often.

The standard's own test suite (make test-array-api) needs a copy of it; these tests need NumPy.
"""
import itertools
import math
import warnings

import numpy as np
import pytest

import devtensor as dt
import devtensor.array_api as xp

INTS = ['int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64']
FLOATS = ['float32', 'float64']
COMPLEX = ['complex64', 'complex128']
ALL = ['bool', *INTS, *FLOATS, *COMPLEX]
NAN, INF = math.nan, math.inf

#: The function names of the standard of 2025.12, by section.
FUNCTIONS = {
    'constants': 'e inf nan newaxis pi',
    'creation': 'arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like '
                'tril triu zeros zeros_like',
    'types': 'astype broadcast_arrays broadcast_shapes broadcast_to can_cast finfo iinfo isdtype result_type',
    'elementwise': 'abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert '
                   'bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp '
                   'expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal '
                   'log log1p log2 log10 logaddexp logical_and logical_not logical_or logical_xor maximum minimum '
                   'multiply negative nextafter not_equal positive pow real reciprocal remainder round sign '
                   'signbit sin sinh sqrt square subtract tan tanh trunc',
    'indexing': 'take take_along_axis',
    'linear algebra': 'matmul matrix_transpose tensordot vecdot',
    'manipulation': 'concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack tile unstack',
    'searching': 'argmax argmin count_nonzero nonzero searchsorted where',
    'sets': 'isin unique_all unique_counts unique_inverse unique_values',
    'sorting': 'argsort sort',
    'statistics': 'cumulative_prod cumulative_sum max mean min prod std sum var',
    'utilities': 'all any diff',
}
LINALG = ('cholesky cross det diagonal eig eigh eigvals eigvalsh inv matmul matrix_norm matrix_power matrix_rank '
          'matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm')
FFT = 'fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift ifftshift'


def test_every_name_of_the_standard_exists():
    for section, names in FUNCTIONS.items():
        assert [n for n in names.split() if not hasattr(xp, n)] == [], section
    assert [n for n in LINALG.split() if not hasattr(xp.linalg, n)] == []
    assert [n for n in FFT.split() if not hasattr(xp.fft, n)] == []
    assert xp.ones(1).__array_namespace__() is xp


def same(ours, theirs):
    theirs = np.asarray(theirs)
    assert str(ours.dtype).rsplit('.', 1)[-1] == str(theirs.dtype)
    assert ours.shape == theirs.shape
    np.testing.assert_array_equal(np.asarray(ours), theirs)


# ---- data types -----------------------------------------------------------------------------------


def promoted(a, b):
    """What the standard promises for two data types; None where it promises nothing."""
    if a == b:
        return a
    kinds = {np.dtype(a).kind, np.dtype(b).kind}
    if 'b' in kinds or (kinds & set('iu') and kinds & set('fc')):
        return None
    wide = np.promote_types(a, b)
    return None if kinds == {'i', 'u'} and wide.kind == 'f' else str(wide)


@pytest.mark.parametrize('a, b', itertools.product(ALL, ALL))
def test_types_promote_as_promised(a, b):
    x, y, expected = getattr(xp, a), getattr(xp, b), promoted(a, b)
    if expected:
        assert xp.result_type(x, y) is getattr(xp, expected)
        assert xp.add(xp.ones(2, dtype=x), xp.ones((), dtype=y)).dtype is getattr(xp, expected) or a == b == 'bool'
    else:
        try:
            assert isinstance(xp.result_type(x, y), dt.dtype)
        except TypeError:
            pass  # the standard leaves it open: a type, or this error
    assert isinstance(xp.can_cast(x, y), bool)


def test_can_cast_answers_where_no_type_holds_both():
    assert xp.can_cast(xp.uint64, xp.int8) is False and xp.can_cast(xp.int8, xp.uint64) is False
    assert xp.can_cast(xp.uint8, xp.int16) is True and xp.can_cast(xp.int16, xp.uint8) is False
    assert xp.can_cast(xp.zeros(1, dtype=xp.float32), xp.complex64) is True
    assert xp.can_cast(xp.float64, xp.complex64) is False


@pytest.mark.parametrize('name', ALL)
def test_a_python_number_takes_the_array_s_type(name):
    x = xp.ones(3, dtype=getattr(xp, name))
    number = True if name == 'bool' else 2
    assert xp.result_type(x, number) is x.dtype
    assert xp.where(xp.asarray([True, False, True]), x, number).dtype is x.dtype
    if name in FLOATS:
        assert (x + 1.5).dtype is x.dtype and (1.5 - x).dtype is x.dtype
        assert (x + 1j).dtype is {xp.float32: xp.complex64, xp.float64: xp.complex128}[x.dtype]
    if name in INTS:
        assert (x + 1).dtype is x.dtype and (1 << x).dtype is x.dtype


@pytest.mark.parametrize('name', FLOATS + COMPLEX)
def test_limits_of_floating_types(name):
    ours, theirs = xp.finfo(getattr(xp, name)), np.finfo(name)
    for field in ('bits', 'eps', 'max', 'min', 'smallest_normal'):
        assert getattr(ours, field) == getattr(theirs, field), field
    assert ours.dtype is getattr(xp, str(theirs.dtype))


@pytest.mark.parametrize('name', INTS)
def test_limits_of_integers(name):
    ours, theirs = xp.iinfo(getattr(xp, name)), np.iinfo(name)
    assert (ours.bits, ours.min, ours.max) == (theirs.bits, theirs.min, theirs.max)


def test_kinds_of_types():
    kinds = ['bool', 'signed integer', 'unsigned integer', 'integral', 'real floating', 'complex floating', 'numeric']
    for name in ALL:
        kind = np.dtype(name).kind
        found = {k for k in kinds if xp.isdtype(getattr(xp, name), k)}
        assert found == {'b': {'bool'}, 'i': {'signed integer', 'integral', 'numeric'},
                         'u': {'unsigned integer', 'integral', 'numeric'}, 'f': {'real floating', 'numeric'},
                         'c': {'complex floating', 'numeric'}}[kind], name
    assert xp.isdtype(xp.int8, (xp.float32, 'signed integer'))
    assert not xp.isdtype(xp.int8, ())


# ---- elementwise ----------------------------------------------------------------------------------

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, INF, -INF, NAN, 1e-310, 3.0, -3.0, 1e300]
UNARY = ('abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite isinf isnan log log1p log2 '
         'log10 negative positive round sign signbit sin sinh sqrt square tan tanh trunc').split()
NUMPY_NAMES = {'acos': 'arccos', 'acosh': 'arccosh', 'asin': 'arcsin', 'asinh': 'arcsinh', 'atan': 'arctan',
               'atan2': 'arctan2', 'atanh': 'arctanh', 'pow': 'power', 'bitwise_left_shift': 'left_shift',
               'bitwise_right_shift': 'right_shift',
               'bitwise_invert': 'invert', 'round': 'rint'}


def of_numpy(name):
    return getattr(np, NUMPY_NAMES.get(name, name))


@pytest.mark.parametrize('name', UNARY)
def test_special_values_of_one_argument(name):
    x = np.array(SPECIAL)
    with np.errstate(all='ignore'):
        expected = of_numpy(name)(x)
    found = np.asarray(getattr(xp, name)(xp.asarray(x)))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=4e-15, atol=1e-323)
    if expected.dtype.kind == 'f':
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(expected)[known])


@pytest.mark.parametrize('name', 'add atan2 copysign divide floor_divide hypot logaddexp maximum minimum multiply '
                                 'nextafter pow remainder subtract equal less less_equal'.split())
def test_special_values_of_two_arguments(name):
    x, y = (np.array(v) for v in zip(*itertools.product(SPECIAL, SPECIAL)))
    if name in ('floor_divide', 'remainder'):
        keep = np.isfinite(x) & np.isfinite(y) & (np.abs(x) < 1e3) & (np.abs(y) > 1e-300)
        x, y = x[keep], y[keep]
    with np.errstate(all='ignore'):
        expected = of_numpy(name)(x, y)
    found = np.asarray(getattr(xp, name)(xp.asarray(x), xp.asarray(y)))
    np.testing.assert_allclose(found, expected, rtol=4e-15, atol=1e-323)
    if expected.dtype.kind == 'f':
        known = ~np.isnan(expected) & ((expected != 0) | (name not in ('maximum', 'minimum')))
        np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(expected)[known])


@pytest.mark.parametrize('name', INTS)
def test_integer_division_rounds_down(name):
    low = -7 if name.startswith('i') else 0
    x, y = (np.array(v, dtype=name) for v in zip(*((a, b) for a in range(low, 8) for b in range(low, 8) if b)))
    a, b = xp.asarray(x), xp.asarray(y)
    same(a // b, x // y)
    same(a % b, x % y)
    same(xp.pow(a, xp.asarray(np.abs(y))), x ** np.abs(y))
    for shifted in ('bitwise_left_shift', 'bitwise_right_shift'):
        same(getattr(xp, shifted)(a, xp.asarray(np.abs(y))), of_numpy(shifted)(x, np.abs(y)))


def test_clip_keeps_the_type_and_takes_one_bound():
    x = xp.asarray([-3, 0, 3], dtype=xp.int8)
    for low, high in itertools.product((None, -1), (None, 1)):
        same(xp.clip(x, low, high), np.asarray(x) if low is high is None else np.clip(np.asarray(x), low, high))
    same(xp.clip(xp.asarray([1.0, NAN, 3.0]), 2, None), np.array([2, NAN, 3], dtype=np.float32))
    low = np.array([[-2], [1]], np.int8)
    same(xp.clip(x, xp.asarray(low), 2), np.clip(np.asarray(x), low, np.int8(2)))


@pytest.mark.parametrize('name', COMPLEX)
def test_sign_and_reciprocal_of_complex_numbers(name):
    x = np.array([3 + 4j, -2, 0, 1j], dtype=name)
    np.testing.assert_allclose(np.asarray(xp.sign(xp.asarray(x))), [0.6 + 0.8j, -1, 0, 1j], rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(xp.real(xp.asarray(x))), x.real)
    np.testing.assert_array_equal(np.asarray(xp.conj(xp.asarray(x))), x.conj())


# ---- reductions -----------------------------------------------------------------------------------


@pytest.mark.parametrize('name', INTS)
def test_sums_of_small_integers_are_wide(name):
    x = np.full(300, 100, dtype=name)
    wide = 'uint64' if name.startswith('u') else 'int64'
    for function in ('sum', 'prod', 'cumulative_sum', 'cumulative_prod'):
        assert getattr(xp, function)(xp.asarray(x)).dtype in (getattr(xp, wide), getattr(xp, name))
    assert int(xp.sum(xp.asarray(x))) == 30000
    assert xp.sum(xp.asarray(x), dtype=getattr(xp, name)).dtype is getattr(xp, name)


def test_reductions_over_nothing():
    empty = xp.zeros((0, 3))
    same(xp.sum(empty, axis=0), np.zeros(3, np.float32))
    same(xp.prod(empty, axis=0), np.ones(3, np.float32))
    assert bool(xp.all(empty)) is True and bool(xp.any(empty)) is False
    assert xp.sum(empty, axis=1).shape == (0,)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        assert bool(xp.isnan(xp.mean(empty)))
    for function in (xp.max, xp.min, xp.argmax):
        with pytest.raises((ValueError, IndexError)):
            function(empty)


@pytest.mark.parametrize('axis', [None, 0, 1, -1, (0, 1), (), (0, -1)])
@pytest.mark.parametrize('keepdims', [False, True])
def test_axes_of_reductions(axis, keepdims):
    x = np.arange(24, dtype=np.float64).reshape(2, 3, 4) ** 1.5
    for name in ('sum', 'prod', 'max', 'min', 'mean', 'std', 'var', 'all', 'any', 'count_nonzero'):
        if name == 'count_nonzero' and axis == ():
            continue  # NumPy fails
        found = np.asarray(getattr(xp, name)(xp.asarray(x), axis=axis, keepdims=keepdims))
        np.testing.assert_allclose(found, getattr(np, name)(x, axis=axis, keepdims=keepdims), rtol=1e-12)
    for correction in (0, 1, 0.5):
        found = np.asarray(xp.var(xp.asarray(x), axis=axis, correction=correction, keepdims=keepdims))
        n = x.size if axis is None else math.prod([x.shape[a] for a in (axis if isinstance(axis, tuple) else (axis,))])
        with np.errstate(all='ignore'):
            expected = np.var(x, axis=axis, keepdims=keepdims) * n / (n - correction)
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_cumulative_sums_include_what_they_begin_with():
    x = xp.asarray([[1, 2, 3], [4, 5, 6]])
    same(xp.cumulative_sum(x, axis=1, include_initial=True), np.array([[0, 1, 3, 6], [0, 4, 9, 15]]))
    same(xp.cumulative_prod(x, axis=0, include_initial=True), np.array([[1, 1, 1], [1, 2, 3], [4, 10, 18]]))
    with pytest.raises(ValueError):
        xp.cumulative_sum(x)
    assert xp.cumulative_sum(xp.zeros((2, 0)), axis=1, include_initial=True).shape == (2, 1)


def test_differences_take_ends():
    x = np.array([1, 4, 9, 16])
    same(xp.diff(xp.asarray(x), n=2), np.diff(x, n=2))
    same(xp.diff(xp.asarray(x), prepend=xp.asarray([0]), append=xp.asarray([25])), np.diff(x, prepend=0, append=25))


# ---- sorting, searching, sets ---------------------------------------------------------------------


def test_order_of_equal_elements_stays():
    x = xp.asarray([2, 1, 2, 1, 2])
    same(xp.argsort(x), np.array([1, 3, 0, 2, 4]))
    same(xp.argsort(x, descending=True), np.array([0, 2, 4, 1, 3]))
    same(xp.sort(xp.asarray([True, False, True]), descending=True), np.array([True, True, False]))
    same(xp.sort(xp.asarray([0, 255, 1], dtype=xp.uint8), descending=True), np.array([255, 1, 0], np.uint8))


def test_the_first_of_equal_extremes():
    x = np.array([[1, 3, 3], [2, 0, 2]])
    for axis, keepdims in itertools.product((None, 0, 1, -1), (False, True)):
        same(xp.argmax(xp.asarray(x), axis=axis, keepdims=keepdims), np.argmax(x, axis=axis, keepdims=keepdims))


def test_search_of_sorted_arrays():
    x = xp.asarray([1.0, 2.0, 2.0, 3.0])
    same(xp.searchsorted(x, xp.asarray([0.0, 2.0, 9.0])), np.array([0, 1, 4]))
    same(xp.searchsorted(x, xp.asarray([[2.0], [3.0]]), side='right'), np.array([[3], [4]]))
    shuffled = xp.asarray([3.0, 1.0, 2.0, 2.0])
    same(xp.searchsorted(shuffled, xp.asarray([2.0]), sorter=xp.argsort(shuffled)), np.array([1]))


def test_nan_differs_from_nan_in_sets():
    x = xp.asarray([NAN, 1.0, NAN, 1.0])
    values, counts = xp.unique_counts(x)
    assert values.shape == (3,) and sorted(counts.tolist()) == [1, 1, 2]
    result = xp.unique_all(xp.asarray([[2, 1], [2, 3]]))
    same(result.values, np.array([1, 2, 3]))
    same(result.indices, np.array([1, 0, 3]))
    same(result.inverse_indices, np.array([[1, 0], [1, 2]]))
    same(result.counts, np.array([1, 2, 1]))
    same(xp.isin(xp.asarray([1, 2, 3]), xp.asarray([2, 9])), np.array([False, True, False]))
    same(xp.isin(xp.asarray([1, 2, 3]), 2, invert=True), np.array([True, False, True]))


def test_nonzero_has_an_array_for_each_axis():
    found = xp.nonzero(xp.asarray([[0, 1], [2, 0]]))
    assert isinstance(found, tuple) and [f.tolist() for f in found] == [[0, 1], [1, 0]]
    with pytest.raises((ValueError, IndexError, RuntimeError)):
        xp.nonzero(xp.asarray(1))


# ---- shapes ---------------------------------------------------------------------------------------


def test_manipulation():
    x = np.arange(6).reshape(1, 2, 3)
    a = xp.asarray(x)
    same(xp.roll(a, 4), np.roll(x, 4))
    same(xp.roll(a, (1, -1), axis=(1, 2)), np.roll(x, (1, -1), axis=(1, 2)))
    same(xp.flip(a), np.flip(x))
    same(xp.flip(a, axis=-1), np.flip(x, axis=-1))
    same(xp.moveaxis(a, (0, 1), (-1, 0)), np.moveaxis(x, (0, 1), (-1, 0)))
    same(xp.tile(a, (2, 1, 1, 2)), np.tile(x, (2, 1, 1, 2)))
    same(xp.repeat(a, 2, axis=1), np.repeat(x, 2, axis=1))
    same(xp.repeat(a, xp.asarray([1, 0, 2]), axis=2), np.repeat(x, [1, 0, 2], axis=2))
    same(xp.concat([a, a], axis=None), np.concatenate([x, x], axis=None))
    same(xp.expand_dims(a, axis=-1), np.expand_dims(x, -1))
    same(xp.squeeze(a, axis=0), x[0])
    assert [u.tolist() for u in xp.unstack(a, axis=2)] == [x[:, :, i].tolist() for i in range(3)]
    with pytest.raises((ValueError, RuntimeError)):
        xp.squeeze(a, axis=1)
    with pytest.raises((ValueError, IndexError)):
        xp.expand_dims(a, axis=5)
    assert xp.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    same(xp.take(a, xp.asarray([-1, 0]), axis=2), np.take(x, [-1, 0], axis=2))
    same(xp.take_along_axis(a, xp.asarray([[[2, 0]]]), axis=2), np.take_along_axis(x, np.array([[[2, 0]]]), 2))


def test_reshape_says_when_it_copies():
    x = xp.asarray([[1, 2], [3, 4]])
    view = xp.reshape(x, (4,), copy=False)
    view[0] = 9
    assert x[0, 0].item() == 9
    copied = xp.reshape(x, (4,), copy=True)
    copied[0] = 7
    assert x[0, 0].item() == 9
    with pytest.raises(ValueError):
        xp.reshape(x.mT, (4,), copy=False)


def test_creation():
    same(xp.arange(5, 0, -2), np.arange(5, 0, -2))
    same(xp.arange(0, 1, 0.25), np.arange(0, 1, 0.25, dtype=np.float32))
    assert xp.arange(3, 3).shape == (0,) and xp.arange(5, 1).shape == (0,)
    same(xp.linspace(0, 1, 4, endpoint=False, dtype=xp.float64), np.linspace(0, 1, 4, endpoint=False))
    same(xp.eye(2, 3, k=-1), np.eye(2, 3, k=-1, dtype=np.float32))
    same(xp.full((2,), True), np.full(2, True))
    same(xp.full(3, 2), np.full(3, 2))
    same(xp.tril(xp.ones((3, 3)), k=1), np.tril(np.ones((3, 3), np.float32), k=1))
    assert [m.shape for m in xp.meshgrid(xp.ones(2), xp.ones(3))] == [(3, 2), (3, 2)]
    assert [m.shape for m in xp.meshgrid(xp.ones(2), xp.ones(3), indexing='ij')] == [(2, 3), (2, 3)]
    same(xp.asarray([[1, 2.5], [3, 4]]), np.array([[1, 2.5], [3, 4]], np.float32))
    assert xp.asarray(2 ** 63, dtype=xp.uint64).item() == 2 ** 63
    with pytest.raises((OverflowError, ValueError, TypeError)):
        xp.asarray(2 ** 64)


def test_copies_of_asarray():
    x = xp.asarray([1.0, 2.0])
    assert xp.asarray(x, copy=False).data_ptr() == x.data_ptr() == xp.asarray(x).data_ptr()
    assert xp.asarray(x, copy=True).data_ptr() != x.data_ptr()
    with pytest.raises(ValueError):
        xp.asarray(x, dtype=xp.float64, copy=False)
    with pytest.raises(ValueError):
        xp.asarray([1.0], copy=False)


# ---- the array object -----------------------------------------------------------------------------


def test_conversions_are_of_the_array_s_kind():
    assert complex(xp.asarray(1 + 2j)) == 1 + 2j and float(xp.asarray(2)) == 2.0
    assert int(xp.asarray(-1.7)) == -1 and bool(xp.asarray(0)) is False and [10, 20][xp.asarray(1)] == 20
    for call, value in ((float, 1j), (int, 1j)):
        with pytest.raises(TypeError):
            call(xp.asarray(value))
    with pytest.raises(TypeError):
        [1, 2][xp.asarray(1.0)]
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        bool(xp.ones(2))
    with pytest.raises(OverflowError):
        int(xp.asarray(INF))


def test_properties():
    x = xp.zeros((2, 3))
    assert (x.ndim, x.shape, x.size, str(x.device)) == (2, (2, 3), 6, 'cpu')
    assert x.T.shape == x.mT.shape == (3, 2)
    assert x.to_device(x.device).shape == (2, 3)
    with pytest.raises((ValueError, AttributeError)):
        xp.ones(3).T
    with pytest.raises(TypeError):
        hash(x)
    same(+xp.asarray([1, -1]), np.array([1, -1]))
    y = xp.ones(2, dtype=xp.int8)
    kept = y
    y += 1
    assert y is kept and y.dtype is xp.int8
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        y += 1.5


def test_a_masked_selection():
    x = np.arange(6).reshape(2, 3)
    a = xp.asarray(x)
    same(a[a > 2], x[x > 2])
    a[a > 2] = 0
    same(a, np.where(x > 2, 0, x))
    same(a[xp.asarray(True)], np.where(x > 2, 0, x)[None])
    same(a[xp.asarray([1, 0]), :], np.where(x > 2, 0, x)[[1, 0]])


# ---- linear algebra and transforms ----------------------------------------------------------------


def test_stacks_of_matrices():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 3, 3))
    a = xp.asarray(x)
    near = dict(rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(xp.linalg.det(a), np.linalg.det(x), **near)
    np.testing.assert_allclose(xp.linalg.inv(a), np.linalg.inv(x), **near)
    np.testing.assert_allclose(xp.linalg.solve(a, a[:, :, :1]), np.linalg.solve(x, x[:, :, :1]), **near)
    np.testing.assert_allclose(xp.linalg.matrix_power(a, -2), np.linalg.matrix_power(x, -2), **near)
    u, s, vh = xp.linalg.svd(a, full_matrices=False)
    np.testing.assert_allclose(np.asarray(u) * np.asarray(s)[:, None] @ np.asarray(vh), x, **near)
    q, r = xp.linalg.qr(a, mode='complete')
    np.testing.assert_allclose(q @ r, x, **near)
    symmetric = a + a.mT
    values, vectors = xp.linalg.eigh(symmetric)
    product = np.asarray(vectors) * np.asarray(values)[:, None] @ np.asarray(vectors.mT)
    np.testing.assert_allclose(product, symmetric, **near)
    sign, log = xp.linalg.slogdet(a)
    np.testing.assert_allclose(np.asarray(sign) * np.exp(np.asarray(log)), np.linalg.det(x), **near)
    for order in ('fro', 'nuc', 1, -1, 2, -2, INF, -INF):
        expected = np.linalg.norm(x, ord=order, axis=(1, 2))
        np.testing.assert_allclose(xp.linalg.matrix_norm(a, ord=order), expected, **near)
    for order in (0, 1, 2, 3, -1, 0.5, INF, -INF):
        found = xp.linalg.vector_norm(a, axis=-1, ord=order, keepdims=True)
        np.testing.assert_allclose(found, np.linalg.norm(x, ord=order, axis=-1, keepdims=True), **near)


def test_products_of_vectors():
    x = np.arange(12).reshape(3, 4) % 5
    z = x + 1j * x[::-1]
    same(xp.vecdot(xp.asarray(x), xp.asarray(x), axis=0), (x * x).sum(0))
    np.testing.assert_allclose(xp.vecdot(xp.asarray(z), xp.asarray(z)), (z.conj() * z).sum(-1))
    same(xp.tensordot(xp.asarray(x), xp.asarray(x), axes=((0,), (0,))), np.tensordot(x, x, axes=((0,), (0,))))
    same(xp.linalg.outer(xp.asarray([1, 2]), xp.asarray([3, 4])), np.outer([1, 2], [3, 4]))
    same(xp.linalg.cross(xp.asarray([[1, 2, 3]]), xp.asarray([[4, 5, 6]])), np.cross([[1, 2, 3]], [[4, 5, 6]]))
    same(xp.linalg.trace(xp.asarray(x), offset=1), np.trace(x, offset=1))
    same(xp.matmul(xp.asarray(x[0]), xp.asarray(x.T)), x[0] @ x.T)


@pytest.mark.parametrize('norm', ['backward', 'ortho', 'forward'])
@pytest.mark.parametrize('n', [None, 5, 12])
def test_transforms_beside_numpy(norm, n):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((3, 9))
    for name in ('fft', 'ifft', 'rfft', 'irfft', 'hfft', 'ihfft'):
        source = x if name in ('rfft', 'ihfft') else x + 1j * x[::-1]
        found = getattr(xp.fft, name)(xp.asarray(source), n=n, norm=norm)
        np.testing.assert_allclose(found, getattr(np.fft, name)(source, n=n, norm=norm), atol=1e-12)
    np.testing.assert_allclose(xp.fft.fftfreq(7, d=0.5), np.fft.fftfreq(7, d=0.5), rtol=1e-6)
    np.testing.assert_allclose(xp.fft.irfftn(xp.fft.rfftn(xp.asarray(x[:, :8]))), x[:, :8], atol=1e-12)
    np.testing.assert_array_equal(xp.fft.fftshift(xp.asarray(x), axes=1), np.fft.fftshift(x, axes=1))


def test_inspection():
    info = xp.__array_namespace_info__()
    assert info.default_dtypes() == {'real floating': xp.float32, 'complex floating': xp.complex64,
                                     'integral': xp.int64, 'indexing': xp.int64}
    assert set(info.dtypes()) == set(ALL)
    assert set(info.dtypes(kind=('bool', 'real floating'))) == {'bool', *FLOATS}
    assert info.capabilities()['boolean indexing'] is True and info.default_device() in info.devices()
