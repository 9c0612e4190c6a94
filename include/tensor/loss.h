/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Losses with defaults: the mean, unless a reduction follows the tensors; then options as designated
 * initialisers.
 *
 *	loss = tensor_loss_cross_entropy(logits, target);
 *	loss = tensor_loss_cross_entropy(logits, target, TENSOR_REDUCTION_SUM);
 *	loss = tensor_loss_cross_entropy(logits, target, TENSOR_REDUCTION_MEAN, .label_smoothing = 0.1);
 *
 * Each macro tensor_loss_NAME() calls the function tensor_loss_NAME_opt(), which takes reduction and
 * options. The result is a new tensor: without dimensions, or for TENSOR_REDUCTION_NONE with a loss for
 * each element or sample. NULL with the error set. Formulas and limits are those of the operators of
 * <tensor/ops.h>, and of PyTorch's functions of the same names.
 */
#ifndef TENSOR_LOSS_H
#define TENSOR_LOSS_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero is the default, given here; each loss reads the options that its comment names. Tensors are given
 * by their address, so that the NULL of a failed operator is not taken for an absent one. */
struct tensor_loss_options {
	tensor *const *weight TENSOR_ZERO_, *const *pos_weight TENSOR_ZERO_; /* ones */
	bool ignore TENSOR_ZERO_; /* ignore targets equal to ignore_index, instead of -100 */
	bool log_target TENSOR_ZERO_, batch_mean TENSOR_ZERO_, zero_infinity TENSOR_ZERO_;
	bool swap TENSOR_ZERO_;
	int64_t ignore_index TENSOR_ZERO_, blank TENSOR_ZERO_;
	double label_smoothing TENSOR_ZERO_;
	double beta TENSOR_ZERO_, delta TENSOR_ZERO_; /* 1 */
	double margin TENSOR_ZERO_;		 /* hinge_embedding, triplet_margin: 1, others: 0 */
	double p TENSOR_ZERO_, eps TENSOR_ZERO_; /* 2, 1e-6 */
	uint32_t reserved TENSOR_ZERO_;
};

#define TENSOR_LOSS_ARGS_ tensor *x, tensor *target
#define TENSOR_LOSS_REST_ enum tensor_reduction reduction, struct tensor_loss_options options

/* x [n, c, *] scores, target i64 [n, *] classes or [n, c, *] probabilities. .weight [c], .ignore_index,
 * .label_smoothing. */
tensor *tensor_loss_cross_entropy_opt(TENSOR_LOSS_ARGS_, TENSOR_LOSS_REST_);
/* x [n, c, *] logarithms of probabilities, target i64 [n, *]. .weight [c], .ignore_index. */
tensor *tensor_loss_nll_opt(TENSOR_LOSS_ARGS_, TENSOR_LOSS_REST_);
/* (x - target)^2 */
tensor *tensor_loss_mse_opt(TENSOR_LOSS_ARGS_, TENSOR_LOSS_REST_);
/* |x - target| */
tensor *tensor_loss_l1_opt(TENSOR_LOSS_ARGS_, TENSOR_LOSS_REST_);
/* Quadratic below .beta, and below .delta. */
tensor *tensor_loss_smooth_l1_opt(TENSOR_LOSS_ARGS_, TENSOR_LOSS_REST_);
tensor *tensor_loss_huber_opt(TENSOR_LOSS_ARGS_, TENSOR_LOSS_REST_);
/* x probabilities, or scores; target probabilities. .weight; with scores also .pos_weight. */
tensor *tensor_loss_bce_opt(TENSOR_LOSS_ARGS_, TENSOR_LOSS_REST_);
tensor *tensor_loss_bce_with_logits_opt(TENSOR_LOSS_ARGS_, TENSOR_LOSS_REST_);
/* x logarithms of probabilities, target probabilities or, with .log_target, their logarithms. With
 * .batch_mean the mean is over samples, which is the definition, not over elements. */
tensor *tensor_loss_kl_div_opt(TENSOR_LOSS_ARGS_, TENSOR_LOSS_REST_);
/* target 1 or -1. .margin */
tensor *tensor_loss_hinge_embedding_opt(TENSOR_LOSS_ARGS_, TENSOR_LOSS_REST_);
tensor *tensor_loss_soft_margin_opt(TENSOR_LOSS_ARGS_, TENSOR_LOSS_REST_);
/* x1 should be larger than x2 where target is 1, smaller where it is -1. .margin */
tensor *tensor_loss_margin_ranking_opt(tensor *x1, tensor *x2, tensor *target, TENSOR_LOSS_REST_);
/* x1, x2 [n, d] or [d], target [n] or []: similar where target is 1, not where it is -1. .margin */
tensor *tensor_loss_cosine_embedding_opt(tensor *x1, tensor *x2, tensor *target, TENSOR_LOSS_REST_);
/* max(|anchor - positive| - |anchor - negative| + .margin, 0) over the last dimension, in the .p norm
 * with .eps; .swap: the smaller of the distances of negative from both others. */
tensor *tensor_loss_triplet_margin_opt(tensor *anchor, tensor *positive, tensor *negative,
				       TENSOR_LOSS_REST_);
