// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Formulas of normalizations. If the backward is recorded (create_graph), it is composed of
 * operators on the input, statistics included, and can be differentiated any number of times;
 * otherwise one kernel computes it.
 */
#include "autograd/formulas/formulas.h"

#include "family/batch_norm.h"
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

/* x normalized along `dims`; *rstd is the factor. */
static tensor *normalized(tensor *x, tensor_ints dims, double eps, tensor **rstd)
{
	tensor *centred = tensor_sub(x, tensor_mean_dim(x, dims, true));
	tensor *variance = tensor_mean_dim(tensor_mul(centred, centred), dims, true);

	*rstd = tensor_rsqrt(tensor_add_scalar(variance, formula_scalar(eps)));
	return tensor_mul(centred, *rstd);
}

/* rstd (g - mean(g) - x^ mean(g x^)) */
static tensor *centred_gradient(tensor *g, tensor *x, tensor_ints dims, double eps)
{
	tensor *rstd, *hat = normalized(x, dims, eps, &rstd);
	tensor *along = tensor_mul(hat, tensor_mean_dim(tensor_mul(g, hat), dims, true));

	return tensor_mul(tensor_sub(tensor_sub(g, tensor_mean_dim(g, dims, true)), along), rstd);
}

static bool recorded(void)
{
	return thread()->modes.grad_enabled;
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

tensor *layer_norm_input_backward(tensor *grad, tensor *input, tensor_ints normalized_shape,
				  tensor *mean, tensor *rstd, tensor *weight, double eps)
{
	enum tensor_dtype wide = dtype_wide(input->dtype);
	int64_t dims[TENSOR_MAX_DIMS];
	tensor *dx, *none[2];

	if (!recorded())
		return tensor_native_layer_norm_backward(grad, input, normalized_shape, mean, rstd,
							 weight, tensor_none, 1, &dx, &none[0],
							 &none[1]) < 0 ?
			       NULL :
			       dx;
	grad = as_dtype(grad, wide);
	if (given(weight))
		grad = tensor_mul(grad, weight);
	dx = centred_gradient(grad, as_dtype(input, wide),
			      last_dims(dims, input, normalized_shape.len), eps);
	return as_dtype(dx, input->dtype);
}

tensor *layer_norm_weight_backward(tensor *grad, tensor *input, tensor_ints normalized_shape,
				   tensor *mean, tensor *rstd, tensor *weight, double eps)
{
	enum tensor_dtype wide = dtype_wide(input->dtype);
	int64_t dims[TENSOR_MAX_DIMS];
	tensor *dweight, *none[2], *scale;

	if (!recorded())
		return tensor_native_layer_norm_backward(grad, input, normalized_shape, mean, rstd,
							 weight, tensor_none, 2, &none[0], &dweight,
							 &none[1]) < 0 ?
			       NULL :
			       dweight;
	return tensor_mul(as_dtype(grad, wide),
			  normalized(as_dtype(input, wide),
				     last_dims(dims, input, normalized_shape.len), eps, &scale));
}

/* ---- group_norm ---- */

/* Sum over all dimensions but the second. */
tensor *formula_sum_channels(tensor *grad)
{
	int64_t dims[TENSOR_MAX_DIMS];
	int n = 0;

	for (int i = 0; grad && i < grad->ndim; i++)
		if (i != 1)
			dims[n++] = i;
	return tensor_sum_dim(grad, (tensor_ints){ dims, n }, false);
}

tensor *group_norm_input_backward(tensor *grad, tensor *input, tensor *mean, tensor *rstd,
				  tensor *weight, int64_t N, int64_t C, int64_t HxW, int64_t group,
				  double eps)
{
	enum tensor_dtype wide = dtype_wide(input->dtype);
	tensor_ints shape = TENSOR_INTS(N, group, C / group, HxW);
	tensor *dx, *none[2];

	if (!recorded())
		return tensor_native_group_norm_backward(grad, input, mean, rstd, weight, N, C, HxW,
							 group, 1, &dx, &none[0], &none[1]) < 0 ?
			       NULL :
			       dx;
	grad = tensor_reshape(as_dtype(grad, wide), shape);
	if (given(weight))
		grad = tensor_mul(grad, tensor_reshape(weight, TENSOR_INTS(group, C / group, 1)));
	dx = centred_gradient(grad, tensor_reshape(as_dtype(input, wide), shape), TENSOR_INTS(2, 3),
			      eps);
	return as_dtype(tensor_reshape(dx, (tensor_ints){ input->sizes, input->ndim }),
			input->dtype);
}

tensor *group_norm_weight_backward(tensor *grad, tensor *input, tensor *mean, tensor *rstd,
				   int64_t N, int64_t C, int64_t HxW, int64_t group, double eps)
{
	enum tensor_dtype wide = dtype_wide(input->dtype);
	tensor_ints shape = TENSOR_INTS(N, group, C / group, HxW);
	tensor *dweight, *none[2], *scale, *product;

	if (!recorded())
		return tensor_native_group_norm_backward(grad, input, mean, rstd, tensor_none, N, C,
							 HxW, group, 2, &none[0], &dweight,
							 &none[1]) < 0 ?
			       NULL :
			       dweight;
	product = tensor_mul(tensor_reshape(as_dtype(grad, wide), shape),
			     normalized(tensor_reshape(as_dtype(input, wide), shape),
					TENSOR_INTS(2, 3), eps, &scale));
	return tensor_reshape(tensor_sum_dim(product, TENSOR_INTS(0, 3), false), TENSOR_INTS(C));
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

	if (!recorded())
		return batch_backward(grad, input, weight, running_mean, running_var, save_mean,
				      save_invstd, training, eps, 1, &dx) < 0 ?
			       NULL :
			       dx;
	g = three(as_dtype(grad, wide));
	if (given(weight))
		g = tensor_mul(g, channels(weight));
	if (training) {
		dx = centred_gradient(g, three(as_dtype(input, wide)), TENSOR_INTS(0, 2), eps);
	} else {
		by_running(three(as_dtype(input, wide)), running_mean, running_var, eps, &scale);
		dx = tensor_mul(g, scale);
	}
	return as_dtype(tensor_reshape(dx, (tensor_ints){ input->sizes, input->ndim }),
			input->dtype);
}

tensor *batch_norm_weight_backward(tensor *grad, tensor *input, tensor *running_mean,
				   tensor *running_var, tensor *save_mean, tensor *save_invstd,
				   bool training, double eps)
{
	enum tensor_dtype wide = dtype_wide(input->dtype);
	tensor *dweight, *x, *scale;

	if (!recorded())
		return batch_backward(grad, input, tensor_none, running_mean, running_var,
				      save_mean, save_invstd, training, eps, 2, &dweight) < 0 ?
			       NULL :
			       dweight;
	x = three(as_dtype(input, wide));
	x = training ? normalized(x, TENSOR_INTS(0, 2), eps, &scale) :
		       by_running(x, running_mean, running_var, eps, &scale);
	return tensor_sum_dim(tensor_mul(three(as_dtype(grad, wide)), x), TENSOR_INTS(0, 2), false);
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
