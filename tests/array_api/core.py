# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The array object of the Python array API standard over libtensor's boxed calls.

It is for tests: functions and methods do not check what the library checks. call('add.Tensor', a, b) is a
boxed call with arguments in schema order or by name; its arguments and results are arrays.
"""
import array as packed
import ctypes as C
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'conformance'))
import boxed  # noqa: E402

lib = boxed.Library(os.environ.get('TENSOR_LIBRARY', os.path.join(HERE, '../../build/libtensor.so')))
API_VERSION = '2025.12'
CPU = 'cpu'


class DType:
    """A data type of the standard; ours is the library's name for it."""

    def __init__(self, name, ours, kind, code):
        self.name, self.ours, self.kind, self.code = name, ours, kind, code
        self.itemsize = boxed.ITEMSIZE[ours]

    def __repr__(self):
        return self.name


# The library's name, the standard's name, the kind, and the format of a (real) number in struct and array.
NAMES = [('bool', 'bool', 'bool', '?'),
         ('i8', 'int8', 'signed integer', 'b'), ('i16', 'int16', 'signed integer', 'h'),
         ('i32', 'int32', 'signed integer', 'i'), ('i64', 'int64', 'signed integer', 'q'),
         ('u8', 'uint8', 'unsigned integer', 'B'), ('u16', 'uint16', 'unsigned integer', 'H'),
         ('u32', 'uint32', 'unsigned integer', 'I'), ('u64', 'uint64', 'unsigned integer', 'Q'),
         ('f32', 'float32', 'real floating', 'f'), ('f64', 'float64', 'real floating', 'd'),
         ('c64', 'complex64', 'complex floating', 'f'), ('c128', 'complex128', 'complex floating', 'd')]
DTYPES = {name: DType(name, ours, kind, code) for ours, name, kind, code in NAMES if ours in boxed.DTYPE}
BY_OURS = {d.ours: d for d in DTYPES.values()}
KINDS = {'bool': ['bool'], 'signed integer': ['signed integer'], 'unsigned integer': ['unsigned integer'],
         'integral': ['signed integer', 'unsigned integer'], 'real floating': ['real floating'],
         'complex floating': ['complex floating'],
         'numeric': ['signed integer', 'unsigned integer', 'real floating', 'complex floating']}
DEFAULT = {bool: DTYPES['bool'], int: DTYPES['int64'], float: DTYPES['float32'], complex: DTYPES['complex64']}
RANK = {'bool': 0, 'unsigned integer': 1, 'signed integer': 1, 'real floating': 2, 'complex floating': 3}
COMPLEX_OF = {'f32': 'c64', 'f64': 'c128'}


class Subscript(C.Structure):
    _fields_ = [('kind', C.c_uint32), ('reserved', C.c_uint32), ('start', C.c_int64), ('stop', C.c_int64),
                ('step', C.c_int64), ('t', C.c_void_p)]


for fn, res, args in [('tensor_index_items', C.c_void_p, [C.c_void_p, C.POINTER(Subscript), C.c_int]),
                      ('tensor_index_put_items', C.c_void_p,
                       [C.c_void_p, C.c_void_p, C.POINTER(Subscript), C.c_int]),
                      ('tensor_promote_types', C.c_int, [C.c_int, C.c_int])]:
    getattr(lib.so, fn).restype, getattr(lib.so, fn).argtypes = res, args


def wrap(x):
    if isinstance(x, boxed.Tensor):
        return Array(x)
    return tuple(map(wrap, x)) if isinstance(x, list) else x


def unwrap(x):
    if isinstance(x, Array):
        return x._t
    if isinstance(x, DType):
        return x.ours
    return [unwrap(i) for i in x] if isinstance(x, (list, tuple)) else x


def call(name, *args, **kwargs):
    """A boxed call. Returns one result or a tuple; a function that writes to its argument returns the argument."""
    op = lib.ops[name]
    kwargs.update((a.name, v) for a, v in zip(op.args, args))
    res = lib.call(op, {k: unwrap(v) for k, v in kwargs.items()})
    if op.variant != 'function':
        return args[0]
    return wrap(res[0]) if len(res) == 1 else wrap(res)


# ---- data types ---------------------------------------------------------------------------------


def dtype_of(x):
    return x if isinstance(x, DType) else x.dtype


