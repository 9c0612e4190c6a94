# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Losses as modules: each calls the function of its name in devtensor.nn.functional."""
from devtensor._C import Tensor
from devtensor.nn import functional as F
from devtensor.nn._options import options_given
from devtensor.nn.module import Module


def _loss(name, function, options, inputs=2):
    """options: names and defaults of the arguments in the order of PyTorch's constructor; tensors become buffers."""
    names = list(options)

    def __init__(self, *args, **kwargs):
        Module.__init__(self)
        values = options_given(name, options, args, kwargs)
        for key in names:
            value = values.get(key, options[key])
            if isinstance(value, Tensor):
                self.register_buffer(key, value)
            else:
                self.__dict__[key] = value
        if self.reduction not in ('none', 'mean', 'sum') and not (
            name == 'KLDivLoss' and self.reduction == 'batchmean'):
            raise ValueError(f"{name}: reduction is 'none', 'mean' or 'sum', not {self.reduction!r}")

    def forward(self, *args):
        if len(args) != inputs:
            raise TypeError(f'{name} is called with {inputs} arguments, got {len(args)}')
        own = self.__dict__
        return function(*args, **{key: own[key] for key in names})

    return type(name, (Module,), {'__init__': __init__, 'forward': forward,
                '__module__': __name__, '__doc__': function.__doc__})


_WEIGHT, _REDUCTION = {'weight': None}, {'reduction': 'mean'}
CrossEntropyLoss = _loss('CrossEntropyLoss', F.cross_entropy,
                         {**_WEIGHT, 'ignore_index': -100, **_REDUCTION, 'label_smoothing': 0.0})
NLLLoss = _loss('NLLLoss', F.nll_loss, {**_WEIGHT, 'ignore_index': -100, **_REDUCTION})
MSELoss = _loss('MSELoss', F.mse_loss, _REDUCTION)
L1Loss = _loss('L1Loss', F.l1_loss, _REDUCTION)
SmoothL1Loss = _loss('SmoothL1Loss', F.smooth_l1_loss, {**_REDUCTION, 'beta': 1.0})
HuberLoss = _loss('HuberLoss', F.huber_loss, {**_REDUCTION, 'delta': 1.0})
BCELoss = _loss('BCELoss', F.binary_cross_entropy, {**_WEIGHT, **_REDUCTION})
BCEWithLogitsLoss = _loss('BCEWithLogitsLoss', F.binary_cross_entropy_with_logits,
                          {**_WEIGHT, **_REDUCTION, 'pos_weight': None})
KLDivLoss = _loss('KLDivLoss', F.kl_div, {**_REDUCTION, 'log_target': False})
PoissonNLLLoss = _loss(
    'PoissonNLLLoss', F.poisson_nll_loss, {
        'log_input': True, 'full': False, 'eps': 1e-8, **_REDUCTION})
GaussianNLLLoss = _loss('GaussianNLLLoss', F.gaussian_nll_loss, {'full': False, 'eps': 1e-6, **_REDUCTION}, 3)
HingeEmbeddingLoss = _loss('HingeEmbeddingLoss', F.hinge_embedding_loss, {'margin': 1.0, **_REDUCTION})
MarginRankingLoss = _loss('MarginRankingLoss', F.margin_ranking_loss, {'margin': 0.0, **_REDUCTION}, 3)
SoftMarginLoss = _loss('SoftMarginLoss', F.soft_margin_loss, _REDUCTION)
MultiLabelSoftMarginLoss = _loss('MultiLabelSoftMarginLoss', F.multi_label_soft_margin_loss, {**_WEIGHT, **_REDUCTION})
CosineEmbeddingLoss = _loss('CosineEmbeddingLoss', F.cosine_embedding_loss, {'margin': 0.0, **_REDUCTION}, 3)
TripletMarginLoss = _loss('TripletMarginLoss', F.triplet_margin_loss,
                          {'margin': 1.0, 'p': 2.0, 'eps': 1e-6, 'swap': False, **_REDUCTION}, 3)
CTCLoss = _loss('CTCLoss', F.ctc_loss, {'blank': 0, **_REDUCTION, 'zero_infinity': False}, 4)

__all__ = ['BCELoss', 'BCEWithLogitsLoss', 'CTCLoss', 'CosineEmbeddingLoss', 'CrossEntropyLoss', 'GaussianNLLLoss',
           'HingeEmbeddingLoss', 'HuberLoss', 'KLDivLoss', 'L1Loss', 'MSELoss', 'MarginRankingLoss',
           'MultiLabelSoftMarginLoss', 'NLLLoss', 'PoissonNLLLoss', 'SmoothL1Loss', 'SoftMarginLoss',
           'TripletMarginLoss']
