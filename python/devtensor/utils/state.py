# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Files with the state of a training: nested dicts and lists of tensors, numbers and strings, without pickle.

The file is safetensors. Tensors have their path as name, joined by '.': a state_dict alone is a file with the names of
the state dict, which C programs load with tensor_module_load(), as load_state() reads a file of tensor_module_save().
The rest of the structure is JSON in the metadata.
"""
import json

from devtensor import serialization
from devtensor._C import Tensor

__all__ = ['save_state', 'load_state']

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
    raise TypeError(
        f'save_state: {path or "the object"} is {type(value).__name__}; tensors, numbers, strings, '
        'dicts and lists are saved')


def _key(key):
    if not isinstance(key, (str, int)) or isinstance(key, bool):
        raise TypeError(f'save_state: a key is {key!r}; keys are strings and ints')
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
        raise ValueError(f'load_state: the structure in the file is damaged: {error}') from None
    raise ValueError(f'load_state: the structure in the file is damaged: {kind!r}')


def save_state(obj, path):
    """Write tensors, numbers and strings in dicts and lists to a file, which is replaced atomically. TypeError for
    others."""
    tensors = {}
    structure = _describe(obj, '', tensors)
    serialization.save_safetensors(path, tensors, metadata={_KEY: json.dumps(structure)})


def load_state(path):
    """Read a state that save_state() wrote; the tensors of any other safetensors file in a dict. ValueError for
    a damaged file."""
    with serialization.open_safetensors(path) as archive:
        if _KEY not in archive.metadata:
            return dict(archive)
        try:
            return _build(json.loads(archive.metadata[_KEY]), dict(archive))
        except RecursionError:
            raise ValueError('load_state: the structure in the file is too deep') from None
