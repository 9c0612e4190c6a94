# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Tensors that processes share, with operators and automatic differentiation."""
from devtensor._C import *  # noqa: F401,F403
from devtensor._C import __version__  # noqa: F401
from devtensor import _pickle, _tensor  # noqa: F401
from devtensor._printing import get_printoptions, set_printoptions  # noqa: F401
from devtensor import multiprocessing, sharing  # noqa: F401
from devtensor._monitor import monitor  # noqa: F401
from devtensor.interchange import *  # noqa: F401,F403
from devtensor.serialization import *  # noqa: F401,F403
from devtensor import autograd  # noqa: F401
from devtensor.autograd import (enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled,  # noqa: F401
                                no_grad, set_grad_enabled)
from devtensor import func  # noqa: F401
from devtensor.func import vmap  # noqa: F401
from devtensor import amp, cuda, distributed, fft, linalg, nn, optim, random, special, utils  # noqa: F401
from devtensor.random import get_rng_state, initial_seed, manual_seed, seed, set_rng_state  # noqa: F401
from devtensor.amp import autocast  # noqa: F401
from devtensor._names import *  # noqa: F401,F403
