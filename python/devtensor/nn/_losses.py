# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Losses, which devtensor.nn.functional has. reduction: 'none', 'mean' or 'sum'."""
from devtensor import _C

__all__ = ['binary_cross_entropy', 'binary_cross_entropy_with_logits', 'cosine_embedding_loss', 'cross_entropy',
           'ctc_loss',
           'gaussian_nll_loss', 'hinge_embedding_loss', 'huber_loss', 'kl_div', 'l1_loss', 'margin_ranking_loss',
           'mse_loss',
           'multi_label_soft_margin_loss', 'nll_loss', 'poisson_nll_loss', 'smooth_l1_loss', 'soft_margin_loss',
           'triplet_margin_loss', 'triplet_margin_with_distance_loss']

_REDUCTIONS = {'none': 0, 'mean': 1, 'sum': 2}


def _reduction(name):
    try:
        return _REDUCTIONS[name]
    except (KeyError, TypeError):
        raise ValueError(f"reduction is 'none', 'mean' or 'sum', not {name!r}") from None


def _reduce(loss, reduction):
    kind = _reduction(reduction)
    return loss if kind == 0 else loss.mean() if kind == 1 else loss.sum()


def cross_entropy(input, target, weight=None, ignore_index=-100, reduction='mean', label_smoothing=0.0):
    """Cross entropy of logits [N, C, *] or [C] and classes [N, *], or probabilities of the shape of input."""
    return _C.cross_entropy_loss(input, target, weight, _reduction(reduction), ignore_index, label_smoothing)


def nll_loss(input, target, weight=None, ignore_index=-100, reduction='mean'):
    """The negative of log probabilities [N, C, *] at the classes [N, *]."""
    return _C.nll_loss_nd(input, target, weight, _reduction(reduction), ignore_index)


def mse_loss(input, target, reduction='mean', weight=None):
    """(input - target) ** 2"""
    if weight is not None:
        return _weighted(_C.mse_loss(input, target, 0), weight, reduction)
    return _C.mse_loss(input, target, _reduction(reduction))


def l1_loss(input, target, reduction='mean', weight=None):
    """|input - target|"""
    if weight is not None:
        return _weighted(_C.l1_loss(input, target, 0), weight, reduction)
    return _C.l1_loss(input, target, _reduction(reduction))


def _weighted(loss, weight, reduction):
    loss = loss * weight
    if _reduction(reduction) == 1:
        return loss.sum() / weight.expand_as(loss).sum()
    return _reduce(loss, reduction)


def smooth_l1_loss(input, target, reduction='mean', beta=1.0):
    """Half the square divided by beta below beta, |difference| - beta / 2 above."""
    return _C.l1_loss(input, target, _reduction(reduction)) if beta == 0 else \
        _C.smooth_l1_loss(input, target, _reduction(reduction), beta)


def huber_loss(input, target, reduction='mean', delta=1.0, weight=None):
    """Half the square below delta, delta * (|difference| - delta / 2) above."""
    if weight is not None:
        return _weighted(_C.huber_loss(input, target, 0, delta), weight, reduction)
    return _C.huber_loss(input, target, _reduction(reduction), delta)


def binary_cross_entropy(input, target, weight=None, reduction='mean'):
    """Cross entropy of probabilities and targets between 0 and 1."""
    return _C.binary_cross_entropy(input, target, weight, _reduction(reduction))


def binary_cross_entropy_with_logits(input, target, weight=None, reduction='mean', pos_weight=None):
    """Cross entropy of the sigmoid of input and targets between 0 and 1."""
    return _C.binary_cross_entropy_with_logits(input, target, weight, pos_weight, _reduction(reduction))


def kl_div(input, target, reduction='mean', log_target=False):
    """Divergence of log probabilities from the target; reduction also 'batchmean': the sum divided by the batch
    size."""
    if reduction == 'batchmean':
        loss = _C.kl_div(input, target, 2, log_target=log_target)
        return loss / input.shape[0] if input.ndim else loss
    return _C.kl_div(input, target, _reduction(reduction), log_target=log_target)


def poisson_nll_loss(input, target, log_input=True, full=False, eps=1e-8, reduction='mean'):
    """exp(input) - target * input, or with log_input=False input - target * log(input + eps)."""
    return _C.poisson_nll_loss(input, target, log_input, full, eps, _reduction(reduction))


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction='mean'):
    """The negative log likelihood of target for normal distributions with these means and variances."""
    if isinstance(var, (int, float)):
        var = _C.full_like(input, var)
    elif var.shape != input.shape and var.shape == input.shape[:-1]:
        var = var.unsqueeze(-1)
    if bool(var.lt(0).any()):
        raise ValueError('gaussian_nll_loss: a variance is negative')
    # The limit changes the value, not the gradient.
    var = var + (var.detach().clamp_min(eps) - var.detach())
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    return _reduce(loss + 0.9189385332046727 if full else loss, reduction)


def hinge_embedding_loss(input, target, margin=1.0, reduction='mean'):
    """input where target is 1, max(0, margin - input) where it is -1."""
    return _C.hinge_embedding_loss(input, target, margin, _reduction(reduction))


def margin_ranking_loss(input1, input2, target, margin=0.0, reduction='mean'):
    """max(0, -target * (input1 - input2) + margin)"""
    return _C.margin_ranking_loss(input1, input2, target, margin, _reduction(reduction))


def soft_margin_loss(input, target, reduction='mean'):
    """log(1 + exp(-target * input))"""
    return _C.soft_margin_loss(input, target, _reduction(reduction))


def multi_label_soft_margin_loss(input, target, weight=None, reduction='mean'):
    """The mean over the last dimension of the binary cross entropies of logits."""
    loss = -(target * _C.log_sigmoid(input) + (1 - target) * _C.log_sigmoid(-input))
    return _reduce((loss if weight is None else loss * weight).mean(-1), reduction)


def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction='mean'):
    """1 - cosine where target is 1, max(0, cosine - margin) where it is -1. Inputs [N, D] or [D]."""
    # As PyTorch's, which adds a number to the squared norms.
    product = (input1 * input2).sum(-1)
    norms = (((input1 * input1).sum(-1) + 1e-12) * ((input2 * input2).sum(-1) + 1e-12)).sqrt()
    cosine = product / norms
    zeros = _C.zeros_like(cosine)
    loss = _C.where(target.eq(1), 1 - cosine, zeros) + _C.where(target.eq(-1), (cosine - margin).clamp_min(0), zeros)
    return _reduce(loss, reduction)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, reduction='mean'):
    """max(0, distance of anchor and positive - distance of anchor and negative + margin)"""
    def distance(a, b):
        return _C.pairwise_distance(a, b, float(p), eps)
    return triplet_margin_with_distance_loss(anchor, positive, negative, distance_function=distance, margin=margin,
                                             swap=swap,
                                             reduction=reduction)


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False,
                                      reduction='mean'):
    """triplet_margin_loss() with a distance of the program."""
    distance = distance_function or _C.pairwise_distance
    far = distance(anchor, negative)
    if swap:
        far = _C.minimum(far, distance(positive, negative))
    return _reduce((distance(anchor, positive) - far + margin).clamp_min(0), reduction)


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction='mean', zero_infinity=False):
    """Connectionist temporal classification of log probabilities [T, N, C]."""
    return _C.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _reduction(reduction), zero_infinity)
