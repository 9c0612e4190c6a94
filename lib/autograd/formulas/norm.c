// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Formulas of normalizations. If the backward is recorded (create_graph), it is composed of
 * operators on the input, statistics included, and can be differentiated any number of times;
 * otherwise one kernel computes it.
 */
#include "autograd/formulas/formulas.h"

#include "family/batch_norm.h"
#include "family/binary.h"
#include "family/copy.h"
#include "family/norm.h"
#include "family/pointwise.h"
#include "family/reduce.h"
#include "family/ternary.h"
#include "family/unary.h"
#include "family/view.h"

tensor *formula_not_again(const char *op)
{
	return tensor_fail_null(EOPNOTSUPP,
				"%s: has no derivative of its own; differentiate the "
				"forward operator with create_graph",
				op);
}

/* The number that is added to the variance or, if rstd is given, what was added to get it. */
struct epsilon {
	double value;
	tensor *rstd;
};

static tensor *add_epsilon(tensor *variance, struct epsilon eps)
{
	tensor *sum;

	if (!eps.rstd)
		return tensor_add_scalar(variance, formula_scalar(eps.value));
	sum = tensor_pow_scalar(eps.rstd, formula_scalar(-2));
	return tensor_add(variance, tensor_detach(tensor_sub(sum, variance)));
}

/* x normalized along `dims`; *rstd is the factor. */
static tensor *normalized(tensor *x, tensor_ints dims, struct epsilon eps, tensor **rstd)
{
	tensor *centred = tensor_sub(x, tensor_mean_dim(x, dims, true));
	tensor *variance = tensor_mean_dim(tensor_mul(centred, centred), dims, true);

	*rstd = tensor_rsqrt(add_epsilon(variance, eps));
	return tensor_mul(centred, *rstd);
}

/* rstd (g - mean(g) - x^ mean(g x^)) */
static tensor *centred_gradient(tensor *g, tensor *x, tensor_ints dims, struct epsilon eps)
{
	tensor *rstd, *hat = normalized(x, dims, eps, &rstd);
	tensor *along = tensor_mul(hat, tensor_mean_dim(tensor_mul(g, hat), dims, true));

	return tensor_mul(tensor_sub(tensor_sub(g, tensor_mean_dim(g, dims, true)), along), rstd);
}

static tensor *given(tensor *t)
{
	return t == tensor_none ? NULL : t;
}

/* Convert to f32, in which reduced floats are computed, and back. */
static tensor *as_dtype(tensor *t, enum tensor_dtype dtype)
{
	return tensor_to(t, TENSOR_OPTIONS(.dtype = dtype));
}

/* ---- layer_norm ---- */

static tensor_ints last_dims(int64_t *dims, const tensor *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		dims[i] = x->ndim - n + i;
	return (tensor_ints){ dims, n };
}

static tensor *layer_dx(tensor *grad, tensor *input, tensor_ints shape, tensor *weight,
			struct epsilon eps)
{
	enum tensor_dtype wide = dtype_wide(input->dtype);
	int64_t dims[TENSOR_MAX_DIMS];
	tensor *dx;

	grad = as_dtype(grad, wide);
	if (given(weight))
		grad = tensor_mul(grad, weight);
	dx = centred_gradient(grad, as_dtype(input, wide), last_dims(dims, input, shape.len), eps);
	return as_dtype(dx, input->dtype);
}

/* The summands of the weight's gradient. */
static tensor *layer_dweight(tensor *grad, tensor *input, tensor_ints shape, struct epsilon eps)
{
	enum tensor_dtype wide = dtype_wide(input->dtype);
	int64_t dims[TENSOR_MAX_DIMS];
	tensor *scale;

	return tensor_mul(as_dtype(grad, wide),
			  normalized(as_dtype(input, wide), last_dims(dims, input, shape.len), eps,
				     &scale));
}

tensor *layer_norm_input_backward(tensor *grad, tensor *input, tensor_ints normalized_shape,
				  tensor *mean, tensor *rstd, tensor *weight, double eps)
{
	tensor *dx, *none[2];

	if (!formula_is_differentiated())
		return tensor_native_layer_norm_backward(grad, input, normalized_shape, mean, rstd,
							 weight, tensor_none, 1, &dx, &none[0],
							 &none[1]) < 0 ?
			       NULL :
			       dx;
	return layer_dx(grad, input, normalized_shape, weight, (struct epsilon){ eps, NULL });
}

