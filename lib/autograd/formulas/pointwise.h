/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Functions that the formulas of elementwise operators call in addition to operators. See
 * formulas.h. */
#ifndef TENSOR_AUTOGRAD_POINTWISE_FORMULAS_H
#define TENSOR_AUTOGRAD_POINTWISE_FORMULAS_H

/* grad * conj(slope). */
tensor *formula_mul_conj(tensor *grad, tensor *slope);
/* grad / conj(t). */
tensor *formula_div_conj(tensor *grad, tensor *t);
/* t + v and t * v for a number v. */
tensor *formula_add(tensor *t, double v);
tensor *formula_mul(tensor *t, double v);
/* 1 / sqrt(t + v) */
tensor *formula_rsqrt_add(tensor *t, double v);
/* Zeros of grad's shape, for an operator with derivative 0. */
tensor *formula_zeros_like(tensor *grad);
/* grad where mask is true, else 0. If either is tensor_none, so is the result. */
tensor *formula_where(tensor *mask, tensor *grad);

tensor *abs_backward(tensor *grad, tensor *self);
tensor *sgn_backward(tensor *grad, tensor *self, tensor *result);
tensor *angle_backward(tensor *grad, tensor *self);
tensor *div_mode_self_backward(tensor *grad, tensor *other, const char *mode);
tensor *div_mode_other_backward(tensor *grad, tensor *self, tensor *other, const char *mode);
tensor *div_mode_scalar_backward(tensor *grad, tensor_scalar other, const char *mode);
tensor *atan2_backward(tensor *grad, tensor *self, tensor *other, tensor *numerator);
/* Equal operands get half of the gradient each. */
tensor *maximum_backward(tensor *grad, tensor *self, tensor *other);
tensor *minimum_backward(tensor *grad, tensor *self, tensor *other);
tensor *fmax_backward(tensor *grad, tensor *chosen, tensor *other, bool first);
tensor *fmin_backward(tensor *grad, tensor *chosen, tensor *other, bool first);
tensor *logaddexp_backward(tensor *grad, tensor *self, tensor *other);
tensor *logaddexp2_backward(tensor *grad, tensor *self, tensor *other);
tensor *xlogy_self_backward(tensor *grad, tensor *self, tensor *other);
tensor *copysign_backward(tensor *grad, tensor *self, tensor *result);
tensor *pow_backward_self(tensor *grad, tensor *self, tensor *exponent);
tensor *pow_backward_exponent(tensor *grad, tensor *self, tensor *exponent, tensor *result);
tensor *pow_scalar_backward(tensor *grad, tensor *self, tensor_scalar exponent);
tensor *scalar_pow_backward(tensor *grad, tensor_scalar self, tensor *exponent, tensor *result);
tensor *lerp_self_backward(tensor *grad, tensor_scalar weight);
tensor *clamp_backward(tensor *grad, tensor *self, tensor_scalar min, tensor_scalar max);
tensor *clamp_tensor_backward(tensor *grad, tensor *self, tensor *min, tensor *max);
tensor *clamp_tensor_min_backward(tensor *grad, tensor *self, tensor *min, tensor *max);
tensor *clamp_tensor_max_backward(tensor *grad, tensor *self, tensor *min, tensor *max);

tensor *silu_double_backward(tensor *grad, tensor *grad_output, tensor *self);
tensor *mish_double_backward(tensor *grad, tensor *grad_output, tensor *self);
tensor *hardswish_double_backward(tensor *grad, tensor *grad_output, tensor *self);
tensor *gelu_double_backward(tensor *grad, tensor *grad_output, tensor *self,
			     const char *approximate);
tensor *elu_double_backward(tensor *grad, tensor *grad_output, tensor_scalar alpha,
			    tensor_scalar scale, tensor_scalar input_scale, bool is_result,
			    tensor *self_or_result);
tensor *softplus_double_backward(tensor *grad, tensor *grad_output, tensor *self,
				 tensor_scalar beta, tensor_scalar threshold);
tensor *log_sigmoid_double_backward(tensor *grad, tensor *grad_output, tensor *self);
/* Derivative of sigmoid_backward and tanh_backward with respect to their saved output. */
tensor *sigmoid_double_backward(tensor *grad, tensor *grad_output, tensor *output);
tensor *tanh_double_backward(tensor *grad, tensor *grad_output, tensor *output);

#endif
