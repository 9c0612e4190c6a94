/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Includes moments.h and LOOPS_FILE for elements of f32, f64, f16 and bf16 (no include guard). They get
 *
 *   X, T, V, LANES  the type of an element, that in which it is computed, a vector of T, its lanes
 *   ONE, ROUND      an X as T, and a T as X
 *   F(name)         the name of a function for X: name_bf16
 */

#define X	 float
#define T	 float
#define V	 vec_f32
#define LANES	 VEC_F32
#define ONE(x)	 (x)
#define ROUND(x) (x)
#define F(x)	 x##_f32
#include "kernels/cpu/nn/norm_one.h"

#define X	 double
#define T	 double
#define V	 vec_f64
#define LANES	 VEC_F64
#define ONE(x)	 (x)
#define ROUND(x) (x)
#define F(x)	 x##_f64
#include "kernels/cpu/nn/norm_one.h"

#define X	 uint16_t
#define T	 float
#define V	 vec_f32
#define LANES	 VEC_F32
#define ONE(x)	 f16_to_f32(x)
#define ROUND(x) f32_to_f16(x)
#define F(x)	 x##_f16
#include "kernels/cpu/nn/norm_one.h"

#define X	 uint16_t
#define T	 float
#define V	 vec_f32
#define LANES	 VEC_F32
#define ONE(x)	 bf16_to_f32(x)
#define ROUND(x) f32_to_bf16(x)
#define F(x)	 x##_bf16
#include "kernels/cpu/nn/norm_one.h"
