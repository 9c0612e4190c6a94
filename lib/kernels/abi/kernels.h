/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The C types of kernels: one function type for each family of operators. The kernels of all
 * backends have these types and are registered under the name of a kernel table in lib/schema/ops/.
 * `extern mm_kernel type_of_bmm;` states that of the table bmm: no object of this name exists, the
 * macros that register kernels compare types. Tables of pointwise operators need no such line.
 * Kernels return 0, or -errno with the error recorded. The op has checked shapes, dtypes and devices.
 */
#ifndef TENSOR_KERNELS_H
#define TENSOR_KERNELS_H

#include "dispatch/kernel_error.h"
#include "iter/iter.h"

/* The function `fn` as a kernel. Another C type than T does not compile. */
#define KERNEL_OF_TYPE(T, fn) _Generic(&fn, T : (tensor_kernel)fn)

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
extern pointwise_kernel type_of_arange, type_of_divide_counts, type_of_linspace;

/* Copies operand 1 to operand 0, with conversion between any two dtypes. */
typedef int (*copy_kernel)(struct tensor_iter *it, enum tensor_dtype to, enum tensor_dtype from);
extern copy_kernel type_of_copy;

/*
 * Reductions over the dimensions in `dims` (bit d: dimension d of self). out is a view with the
 * shape of self, in which these dimensions have size 1 and stride 0.
 */
typedef int (*reduce_kernel)(tensor *out, const tensor *self, uint32_t dims);
extern reduce_kernel type_of_all, type_of_any, type_of_count_nonzero, type_of_logsumexp,
	type_of_max_all, type_of_mean, type_of_min_all, type_of_nansum, type_of_prod, type_of_sum;
/* p is the correction of a variance, or the order of a norm. */
typedef int (*reduce_with_kernel)(tensor *out, const tensor *self, uint32_t dims, double p);
extern reduce_with_kernel type_of_norm, type_of_std, type_of_var;
/*
 * A reduction that also returns indices (i64): along the one reduced dimension, or in the flattened
 * tensor if dims has all dimensions of self, which is contiguous then. values may be NULL (argmax).
 * Lines are not empty; of equal elements the first is selected.
 */
typedef int (*reduce_index_kernel)(tensor *values, tensor *indices, const tensor *self,
				   uint32_t dims);
extern reduce_index_kernel type_of_argmax, type_of_argmin, type_of_max_dim, type_of_min_dim;

/*
 * Scans along a dimension. scan_kernel computes in the dtype of out; self may have another one.
 * scan_index_kernel also returns indices (i64); values have the dtype of self.
 */
typedef int (*scan_kernel)(tensor *out, const tensor *self, int dim);
extern scan_kernel type_of_cumprod, type_of_cumsum, type_of_logcumsumexp;
typedef int (*scan_index_kernel)(tensor *values, tensor *indices, const tensor *self, int dim);
extern scan_index_kernel type_of_cummax, type_of_cummin;

/*
 * sort: lines along dim in order; NaN last, or first if descending; stable. topk: the k greatest or
 * least elements of each line. select: the element of rank k of each line; outputs have size 1 and
 * stride 0 along dim.
 */
typedef int (*sort_kernel)(tensor *values, tensor *indices, const tensor *self, int dim,
			   bool descending);
extern sort_kernel type_of_sort;
typedef int (*topk_kernel)(tensor *values, tensor *indices, const tensor *self, int dim, int64_t k,
			   bool largest, bool sorted);
extern topk_kernel type_of_topk;
/* k is a rank from 0, or one of these: the lower median; SELECT_MEDIAN is NaN if an element is. */
enum select_rank { SELECT_MEDIAN = -1, SELECT_NANMEDIAN = -2 };
typedef int (*select_kernel)(tensor *values, tensor *indices, const tensor *self, int dim,
			     int64_t k);
extern select_kernel type_of_kthvalue, type_of_mode;

/*
 * mm: out[m, n] = beta * out + alpha * a[m, k] b[k, n], for any strides; beta 0 does not read out.
 * bmm: all three have a batch dimension in front. alpha and beta are results of scalar_operand().
 */
typedef int (*mm_kernel)(tensor *out, const tensor *a, const tensor *b, tensor_scalar alpha,
			 tensor_scalar beta);
