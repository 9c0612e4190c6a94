// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* logaddexp, logaddexp2, xlogy, without overflow of intermediate results. */
#include "kernels/cpu/simd/vecloop.h"

#include "kernels/formula/log_complex.h"

VEC_SLEEF_1(log1p)
VEC_SLEEF_1(exp2)

#define select_v32   vec_select_f32
#define splat_v32(v) ((vec_f32){ 0 } + (v))
#define T	     float
#define V	     vec_f32
#define F(x)	     x##_v32
#include "kernels/formula/logs_float.h"
#undef T
#undef V
#undef F

#define select_v64   vec_select_f64
#define splat_v64(v) ((vec_f64){ 0 } + (v))
#define T	     double
#define V	     vec_f64
#define F(x)	     x##_v64
#include "kernels/formula/logs_float.h"
#undef T
#undef V
#undef F

#include "kernels/formula/logs.h"

CPU_KERNELS(K(logaddexp), K(logaddexp2), K(xlogy))
