# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Converts PyTorch's tensors and arguments to libtensor's, and compares results.

A tensor is copied with its whole storage, sizes, strides and offset; arguments that share a storage
in PyTorch share one in libtensor, too. Results are compared in place.
"""
import ctypes

import torch
from torch.testing._comparison import default_tolerances

import boxed

TORCH = {'bool': torch.bool, 'u8': torch.uint8, 'i8': torch.int8, 'i16': torch.int16,
         'i32': torch.int32, 'i64': torch.int64, 'f16': torch.float16, 'bf16': torch.bfloat16,
         'f32': torch.float32, 'f64': torch.float64, 'c64': torch.complex64,
         'c128': torch.complex128, 'u16': torch.uint16, 'u32': torch.uint32, 'u64': torch.uint64,
         'f8_e4m3fn': torch.float8_e4m3fn, 'f8_e5m2': torch.float8_e5m2}
OURS = {v: k for k, v in TORCH.items()}
WIDER = {torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64,
         torch.complex64: torch.complex128}

# Arguments of PyTorch for which libtensor has no choice; they are not passed.
IGNORED = {'pin_memory', 'non_blocking', 'memory_format', 'generator', 'implicit'}


class Unsupported(boxed.Unsupported):
    pass


def reachable(t):
    """Bytes of the storage of a tensor that boxed calls can express."""
    if t.layout is not torch.strided or t.is_quantized:
        raise Unsupported(f'layout {t.layout}')
    if t.device.type != 'cpu':
        raise Unsupported(f'device {t.device.type}')
    if t.dtype not in OURS:
        raise Unsupported(f'dtype {t.dtype}')
    if t.dim() > 16:
        raise Unsupported('more than 16 dimensions')
    if type(t) not in (torch.Tensor, torch.nn.Parameter):
        raise Unsupported(type(t).__name__)
    return t.untyped_storage()


class Call:
    """The arguments of one call, converted."""

    def __init__(self, lib):
        self.lib, self.storages, self.tensors = lib, {}, {}

    def tensor(self, t):
        if id(t) in self.tensors:
            return self.tensors[id(t)][1]
        if t.is_conj() or t.is_neg():  # libtensor has no such flags: resolve them
            ours = self.tensor(t.resolve_conj().resolve_neg())
            self.tensors[id(t)] = (t, ours)
            return ours
        s = reachable(t)
        key = (s._cdata, t.dtype)
        if key not in self.storages:
            name, n = OURS[t.dtype], s.nbytes()
            if not n and t.numel():
                raise Unsupported('a tensor without memory')
            whole = t.is_contiguous() and not t.storage_offset() and \
                n == t.numel() * t.element_size()
            self.storages[key] = self.lib.storage(name, s.data_ptr() if n else None, n,
                                                  t.shape if whole else None)
            if whole:  # not a view: an out argument may be resized
                self.tensors[id(t)] = (t, self.storages[key])
                return self.storages[key]
        ours = self.lib.view(self.storages[key], t.shape, t.stride(), t.storage_offset())
        self.tensors[id(t)] = (t, ours)
        return ours

    def value(self, x):
        if isinstance(x, torch.Tensor):
            return self.tensor(x)
        if isinstance(x, torch.dtype):
            if x not in OURS:
                raise Unsupported(f'dtype {x}')
            return OURS[x]
        if isinstance(x, torch.device):
            if x.type != 'cpu':
                raise Unsupported(f'device {x.type}')
            return 'cpu'
        if isinstance(x, torch.layout):
            if x is not torch.strided:
                raise Unsupported(f'layout {x}')
            return 'strided'
        if isinstance(x, torch.memory_format):
            return str(x).split('.')[1]
        if isinstance(x, (list, tuple)):
            return [self.value(i) for i in x]
        return x


def bind(func, args, kwargs):
    """The given arguments, by the schema's argument names."""
    out = {a.name: v for a, v in zip(func._schema.arguments, args)}
    out.update(kwargs)
    return out


def is_default(func, name, value):
    for a in func._schema.arguments:
        if a.name == name:
            if value is None:
                return True
            default = a.default_value
            return a.has_default_value() and type(default) is type(value) and default == value
    return False


def is_output(func, name):
    return any(a.name == name and a.kwarg_only and a.alias_info and a.alias_info.is_write
               for a in func._schema.arguments)


