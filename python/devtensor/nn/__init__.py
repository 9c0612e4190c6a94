# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Modules, layers and losses with PyTorch's names, arguments, initial distributions and state names."""
from devtensor.nn import functional, init, utils  # noqa: F401
from devtensor.nn.activation import *  # noqa: F401,F403
from devtensor.nn.containers import *  # noqa: F401,F403
from devtensor.nn.conv import *  # noqa: F401,F403
from devtensor.nn.embedding import *  # noqa: F401,F403
from devtensor.nn.linear import *  # noqa: F401,F403
from devtensor.nn.loss import *  # noqa: F401,F403
from devtensor.nn.module import Module  # noqa: F401
from devtensor.nn.norm import *  # noqa: F401,F403
from devtensor.nn.parameter import Buffer, Parameter  # noqa: F401
from devtensor.nn.rnn import *  # noqa: F401,F403
from devtensor.nn.transformer import *  # noqa: F401,F403
