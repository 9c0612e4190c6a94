// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Convolutions of f32. See conv_sum.h, conv_winograd.h, conv_weight.h and conv_depth.h. */
#include "vec.h"

#define T	   float
#define VEC	   vec_f32
typedef int32_t mask_f32 __attribute__((vector_size(VEC_BYTES)));
#define MASK	   mask_f32
#define PART(n)	   vec_part_f32(n)
#define PART_OF(a, b) vec_lanes_f32(a, b)
#define LOAD	   vec_load_f32
#define STORE	   vec_store_f32
#define LANES	   VEC_F32
#define CONV(x)	   CPU_NAME(x##_f32)

#include "conv.h"

#include "../parallel.h"

#include "matmul_pack.h"
#include "matmul_tile.h"

#include "conv_depth.h"
#include "conv_sum.h"
#include "conv_weight.h"
#include "conv_winograd.h"
