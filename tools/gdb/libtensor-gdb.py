# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Pretty printers of gdb for struct tensor, struct tensor_storage and struct tensor_node.

`make install` puts this file where gdb loads it by itself (docs/reference/debugging.md); otherwise

    (gdb) source tools/gdb/libtensor-gdb.py

They read memory alone and call nothing in the program, so that they work with core dumps. They need the debug
information of the library for these structs. Of a pointer to something else they say that it is none.
"""
import struct

import gdb
import gdb.printing

# By enum tensor_dtype: name, bytes, format of module struct.
DTYPES = [None, ('bool', 1, '?'), ('u8', 1, 'B'), ('i8', 1, 'b'), ('i16', 2, 'h'), ('i32', 4, 'i'), ('i64', 8, 'q'),
          ('f16', 2, 'e'), ('bf16', 2, 'bf16'), ('f32', 4, 'f'), ('f64', 8, 'd'), ('c64', 8, 'ff'), ('c128', 16, 'dd'),
          ('u16', 2, 'H'), ('u32', 4, 'I'), ('u64', 8, 'Q'), ('f8_e4m3fn', 1, 'e4m3fn'), ('f8_e5m2', 1, 'e5m2')]
LAYOUTS = [None, 'strided', 'sparse_coo', 'sparse_csr', 'blocked']
DEVICES = [None, 'cpu', 'cuda', 'private']
MAX_DIMS = 16
NUMBERS = 8  # of a tensor that are shown
EDGES = 8    # of a node


def key_none():
    """The key of tensor_none and of released tensors: the one behind the last."""
    return {f.name: f.enumval for f in gdb.lookup_type('enum tensor_key').fields()}['TENSOR_KEY_COUNT']


class Unreadable(Exception):
    """Why something cannot be shown."""


def integer(value):
    return int(value)


def e4m3fn(byte):
    sign, exponent, fraction = -1 if byte >> 7 else 1, byte >> 3 & 15, byte & 7
    if exponent == 15 and fraction == 7:
        return float('nan')
    return sign * (fraction / 8 * 2 ** -6 if not exponent else (1 + fraction / 8) * 2 ** (exponent - 7))


def decoded(data, code):
    """One element as text."""
    if code == 'bf16':
        return '%.6g' % struct.unpack('<f', b'\0\0' + data)[0]
    if code == 'e5m2':
        return '%.6g' % struct.unpack('<e', b'\0' + data)[0]
    if code == 'e4m3fn':
        return '%.6g' % e4m3fn(data[0])
    parts = struct.unpack('<' + code, data)
    if len(parts) == 2:
        return '%.6g%+.6gj' % parts
    if isinstance(parts[0], bool):
        return 'true' if parts[0] else 'false'
    return ('%.6g' if isinstance(parts[0], float) else '%d') % parts[0]


def dims(values):
    return '[' + ', '.join(str(v) for v in values) + ']'


def device_text(device):
    kind, index = integer(device['type']), integer(device['index'])
    if not 0 < kind < len(DEVICES):
        return f'device {kind}:{index}'
    return 'cpu' if kind == 1 else f'{DEVICES[kind]}:{index}'


def function_name(pointer):
    """Name of the object or function behind a pointer, or its address."""
    text = str(pointer)
    return text[text.index('<') + 1:text.rindex('>')] if '<' in text else text


def c_string(pointer):
    return pointer.string(length=-1) if integer(pointer) else '?'


def element_offsets(sizes, strides, count):
    """Offsets, in elements, of the first ones in row-major order."""
    index = [0] * len(sizes)
    for _ in range(count):
        yield sum(i * s for i, s in zip(index, strides))
        for d in reversed(range(len(sizes))):
            index[d] += 1
            if index[d] < sizes[d]:
                break
            index[d] = 0


def numbers(t, name, size, code, sizes, strides):
    data, count = integer(t['data']), integer(t['numel'])
    if integer(t['device']['type']) != 1:
        return 'numbers on the device'
    if not data:
        return 'no address'
    shown = []
    try:
        for offset in element_offsets(sizes, strides, min(count, NUMBERS)):
            memory = gdb.selected_inferior().read_memory(data + offset * size, size)
            shown.append(decoded(bytes(memory), code))
    except (gdb.error, OverflowError):
        return f'numbers at {data:#x} cannot be read'
    return '{' + ', '.join(shown) + (', ...' if count > NUMBERS else '') + '}'


def history(t):
    meta = t['autograd_meta']
    if not integer(meta) or not integer(meta['tracked']):
        return []
    if not integer(meta['fn']):
        return ['requires_grad']
    return ['requires_grad, grad_fn ' + c_string(meta['fn']['type']['name'])]


def tensor_text(t):
    if integer(t['keys']) == 1 << key_none():
        return 'released tensor' if integer(t['refs']) <= 0 else 'tensor_none'
    dtype, ndim, layout = integer(t['dtype']), integer(t['ndim']), integer(t['layout'])
    if not 0 < dtype < len(DTYPES) or ndim > MAX_DIMS or not 0 < layout < len(LAYOUTS) or integer(t['refs']) <= 0:
        raise Unreadable('no tensor is here')
    name, size, code = DTYPES[dtype]
    sizes = [integer(t['sizes'][i]) for i in range(ndim)]
    strides = [integer(t['strides'][i]) for i in range(ndim)]
    parts = [f'{name} {dims(sizes)}', device_text(t['device'])]
    if layout == 1 and not integer(t['ext']):
        parts.append(f'strides {dims(strides)}')
    else:
        parts.append(LAYOUTS[layout] if layout > 1 else 'with an extension')
    if integer(t['base']):
        parts.append('view of ' + hex(integer(t['base'])))
    parts += history(t)
    return 'tensor ' + ', '.join(parts) + ' ' + numbers(t, name, size, code, sizes, strides)


def storage_text(s):
    refs, device = integer(s['refs']), device_text(s['device'])
    if not 0 < integer(s['device']['type']) < len(DEVICES) or integer(s['device']['index']) < 0:
        raise Unreadable('no storage is here')
    if refs <= 0:
        return 'released storage'
    parts = [f'{integer(s["nbytes"])} bytes at {integer(s["data"]):#x}', device, f'{refs} references',
             f'version {integer(s["version"])}', function_name(s['ops'])]
    if integer(s['readonly']):
        parts.append('read-only')
    return 'storage ' + ', '.join(parts)


def node_text(n):
    nedges, noutputs = integer(n['nedges']), integer(n['noutputs'])
    parts = [c_string(n['type']['name']), f'number {integer(n["seq"])}']
    outputs = []
    for i in range(min(noutputs, EDGES)):
        o = n['outputs'][i]
        dtype, ndim = integer(o['dtype']), integer(o['ndim'])
        if 0 < dtype < len(DTYPES) and ndim <= MAX_DIMS:
            outputs.append(DTYPES[dtype][0] + ' ' + dims([integer(o['sizes'][k]) for k in range(ndim)]))
    edges = []
    for i in range(min(nedges, EDGES)):
        to = n['edges'][i]['fn']
        edges.append(c_string(to['type']['name']) if integer(to) else 'none')
    parts.append('of ' + '; '.join(outputs or ['?']))
    parts.append('to [' + ', '.join(edges) + (', ...' if nedges > EDGES else '') + ']')
    if integer(n['released']):
        parts.append('saved tensors released')
    return 'node ' + ', '.join(parts)


class Printer:
    def __init__(self, value, text):
        self.value, self.text = value, text

    def to_string(self):
        value, at = self.value, None
        try:
            if value.type.strip_typedefs().code == gdb.TYPE_CODE_PTR:
                at = integer(value)
                if not at:
                    return 'NULL'
                value = value.dereference()
            elif value.address is not None:
                at = integer(value.address)
            shown = self.text(value)
        except gdb.MemoryError as e:
            shown = f'<{e}>'
        except (gdb.error, Unreadable, UnicodeDecodeError, ValueError, OverflowError) as e:
            shown = f'<{e}>'
            if 'no member named' in str(e) or 'incomplete type' in str(e):
                shown = '<no debug information for libtensor>'
        return shown if at is None else f'{at:#x} {shown}'


class Lookup(gdb.printing.PrettyPrinter):
    TEXTS = {'tensor': tensor_text, 'tensor_storage': storage_text, 'tensor_node': node_text}

    def __init__(self):
        super().__init__('libtensor')

    def __call__(self, value):
        try:
            kind = value.type.strip_typedefs()
            if kind.code == gdb.TYPE_CODE_PTR:
                kind = kind.target().strip_typedefs()
            if kind.code == gdb.TYPE_CODE_STRUCT and kind.unqualified().tag in self.TEXTS:
                return Printer(value, self.TEXTS[kind.unqualified().tag])
        except gdb.error:
            pass
        return None


gdb.printing.register_pretty_printer(gdb.current_objfile(), Lookup(), replace=True)
