/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Loops that work on whole vectors, for functions that are vectorised by hand or come from
 * SLEEF. A block function maps n contiguous elements of each input; vec_rows() gathers what lies
 * otherwise, several short rows at once.
 */
#ifndef TENSOR_CPU_VECLOOP_H
#define TENSOR_CPU_VECLOOP_H

#include "loops.h"
#include "vec.h"

#define VEC_BLOCK  512 /* elements that are gathered at once */
#define VEC_INPUTS 3

typedef void (*vec_block)(void *out, const void *const *in, int64_t n, const void *params);

/* Masks of comparisons, and what they choose. */
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

/* v limited to low and high, NaN kept; and v 2^n for whole n of -300 to 300. */
#if defined(__AVX512F__)
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
static inline vec_f32 vec_limit_f32(vec_f32 v, float low, float high)
{
	v = vec_select_f32(v > high, (vec_f32){0} + high, v);
	return vec_select_f32(v < low, (vec_f32){0} + low, v);
}

static inline vec_f32 vec_scale_f32(vec_f32 v, vec_f32 n)
{
	vec_m32 i = __builtin_convertvector(n, vec_m32), half = i >> 1;

	return v * (vec_f32)((half + 127) << 23) * (vec_f32)((i - half + 127) << 23);
}
#endif

/* Elements [at, at + n) of rows of n0, counted through the rows, from or to a buffer. */
#define VEC_MOVE(d, T)                                                                            \
	static inline void vec_gather_##d(T *buf, const char *p, int64_t s0, int64_t s1,          \
					  int64_t row, int64_t col, int64_t n0, int64_t n)        \
	{                                                                                         \
		p += row * s1;                                                                    \
		for (int64_t k = 0; k < n;) {                                                     \
			int64_t m = n - k < n0 - col ? n - k : n0 - col;                          \
                                                                                                  \
			for (int64_t i = 0; i < m; i++)                                           \
				buf[k + i] = *(const T *)(p + (col + i) * s0);                    \
			k += m;                                                                   \
			col = 0;                                                                  \
			p += s1;                                                                  \
		}                                                                                 \
	}                                                                                         \
                                                                                                  \
	static inline void vec_scatter_##d(const T *buf, char *p, int64_t s0, int64_t s1,         \
					   int64_t row, int64_t col, int64_t n0, int64_t n)       \
	{                                                                                         \
		p += row * s1;                                                                    \
		for (int64_t k = 0; k < n;) {                                                     \
			int64_t m = n - k < n0 - col ? n - k : n0 - col;                          \
                                                                                                  \
			for (int64_t i = 0; i < m; i++)                                           \
				*(T *)(p + (col + i) * s0) = buf[k + i];                          \
			k += m;                                                                   \
			col = 0;                                                                  \
			p += s1;                                                                  \
		}                                                                                 \
	}                                                                                         \
                                                                                                  \
	static __attribute__((unused, noinline)) void vec_rows_##d(                               \
		char *const *data, const int64_t *s0, const int64_t *s1, int64_t n0, int64_t n1,  \
		const void *params, int nin, vec_block block)                                     \
	{                                                                                         \
		T buf[VEC_INPUTS + 1][VEC_BLOCK];                                                 \
		const void *in[VEC_INPUTS];                                                       \
		bool flat = s0[0] == sizeof(T);                                                   \
		int64_t rows = 1;                                                                 \
                                                                                                  \
		for (int i = 1; i <= nin; i++)                                                    \
			flat &= s0[i] == sizeof(T);                                               \
		for (int64_t j = 0; flat && j < n1; j++) {                                        \
			for (int i = 0; i < nin; i++)                                             \
				in[i] = data[i + 1] + j * s1[i + 1];                              \
			block(data[0] + j * s1[0], in, n0, params);                               \
		}                                                                                 \
		if (flat)                                                                         \
			return;                                                                   \
		if (n0 < VEC_BLOCK)                                                               \
			rows = n1;                                                                \
		for (int64_t j = 0; j < n1; j += rows) {                                          \
			int64_t total = rows * n0;                                                \
                                                                                                  \
			for (int64_t at = 0; at < total; at += VEC_BLOCK) {                       \
				int64_t m = total - at < VEC_BLOCK ? total - at : VEC_BLOCK;      \
				int64_t row = j + at / n0, col = at % n0;                         \
				bool inside = col + m <= n0;                                      \
				char *o = data[0] + row * s1[0] + col * s0[0];                    \
				bool direct = inside && s0[0] == sizeof(T);                       \
                                                                                                  \
				for (int i = 1; i <= nin; i++) {                                  \
					const char *p = data[i];                                  \
                                                                                                  \
					in[i - 1] = buf[i];                                       \
					if (inside && s0[i] == sizeof(T))                         \
						in[i - 1] = p + row * s1[i] + col * sizeof(T);    \
					else                                                      \
						vec_gather_##d(buf[i], p, s0[i], s1[i], row, col, \
							       n0, m);                            \
				}                                                                 \
				block(direct ? (void *)o : buf[0], in, m, params);                \
				if (!direct)                                                      \
					vec_scatter_##d(buf[0], data[0], s0[0], s1[0], row, col,  \
							n0, m);                                   \
			}                                                                         \
		}                                                                                 \
	}
