// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Bitwise operations on integers, and logical ones on all dtypes. */
#include "kernels/cpu/simd/loops.h"

#include "kernels/formula/bitwise.h"

CPU_KERNELS(K(bitwise_not), K(bitwise_and), K(bitwise_or), K(bitwise_xor), K(bitwise_left_shift),
	    K(bitwise_right_shift), K(logical_and), K(logical_or), K(logical_xor))
