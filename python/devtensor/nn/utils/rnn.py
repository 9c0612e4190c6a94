# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Batches of sequences of different lengths."""
from collections import namedtuple

from devtensor import _C
from devtensor._C import Tensor

__all__ = [
    'PackedSequence',
    'pack_padded_sequence',
    'pad_packed_sequence',
    'pad_sequence',
    'pack_sequence',
     'unpad_sequence']

PackedSequence = namedtuple('PackedSequence', ['data', 'batch_sizes', 'sorted_indices', 'unsorted_indices'],
                            defaults=[None, None])
PackedSequence.__doc__ = 'The steps of sequences that are sorted by length: data [steps, *], batch_sizes [longest].'


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Pack [L, N, *] (batch_first: [N, L, *]) with these lengths; enforce_sorted: they do not increase."""
    lengths = lengths if isinstance(lengths, Tensor) else _C.tensor(lengths, dtype=_C.int64)
    order = back = None
    if not enforce_sorted:
        lengths, order = lengths.sort(-1, True)[:2]
        input = input.index_select(0 if batch_first else 1, order)
        back = _C.empty_like(order).scatter_(0, order, _C.arange(order.numel()))
    data, sizes = _C._pack_padded_sequence(input, lengths, batch_first)
    return PackedSequence(data, sizes, order, back)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """The padded sequences and their lengths, in the order in which they were packed."""
    data, sizes, _, back = sequence
    out, lengths = _C._pad_packed_sequence(data, sizes, batch_first, padding_value, - \
                                           1 if total_length is None else total_length)
    if back is not None:
        out, lengths = out.index_select(0 if batch_first else 1, back), lengths[back]
    return out, lengths


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side='right'):
    """Sequences [L_i, *] in one tensor [L, N, *] (batch_first: [N, L, *])."""
    if padding_side not in ('left', 'right'):
        raise ValueError(f"pad_sequence: padding_side is 'left' or 'right', not {padding_side!r}")
    longest = max(s.shape[0] for s in sequences)

    def padded(s):
        n = longest - s.shape[0]
        return _C.constant_pad_nd(s, [0, 0] * (s.ndim - 1) + \
                                  ([n, 0] if padding_side == 'left' else [0, n]), padding_value)
    return _C.stack([padded(s) for s in sequences], 0 if batch_first else 1)


def pack_sequence(sequences, enforce_sorted=True):
    """Pack a list of sequences [L_i, *]."""
    return pack_padded_sequence(pad_sequence(sequences), [s.shape[0] for s in sequences], False, enforce_sorted)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences of a padded batch."""
    padded = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [s[:int(n)] for s, n in zip(padded, lengths)]