tensor *layer_norm_weight_backward(tensor *grad, tensor *input, tensor_ints normalized_shape,
				   tensor *mean, tensor *rstd, tensor *weight, double eps)
{
	tensor *dweight, *none[2];

	if (!formula_is_differentiated())
		return tensor_native_layer_norm_backward(grad, input, normalized_shape, mean, rstd,
							 weight, tensor_none, 2, &none[0], &dweight,
							 &none[1]) < 0 ?
			       NULL :
			       dweight;
	return layer_dweight(grad, input, normalized_shape, (struct epsilon){ eps, NULL });
}

/*
 * Sums of a reduced float stay in f32, which may be the dtype of the bias: the engine converts them to that dtype.
 * grad itself if there are no dimensions to sum.
 */
static tensor *wide_sum(tensor *grad, tensor_ints dims)
{
	return dims.len ? tensor_sum_dim_opt(grad, dims, false, dtype_wide(grad->dtype)) : grad;
}

tensor *layer_norm_bias_backward(tensor *grad, tensor_ints normalized_shape)
{
	int64_t dims[TENSOR_MAX_DIMS], n = grad->ndim - normalized_shape.len;

	for (int64_t i = 0; i < n; i++)
		dims[i] = i;
	return wide_sum(grad, (tensor_ints){ dims, n });
}

/* The arguments of a backward operator that are no inputs of its derivative. */
struct layer_args {
	tensor_ints shape;
	tensor *rstd;
};

/* native_layer_norm_backward of grad_out, input and weight. */
static int layer_composed(tensor *const *in, tensor **out, const void *ctx)
{
	const struct layer_args *a = ctx;
	const struct epsilon eps = { 0, a->rstd };
	int64_t dims[TENSOR_MAX_DIMS], n = in[1]->ndim - a->shape.len;

	for (int64_t i = 0; i < n; i++)
		dims[i] = i;
	out[0] = layer_dx(in[0], in[1], a->shape, in[2], eps);
	out[1] = layer_dweight(in[0], in[1], a->shape, eps);
	out[2] = in[0];
	for (int i = 1; i < 3 && n; i++)
		out[i] = tensor_sum_dim(out[i], (tensor_ints){ dims, n }, false);
	return out[0] && out[1] && out[2] ? 0 : -1;
}

tensor *layer_norm_double_backward(tensor *const *grads, tensor *grad_out, tensor *input,
				   tensor_ints normalized_shape, tensor *rstd, tensor *weight,
				   int part)
{
	const struct layer_args args = { normalized_shape, rstd };

	return formula_vjp(layer_composed, &args, TENSOR_LIST(grad_out, input, weight), grads, 3,
			   part);
}

/* ---- group_norm ---- */

/* Sets dims to all dimensions but the second. */
static tensor_ints but_channels(int64_t *dims, const tensor *t)
{
	int64_t n = 0;

	for (int i = 0; i < t->ndim; i++)
		if (i != 1)
			dims[n++] = i;
	return (tensor_ints){ dims, n };
}

static tensor *sum_channels(tensor *grad)
{
	int64_t dims[TENSOR_MAX_DIMS];

	return grad ? tensor_sum_dim(grad, but_channels(dims, grad), false) : NULL;
}

tensor *channel_bias_backward(tensor *grad)
{
	int64_t dims[TENSOR_MAX_DIMS];

	return wide_sum(grad, but_channels(dims, grad));
}

/* The sizes of a group norm. */
struct group_args {
	int64_t n, c, inner, groups;
	tensor *rstd;
};

#define GROUPED(a) TENSOR_INTS((a)->n, (a)->groups, (a)->c / (a)->groups, (a)->inner)

static tensor *group_dx(tensor *grad, tensor *input, tensor *weight, const struct group_args *a,
			struct epsilon eps)
{
	enum tensor_dtype wide = dtype_wide(input->dtype);
	tensor *dx;

	grad = tensor_reshape(as_dtype(grad, wide), GROUPED(a));
	if (given(weight))
		grad = tensor_mul(
			grad, tensor_reshape(weight, TENSOR_INTS(a->groups, a->c / a->groups, 1)));
	dx = centred_gradient(grad, tensor_reshape(as_dtype(input, wide), GROUPED(a)),
			      TENSOR_INTS(2, 3), eps);
	return as_dtype(tensor_reshape(dx, (tensor_ints){ input->sizes, input->ndim }),
			input->dtype);
}

