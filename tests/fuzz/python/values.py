# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Arguments that are hard to convert: numbers at the ends of their ranges, objects whose methods raise, lie, or change
the list or the tensor that is being read."""
import array

import devtensor as dt


class Raised(Exception):
    """Raised by the objects below: a call must pass it on or find another way, never lose the process."""


def raising(name):
    def method(self, *args, **kwargs):
        raise Raised(name)
    return method


PROTOCOLS = ['__index__', '__int__', '__float__', '__complex__', '__bool__', '__len__', '__iter__', '__getitem__',
             '__array__', '__array_interface__', '__dlpack__', '__dlpack_device__', '__buffer__', '__fspath__',
             '__contains__', '__add__', '__radd__', '__eq__']


def raises(*names):
    """An object whose methods of these names raise. __array_interface__ is an attribute."""
    members = {n: property(raising(n)) if n == '__array_interface__' else raising(n) for n in names}
    members['__hash__'] = object.__hash__
    return type('Raises', (), members)()


def returns(name, value):
    return type('Returns', (), {name: lambda self, *args, **kwargs: value})()


class Changes:
    """An int that changes the list which contains it, or a tensor, when it is read."""

    def __init__(self, container=None, tensor=None):
        self.container, self.tensor = container, tensor

    def change(self):
        if self.container is not None:
            self.container.clear()
        if self.tensor is not None:
            self.tensor.resize_(0)
            self.tensor.requires_grad = False
        return 1

    def __index__(self):
        return self.change()

    def __float__(self):
        return float(self.change())


def changing_list(n):
    items = list(range(n))
    items[n // 2] = Changes(items)
    return items


class LongerList(list):
    def __len__(self):
        return 1 << 40

    def __iter__(self):
        raise Raised('__iter__')


class OtherTuple(tuple):
    def __getitem__(self, i):
        raise Raised('__getitem__')


class Sequence:
    """A sequence that becomes shorter while it is read."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        self.n -= 1
        return max(self.n, 0)

    def __getitem__(self, i):
        if i >= self.n:
            raise IndexError(i)
        return i


class Subclass(dt.Tensor):
    """A subclass with a dict."""


class Int(int):
    def __index__(self):
        raise Raised('__index__')


class Name(str):
    def __eq__(self, other):
        raise Raised('__eq__')

    __hash__ = str.__hash__


def nested(depth):
    items = [1]
    for _ in range(depth):
        items = [items]
    return items


def own_element():
    items = [1]
    items.append(items)
    return items


def numbers():
    return [0, 1, 2, -1, 3, 64, -2**31, 2**31, 2**63 - 1, -2**63, 2**63, 2**64, 10**40, True, False, 0.0, -0.0, 0.5,
            1e308, -1e-320, float('nan'), float('inf'), float('-inf'), 1j, complex('nan+infj'), Int(3)]


def sequences():
    return [[], (), [0], [1, 0], (0, 1), [2, 3], [-1, -1], [2**40, 2**40], [2**63, 1], [1.5], [None], [[1, 2], [3]],
            nested(40), nested(3000), own_element(), changing_list(3), changing_list(40), LongerList([1, 2]),
            OtherTuple((1, 2)), Sequence(5), [True, False], ['a'], range(3), {1: 2}, {1, 2}, b'ab', bytearray(b'abcd'),
            memoryview(b'ab'), array.array('d', [1, 2]), array.array('b'), iter([1]), [dt.ones(1), dt.ones(2)],
            [dt.ones(2), None], (dt.ones(2, 2),) * 3, [raises('__index__')] * 2, list(range(100)), (1,) * 300]


def objects():
    lies = [returns('__index__', 'text'), returns('__index__', 2**70), returns('__len__', -1),
            returns('__len__', 2**62), returns('__float__', 1), returns('__bool__', 2), returns('__iter__', 3),
            returns('__array__', 3), returns('__dlpack__', 3), returns('__array_interface__', {})]
    return [raises(n) for n in PROTOCOLS] + lies + [raises(*PROTOCOLS), object(), object, len, lambda *a: a, Ellipsis,
                                                    NotImplemented, slice(None), slice(1, -1, 2),
                                                    slice(None, None, 2**63), slice(raises('__index__'), None),
                                                    Changes(), type, dt]


def words():
    return ['', 'cpu', 'cuda', 'cuda:0', 'cpu:999', 'mean', 'sum', 'none', 'reflect', 'ij', 'trunc', 'floor', 'float32',
            '\ud800', 'a\0b', 'x' * 5000, Name('cpu'), 'tanh', 'nearest', 'replicate', 'ij,jk->ik']


def constants():
    return [getattr(dt, n) for n in dir(dt) if isinstance(getattr(dt, n), (dt.dtype, dt.layout, dt.memory_format))] + [
        dt.device('cpu'), dt.device('cuda', 1), dt.Generator(), float, int, bool, complex, str]


DTYPES = ['bool', 'uint8', 'int8', 'int16', 'int32', 'int64', 'float16', 'bfloat16', 'float32', 'float64', 'complex64',
          'complex128', 'uint16', 'uint32', 'uint64', 'float8_e4m3fn', 'float8_e5m2']


def tensors():
    """New tensors of every kind; a call may change them."""
    base = dt.arange(24, dtype=dt.float32).reshape(2, 3, 4)
    kinds = [base, base[1], base.T, base[:, :, ::2], base.expand(5, 2, 3, 4), base[0, 0, 0], dt.ones(0),
             dt.ones(2, 0, 3), dt.ones(3, 3), dt.ones(3), dt.tensor(2), dt.tensor(True), dt.tensor([0, 1, 2]),
             dt.tensor([True, False, True]), dt.tensor([-1, 2**62]), dt.ones(3, 3, requires_grad=True),
             dt.ones(3, requires_grad=True) * 2, Subclass(dt.ones(2, 3)), dt.full((2, 2), float('nan')),
             dt.ones(1, 2, 4, 4), dt.eye(3).to_sparse(), dt.eye(3).to_sparse_csr(), dt.ones(3, dtype=dt.complex64),
             dt.ones(*[1] * 16)]
    return kinds + [dt.ones(2, 2).to(getattr(dt, name)) for name in DTYPES]
