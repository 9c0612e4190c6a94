/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What a front hands to a backend's kernel: one function type for each family of operators.
 * Kernels of all backends have these types and register under the name of `loop:` in lib/schema/ops/.
 * All return 0 or -errno with the error set; shapes, dtypes and devices have been checked.
 */
#ifndef TENSOR_KERNELS_H
#define TENSOR_KERNELS_H

#include "dispatch/kernel_error.h"
#include "iter/iter.h"

/* Elementwise. it->dtype is the inputs' dtype; the output's follows from the rule in its declaration. */
struct pointwise_params {
	tensor_scalar a; /* alpha, a fill value, a start */
	tensor_scalar b; /* a second number: a step */
	tensor_scalar c; /* a third: an activation's shape */
};
typedef int (*pointwise_kernel)(struct tensor_iter *it, const struct pointwise_params *params);

/* Any dtype to any dtype, operand 1 to operand 0. */
typedef int (*copy_kernel)(struct tensor_iter *it, enum tensor_dtype to, enum tensor_dtype from);

/*
 * Reductions over the dimensions in `dims` (bit d: dimension d of self). out has self's shape
 * with those dimensions of size 1 and stride 0 (a view made by the front), dtype by the rule.
 */
typedef int (*reduce_kernel)(tensor *out, const tensor *self, uint32_t dims);
/* With a number: the correction of a variance, the order of a norm. */
typedef int (*reduce_with_kernel)(tensor *out, const tensor *self, uint32_t dims, double p);
/* The same with a second output, i64: positions along the one reduced dimension, or in the
 * flattened tensor when dims covers all of a (then contiguous) self. values may be NULL (argmax
 * alone). There is at least one element to choose from; of equal ones the first is meant. */
typedef int (*reduce_index_kernel)(tensor *values, tensor *indices, const tensor *self,
				   uint32_t dims);

/* Scans along a dimension, in the dtype of out, from any other; the same with i64 positions of
 * values of self's dtype. */
typedef int (*scan_kernel)(tensor *out, const tensor *self, int dim);
typedef int (*scan_index_kernel)(tensor *values, tensor *indices, const tensor *self, int dim);

/* Lines along dim in order, NaN last (first when descending), equal elements as they were; the k
 * greatest or least of each line; one of each line, where outputs have size 1 and stride 0. */
typedef int (*sort_kernel)(tensor *values, tensor *indices, const tensor *self, int dim,
			   bool descending);
typedef int (*topk_kernel)(tensor *values, tensor *indices, const tensor *self, int dim, int64_t k,
			   bool largest, bool sorted);
/* k: a rank from 0, or one of these. Of the medians the lower; NaN if there is one. */
enum select_rank { SELECT_MEDIAN = -1, SELECT_NANMEDIAN = -2 };
typedef int (*select_kernel)(tensor *values, tensor *indices, const tensor *self, int dim,
			     int64_t k);

/* out[m, n] = beta * out + alpha * a[m, k] b[k, n]; any strides; beta 0 ignores out's content.
 * bmm: all three have one more dimension in front. alpha and beta as from scalar_operand(). */
typedef int (*mm_kernel)(tensor *out, const tensor *a, const tensor *b, tensor_scalar alpha,
			 tensor_scalar beta);
/* out (0-d) = the sum of a[i] b[i], or of conj(a[i]) b[i]. */
typedef int (*dot_kernel)(tensor *out, const tensor *a, const tensor *b, bool conjugate);

/* Along one dimension. grad and output forms are those of the *_backward operators. */
typedef int (*softmax_kernel)(tensor *out, const tensor *self, int dim);
typedef int (*softmax_backward_kernel)(tensor *out, const tensor *grad, const tensor *output,
				       int dim);

/*
 * Losses over classes: self [n, c] or [c], target i64 [n] or 0-d, weight [c] of self's dtype or
 * NULL. reduction as in enum loss_reduction. output is [n] for none with a batch, else 0-d;
 * total_weight is 0-d: the sum of the weights that counted, 0 for none with a batch. EINVAL for a
 * target that is neither a class nor ignore_index. out of the backward has self's shape and gets
 * all its elements written.
 */
enum loss_reduction { LOSS_NONE, LOSS_MEAN, LOSS_SUM };
typedef int (*nll_loss_kernel)(tensor *output, tensor *total_weight, const tensor *self,
			       const tensor *target, const tensor *weight,
			       enum loss_reduction reduction, int64_t ignore_index);
typedef int (*nll_loss_backward_kernel)(tensor *out, const tensor *grad_output,
					const tensor *target, const tensor *weight,
					enum loss_reduction reduction, int64_t ignore_index,
					const tensor *total_weight);

/* gather: out[i][j] = self[index[i][j]][j] for dim 0; index_select: out[.., i, ..] =
 * self[.., index[i], ..]. EINVAL for an index out of range, also in those that follow. */
typedef int (*gather_kernel)(tensor *out, const tensor *self, int dim, const tensor *index);
/* index_add: out[.., index[i], ..] += alpha * source[.., i, ..], in order. */
typedef int (*index_add_kernel)(tensor *out, int dim, const tensor *index, const tensor *source,
				double alpha);
/* scatter_add: out[index[i][j]][j] += source[i][j] for dim 0. */
typedef int (*scatter_add_kernel)(tensor *out, int dim, const tensor *index, const tensor *source);

/*
 * Normalization. All tensors are contiguous and of one dtype, f32 or f64; those that may be NULL
 * are marked so. For a layer: x and out are [rows, n], weight? and bias? [n], mean and rstd [rows].
 */
typedef int (*layer_norm_kernel)(tensor *out, tensor *mean, tensor *rstd, const tensor *x,
				 const tensor *weight, const tensor *bias, double eps);
/* dx?, dweight? and dbias? are what is wanted. */
typedef int (*layer_norm_backward_kernel)(tensor *dx, tensor *dweight, tensor *dbias,
					  const tensor *grad, const tensor *x, const tensor *mean,
					  const tensor *rstd, const tensor *weight);
/* For groups of channels: x and out are [n, groups, channels, inner], weight? and bias?
 * [groups, channels], mean and rstd [n, groups]. */
typedef int (*group_norm_kernel)(tensor *out, tensor *mean, tensor *rstd, const tensor *x,
				 const tensor *weight, const tensor *bias, double eps);
typedef int (*group_norm_backward_kernel)(tensor *dx, tensor *dweight, tensor *dbias,
					  const tensor *grad, const tensor *x, const tensor *mean,
					  const tensor *rstd, const tensor *weight);

#endif
