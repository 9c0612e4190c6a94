# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""x[key] and x[key] = value beside NumPy."""
import random
import sys
import warnings

import numpy as np
import pytest

import devtensor as dt

KEYS = 20000
SHAPES = [(), (0,), (1,), (5,), (3, 4), (0, 3), (2, 3, 4), (1, 5, 1), (4, 2, 3, 2), (2, 1, 3, 2, 2)]


def random_int(rng, n):
    if rng.random() < 0.04:
        return rng.choice([n, -n - 1, n + 7, 2**31, -2**40])
    return rng.randrange(-n, n) if n else 0


def random_slice(rng, n):
    def end():
        return None if rng.random() < 0.35 else rng.randint(-n - 3, n + 3)
    step = rng.choice([None, None, 1, 2, 3, -1, -2, 100, -100])
    return slice(end(), end(), step)


def random_array(rng, n, common):
    shape = tuple(1 if rng.random() < 0.2 else s for s in common)
    count = int(np.prod(shape))
    values = [random_int(rng, n) if n else 0 for _ in range(count)]
    if n == 0 and rng.random() < 0.7:
        shape, values = (0,), []
    dtype = rng.choice([np.int64, np.int64, np.int32, np.int16, np.int8])
    values = [v if np.iinfo(dtype).min <= v <= np.iinfo(dtype).max else n for v in values]
    return np.array(values, dtype=dtype).reshape(shape)


def random_item(rng, sizes, common):
    """A part of a key, and the number of dimensions that it takes."""
    n, kind = sizes[0], rng.random()
    if kind < 0.30:
        return random_slice(rng, n), 1
    if kind < 0.52:
        return random_int(rng, n), 1
    if kind < 0.57:
        return np.int64(random_int(rng, n)), 1
    if kind < 0.60:
        return np.array(random_int(rng, n)), 1
    if kind < 0.80:
        return random_array(rng, n, common), 1
    if kind < 0.85:
        return random_array(rng, n, common).tolist(), 1
    dims = rng.randint(1, min(2, len(sizes)))
    shape = list(sizes[:dims])
    if rng.random() < 0.04:
        shape[0] += 1
    mask = np.array([rng.random() < 0.5 for _ in range(int(np.prod(shape)))], dtype=bool).reshape(shape)
    return (mask if rng.random() < 0.7 else mask.tolist()), dims


def random_key(rng, shape):
    sizes, items, ellipsis = list(shape), [], False
    common = rng.choice([(2,), (3,), (1,), (2, 2), (2, 1)])
    while len(items) < 8:
        r = rng.random()
        if r < 0.10:
            items.append(None)
        elif r < 0.17 and not ellipsis:
            items.append(Ellipsis)
            ellipsis = True
            del sizes[:rng.randint(0, len(sizes))]
        elif r < 0.18:
            items.append(rng.choice([True, False, np.True_]))
        elif sizes:
            item, taken = random_item(rng, sizes, common)
            items.append(item)
            del sizes[:taken]
        if (not sizes and r > 0.3) or r > 0.93:
            break
    if not sizes and rng.random() < 0.02:
        items.append(0)
    if len(items) == 1 and rng.random() < 0.5:
        return items[0]
    return tuple(items)


def is_advanced(item):
    if isinstance(item, np.ndarray):
        return item.ndim > 0 or item.dtype == bool
    return isinstance(item, (list, bool, np.bool_))


def is_position(item):
    return not isinstance(item, (bool, np.bool_)) and (
        isinstance(item, (int, np.integer)) or (isinstance(item, np.ndarray) and item.ndim == 0 and item.dtype != bool))


def reference(array, key):
    """array[key] as NumPy has it, with PyTorch's place for the dimensions of arrays.

    Both put them at the place of the arrays if these are adjacent. In NumPy a position beside an array is an array, and
    an ellipsis without dimensions separates two; in PyTorch a position takes its dimension first, and that ellipsis is
    nothing.
    """
    items = key if isinstance(key, tuple) else (key,)
    if not any(map(is_advanced, items)):
        return array[key]
    expanded = expand(array, items)
    at = tuple(int(i) if is_position(i) else slice(None) for i in expanded for _ in range(taken(i)))
    return array[at][tuple(i for i in expanded if not is_position(i))]


