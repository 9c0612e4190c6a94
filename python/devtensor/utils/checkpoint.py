# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Files with the state of a training: nested dicts and lists of tensors, numbers and strings, without pickle.

The file is safetensors. Tensors have their path as name, joined by '.': a state_dict alone is a file with the names of the state
dict, which C programs load with tensor_module_load(), as load() reads a file of tensor_module_save(). The rest of the structure
is JSON in the metadata.
"""
import json

from devtensor import _C
from devtensor._C import Tensor

__all__ = ['save', 'load']

_KEY = 'devtensor.structure'


def _describe(value, path, tensors):
    """The structure of a value as JSON has it; its tensors are added to the dict."""
    if isinstance(value, Tensor):
        name = path or 'tensor'
        while name in tensors:
            name += '_'
        tensors[name] = value.detach()
        return {'tensor': name}
    if value is None or isinstance(value, (bool, int, str)):
        return {'value': value}
    if isinstance(value, float):
        return {'float': value.hex()}
    inner = path + '.' if path else ''
    if isinstance(value, dict):
        return {'dict': [[_key(k), _describe(v, f'{inner}{k}', tensors)] for k, v in value.items()]}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__ if type(value) in (list, tuple) else 'tuple':
                [_describe(v, f'{inner}{i}', tensors) for i, v in enumerate(value)]}
    raise TypeError(f'save: {path or "the object"} is {type(value).__name__}; tensors, numbers, strings, dicts and lists are saved')


def _key(key):
    if not isinstance(key, (str, int)) or isinstance(key, bool):
        raise TypeError(f'save: a key is {key!r}; keys are strings and ints')
    return key


def _build(structure, tensors):
    try:
        (kind, value), = structure.items()
        if kind == 'tensor':
            return tensors[value]
        if kind == 'value' and (value is None or isinstance(value, (bool, int, str))):
            return value
        if kind == 'float':
            return float.fromhex(value)
        if kind == 'dict':
            return {_key(k): _build(v, tensors) for k, v in value}
        if kind in ('list', 'tuple'):
            return (list if kind == 'list' else tuple)(_build(v, tensors) for v in value)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RuntimeError(f'load: the structure in the file is damaged: {error}') from None
    raise RuntimeError(f'load: the structure in the file is damaged: {kind!r}')


def _is_flat(obj):
    return isinstance(obj, dict) and obj and all(isinstance(k, str) and isinstance(v, Tensor) for k, v in obj.items())


def save(obj, path):
    """Write tensors, numbers and strings in dicts and lists to a file, which is replaced atomically. TypeError for others."""
    if _is_flat(obj):
        _C._save_named(path, {name: t.detach() for name, t in obj.items()}, {})
        return
    tensors = {}
    structure = _describe(obj, '', tensors)
    _C._save_named(path, tensors, {_KEY: json.dumps(structure)})


def load(path):
    """What save() wrote; the tensors of any other safetensors file in a dict. RuntimeError for a damaged file."""
    tensors, metadata = _C._load_named(path)
    if _KEY not in metadata:
        return tensors
    try:
        structure = json.loads(metadata[_KEY])
    except ValueError as error:
        raise RuntimeError(f'load: the structure in the file is damaged: {error}') from None
    except RecursionError:
        raise RuntimeError('load: the structure in the file is too deep') from None
    return _build(structure, tensors)
