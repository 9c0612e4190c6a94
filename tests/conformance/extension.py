# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The library of the module boxed with calls through the Python package: CONFORMANCE_THROUGH=extension.

call() passes Python's objects to the function of devtensor._C, which chooses the overload and converts the arguments.
Everything else is the same, on the same tensors: devtensor's objects for them are made for the time of a call.
"""
import errno
import os

import boxed
from boxed import Failed, Tensor, Unsupported

DTYPE_NAMES = {'u8': 'uint8', 'i8': 'int8', 'i16': 'int16', 'i32': 'int32', 'i64': 'int64', 'u16': 'uint16',
               'u32': 'uint32', 'u64': 'uint64', 'f16': 'float16', 'bf16': 'bfloat16', 'f32': 'float32',
               'f64': 'float64', 'c64': 'complex64', 'c128': 'complex128', 'f8_e4m3fn': 'float8_e4m3fn',
               'f8_e5m2': 'float8_e5m2', 'bool': 'bool'}
CODES = [(IndexError, errno.ERANGE), (OverflowError, errno.EOVERFLOW), (MemoryError, errno.ENOMEM),
         (NotImplementedError, errno.EOPNOTSUPP), (ValueError, errno.EINVAL), (TypeError, errno.EINVAL)]


def code_of(exception):
    if isinstance(exception, OSError) and exception.errno:
        return exception.errno
    return next((code for kind, code in CODES if isinstance(exception, kind)), errno.EPERM)


class Library(boxed.Library):
    def __init__(self, path, device='cpu'):
        from devtensor import _C
        self.module = _C
        own = os.path.join(os.path.dirname(_C.__file__), 'libtensor.so.0')
        if not os.path.samefile(own, path):
            raise SystemExit(f'{path} is not the library of {_C.__file__}')
        super().__init__(own, device)

    # ---- arguments ----

    def tensor_object(self, x):
        if x is None:
            return None
        if not isinstance(x, Tensor):
            raise Unsupported(f'{type(x).__name__} for a Tensor')
        return self.module._from_cdata(x.ptr)

    def object(self, typ, x):
        """The argument as Python's programs pass it."""
        plain = typ.removesuffix('?')
        if x is None:
            return None
        if plain == 'Tensor':
            return self.tensor_object(x)
        if plain in ('Tensor[]', 'Tensor?[]'):
            return [self.tensor_object(t) for t in x]
        if plain == 'ScalarType':
            return getattr(self.module, DTYPE_NAMES[x])
        if plain in ('Layout', 'MemoryFormat'):
            return getattr(self.module, x.lower())
        if plain == 'Device':
            return x.lower() if self.is_host or x != 'cpu' else 'cuda'
        if plain == 'bool':
            return bool(x)
        if plain == 'bool[]':
            return [bool(b) for b in x]
        self.check_kind(plain, x)
        return x

    def arguments(self, op, kwargs):
        """By position as far as there are no gaps, the others by name."""
        args, named, gap = [], {}, False
        for a in op.args:
            gap |= a.name not in kwargs or a.keyword
            if a.name not in kwargs:
                continue
            value = self.object(a.type, kwargs[a.name])
            if gap:
                named[a.name] = value
            else:
                args.append(value)
        return args, named

    # ---- results ----

    def result(self, o):
        if isinstance(o, self.module.Tensor):
            return Tensor(self, self.so.tensor_retain(o._cdata))
        return o

    def call(self, op, kwargs):
        function = getattr(self.module, op.base, None)
        if function is None:
            return super().call(op, kwargs)
        args, named = self.arguments(op, self.with_device(op, kwargs))
        try:
            got = function(*args, **named)
        except Exception as e:
            raise Failed(code_of(e), str(e)) from None
        if op.nreturns == boxed.ENUM['TENSOR_RETURNS_LIST']:
            return [[self.result(o) for o in got]]
        if op.nreturns == 0:
            return []
        return [self.result(o) for o in got] if op.nreturns > 1 else [self.result(got)]
