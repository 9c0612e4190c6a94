# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Modules and parameters in lists and dicts."""
from devtensor._C import Tensor
from devtensor.nn._fusion import activation_name, is_plain_linear, linear_then
from devtensor.nn.module import Module
from devtensor.nn.parameter import Parameter

__all__ = ['Sequential', 'ModuleList', 'ModuleDict', 'ParameterList', 'ParameterDict']


class _List(Module):
    """Children with the names '0', '1', ..."""

    def _children(self):
        return list(self._modules.values())

    def _set(self, modules):
        for name in list(self._modules):
            self._forget(name)
        for i, module in enumerate(modules):
            self.add_module(str(i), module)

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._children())

    def _name(self, index):
        names = list(self._modules)
        try:
            return names[index]
        except IndexError:
            raise IndexError(f'index {index} of {len(names)} modules') from None

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)._of(dict(list(self._modules.items())[index]))
        return self._modules[self._name(index)]

    def __setitem__(self, index, module):
        setattr(self, self._name(index), module)

    def __delitem__(self, index):
        children = self._children()
        del children[index]
        self._set(children)

    def append(self, module):
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules):
        for module in modules:
            self.append(module)
        return self

    def insert(self, index, module):
        children = self._children()
        children.insert(index, module)
        self._set(children)
        return self

    def pop(self, index=-1):
        module = self[index]
        del self[index]
        return module

    def __iadd__(self, modules):
        return self.extend(modules)


class Sequential(_List):
    """Modules that are called one after the other: Sequential(a, b), or Sequential(dict) with names."""

    def __init__(self, *args):
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(
            args[0], dict) else ((str(i), m) for i, m in enumerate(args))
        for name, module in named:
            self.add_module(name, module)

    @classmethod
    def _of(cls, named):
        return cls(named)

    def forward(self, input):
        linear = None  # a Linear that is called with the activation after it
        for module in self._modules.values():
            if linear is not None:
                name = activation_name(module)
                input = linear(input) if name is None else linear_then(linear, input, name)
                linear = None
                if name is not None:
                    continue
            if is_plain_linear(module):
                linear = module
            else:
                input = module(input)
        return input if linear is None else linear(input)


class ModuleList(_List):
    """A list of modules; it cannot be called."""

    def __init__(self, modules=()):
        super().__init__()
        self.extend(modules or ())

    @classmethod
    def _of(cls, named):
        return cls(named.values())

    def __add__(self, other):
        return ModuleList([*self, *other])


class ModuleDict(Module):
    """Modules by name; it cannot be called."""

    def __init__(self, modules=None):
        super().__init__()
        self.update(modules or {})

    def update(self, modules):
        for name, module in modules.items() if hasattr(modules, 'items') else modules:
            self[name] = module

    def __getitem__(self, name):
        return self._modules[name]

    def __setitem__(self, name, module):
        if name in self._modules:
            setattr(self, name, module)
        else:
            self.add_module(name, module)

    def __delitem__(self, name):
        if name not in self._modules:
            raise KeyError(name)
        self._forget(name)

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, name):
        return name in self._modules

    def keys(self):
        return self._modules.keys()

    def values(self):
        return self._modules.values()

    def items(self):
        return self._modules.items()

    def pop(self, name):
        module = self[name]
        del self[name]
        return module

    def clear(self):
        for name in list(self._modules):
            del self[name]


def _parameter(value):
    return value if isinstance(value, Parameter) or not isinstance(value, Tensor) else Parameter(value)


class ParameterList(Module):
    """A list of parameters with the names '0', '1', ...; tensors become parameters."""

    def __init__(self, values=()):
        super().__init__()
        self.extend(values or ())

    def append(self, value):
        self.register_parameter(str(len(self)), _parameter(value))
        return self

    def extend(self, values):
        for value in values:
            self.append(value)
        return self

    def __len__(self):
        return len(self._parameters)

    def __iter__(self):
        return iter(list(self._parameters.values()))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return ParameterList(list(self)[index])
        return list(self)[index]

    def __setitem__(self, index, value):
        setattr(self, list(self._parameters)[index], _parameter(value))

    def extra_repr(self):
        return '\n'.join(f'({name}): Parameter of shape {tuple(p.shape)}, {p.dtype}' for name,
                         p in self._parameters.items())


class ParameterDict(Module):
    """Parameters by name; tensors become parameters."""

    def __init__(self, parameters=None):
        super().__init__()
        self.update(parameters or {})

    def update(self, parameters):
        for name, value in parameters.items() if hasattr(parameters, 'items') else parameters:
            self[name] = value

    def __getitem__(self, name):
        return self._parameters[name]

    def __setitem__(self, name, value):
        if name in self._parameters:
            setattr(self, name, _parameter(value))
        else:
            self.register_parameter(name, _parameter(value))

    def __delitem__(self, name):
        if name not in self._parameters:
            raise KeyError(name)
        self._forget(name)

    def __len__(self):
        return len(self._parameters)

    def __iter__(self):
        return iter(self._parameters)

    def __contains__(self, name):
        return name in self._parameters

    def keys(self):
        return self._parameters.keys()

    def values(self):
        return self._parameters.values()

    def items(self):
        return self._parameters.items()

    extra_repr = ParameterList.extra_repr
