/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Functions that the formulas in lib/schema/derivatives call in addition to operators. All are
 * composed of operators, so that a recorded backward can be differentiated again. Results belong to
 * the open scope. A NULL argument gives NULL.
 */
#ifndef TENSOR_AUTOGRAD_FORMULAS_H
#define TENSOR_AUTOGRAD_FORMULAS_H

#include "autograd/graph/record.h"
#include "autograd/formulas/index.h"

#include <math.h>

#include "autograd/formulas/linalg.h"
#include "autograd/formulas/pointwise.h"

/*
 * The backward is recorded or propagates tangents: a formula must consist of differentiable operators on what has a
 * derivative, also if one kernel could compute it from further results of the forward.
 */
static inline bool formula_is_differentiated(void)
{
	const struct thread_modes *m = &thread()->modes;

	return m->grad_enabled || (m->dual_gradients && !(m->exclude & FORWARD_BIT));
}

/* Fails with EOPNOTSUPP: the operator is not differentiable. */
tensor *formula_no_derivative(const char *op);
tensor_scalar formula_scalar(double v);
/* k * grad; grad itself if k is 1. */
tensor *formula_scale(tensor *grad, tensor_scalar k);

/*
 * True if a formula of grad and other that reads grad once may compute its result in it: the gradient is not recorded,
 * nothing but the engine refers to its memory, and both are dense tensors of one dtype without samples and tangents.
 */
bool formula_may_overwrite(const tensor *grad, const tensor *other);
/* The gradients of softmax and gelu, computed in grad where that is possible. */
tensor *formula_softmax_backward(tensor *grad, tensor *result, int64_t dim);
tensor *formula_gelu_backward(tensor *grad, tensor *self, const char *approximate);

/*
 * alpha mat1^T grad. For a transposed mat2 (the weight of a linear layer) the gradient is transposed too, so that the
 * weight's gradient is contiguous and can be kept without a copy. If earlier gradients of mat2, the argument of edge
 * `edge`, were summed, the product is added to the sum, which is returned: a recurrent layer has one for each step.
 */
tensor *mm_mat2_backward(tensor *mat1, tensor *grad, tensor_ints mat2_strides, tensor_scalar alpha,
			 unsigned edge);
/* The gradient of the activation's argument beta * self + alpha * mat1 mat2, which is computed again. */
tensor *addmm_pointwise_backward(tensor *grad, tensor *self, tensor *mat1, tensor *mat2,
				 const char *activation, tensor_scalar beta, tensor_scalar alpha);
/* Complex conjugate; t itself if it is real. */
tensor *formula_conj(tensor *t);
tensor_scalar formula_conj_scalar(tensor_scalar s);
/* Conjugate transpose of the last two dimensions. */
tensor *formula_adjoint(tensor *t);
/* 1 - 2t */
tensor *formula_one_minus_twice(tensor *t);
/* Zeros of these sizes with grad's dtype and device. */
tensor *formula_zeros_for(tensor *grad, tensor_ints sizes);
/* t reversed along dim. */
tensor *formula_flip(tensor *t, int64_t dim);
/* True if an element is 0, or if it cannot be determined. */
bool formula_has_zero(tensor *t);
/* grad where condition == keep, else 0. */
tensor *where_backward(tensor *grad, tensor *condition, bool keep);

tensor *select_backward(tensor *grad, tensor_ints sizes, int64_t dim, int64_t index);
tensor *slice_backward(tensor *grad, tensor_ints sizes, int64_t dim, int64_t start, int64_t end,
		       int64_t step);
tensor *permute_backward(tensor *grad, tensor_ints dims);
tensor *diagonal_backward(tensor *grad, tensor_ints sizes, int64_t offset, int64_t dim1,
			  int64_t dim2);
tensor *as_strided_backward(tensor *grad, tensor_ints self_sizes, tensor_ints self_strides,
			    int64_t self_offset, tensor_ints sizes, tensor_ints strides,
			    int64_t offset);

/* Sum over dim, which is kept with size 1. */
tensor *formula_sum_dim(tensor *t, int64_t dim);
tensor *sum_backward(tensor *grad, tensor_ints sizes, tensor_ints dim, bool keepdim);
tensor *mean_backward(tensor *grad, tensor_ints sizes, tensor_ints dim, bool keepdim);
tensor *max_backward(tensor *grad, tensor *self, tensor *result);
tensor *max_dim_backward(tensor *grad, tensor_ints sizes, tensor *indices, int64_t dim,
			 bool keepdim);

/* reduce.c. grads: of two results, each may be NULL. */
tensor *formula_restore_dims(tensor *t, tensor_ints sizes, tensor_ints dim, bool keepdim);
tensor *nansum_backward(tensor *grad, tensor *self, tensor_ints dim, bool keepdim);
tensor *amax_backward(tensor *grad, tensor *self, tensor *result, tensor_ints dim, bool keepdim);
tensor *aminmax_backward(tensor *const *grads, tensor *self, tensor *min, tensor *max, int64_t dim,
			 bool keepdim);