static tensor *group_dweight(tensor *grad, tensor *input, const struct group_args *a,
			     struct epsilon eps)
{
	enum tensor_dtype wide = dtype_wide(input->dtype);
	tensor *scale, *product;

	product = tensor_mul(tensor_reshape(as_dtype(grad, wide), GROUPED(a)),
			     normalized(tensor_reshape(as_dtype(input, wide), GROUPED(a)),
					TENSOR_INTS(2, 3), eps, &scale));
	return tensor_reshape(tensor_sum_dim(product, TENSOR_INTS(0, 3), false), TENSOR_INTS(a->c));
}

tensor *group_norm_input_backward(tensor *grad, tensor *input, tensor *mean, tensor *rstd,
				  tensor *weight, int64_t N, int64_t C, int64_t HxW, int64_t group,
				  double eps)
{
	const struct group_args args = { N, C, HxW, group, NULL };
	tensor *dx, *none[2];

	if (!formula_is_differentiated())
		return tensor_native_group_norm_backward(grad, input, mean, rstd, weight, N, C, HxW,
							 group, 1, &dx, &none[0], &none[1]) < 0 ?
			       NULL :
			       dx;
	return group_dx(grad, input, weight, &args, (struct epsilon){ eps, NULL });
}

tensor *group_norm_weight_backward(tensor *grad, tensor *input, tensor *mean, tensor *rstd,
				   tensor *weight, int64_t N, int64_t C, int64_t HxW, int64_t group,
				   double eps)
{
	const struct group_args args = { N, C, HxW, group, NULL };
	tensor *dweight, *none[2];

	if (!formula_is_differentiated())
		return tensor_native_group_norm_backward(grad, input, mean, rstd, weight, N, C, HxW,
							 group, 2, &none[0], &dweight,
							 &none[1]) < 0 ?
			       NULL :
			       dweight;
	return group_dweight(grad, input, &args, (struct epsilon){ eps, NULL });
}

/* native_group_norm_backward of grad_out, input and weight. */
static int group_composed(tensor *const *in, tensor **out, const void *ctx)
{
	const struct group_args *a = ctx;
	const struct epsilon eps = { 0,
				     tensor_reshape(a->rstd, TENSOR_INTS(a->n, a->groups, 1, 1)) };

	if (!eps.rstd)
		return -1;
	out[0] = group_dx(in[0], in[1], in[2], a, eps);
	out[1] = group_dweight(in[0], in[1], a, eps);
	out[2] = sum_channels(in[0]);
	return out[0] && out[1] && out[2] ? 0 : -1;
}

tensor *group_norm_double_backward(tensor *const *grads, tensor *grad_out, tensor *input,
				   tensor *rstd, tensor *weight, int64_t N, int64_t C, int64_t HxW,
				   int64_t group, int part)
{
	const struct group_args args = { N, C, HxW, group, rstd };

	return formula_vjp(group_composed, &args, TENSOR_LIST(grad_out, input, weight), grads, 3,
			   part);
}

/* ---- batch_norm ---- */

/* x as [n, c, inner]; t [c] in a shape that broadcasts to it. */
static tensor *three(tensor *x)
{
	return x ? tensor_reshape(x, TENSOR_INTS(x->sizes[0], x->sizes[1], x->numel ? -1 : 0)) :
		   NULL;
}

static tensor *channels(tensor *t)
{
	return tensor_unsqueeze(t, -1);
}

static int batch_backward(tensor *grad, tensor *input, tensor *weight, tensor *running_mean,
			  tensor *running_var, tensor *save_mean, tensor *save_invstd,
			  bool training, double eps, uint64_t mask, tensor **result)
{
	tensor *out[3];

	if (tensor_native_batch_norm_backward(grad, input, weight, running_mean, running_var,
					      save_mean, save_invstd, training, eps, mask, &out[0],
					      &out[1], &out[2]) < 0)
		return -1;
	*result = mask == 1 ? out[0] : out[1];
	return 0;
}

/* x normalized by the running statistics; *invstd is the factor. */
static tensor *by_running(tensor *x, tensor *mean, tensor *var, double eps, tensor **invstd)
{
	*invstd = channels(tensor_rsqrt(tensor_add_scalar(var, formula_scalar(eps))));
	return tensor_mul(tensor_sub(x, channels(mean)), *invstd);
}

