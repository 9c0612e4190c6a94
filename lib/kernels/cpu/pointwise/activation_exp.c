// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Activation functions, and gradients of activation functions, that use exp(), log1p() or erf(). */
#include "kernels/cpu/simd/vecmath.h"

#define select_f32v vec_select_f32
#define select_f64v vec_select_f64

#define T    float
#define V    vec_f32
#define F(x) x##_f32v
#define LOOP_1(NAME, DECL, ...)                                             \
	VEC_LOOP_1(NAME, f32, float, vec_f32, VEC_F32, DECL, (__VA_ARGS__)) \
	VEC_LOOP_1_BF16(NAME, DECL, (__VA_ARGS__))
#define LOOP_2(NAME, DECL, ...) VEC_LOOP_2(NAME, f32, float, vec_f32, VEC_F32, DECL, (__VA_ARGS__))
#include "kernels/cpu/pointwise/activation_exp_float.h"

#define T			double
#define V			vec_f64
#define F(x)			x##_f64v
#define LOOP_1(NAME, DECL, ...) VEC_LOOP_1(NAME, f64, double, vec_f64, VEC_F64, DECL, (__VA_ARGS__))
#define LOOP_2(NAME, DECL, ...) VEC_LOOP_2(NAME, f64, double, vec_f64, VEC_F64, DECL, (__VA_ARGS__))
#include "kernels/cpu/pointwise/activation_exp_float.h"

VEC_LOOP_1(gelu, f32, float, vec_f32, VEC_F32, (void)params, gelu_f32v(x))
VEC_LOOP_1_BF16(gelu, (void)params, gelu_bf16v(x))
VEC_LOOP_1(gelu, f64, double, vec_f64, VEC_F64, (void)params, gelu_f64v(x))

#include <tgmath.h>

/* one: the logistic function of y */
#define SILU_GRAD(x, y, one) ((x) * (one) * (1 + (y) * (1 - (one))))
UNARY_COMPLEX(silu, x / (1 + exp(-x)))
BINARY_COMPLEX(silu_backward, SILU_GRAD(x, y, 1 / (1 + exp(-y))))
POINTWISE(silu, AT_FLOAT(silu), AT_COMPLEX(silu), AT_BF16(silu))
POINTWISE(silu_backward, AT_FLOAT(silu_backward), AT_COMPLEX(silu_backward))

#define REAL(f)	     POINTWISE(f, AT_FLOAT(f))
#define REAL_BF16(f) POINTWISE(f, AT_FLOAT(f), AT_BF16(f))
REAL_BF16(mish)
REAL(mish_backward)
REAL_BF16(softplus)
REAL(softplus_backward)
REAL_BF16(log_sigmoid)
REAL_BF16(log_sigmoid_buffer)
REAL_BF16(elu)
REAL(elu_backward)
REAL_BF16(gelu)
REAL(gelu_backward)
REAL_BF16(gelu_tanh)
REAL(gelu_tanh_backward)

CPU_KERNELS(K(silu), K(silu_backward), K(mish), K(mish_backward), K(softplus), K(softplus_backward),
	    K(log_sigmoid), K(log_sigmoid_buffer), K(elu), K(elu_backward), K(gelu),
	    K(gelu_backward), K(gelu_tanh), K(gelu_tanh_backward))