tensor *prod_backward(tensor *grad, tensor *self, tensor *result);
tensor *prod_dim_backward(tensor *grad, tensor *self, tensor *result, int64_t dim, bool keepdim);
tensor *var_backward(tensor *grad, tensor *self, tensor_ints dim, tensor_scalar correction,
		     bool keepdim);
tensor *std_backward(tensor *grad, tensor *self, tensor *result, tensor_ints dim,
		     tensor_scalar correction, bool keepdim);
/* std: the first result if it is a standard deviation, else NULL. */
tensor *var_mean_backward(tensor *const *grads, tensor *self, tensor *std, tensor_ints dim,
			  tensor_scalar correction, bool keepdim);
tensor *logsumexp_backward(tensor *grad, tensor *self, tensor *result, tensor_ints dim,
			   bool keepdim);
tensor *vector_norm_backward(tensor *grad, tensor *self, tensor *result, tensor_scalar ord,
			     tensor_ints dim, bool keepdim);

/* distance.c */
tensor *formula_cdist_backward(tensor *grad, tensor *x1, tensor *x2, double p, tensor *cdist);
tensor *formula_pdist_backward(tensor *grad, tensor *self, double p, tensor *pdist);

/* scan.c */
tensor *cumsum_backward(tensor *grad, int64_t dim);
tensor *cumprod_backward(tensor *grad, tensor *self, tensor *result, int64_t dim);
tensor *logcumsumexp_backward(tensor *grad, tensor *self, tensor *result, int64_t dim);
tensor *cummax_backward(tensor *grad, tensor_ints sizes, tensor *indices, int64_t dim);
/* Gradient of self in gather(self, dim, indices). */
tensor *gathered_backward(tensor *grad, tensor_ints sizes, tensor *indices, int64_t dim);

/* eigh.c */
tensor *eigh_backward(tensor *const *grads, tensor *w, tensor *v);

tensor *softmax_double_backward(tensor *grad, tensor *grad_output, tensor *output, int64_t dim);
tensor *log_softmax_double_backward(tensor *grad, tensor *output, int64_t dim);

/* Substitute for an argument of which only the shape is used: one element of like's dtype,
 * expanded. */
tensor *formula_shape_only(tensor *like, tensor_ints sizes);
tensor_ints formula_last_sizes(tensor_ints sizes, int64_t n);
tensor *max_pool_double_backward(tensor *grad, tensor *indices, int64_t n);

/* grid.c: result number `part` of tensor_grid_sampler_2d_backward(). */
tensor *formula_grid_sampler_part(tensor *grad, tensor *input, tensor *grid, int64_t mode,
				  int64_t padding, bool align_corners, int part);

/* Results of tensor_convolution_backward(); a NULL tensor gives tensor_none. */
tensor *conv_input_backward(tensor *grad, tensor_ints input_sizes, tensor *weight,
			    tensor_ints stride, tensor_ints padding, tensor_ints dilation,
			    bool transposed, tensor_ints output_padding, int64_t groups);
tensor *conv_weight_backward(tensor *grad, tensor *input, tensor_ints weight_sizes,
			     tensor_ints stride, tensor_ints padding, tensor_ints dilation,
			     bool transposed, tensor_ints output_padding, int64_t groups);
tensor *conv_bias_backward(tensor *grad);
/* Gradient with respect to grad_output (of these sizes), from the gradients of the three results.
 */
tensor *conv_double_backward(tensor *const *grads, tensor_ints sizes, tensor *input, tensor *weight,
			     tensor_ints stride, tensor_ints padding, tensor_ints dilation,
			     bool transposed, tensor_ints output_padding, int64_t groups);

/* The factor applied by native_dropout; train is TENSOR_NONE if not given. */
double formula_dropout_scale(double p, int64_t train);

int lstm_layer_backward(tensor **out, tensor *const *grads, tensor_list inputs, tensor *output,
			tensor *cells, tensor *activated, bool reverse);
tensor *attention_mask_backward(tensor *const *grads, tensor *attn_mask, tensor_list inputs,
				bool is_causal, double scale);
int attention_backward(tensor **out, tensor *const *grads, tensor *attn_mask, tensor_list inputs,
		       tensor *output, tensor *logsumexp, bool is_causal, double scale);
int cat_backward(tensor **out, tensor *grad, tensor_ints lengths, int64_t dim);

/*
 * Set by lib/autograd/vjp.c: the gradient of input `part` of fn from the gradients of its n results; NULL with the error
 * set. grads[i]:
 * NULL or tensor_none for zero. fn, of differentiable operators, returns 0, or -1 with the error set. The result can be
 * differentiated again if the caller is recorded.
 */
