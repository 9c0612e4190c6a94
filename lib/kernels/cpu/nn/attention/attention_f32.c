// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Attention of f32, and of f16 and bf16, which are converted to it. See attention_tiles.h. */
#include "kernels/cpu/simd/vecmath.h"

#include "kernels/cpu/linalg/matmul_f32.h"

#define EXP	     exp_f32v
#define LOG	     log_f32v
#define MAX	     vec_max_f32
#define T_DTYPE	     TENSOR_F32
#define ATTENTION(x) CPU_NAME(x##_f32)

#include "kernels/cpu/nn/attention/attention_tiles.h"

#include "kernels/cpu/nn/attention/attention_forward.h"

#include "kernels/cpu/nn/attention/attention_backward.h"
