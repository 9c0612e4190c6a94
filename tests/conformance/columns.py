# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Tests the Arrow C data interface between libtensor and pyarrow, and nanoarrow where it is installed.

    columns.py --lib LIBRARY

Both sides share memory, checked by address, which either side keeps alive and releases once. Without pyarrow the test
is skipped.
"""
import argparse
import ctypes as C
import gc
import struct
import sys

import boxed

try:
    import pyarrow as pa
except ImportError:
    pa = None

TYPES = {'i8': 'int8', 'u8': 'uint8', 'i16': 'int16', 'u16': 'uint16', 'i32': 'int32', 'u32': 'uint32', 'i64': 'int64',
         'u64': 'uint64', 'f16': 'float16', 'f32': 'float32', 'f64': 'float64'}
CODES = {'i8': 'b', 'u8': 'B', 'i16': 'h', 'u16': 'H', 'i32': 'i', 'u32': 'I', 'i64': 'q', 'u64': 'Q', 'f16': 'e',
         'f32': 'f', 'f64': 'd', 'bool': '?'}
RELEASE = {'schema': 56, 'array': 64}  # offset of the member in the structure


class Columns:
    """The two functions of the library, and tensors with values."""

    def __init__(self, lib):
        self.lib = lib
        for name in ('tensor_to_arrow', 'tensor_from_arrow'):
            getattr(lib.so, name).restype = C.c_void_p if name == 'tensor_from_arrow' else C.c_int
            getattr(lib.so, name).argtypes = [C.c_void_p] * (2 if name == 'tensor_from_arrow' else 3)

    def tensor(self, dtype, values):
        data = struct.pack(f'<{len(values)}{CODES[dtype]}', *values)
        return self.lib.tensor(dtype, [len(values)], [1], 0, data)

    def values(self, t):
        n, code = t.sizes[0], CODES[t.dtype]
        return list(struct.unpack(f'<{n}{code}',
                                  C.string_at(self.lib.so.tensor_data(t.ptr), n * struct.calcsize(code))))

    def export(self, t):
        schema, array = C.create_string_buffer(128), C.create_string_buffer(128)
        self.lib.check(self.lib.so.tensor_to_arrow(t.ptr, schema, array))
        return schema, array

    def to_pyarrow(self, t):
        schema, array = self.export(t)
        return pa.Array._import_from_c(C.addressof(array), C.addressof(schema))

    def from_pyarrow(self, column):
        schema, array = C.create_string_buffer(128), C.create_string_buffer(128)
        column._export_to_c(C.addressof(array), C.addressof(schema))
        try:
            t = self.lib.own(self.lib.so.tensor_from_arrow(schema, array))
        except boxed.Failed:
            for name, s in (('schema', schema), ('array', array)):  # they still belong to this program
                release = C.c_void_p.from_buffer(s, RELEASE[name])
                assert release.value, 'released on failure'
                C.CFUNCTYPE(None, C.c_void_p)(release.value)(C.addressof(s))
            raise
        assert not C.c_void_p.from_buffer(schema, RELEASE['schema']).value
        assert not C.c_void_p.from_buffer(array, RELEASE['array']).value
        return t


def ours_in_pyarrow(c):
    for dtype, name in TYPES.items():
        t = c.tensor(dtype, [1, 0, 3])
        column = c.to_pyarrow(t)
        assert column.type == getattr(pa, name)(), dtype
        assert column.null_count == 0 and column.to_pylist() == [1, 0, 3], dtype
        assert column.buffers()[1].address == c.lib.so.tensor_data(t.ptr), dtype
        column.validate(full=True)


def theirs_here(c):
    for dtype, name in TYPES.items():
        column = pa.array([1, 0, 3, 4, 5], getattr(pa, name)())
        for part in (column, column[2:], column[1:4], column[:0], pa.array([], column.type)):
            t = c.from_pyarrow(part)
            assert t.dtype == dtype and c.values(t) == part.to_pylist(), dtype
            if len(part):
                address = part.buffers()[1].address + part.offset * boxed.ITEMSIZE[dtype]
                assert c.lib.so.tensor_data(t.ptr) == address, dtype


def bools_are_copied(c):
    values = [i % 3 == 1 for i in range(21)]
    assert c.to_pyarrow(c.tensor('bool', values)).to_pylist() == values
    column = pa.array(values)
    for part in (column, column[3:], column[9:17], column[:0]):
        assert c.values(c.from_pyarrow(part)) == part.to_pylist()


def memory_lives_as_long_as_either_side(c):
    before, used = pa.total_allocated_bytes(), c.lib.used()
    t = c.from_pyarrow(pa.array(range(100000), pa.int64()))
    part = c.lib.view(t, [3], [1], 99997)
    del t
    gc.collect()
    assert pa.total_allocated_bytes() > before
    assert c.values(part) == [99997, 99998, 99999]
    del part
    gc.collect()
    assert pa.total_allocated_bytes() == before
    column = c.to_pyarrow(c.tensor('i64', range(1 << 18)))[5:]
    gc.collect()
    assert column[0].as_py() == 5 and c.lib.used() > used
    del column
    gc.collect()
    assert c.lib.used() == used


def other_columns_are_refused(c):
    for column, words in ((pa.array([1, None]), '1 of 2 elements are null'), (pa.array(['a']), "format 'u'"),
                          (pa.array([[1]]), "format '+l'"), (pa.array([1, 2], pa.timestamp('s')), "format 'tss:'"),
                          (pa.array(['a', 'a']).dictionary_encode(), 'dictionary'), (pa.nulls(2), "format 'n'"),
                          (pa.array([{'a': 1}]), "format '+s'")):
        try:
            c.from_pyarrow(column)
        except boxed.Failed as e:
            assert words in e.text, e.text
        else:
            raise AssertionError(f'{column.type} is not refused')
    c.from_pyarrow(pa.array([1, None, 3])[2:])  # no null in this part


def nanoarrow_reads_ours(c):
    try:
        import nanoarrow
    except ImportError:
        return 'nanoarrow is not installed'
    new = C.pythonapi.PyCapsule_New
    new.restype, new.argtypes = C.py_object, [C.c_void_p, C.c_char_p, C.c_void_p]

    class Producer:
        def __arrow_c_array__(self, requested_schema=None):
            return (new(C.addressof(self.schema), b'arrow_schema', None),
                    new(C.addressof(self.array), b'arrow_array', None))

    for dtype in [*TYPES, 'bool']:
        p = Producer()
        p.schema, p.array = c.export(c.tensor(dtype, [1, 0, 1]))
        assert nanoarrow.Array(p).to_pylist() == [1, 0, 1], dtype
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--lib', required=True)
    args = parser.parse_args()
    if pa is None:
        print('1..0 # SKIP pyarrow is not installed')
        return
    tests = (ours_in_pyarrow, theirs_here, bools_are_copied, memory_lives_as_long_as_either_side,
             other_columns_are_refused, nanoarrow_reads_ours)
    columns = Columns(boxed.Library(args.lib))
    print(f'1..{len(tests)}')
    for n, test in enumerate(tests, 1):
        skipped = test(columns)
        print(f'ok {n} - {test.__name__}' + (f' # SKIP {skipped}' if skipped else ''))


if __name__ == '__main__':
    sys.exit(main())
