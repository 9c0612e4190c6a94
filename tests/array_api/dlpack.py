# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""DLPack in Python: capsules around the structures of tensor/dlpack.h."""
import ctypes as C

from .core import Array, boxed, call, lib

api = C.pythonapi
DESTRUCTOR = C.CFUNCTYPE(None, C.c_void_p)
for name, res, args in [('PyCapsule_New', C.py_object, [C.c_void_p, C.c_char_p, DESTRUCTOR]),
                        ('PyCapsule_IsValid', C.c_int, [C.py_object, C.c_char_p]),
                        ('PyCapsule_GetPointer', C.c_void_p, [C.py_object, C.c_char_p]),
                        ('PyCapsule_SetName', C.c_int, [C.py_object, C.c_char_p])]:
    getattr(api, name).restype, getattr(api, name).argtypes = res, args
# The capsule is being freed: do not create a reference to it.
valid = C.PYFUNCTYPE(C.c_int, C.c_void_p, C.c_char_p)(('PyCapsule_IsValid', api))
pointer = C.PYFUNCTYPE(C.c_void_p, C.c_void_p, C.c_char_p)(('PyCapsule_GetPointer', api))
for name, res, args in [('tensor_to_dlpack', C.c_void_p, [C.c_void_p, C.c_uint]),
                        ('tensor_to_dlpack_unversioned', C.c_void_p, [C.c_void_p, C.c_uint]),
                        ('tensor_from_dlpack', C.c_void_p, [C.c_void_p]),
                        ('tensor_from_dlpack_unversioned', C.c_void_p, [C.c_void_p])]:
    getattr(lib.so, name).restype, getattr(lib.so, name).argtypes = res, args

NAMES = {True: b'dltensor_versioned', False: b'dltensor'}
USED = {True: b'used_dltensor_versioned', False: b'used_dltensor'}  # a capsule keeps the address
GIVE = {True: lib.so.tensor_to_dlpack, False: lib.so.tensor_to_dlpack_unversioned}
TAKE = {True: lib.so.tensor_from_dlpack, False: lib.so.tensor_from_dlpack_unversioned}
DELETER = {True: 16, False: 56}  # offset in the structure


@DESTRUCTOR
def never_taken(capsule):
    for versioned, name in NAMES.items():
        if valid(capsule, name):
            managed = pointer(capsule, name)
            C.CFUNCTYPE(None, C.c_void_p)(C.c_void_p.from_address(managed + DELETER[versioned]).value)(managed)


def export(x, versioned=True, copy=False):
    x = call('clone', x) if copy else x
    managed = GIVE[versioned](x._t.ptr, 1 if copy else 0)
    if not managed:
        raise BufferError(lib.failure().text)
    return api.PyCapsule_New(managed, NAMES[versioned], never_taken)


def capsule_of(x, copy):
    try:
        return x.__dlpack__(max_version=(1, 0), copy=copy)
    except TypeError:  # a producer before DLPack 1.0
        return x.__dlpack__()


def load(x, copy=None):
    if x.__dlpack_device__()[0] != 1:
        raise BufferError('from_dlpack: of the CPU only')
    capsule = capsule_of(x, copy)
    versioned = bool(api.PyCapsule_IsValid(capsule, NAMES[True]))
    t = TAKE[versioned](api.PyCapsule_GetPointer(capsule, NAMES[versioned]))
    if not t:
        raise BufferError(lib.failure().text)
    api.PyCapsule_SetName(capsule, USED[versioned])
    return Array(boxed.Tensor(lib, t))
