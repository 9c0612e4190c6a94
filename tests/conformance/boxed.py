# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Boxed calls of libtensor with ctypes; needs only the standard library.

Enumerations are read from the public headers and operators from the library, so new ones need no
change here. Arguments are encoded by the types in the text of the schema:

    lib = Library('build/libtensor.so')
    a = lib.tensor('f32', [2, 2], [2, 1], 0, bytes_of_the_storage)
    (b,) = lib.call(lib.ops['add.Tensor'], {'self': a, 'other': a, 'alpha': 2})

A failed call raises Failed with the text of the library's error record.
"""
import copy
import ctypes
import os
import re
import sys

C = ctypes
HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = os.path.join(HERE, '..', '..', 'include', 'tensor')

MOST_RESULTS = 512  # of an operator that returns Tensor[]
DTYPES = ['bool', 'u8', 'i8', 'i16', 'i32', 'i64', 'f16', 'bf16', 'f32', 'f64', 'c64', 'c128', 'u16',
          'u32', 'u64', 'f8_e4m3fn', 'f8_e5m2']
ITEMSIZE = dict(zip(DTYPES, [1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 2, 4, 8, 1, 1]))


def enums():
    """Every enumerator of the public headers: name -> number."""
    out = {}
    for header in ('types.h', 'dispatch.h', 'index.h'):
        with open(os.path.join(INCLUDE, header)) as f:
            text = re.sub(r'/\*.*?\*/|//[^\n]*', '', f.read(), flags=re.S)
        for body in re.findall(r'enum\s+\w+\s*\{(.*?)\}', text, flags=re.S):
            n = 0
            for item in body.split(','):
                name, _, value = (s.strip() for s in item.partition('='))
                if name:
                    n = int(value, 0) if value else n
                    out[name] = n
                    n += 1
        for name, value in re.findall(r'#define (TENSOR_\w+)\s+\(?(-?\d+)\)?\n', text):
            out[name] = int(value)
    return out


ENUM = enums()
DTYPE = {n: ENUM['TENSOR_' + n.upper()] for n in DTYPES}
DTYPE_NAME = {v: k for k, v in DTYPE.items()}
VALUE = {k[len('TENSOR_VALUE_'):]: v for k, v in ENUM.items() if k.startswith('TENSOR_VALUE_')}


class Scalar(C.Structure):
    class Number(C.Union):
        _fields_ = [('i', C.c_int64), ('d', C.c_double)]
    _anonymous_ = ('n',)
    _fields_ = [('n', Number), ('imag', C.c_double), ('kind', C.c_uint32), ('reserved', C.c_uint32)]


class Ints(C.Structure):
    _fields_ = [('data', C.c_void_p), ('len', C.c_int64)]


class Device(C.Structure):
    _fields_ = [('type', C.c_int8), ('index', C.c_int8)]


class Value(C.Structure):
    class Payload(C.Union):
        _fields_ = [('t', C.c_void_p), ('list', Ints), ('i', C.c_int64), ('ints', Ints),
                    ('b', C.c_bool), ('f', C.c_double), ('scalar', Scalar), ('device', Device),
                    ('s', C.c_void_p)]
    _anonymous_ = ('u',)
    _fields_ = [('kind', C.c_uint32), ('reserved', C.c_uint32), ('u', Payload)]


assert C.sizeof(Value) == 32


class Options(C.Structure):
    _fields_ = [('dtype', C.c_uint8), ('layout', C.c_uint8), ('device', Device),
                ('shareable', C.c_uint8), ('memory_format', C.c_uint8),
                ('reserved', C.c_uint8 * 2)]


class RawArg(C.Structure):
    _fields_ = [('name', C.c_char_p), ('type', C.c_int), ('default', C.c_char_p),
                ('keyword', C.c_bool), ('mutated', C.c_bool)]


class RawSchema(C.Structure):
    _fields_ = [('name', C.c_char_p), ('text', C.c_char_p), ('args', C.POINTER(RawArg)),
                ('nargs', C.c_int), ('nreturns', C.c_int), ('tags', C.POINTER(C.c_char_p))]


class CacheStats(C.Structure):
    _fields_ = [(n, C.c_uint64) for n in ('used', 'cached', 'buffers', 'hits', 'misses', 'arenas', 'blocks')]


class Error(C.Structure):
    _fields_ = [('code', C.c_int), ('text', C.c_char * 480)]


class Failed(Exception):
    """A call failed; code is an errno value."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code, self.text = code, text


