/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Loops for functions on whole vectors, vectorized by hand or provided by SLEEF. A block function
 * (vec_block) maps n contiguous elements of each input. vec_rows_*() applies it to rows and gathers
 * inputs that are not contiguous; these are few and small, see iter_run_packed().
 */
#ifndef TENSOR_CPU_VECLOOP_H
#define TENSOR_CPU_VECLOOP_H

#include "kernels/cpu/simd/loops.h"
#include "kernels/cpu/simd/vec.h"
#include "kernels/cpu/simd/vec_reduced_float.h"

#define VEC_BLOCK  512 /* elements gathered at a time */
#define VEC_INPUTS 3

typedef void (*vec_block)(void *out, const void *const *in, int64_t n, const void *params);

/* Results of comparisons; select(m, a, b) is a where m is true, else b. */
typedef int32_t vec_m32 __attribute__((vector_size(VEC_BYTES)));
typedef int64_t vec_m64 __attribute__((vector_size(VEC_BYTES)));

static inline vec_f32 vec_select_f32(vec_m32 m, vec_f32 a, vec_f32 b)
{
	return (vec_f32)(((vec_m32)a & m) | ((vec_m32)b & ~m));
}

static inline vec_f64 vec_select_f64(vec_m64 m, vec_f64 a, vec_f64 b)
{
	return (vec_f64)(((vec_m64)a & m) | ((vec_m64)b & ~m));
}

/*
 * vec_at_least_f32() is the greater of v and low, v if both are zero; vec_limit_f32() is v limited
 * to [low, high]; NaN stays NaN in both. vec_scale_f32() is v * 2^n for integers n, |n| <= 300.
 */
#if defined(__AVX512F__)
static inline vec_f32 vec_at_least_f32(vec_f32 v, float low)
{
	return (vec_f32)_mm512_max_ps(_mm512_set1_ps(low), (__m512)v);
}

static inline vec_f32 vec_limit_f32(vec_f32 v, float low, float high)
{
	__m512 up = _mm512_max_ps(_mm512_set1_ps(low), (__m512)v);

	return (vec_f32)_mm512_min_ps(_mm512_set1_ps(high), up);
}

static inline vec_f32 vec_scale_f32(vec_f32 v, vec_f32 n)
{
	return (vec_f32)_mm512_scalef_ps((__m512)v, (__m512)n);
}
#else
#if defined(__AVX2__)
static inline vec_f32 vec_at_least_f32(vec_f32 v, float low)
{
	return (vec_f32)_mm256_max_ps(_mm256_set1_ps(low), (__m256)v);
}

static inline vec_f32 vec_limit_f32(vec_f32 v, float low, float high)
{
	__m256 up = _mm256_max_ps(_mm256_set1_ps(low), (__m256)v);

	return (vec_f32)_mm256_min_ps(_mm256_set1_ps(high), up);
}
#else
static inline vec_f32 vec_at_least_f32(vec_f32 v, float low)
{
	return vec_select_f32(v < low, (vec_f32){ 0 } + low, v);
}

static inline vec_f32 vec_limit_f32(vec_f32 v, float low, float high)
{
	v = vec_select_f32(v > high, (vec_f32){ 0 } + high, v);
	return vec_select_f32(v < low, (vec_f32){ 0 } + low, v);
}
#endif

static inline vec_f32 vec_scale_f32(vec_f32 v, vec_f32 n)
{
	vec_m32 i = __builtin_convertvector(n, vec_m32), half = i >> 1;

	return v * (vec_f32)((half + 127) << 23) * (vec_f32)((i - half + 127) << 23);
}
#endif

/* vec_rows_f32(), vec_rows_bf16(), vec_rows_f64() */
#define LOOPS_FILE "kernels/cpu/simd/vec_rows.h"
#define T	   uint16_t
#define SUFFIX	   bf16
#include LOOPS_FILE
#undef T
#undef SUFFIX
#include "kernels/cpu/simd/each_float.h"
#undef LOOPS_FILE

