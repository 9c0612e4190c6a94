from devtensor import _C


def asarray(obj, *, dtype=None, device=None, copy=None):
    if copy is False:
        raise ValueError('copy')
    return _C.tensor(obj, dtype=dtype)
