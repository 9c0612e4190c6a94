# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The class Tensor: numbers, sizes, copies, subclasses, references."""
import copy
import gc
import operator
import os
import pickle
import sys
import weakref

import numpy as np
import pytest

import devtensor as dt
from memory import skip_with_sanitizer

DTYPES = [dt.bool, dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64, dt.uint16, dt.uint32, dt.uint64, dt.float16,
          dt.bfloat16, dt.float32, dt.float64, dt.complex64, dt.complex128, dt.float8_e4m3fn, dt.float8_e5m2]


class Marked(dt.Tensor):
    """A subclass with attributes."""


# ---- numbers ----

def test_tolist_gives_the_numbers_of_every_dtype_and_stride():
    for dtype in DTYPES:
        x = dt.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)
        assert x.tolist() == [[0, 1, 1], [1, 0, 1]]
        assert x.T[::2].tolist() == [[0, 1], [1, 1]]
        assert type(x.tolist()[0][0]) is type(x[0, 0].item())
    assert dt.tensor(5).tolist() == 5 and dt.zeros(2, 0).tolist() == [[], []] and dt.zeros(0, 2).tolist() == []
    assert dt.tensor([2**64 - 1], dtype=dt.uint64).tolist() == [2**64 - 1]
    assert dt.tensor([-2**63]).tolist() == [-2**63]
    assert dt.zeros(1, 3).expand(2, 3).tolist() == [[0.0] * 3] * 2
    assert dt.tensor([[0., 1.], [2., 0.]]).to_sparse().tolist() == [[0, 1], [2, 0]]


def test_a_single_element_is_a_number():
    assert complex(dt.tensor(1 + 2j)) == 1 + 2j and complex(dt.tensor([3])) == 3 and complex(dt.tensor(True)) == 1
    assert float(dt.tensor([2.5])) == 2.5 and int(dt.tensor(2.9)) == 2 and bool(dt.tensor(0.5)) and not dt.tensor([0])
    assert operator.index(dt.tensor(7)) == 7 and list(range(9))[dt.tensor(3)] == 3
    assert dt.tensor([2**63], dtype=dt.uint64).item() == int(dt.tensor(2**63, dtype=dt.uint64)) == 2**63
    for function in (float, int):
        with pytest.raises((TypeError, RuntimeError)):
            function(dt.tensor(1j))
    for function in (float, int, complex, bool):
        with pytest.raises(ValueError):
            function(dt.zeros(2))
    for x in (dt.tensor(1.0), dt.tensor([1, 2]), dt.tensor(1j)):
        with pytest.raises(TypeError):
            operator.index(x)


def test_size_is_a_number_and_a_function():
    x = dt.zeros(2, 3)
    assert x.size == 6 and isinstance(x.size, int) and x.size() == (2, 3) and x.size(0) == 2 and x.size(dim=-1) == 3
    assert np.zeros(x.size).shape == (6,) and dt.tensor(1).size == 1 and dt.tensor(1).size() == ()
    assert type(copy.deepcopy(x.size)) is int
    for dim in (2, -3, 10**30):
        with pytest.raises(IndexError):
            x.size(dim)
    with pytest.raises((TypeError, AttributeError)):
        x.size('a')


def test_len_iteration_and_membership():
    x = dt.tensor([[1, 2], [3, 4]])
    assert len(x) == 2 and [r.tolist() for r in x] == [[1, 2], [3, 4]]
    assert 3 in x and 9 not in x and dt.tensor([3, 4]) in x
    a, b = x
    b += 1
    assert x.tolist() == [[1, 2], [4, 5]]
    for function in (len, iter, list):
        with pytest.raises(TypeError):
            function(dt.tensor(1))
    with pytest.raises((TypeError, RuntimeError)):
        None in x


def test_rows_of_a_tensor_with_a_gradient_are_recorded():
    x = dt.ones(3, 2, requires_grad=True)
    assert all(r.requires_grad and not r.is_leaf for r in x)


def test_kinds_of_dtypes():
    for dtype in DTYPES:
        x = dt.zeros(2, dtype=dtype)
        floating, compl = 'float' in str(dtype), 'complex' in str(dtype)
        assert x.is_floating_point() == floating and x.is_complex() == compl
        assert x.is_signed() == (floating or compl or str(dtype).endswith(('.int8', '.int16', '.int32', '.int64')))
        assert x.element_size() == x.itemsize and x.nelement() == 2 and x.nbytes == 2 * x.itemsize
        assert x.type(dt.zeros(1).type(dtype).type()).dtype is dtype
        assert dt.zeros(3).type_as(x).dtype is dtype and x.new_tensor([1, 0]).dtype is dtype
    assert dt.zeros(1).type() == 'devtensor.FloatTensor' and dt.zeros(1).type('torch.LongTensor').dtype is dt.int64
    with pytest.raises(ValueError):
        dt.zeros(1).type('torch.NoTensor')
    x = dt.zeros(2)
    assert x.type(dt.float32) is x and x.type_as(x) is x and x.new_tensor(x) is not x


