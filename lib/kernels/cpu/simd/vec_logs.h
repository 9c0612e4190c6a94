/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* log2_v32(), log10_v32(), log2_v64() and log10_v64(), from the parts of log(x); vectors without multiply-adds call SLEEF. */
#ifndef TENSOR_VEC_LOGS_H
#define TENSOR_VEC_LOGS_H

#include "kernels/cpu/simd/vecmath.h"

#if defined(__AVX512F__)
/* The same instructions serve all numbers. */
static inline bool vec_log_usual_f32(vec_f32 x)
{
	return false;
}

static inline bool vec_log_usual_f64(vec_f64 x)
{
	return false;
}
#define vec_log_normal_f32 vec_log_parts_f32
#define vec_log_normal_f64 vec_log_parts_f64
#endif

#if defined(__AVX2__) && defined(__FMA__)
#define LOG2_E_HIGH  1.44269502f
#define LOG2_E_LOW   1.92596299e-08f
#define LOG10_E_HIGH 0.434294492f
#define LOG10_E_LOW  -1.01030501e-08f
#define LOG10_2_HIGH 0.301025391f
#define LOG10_2_LOW  4.60503898e-06f
#define V	     vec_f32
#define F(x)	     x##_f32
#include "kernels/cpu/simd/vec_log_base.h"
#undef LOG2_E_HIGH
#undef LOG2_E_LOW
#undef LOG10_E_HIGH
#undef LOG10_E_LOW
#undef LOG10_2_HIGH
#undef LOG10_2_LOW
#undef V
#undef F

#define LOG2_E_HIGH  1.4426950408889634
#define LOG2_E_LOW   2.0355273740931033e-17
#define LOG10_E_HIGH 0.43429448190325182
#define LOG10_E_LOW  1.0983196502167651e-17
#define LOG10_2_HIGH 0.30102999566395283
#define LOG10_2_LOW  2.8363394551044964e-14
#define V	     vec_f64
#define F(x)	     x##_f64
#include "kernels/cpu/simd/vec_log_base.h"
#undef LOG2_E_HIGH
#undef LOG2_E_LOW
#undef LOG10_E_HIGH
#undef LOG10_E_LOW
#undef LOG10_2_HIGH
#undef LOG10_2_LOW
#undef V
#undef F

#define log2_v32  vec_log2_f32
#define log10_v32 vec_log10_f32
#define log2_v64  vec_log2_f64
#define log10_v64 vec_log10_f64
#else
VEC_SLEEF_1(log2)
VEC_SLEEF_1(log10)
#endif

#endif
