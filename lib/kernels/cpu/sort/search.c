// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Binary search of many values, and runs of equal rows. */
#include "kernels/cpu/simd/cpu.h"

#include "iter/parallel.h"
#include "kernels/abi/search.h"

struct job {
	const tensor *sequence, *sorter;
	const char *values;
	int64_t *out, n, m;
	bool right;
};

/* An element that is not comparable is behind all. */
#define SEARCH(d, T, D)                                                                        \
	static void search_##d(int64_t begin, int64_t end, void *ctx)                          \
	{                                                                                      \
		const struct job *j = ctx;                                                     \
		bool shared = j->sequence->ndim == 1;                                          \
                                                                                               \
		for (int64_t i = begin; i < end; i++) {                                        \
			int64_t line = shared ? 0 : i / j->m * j->n, low = 0, high = j->n;     \
			const T *s = (const T *)j->sequence->data + line;                      \
			const int64_t *order = j->sorter ? (int64_t *)j->sorter->data + line : \
							   NULL;                               \
			T x = ((const T *)j->values)[i];                                       \
                                                                                               \
			while (low < high) {                                                   \
				int64_t mid = low + (high - low) / 2;                          \
				T y = s[order ? order[mid] : mid];                             \
				bool before = j->right ? !(y > x) : !(y >= x);                 \
                                                                                               \
				low = before ? mid + 1 : low;                                  \
				high = before ? high : mid;                                    \
			}                                                                      \
			j->out[i] = low;                                                       \
		}                                                                              \
	}                                                                                      \
                                                                                               \
	static int64_t runs_##d(const void *rows, int64_t n, int64_t k, const int64_t *order,  \
				int64_t *starts)                                               \
	{                                                                                      \
		const T *x = rows;                                                             \
		int64_t runs = 0;                                                              \
                                                                                               \
		for (int64_t i = 0; i < n; i++) {                                              \
			const T *a = x + (order ? order[i] : i) * k, *b;                       \
			bool differ = !i;                                                      \
                                                                                               \
			b = i ? x + (order ? order[i - 1] : i - 1) * k : a;                    \
			for (int64_t c = 0; c < k && !differ; c++)                             \
				differ = a[c] != b[c];                                         \
			starts[runs] = i;                                                      \
			runs += differ;                                                        \
		}                                                                              \
		return runs;                                                                   \
	}
DTYPES_REAL(SEARCH)

static int cpu_searchsorted(tensor *out, const tensor *sequence, const tensor *values,
			    const tensor *sorter, int64_t m, bool right)
{
#define SEARCH_OF(d, T, D) [D] = search_##d,
	static const parallel_fn fns[TENSOR_DTYPE_COUNT] = { DTYPES_REAL(SEARCH_OF) };
	struct job j = { sequence,
			 sorter,
			 values->data,
			 out->data,
			 sequence->ndim ? sequence->sizes[sequence->ndim - 1] : 1,
			 m,
			 right };

	if (unlikely(!fns[sequence->dtype]))
		return kernel_no_dtype("searchsorted", sequence->dtype, "cpu");
	parallel_for(0, values->numel, ITER_GRAIN / 16, fns[sequence->dtype], &j);
	return 0;
}

static int cpu_unique(const tensor *rows, const int64_t *order, int64_t *starts, int64_t *runs)
{
#define RUNS_OF(d, T, D) [D] = runs_##d,
	static int64_t (*const fns[TENSOR_DTYPE_COUNT])(const void *, int64_t, int64_t,
							const int64_t *,
							int64_t *) = { DTYPES_REAL(RUNS_OF) };

	if (unlikely(!fns[rows->dtype]))
		return kernel_no_dtype("unique", rows->dtype, "cpu");
	*runs = fns[rows->dtype](rows->data, rows->sizes[0], rows->sizes[1], order, starts);
	return 0;
}

CPU_KERNELS(K(searchsorted), K(unique))
