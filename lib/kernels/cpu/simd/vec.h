/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Vectors of the width of the instruction-set level, and the SLEEF functions for them (error below
 * 1 ulp). Only vec*.h contain code that depends on the width.
 */
#ifndef TENSOR_VEC_H
#define TENSOR_VEC_H

#include <immintrin.h>
#include <sleef.h>
#include <stdint.h>

#if defined(__AVX512F__)
#define VEC_BYTES 64
typedef __m512 sleef_f32;
typedef __m512d sleef_f64;
#define SLEEF_F32(f) Sleef_##f##f16_u10
#define SLEEF_F64(f) Sleef_##f##d8_u10
/* SLEEF functions whose suffix is not _u10. */
#define SLEEF_F32_(f, suffix) Sleef_##f##f16##suffix
#define SLEEF_F64_(f, suffix) Sleef_##f##d8##suffix
#elif defined(__AVX2__)
#define VEC_BYTES	      32
typedef __m256 sleef_f32;
typedef __m256d sleef_f64;
#define SLEEF_F32(f)	      Sleef_##f##f8_u10
#define SLEEF_F64(f)	      Sleef_##f##d4_u10
/* SLEEF functions whose suffix is not _u10. */
#define SLEEF_F32_(f, suffix) Sleef_##f##f8##suffix
#define SLEEF_F64_(f, suffix) Sleef_##f##d4##suffix
#else
#define VEC_BYTES	      16
typedef __m128 sleef_f32;
typedef __m128d sleef_f64;
#define SLEEF_F32(f)	      Sleef_##f##f4_u10
#define SLEEF_F64(f)	      Sleef_##f##d2_u10
/* SLEEF functions whose suffix is not _u10. */
#define SLEEF_F32_(f, suffix) Sleef_##f##f4##suffix
#define SLEEF_F64_(f, suffix) Sleef_##f##d2##suffix
#endif

typedef float vec_f32 __attribute__((vector_size(VEC_BYTES), aligned(4), may_alias));
typedef double vec_f64 __attribute__((vector_size(VEC_BYTES), aligned(8), may_alias));

typedef uint32_t vec_u32 __attribute__((vector_size(VEC_BYTES), aligned(4), may_alias));
typedef uint64_t vec_u64 __attribute__((vector_size(VEC_BYTES), aligned(8), may_alias));

/* Indices of the lanes of 64 bits, and of those of 32. */
#if VEC_BYTES == 64
#define VEC_LANE_INDEX	  ((vec_u64){ 0, 1, 2, 3, 4, 5, 6, 7 })
#define VEC_LANE_INDEX_32 ((vec_u32){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 })
#elif VEC_BYTES == 32
#define VEC_LANE_INDEX	  ((vec_u64){ 0, 1, 2, 3 })
#define VEC_LANE_INDEX_32 ((vec_u32){ 0, 1, 2, 3, 4, 5, 6, 7 })
#else
#define VEC_LANE_INDEX	  ((vec_u64){ 0, 1 })
#define VEC_LANE_INDEX_32 ((vec_u32){ 0, 1, 2, 3 })
#endif
/* v, of type V, with each 64-bit lane exchanged for the one at index ^ k: k is 1, 2 or 4. */
#define VEC_CROSS(V, v, k) ((V)__builtin_shuffle((vec_u64)(v), VEC_LANE_INDEX ^ (k)))

/* The highest bit of each byte. */
static inline uint64_t vec_byte_bits(vec_u64 v)
{
#if defined(__AVX512F__)
	return _mm512_movepi8_mask((__m512i)v);
#elif defined(__AVX2__)
	return (uint32_t)_mm256_movemask_epi8((__m256i)v);
#else
	return (uint32_t)_mm_movemask_epi8((__m128i)v);
#endif
}

/* Products of the lower 32 bits of each 64-bit lane; the upper 32 bits are ignored. */
static inline vec_u64 vec_mul_halves(vec_u64 a, vec_u64 b)
{
#if defined(__AVX512F__)
	return (vec_u64)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
	return (vec_u64)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#else
	return (vec_u64)_mm_mul_epu32((__m128i)a, (__m128i)b);
#endif
}

/*
 * Part of a vector: a vec_part selects the first n lanes, or the lanes [from, to). Loads set the
 * other lanes to zero; neither loads nor stores access memory outside the part. It is valid for
 * one element type.
 */
#if defined(__AVX512F__)
typedef __mmask16 vec_part;
static inline vec_part vec_part_f32(int64_t n)
{
	return (vec_part)((1u << n) - 1);
}

static inline vec_part vec_part_f64(int64_t n)
{
	return (vec_part)((1u << n) - 1);
}