def test_sizes_may_be_given_as_several_arguments():
    x = dt.arange(24.).reshape(2, 3, 4)
    assert x.view(6, 4).shape == x.view((6, 4)).shape == x.view([-1, 4]).shape == x.view(size=(6, 4)).shape == (6, 4)
    assert x.reshape(-1).shape == (24,) and x.permute(2, 0, 1).shape == x.permute((2, 0, 1)).shape == (4, 2, 3)
    assert dt.zeros(1, 3).expand(2, 3).shape == dt.zeros(1, 3).expand((2, -1)).shape == (2, 3)
    assert x.flip(0, 2).tolist() == x.flip((0, 2)).tolist() == x.flip([0, 2]).tolist()
    assert x.flip(0).tolist() == x.flip([0]).tolist() and x.repeat(2, 1, 1).shape == (4, 3, 4)
    assert x.tile(2, 1).shape == (2, 6, 4) and x.squeeze((0, 1)).shape == (2, 3, 4)
    assert x.new_zeros(2, 3).shape == x.new_zeros((2, 3)).shape == (2, 3)
    for made in (dt.zeros(2, 3), dt.ones([2, 3]), dt.rand(2, 3), dt.empty(np.int64(2), 3)):
        assert made.shape == (2, 3)
    assert dt.zeros(()).shape == () and dt.zeros(3).shape == (3,) and x.view(dt.int32).dtype is dt.int32
    own = dt.zeros(6)
    assert own.shape == (6,) and own.resize_(3, 2) is own and own.shape == own.resize_((3, 2)).shape == (3, 2)
    for wrong in (lambda: x.view(2, 'a'), lambda: x.permute(0, None), lambda: x.sum(0, 1, 2), lambda: dt.zeros(2, 3.0),
                  lambda: x.reshape(2, [3])):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(OverflowError):
        x.view(2, 2**70)


def test_positions_and_dimensions_out_of_range_are_index_errors():
    x, i = dt.zeros(2, 3), dt.tensor
    for call in (lambda: x.sum(5), lambda: dt.select(x, 0, 9), lambda: dt.index_select(x, 0, i([7])),
                 lambda: x.stride(4),
                 lambda: dt.take(x, i([77])), lambda: dt.gather(x, 0, i([[7, 1]])), lambda: dt.embedding(x, i([9])),
                 lambda: x[9], lambda: x[0, 0, 0], lambda: x.unbind(4), lambda: x.transpose(0, 7), lambda: x.softmax(4),
                 lambda: x.unsqueeze(8), lambda: x.scatter(0, i([[5]]), dt.ones(1, 1)), lambda: x[i([5])],
                 lambda: x.index_add(0, i([8]), x[:1]), lambda: dt.cat([x, x], 7), lambda: x.max(-3),
                 lambda: x[:, i([3])],
                 lambda: x.narrow(7, 0, 1), lambda: dt.tensor(1).select(0, 0)):
        with pytest.raises(IndexError):
            call()


# ---- sharing and copies ----

def test_share_memory_moves_the_storage():
    x = dt.ones(3)
    y = x[1:]
    assert not x.is_shared() and x.share_memory_() is x and x.is_shared() and y.is_shared()
    x[1] = 5
    assert y.tolist() == [5, 1]


def test_arguments_beside_the_data_are_those_of_a_subclass():
    class Labelled(dt.Tensor):
        def __init__(self, data, label, *, scale=1):
            self.label, self.scale = label, scale

    class Scaled(dt.Tensor):
        def __new__(cls, data, scale):
            return super().__new__(cls, [scale * x for x in data])

    x = Labelled([1, 2], 'n', scale=3)
    assert x.tolist() == [1, 2] and x.label == 'n' and x.scale == 3 and Scaled([1, 2], 5).tolist() == [5, 10]
    for call in (lambda: dt.Tensor(1, 2), lambda: dt.Tensor([1], dtype=dt.float64), lambda: Marked([1], 2),
                 lambda: Scaled.__mro__[1]([1], [2])):
        with pytest.raises(TypeError, match='takes one argument, got 2'):
            call()
    with pytest.raises(TypeError, match='missing'):
        dt.Tensor()


