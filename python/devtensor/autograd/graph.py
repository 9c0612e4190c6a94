# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Nodes of the graph, and other forms of the tensors that they save."""
from devtensor import _C

Node = _C._Node
RemovableHandle = _C._RemovableHandle


class saved_tensors_hooks:
    """Tensors that operators inside save are replaced by pack(tensor), and unpack(value), called when backward needs
    the tensor, returns one of the same shape, dtype and device. Operators in both are not recorded. The innermost
    counts. unpack may run on another thread."""

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook
        self._scopes = []

    def __enter__(self):
        self._scopes.append(_C._saved_hooks_enter(self.pack_hook, self.unpack_hook))
        return self

    def __exit__(self, *exception):
        _C._saved_hooks_leave(self._scopes.pop())


class save_on_cpu(saved_tensors_hooks):
    """Tensors that operators inside save are copied to host memory, and back to their device in backward."""

    def __init__(self, pin_memory=False):
        if pin_memory:
            raise NotImplementedError('save_on_cpu: pinned memory is not supported')
        super().__init__(lambda t: (t.device, t.cpu()), lambda packed: packed[1].to(packed[0]))


def get_gradient_node(tensor):
    """The node that the gradient of the tensor goes to: grad_fn, or the AccumulateGrad node of a leaf."""
    node = _C._gradient_node(tensor)
    if node is None:
        raise RuntimeError('get_gradient_node: the tensor does not require a gradient')
    return node
