/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Square roots on vectors of AVX-512 without the instruction, which takes two to three times as long: the inverse root in 14 bits,
 * improved by Goldschmidt's iteration, and a last step with the exact remainder, whose result is correctly rounded (Markstein 1990).
 * The instruction computes lanes beside the range in which no step overflows or loses bits.
 */
#ifndef TENSOR_VEC_SQRT_H
#define TENSOR_VEC_SQRT_H

#include "kernels/cpu/simd/vecloop.h"

static inline vec_f32 vec_sqrt_f32(vec_f32 x)
{
	__m512 v = (__m512)x, half = _mm512_set1_ps(0.5f), inverse, root, rest;
	__mmask16 low = _mm512_cmp_ps_mask(v, _mm512_set1_ps(0x1p-100f), _CMP_NGE_UQ);
	__mmask16 high = _mm512_cmp_ps_mask(v, _mm512_set1_ps(INFINITY), _CMP_NLT_UQ);

	if (__builtin_expect(low | high, 0))
		return (vec_f32)_mm512_sqrt_ps(v);
	inverse = _mm512_rsqrt14_ps(v);
	root = _mm512_mul_ps(v, inverse);
	inverse = _mm512_mul_ps(inverse, half); /* 1 / (2 root) */
	rest = _mm512_fnmadd_ps(root, inverse, half);
	root = _mm512_fmadd_ps(root, rest, root);
	inverse = _mm512_fmadd_ps(inverse, rest, inverse);
	rest = _mm512_fnmadd_ps(root, root, v);
	return (vec_f32)_mm512_fmadd_ps(rest, inverse, root);
}

static inline vec_f64 vec_sqrt_f64(vec_f64 x)
{
	__m512d v = (__m512d)x, half = _mm512_set1_pd(0.5), inverse, root, rest;
	__mmask8 low = _mm512_cmp_pd_mask(v, _mm512_set1_pd(0x1p-900), _CMP_NGE_UQ);
	__mmask8 high = _mm512_cmp_pd_mask(v, _mm512_set1_pd(INFINITY), _CMP_NLT_UQ);

	if (__builtin_expect(low | high, 0))
		return (vec_f64)_mm512_sqrt_pd(v);
	inverse = _mm512_rsqrt14_pd(v);
	root = _mm512_mul_pd(v, inverse);
	inverse = _mm512_mul_pd(inverse, half);
	for (int i = 0; i < 2; i++) {
		rest = _mm512_fnmadd_pd(root, inverse, half);
		root = _mm512_fmadd_pd(root, rest, root);
		inverse = _mm512_fmadd_pd(inverse, rest, inverse);
	}
	rest = _mm512_fnmadd_pd(root, root, v);
	return (vec_f64)_mm512_fmadd_pd(rest, inverse, root);
}

#endif
