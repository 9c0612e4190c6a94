/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * searchsorted and unique for one dtype: searchsorted_f32(), unique_runs_f32() etc. Included by
 * search.c through each_int.h, each_float.h and, for bool, by itself (no include guard); T and
 * SUFFIX are defined.
 */

/* Values with indices begin to end - 1. NaN is behind all numbers. */
static void CPU_PASTE(searchsorted, SUFFIX)(int64_t begin, int64_t end, void *ctx)
{
	const struct search_job *j = ctx;
	bool shared = j->sequence->ndim == 1;

	for (int64_t i = begin; i < end; i++) {
		int64_t line = shared ? 0 : i / j->m * j->n, low = 0, high = j->n;
		const T *s = (const T *)j->sequence->data + line;
		const int64_t *order = j->sorter ? (int64_t *)j->sorter->data + line : NULL;
		T x = ((const T *)j->values)[i];

		while (low < high) {
			int64_t mid = low + (high - low) / 2;
			T y = s[order ? order[mid] : mid];
			bool before = j->right ? !(y > x) : !(y >= x);

			low = before ? mid + 1 : low;
			high = before ? high : mid;
		}
		j->out[i] = low;
	}
}

/*
 * Sets starts[] to the first of each run of equal rows, in the given order, and numbers[], unless
 * it is NULL, to the run of each row; returns the number of runs.
 */
static int64_t CPU_PASTE(unique_runs, SUFFIX)(const void *rows, int64_t n, int64_t k,
					      const int64_t *order, int64_t *restrict starts,
					      int64_t *restrict numbers)
{
	const T *x = rows;
	int64_t runs = 0;

	if (k == 1 && !order) {
		for (int64_t i = 0; i < n; i++) {
			bool differ = i ? x[i] != x[i - 1] : true;

			starts[runs] = i;
			runs += differ;
			if (numbers)
				numbers[i] = runs - 1;
		}
		return runs;
	}
	for (int64_t i = 0; i < n; i++) {
		const T *a = x + (order ? order[i] : i) * k, *b;
		bool differ = !i;

		b = i ? x + (order ? order[i - 1] : i - 1) * k : a;
		for (int64_t c = 0; c < k && !differ; c++)
			differ = a[c] != b[c];
		starts[runs] = i;
		runs += differ;
		if (numbers)
			numbers[order ? order[i] : i] = runs - 1;
	}
	return runs;
}