def is_scalar_bool(item):
    if isinstance(item, np.ndarray):
        return item.ndim == 0 and item.dtype == bool
    return isinstance(item, (bool, np.bool_))


def taken(item):
    """Dimensions that an item takes."""
    if item is None or item is Ellipsis or is_scalar_bool(item):
        return 0
    if isinstance(item, (list, np.ndarray)):
        array = np.asarray(item)
        return array.ndim if array.dtype == bool else 1
    return 1


def expand(array, items):
    """The items with full slices for the ellipsis, and for the dimensions without an item."""
    left = array.ndim - sum(map(taken, items))
    if left < 0:
        raise IndexError('too many indices')
    if sum(i is Ellipsis for i in items) > 1:
        raise IndexError('two ellipses')
    out = []
    for item in items if any(i is Ellipsis for i in items) else items + (Ellipsis,):
        out += [slice(None)] * left if item is Ellipsis else [item]
    return tuple(out)


def tensor_key(rng, key):
    """The key with some arrays as tensors."""
    if isinstance(key, tuple):
        return tuple(tensor_key(rng, i) for i in key)
    if isinstance(key, np.ndarray) and rng.random() < 0.5:
        return dt.tensor(key)
    return key


def outcome(function):
    try:
        with warnings.catch_warnings():
            # NumPy warns of an array with wrong positions where the result is empty.
            warnings.simplefilter('error')
            return function()
    except Exception as error:  # noqa: BLE001
        return error


def is_undecided(want, got):
    """A wrong position where the result is empty: older versions of NumPy warn, 2.5 raises IndexError."""
    if isinstance(want, IndexError) and 'out of bounds' in str(want):
        return isinstance(got, dt.Tensor) and got.numel() == 0
    return isinstance(want, DeprecationWarning)


def pairs(seed, count):
    rng = random.Random(seed)
    for _ in range(count):
        shape = rng.choice(SHAPES)
        array = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
        key = random_key(rng, shape)
        yield rng, array, key, tensor_key(rng, key)


def test_random_keys_select_what_numpy_selects():
    errors = views = 0
    for _, array, key, own in pairs(1, KEYS):
        x = dt.tensor(array)
        want, got = outcome(lambda: reference(array, key)), outcome(lambda: x[own])
        if is_undecided(want, got):
            continue
        if isinstance(want, Exception):
            errors += 1
            assert isinstance(got, IndexError), (array.shape, key, want, got)
            continue
        assert not isinstance(got, Exception), (array.shape, key, want.shape, got)
        assert got.shape == want.shape, (array.shape, key)
        assert got.tolist() == want.tolist(), (array.shape, key)
        if np.shares_memory(array, want):
            views += 1
            start = x.data_ptr() + want.__array_interface__['data'][0] - array.__array_interface__['data'][0]
            assert got.data_ptr() == start and got._version == x._version, (array.shape, key)
    assert errors > 500 and views > 2000


