# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""A Linear and the activation after it as one operator, which computes both in one pass over the result."""
from devtensor import _C
from devtensor.nn import functional as F
from devtensor.nn.activation import GELU, ReLU, SiLU
from devtensor.nn.linear import Linear
from devtensor.nn.module import Module

_FUNCTIONS = {F.relu: 'relu', F.gelu: 'gelu', F.silu: 'silu'}
_GELU = {'none': 'gelu', 'tanh': 'gelu_tanh'}
# A program may replace them, to see each call.
_CALL = Module.__call__
_FORWARD = {kind: kind.forward for kind in (Linear, GELU, ReLU, SiLU)}


def _is_plain(module):
    """Whether a call of the module is the forward() that its class has here and nothing else."""
    kind = type(module)
    if kind.forward is not _FORWARD[kind] or kind.__call__ is not _CALL:
        return False
    return not (module._hooks or module._pre_hooks or module._backward_hooks or module._backward_pre_hooks
                or 'forward' in module.__dict__)


def is_plain_linear(module):
    return type(module) is Linear and _is_plain(module)


def activation_name(activation):
    """linear_activation's name of a module or function; None if it has none."""
    kind = type(activation)
    if kind is ReLU or kind is SiLU:
        name = 'relu' if kind is ReLU else 'silu'
    elif kind is GELU:
        name = _GELU.get(activation.approximate)
    else:
        return _FUNCTIONS.get(activation) if callable(activation) and kind.__hash__ else None
    return name if _is_plain(activation) else None


def linear_then(linear, input, name):
    """activation(linear(input)) for a Linear that is_plain_linear() and the activation's name."""
    return _C.linear_activation(input, linear.weight, linear.bias, activation=name)
