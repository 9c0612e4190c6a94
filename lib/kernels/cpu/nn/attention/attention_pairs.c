// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Attention of bf16 by the instruction that adds the products of pairs: weights and gradients of scores are rounded to
 * bf16 before they are multiplied, sums are f32. See attention_units.h.
 */
#include "kernels/cpu/nn/attention/attention.h"

#include "kernels/cpu/simd/vec_reduced_float.h"
#include "kernels/cpu/simd/vecmath.h"

#ifdef VEC_PAIRS
#include "kernels/cpu/linalg/matmul_f32.h"

#define UNIT	     2
#define MULADD	     vec_add_pairs
#define BROADCAST(x) vec_broadcast_pair(&(x))
#define EXP	     exp_f32v
#define LOG	     log_f32v
#define MAX	     vec_max_f32
#define T_DTYPE	     TENSOR_F32
#define ATTENTION(x) CPU_NAME(x##_pairs)

#include "kernels/cpu/nn/attention/attention_tiles.h"

#include "kernels/cpu/nn/attention/attention_forward.h"

#include "kernels/cpu/nn/attention/attention_backward.h"
#else
const struct attention_functions CPU_NAME(attention_pairs) = { .block = NULL };
#endif
