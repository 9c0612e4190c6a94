# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Pickling by value."""
import copyreg
import io
import pickle
import pickletools
import threading

import pytest

import devtensor as dt
from devtensor import _pickle

PROTOCOLS = [2, 3, 4, 5]
DTYPES = [dt.bool, dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64, dt.uint16, dt.uint32, dt.uint64, dt.float16,
          dt.bfloat16, dt.float32, dt.float64, dt.complex64, dt.complex128, dt.float8_e4m3fn, dt.float8_e5m2]


class Named(dt.Tensor):
    """A subclass with attributes."""


class Slotted(dt.Tensor):
    """A subclass with slots beside the dict."""
    __slots__ = ('label',)


def same(a, b):
    return (type(a) is type(b) and a.dtype is b.dtype and a.shape == b.shape and a.requires_grad == b.requires_grad and
            a.tolist() == b.tolist())


@pytest.mark.parametrize('protocol', PROTOCOLS)
@pytest.mark.parametrize('dtype', DTYPES, ids=str)
def test_elements_dtype_and_strides_come_back(dtype, protocol):
    x = dt.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)
    for view in (x, x.T, x[1], x[0, 1], x[:, :0], x[None].expand(5, 2, 3), x.T[None, :, :, None]):
        y = pickle.loads(pickle.dumps(view, protocol))
        assert same(view, y)
        if view.numel():
            assert y.strides == view.strides and y.storage_offset() == 0 and y.data_ptr() != view.data_ptr()


@pytest.mark.parametrize('protocol', PROTOCOLS)
def test_views_are_pickled_without_the_rest_of_their_memory(protocol):
    x = dt.arange(100000.)
    for view in (x[5:10], x[::10000], x.flip(0)[:3], x.as_strided((3, 2), (1, 1)), x[:1].expand(100000)):
        data = pickle.dumps(view, protocol)
        assert len(data) < 1000 and same(pickle.loads(data), view)


@pytest.mark.parametrize('protocol', PROTOCOLS)
def test_loaded_tensors_can_be_changed(protocol):
    x = dt.ones(3)
    data = pickle.dumps(x, protocol)
    y, z = pickle.loads(data), pickle.loads(data)
    y += 1
    assert y.tolist() == [2, 2, 2] and z.tolist() == x.tolist() == [1, 1, 1]


@pytest.mark.parametrize('protocol', PROTOCOLS)
def test_requires_grad_comes_back_and_graphs_do_not(protocol):
    x = dt.ones(2, requires_grad=True)
    y, z = pickle.loads(pickle.dumps([x, x * 2], protocol))
    assert y.requires_grad and y.is_leaf and z.requires_grad and z.is_leaf and z.tolist() == [2, 2]


@pytest.mark.parametrize('protocol', PROTOCOLS)
def test_other_layouts_come_back(protocol):
    x = dt.tensor([[0., 1.], [2., 0.]])
    for tensor in (x.to_sparse(), x.to_sparse_csr()):
        y = pickle.loads(pickle.dumps(tensor, protocol))
        assert y.layout is tensor.layout and same(y, tensor)
    y = pickle.loads(pickle.dumps(x.to_sparse(), protocol))
    assert y.is_coalesced() == x.to_sparse().is_coalesced()
    q = dt.quantize_per_tensor(x, 0.5, 3, dt.uint8)
    y = pickle.loads(pickle.dumps(q, protocol))
    assert y.q_scale() == 0.5 and y.q_zero_point() == 3 and y.int_repr().tolist() == q.int_repr().tolist()
    q = dt.quantize_per_channel(x, dt.tensor([0.5, 0.25], dtype=dt.float64), dt.tensor([0, 1]), 0, dt.int8)
    y = pickle.loads(pickle.dumps(q, protocol))
    assert y.q_per_channel_axis() == 0 and y.dequantize().tolist() == q.dequantize().tolist()


@pytest.mark.parametrize('protocol', PROTOCOLS)
def test_subclasses_come_back_with_their_attributes(protocol):
    x = Named([1., 2.])
    x.name, x.me = 'n', [x]
    y = pickle.loads(pickle.dumps(x, protocol))
    assert same(x, y) and y.name == 'n' and y.me[0] is y
    s = Slotted([1.])
    s.label = 'l'
    assert pickle.loads(pickle.dumps(s, protocol)).label == 'l'


@pytest.mark.parametrize('protocol', PROTOCOLS)
@pytest.mark.parametrize('cls', [Named, dt.nn.Parameter], ids=['subclass', 'parameter'])
def test_leaves_of_subclasses_come_back_as_leaves(cls, protocol):
    x = cls(dt.ones(3)).requires_grad_()
    y = pickle.loads(pickle.dumps(x, protocol))
    assert same(x, y) and y.is_leaf and y.grad_fn is None
    (y * 2).sum().backward()
    assert y.grad.tolist() == [2, 2, 2]
    dt.optim.SGD([y], lr=0.5).step()
    assert y.tolist() == [0, 0, 0]


def test_one_tensor_stays_one_object():
    x = dt.ones(2)
    a, b = pickle.loads(pickle.dumps([x, x]))
    assert a is b


def test_buffers_go_out_of_band_without_a_copy():
    x, buffers = dt.arange(100000.), []
    data = pickle.dumps([x, x.view(10, 10000).T.to(dt.bfloat16)], 5, buffer_callback=buffers.append)
    assert len(data) < 1000 and len(buffers) == 2
    with memoryview(buffers[0]) as m:
        assert m.nbytes == x.nbytes
    y, z = pickle.loads(data, buffers=buffers)
    y[0] = 7
    assert x[0] == 7 and y.data_ptr() == x.data_ptr() and z.dtype is dt.bfloat16 and z.strides == (1, 10000)


