// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Convolutions of f32. See conv_implicit_gemm.h, conv_wgrad.h, conv_winograd.h and
 * conv_depth.h.
 */
#include "kernels/cpu/linalg/matmul_f32.h"

#define CONV(x) CPU_NAME(x##_f32)

#include "kernels/cpu/nn/conv/conv.h"

#include "iter/parallel.h"

#include "kernels/cpu/linalg/matmul_pack.h"
#include "kernels/cpu/linalg/matmul_tile.h"

#include "kernels/cpu/simd/vec_half.h"

/* Loads of parts of a vector take a loop where there are no masks. */
#if VEC_BYTES > 16
#define ROWS_LANES LANES
#else
#define ROWS_LANES 0
#endif
#ifdef VEC_HALF
#define ROWS_FEW VEC_HALF
#else
#define ROWS_FEW ROWS_LANES
#endif
#define ROWS_INDEX VEC_LANE_INDEX_32

#include "kernels/cpu/nn/conv/conv_copy.h"
#include "kernels/cpu/nn/conv/conv_depth.h"
#include "kernels/cpu/nn/conv/conv_depth_gradient.h"
#include "kernels/cpu/nn/conv/conv_tile.h"
#include "kernels/cpu/simd/tiles_none.h"
#include "kernels/cpu/nn/conv/conv_implicit_gemm.h"
#include "kernels/cpu/nn/conv/conv_channels.h"
#define E		 float
#define UNIT		 1
#define LOAD_UNITS(p, n) LOAD(p, PART(n))
#include "kernels/cpu/nn/conv/conv_wgrad.h"
#include "kernels/cpu/nn/conv/conv_winograd.h"
