# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""CUDA devices, streams and events, and graphs: work that is captured once and replayed by one call.

    step = cuda.CUDAGraph()
    train(x, y)                     # as usual, so that the states of the optimizer exist
    with cuda.graph(step):
        loss = train(x, y)
    for batch, target in loader:
        x.copy_(batch)
        y.copy_(target)
        step.replay()               # writes loss

What makes the host wait for the device cannot be captured: item(), copies to the host, operators whose result's shape
depends on values. Such a call raises, and ends the capture. See docs/cuda.md.
"""
from devtensor import _C, _memory, _streams
from devtensor._C import _CUDAGraph as CUDAGraph
from devtensor._memory import *  # noqa: F401,F403
from devtensor._streams import *  # noqa: F401,F403
from devtensor.random import initial_seed, manual_seed, seed  # noqa: F401

__all__ = ['CUDAGraph', 'graph', 'is_available', 'device_count', 'initial_seed', 'is_current_stream_capturing',
           'manual_seed', 'manual_seed_all', 'seed', 'seed_all', 'checks', 'set_checks']
__all__ += _memory.__all__ + _streams.__all__

# One generator serves all devices.
manual_seed_all, seed_all = manual_seed, seed


def is_available():
    """True if tensors can be made on a CUDA device."""
    return _C._cuda_is_available()


def device_count():
    """The number of devices, 0 without the plugin, a driver or a device."""
    return _C._cuda_device_count()


def is_current_stream_capturing(device=None):
    """True if the calling thread captures on the device."""
    return _C._cuda_is_capturing(_streams._index(device))


_CHECKS = ('late', 'wait')


def checks():
    """'late' or 'wait': when values that the device checks are refused. See set_checks()."""
    return _CHECKS[_C._cuda_checks()]


def set_checks(mode):
    """Sets when the error of a refused value (an index out of range, a zero divisor) is raised; returns the mode
    before.

    'late': by the next call that waits for the device: item(), a copy to the CPU, synchronize(). 'wait': by the call
    itself, which waits for the device. For all threads. TENSOR_CUDA_CHECKS has the mode of the start.
    """
    if mode not in _CHECKS:
        raise ValueError(f"set_checks: expected 'late' or 'wait', got {mode!r}")
    return _CHECKS[_C._cuda_set_checks(_CHECKS.index(mode))]


class graph:
    """Captures what the block does on the graph's device. After an exception of the block the graph is empty.

    pool: a graph whose memory is used, too; then the replays of both must never run at the same time.
    """

    def __init__(self, cuda_graph, pool=None):
        self._graph = cuda_graph
        self._pool = pool

    def __enter__(self):
        self._graph.capture_begin(self._pool)

    def __exit__(self, kind, value, traceback):
        if kind is None:
            self._graph.capture_end()
        else:
            self._graph.reset()