class Unsupported(Exception):
    """A value that boxed calls cannot express."""


def split(text):
    depth, start, out = 0, 0, []
    for i, ch in enumerate(text):
        depth += (ch in '([') - (ch in ')]')
        if ch == ',' and depth == 0:
            out.append(text[start:i].strip())
            start = i + 1
    return out + ([text[start:].strip()] if text[start:].strip() else [])


class Arg:
    """An argument: name, schema type without sizes and alias marks, default, mutated."""

    def __init__(self, raw, text):
        self.name, self.mutated, self.keyword = raw.name.decode(), raw.mutated, raw.keyword
        self.default = raw.default.decode() if raw.default else None
        typ = text.rsplit('=', 1)[0].strip().rsplit(' ', 1)[0] if text else 'Tensor'
        typ = re.sub(r'\(\w+!?( -> \*)?\)', '', typ)
        self.type = re.sub(r'\[\d+\]', '[]', typ).strip()

    @property
    def required(self):
        return self.default is None and not self.type.endswith('?')


class Op:
    """An operator with its parsed schema."""

    def __init__(self, handle, raw):
        self.handle, self.name, self.text = handle, raw.name.decode(), raw.text.decode()
        self.base, _, self.overload = self.name.partition('.')
        self.nreturns = raw.nreturns
        self.tags = set()
        i = 0
        while raw.tags and raw.tags[i]:
            self.tags.add(raw.tags[i].decode())
            i += 1
        inside, _, self.returns = self.text[self.text.index('(') + 1:].rpartition(') -> ')
        texts = [t for t in split(inside) if t != '*']
        by_name = {t.rsplit('=', 1)[0].strip().rsplit(' ', 1)[-1]: t for t in texts}
        self.args = [Arg(raw.args[i], by_name.get(raw.args[i].name.decode()))
                     for i in range(raw.nargs)]
        self.by_name = {a.name: a for a in self.args}
        self.mutated = [a.name for a in self.args if a.mutated]
        self.variant = ('out' if any(a.mutated and a.keyword for a in self.args) else
                        'inplace' if self.mutated else 'function')


class Tensor:
    """An owned reference, released with the object."""

    def __init__(self, lib, ptr, own=True):
        self.lib, self.ptr, self.own = lib, ptr, own

    def __del__(self):
        if self.own and self.ptr:
            self.lib.so.tensor_release(self.ptr)

    @property
    def device(self):
        d = self.lib.so.tensor_get_device(self.ptr)
        return d.type, d.index

    @property
    def dtype(self):
        return DTYPE_NAME[self.lib.so.tensor_dtype(self.ptr)]

    @property
    def sizes(self):
        n = self.lib.so.tensor_dim(self.ptr)
        p = self.lib.so.tensor_sizes(self.ptr)
        return [p[i] for i in range(n)]

    @property
    def strides(self):
        n = self.lib.so.tensor_dim(self.ptr)
        p = self.lib.so.tensor_strides(self.ptr)
        return [p[i] for i in range(n)]

    @property
    def offset(self):
        return self.lib.so.tensor_storage_offset(self.ptr)

    @property
    def numel(self):
        return self.lib.so.tensor_numel(self.ptr)

    @property
    def data(self):
        return self.lib.so.tensor_data(self.ptr)

    def span(self):
        """The memory from the first element to the last one, those between them included, as bytes. For strides >= 0."""
        n = 0 if 0 in self.sizes else 1 + sum((n - 1) * s for n, s in zip(self.sizes, self.strides))
        return self.lib.view(self, [n], [1], self.offset).tobytes()

    def tobytes(self):
        """The elements in row-major order."""
        n = self.numel * ITEMSIZE[self.dtype]
        buf = C.create_string_buffer(n or 1)
        self.lib.check(self.lib.so.tensor_copy_to(self.ptr, buf, n))
        return buf.raw[:n]


