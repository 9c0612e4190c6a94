# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Tables of vectors."""
from devtensor import _C
from devtensor.nn import functional as F
from devtensor.nn import init
from devtensor.nn.module import Module
from devtensor.nn.parameter import Parameter

__all__ = ['Embedding', 'EmbeddingBag']


class _Table(Module):
    def _make(self, num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
              weight, frozen,
              device, dtype):
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f'padding_idx is {padding_idx}, there are {num_embeddings} rows')
        if weight is not None and tuple(weight.shape) != (num_embeddings, embedding_dim):
            raise ValueError(f'the weight has the shape {tuple(weight.shape)}, not {(num_embeddings, embedding_dim)}')
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        if weight is None:
            self.weight = Parameter(_C.empty([num_embeddings, embedding_dim], dtype=dtype, device=device), not frozen)
            self.reset_parameters()
        else:
            self.weight = Parameter(weight, not frozen)

    def reset_parameters(self):
        init.normal_(self.weight)
        if self.padding_idx is not None:
            self.weight.detach()[self.padding_idx].zero_()

    def extra_repr(self):
        text = f'{self.num_embeddings}, {self.embedding_dim}'
        return text if self.padding_idx is None else text + f', padding_idx={self.padding_idx}'


class Embedding(_Table):
    """Rows of weight [num_embeddings, embedding_dim], which is normal; the row padding_idx is 0 and gets no
    gradient."""

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0,
                 scale_grad_by_freq=False,
                 sparse=False, _weight=None, _freeze=False, device=None, dtype=None):
        super().__init__()
        self._make(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
                   _weight, _freeze,
                   device, dtype)

    def forward(self, input):
        if self.max_norm is None:
            padding = -1 if self.padding_idx is None else self.padding_idx
            return _C.embedding(self.weight, input, padding, self.scale_grad_by_freq, self.sparse)
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm,
                           self.norm_type, self.scale_grad_by_freq, self.sparse)

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, **options):
        return cls(*embeddings.shape, _weight=embeddings, _freeze=freeze, **options)


class EmbeddingBag(_Table):
    """Sums, means or maxima of rows of weight for each bag."""

    def __init__(self, num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
                 mode='mean',
                 sparse=False, _weight=None, include_last_offset=False, padding_idx=None, device=None, dtype=None):
        super().__init__()
        self.mode, self.include_last_offset = mode, include_last_offset
        self._make(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
                   _weight, False,
                   device, dtype)

    def forward(self, input, offsets=None, per_sample_weights=None):
        return F.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
                               self.mode,
                               self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx)

    def extra_repr(self):
        return super().extra_repr() + f', mode={self.mode!r}'

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, **options):
        module = cls(*embeddings.shape, _weight=embeddings, **options)
        module.weight.requires_grad_(not freeze)
        return module
