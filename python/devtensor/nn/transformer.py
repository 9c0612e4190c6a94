# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Attention and the layers of transformers."""
import copy

from devtensor import _C
from devtensor.nn import functional as F
from devtensor.nn import init
from devtensor.nn._attention import as_bias
from devtensor.nn._fusion import activation_name, is_plain_linear, linear_then
from devtensor.nn.containers import ModuleList
from devtensor.nn.linear import Linear
from devtensor.nn.module import Module
from devtensor.nn.norm import LayerNorm
from devtensor.nn.parameter import Parameter

__all__ = ['MultiheadAttention', 'Transformer', 'TransformerEncoderLayer', 'TransformerEncoder',
           'TransformerDecoderLayer',
           'TransformerDecoder']


class MultiheadAttention(Module):
    """Attention of query [L, N, E] to key [S, N, kdim] and value [S, N, vdim]; batch_first: [N, L, E]."""

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None,
                 vdim=None, batch_first=False, device=None, dtype=None):
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ValueError(f'embed_dim {embed_dim} is no multiple of num_heads {num_heads}')
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.batch_first, self.add_zero_attn, self.head_dim = batch_first, add_zero_attn, embed_dim // num_heads
        self._same_dims = self.kdim == embed_dim and self.vdim == embed_dim

        def parameter(*shape):
            return Parameter(_C.empty(list(shape), dtype=dtype, device=device))

        separate = not self._same_dims
        self.register_parameter('in_proj_weight', None if separate else parameter(3 * embed_dim, embed_dim))
        for name, dim in ('q_proj_weight', embed_dim), ('k_proj_weight', self.kdim), ('v_proj_weight', self.vdim):
            self.register_parameter(name, parameter(embed_dim, dim) if separate else None)
        self.register_parameter('in_proj_bias', parameter(3 * embed_dim) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        for name in 'bias_k', 'bias_v':
            self.register_parameter(name, parameter(1, 1, embed_dim) if add_bias_kv else None)
        self._reset_parameters()

    def _reset_parameters(self):
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        if self.bias_k is not None:
            init.xavier_normal_(self.bias_k)
            init.xavier_normal_(self.bias_v)

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
                average_attn_weights=True,
                is_causal=False):
        """The result, and the weights [N, L, S] or None."""
        swap = self.batch_first and query.ndim == 3
        if swap:
            same, same_value = key is query, value is key
            query = query.transpose(0, 1)
            key = query if same else key.transpose(0, 1)
            value = key if same_value else value.transpose(0, 1)
        out, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v,
            self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, self.training, key_padding_mask,
            need_weights, attn_mask, not self._same_dims, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal)
        return (out.transpose(0, 1) if swap else out), weights


_ACTIVATIONS = {'relu': F.relu, 'gelu': F.gelu}


def _activation(activation):
    if callable(activation):
        return activation
    if activation not in _ACTIVATIONS:
        raise RuntimeError(f"activation is 'relu', 'gelu' or a function, not {activation!r}")
    return _ACTIVATIONS[activation]


class _Layer(Module):
    """The base of layers of encoders and decoders."""

    def _add_parts(self, d_model, dim_feedforward, dropout, activation,
                   layer_norm_eps, norms, norm_first, bias, options):
        self.linear1 = Linear(d_model, dim_feedforward, bias, **options)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **options)
        for i in range(1, norms + 1):
            setattr(self, f'norm{i}', LayerNorm(d_model, layer_norm_eps, bias=bias, **options))
        self.norm_first, self.dropout_p, self.activation = norm_first, dropout, _activation(activation)

    def _drop(self, x):
        return _C.dropout(x, self.dropout_p, True) if self.training and self.dropout_p else x

    def _feedforward(self, x):
        name = activation_name(self.activation) if is_plain_linear(self.linear1) else None
        x = self.activation(self.linear1(x)) if name is None else linear_then(self.linear1, x, name)
        return self._drop(self.linear2(self._drop(x)))

    def _attention(self, attention, x, memory, mask, padding, causal):
        return self._drop(attention(x, memory, memory, attn_mask=mask, key_padding_mask=padding, need_weights=False,
                                    is_causal=causal)[0])


class TransformerEncoderLayer(_Layer):
    """Self-attention and two linear maps with a residual connection each, after or before a LayerNorm."""

    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False, bias=True, device=None, dtype=None):
        super().__init__()
        options = {'device': device, 'dtype': dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **options)
        self._add_parts(d_model, dim_feedforward, dropout, activation, layer_norm_eps, 2, norm_first, bias, options)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        def attend(x):
            return self._attention(self.self_attn, x, x, src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            x = src + attend(self.norm1(src))
            return x + self._feedforward(self.norm2(x))
        x = self.norm1(src + attend(src))
        return self.norm2(x + self._feedforward(x))


class TransformerDecoderLayer(_Layer):
    """As the encoder's layer, with attention to the encoder's result in between."""

    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation=F.relu, layer_norm_eps=1e-5,
                 batch_first=False, norm_first=False, bias=True, device=None, dtype=None):
        super().__init__()
        options = {'device': device, 'dtype': dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **options)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **options)
        self._add_parts(d_model, dim_feedforward, dropout, activation, layer_norm_eps, 3, norm_first, bias, options)

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None,
                tgt_is_causal=False, memory_is_causal=False):
        def attend(x):
            return self._attention(self.self_attn, x, x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)

        def attend_memory(x):
            return self._attention(self.multihead_attn, x, memory, memory_mask,
                                   memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            x = tgt + attend(self.norm1(tgt))
            x = x + attend_memory(self.norm2(x))
            return x + self._feedforward(self.norm3(x))
        x = self.norm1(tgt + attend(tgt))
        x = self.norm2(x + attend_memory(x))
        return self.norm3(x + self._feedforward(x))


def _copies(layer, n):
    return ModuleList(copy.deepcopy(layer) for _ in range(n))


class TransformerEncoder(Module):
    """num_layers copies of a layer, and a norm."""

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers, self.num_layers, self.norm = _copies(encoder_layer, num_layers), num_layers, norm

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        mask = as_bias(mask, src.dtype)
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, bool(is_causal))
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """num_layers copies of a layer, and a norm."""

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers, self.num_layers, self.norm = _copies(decoder_layer, num_layers), num_layers, norm

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None,
                memory_key_padding_mask=None,
                tgt_is_causal=None, memory_is_causal=False):
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                        bool(tgt_is_causal),
                        memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder and a decoder."""

    def __init__(self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048,
                 dropout=0.1,
                 activation=F.relu, custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-5, batch_first=False,
                 norm_first=False, bias=True, device=None, dtype=None):
        super().__init__()
        options = {'device': device, 'dtype': dtype}
        common = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*common, **options), num_encoder_layers,
            LayerNorm(d_model, layer_norm_eps, bias=bias, **options))
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*common, **options), num_decoder_layers,
            LayerNorm(d_model, layer_norm_eps, bias=bias, **options))
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None,
                tgt_key_padding_mask=None, memory_key_padding_mask=None, src_is_causal=None, tgt_is_causal=None,
                memory_is_causal=False):
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                            tgt_is_causal,
                            memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        """[sz, sz]: -inf above the diagonal, 0 elsewhere."""
        return _C.full([sz, sz], float('-inf'), dtype=dtype, device=device).triu_(1)