/* Rows of two inputs, of which one is a float: in f32, by blocks. */
static __attribute__((unused, noinline)) void
vec_rows_repeated_bf16(char *const *data, const int64_t *s0, const int64_t *s1, int64_t n0,
		       int64_t n1, const void *params, vec_block block)
{
	float x[VEC_BLOCK], y[VEC_BLOCK];
	const void *in[] = { x, y };

	for (int64_t j = 0; j < n1; j++)
		for (int64_t i = 0, m; i < n0; i += m) {
			const char *a = data[1] + j * s1[1] + i * s0[1];
			const char *b = data[2] + j * s1[2] + i * s0[2];
			char *o = data[0] + j * s1[0] + i * s0[0];

			m = n0 - i < VEC_BLOCK ? n0 - i : VEC_BLOCK;
			for (int64_t k = 0; k < m; k++) {
				x[k] = bf16_or_f32(a, s0[1], k);
				y[k] = bf16_or_f32(b, s0[2], k);
			}
			block(x, in, m, params);
			for (int64_t k = 0; k < m; k++)
				*(uint16_t *)(o + k * s0[0]) = f32_to_bf16(x[k]);
		}
}

/* The loop NAME_d() that applies NAME_d_block() to all rows of NIN inputs. */
#define VEC_ENTRY(NAME, d, NIN)                                                         \
	static void NAME##_##d(char *const *data, const int64_t *s0, const int64_t *s1, \
			       int64_t n0, int64_t n1, const void *params)              \
	{                                                                               \
		vec_rows_##d(data, s0, s1, n0, n1, params, NIN, NAME##_##d##_block);    \
	}

/*
 * The block function and the loop of an expression in x, or in x and y, vectors of type V with N
 * lanes. DECL is executed before the loop.
 */
#define VEC_LOOP_1(NAME, d, T, V, N, DECL, EXPR)                                    \
	static void NAME##_##d##_block(void *out, const void *const *in, int64_t n, \
				       const void *params)                          \
	{                                                                           \
		const T *px = in[0];                                                \
		T *po = out;                                                        \
		int64_t i = 0;                                                      \
		DECL;                                                               \
                                                                                    \
		for (; i + (N) <= n; i += (N)) {                                    \
			V x = *(const V *)(px + i);                                 \
			*(V *)(po + i) = (EXPR);                                    \
		}                                                                   \
		if (i < n) {                                                        \
			vec_part part = vec_part_##d(n - i);                        \
			V x = vec_load_##d(px + i, part);                           \
			vec_store_##d(po + i, part, (EXPR));                        \
		}                                                                   \
	}                                                                           \
	VEC_ENTRY(NAME, d, 1)

#define VEC_LOOP_2(NAME, d, T, V, N, DECL, EXPR)                                          \
	static void NAME##_##d##_block(void *out, const void *const *in, int64_t n,       \
				       const void *params)                                \
	{                                                                                 \
		const T *px = in[0], *py = in[1];                                         \
		T *po = out;                                                              \
		int64_t i = 0;                                                            \
		DECL;                                                                     \
                                                                                          \
		for (; i + (N) <= n; i += (N)) {                                          \
			V x = *(const V *)(px + i), y = *(const V *)(py + i);             \
			*(V *)(po + i) = (EXPR);                                          \
		}                                                                         \
		if (i < n) {                                                              \
			vec_part part = vec_part_##d(n - i);                              \
			V x = vec_load_##d(px + i, part), y = vec_load_##d(py + i, part); \
			vec_store_##d(po + i, part, (EXPR));                              \
		}                                                                         \
	}                                                                                 \
	VEC_ENTRY(NAME, d, 2)

/*
 * The same for bf16: x and y are vectors of f32, and the result is rounded once. BF16_WORDS() computes two vectors from
 * words, and declares with INPUTS(OF) the inputs, each of them OF(p), where p is the pointer to its elements.
 */