extern mm_kernel type_of_bmm, type_of_mm;
/*
 * Products with a matrix b that many products read. mm_pack sets *packed to b as products of m rows read it, owned, or
 * to NULL if that gains nothing; mm_packed computes out = beta * out + a b, where out has contiguous rows.
 */
typedef int (*mm_pack_kernel)(const tensor *b, int64_t m, tensor **packed);
extern mm_pack_kernel type_of_mm_pack;
typedef int (*mm_packed_kernel)(tensor *out, const tensor *a, const tensor *b, const tensor *packed,
				double beta);
extern mm_packed_kernel type_of_mm_packed;
/* out (0-d) = the sum of a[i] b[i], or of conj(a[i]) b[i]. */
typedef int (*dot_kernel)(tensor *out, const tensor *a, const tensor *b, bool conjugate);
extern dot_kernel type_of_dot;

/* softmax and log_softmax along one dimension. output is the result of the forward. */
typedef int (*softmax_kernel)(tensor *out, const tensor *self, int dim);
extern softmax_kernel type_of_log_softmax, type_of_softmax;
typedef int (*softmax_backward_kernel)(tensor *out, const tensor *grad, const tensor *output,
				       int dim);
extern softmax_backward_kernel type_of_log_softmax_backward, type_of_softmax_backward;

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
extern nll_loss_kernel type_of_nll_loss;
typedef int (*nll_loss_backward_kernel)(tensor *out, const tensor *grad_output,
					const tensor *target, const tensor *weight,
					enum loss_reduction reduction, int64_t ignore_index,
					const tensor *total_weight);
extern nll_loss_backward_kernel type_of_nll_loss_backward;

/*
 * gather: out[i][j] = self[index[i][j]][j] for dim 0. index_select: out[.., i, ..] =
 * self[.., index[i], ..]. Kernels with an index fail with ERANGE if it is out of range.
 */
typedef int (*gather_kernel)(tensor *out, const tensor *self, int dim, const tensor *index);
extern gather_kernel type_of_gather, type_of_index_select;
/* index_add: out[.., index[i], ..] += alpha * source[.., i, ..], in order. op: as for scatter (index.h). */
typedef int (*index_add_kernel)(const char *op, tensor *out, int dim, const tensor *index,
				const tensor *source, double alpha);
extern index_add_kernel type_of_index_add;
/* scatter_add: out[index[i][j]][j] += source[i][j] for dim 0. */
typedef int (*scatter_add_kernel)(const char *op, tensor *out, int dim, const tensor *index,
				  const tensor *source);
extern scatter_add_kernel type_of_scatter_add;

/*
 * Normalization. All tensors are contiguous and of one dtype, f32 or f64; on CUDA x, out, grad and dx may be f16 or bf16,
 * and the others f32; on a CPU x and out of layer_norm. A question mark means that a tensor may be NULL. Layers: x and out are
 * [rows, n], weight? and bias? [n], mean and rstd [rows].
 */
typedef int (*layer_norm_kernel)(tensor *out, tensor *mean, tensor *rstd, const tensor *x,
				 const tensor *weight, const tensor *bias, double eps);
extern layer_norm_kernel type_of_layer_norm;
/* dx?, dweight? and dbias? are computed unless they are NULL. */
typedef int (*layer_norm_backward_kernel)(tensor *dx, tensor *dweight, tensor *dbias,
					  const tensor *grad, const tensor *x, const tensor *mean,
					  const tensor *rstd, const tensor *weight);
extern layer_norm_backward_kernel type_of_layer_norm_backward;
/*
 * Groups of channels: x and out are [n, groups, channels, inner], weight? and bias? [groups, channels],
 * mean and rstd [n, groups]. On a CPU x, out, grad and dx may be f16 or bf16, and the others f32.
 */
typedef int (*group_norm_kernel)(tensor *out, tensor *mean, tensor *rstd, const tensor *x,
				 const tensor *weight, const tensor *bias, double eps);
extern group_norm_kernel type_of_group_norm;
typedef int (*group_norm_backward_kernel)(tensor *dx, tensor *dweight, tensor *dbias,
					  const tensor *grad, const tensor *x, const tensor *mean,
					  const tensor *rstd, const tensor *weight);
extern group_norm_backward_kernel type_of_group_norm_backward;

#endif
