# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Loading of state dicts."""
from collections.abc import Mapping

from devtensor import interchange
from devtensor._C import Tensor


def as_tensor(value):
    """A tensor of this library on the memory of one of another library; numbers are copied."""
    if isinstance(value, Tensor):
        return value
    return interchange.as_tensor(value.detach() if hasattr(value, 'detach') else value)


def entries(state, names, what):
    """The entries of a state with these names. TypeError for a state that is no dict, ValueError for one without
    them."""
    if not isinstance(state, Mapping):
        raise TypeError(f'{what}: a state is a dict, got {type(state).__name__}')
    missing = [name for name in names if name not in state]
    if missing:
        raise ValueError(f'{what}: the state has no {", ".join(map(repr, missing))}')
    return [state[name] for name in names]


def _kind(tensor):
    return 'quantized' if tensor.is_quantized else str(tensor.layout).rsplit('.', 1)[-1]


def _misfit(old, value, assign):
    """Why value cannot take the place of old, or None."""
    if value.shape != old.shape:
        return f'has the shape {tuple(value.shape)}, not {tuple(old.shape)}'
    if assign and old.requires_grad and not (value.dtype.is_floating_point or value.dtype.is_complex):
        return f'has the dtype {value.dtype}, and requires a gradient'
    if not assign and _kind(value) != _kind(old):
        return f'is {_kind(value)}, not {_kind(old)}'
    return None


def check_fits(what, old, value):
    """ValueError for a value that cannot be copied to old."""
    misfit = _misfit(old, value, False)
    if misfit:
        raise ValueError(f'{what} {misfit}')


def _modules_with_names(module):
    return module.named_modules(remove_duplicate=False)


def _targets(module):
    """Name -> (module, name in it, tensor) of all that a state_dict has."""
    found = {}
    for path, part in _modules_with_names(module):
        prefix = f'{path}.' if path else ''
        for names in (part._parameters, part._buffers):
            for name, value in names.items():
                if value is not None and name not in part._not_persistent:
                    found[prefix + name] = (part, name, value)
    return found


def _extra(module):
    """Name -> module of those with a state of their own."""
    from devtensor.nn.module import Module
    return {f'{path}._extra_state' if path else '_extra_state': part for path, part in _modules_with_names(module)
            if type(part).set_extra_state is not Module.set_extra_state}


def load_into(module, state, strict, assign):
    """Returns missing names, unexpected names and errors. Nothing is changed if the caller will raise an exception."""
    if not hasattr(state, 'items'):
        raise TypeError(f'load_state_dict: expected a dict, got {type(state).__name__}')
    targets, extra = _targets(module), _extra(module)
    missing = [name for name in [*targets, *extra] if name not in state]
    unexpected = [name for name in state if name not in targets and name not in extra]
    values, errors = {}, []
    for name, (_, _, old) in targets.items():
        if name not in state:
            continue
        value = as_tensor(state[name])
        misfit = _misfit(old, value, assign)
        if misfit:
            errors.append(f'{name!r} {misfit}')
        values[name] = value
    if errors or (strict and (missing or unexpected)):
        return missing, unexpected, errors
    for name, value in values.items():
        part, own, old = targets[name]
        if assign:
            _assign(part, own, old, value)
        else:
            old.detach().copy_(value.detach())
    for name, part in extra.items():
        if name in state:
            part.set_extra_state(state[name])
    return missing, unexpected, errors


def _assign(part, name, old, value):
    from devtensor.nn.parameter import Parameter
    if isinstance(old, Parameter) and not isinstance(value, Parameter):
        value = Parameter(value, old.requires_grad)
    setattr(part, name, value)