static inline vec_part vec_lanes_f32(int from, int to)
{
	return (vec_part)((1u << to) - (1u << from));
}

static inline vec_part vec_lanes_f64(int from, int to)
{
	return (vec_part)((1u << to) - (1u << from));
}

static inline vec_f32 vec_load_f32(const float *p, vec_part part)
{
	return (vec_f32)_mm512_maskz_loadu_ps(part, p);
}

static inline void vec_store_f32(float *p, vec_part part, vec_f32 v)
{
	_mm512_mask_storeu_ps(p, part, (__m512)v);
}

static inline vec_f64 vec_load_f64(const double *p, vec_part part)
{
	return (vec_f64)_mm512_maskz_loadu_pd((__mmask8)part, p);
}

static inline void vec_store_f64(double *p, vec_part part, vec_f64 v)
{
	_mm512_mask_storeu_pd(p, (__mmask8)part, (__m512d)v);
}
#elif defined(__AVX2__)
typedef __m256i vec_part;
static inline vec_part vec_part_f32(int64_t n)
{
	return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n),
				  _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline vec_part vec_part_f64(int64_t n)
{
	return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}

static inline vec_part vec_lanes_f32(int from, int to)
{
	return _mm256_andnot_si256(vec_part_f32(from), vec_part_f32(to));
}

static inline vec_part vec_lanes_f64(int from, int to)
{
	return _mm256_andnot_si256(vec_part_f64(from), vec_part_f64(to));
}

static inline vec_f32 vec_load_f32(const float *p, vec_part part)
{
	return (vec_f32)_mm256_maskload_ps(p, part);
}

static inline void vec_store_f32(float *p, vec_part part, vec_f32 v)
{
	_mm256_maskstore_ps(p, part, (__m256)v);
}

static inline vec_f64 vec_load_f64(const double *p, vec_part part)
{
	return (vec_f64)_mm256_maskload_pd(p, part);
}

static inline void vec_store_f64(double *p, vec_part part, vec_f64 v)
{
	_mm256_maskstore_pd(p, part, (__m256d)v);
}
#else
typedef struct {
	int from, to;
} vec_part;

static inline vec_part vec_part_f32(int64_t n)
{
	return (vec_part){ 0, (int)n };
}

static inline vec_part vec_lanes_f32(int from, int to)
{
	return (vec_part){ from, to };
}

static inline vec_f32 vec_load_f32(const float *p, vec_part part)
{
	vec_f32 v = { 0 };

	for (int i = part.from; i < part.to; i++)
		v[i] = p[i];
	return v;
}

static inline void vec_store_f32(float *p, vec_part part, vec_f32 v)
{
	for (int i = part.from; i < part.to; i++)
		p[i] = v[i];
}

static inline vec_part vec_part_f64(int64_t n)
{
	return (vec_part){ 0, (int)n };
}

static inline vec_part vec_lanes_f64(int from, int to)
{
	return (vec_part){ from, to };
}

static inline vec_f64 vec_load_f64(const double *p, vec_part part)
{
	vec_f64 v = { 0 };

	for (int i = part.from; i < part.to; i++)
		v[i] = p[i];
	return v;
}

static inline void vec_store_f64(double *p, vec_part part, vec_f64 v)
{
	for (int i = part.from; i < part.to; i++)
		p[i] = v[i];
}
#endif

#define VEC_F32 (VEC_BYTES / 4)
#define VEC_F64 (VEC_BYTES / 8)

/* a in the lanes where the comparison c is true, else b; for vectors of any element type. */
#define VEC_PICK(c, a, b) \
	((__typeof__(a))(((__typeof__(c))(a) & (c)) | ((__typeof__(c))(b) & ~(c))))

/* Convert whole vectors of f16 to f32 and back; return the number of elements converted. */
#if defined(__AVX512F__)
static inline int64_t vec_f16_to_f32(float *to, const uint16_t *from, int64_t n)
{
	int64_t i = 0;

	for (; i + 16 <= n; i += 16)
		_mm512_storeu_ps(to + i,
				 _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(from + i))));
	return i;
}