def fit(op, func, given):
    """The operator's arguments from PyTorch's, by name, else by position; raises Unsupported."""
    names = [a.name for a in func._schema.arguments]
    out, left = {}, []
    for name, value in given.items():
        if name in op.by_name:
            out[name] = value
        else:
            left.append((name, value))
    free = [a for a in op.args if a.name not in names]
    # Arguments that are written to correspond by position; their names may differ.
    outs = [n for n in names if n in given and is_output(func, n)]
    mine = [a.name for a in op.args if a.mutated and a.keyword]
    if outs and len(outs) == len(mine):
        out.update({m: given[n] for m, n in zip(mine, outs)})
        left = [(n, v) for n, v in left if n not in outs]
    for name, value in left:
        i = names.index(name)
        if i < len(op.args) and op.args[i] in free and not op.args[i].keyword:
            out[op.args[i].name] = value
        elif name not in IGNORED and not is_default(func, name, value):
            raise Unsupported(f'our {op.name} has no argument {name}')
        elif name == 'memory_format' and value not in (None, torch.contiguous_format,
                                                       torch.preserve_format):
            raise Unsupported('memory_format')
        elif name == 'generator' and value is not None:
            raise Unsupported('generator')
    for a in op.args:
        if a.required and a.name not in out:
            raise Unsupported(f'our {op.name} needs {a.name}')
        v = out.get(a.name)
        if a.type == 'Tensor' and not isinstance(v, torch.Tensor):
            raise Unsupported(f'{type(v).__name__} for the Tensor {a.name} of {op.name}')
        if a.type.rstrip('?') == 'Scalar' and isinstance(v, torch.Tensor):
            raise Unsupported(f'a tensor for the Scalar {a.name}')
        if a.type.rstrip('?') == 'int' and v is not None and not hasattr(v, '__index__'):
            raise Unsupported(f'{type(v).__name__} for the int {a.name}')
        if a.type == 'Tensor[]' and any(x is None for x in v):
            raise Unsupported('no tensor in a Tensor[]')
    return out


def look(t):
    """A PyTorch tensor on the memory of a tensor of libtensor, or on a copy of that of a device; valid as long as the
    latter."""
    sizes, strides, dtype = t.sizes, t.strides, TORCH[t.dtype]
    if 0 in sizes:
        return torch.empty(0, dtype=dtype).as_strided(sizes, strides, 0)
    if not t.lib.is_host:
        return torch.frombuffer(bytearray(t.span()), dtype=dtype).as_strided(sizes, strides, 0)
    extent = 1 + sum((n - 1) * s for n, s in zip(sizes, strides))
    buf = (ctypes.c_char * (extent * dtype.itemsize)).from_address(t.data)
    return torch.frombuffer(buf, dtype=dtype, count=extent).as_strided(sizes, strides, 0)


def same_strides(a, b):
    return not a.numel() or all(n < 2 or x == y
                                for n, x, y in zip(a.shape, a.stride(), b.stride()))


def same_bits(a, b):
    n = a.numel()
    if not n:
        return True
    a, b = (x.contiguous().as_strided([n], [1]).view(torch.uint8) for x in (a, b))
    return torch.equal(a, b)


class Verdict:
    """bits: identical; tol: within tolerance; layout: PyTorch's strides."""

    def __init__(self):
        self.bits, self.layout, self.message = True, True, None


def compare(ours, ref, tolerance, shape_only=False, view=False, verdict=None):
    """Compare a result of libtensor (Tensor, number or None) with PyTorch's."""
    v = verdict or Verdict()
    if ref is None or (isinstance(ref, torch.Tensor) and not isinstance(ours, boxed.Tensor)):
        if ref is None and ours is None:
            return v
        if ref is not None and ours is not None and ref.dim() == 0 and ref.item() == ours:
            return v
        v.message = f'expected {"a tensor" if ref is not None else "nothing"}, got {ours}'
        return v
    if not isinstance(ref, torch.Tensor):
        got = ours
        if isinstance(ours, boxed.Tensor) and ours.numel == 1:
            got = look(ours).item()
        if not (got == ref or got != got and ref != ref):
            v.message = f'expected {ref}, got {got}'
        return v
    if ours.dtype != OURS.get(ref.dtype):
        v.message = f'dtype: expected {OURS.get(ref.dtype)}, got {ours.dtype}'
        return v
    if ours.sizes != list(ref.shape):
        v.message = f'shape: expected {list(ref.shape)}, got {ours.sizes}'
        return v
    if ours.device != (ours.lib.device.type, ours.lib.device.index):
        v.message = f'device: expected {ours.lib.device.type}, got {ours.device[0]}'
        return v
    got = look(ours)
    ref = ref.resolve_conj().resolve_neg()
    if not same_strides(ref, got):
        v.layout = False
        if view:
            v.message = f'strides: expected {list(ref.stride())}, got {list(got.stride())}'
            return v
    if view and ref.numel() and ours.offset != ref.storage_offset():
        v.message = f'offset: expected {ref.storage_offset()}, got {ours.offset}'
        return v
    if shape_only or same_bits(got, ref):
        return v
    v.bits = False
    rtol, atol = default_tolerances(ref.dtype)
    if tolerance and ref.dtype in (tolerance[2], torch.empty(0, dtype=tolerance[2]).abs().dtype):
        rtol, atol = max(rtol, tolerance[0]), max(atol, tolerance[1])
    try:
        torch.testing.assert_close(got, ref, rtol=rtol, atol=atol, equal_nan=True,
                                   check_stride=False)
    except AssertionError as e:
        v.message = 'values: ' + ' '.join(str(e).split())[:300]
    except Exception as e:  # PyTorch cannot compare them
        v.message = f'comparison: {e}'
    return v