def test_out_of_band_memory_may_be_anywhere():
    x, buffers = dt.arange(10.), []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    raw = bytes(buffers[0].raw())
    for buffer in (raw, bytearray(raw), memoryview(bytearray(b'x' + raw))[1:]):
        y = pickle.loads(data, buffers=[buffer])
        assert y.tolist() == x.tolist()
        y[0] = 3
    assert raw[:4] == bytes(4)


def test_the_pickler_of_a_table_uses_it():
    file = io.BytesIO()
    pickler = pickle.Pickler(file, 4)
    pickler.dispatch_table = copyreg.dispatch_table.copy()
    pickler.dispatch_table[dt.Tensor] = lambda x: (dt.zeros, (x.shape,))
    pickler.dump(dt.ones(2))
    assert pickle.loads(file.getvalue()).tolist() == [0, 0]


def parts_of(x):
    function, args = x.__reduce_ex__(2)[:2]
    assert function is _pickle.rebuild
    return args


STRIDED = ('strided', (bytes(16), dt.float32, (4,), [1]), False, None)


@pytest.mark.parametrize('change', [
    {0: int}, {0: None}, {1: 'none'}, {1: None}, {2: ()}, {2: None}, {4: 'nowhere'}, {4: 3},
    *({2: parts} for parts in [
        (bytes(16), dt.float32, (5,), [1]), (bytes(16), dt.float32, (4,), [2]), (bytes(16), dt.float32, (4,), [-1]),
        (bytes(16), dt.float32, (2**62, 2**62), [0, 1]), (bytes(16), dt.float32, (2**40,), [2**40]),
        (bytes(16), dt.float32, (-1,), [1]), (bytes(16), dt.float32, (4,), [1, 1]),
        (bytes(16), dt.float32, (2**70,), [1]),
        (bytes(15), dt.float32, (3,), [1]), (bytes(16), 'float32', (4,), [1]), (bytes(16), None, (4,), [1]),
        ('text', dt.float32, (4,), [1]), (None, dt.float32, (4,), [1]), (bytes(16), dt.float32, 'a', [1]),
        (b'\2' * 4, dt.bool, (4,), [1]), (bytes(16), dt.float32, (1,) * 40, [1] * 40), (b'', dt.float32, (1,), [1]),
        (bytes(16), dt.float32, (3,), None),
    ])], ids=str)
def test_hostile_strided_pickles_are_refused(change):
    args = [dt.Tensor, *STRIDED]
    for i, value in change.items():
        args[i] = value
    with pytest.raises(Exception) as info:
        pickle.loads(pickle.dumps(Reduced(_pickle.rebuild, tuple(args))))
    assert isinstance(info.value, (TypeError, ValueError, OverflowError, IndexError, RuntimeError))


class Reduced:
    """Pickles as a call."""

    def __init__(self, function, args):
        self.call = function, args

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize('kind, parts', [
    ('coo', (dt.tensor([[5]]), dt.ones(1), (2,), True)), ('coo', (dt.tensor([[-1]]), dt.ones(1), (2,), True)),
    ('coo', (dt.tensor([[0]]), dt.ones(3), (2,), False)), ('coo', (1, 2, 3, 4)),
    ('csr', (dt.tensor([0, 9]), dt.tensor([0]), dt.ones(1), (1, 1))),
    ('csr', (dt.tensor([0, 1]), dt.tensor([7]), dt.ones(1), (1, 1))),
    ('quantized', (dt.ones(2), 0.1, 0, None)), ('quantized', (dt.ones(2, dtype=dt.uint8), -1.0, 0, None)),
    ('quantized', (dt.ones(2, dtype=dt.uint8), dt.ones(1), dt.ones(1), 9)), ('blocked', (None,)),
])
def test_hostile_pickles_of_other_layouts_are_refused(kind, parts):
    with pytest.raises(Exception) as info:
        _pickle.rebuild(dt.Tensor, kind, parts, False, None)
    assert isinstance(info.value, (TypeError, ValueError, IndexError, RuntimeError, NotImplementedError))


def test_a_false_claim_to_be_coalesced_is_not_believed():
    y = _pickle.rebuild(dt.Tensor, 'coo', (dt.tensor([[1, 0, 1]]), dt.ones(3), (2,), True), False, None)
    assert y.is_coalesced() and y.tolist() == [1, 2]


def test_cut_pickles_are_refused():
    for protocol in PROTOCOLS:
        data = pickle.dumps(dt.arange(3.), protocol)
        for n in range(len(data)):
            with pytest.raises(Exception):
                pickle.loads(data[:n])


def test_pickles_name_only_what_they_need():
    names = {arg for op, arg, _ in pickletools.genops(pickle.dumps(dt.ones(2), 2)) if op.name == 'GLOBAL'}
    assert names <= {'devtensor._pickle rebuild', 'devtensor Tensor', 'devtensor float32', 'devtensor dtype',
                     '_codecs encode'}


def test_threads_may_pickle_one_tensor():
    x, results = dt.arange(1000.), []
    threads = [threading.Thread(target=lambda: results.append(pickle.loads(pickle.dumps(x, 5)))) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 8 and all(same(r, x) for r in results)
