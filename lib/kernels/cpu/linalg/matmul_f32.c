// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Products of f32 matrices. See matmul_float.h. */
#include "kernels/cpu/linalg/matmul_f32.h"

#define MATMUL matmul_f32

#include "kernels/cpu/linalg/matmul_float.h"
