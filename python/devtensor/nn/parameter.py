# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Tensors that a module registers when they are assigned to an attribute."""
from devtensor._C import Tensor, _set_plain_results, empty
from devtensor.multiprocessing import register

__all__ = ['Parameter', 'Buffer']


class Parameter(Tensor):
    """Parameter(data, requires_grad=True): a leaf on the memory of data, which Module.parameters() returns."""

    def __new__(cls, data=None, requires_grad=True):
        data = empty([0]) if data is None else data
        self = super().__new__(cls, data.detach() if isinstance(data, Tensor) else data)
        return self.requires_grad_() if requires_grad else self

    def __init__(self, data=None, requires_grad=True):
        pass

    def __deepcopy__(self, memo):
        found = memo.get(id(self))
        if found is None:
            found = memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return found

    def __repr__(self):
        return 'Parameter containing:\n' + repr(self.detach())


class Buffer(Tensor):
    """Buffer(data, persistent=True): becomes a buffer of the module that it is assigned to."""

    def __new__(cls, data=None, *, persistent=True):
        data = empty([0]) if data is None else data
        self = super().__new__(cls, data.detach() if isinstance(data, Tensor) else data)
        self.persistent = persistent
        return self

    def __init__(self, data=None, *, persistent=True):
        pass


for _cls in Parameter, Buffer:
    _set_plain_results(_cls)
    register(_cls)