/* log_probs [t, n, c], targets [n, s] or in a row, lengths i64 [n]. .blank, .zero_infinity */
tensor *tensor_loss_ctc_opt(tensor *log_probs, tensor *targets, tensor *input_lengths,
			    tensor *target_lengths, TENSOR_LOSS_REST_);

/* DEFAULT_ if there are n arguments, GIVEN_ if there are more. */
#define TENSOR_LOSS_PICK_(a, b, c, d, e, f, g, h, i, j, k, l, which, ...) which
#define TENSOR_LOSS_PICK4_(...)                                                                \
	TENSOR_LOSS_PICK_(__VA_ARGS__, GIVEN_, GIVEN_, GIVEN_, GIVEN_, GIVEN_, GIVEN_, GIVEN_, \
			  GIVEN_, DEFAULT_, 0)
#define TENSOR_LOSS_PICK3_(...)	  TENSOR_LOSS_PICK4_(0, __VA_ARGS__)
#define TENSOR_LOSS_PICK2_(...)	  TENSOR_LOSS_PICK4_(0, 0, __VA_ARGS__)
#define TENSOR_LOSS_OPTIONS_(...) ((struct tensor_loss_options){ __VA_ARGS__ })

#define TENSOR_LOSS2_DEFAULT_(call, x, y, none) \
	call(x, y, TENSOR_REDUCTION_MEAN, TENSOR_LOSS_OPTIONS_(none))
#define TENSOR_LOSS2_GIVEN_(call, x, y, reduction, ...) \
	call(x, y, reduction, TENSOR_LOSS_OPTIONS_(__VA_ARGS__))
#define TENSOR_LOSS3_DEFAULT_(call, x, y, z, none) \
	call(x, y, z, TENSOR_REDUCTION_MEAN, TENSOR_LOSS_OPTIONS_(none))
#define TENSOR_LOSS3_GIVEN_(call, x, y, z, reduction, ...) \
	call(x, y, z, reduction, TENSOR_LOSS_OPTIONS_(__VA_ARGS__))
#define TENSOR_LOSS4_DEFAULT_(call, x, y, m, n, none) \
	call(x, y, m, n, TENSOR_REDUCTION_MEAN, TENSOR_LOSS_OPTIONS_(none))
#define TENSOR_LOSS4_GIVEN_(call, x, y, m, n, reduction, ...) \
	call(x, y, m, n, reduction, TENSOR_LOSS_OPTIONS_(__VA_ARGS__))
#define TENSOR_LOSS2_(call, ...)                                      \
	TENSOR_PASTE_(TENSOR_LOSS2_, TENSOR_LOSS_PICK2_(__VA_ARGS__)) \
	(call, __VA_ARGS__, .reserved = 0)
#define TENSOR_LOSS3_(call, ...)                                      \
	TENSOR_PASTE_(TENSOR_LOSS3_, TENSOR_LOSS_PICK3_(__VA_ARGS__)) \
	(call, __VA_ARGS__, .reserved = 0)
#define TENSOR_LOSS4_(call, ...)                                      \
	TENSOR_PASTE_(TENSOR_LOSS4_, TENSOR_LOSS_PICK4_(__VA_ARGS__)) \
	(call, __VA_ARGS__, .reserved = 0)

#define tensor_loss_cross_entropy(...)	 TENSOR_LOSS2_(tensor_loss_cross_entropy_opt, __VA_ARGS__)
#define tensor_loss_nll(...)		 TENSOR_LOSS2_(tensor_loss_nll_opt, __VA_ARGS__)
#define tensor_loss_mse(...)		 TENSOR_LOSS2_(tensor_loss_mse_opt, __VA_ARGS__)
#define tensor_loss_l1(...)		 TENSOR_LOSS2_(tensor_loss_l1_opt, __VA_ARGS__)
#define tensor_loss_smooth_l1(...)	 TENSOR_LOSS2_(tensor_loss_smooth_l1_opt, __VA_ARGS__)
#define tensor_loss_huber(...)		 TENSOR_LOSS2_(tensor_loss_huber_opt, __VA_ARGS__)
#define tensor_loss_bce(...)		 TENSOR_LOSS2_(tensor_loss_bce_opt, __VA_ARGS__)
#define tensor_loss_bce_with_logits(...) TENSOR_LOSS2_(tensor_loss_bce_with_logits_opt, __VA_ARGS__)
#define tensor_loss_kl_div(...)		 TENSOR_LOSS2_(tensor_loss_kl_div_opt, __VA_ARGS__)
#define tensor_loss_hinge_embedding(...) TENSOR_LOSS2_(tensor_loss_hinge_embedding_opt, __VA_ARGS__)
#define tensor_loss_soft_margin(...)	 TENSOR_LOSS2_(tensor_loss_soft_margin_opt, __VA_ARGS__)
#define tensor_loss_margin_ranking(...)	 TENSOR_LOSS3_(tensor_loss_margin_ranking_opt, __VA_ARGS__)
#define tensor_loss_cosine_embedding(...) \
	TENSOR_LOSS3_(tensor_loss_cosine_embedding_opt, __VA_ARGS__)
#define tensor_loss_triplet_margin(...) TENSOR_LOSS3_(tensor_loss_triplet_margin_opt, __VA_ARGS__)
#define tensor_loss_ctc(...)		TENSOR_LOSS4_(tensor_loss_ctc_opt, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
