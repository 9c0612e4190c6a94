// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Products of integer matrices; results wrap. */
#include "kernels/cpu/linalg/matmul.h"

#include "iter/parallel.h"

#define BLOCK 64 /* rows and columns of a block of b */

/* Rows of c in a chunk of parallel work. */
static int64_t rows_of_chunk(const struct product *p)
{
	int64_t work = p->n * (p->k + 1),
		rows = ITER_GRAIN / (work < ITER_GRAIN ? work : ITER_GRAIN);

	return rows < BLOCK ? BLOCK : rows;
}

#define LOOPS_FILE "kernels/cpu/linalg/matmul_int_loops.h"
#include "kernels/cpu/simd/each_wrapping.h"
