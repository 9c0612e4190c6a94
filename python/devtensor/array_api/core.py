# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The array object of the Python array API standard, and what the functions of the standard share.

An Array is a Tensor whose operators follow the standard where PyTorch's, which those of Tensor follow, differ:
in the promotion of arrays without dimensions, in the data types that in-place operators accept, and in a few
values. Functions take tensors and numbers, and return Arrays."""
from devtensor import _C, interchange

API_VERSION = '2025.12'
CPU = _C.device('cpu')
Tensor = _C.Tensor

NAMES = {'bool': ['bool'], 'signed integer': ['int8', 'int16', 'int32', 'int64'],
         'unsigned integer': ['uint8', 'uint16', 'uint32', 'uint64'], 'real floating': ['float32', 'float64'],
         'complex floating': ['complex64', 'complex128']}
KIND = {getattr(_C, name): kind for kind, names in NAMES.items() for name in names}
DTYPES = {name: getattr(_C, name) for names in NAMES.values() for name in names}
KINDS = {**{kind: [kind] for kind in NAMES}, 'integral': ['signed integer', 'unsigned integer'],
         'numeric': ['signed integer', 'unsigned integer', 'real floating', 'complex floating']}
RANK = {'bool': 0, 'unsigned integer': 1, 'signed integer': 1, 'real floating': 2, 'complex floating': 3}
DEFAULT = {bool: _C.bool, int: _C.int64, float: _C.float32, complex: _C.complex64}
COMPLEX_OF = {_C.float32: _C.complex64, _C.float64: _C.complex128}
NUMBERS = (bool, int, float, complex)


def kind_of(dtype):
    """The kind of a data type; dtypes beyond the standard (float16, bfloat16) count as real floating."""
    return KIND.get(dtype, 'real floating')


def as_array(x):
    """Tensors become Arrays in place: the results of operators, which have no other owner."""
    if type(x) is Tensor:
        x.__class__ = Array
    elif isinstance(x, tuple):
        return tuple(map(as_array, x))
    return x


def call(name, *args, **kwargs):
    """Calls an operator; its results are Arrays."""
    result = getattr(_C, name)(*args, **kwargs)
    if result.__class__ is Tensor and any(result is a for a in args):
        return result.as_subclass(Array)  # an argument, whose class stays
    return as_array(result)


# ---- data types ---------------------------------------------------------------------------------


def dtype_of(x):
    return x if isinstance(x, _C.dtype) else x.dtype


def promote(a, b):
    known = a in KIND and b in KIND
    try:
        common = _C.promote_types(a, b)
    except ValueError:  # u64 and a signed type
        if not known:
            raise
        common = None
    if known and common not in KIND:
        raise TypeError(f'no data type holds both {a} and {b}')
    return common


def result_type(*arrays_and_dtypes):
    """Ignores the number of dimensions; numbers of Python count only if their kind is higher."""
    numbers = [x for x in arrays_and_dtypes if isinstance(x, NUMBERS)]
    typed = [dtype_of(x) for x in arrays_and_dtypes if not isinstance(x, NUMBERS)]
    if not typed:
        raise TypeError('result_type: an array or a data type is needed')
    dtype = typed[0]
    for other in typed[1:]:
        dtype = promote(dtype, other)
    for x in numbers:
        rank = RANK[kind_of(DEFAULT[type(x)])]
        if rank == 3 and dtype in COMPLEX_OF:
            dtype = COMPLEX_OF[dtype]
        elif rank > RANK[kind_of(dtype)]:
            dtype = DEFAULT[type(x)]
    return dtype


def together(*xs):
    """Converts numbers and arrays to arrays of their common data type."""
    dtype = result_type(*xs)
    return [astype(x, dtype, copy=False) if isinstance(x, Tensor) else asarray(x, dtype=dtype) for x in xs]


def astype(x, dtype, /, *, copy=True, device=None):
    on_cpu(device)
    if dtype is x.dtype:
        return call('clone', x) if copy else x
    if kind_of(x.dtype) == 'complex floating' and kind_of(dtype) not in ('complex floating', 'bool'):
        raise TypeError(f'astype: {x.dtype} to {dtype}')
    return as_array(x.to(dtype))


def on_cpu(device):
    if device is not None and device != CPU:
        raise ValueError(f'there is no device {device!r}')


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    on_cpu(device)
    if not isinstance(obj, Tensor):
        return as_array(interchange.asarray(obj, dtype=dtype, copy=copy))
    if dtype not in (None, obj.dtype):
        if copy is False:
            raise ValueError('asarray: another data type needs a copy')
        return astype(obj, dtype)
    if copy:
        return call('clone', obj)
    return obj if isinstance(obj, Array) else obj.as_subclass(Array)


# ---- the array object ---------------------------------------------------------------------------


class Array(Tensor):
    """A tensor with the operators of the standard."""
    __slots__ = ()

    @property
    def T(self):
        if self.ndim != 2:
            raise ValueError('T: of matrices only')
        return call('t', self)

    @property
    def mT(self):
        return call('mT', self)

    def __getitem__(self, key, /):
        return as_array(Tensor.__getitem__(self, key))

    def __setitem__(self, key, value, /):
        Tensor.__setitem__(self, key, asarray(value, dtype=self.dtype))

    def __iter__(self):
        return map(as_array, Tensor.__iter__(self))

    def __hash__(self):
        raise TypeError('arrays have no hash')

    def __complex__(self, /):
        return complex(self.item())


def shape_of(shape):
    return [int(shape)] if hasattr(shape, '__index__') else [int(n) for n in shape]


def axes_of(axis, ndim):
    """Axes as a list of non-negative numbers; all axes for None."""
    if axis is None:
        return list(range(ndim))
    axes = (axis,) if hasattr(axis, '__index__') else axis
    return [a + ndim if -ndim <= a < 0 else a for a in axes]
