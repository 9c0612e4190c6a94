// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Attention of f64. See attention_tiles.h. */
#include "kernels/cpu/simd/vecmath.h"

#define T   double
#define VEC vec_f64
typedef int64_t mask_f64 __attribute__((vector_size(VEC_BYTES)));
#define MASK	     mask_f64
#define PART(n)	     vec_part_f64(n)
#define LOAD	     vec_load_f64
#define STORE	     vec_store_f64
#define LANES	     VEC_F64
#define EXP	     exp_f64v
#define LOG	     log_f64v
#define MAX	     vec_max_f64
#define T_DTYPE	     TENSOR_F64
#define ATTENTION(x) CPU_NAME(x##_f64)

#include "kernels/cpu/nn/attention/attention_tiles.h"

#include "kernels/cpu/nn/attention/attention_forward.h"

#include "kernels/cpu/nn/attention/attention_backward.h"