tensor *batch_norm_input_backward(tensor *grad, tensor *input, tensor *weight, tensor *running_mean,
				  tensor *running_var, tensor *save_mean, tensor *save_invstd,
				  bool training, double eps)
{
	enum tensor_dtype wide = dtype_wide(input->dtype);
	tensor *dx, *g, *scale;

	if (!formula_is_differentiated())
		return batch_backward(grad, input, weight, running_mean, running_var, save_mean,
				      save_invstd, training, eps, 1, &dx) < 0 ?
			       NULL :
			       dx;
	g = three(as_dtype(grad, wide));
	if (given(weight))
		g = tensor_mul(g, channels(weight));
	if (training) {
		dx = centred_gradient(g, three(as_dtype(input, wide)), TENSOR_INTS(0, 2),
				      (struct epsilon){ eps, NULL });
	} else {
		by_running(three(as_dtype(input, wide)), running_mean, running_var, eps, &scale);
		dx = tensor_mul(g, scale);
	}
	return as_dtype(tensor_reshape(dx, (tensor_ints){ input->sizes, input->ndim }),
			input->dtype);
}

tensor *batch_norm_weight_backward(tensor *grad, tensor *input, tensor *weight,
				   tensor *running_mean, tensor *running_var, tensor *save_mean,
				   tensor *save_invstd, bool training, double eps)
{
	enum tensor_dtype wide = dtype_wide(input->dtype);
	tensor *dweight, *x, *scale;

	if (!input->numel) /* the sum of nothing: the statistics are NaN */
		return formula_zeros_for(grad, TENSOR_INTS(input->sizes[1]));
	if (!formula_is_differentiated())
		return batch_backward(grad, input, weight, running_mean, running_var, save_mean,
				      save_invstd, training, eps, 2, &dweight) < 0 ?
			       NULL :
			       dweight;
	x = three(as_dtype(input, wide));
	x = training ? normalized(x, TENSOR_INTS(0, 2), (struct epsilon){ eps, NULL }, &scale) :
		       by_running(x, running_mean, running_var, eps, &scale);
	return tensor_sum_dim(tensor_mul(three(as_dtype(grad, wide)), x), TENSOR_INTS(0, 2), false);
}

struct batch_args {
	tensor *mean, *var;
	bool training;
	double eps;
};

/* native_batch_norm_backward of grad_out, input and weight. */
static int batch_composed(tensor *const *in, tensor **out, const void *ctx)
{
	const struct batch_args *a = ctx;

	out[0] = batch_norm_input_backward(in[0], in[1], in[2], a->mean, a->var, tensor_none,
					   tensor_none, a->training, a->eps);
	out[1] = batch_norm_weight_backward(in[0], in[1], in[2], a->mean, a->var, tensor_none,
					    tensor_none, a->training, a->eps);
	out[2] = sum_channels(in[0]);
	return out[0] && out[1] && out[2] ? 0 : -1;
}

tensor *batch_norm_double_backward(tensor *const *grads, tensor *grad_out, tensor *input,
				   tensor *weight, tensor *running_mean, tensor *running_var,
				   bool training, double eps, int part)
{
	const struct batch_args args = { running_mean, running_var, training, eps };

	return formula_vjp(batch_composed, &args, TENSOR_LIST(grad_out, input, weight), grads, 3,
			   part);
}

/* ---- losses ---- */

/* log(1 - x) - log(x), both clamped to at least -100. */
tensor *bce_target_backward(tensor *grad, tensor *self, tensor *target, tensor *weight,
			    int64_t reduction)
{
	enum tensor_dtype wide = dtype_wide(self->dtype);
	tensor *x = as_dtype(self, wide), *slope;

	slope = tensor_sub(tensor_clamp_min(tensor_log1p(tensor_neg(x)), formula_scalar(-100)),
			   tensor_clamp_min(tensor_log(x), formula_scalar(-100)));
	if (given(weight))
		slope = tensor_mul(slope, weight);
	if (reduction == 1)
		slope = tensor_div_scalar(slope, formula_scalar((double)self->numel));
	return as_dtype(tensor_mul(slope, as_dtype(grad, wide)), target->dtype);
}
