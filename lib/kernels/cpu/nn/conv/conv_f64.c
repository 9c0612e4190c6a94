// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Convolutions of f64. See conv_implicit_gemm.h, conv_wgrad.h, conv_winograd.h and
 * conv_depth.h.
 */
#include "kernels/cpu/simd/vec.h"

#define T   double
#define VEC vec_f64
typedef int64_t mask_f64 __attribute__((vector_size(VEC_BYTES)));
#define MASK	      mask_f64
#define PART(n)	      vec_part_f64(n)
#define PART_OF(a, b) vec_lanes_f64(a, b)
#define LOAD	      vec_load_f64
#define STORE	      vec_store_f64
#define LANES	      VEC_F64
#define CONV(x)	      CPU_NAME(x##_f64)

#include "kernels/cpu/nn/conv/conv.h"

#include "iter/parallel.h"

#include "kernels/cpu/linalg/matmul_pack.h"
#include "kernels/cpu/linalg/matmul_tile.h"

/* Loads of parts of a vector take a loop where there are no masks. */
#if VEC_BYTES > 16
#define ROWS_LANES LANES
#else
#define ROWS_LANES 0
#endif
#define ROWS_FEW   ROWS_LANES
#define ROWS_INDEX VEC_LANE_INDEX

#include "kernels/cpu/nn/conv/conv_copy.h"
#include "kernels/cpu/nn/conv/conv_depth.h"
#include "kernels/cpu/nn/conv/conv_depth_gradient.h"
#include "kernels/cpu/nn/conv/conv_tile.h"
#include "kernels/cpu/simd/tiles_none.h"
#include "kernels/cpu/nn/conv/conv_implicit_gemm.h"
#include "kernels/cpu/nn/conv/conv_channels.h"
#define E		 double
#define UNIT		 1
#define LOAD_UNITS(p, n) LOAD(p, PART(n))
#include "kernels/cpu/nn/conv/conv_wgrad.h"
#include "kernels/cpu/nn/conv/conv_winograd.h"
