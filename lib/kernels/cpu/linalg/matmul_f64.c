// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Products of f64 matrices. See matmul_float.h. */
#include "kernels/cpu/simd/vec.h"

#define T   double
#define VEC vec_f64
typedef int64_t mask_f64 __attribute__((vector_size(VEC_BYTES)));
#define MASK	mask_f64
#define MATMUL	matmul_f64
#define PART(n) vec_part_f64(n)
#define LOAD	vec_load_f64
#define STORE	vec_store_f64
#define LANES	VEC_F64

#include "kernels/cpu/linalg/matmul_float.h"