def test_a_split_at_positions_in_a_tensor():
    x = dt.arange(6).view(3, 2)
    for at in dt.tensor([1, 2]), (1, 2):
        assert [p.tolist() for p in dt.tensor_split(x, at)] == [[[0, 1]], [[2, 3]], [[4, 5]]]
    assert [p.shape for p in x.tensor_split(dt.tensor(2), dim=1)] == [(3, 1), (3, 1)]
    assert len(x.tensor_split(tensor_indices_or_sections=dt.tensor([1]))) == 2
    with pytest.raises(ValueError, match='i64'):
        x.tensor_split(dt.tensor([1.]))
    parts = dt.func.vmap(lambda v: v.tensor_split(dt.tensor([1])))(x)
    assert [p.tolist() for p in parts] == [[[0], [2], [4]], [[1], [3], [5]]]


def test_more_results_than_there_can_be():
    for call in (lambda: dt.tensor_split(dt.ones(3), 2 ** 62), lambda: dt.ones(1).expand(2 ** 40).split(1),
                 lambda: dt.ones(1).expand(2 ** 40).unbind(), lambda: dt.ones(1).expand(2 ** 40).chunk(2 ** 40)):
        with pytest.raises(MemoryError, match='more than [0-9]+ results'):
            call()


def test_copy_shares_memory_and_deepcopy_does_not():
    x = Marked(dt.zeros(2, 3))
    x.note = ['a']
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    x[0, 0] = 7
    assert shallow[0, 0] == 7 and shallow.note is x.note and type(shallow) is Marked
    x.me = x
    again = copy.deepcopy(x)
    assert again.me is again
    assert deep[0, 0] == 0 and deep.note == ['a'] and deep.note is not x.note and type(deep) is Marked


@pytest.mark.parametrize('make', [lambda: dt.ones(3, requires_grad=True), lambda: dt.ones(3, requires_grad=True) * 2,
                                  lambda: Marked(dt.ones(3)).requires_grad_(), lambda: dt.nn.Parameter(dt.ones(3))])
def test_a_shallow_copy_is_a_leaf_on_the_same_memory(make):
    x = make()
    y = copy.copy(x)
    assert y is not x and type(y) is type(x) and y.requires_grad and y.is_leaf and y.data_ptr() == x.data_ptr()
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3, 3, 3] and (not x.is_leaf or x.grad is None)


@pytest.mark.parametrize('make', [lambda x: x.to_sparse(), lambda x: x.to_sparse_csr(),
                                  lambda x: dt.quantize_per_tensor(x, 0.5, 0, dt.uint8)])
def test_copies_of_other_layouts(make):
    x = make(dt.tensor([[0., 1.], [2., 0.]]))
    for y in copy.copy(x), copy.deepcopy(x), x.detach():
        assert y is not x and y.layout is x.layout and y.is_leaf
        assert (y.dequantize() if x.is_quantized else y.to_dense()).tolist() == [[0, 1], [2, 0]]


def test_copies_of_a_sparse_leaf_are_leaves():
    x = dt.eye(2).to_sparse().requires_grad_()
    for y in copy.copy(x), copy.deepcopy(x):
        assert y.requires_grad and y.is_leaf
        dt.mm(y, dt.ones(2, 2)).sum().backward()
        assert y.grad is not None and x.grad is None


def test_deepcopy_keeps_requires_grad_the_gradient_and_strides():
    x = dt.arange(6.).reshape(2, 3).T.detach().requires_grad_()
    x.grad = dt.ones(3, 2)
    both = copy.deepcopy([x, x, dt.zeros(1, 1).expand(1000, 1000)])
    y = both[0]
    assert y is both[1] and y is not x and y.requires_grad and y.is_leaf and y.strides == x.strides
    assert y.grad.tolist() == x.grad.tolist() and y.grad is not x.grad
    assert both[2].strides == (0, 0)
    with pytest.raises(RuntimeError):
        copy.deepcopy(x * 2)
    assert copy.deepcopy((x * 2).detach()).tolist() == (x * 2).tolist()


# ---- identity ----

def test_one_object_stands_for_a_tensor():
    x = dt.zeros(2, requires_grad=True)
    x.grad = dt.ones(2)
    assert x.grad is x.grad and x.contiguous() is x and x.to(dt.float32) is x and x.detach() is not x
    assert hash(x) == hash(x) and len({x, x, x.detach()}) == 2
    y = dt.zeros(2)
    assert y.add_(1) is y


