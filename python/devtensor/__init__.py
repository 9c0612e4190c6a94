# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Tensors that processes share, with operators and automatic differentiation."""
from devtensor._C import *  # noqa: F401,F403
from devtensor._C import __version__  # noqa: F401
from devtensor import autograd  # noqa: F401
from devtensor.autograd import (enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled,  # noqa: F401
                                no_grad, set_grad_enabled)
from devtensor import func, utils  # noqa: F401
from devtensor.func import vmap  # noqa: F401