def promote(a, b):
    common = lib.so.tensor_promote_types(boxed.DTYPE[a.ours], boxed.DTYPE[b.ours])
    if not common:
        raise TypeError(lib.failure().text)
    return BY_OURS[boxed.DTYPE_NAME[common]]


def result_type(*arrays_and_dtypes):
    """Ignores the number of dimensions; numbers of Python count only if their kind is higher."""
    numbers = [x for x in arrays_and_dtypes if isinstance(x, (bool, int, float, complex))]
    typed = [dtype_of(x) for x in arrays_and_dtypes if not isinstance(x, (bool, int, float, complex))]
    if not typed:
        raise TypeError('result_type: an array or a data type is needed')
    dtype = typed[0]
    for other in typed[1:]:
        dtype = promote(dtype, other)
    for x in numbers:
        rank = RANK[DEFAULT[type(x)].kind]
        if rank == 3 and dtype.ours in COMPLEX_OF:
            dtype = BY_OURS[COMPLEX_OF[dtype.ours]]
        elif rank > RANK[dtype.kind]:
            dtype = DEFAULT[type(x)]
    return dtype


def together(*xs):
    """Converts numbers and arrays to arrays of their common data type."""
    dtype = result_type(*xs)
    return [astype(x, dtype, copy=False) if isinstance(x, Array) else asarray(x, dtype=dtype) for x in xs]


def astype(x, dtype, /, *, copy=True, device=None):
    on_cpu(device)
    if dtype is x.dtype:
        return call('clone', x) if copy else x
    if x.dtype.kind == 'complex floating' and dtype.kind not in ('complex floating', 'bool'):
        raise TypeError(f'astype: {x.dtype} to {dtype}')
    return call('to', x, dtype=dtype)


def on_cpu(device):
    if device not in (None, CPU):
        raise ValueError(f'no device {device!r}')


# ---- arrays of Python's numbers -----------------------------------------------------------------


def flatten(obj):
    """The numbers in nested sequences, and the shape."""
    if isinstance(obj, Array):
        return obj.flat(), obj.shape
    if not isinstance(obj, (list, tuple)):
        return [obj], ()
    parts = [flatten(o) for o in obj]
    shapes = {s for _, s in parts}
    if len(shapes) > 1:
        raise ValueError('asarray: the nested sequences differ in length')
    return [v for vs, _ in parts for v in vs], (len(obj),) + (shapes.pop() if shapes else ())


def pack(values, dtype):
    if dtype.kind == 'complex floating':
        values = [p for v in values for p in (complex(v).real, complex(v).imag)]
    elif dtype.kind == 'bool':
        return bytes(map(bool, values))
    elif RANK[dtype.kind] == 1:
        values = map(int, values)
    return packed.array(dtype.code, values).tobytes()


def asarray(obj, /, *, dtype=None, device=None, copy=None):
    on_cpu(device)
    if isinstance(obj, Array):
        if dtype not in (None, obj.dtype):
            if copy is False:
                raise ValueError('asarray: another data type needs a copy')
            return astype(obj, dtype)
        return call('clone', obj) if copy else obj
    if copy is False:
        raise ValueError('asarray: numbers of Python need a copy')
    values, shape = flatten(obj)
    kinds = set(map(type, values))
    dtype = dtype or next((DEFAULT[k] for k in (complex, float, int, bool) if k in kinds), DEFAULT[float])
    return Array(lib.storage(dtype.ours, pack(values, dtype), sizes=list(shape)))


# ---- the array object ---------------------------------------------------------------------------


