/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Elements of f32, f64, f16 and bf16 as vectors of f32 or f64: vec_get_bf16() and vec_put_bf16() move
 * a whole vector, the _part forms its first n lanes; the others are zero.
 */
#ifndef TENSOR_VEC_ELEMENTS_H
#define TENSOR_VEC_ELEMENTS_H

#include "kernels/cpu/simd/vec_reduced_float.h"

static inline vec_f32 vec_get_f32(const float *p)
{
	return *(const vec_f32 *)p;
}

static inline vec_f32 vec_get_part_f32(const float *p, int64_t n)
{
	return vec_load_f32(p, vec_part_f32(n));
}

static inline void vec_put_f32(float *p, vec_f32 v)
{
	*(vec_f32 *)p = v;
}

static inline void vec_put_part_f32(float *p, vec_f32 v, int64_t n)
{
	vec_store_f32(p, vec_part_f32(n), v);
}

static inline vec_f64 vec_get_f64(const double *p)
{
	return *(const vec_f64 *)p;
}

static inline vec_f64 vec_get_part_f64(const double *p, int64_t n)
{
	return vec_load_f64(p, vec_part_f64(n));
}

static inline void vec_put_f64(double *p, vec_f64 v)
{
	*(vec_f64 *)p = v;
}

static inline void vec_put_part_f64(double *p, vec_f64 v, int64_t n)
{
	vec_store_f64(p, vec_part_f64(n), v);
}

static inline vec_f32 vec_get_f16(const uint16_t *p)
{
	return vec_from_f16(*(const vec_reduced_float *)p);
}

static inline vec_f32 vec_get_part_f16(const uint16_t *p, int64_t n)
{
	return vec_from_f16(vec_load_reduced_float(p, n));
}

static inline void vec_put_f16(uint16_t *p, vec_f32 v)
{
	*(vec_reduced_float *)p = vec_to_f16(v);
}

static inline void vec_put_part_f16(uint16_t *p, vec_f32 v, int64_t n)
{
	vec_store_reduced_float(p, vec_to_f16(v), n);
}

static inline vec_f32 vec_get_bf16(const uint16_t *p)
{
	return vec_from_bf16(*(const vec_reduced_float *)p);
}

static inline vec_f32 vec_get_part_bf16(const uint16_t *p, int64_t n)
{
	return vec_from_bf16(vec_load_reduced_float(p, n));
}

static inline void vec_put_bf16(uint16_t *p, vec_f32 v)
{
	*(vec_reduced_float *)p = vec_to_bf16(v);
}

static inline void vec_put_part_bf16(uint16_t *p, vec_f32 v, int64_t n)
{
	vec_store_reduced_float(p, vec_to_bf16(v), n);
}

#endif
