# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Reads those messages of ONNX's protobuf files that the node tests need.

A message is read into {field number: [values]}: integers, four or eight bytes, or bytes.
"""
import struct

# ONNX's TensorProto.DataType -> dtype of libtensor; the others have no counterpart.
DTYPES = {1: 'f32', 2: 'u8', 3: 'i8', 5: 'i16', 6: 'i32', 7: 'i64', 9: 'bool', 10: 'f16',
          11: 'f64', 14: 'c64', 15: 'c128', 16: 'bf16'}


class Foreign(Exception):
    """A value that is not a tensor of libtensor."""


def varint(data, i):
    n = shift = 0
    while True:
        b = data[i]
        i += 1
        n |= (b & 127) << shift
        shift += 7
        if b < 128:
            return n, i


def signed(n):
    return n - (1 << 64) if n >> 63 else n


def message(data):
    out, i = {}, 0
    while i < len(data):
        tag, i = varint(data, i)
        wire = tag & 7
        if wire == 0:
            v, i = varint(data, i)
        elif wire == 2:
            n, i = varint(data, i)
            v, i = data[i:i + n], i + n
        else:
            n = 8 if wire == 1 else 4
            v, i = data[i:i + n], i + n
        out.setdefault(tag >> 3, []).append(v)
    return out


def text(m, field):
    return m.get(field, [b''])[0].decode()


def numbers(m, field, fmt=None):
    """A repeated number, packed or not: varints, or what the struct format says."""
    out = []
    for v in m.get(field, []):
        if isinstance(v, int):
            out.append(signed(v))
        elif fmt:
            out += struct.unpack(f'<{len(v) // struct.calcsize(fmt)}{fmt}', v)
        else:
            i = 0
            while i < len(v):
                n, i = varint(v, i)
                out.append(signed(n))
    return out


def tensor(data):
    """(dtype, sizes, bytes)"""
    m = message(data)
    dtype = DTYPES.get(m.get(2, [0])[0])
    if not dtype:
        raise Foreign(f'ONNX data type {m.get(2, [0])[0]}')
    sizes = numbers(m, 1)
    if 9 in m:
        return dtype, sizes, m[9][0]
    if dtype in ('f32', 'c64'):
        v = numbers(m, 4, 'f')
        return dtype, sizes, struct.pack(f'<{len(v)}f', *v)
    if dtype in ('f64', 'c128'):
        v = numbers(m, 10, 'd')
        return dtype, sizes, struct.pack(f'<{len(v)}d', *v)
    v = numbers(m, 7 if dtype == 'i64' else 5)
    fmt = dict(u8='B', i8='b', i16='h', i32='i', i64='q', bool='?', f16='H', bf16='H')[dtype]
    return dtype, sizes, struct.pack(f'<{len(v)}{fmt}', *v)


def attribute(data):
    m = message(data)
    kind = m.get(20, [0])[0]
    pick = {1: lambda: struct.unpack('<f', m[2][0])[0] if 2 in m else 0.0,
            2: lambda: signed(m[3][0]) if 3 in m else 0,
            3: lambda: text(m, 4), 4: lambda: tensor(m[5][0]),
            6: lambda: numbers(m, 7, 'f'), 7: lambda: numbers(m, 8),
            8: lambda: [s.decode() for s in m.get(9, [])]}.get(kind)
    if not pick:
        raise Foreign(f'ONNX attribute type {kind}')
    return text(m, 1), pick()


class Node:
    def __init__(self, data):
        m = message(data)
        self.inputs = [s.decode() for s in m.get(1, [])]
        self.outputs = [s.decode() for s in m.get(2, [])]
        self.op, self.domain = text(m, 4), text(m, 7)
        self.raw = m.get(5, [])

    def attributes(self):
        return dict(attribute(a) for a in self.raw)


class Model:
    def __init__(self, data):
        m = message(data)
        g = message(m[7][0])
        self.opset = max(signed(message(o).get(2, [0])[0]) for o in m[8])
        self.nodes = [Node(n) for n in g.get(1, [])]
        self.initializers = {text(message(t), 8): t for t in g.get(5, [])}
        self.inputs = [text(message(v), 1) for v in g.get(11, [])]
        self.outputs = [text(message(v), 1) for v in g.get(12, [])]
        for v in g.get(11, []) + g.get(12, []):
            if 1 not in message(message(v).get(2, [b''])[0]):
                raise Foreign('a sequence or an optional')