static inline int64_t vec_f32_to_f16(uint16_t *to, const float *from, int64_t n)
{
	int64_t i = 0;

	for (; i + 16 <= n; i += 16)
		_mm256_storeu_si256((__m256i *)(to + i),
				    _mm512_cvtps_ph(_mm512_loadu_ps(from + i),
						    _MM_FROUND_TO_NEAREST_INT));
	return i;
}
#elif defined(__F16C__)
static inline int64_t vec_f16_to_f32(float *to, const uint16_t *from, int64_t n)
{
	int64_t i = 0;

	for (; i + 8 <= n; i += 8)
		_mm256_storeu_ps(to + i,
				 _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
	return i;
}

static inline int64_t vec_f32_to_f16(uint16_t *to, const float *from, int64_t n)
{
	int64_t i = 0;

	for (; i + 8 <= n; i += 8)
		_mm_storeu_si128((__m128i *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i),
								      _MM_FROUND_TO_NEAREST_INT));
	return i;
}
#else
static inline int64_t vec_f16_to_f32(float *to, const uint16_t *from, int64_t n)
{
	return 0;
}

static inline int64_t vec_f32_to_f16(uint16_t *to, const float *from, int64_t n)
{
	return 0;
}
#endif

/*
 * vec_max_f32(), vec_min_f32(), vec_max_f64(), vec_min_f64(): the greater or the lesser of x and y
 * in each lane, y where they are equal. The result is NaN where x or y is NaN: the instruction
 * returns its second operand then, so only NaN in x has to be blended in.
 */
#if defined(__AVX512F__)
#define VEC_MINMAX(OP)                                                                            \
	static inline vec_f32 vec_##OP##_f32(vec_f32 x, vec_f32 y)                                \
	{                                                                                         \
		__mmask16 nan = _mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_UNORD_Q);           \
                                                                                                  \
		return (vec_f32)_mm512_mask_mov_ps(_mm512_##OP##_ps((__m512)x, (__m512)y), nan,   \
						   (__m512)x);                                    \
	}                                                                                         \
	static inline vec_f64 vec_##OP##_f64(vec_f64 x, vec_f64 y)                                \
	{                                                                                         \
		__mmask8 nan = _mm512_cmp_pd_mask((__m512d)x, (__m512d)x, _CMP_UNORD_Q);          \
                                                                                                  \
		return (vec_f64)_mm512_mask_mov_pd(_mm512_##OP##_pd((__m512d)x, (__m512d)y), nan, \
						   (__m512d)x);                                   \
	}
#elif defined(__AVX2__)
#define VEC_MINMAX(OP)                                                                     \
	static inline vec_f32 vec_##OP##_f32(vec_f32 x, vec_f32 y)                         \
	{                                                                                  \
		__m256 nan = _mm256_cmp_ps((__m256)x, (__m256)x, _CMP_UNORD_Q);            \
                                                                                           \
		return (vec_f32)_mm256_blendv_ps(_mm256_##OP##_ps((__m256)x, (__m256)y),   \
						 (__m256)x, nan);                          \
	}                                                                                  \
	static inline vec_f64 vec_##OP##_f64(vec_f64 x, vec_f64 y)                         \
	{                                                                                  \
		__m256d nan = _mm256_cmp_pd((__m256d)x, (__m256d)x, _CMP_UNORD_Q);         \
                                                                                           \
		return (vec_f64)_mm256_blendv_pd(_mm256_##OP##_pd((__m256d)x, (__m256d)y), \
						 (__m256d)x, nan);                         \
	}
#else
#define VEC_MINMAX(OP)                                                                           \
	static inline vec_f32 vec_##OP##_f32(vec_f32 x, vec_f32 y)                               \
	{                                                                                        \
		__m128 nan = _mm_cmpunord_ps((__m128)x, (__m128)x);                              \
                                                                                                 \
		return (vec_f32)_mm_blendv_ps(_mm_##OP##_ps((__m128)x, (__m128)y), (__m128)x,    \
					      nan);                                              \
	}                                                                                        \
	static inline vec_f64 vec_##OP##_f64(vec_f64 x, vec_f64 y)                               \
	{                                                                                        \
		__m128d nan = _mm_cmpunord_pd((__m128d)x, (__m128d)x);                           \
                                                                                                 \
		return (vec_f64)_mm_blendv_pd(_mm_##OP##_pd((__m128d)x, (__m128d)y), (__m128d)x, \
					      nan);                                              \
	}
#endif
VEC_MINMAX(max)
VEC_MINMAX(min)
#undef VEC_MINMAX

static inline vec_f32 exp_v32(vec_f32 x)
{
	return (vec_f32)SLEEF_F32(exp)((sleef_f32)x);
}

static inline vec_f64 exp_v64(vec_f64 x)
{
	return (vec_f64)SLEEF_F64(exp)((sleef_f64)x);
}

static inline vec_f32 log_v32(vec_f32 x)
{
	return (vec_f32)SLEEF_F32(log)((sleef_f32)x);
}

static inline vec_f64 log_v64(vec_f64 x)
{
	return (vec_f64)SLEEF_F64(log)((sleef_f64)x);
}

#endif