#define BF16_EVEN(p) vec_even_bf16(*(const vec_bf16_words *)(p + i))
#define BF16_ODD(p)  vec_odd_bf16(*(const vec_bf16_words *)(p + i))
#define BF16_SOME(p) vec_from_bf16(vec_load_reduced_float(p + i, some))
#define BF16_VX(OF)  vec_f32 x = OF(px)
#define BF16_VXY(OF) vec_f32 x = OF(px), y = OF(py)
#define BF16_WORDS(po, n, INPUTS, EXPR)                                         \
	{                                                                       \
		int64_t i = 0;                                                  \
		for (; i + 2 * VEC_F32 <= n; i += 2 * VEC_F32) {                \
			vec_f32 even, odd;                                      \
			BF16_RESULT(even, INPUTS(BF16_EVEN), EXPR);             \
			BF16_RESULT(odd, INPUTS(BF16_ODD), EXPR);               \
			*(vec_bf16_words *)(po + i) = vec_join_bf16(even, odd); \
		}                                                               \
		for (int64_t some; i < n; i += some) {                          \
			vec_f32 v;                                              \
			some = n - i < VEC_F32 ? n - i : VEC_F32;               \
			BF16_RESULT(v, INPUTS(BF16_SOME), EXPR);                \
			vec_store_reduced_float(po + i, vec_to_bf16(v), some);  \
		}                                                               \
	}
#define VEC_LOOP_1_BF16(NAME, DECL, EXPR)                                          \
	static void NAME##_bf16_block(void *out, const void *const *in, int64_t n, \
				      const void *params)                          \
	{                                                                          \
		const uint16_t *px = in[0];                                        \
		uint16_t *po = out;                                                \
		DECL;                                                              \
		BF16_WORDS(po, n, BF16_VX, EXPR)                                   \
	}                                                                          \
	VEC_ENTRY(NAME, bf16, 1)

/* Also for an input of stride 0, which is a float, by the block function of f32. */
#define VEC_LOOP_2_BF16(NAME, DECL, EXPR)                                                       \
	static void NAME##_bf16_block(void *out, const void *const *in, int64_t n,              \
				      const void *params)                                       \
	{                                                                                       \
		const uint16_t *px = in[0], *py = in[1];                                        \
		uint16_t *po = out;                                                             \
		DECL;                                                                           \
		BF16_WORDS(po, n, BF16_VXY, EXPR)                                               \
	}                                                                                       \
	static void NAME##_bf16(char *const *data, const int64_t *s0, const int64_t *s1,        \
				int64_t n0, int64_t n1, const void *params)                     \
	{                                                                                       \
		if (s0[1] && s0[2])                                                             \
			vec_rows_bf16(data, s0, s1, n0, n1, params, 2, NAME##_bf16_block);      \
		else                                                                            \
			vec_rows_repeated_bf16(data, s0, s1, n0, n1, params, NAME##_f32_block); \
	}

/* The SLEEF function f as f_v32() and f_v64(). */
#define VEC_SLEEF_1(f)                                      \
	static inline vec_f32 f##_v32(vec_f32 x)            \
	{                                                   \
		return (vec_f32)SLEEF_F32(f)((sleef_f32)x); \
	}                                                   \
	static inline vec_f64 f##_v64(vec_f64 x)            \
	{                                                   \
		return (vec_f64)SLEEF_F64(f)((sleef_f64)x); \
	}
#define VEC_SLEEF_2(f)                                                    \
	static inline vec_f32 f##_v32(vec_f32 x, vec_f32 y)               \
	{                                                                 \
		return (vec_f32)SLEEF_F32(f)((sleef_f32)x, (sleef_f32)y); \
	}                                                                 \
	static inline vec_f64 f##_v64(vec_f64 x, vec_f64 y)               \
	{                                                                 \
		return (vec_f64)SLEEF_F64(f)((sleef_f64)x, (sleef_f64)y); \
	}

/* Loops NAME_f32() and NAME_f64() over f_v32() and f_v64(). */
#define VEC_UNARY(NAME, f)                                                       \
	VEC_LOOP_1(NAME, f32, float, vec_f32, VEC_F32, (void)params, f##_v32(x)) \
	VEC_LOOP_1(NAME, f64, double, vec_f64, VEC_F64, (void)params, f##_v64(x))
#define VEC_BINARY(NAME, f)                                                         \
	VEC_LOOP_2(NAME, f32, float, vec_f32, VEC_F32, (void)params, f##_v32(x, y)) \
	VEC_LOOP_2(NAME, f64, double, vec_f64, VEC_F64, (void)params, f##_v64(x, y))

#endif
