// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Products of f32 matrices. See matmul_float.h. */
#include "vec.h"

#define T	   float
#define VEC	   vec_f32
typedef int32_t mask_f32 __attribute__((vector_size(VEC_BYTES)));
#define MASK	   mask_f32
#define MATMUL	   matmul_f32
#define PART(n)	   vec_part_f32(n)
#define LOAD	   vec_load_f32
#define STORE	   vec_store_f32
#define LANES	   VEC_F32

#include "matmul_float.h"