class Array:
    def __init__(self, t):
        self._t = t

    @property
    def dtype(self):
        return BY_OURS[self._t.dtype]

    @property
    def shape(self):
        return tuple(self._t.sizes)

    @property
    def ndim(self):
        return len(self._t.sizes)

    @property
    def size(self):
        return self._t.numel

    @property
    def device(self):
        return CPU

    @property
    def T(self):
        if self.ndim != 2:
            raise ValueError('T: of matrices only')
        return call('t', self)

    @property
    def mT(self):
        return call('mT', self)

    def flat(self):
        """The elements as numbers of Python, in row-major order."""
        d, data = self.dtype, self._t.tobytes()
        values = struct.unpack(f'<{len(data) // struct.calcsize(d.code)}{d.code}', data)
        if d.kind == 'complex floating':
            return [complex(*values[i:i + 2]) for i in range(0, len(values), 2)]
        return list(values)

    def tolist(self):
        rows = self.flat()
        if not self.ndim:
            return rows[0]
        for n in self.shape[:0:-1]:
            rows = [rows[i:i + n] for i in range(0, len(rows), n)] if n else []
        return rows

    def __repr__(self):
        return f'asarray({self.tolist()}, shape={self.shape}, dtype={self.dtype})'

    def number(self, kind):
        if self.ndim:
            raise TypeError(f'{kind.__name__} of an array of shape {self.shape}')
        value = self.flat()[0]
        return kind(value)

    def __bool__(self, /):
        return self.number(bool)

    def __int__(self, /):
        return self.number(int)

    def __float__(self, /):
        return self.number(float)

    def __complex__(self, /):
        return self.number(complex)

    def __index__(self, /):
        if RANK[self.dtype.kind] != 1:
            raise TypeError(f'an index of {self.dtype}')
        return self.number(int)

    def __hash__(self):
        raise TypeError('arrays have no hash')

    def __getitem__(self, key, /):
        items, n, keep = subscripts(key)
        return Array(indexed(lib.so.tensor_index_items(self._t.ptr, items, n)))

    def __setitem__(self, key, value, /):
        items, n, keep = subscripts(key)
        value = asarray(value, dtype=self.dtype)
        if not lib.so.tensor_index_put_items(self._t.ptr, value._t.ptr, items, n):
            raise IndexError(lib.failure().text)

    def to_device(self, device, /, *, stream=None):
        on_cpu(device)
        if stream is not None:
            raise ValueError('the CPU has no streams')
        return self

    def __array_namespace__(self, /, *, api_version=None):
        if api_version not in (None, '2021.12', '2022.12', '2023.12', '2024.12', API_VERSION):
            raise ValueError(f'no version {api_version} of the standard')
        return sys.modules[__package__]

    def __dlpack_device__(self, /):
        return 1, 0

    def __dlpack__(self, /, *, stream=None, max_version=None, dl_device=None, copy=None):
        from . import dlpack
        if stream is not None or dl_device not in (None, (1, 0)):
            raise BufferError('on the CPU, without a stream, only')
        return dlpack.export(self, versioned=max_version is not None and max_version[0] >= 1, copy=bool(copy))


def indexed(ptr):
    if not ptr:
        raise IndexError(lib.failure().text)
    return boxed.Tensor(lib, ptr)


def subscript(key):
    """An item of a key, and the objects that must outlive it."""
    none, kinds = -2**63, boxed.ENUM
    if key is None:
        return Subscript(kinds['TENSOR_ITEM_NEWAXIS']), None
    if key is Ellipsis:
        return Subscript(kinds['TENSOR_ITEM_ELLIPSIS']), None
    if isinstance(key, slice):
        ends = [none if v is None else int(v.__index__()) for v in (key.start, key.stop, key.step)]
        return Subscript(kinds['TENSOR_ITEM_SLICE'], 0, *ends), None
    if isinstance(key, (bool, list, tuple)):
        key = asarray(key)
    if isinstance(key, Array) and (key.ndim or key.dtype.kind == 'bool'):
        if RANK[key.dtype.kind] == 1:  # the library, like PyTorch, treats u8 as a mask
            key = astype(key, DTYPES['int64'], copy=False)
        return Subscript(kinds['TENSOR_ITEM_TENSOR'], 0, 0, 0, 0, key._t.ptr), key
    return Subscript(kinds['TENSOR_ITEM_INT'], 0, key.__index__()), None


def subscripts(key):
    parts = [subscript(k) for k in (key if isinstance(key, tuple) else (key,))]
    return (Subscript * max(len(parts), 1))(*[p for p, _ in parts]), len(parts), [k for _, k in parts]


def shape_of(shape):
    return [int(shape)] if hasattr(shape, '__index__') else [int(n) for n in shape]


def axes_of(axis, ndim):
    """Axes as a list of non-negative numbers; all axes for None."""
    if axis is None:
        return list(range(ndim))
    return [a % ndim if ndim else a for a in ((axis,) if hasattr(axis, '__index__') else axis)]