def test_comparison_is_by_element_or_identity():
    x = dt.tensor([1, 2])
    assert (x == x).tolist() == [True, True] and (x != 1).tolist() == [False, True]
    for other in (None, 'a', object(), {}):
        assert (x == other) is False and (x != other) is True
    assert x.__eq__(None) is NotImplemented
    with pytest.raises(TypeError):
        x < None


def test_weak_references_end_with_the_object():
    x, done = dt.zeros(2), []
    ref, table = weakref.ref(x, done.append), weakref.WeakValueDictionary()
    table[1] = x
    assert ref() is x and table[1] is x
    del x
    assert ref() is None and len(done) == 1 and len(table) == 0


# ---- subclasses ----

def test_operators_on_a_subclass_return_the_subclass():
    x = Marked([[1., 2.], [3., 4.]])
    results = [x + 1, 1 + x, x + dt.ones(2), dt.ones(2) + x, -x, abs(x), x @ x, x.sum(), x[0], x[x > 1], x.T,
               x.to(dt.int32),
               x.float(), x.clone(), x.detach(), dt.add(dt.zeros(2), x), x.sort()[0], x.unbind()[1], x > 1, x.real,
               next(iter(x)),
               x.reshape(4), x.view(4), x.contiguous(), x.data]
    assert [type(r) for r in results] == [Marked] * len(results)
    assert x.contiguous() is x and x.add_(1) is x
    assert type(dt.zeros(2) + 1) is dt.Tensor and type(x.as_subclass(dt.Tensor)) is dt.Tensor


def test_the_most_derived_subclass_is_taken():
    class Derived(Marked):
        pass
    a, b = Marked([1.]), Derived([1.])
    assert type(a + b) is Derived and type(b + a) is Derived


def test_subclasses_have_hooks_attributes_and_new():
    seen = []

    class Base(dt.Tensor):
        def __init_subclass__(cls, **kwargs):
            seen.append((cls.__name__, kwargs))

        def double(self):
            return self * 2

    class Child(Base, flag=1):
        __slots__ = ()
    assert seen == [('Child', {'flag': 1})]
    x = Child([1., 2.])
    assert x.double().double().tolist() == [4, 8] and repr(x) == 'Child([1., 2.])'
    y = dt.zeros(2).as_subclass(Base)
    y.name = 'n'
    assert y.__dict__ == {'name': 'n'} and 'name' in dir(y)
    for wrong in (int, 3, None):
        with pytest.raises(TypeError):
            dt.zeros(1).as_subclass(wrong)


def test_cycles_through_a_subclass_are_collected():
    x = Marked([1.])
    x.me, ref = x, weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None


# ---- references ----

CALLS = {
    'creation': lambda x: dt.zeros(4, 4),
    'from a list': lambda x: dt.tensor([[1., 2.], [3., 4.]]),
    'operator': lambda x: x + x,
    'number': lambda x: x * 2.5,
    'method': lambda x: x.sum(1, keepdim=True),
    'several results': lambda x: x.sort(),
    'varargs': lambda x: x.view(2, 8),
    'index': lambda x: (x[1], x[1:3, None], x[[0, 1]], x[x > 0]),
    'assignment': lambda x: x.__setitem__((0, slice(1, 3)), 1.5),
    'iteration': lambda x: list(x),
    'tolist': lambda x: x.tolist(),
    'shape': lambda x: (x.shape, x.strides, x.dtype, x.device, x.size),
    'buffer': lambda x: memoryview(x),
    'copy': lambda x: (copy.copy(x), copy.deepcopy(x)),
    'pickle': lambda x: pickle.loads(pickle.dumps(x, 5)),
    'repr': repr,
    'subclass': lambda x: Marked(x) + 1,
}
# Calls of each kind. The environment variable TEST_CALLS sets another number.
CALL_COUNT = int(os.environ.get('TEST_CALLS', 20000))
ERRORS = {
    'operator': lambda x: x + 'a',
    'method': lambda x: x.sum(7),
    'argument': lambda x: x.view(2, 'a'),
    'keyword': lambda x: x.sum(nothing=1),
    'index': lambda x: x[9],
    'key': lambda x: x['a'],
    'assignment': lambda x: x.__setitem__(0, 'a'),
    'array': lambda x: x[[1, 9]],
    'creation': lambda x: dt.tensor([[1], [1, 2]]),
    'buffer': lambda x: memoryview(x.to(dt.bfloat16)),
    'shape': lambda x: x @ dt.zeros(3, 3),
}


