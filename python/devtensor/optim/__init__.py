# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Optimizers, with PyTorch's arguments and groups of parameters. A step is one call of a fused operator for each
group."""
from devtensor.optim import lr_scheduler, swa_utils  # noqa: F401
from devtensor.optim.optimizer import SGD, Adagrad, Adam, AdamW, Optimizer, RMSprop  # noqa: F401

__all__ = ['Optimizer', 'SGD', 'Adam', 'AdamW', 'Adagrad', 'RMSprop', 'lr_scheduler', 'swa_utils']
