# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Attention with several heads, as a function of its weights."""
from devtensor import _C

__all__ = ['multi_head_attention_forward', 'as_bias']


def as_bias(mask, dtype):
    """A mask as what is added to scores: a bool mask is -inf where it is true."""
    if mask is None or mask.dtype is not _C.bool:
        return mask
    return _C.zeros_like(mask, dtype=dtype).masked_fill_(mask, float('-inf'))


def _joined(attn_mask, key_padding_mask, batch, heads, dtype):
    """Both masks as one that broadcasts to [N, heads, L, S]."""
    mask = as_bias(attn_mask, dtype)
    if mask is not None and mask.ndim == 3:
        mask = mask.reshape((batch, heads) + tuple(mask.shape[1:]))
    padding = as_bias(key_padding_mask, dtype)
    if padding is None:
        return mask
    padding = padding.reshape(batch, 1, 1, padding.shape[-1])
    return padding if mask is None else mask + padding


def _project(query, key, value, weights, bias):
    """weights: in_proj_weight, or a tuple of three."""
    biases = bias.chunk(3) if bias is not None else (None, None, None)
    if not isinstance(weights, tuple) and query is key and key is value:
        return _C.linear(query, weights, bias).chunk(3, -1)
    weights = weights if isinstance(weights, tuple) else weights.chunk(3)
    return [_C.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases)]


def _row(x, batch):
    return x.expand([1, batch, x.shape[-1]])


def _attend(q, k, v, mask, dropout_p, need_weights, causal):
    if not need_weights:
        return _C.scaled_dot_product_attention(q, k, v, mask, dropout_p, causal), None
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores + mask
    weights = scores.softmax(-1)
    if dropout_p:
        weights = _C.dropout(weights, dropout_p, True)
    return weights @ v, weights


def multi_head_attention_forward(query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias,
                                 bias_k, bias_v,
                                 add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True,
                                 key_padding_mask=None,
                                 need_weights=True, attn_mask=None, use_separate_proj_weight=False, q_proj_weight=None,
                                 k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None,
                                 average_attn_weights=True, is_causal=False):
    """Attention of query [L, N, E] to key and value [S, N, *], or without N. Returns the result and the weights, or
    None."""
    if static_k is not None or static_v is not None:
        raise NotImplementedError('multi_head_attention_forward: static_k and static_v are not supported')
    if query.ndim == 2:
        same, same_value = query is key, key is value
        query = query.unsqueeze(1)
        key = query if same else key.unsqueeze(1)
        value = key if same_value else value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        out, weights = multi_head_attention_forward(
            query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v,
            add_zero_attn,
            dropout_p, out_proj_weight, out_proj_bias, training, key_padding_mask, need_weights, attn_mask,
            use_separate_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, None, None, average_attn_weights,
            is_causal)
        return out.squeeze(1), None if weights is None else weights.squeeze(0)
    length, batch, embed = query.shape
    if embed != embed_dim_to_check or embed % num_heads:
        raise ValueError(
            f'attention: the query has {embed} features, the module {embed_dim_to_check} and {num_heads} heads')
    if is_causal and attn_mask is None:
        raise ValueError('attention: is_causal is a hint about attn_mask, which is needed')
    separate = (q_proj_weight, k_proj_weight, v_proj_weight)
    q, k, v = _project(query, key, value, separate if use_separate_proj_weight else in_proj_weight, in_proj_bias)
    extra = 0
    if bias_k is not None:
        k, v, extra = _C.cat([k, _row(bias_k, batch)]), _C.cat([v, _row(bias_v, batch)]), extra + 1
    if add_zero_attn:
        zero = _C.zeros([1, batch, embed], dtype=k.dtype, device=k.device)
        k, v, extra = _C.cat([k, zero]), _C.cat([v, zero]), extra + 1
    # A causal mask without others needs no memory.
    causal = is_causal and key_padding_mask is None and not need_weights and not extra
    mask = None if causal else _joined(attn_mask, key_padding_mask, batch, num_heads, q.dtype)
    if mask is not None and extra:
        mask = _C.constant_pad_nd(mask, [0, extra])
    q, k, v = (x.reshape([x.shape[0], batch, num_heads, embed // num_heads]).permute(1, 2, 0, 3) for x in (q, k, v))
    out, weights = _attend(q, k, v, mask, dropout_p if training else 0.0, need_weights, causal)
    out = _C.linear(out.permute(2, 0, 1, 3).reshape([length, batch, embed]), out_proj_weight, out_proj_bias)
    if weights is not None and average_attn_weights:
        weights = weights.mean(1)
    return out, weights