VEC_MOVE(f32, float)
VEC_MOVE(bf16, uint16_t)
VEC_MOVE(f64, double)
#undef VEC_MOVE

#define VEC_ENTRY(NAME, d, NIN)                                                                   \
	static void NAME##_##d(char *const *data, const int64_t *s0, const int64_t *s1,           \
			       int64_t n0, int64_t n1, const void *params)                        \
	{                                                                                         \
		vec_rows_##d(data, s0, s1, n0, n1, params, NIN, NAME##_##d##_block);              \
	}

/* EXPR in the vectors x, y, z of type V; DECL comes before the loop. */
#define VEC_LOOP_1(NAME, d, T, V, N, DECL, EXPR)                                                  \
	static void NAME##_##d##_block(void *out, const void *const *in, int64_t n,               \
				       const void *params)                                        \
	{                                                                                         \
		const T *px = in[0];                                                              \
		T *po = out;                                                                      \
		int64_t i = 0;                                                                    \
		DECL;                                                                             \
                                                                                                  \
		for (; i + (N) <= n; i += (N)) {                                                  \
			V x = *(const V *)(px + i);                                               \
			*(V *)(po + i) = (EXPR);                                                  \
		}                                                                                 \
		if (i < n) {                                                                      \
			vec_part part = vec_part_##d(n - i);                                      \
			V x = vec_load_##d(px + i, part);                                         \
			vec_store_##d(po + i, part, (EXPR));                                      \
		}                                                                                 \
	}                                                                                         \
	VEC_ENTRY(NAME, d, 1)

#define VEC_LOOP_2(NAME, d, T, V, N, DECL, EXPR)                                                  \
	static void NAME##_##d##_block(void *out, const void *const *in, int64_t n,               \
				       const void *params)                                        \
	{                                                                                         \
		const T *px = in[0], *py = in[1];                                                 \
		T *po = out;                                                                      \
		int64_t i = 0;                                                                    \
		DECL;                                                                             \
                                                                                                  \
		for (; i + (N) <= n; i += (N)) {                                                  \
			V x = *(const V *)(px + i), y = *(const V *)(py + i);                     \
			*(V *)(po + i) = (EXPR);                                                  \
		}                                                                                 \
		if (i < n) {                                                                      \
			vec_part part = vec_part_##d(n - i);                                      \
			V x = vec_load_##d(px + i, part), y = vec_load_##d(py + i, part);         \
			vec_store_##d(po + i, part, (EXPR));                                      \
		}                                                                                 \
	}                                                                                         \
	VEC_ENTRY(NAME, d, 2)

