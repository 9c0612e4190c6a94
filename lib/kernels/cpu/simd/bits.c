// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Copies of elements without conversion, by element size. They pack strided, repeated and
 * transposed operands. Steps of -1 to 4 elements have vectorized loops; other strides copy
 * single elements.
 */
#include "kernels/cpu/simd/bits.h"

#include "iter/copy_bytes.h"
#include "kernels/cpu/simd/transpose.h"
#include "kernels/cpu/simd/vec.h"

#define TILE_MIN    8	/* rows and elements of the smallest copy that is made by tiles */
#define SHORT_BYTES 512 /* of a row, at most, that is copied by a few moves */

#define LOOPS_FILE "kernels/cpu/simd/bits_loops.h"
#include "kernels/cpu/simd/each_size.h"

iter_loop CPU_NAME(bits_loop)(size_t size)
{
	switch (size) {
	case 1:
		return bits_1;
	case 2:
		return bits_2;
	case 4:
		return bits_4;
	case 8:
		return bits_8;
	default:
		return bits_16;
	}
}