def resident():
    with open('/proc/self/statm') as f:
        return int(f.read().split()[1]) * 4096


def repeat(function, x, n, error):
    for _ in range(n):
        try:
            function(x)
        except error:
            continue


@pytest.mark.parametrize('name', CALLS)
def test_calls_keep_no_memory(name, calls=CALL_COUNT):
    x = dt.ones(4, 4)
    repeat(CALLS[name], x, 2000, ())
    gc.collect()
    before, blocks, refs = resident(), sys.getallocatedblocks(), sys.getrefcount(x)
    repeat(CALLS[name], x, calls, ())
    gc.collect()
    assert sys.getrefcount(x) == refs
    assert sys.getallocatedblocks() - blocks < calls / 100
    skip_with_sanitizer()
    assert resident() - before < 40 * calls


@pytest.mark.parametrize('name', ERRORS)
def test_errors_keep_no_memory(name, calls=CALL_COUNT // 4):
    x = dt.ones(4, 4)
    with pytest.raises(Exception):
        ERRORS[name](x)
    repeat(ERRORS[name], x, 500, Exception)
    gc.collect()
    before, blocks, refs = resident(), sys.getallocatedblocks(), sys.getrefcount(x)
    repeat(ERRORS[name], x, calls, Exception)
    gc.collect()
    assert sys.getrefcount(x) == refs
    assert sys.getallocatedblocks() - blocks < calls / 100
    skip_with_sanitizer()
    assert resident() - before < 100 * calls


def test_arguments_keep_their_reference_counts():
    items = [12345678901, [1, 2], (0, slice(0, 1)), 'name', dt.zeros(2), 1.5e300, np.zeros(2), {}, object()]
    x = dt.zeros(4, 4)
    for item in items:
        before = sys.getrefcount(item)
        for function in (lambda: x + item, lambda: x[item], lambda: x.sum(item), lambda: x.view(item, item),
                         lambda: dt.tensor(item), lambda: x.__setitem__(item, item), lambda: x == item,
                         lambda: dt.zeros(item), lambda: x.to(item), lambda: item in x):
            for _ in range(3):
                try:
                    function()
                except Exception:  # noqa: BLE001
                    pass
        assert sys.getrefcount(item) == before, item


def test_a_callback_of_a_weak_reference_gets_another_object():
    leaf, seen = dt.zeros(2, requires_grad=True), []
    leaf.grad = dt.ones(2)
    grad = leaf.grad
    ref = weakref.ref(grad, lambda _: seen.append(leaf.grad))
    del grad
    gc.collect()
    others = [dt.zeros(3) for _ in range(100)]
    assert all(seen[0] is not o for o in others)
    assert ref() is None and seen[0] is leaf.grad and seen[0].tolist() == [1, 1]


def test_an_attribute_that_ends_with_its_tensor_gets_another_object():
    leaf, seen = dt.zeros(2, requires_grad=True), []

    class Last:
        def __del__(self):
            seen.append(leaf.grad)
    leaf.grad = Marked([1., 1.])
    grad = leaf.grad.as_subclass(Marked)
    leaf.grad = grad
    held = leaf.grad
    assert held is grad
    grad.last = Last()
    del grad, held
    gc.collect()
    others = [dt.zeros(3) for _ in range(100)]
    assert len(seen) == 1 and seen[0].tolist() == [1, 1] and seen[0] is leaf.grad
    assert all(seen[0] is not o for o in others)


def test_repeats_whose_sum_overflows_are_refused():
    for repeats in ([2**62, 2**62], [2**63 - 1, 1]):
        with pytest.raises(OverflowError, match='overflows'):
            dt.repeat_interleave(dt.tensor(repeats))
        with pytest.raises(OverflowError, match='overflows'):
            dt.ones(2).repeat_interleave(dt.tensor(repeats))
    with pytest.raises(ValueError, match='negative, got -1'):
        dt.repeat_interleave(dt.tensor([1, -1]))


@pytest.mark.parametrize('name', ['max', 'min'])
def test_a_tensor_of_no_dimensions_is_a_tensor_before_it_is_a_number(name):
    a, one = dt.tensor([1, 5, 3, 0]), dt.tensor(1)
    result = getattr(dt, name)(a, one)
    assert isinstance(result, dt.Tensor)
    assert result.tolist() == [{'max': max, 'min': min}[name](x, 1) for x in a.tolist()]
    values, indices = getattr(dt, name)(a.reshape(2, 2), 1)
    assert values.shape == indices.shape == (2,)
