# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Recurrent layers. Gates are in PyTorch's order: input, forget, cell, output of an LSTM; reset, update, new of a
GRU."""
import math
import numbers
import operator
import warnings

from devtensor import _C
from devtensor.nn import init
from devtensor.nn.module import Module
from devtensor.nn.parameter import Parameter
from devtensor.nn.utils.rnn import PackedSequence

__all__ = ['RNN', 'LSTM', 'GRU', 'RNNCell', 'LSTMCell', 'GRUCell']


def _int(module, name, value):
    """A number of features or layers. TypeError for another type than int."""
    if isinstance(value, bool) or not hasattr(value, '__index__'):
        raise TypeError(f'{type(module).__name__}: {name} should be of type int, got {type(value).__name__}')
    return operator.index(value)


def _probability(module, name, value):
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 <= value <= 1:
        raise ValueError(f'{type(module).__name__}: {name} should be a number from 0 to 1, got {value!r}')
    return float(value)


class RNNBase(Module):
    """Parameters weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_hr_l0 of an LSTM with projections, then
    those of l0_reverse, l1, ...: uniform in +-1 / sqrt(hidden_size)."""

    gates, _names = 1, ()

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
                 bidirectional=False, proj_size=0, device=None, dtype=None):
        super().__init__()
        input_size, hidden_size = _int(self, 'input_size', input_size), _int(self, 'hidden_size', hidden_size)
        num_layers, proj_size = _int(self, 'num_layers', num_layers), _int(self, 'proj_size', proj_size)
        dropout = _probability(self, 'dropout', dropout)
        if proj_size and self.nstates == 1:
            raise ValueError(f'proj_size is an argument of LSTM, not of {type(self).__name__}')
        if not 0 <= proj_size < max(hidden_size, 1):
            raise ValueError(f'LSTM: proj_size is at least 0 and smaller than hidden_size, got {proj_size}')
        if hidden_size <= 0 or num_layers <= 0 or input_size < 0:
            raise ValueError(f'{type(self).__name__}: hidden_size and num_layers are positive and input_size is not '
                             f'negative, got {hidden_size}, {num_layers} and {input_size}')
        if dropout and num_layers == 1:
            warnings.warn('dropout is applied between layers, and there is one only', stacklevel=3)
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, dropout, bidirectional
        self.proj_size, self.directions = proj_size, 2 if bidirectional else 1
        self._add_parameters(dtype, device)
        self.reset_parameters()

    def _add_parameters(self, dtype, device):
        rows, out, names = self.gates * self.hidden_size, self.proj_size or self.hidden_size, []
        for layer in range(self.num_layers):
            columns = self.input_size if layer == 0 else out * self.directions
            shapes = [('weight_ih', [rows, columns]), ('weight_hh', [rows, out])]
            shapes += [('bias_ih', [rows]), ('bias_hh', [rows])] if self.bias else []
            shapes += [('weight_hr', [out, self.hidden_size])] if self.proj_size else []
            for suffix in ('', '_reverse')[:self.directions]:
                for name, shape in shapes:
                    names.append(f'{name}_l{layer}{suffix}')
                    setattr(self, names[-1], Parameter(_C.empty(shape, dtype=dtype, device=device)))
        self._names = tuple(names)

    def reset_parameters(self):
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def flatten_parameters(self):
        """Does nothing: the operators take the parameters as they are."""

    @property
    def all_weights(self):
        own, n = self.__dict__, (4 if self.bias else 2) + bool(self.proj_size)
        return [[own[name] for name in self._names[i:i + n]] for i in range(0, len(self._names), n)]

    def _state_sizes(self):
        """The size of each state: h of an LSTM with projections has proj_size."""
        return [self.proj_size or self.hidden_size, self.hidden_size][:self.nstates]

    def _zeros(self, input, batch):
        return tuple(_C.zeros([self.num_layers * self.directions, batch, size], dtype=input.dtype, device=input.device)
                     for size in self._state_sizes())

    def _check(self, input, hx, batch, unbatched):
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f'{type(self).__name__}: the input has {input.shape[-1]} features, not {self.input_size}')
        for state, size in zip(hx, self._state_sizes()):
            want = (self.num_layers * self.directions, batch, size)
            if tuple(state.shape) != want:
                raise RuntimeError(f'{type(self).__name__}: an initial state has the shape {tuple(state.shape)}, not '
                                   f'{want[:1] + want[2:] if unbatched else want}')

    def _packed(self, packed, hx):
        data, sizes, order, back = packed
        batch = int(sizes[0].item())
        hx = self._initial(data, hx, batch, order)
        self._check(data, hx, batch, False)
        out, *states = self._function(data, sizes, self._states(hx), self._flat(), self.bias, self.num_layers,
                                      self.dropout,
                                      self.training, self.bidirectional)
        states = states if back is None else [s.index_select(1, back) for s in states]
        return PackedSequence(out, sizes, order, back), states

    def _flat(self):
        own = self.__dict__
        return [own[name] for name in self._names]

    def _initial(self, input, hx, batch, order=None):
        hx = self._tuple(hx)
        if hx is None:
            return self._zeros(input, batch)
        return hx if order is None else tuple(s.index_select(1, order) for s in hx)

    nstates = 1

    def _tuple(self, hx):
        return None if hx is None else (hx,)

    def _states(self, hx):
        return hx[0]

    def _result(self, out, states):
        return out, states[0]

    def forward(self, input, hx=None):
        if isinstance(input, PackedSequence):
            return self._result(*self._packed(input, hx))
        if input.ndim not in (2, 3):
            raise ValueError(f'{type(self).__name__}: an input has 2 or 3 dimensions, got {input.ndim}')
        unbatched = input.ndim == 2
        if unbatched:
            input = input.unsqueeze(0 if self.batch_first else 1)
            hx = None if hx is None else tuple(s.unsqueeze(1) for s in self._tuple(hx))
            hx = hx[0] if hx is not None and self.nstates == 1 else hx
        batch = input.shape[0 if self.batch_first else 1]
        hx = self._initial(input, hx, batch)
        self._check(input, hx, batch, unbatched)
        out, *states = self._function(input, self._states(hx), self._flat(), self.bias, self.num_layers, self.dropout,
                                      self.training, self.bidirectional, self.batch_first)
        if unbatched:
            out, states = out.squeeze(0 if self.batch_first else 1), [s.squeeze(1) for s in states]
        return self._result(out, states)

    def extra_repr(self):
        text = f'{self.input_size}, {self.hidden_size}'
        for name, default in ('proj_size', 0), ('num_layers', 1), ('bias', True), ('batch_first', False), \
                ('dropout', 0.0), ('bidirectional', False):
            if getattr(self, name) != default:
                text += f', {name}={getattr(self, name)}'
        return text


class RNN(RNNBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or with nonlinearity='relu'. Input [L, N, input_size]; batch_first:
    [N, L, ...]. Returns all h of the last layer and the last ones of all layers."""

    def __init__(self, input_size, hidden_size, num_layers=1, nonlinearity='tanh', *args, **kwargs):
        if nonlinearity not in ('tanh', 'relu'):
            raise ValueError(f"RNN: nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")
        super().__init__(input_size, hidden_size, num_layers, *args, **kwargs)
        self.nonlinearity = nonlinearity

    def _function(self, *args):
        return (_C.rnn_tanh if self.nonlinearity == 'tanh' else _C.rnn_relu)(*args)