typedef int (*formula_composed)(tensor *const *in, tensor **out, const void *ctx);
extern tensor *(*formula_vjp)(formula_composed fn, const void *ctx, tensor_list in,
			      tensor *const *grads, int n, int part);
/* The gradients of all inputs, written to out[in.len]: tensor_none for zero. 0, or -errno. */
extern int (*formula_vjp_all)(formula_composed fn, const void *ctx, tensor_list in,
			      tensor *const *grads, int n, tensor **out);

/* Second derivatives: the gradient of argument `part` of a backward operator from the gradients of its results. */
tensor *layer_norm_double_backward(tensor *const *grads, tensor *grad_out, tensor *input,
				   tensor_ints normalized_shape, tensor *rstd, tensor *weight,
				   int part);
tensor *group_norm_double_backward(tensor *const *grads, tensor *grad_out, tensor *input,
				   tensor *rstd, tensor *weight, int64_t N, int64_t C, int64_t HxW,
				   int64_t group, int part);
tensor *batch_norm_double_backward(tensor *const *grads, tensor *grad_out, tensor *input,
				   tensor *weight, tensor *running_mean, tensor *running_var,
				   bool training, double eps, int part);
tensor *cdist_double_backward(tensor *grad, tensor *grad_output, tensor *x1, tensor *x2, double p,
			      tensor *cdist, int part);
tensor *pdist_double_backward(tensor *grad, tensor *grad_output, tensor *self, double p,
			      tensor *pdist, int part);
tensor *grid_sampler_double_backward(tensor *const *grads, tensor *grad_output, tensor *input,
				     tensor *grid, int64_t mode, int64_t padding,
				     bool align_corners, int part);

/* Fails: the backward operator is not differentiable itself. */
tensor *formula_not_again(const char *op);
tensor *fft_r2c_backward(tensor *grad, tensor_ints sizes, tensor_ints dim, int64_t normalization,
			 bool onesided);
tensor *fft_c2r_backward(tensor *grad, tensor_ints dim, int64_t normalization);
tensor *batch_norm_input_backward(tensor *grad, tensor *input, tensor *weight, tensor *running_mean,
				  tensor *running_var, tensor *save_mean, tensor *save_invstd,
				  bool training, double eps);
tensor *batch_norm_weight_backward(tensor *grad, tensor *input, tensor *weight,
				   tensor *running_mean, tensor *running_var, tensor *save_mean,
				   tensor *save_invstd, bool training, double eps);
tensor *channel_bias_backward(tensor *grad);
tensor *bce_target_backward(tensor *grad, tensor *self, tensor *target, tensor *weight,
			    int64_t reduction);
tensor *embedding_weight_backward(tensor *grad, tensor *indices, tensor_ints sizes,
				  int64_t padding_idx, bool by_frequency);
tensor *embedding_double_backward(tensor *grad, tensor *indices, int64_t padding_idx,
				  bool by_frequency);
tensor *layer_norm_input_backward(tensor *grad, tensor *input, tensor_ints normalized_shape,
				  tensor *mean, tensor *rstd, tensor *weight, double eps);
tensor *layer_norm_weight_backward(tensor *grad, tensor *input, tensor_ints normalized_shape,
				   tensor *mean, tensor *rstd, tensor *weight, double eps);
tensor *group_norm_input_backward(tensor *grad, tensor *input, tensor *mean, tensor *rstd,
				  tensor *weight, int64_t N, int64_t C, int64_t HxW, int64_t group,
				  double eps);
tensor *layer_norm_bias_backward(tensor *grad, tensor_ints normalized_shape);
tensor *group_norm_weight_backward(tensor *grad, tensor *input, tensor *mean, tensor *rstd,
				   tensor *weight, int64_t N, int64_t C, int64_t HxW, int64_t group,
				   double eps);

/* Sparse tensor with self's indices and these values. */
tensor *formula_sparse_like(tensor *self, tensor *values);
/* Gradient of to_dense: sparse if self is. */
tensor *to_dense_backward(tensor *grad, tensor *self);

/* blocked.c. Dense copy of a blocked tensor; any other, and NULL, unchanged. */
tensor *formula_to_strided(tensor *t);
tensor *blocked_linear_input(tensor *grad, tensor *weight);
tensor *blocked_linear_weight(tensor *grad, tensor *self);
tensor *blocked_linear_bias(tensor *grad);
tensor *blocked_max_pool_backward(tensor *grad, tensor *self, tensor_ints kernel_size,
				  tensor_ints stride, tensor_ints padding, tensor_ints dilation,
				  bool ceil_mode, int spatial);

/* For generated out= functions: error if an argument requires a gradient. */
int formula_check_out(const struct tensor_thread *th, const char *op, const char *name,
		      const tensor *t);

#endif
