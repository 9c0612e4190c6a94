/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The element type f32 for matmul_tile.h and the files that include it. */
#ifndef TENSOR_MATMUL_F32_H
#define TENSOR_MATMUL_F32_H

#include "kernels/cpu/simd/vec.h"
#include "kernels/cpu/simd/vec_split.h"

#define T   float
#define VEC vec_f32
typedef int32_t mask_f32 __attribute__((vector_size(VEC_BYTES)));
#define MASK	      mask_f32
#define PART(n)	      vec_part_f32(n)
#define PART_OF(a, b) vec_lanes_f32(a, b)
#define LOAD	      vec_load_f32
#define STORE	      vec_store_f32
#define LANES	      VEC_F32
#define STORE_HALVES  vec_store_halves_f32

#endif
