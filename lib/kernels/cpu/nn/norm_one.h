/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The functions of one type for norm_each.h, which defines the names that end here (no include guard). */
#include "kernels/cpu/nn/moments.h"
#include LOOPS_FILE
#undef X
#undef T
#undef V
#undef LANES
#undef ONE
#undef ROUND
#undef F
