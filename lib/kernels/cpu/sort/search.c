// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* searchsorted, a binary search for each value; unique, the runs of equal rows. */
#include "kernels/cpu/simd/cpu.h"

#include "iter/parallel.h"
#include "kernels/abi/search.h"

#define SEARCHES 8 /* at the same time */

struct search_job {
	const tensor *sequence, *sorter;
	const char *values;
	int64_t *out, n, m;
	bool right;
};

#define LOOPS_FILE "kernels/cpu/sort/search_loops.h"
#include "kernels/cpu/simd/each_float.h"
#include "kernels/cpu/simd/each_int.h"
#define T      uint8_t
#define SUFFIX b8
#include LOOPS_FILE
#undef T
#undef SUFFIX

#define SEARCH_ENTRY(d, T, D) [D] = searchsorted_##d,
#define RUNS_ENTRY(d, T, D)   [D] = unique_runs_##d,

static int cpu_searchsorted(tensor *out, const tensor *sequence, const tensor *values,
			    const tensor *sorter, int64_t m, bool right)
{
	static const parallel_fn fns[TENSOR_DTYPE_COUNT] = { DTYPES_REAL(SEARCH_ENTRY) };
	struct search_job j = { sequence,
				sorter,
				values->data,
				out->data,
				sequence->ndim ? sequence->sizes[sequence->ndim - 1] : 1,
				m,
				right };

	if (unlikely(!fns[sequence->dtype]))
		return tensor_kernel_no_dtype("searchsorted", sequence->dtype, "cpu");
	parallel_for(0, values->numel, ITER_GRAIN / 16, fns[sequence->dtype], &j);
	return 0;
}

typedef int64_t (*unique_runs_fn)(const void *rows, int64_t n, int64_t k, const int64_t *order,
				  int64_t *starts, int64_t *numbers);

static int cpu_unique(const tensor *rows, const int64_t *order, int64_t *starts, int64_t *numbers,
		      int64_t *runs)
{
	static const unique_runs_fn fns[TENSOR_DTYPE_COUNT] = { DTYPES_REAL(RUNS_ENTRY) };

	if (unlikely(!fns[rows->dtype]))
		return tensor_kernel_no_dtype("unique", rows->dtype, "cpu");
	*runs = fns[rows->dtype](rows->data, rows->sizes[0], rows->sizes[1], order, starts,
				 numbers);
	return 0;
}

CPU_KERNELS(KERNEL(searchsorted), KERNEL(unique))