class Library:
    """Tensors are made on the device, cpu or cuda; an argument of an operator that names the CPU names the device, too."""

    def __init__(self, path, device='cpu'):
        self.so = so = C.CDLL(os.path.abspath(path))
        self.device = Device(ENUM['TENSOR_' + device.upper()], 0)
        os.environ['TENSOR_CUDA_CHECKS'] = 'wait'  # a refusal is that of the call
        P, I64 = C.c_void_p, C.c_int64
        for name, res, args in [
                ('tensor_op_count', C.c_int, []),
                ('tensor_op_at', P, [C.c_int]),
                ('tensor_op_schema', C.POINTER(RawSchema), [P]),
                ('tensor_op_call', C.c_int, [P, C.POINTER(Value), C.c_int, C.POINTER(Value),
                                             C.c_int]),
                ('tensor_release', None, [P]), ('tensor_retain', P, [P]),
                ('tensor_dim', C.c_int, [P]), ('tensor_sizes', C.POINTER(I64), [P]),
                ('tensor_strides', C.POINTER(I64), [P]), ('tensor_numel', I64, [P]),
                ('tensor_storage_offset', I64, [P]), ('tensor_dtype', C.c_int, [P]),
                ('tensor_get_device', Device, [P]), ('tensor_cuda_fallbacks', I64, [C.c_char_p]),
                ('tensor_cuda_device_count', C.c_int, []),
                ('tensor_data', P, [P]), ('tensor_copy_to', C.c_int, [P, P, C.c_size_t]),
                ('tensor_shares_storage', C.c_bool, [P, P]),
                ('tensor_from_data', P, [P, Ints, Options]),
                ('tensor_as_strided', P, [P, Ints, Ints, I64]),
                ('tensor_last_error', C.POINTER(Error), []), ('tensor_clear_error', None, []),
                ('tensor_cache_stats', None, [C.POINTER(CacheStats)]),
                ('tensor_set_num_threads', C.c_int, [C.c_int]),
                ('tensor_set_requires_grad', C.c_int, [P, C.c_bool]),
                ('tensor_requires_grad', C.c_bool, [P]),
                ('tensor_backward_ex', C.c_int, [Ints, P, Ints, P, C.c_uint])]:
            fn = getattr(so, name)
            fn.restype, fn.argtypes = res, args
        self.none = C.c_void_p.in_dll(so, 'tensor_none').value
        self.ops, self.by_base = {}, {}
        for i in range(so.tensor_op_count()):
            handle = so.tensor_op_at(i)
            op = Op(handle, so.tensor_op_schema(handle).contents)
            self.ops[op.name] = op
            self.by_base.setdefault(op.base, []).append(op)

    @property
    def is_host(self):
        return self.device.type == ENUM['TENSOR_CPU']

    def open_device(self):
        """Raises Failed if there is no device. Once for each process that uses it; after fork a process cannot use its
        parent's."""
        plugin = os.environ.get('TENSOR_CUDA_PLUGIN')
        if not self.is_host and plugin and 'torch' in sys.modules:  # its runtime, not the one that PyTorch has loaded
            C.CDLL(plugin, mode=os.RTLD_NOW | os.RTLD_DEEPBIND)
        if not self.is_host and self.so.tensor_cuda_device_count() < 1:
            raise self.failure()

    def on_host(self):
        """The same library with tensors on the CPU."""
        other = copy.copy(self)
        other.device = Device(ENUM['TENSOR_CPU'], 0)
        return other

    def fallbacks(self):
        """Calls of all operators for the device that the CPU computed."""
        return 0 if self.is_host else self.so.tensor_cuda_fallbacks(None)

    def with_device(self, op, kwargs):
        """The arguments, with the device for an operator that has no tensor to take it from."""
        names = [a.name for a in op.args if a.type == 'Device?' and kwargs.get(a.name) is None]
        if self.is_host or not names or any(isinstance(v, Tensor) for v in kwargs.values()):
            return kwargs
        return {**kwargs, **dict.fromkeys(names, 'cpu')}

    def failure(self):
        e = self.so.tensor_last_error().contents
        return Failed(e.code, e.text.decode(errors='replace'))

    def check(self, rc):
        if rc:
            raise self.failure()

    def own(self, ptr):
        if not ptr:
            raise self.failure()
        return Tensor(self, ptr)

    def used(self):
        s = CacheStats()
        self.so.tensor_cache_stats(C.byref(s))
        return s.used

    @staticmethod
    def ints(values):
        buf = (C.c_int64 * len(values))(*values)
        return Ints(C.addressof(buf), len(values)), buf

    def tensor(self, dtype, sizes, strides, offset, data, nbytes=None):
        """A tensor of this geometry on a copy of a storage, which is bytes, or an address and a length."""
        base = self.storage(dtype, data, nbytes)
        return self.view(base, sizes, strides, offset)

    def storage(self, dtype, data, nbytes=None, sizes=None):
        """A contiguous tensor, of one dimension if sizes is not given."""
        if isinstance(data, (bytes, bytearray)):
            nbytes, data = len(data), bytes(data)
        n, keep = self.ints([nbytes // ITEMSIZE[dtype]] if sizes is None else sizes)
        return self.own(self.so.tensor_from_data(C.cast(data, C.c_void_p) if isinstance(data, bytes)
                                                 else data, n, Options(DTYPE[dtype], device=self.device)))

    def view(self, base, sizes, strides, offset):
        (s, k1), (st, k2) = self.ints(sizes), self.ints(strides)
        return self.own(self.so.tensor_as_strided(base.ptr, s, st, offset))

    # ---- arguments ------------------------------------------------------------------------

    @staticmethod
    def check_kind(plain, x):
        """Refuses what no conversion makes an argument of the type, for example one of another overload."""
        if plain == 'float' and isinstance(x, (list, tuple, Tensor)) or plain in ('int[]', 'SymInt[]') and isinstance(x, Tensor) or \
                plain in ('int', 'SymInt') and (isinstance(x, float) or not hasattr(x, '__index__')):
            raise Unsupported(f'{type(x).__name__} for {plain}')

    def encode(self, typ, x, keep):
        """A value for an argument of a schema type. keep: a list of objects that must outlive the call."""
        v = Value(VALUE['NONE'])
        optional = typ.endswith('?')
        plain = typ[:-1] if optional else typ
        if x is None:
            if plain == 'Tensor':
                v.kind, v.t = VALUE['TENSOR'], self.none
            return v
        self.check_kind(plain, x)
        if plain == 'Tensor':
            if not isinstance(x, Tensor):
                raise Unsupported(f'{type(x).__name__} for a Tensor')
            v.kind, v.t = VALUE['TENSOR'], x.ptr
        elif plain in ('Tensor[]', 'Tensor?[]'):
            ptrs = [self.none if t is None else t.ptr for t in x]
            buf = (C.c_void_p * max(len(ptrs), 1))(*ptrs)
            keep.append((buf, x))
            v.kind, v.list = VALUE['TENSOR_LIST'], Ints(C.addressof(buf), len(ptrs))
        elif plain in ('int', 'SymInt'):
            v.kind, v.i = VALUE['INT'], int(x)
        elif plain in ('int[]', 'SymInt[]'):
            v.kind = VALUE['INTS']
            v.ints, buf = self.ints([int(i) for i in (x if isinstance(x, (list, tuple)) else [x])])
            keep.append(buf)
        elif plain == 'bool':
            v.kind, v.b = VALUE['BOOL'], bool(x)
        elif plain == 'float':
            v.kind, v.f = VALUE['FLOAT'], float(x)
        elif plain == 'Scalar':
            v.kind, v.scalar = VALUE['SCALAR'], self.scalar(x)
        elif plain == 'ScalarType':
            v.kind, v.i = VALUE['INT'], DTYPE[x]
        elif plain in ('Layout', 'MemoryFormat'):
            v.kind, v.i = VALUE['INT'], ENUM['TENSOR_' + x.upper()]
        elif plain == 'Device':
            v.kind = VALUE['DEVICE']
            v.device = self.device if x == 'cpu' else Device(ENUM['TENSOR_' + x.upper()], 0)
        else:
            self.encode_rest(v, plain, x, keep)
        return v

    def encode_rest(self, v, plain, x, keep):
        if plain == 'str':
            buf = C.create_string_buffer(x.encode())
            keep.append(buf)
            v.kind, v.s = VALUE['STRING'], C.addressof(buf)
        elif plain == 'bool[]':
            v.kind = VALUE['INTS']
            v.ints, buf = self.ints([int(b) for b in x])
            keep.append(buf)
        elif plain == 'Scalar[]':
            x = list(x) if isinstance(x, (list, tuple)) else [x]
            buf = (Scalar * max(len(x), 1))(*[self.scalar(i) for i in x])
            keep.append(buf)
            v.kind, v.ints = VALUE['SCALARS'], Ints(C.addressof(buf), len(x))
        elif plain == 'float[]':
            x = list(x) if isinstance(x, (list, tuple)) else [x]
            buf = (C.c_double * max(len(x), 1))(*x)
            keep.append(buf)
            v.kind, v.ints = VALUE['FLOATS'], Ints(C.addressof(buf), len(x))
        else:
            raise Unsupported(f'no boxed form for {plain}')

    @staticmethod
    def scalar(x):
        s = Scalar()
        if isinstance(x, bool):
            s.kind, s.i = ENUM['TENSOR_SCALAR_BOOL'], x
        elif isinstance(x, int):
            if not -2**63 <= x < 2**64:
                raise Unsupported('a whole number beyond 64 bits')
            s.kind = ENUM['TENSOR_SCALAR_INT' if x < 2**63 else 'TENSOR_SCALAR_UINT']
            s.i = x if x < 2**63 else x - 2**64
        elif isinstance(x, float):
            s.kind, s.d = ENUM['TENSOR_SCALAR_FLOAT'], x
        elif isinstance(x, complex):
            s.kind, s.d, s.imag = ENUM['TENSOR_SCALAR_COMPLEX'], x.real, x.imag
        else:
            raise Unsupported(f'{type(x).__name__} for a Scalar')
        return s

    # ---- results --------------------------------------------------------------------------

    def decode(self, v, own):
        if v.kind == VALUE['TENSOR']:
            if v.t == self.none:
                return None
            return Tensor(self, v.t, own)
        if v.kind == VALUE['TENSOR_LIST']:
            ptrs = C.cast(v.list.data, C.POINTER(C.c_void_p))
            return [Tensor(self, ptrs[i], own) for i in range(v.list.len)]
        if v.kind == VALUE['INT']:
            return v.i
        if v.kind == VALUE['BOOL']:
            return v.b
        if v.kind == VALUE['FLOAT']:
            return v.f
        if v.kind == VALUE['SCALAR']:
            s = v.scalar
            return {ENUM['TENSOR_SCALAR_BOOL']: lambda: bool(s.i),
                    ENUM['TENSOR_SCALAR_INT']: lambda: s.i,
                    ENUM['TENSOR_SCALAR_FLOAT']: lambda: s.d,
                    ENUM['TENSOR_SCALAR_COMPLEX']: lambda: complex(s.d, s.imag)}[s.kind]()
        return None

    def call(self, op, kwargs):
        """Call op with arguments by name; missing ones have the schema's defaults. Returns a list of results."""
        keep, kwargs = [], self.with_device(op, kwargs)
        args = (Value * max(len(op.args), 1))()
        for i, a in enumerate(op.args):
            if a.name in kwargs:
                args[i] = self.encode(a.type, kwargs[a.name], keep)
        many = op.nreturns == ENUM['TENSOR_RETURNS_LIST']
        n = MOST_RESULTS if many else op.nreturns
        rets = (Value * max(n, 1))()
        self.check(self.so.tensor_op_call(op.handle, args, len(op.args), rets, n))
        out = [self.decode(rets[i], op.variant == 'function') for i in range(n)
               if not many or rets[i].kind != VALUE['NONE']]
        return [out] if many else out

    # ---- autograd -------------------------------------------------------------------------

    def backward(self, outputs, grads, inputs):
        """Gradients with respect to inputs; None for an input without one."""
        def array(ts):
            return (C.c_void_p * max(len(ts), 1))(*[t.ptr for t in ts])
        o, g, i, res = array(outputs), array(grads), array(inputs), array([])
        res = (C.c_void_p * max(len(inputs), 1))()
        self.check(self.so.tensor_backward_ex(Ints(C.addressof(o), len(outputs)), g,
                                              Ints(C.addressof(i), len(inputs)), res, 0))
        return [Tensor(self, p) if p else None for p in res[:len(inputs)]]


def library(path, device='cpu'):
    """The library, with the calls that CONFORMANCE_THROUGH names: boxed (the default) or extension, the Python
    package."""
    through = os.environ.get('CONFORMANCE_THROUGH', 'boxed')
    if through == 'extension':
        import extension
        return extension.Library(path, device)
    if through != 'boxed':
        raise SystemExit(f'CONFORMANCE_THROUGH={through}: boxed or extension')
    return Library(path, device)
