// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Values of the product of two sparse matrices (F. G. Gustavson, Two fast algorithms for sparse matrices, ACM TOMS 4(3), 1978): a row is
 * summed in a dense row of its own, whose elements are set to 0 at the columns of the result before. A row is computed by one thread, in the
 * order of the elements of a.
 */
#include "kernels/abi/sparse.h"
#include "kernels/cpu/simd/cpu.h"

#include "iter/parallel.h"

#include <stdatomic.h>

#define PARTS 16 /* of the rows: each has a dense row */

struct spgemm_job {
	const struct spgemm *p;
	int64_t parts;
	atomic_int err;
};

/* Part i begins where so many elements of a are before it. */
static int64_t part_begin(const struct spgemm_job *job, int64_t i)
{
	const int64_t *crow = job->p->a_crow;
	int64_t m = job->p->m, low = 0, high = m,
		want = (int64_t)((__int128)crow[m] * i / job->parts);

	if (i == job->parts)
		return m;
	while (low < high) {
		int64_t middle = low + (high - low) / 2;

		if (crow[middle] < want)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

#define LOOPS_FILE "kernels/cpu/sparse/spgemm_loops.h"
#include "kernels/cpu/simd/each_int.h"
#include "kernels/cpu/simd/each_float.h"
#include "kernels/cpu/simd/each_complex.h"
#undef LOOPS_FILE

static int cpu_spgemm(const struct spgemm *p)
{
	static const parallel_fn loops[TENSOR_DTYPE_COUNT] = {
#define ENTRY(d, T, D) [D] = spgemm_##d,
		DTYPES_NUMBER(ENTRY) DTYPES_COMPLEX(ENTRY)
#undef ENTRY
	};
	struct spgemm_job job = { .p = p, .parts = p->crow[p->m] < ITER_GRAIN ? 1 : PARTS };

	if (!loops[p->out->dtype])
		return tensor_kernel_no_dtype("mm", p->out->dtype, "cpu");
	parallel_for(0, job.parts, 1, loops[p->out->dtype], &job);
	return job.err ? tensor_fail(ENOMEM, "mm: no memory for a row of the product") : 0;
}

CPU_KERNELS(KERNEL(spgemm))
