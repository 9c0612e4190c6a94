# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The default generator of random numbers."""
from devtensor._C import default_generator

__all__ = ['manual_seed', 'seed', 'initial_seed', 'get_rng_state', 'set_rng_state']


def manual_seed(seed):
    """Set the seed of the default generator, which is returned."""
    return default_generator.manual_seed(seed)


def seed():
    """Set a random seed from the kernel, which is returned."""
    return default_generator.seed()


def initial_seed():
    """The seed that was set last."""
    return default_generator.initial_seed()


def get_rng_state():
    """The state of the default generator: a tuple of the seed and the position."""
    return default_generator.get_state()


def set_rng_state(state):
    """Continue from a state of get_rng_state()."""
    default_generator.set_state(state)
