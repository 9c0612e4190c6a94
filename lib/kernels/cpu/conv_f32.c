// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Convolutions of f32. See conv_sum.h, conv_winograd.h, conv_weight.h and conv_depth.h. */
#include "matmul_f32.h"

#define CONV(x) CPU_NAME(x##_f32)

#include "conv.h"

#include "../parallel.h"

#include "matmul_pack.h"
#include "matmul_tile.h"

#include "conv_depth.h"
#include "conv_sum.h"
#include "conv_weight.h"
#include "conv_winograd.h"