def test_random_keys_assign_where_numpy_assigns():
    assigned = 0
    for rng, array, key, own in pairs(2, KEYS // 2):
        x, numbers = dt.tensor(array), np.arange(array.size).reshape(array.shape)
        positions = outcome(lambda: reference(numbers, key))
        if is_undecided(positions, outcome(lambda: x[own])):
            continue
        if isinstance(positions, Exception):
            with pytest.raises(IndexError):
                x[own] = 1
            continue
        value = rng.choice([-7, np.int64(-8), np.arange(positions.size).reshape(positions.shape) - 100])
        want = array.copy()
        want.reshape(-1)[positions.reshape(-1)] = np.broadcast_to(value, positions.shape).reshape(-1)
        if len(set(positions.reshape(-1).tolist())) < positions.size and not np.isscalar(value):
            value = -9
            want = array.copy()
            want.reshape(-1)[positions.reshape(-1)] = value
        x[own] = dt.tensor(value) if isinstance(value, np.ndarray) and rng.random() < 0.5 else value
        assert x.tolist() == want.tolist(), (array.shape, key, value)
        assigned += positions.size > 0
    assert assigned > 3000


def test_indexing_in_place_changes_the_elements():
    x = dt.zeros(4, 3)
    x[1] += 2
    x[:, 0] -= 1
    x[[0, 3]] *= 5
    x[x < 0] = 9
    assert x.tolist() == [[9, 0, 0], [1, 2, 2], [9, 0, 0], [9, 0, 0]]
    x[...] = 1
    x[2:] = dt.tensor([1., 2., 3.])
    x[0] = [4, 5, 6]
    x[1, 1] = dt.tensor(7, dtype=dt.int64)
    assert x.tolist() == [[4, 5, 6], [1, 7, 1], [1, 2, 3], [1, 2, 3]]


def test_deletion_is_refused():
    x = dt.zeros(3)
    with pytest.raises(TypeError):
        del x[0]


def test_numbers_beyond_64_bits_are_out_of_range():
    x = dt.arange(5)
    for key in (2**63, -2**63, 2**64, -2**70, 10**40):
        for index in (key, (key,), (None, key)):
            with pytest.raises(IndexError):
                x[index]
            with pytest.raises(IndexError):
                x[index] = 1
    assert x[-2**80:2**80].tolist() == x.tolist() and x[::2**90].tolist() == [0] and x[2**70:].shape == (0,)
    assert x[::-2**70].tolist() == [4] and x[2**63 - 1::-2**63].tolist() == [4] and x[-2**63:].tolist() == x.tolist()


@pytest.mark.parametrize('key', ['a', 1.5, (0, 'a'), {}, [1.5], 1j, np.array([1.5]), np.float64(1), object(), [0, 'a'],
                                 b'a', slice('a', 2), slice(1.5), (None,) * 70, [[0, 1], [2]], {0}], ids=str)
def test_wrong_keys_are_refused(key):
    x, before = dt.zeros(3, 3), sys.getrefcount(key)
    for call in (lambda: x[key], lambda: x.__setitem__(key, 1)):
        with pytest.raises((IndexError, TypeError, ValueError)):
            call()
    assert sys.getrefcount(key) == before


def test_steps_of_zero_are_refused():
    with pytest.raises(ValueError):
        dt.zeros(3)[::0]


def test_values_that_do_not_fit_are_refused():
    x = dt.zeros(3, 3)
    for value in ([1, 2], dt.zeros(2), np.zeros((4, 3)), 'a', None, [[1], [2, 3]], 1j):
        with pytest.raises((ValueError, TypeError, RuntimeError, IndexError)):
            x[1:] = value
    with pytest.raises(OverflowError):
        dt.zeros(2, dtype=dt.uint8)[0] = 256
    assert x.tolist() == dt.zeros(3, 3).tolist()


class Index:
    """Has __index__."""

    def __init__(self, function):
        self.function = function

    def __index__(self):
        return self.function()


def test_objects_with_index_are_positions_and_their_errors_go_through():
    x = dt.arange(12).reshape(3, 4)
    assert x[Index(lambda: 1)].tolist() == [4, 5, 6, 7] and x[Index(lambda: 1), Index(lambda: -1)] == 7
    assert x[Index(lambda: 1):].shape == (2, 4)

    def fail():
        raise KeyError('mine')
    for key in (Index(fail), (0, Index(fail)), slice(Index(fail), None), [Index(fail)]):
        with pytest.raises(KeyError):
            x[key]


def test_a_list_that_changes_while_it_is_read_is_safe():
    x, key = dt.arange(5), [0, 1, 2, 3]
    key[1] = Index(lambda: key.clear() or 1)
    try:
        assert x[key].shape[0] <= 4
    except (IndexError, TypeError, ValueError):
        pass


def test_views_of_views_share_memory_and_record_gradients():
    x = dt.zeros(4, 4, 4)
    y = x[1:, None, ::2][0, ..., 1][:, 1]
    y += 3
    assert x.sum() == 3 and x[1, ::2, 1].tolist() == [0, 3]
    w = dt.ones(4, 4, requires_grad=True)
    assert w[1:3, None].requires_grad and w[0][0].requires_grad and w[[0, 1]].requires_grad
    with pytest.raises((ValueError, RuntimeError)):
        w[0] = 1