/* bf16 is computed as f32 and rounded once. */
typedef uint32_t vec_u32 __attribute__((vector_size(VEC_BYTES)));
typedef uint16_t vec_bf16 __attribute__((vector_size(VEC_BYTES / 2), aligned(2), may_alias));
static inline vec_f32 vec_from_bf16(const uint16_t *p)
{
	return (vec_f32)(__builtin_convertvector(*(const vec_bf16 *)p, vec_u32) << 16);
}

static inline void vec_to_bf16(uint16_t *p, vec_f32 v)
{
	vec_u32 u = (vec_u32)v, nan = (vec_u32)(v != v);
	vec_u32 r = ((u + 0x7fff + (u >> 16 & 1)) & ~nan) | ((u | 0x400000) & nan);

	*(vec_bf16 *)p = __builtin_convertvector(r >> 16, vec_bf16);
}

#define VEC_HALF_1(NAME, DECL, EXPR)                                                              \
	static void NAME##_bf16_block(void *out, const void *const *in, int64_t n,                \
				      const void *params)                                         \
	{                                                                                         \
		const uint16_t *px = in[0];                                                       \
		uint16_t *po = out, pad[VEC_F32] = {0};                                           \
		int64_t i = 0;                                                                    \
		DECL;                                                                             \
                                                                                                  \
		for (; i + VEC_F32 <= n; i += VEC_F32) {                                          \
			vec_f32 x = vec_from_bf16(px + i);                                        \
			vec_to_bf16(po + i, (EXPR));                                              \
		}                                                                                 \
		if (i < n) {                                                                      \
			vec_f32 x;                                                                \
			memcpy(pad, px + i, (n - i) * sizeof(*pad));                              \
			x = vec_from_bf16(pad);                                                   \
			vec_to_bf16(pad, (EXPR));                                                 \
			memcpy(po + i, pad, (n - i) * sizeof(*pad));                              \
		}                                                                                 \
	}                                                                                         \
	VEC_ENTRY(NAME, bf16, 1)

/* SLEEF's functions as name_v32 and name_v64; ULP is SLEEF's suffix: u10, u05. */
#define VEC_SLEEF_1(f)                                                                            \
	static inline vec_f32 f##_v32(vec_f32 x)                                                  \
	{                                                                                         \
		return (vec_f32)SLEEF_F32(f)((sleef_f32)x);                                       \
	}                                                                                         \
	static inline vec_f64 f##_v64(vec_f64 x)                                                  \
	{                                                                                         \
		return (vec_f64)SLEEF_F64(f)((sleef_f64)x);                                       \
	}
#define VEC_SLEEF_2(f)                                                                            \
	static inline vec_f32 f##_v32(vec_f32 x, vec_f32 y)                                       \
	{                                                                                         \
		return (vec_f32)SLEEF_F32(f)((sleef_f32)x, (sleef_f32)y);                         \
	}                                                                                         \
	static inline vec_f64 f##_v64(vec_f64 x, vec_f64 y)                                       \
	{                                                                                         \
		return (vec_f64)SLEEF_F64(f)((sleef_f64)x, (sleef_f64)y);                         \
	}

/* Loops NAME_f32 and NAME_f64 over f_v32 and f_v64. */
#define VEC_UNARY(NAME, f)                                                                        \
	VEC_LOOP_1(NAME, f32, float, vec_f32, VEC_F32, (void)params, f##_v32(x))                  \
	VEC_LOOP_1(NAME, f64, double, vec_f64, VEC_F64, (void)params, f##_v64(x))
#define VEC_BINARY(NAME, f)                                                                       \
	VEC_LOOP_2(NAME, f32, float, vec_f32, VEC_F32, (void)params, f##_v32(x, y))               \
	VEC_LOOP_2(NAME, f64, double, vec_f64, VEC_F64, (void)params, f##_v64(x, y))

#endif
