/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The vocabulary of formulas on the CPU: parameters of a call, loops over three inputs, loops over
 * bf16, and kernels with real results. Those for categories of dtypes are in formula/categories.h.
 * Expressions use <tgmath.h>.
 */
#ifndef TENSOR_CPU_LOOPS_H
#define TENSOR_CPU_LOOPS_H

#include "base/reduced_float.h"
#include "kernels/cpu/simd/cpu.h"
#include "kernels/cpu/simd/loops_bf16.h"
#include "kernels/cpu/simd/loops_f16.h"
#include "kernels/formula/categories.h"

#include <math.h>

/* A scalar parameter of the call (a, b or c of struct pointwise_params), converted to type T. */
#define PARAM(params, which) (((const struct pointwise_params *)(params))->which)
#define PARAM_F(T, params, which) \
	((T)CMPLX(scalar_double(PARAM(params, which)), scalar_imag(PARAM(params, which))))
#define PARAM_I(T, params, which) ((T)scalar_int(PARAM(params, which)))
/* re + im i, with parts of the type of x's. */
#define COMPLEX_OF(x, re, im) \
	__builtin_complex((__typeof__(__real__(x)))(re), (__typeof__(__real__(x)))(im))
/* f32 or f64, by the type of the complex number x. */
#define COMPLEX_CASE(x, f32, f64) _Generic((x), float complex : f32, double complex : f64)
/* Functions of formulas. */
#define FORMULA			  static inline
#define PARAM_I(T, params, which) ((T)scalar_int(PARAM(params, which)))

/* The DECL of loops without parameters. */
#define NO_PARAMS(T) (void)params

/* ---- three inputs: x of type A, y and z of type T, with a form for a stride of 0 in z ---- */

/* A row of three inputs. */
#define TERNARY_ROW(A, T, R, o, so, a, sa, b, sb, c, sc, n, EXPR)                             \
	{                                                                                     \
		bool two = (so) == sizeof(R) && (sa) == sizeof(A) && (sb) == sizeof(T);       \
		const A *pa = (const A *)(a);                                                 \
		const T *pb = (const T *)(b), *pc = (const T *)(c);                           \
		R *po = (R *)(o);                                                             \
		if (two && (sc) == sizeof(T))                                                 \
			ROW_DENSE(i, n, , A x = pa[i]; T y = pb[i]; T z = pc[i], po[i], EXPR) \
		else if (two && !(sc))                                                        \
			ROW_DENSE(i, n, T z = *pc, A x = pa[i]; T y = pb[i], po[i], EXPR)     \
		else                                                                          \
			ROW_STRIDED(i, n, INPUT(A, x, a, i *(sa)); INPUT(T, y, b, i * (sb));  \
				    INPUT(T, z, c, i * (sc)), R, o, so, EXPR)                 \
	}
#define TERNARY_LOOP_WITH(NAME, A, T, R, DECL, EXPR)                                             \
	ITER_LOOP(NAME)                                                                          \
	{                                                                                        \
		int64_t so = s0[0], sa = s0[1], sb = s0[2], sc = s0[3];                          \
		char *o = data[0], *a = data[1], *b = data[2], *c = data[3];                     \
		DECL;                                                                            \
		for (int64_t j = 0; j < n1; j++, o += s1[0], a += s1[1], b += s1[2], c += s1[3]) \
			TERNARY_ROW(A, T, R, o, so, a, sa, b, sb, c, sc, n0, EXPR)               \
	}

/* A pointwise kernel whose result is real for complex inputs. */
#define POINTWISE_REAL(NAME, ...)                                                             \
	static int cpu_##NAME(struct tensor_iter *it, const struct pointwise_params *params)  \
	{                                                                                     \
		static const iter_loop loops[TENSOR_DTYPE_COUNT] = { __VA_ARGS__ };           \
		bool complex_ = dtype_is_complex(it->dtype);                                  \
                                                                                              \
		return CPU_NAME(pointwise_run)(#NAME, it, loops,                              \
					       complex_ ? dtype_real(it->dtype) : 0, params); \
	}

#endif