class GRU(RNNBase):
    """Gated recurrent units. Returns all h of the last layer and the last ones of all layers."""
    gates, _function = 3, staticmethod(_C.gru)


class LSTM(RNNBase):
    """Long short-term memory; hx is (h, c). Returns all h of the last layer, and the last (h, c) of all layers. With
    proj_size h is multiplied by weight_hr [proj_size, hidden_size], and has this size."""
    gates, nstates, _function = 4, 2, staticmethod(_C.lstm)

    def _tuple(self, hx):
        if hx is not None and (not isinstance(hx, (tuple, list)) or len(hx) != 2):
            raise TypeError('LSTM: hx is a tuple (h, c)')
        return None if hx is None else tuple(hx)

    def _states(self, hx):
        return list(hx)

    def _result(self, out, states):
        return out, tuple(states)


class _Cell(Module):
    """One step: weight_ih [gates * hidden, input], weight_hh [gates * hidden, hidden], bias_ih and bias_hh."""

    gates = 1

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__()
        input_size, hidden_size = _int(self, 'input_size', input_size), _int(self, 'hidden_size', hidden_size)
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = self.gates * hidden_size
        self.weight_ih = Parameter(_C.empty([rows, input_size], dtype=dtype, device=device))
        self.weight_hh = Parameter(_C.empty([rows, hidden_size], dtype=dtype, device=device))
        for name in 'bias_ih', 'bias_hh':
            self.register_parameter(name, Parameter(_C.empty([rows], dtype=dtype, device=device)) if bias else None)
        self.reset_parameters()

    reset_parameters = RNNBase.reset_parameters

    def _zeros(self, input):
        return _C.zeros([input.shape[0], self.hidden_size], dtype=input.dtype, device=input.device)

    def forward(self, input, hx=None):
        """input [N, input_size] or [input_size], hx [N, hidden_size]."""
        single = input.ndim == 1
        x = input.unsqueeze(0) if single else input
        h = self._zeros(x) if hx is None else hx.unsqueeze(0) if single else hx
        out = self._step(x, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return out.squeeze(0) if single else out

    def extra_repr(self):
        return f'{self.input_size}, {self.hidden_size}' + ('' if self.bias else ', bias=False')


class RNNCell(_Cell):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or with nonlinearity='relu'."""

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity='tanh', device=None, dtype=None):
        if nonlinearity not in ('tanh', 'relu'):
            raise RuntimeError(f"RNNCell: nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def _step(self, *args):
        return (_C.rnn_tanh_cell if self.nonlinearity == 'tanh' else _C.rnn_relu_cell)(*args)


class GRUCell(_Cell):
    """A step of a GRU."""
    gates, _step = 3, staticmethod(_C.gru_cell)


class LSTMCell(_Cell):
    """A step of an LSTM: hx is (h, c), as is the result."""
    gates = 4

    def forward(self, input, hx=None):
        single = input.ndim == 1
        x = input.unsqueeze(0) if single else input
        if hx is None:
            hx = (self._zeros(x),) * 2
        elif single:
            hx = [s.unsqueeze(0) for s in hx]
        h, c = _C.lstm_cell(x, list(hx), self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return (h.squeeze(0), c.squeeze(0)) if single else (h, c)
