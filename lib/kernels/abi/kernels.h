/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The C types of kernels: one function type for each family of operators. The kernels of all
 * backends have these types and are registered under the name of a kernel table in lib/schema/ops/.
 * They return 0, or -errno with the error recorded. The op has checked shapes, dtypes and devices.
 */
#ifndef TENSOR_KERNELS_H
#define TENSOR_KERNELS_H

#include "iter/iter.h"

/*
 * Elementwise. it->dtype is the dtype of the inputs; the schema gives the rule for that of the
 * output.
 */
struct pointwise_params {
	tensor_scalar a; /* for example alpha, a fill value, a start */
	tensor_scalar b; /* for example a step */
	tensor_scalar c; /* for example the third parameter of an activation */
};
typedef int (*pointwise_kernel)(struct tensor_iter *it, const struct pointwise_params *params);

/* Copies operand 1 to operand 0, with conversion between any two dtypes. */
typedef int (*copy_kernel)(struct tensor_iter *it, enum tensor_dtype to, enum tensor_dtype from);

/*
 * Reductions over the dimensions in `dims` (bit d: dimension d of self). out is a view with the
 * shape of self, in which these dimensions have size 1 and stride 0.
 */
typedef int (*reduce_kernel)(tensor *out, const tensor *self, uint32_t dims);
/* p is the correction of a variance, or the order of a norm. */
typedef int (*reduce_with_kernel)(tensor *out, const tensor *self, uint32_t dims, double p);
/*
 * A reduction that also returns indices (i64): along the one reduced dimension, or in the flattened
 * tensor if dims has all dimensions of self, which is contiguous then. values may be NULL (argmax).
 * Lines are not empty; of equal elements the first is selected.
 */
typedef int (*reduce_index_kernel)(tensor *values, tensor *indices, const tensor *self,
				   uint32_t dims);

/*
 * Scans along a dimension. scan_kernel computes in the dtype of out; self may have another one.
 * scan_index_kernel also returns indices (i64); values have the dtype of self.
 */
typedef int (*scan_kernel)(tensor *out, const tensor *self, int dim);
typedef int (*scan_index_kernel)(tensor *values, tensor *indices, const tensor *self, int dim);

/*
 * sort: lines along dim in order; NaN last, or first if descending; stable. topk: the k greatest or
 * least elements of each line. select: the element of rank k of each line; outputs have size 1 and
 * stride 0 along dim.
 */
typedef int (*sort_kernel)(tensor *values, tensor *indices, const tensor *self, int dim,
			   bool descending);
typedef int (*topk_kernel)(tensor *values, tensor *indices, const tensor *self, int dim, int64_t k,
			   bool largest, bool sorted);
/* k is a rank from 0, or one of these: the lower median; SELECT_MEDIAN is NaN if an element is. */
enum select_rank { SELECT_MEDIAN = -1, SELECT_NANMEDIAN = -2 };
typedef int (*select_kernel)(tensor *values, tensor *indices, const tensor *self, int dim,
			     int64_t k);

/*
 * mm: out[m, n] = beta * out + alpha * a[m, k] b[k, n], for any strides; beta 0 does not read out.
 * bmm: all three have a batch dimension in front. alpha and beta are results of scalar_operand().
 */
typedef int (*mm_kernel)(tensor *out, const tensor *a, const tensor *b, tensor_scalar alpha,
			 tensor_scalar beta);
/* out (0-d) = the sum of a[i] b[i], or of conj(a[i]) b[i]. */
typedef int (*dot_kernel)(tensor *out, const tensor *a, const tensor *b, bool conjugate);

/* softmax and log_softmax along one dimension. output is the result of the forward. */
typedef int (*softmax_kernel)(tensor *out, const tensor *self, int dim);
typedef int (*softmax_backward_kernel)(tensor *out, const tensor *grad, const tensor *output,
				       int dim);

/*
 * Losses over classes: self [n, c] or [c], target i64 [n] or 0-d, weight [c] of self's dtype or
 * NULL. output is [n] for LOSS_NONE with a batch, else 0-d. total_weight, 0-d, is the
 * sum of the weights of all targets, 0 for LOSS_NONE with a batch. Fails with EINVAL if a target is
 * neither a class nor ignore_index. The backward writes all elements of out, which has the shape of
 * self.
 */
enum loss_reduction { LOSS_NONE, LOSS_MEAN, LOSS_SUM };
typedef int (*nll_loss_kernel)(tensor *output, tensor *total_weight, const tensor *self,
			       const tensor *target, const tensor *weight,
			       enum loss_reduction reduction, int64_t ignore_index);
typedef int (*nll_loss_backward_kernel)(tensor *out, const tensor *grad_output,
					const tensor *target, const tensor *weight,
					enum loss_reduction reduction, int64_t ignore_index,
					const tensor *total_weight);

/*
 * gather: out[i][j] = self[index[i][j]][j] for dim 0. index_select: out[.., i, ..] =
 * self[.., index[i], ..]. Kernels with an index fail with EINVAL if it is out of range.
 */
typedef int (*gather_kernel)(tensor *out, const tensor *self, int dim, const tensor *index);
/* index_add: out[.., index[i], ..] += alpha * source[.., i, ..], in order. */
typedef int (*index_add_kernel)(tensor *out, int dim, const tensor *index, const tensor *source,
				double alpha);
/* scatter_add: out[index[i][j]][j] += source[i][j] for dim 0. */
typedef int (*scatter_add_kernel)(tensor *out, int dim, const tensor *index, const tensor *source);

/*
 * Normalization. All tensors are contiguous and of one dtype, f32 or f64; a question mark means
 * that a tensor may be NULL. Layers: x and out are [rows, n], weight? and bias? [n], mean and rstd
 * [rows].
 */
typedef int (*layer_norm_kernel)(tensor *out, tensor *mean, tensor *rstd, const tensor *x,
				 const tensor *weight, const tensor *bias, double eps);
/* dx?, dweight? and dbias? are computed unless they are NULL. */
typedef int (*layer_norm_backward_kernel)(tensor *dx, tensor *dweight, tensor *dbias,
					  const tensor *grad, const tensor *x, const tensor *mean,
					  const tensor *rstd, const tensor *weight);
/*
 * Groups of channels: x and out are [n, groups, channels, inner], weight? and bias?
 * [groups, channels], mean and rstd [n, groups].
 */
typedef int (*group_norm_kernel)(tensor *out, tensor *mean, tensor *rstd, const tensor *x,
				 const tensor *weight, const tensor *bias, double eps);
typedef int (*group_norm_backward_kernel)(tensor *dx, tensor *dweight, tensor *dbias,
					  const tensor *grad, const tensor *x, const tensor *mean,
					  const tensor *rstd, const tensor *weight);

/* Errors that every backend words alike. */
int kernel_no_dtype(const char *name, enum tensor_dtype dtype, const char *backend)
	__attribute__((cold));

#endif
