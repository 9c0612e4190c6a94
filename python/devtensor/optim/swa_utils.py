# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Averages of parameters."""
import copy

from devtensor import _C
from devtensor.nn._state import as_tensor, check_fits, entries
from devtensor.nn.module import Module

__all__ = ['AveragedModel', 'EMA', 'get_ema_multi_avg_fn', 'update_bn']


class EMA:
    """Moving averages of parameters, which begin as copies: update() sets each to decay * average + (1 - decay) *
    parameter.

    swap() exchanges the values of parameters and averages: once to evaluate, and again to go on; or `with ema: ...`.
    """

    def __init__(self, parameters, decay=0.999):
        self._c, self.decay = _C._Ema([p for p in parameters], float(decay)), decay

    def update(self):
        self._c.update()

    def swap(self):
        self._c.swap()

    def averages(self):
        """The averages, on their memory."""
        return self._c.averages()

    def __enter__(self):
        self.swap()
        return self

    def __exit__(self, *error):
        self.swap()

    def state_dict(self):
        return {'decay': self.decay, 'averages': self.averages()}

    def load_state_dict(self, state):
        """Copy the averages of a state. After an error nothing is changed."""
        averages, (loaded,) = self.averages(), entries(state, ['averages'], 'EMA')
        loaded = [as_tensor(t) for t in loaded]
        if len(averages) != len(loaded):
            raise ValueError(f'EMA: {len(loaded)} averages, there are {len(averages)} parameters')
        for i, (ours, theirs) in enumerate(zip(averages, loaded)):
            check_fits(f'EMA: average {i}', ours, theirs)
        for ours, theirs in zip(averages, loaded):
            ours.copy_(theirs)


def get_ema_multi_avg_fn(decay=0.999):
    """For AveragedModel: exponential moving averages."""
    if not 0 <= decay < 1:
        raise ValueError(f'decay is {decay}; it is at least 0 and less than 1')

    def ema(averages, parameters, num_averaged):
        _C._foreach_lerp_(averages, parameters, 1 - decay)
    return ema


def _mean(averages, parameters, num_averaged):
    _C._foreach_lerp_(averages, parameters, 1 / (num_averaged + 1))


class AveragedModel(Module):
    """A copy of a model whose parameters are averages: means, or what multi_avg_fn or avg_fn computes.

    multi_avg_fn(averages, parameters, num_averaged) changes a list of averages in place; avg_fn(average, parameter,
    num_averaged) returns a new one. use_buffers: average floating buffers, too; else they are copied.
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError('AveragedModel: either avg_fn or multi_avg_fn')
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer('n_averaged', _C.zeros([], dtype=_C.int64))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def _members(self, model):
        parameters = [p.detach() for p in model.parameters()]
        floating = [b.detach() for b in model.buffers() if b.dtype.is_floating_point]
        others = [b.detach() for b in model.buffers() if not b.dtype.is_floating_point]
        return (parameters + floating, others) if self.use_buffers else (parameters, floating + others)

    def update_parameters(self, model):
        """Average the values of a model of the same class."""
        n = self.n_averaged.item()
        averages, copies = self._members(self.module)
        parameters, sources = self._members(model)
        if [a.shape for a in averages + copies] != [p.shape for p in parameters + sources]:
            raise ValueError('update_parameters: the model has other parameters')
        if n == 0:
            averages, copies, parameters, sources = [], averages + copies, [], parameters + sources
        elif self.avg_fn is not None:
            for a, p in zip(averages, parameters):
                a.copy_(self.avg_fn(a, p, n))
        elif averages:
            (self.multi_avg_fn or _mean)(averages, parameters, n)
        for ours, theirs in zip(copies, sources):
            ours.copy_(theirs)
        self.n_averaged.add_(1)


def update_bn(loader, model, device=None):
    """Compute the running statistics of all BatchNorm layers from the inputs of a loader."""
    layers = [m for m in model.modules() if type(m).__name__.startswith('BatchNorm') and m.running_mean is not None]
    if not layers:
        return
    training, momenta = model.training, [m.momentum for m in layers]
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None
    model.train()
    for batch in loader:
        model(batch[0] if isinstance(batch, (list, tuple)) else batch)
    for layer, momentum in zip(layers, momenta):
        layer.momentum = momentum
    model.train(training)
