// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * bincount on the calling thread: counts of threads would need a table each. Neighbours are counted
 * in two tables if these are small, as they are often equal, and an addition waits for the one
 * before it to the same element.
 */
#include "kernels/cpu/simd/cpu.h"

#include "kernels/abi/bincount.h"

#define SMALL_TABLE 2048

struct count_job {
	const void *self;
	int64_t numel, *counts, n, least, most;
};

#define LOOPS_FILE "kernels/cpu/reduce/bincount_loops.h"
#include "kernels/cpu/simd/each_int.h"

#define RANGE_ENTRY(d, T, D) [D] = range_##d,
#define COUNT_ENTRY(d, T, D) [D] = count_##d,

static int cpu_bincount(const tensor *self, int64_t *counts, int64_t n, int64_t *least,
			int64_t *most)
{
	static void (*const ranges[TENSOR_DTYPE_COUNT])(
		struct count_job *) = { DTYPES_INT(RANGE_ENTRY) };
	static void (*const fns[TENSOR_DTYPE_COUNT])(
		struct count_job *) = { DTYPES_INT(COUNT_ENTRY) };
	struct count_job j = { self->data, self->numel, counts, n, 0, 0 };

	if (unlikely(!fns[self->dtype] || self->dtype == TENSOR_U64))
		return tensor_kernel_no_dtype("bincount", self->dtype, "cpu");
	if (counts) {
		fns[self->dtype](&j);
		return 0;
	}
	ranges[self->dtype](&j);
	*least = j.least;
	*most = j.most;
	return 0;
}

CPU_KERNELS(KERNEL(bincount))
