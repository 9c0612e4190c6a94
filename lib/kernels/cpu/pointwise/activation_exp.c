// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Activation functions, and gradients of activation functions, that use exp(), log1p() or erf(). */
#include "kernels/cpu/simd/vecmath.h"

#define select_f32v   vec_select_f32
#define select_f64v   vec_select_f64
#define splat_f32v    splat_f32
#define splat_f64v(v) ((vec_f64){ 0 } + (v))

#define T    float
#define V    vec_f32
#define F(x) x##_f32v
#define LOOP_1(NAME, DECL, ...)                                             \
	VEC_LOOP_1(NAME, f32, float, vec_f32, VEC_F32, DECL, (__VA_ARGS__)) \
	VEC_LOOP_1_BF16(NAME, DECL, (__VA_ARGS__))
#define LOOP_2(NAME, DECL, ...)                                             \
	VEC_LOOP_2(NAME, f32, float, vec_f32, VEC_F32, DECL, (__VA_ARGS__)) \
	VEC_LOOP_2_BF16(NAME, DECL, (__VA_ARGS__))
#include "kernels/formula/activation_exp_float.h"

#define T			double
#define V			vec_f64
#define F(x)			x##_f64v
#define LOOP_1(NAME, DECL, ...) VEC_LOOP_1(NAME, f64, double, vec_f64, VEC_F64, DECL, (__VA_ARGS__))
#define LOOP_2(NAME, DECL, ...) VEC_LOOP_2(NAME, f64, double, vec_f64, VEC_F64, DECL, (__VA_ARGS__))
#include "kernels/formula/activation_exp_float.h"

VEC_LOOP_1(gelu, f32, float, vec_f32, VEC_F32, (void)params, gelu_f32v(x))
VEC_LOOP_1_BF16(gelu, (void)params, gelu_bf16v(x))
VEC_LOOP_1(gelu, f64, double, vec_f64, VEC_F64, (void)params, gelu_f64v(x))

#include <tgmath.h>

#include "kernels/formula/activation_exp.h"

CPU_KERNELS(K(silu), K(silu_backward), K(mish), K(mish_backward), K(softplus), K(softplus_backward),
	    K(log_sigmoid), K(log_sigmoid_buffer), K(elu), K(elu_backward), K(gelu),
	    K(gelu_backward), K(gelu_tanh), K(gelu_tanh_backward))
