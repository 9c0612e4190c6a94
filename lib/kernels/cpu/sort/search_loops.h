/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * searchsorted and unique for one dtype: searchsorted_f32(), unique_runs_f32() etc. Included by
 * search.c through each_int.h, each_float.h and, for bool, by itself (no include guard); T and
 * SUFFIX are defined.
 */

/*
 * The insertion positions of `count` values x[]. Lines of n > 0 elements begin at line[g]; order, if
 * it is not NULL, sorts them. NaN is behind all numbers. The searches advance together and without
 * branches, which random values would mispredict; one that has ended reads its first element.
 */
static inline __attribute__((always_inline)) void
CPU_PASTE(search_group, SUFFIX)(int64_t *restrict out, const T *restrict x, const T *restrict s,
				const int64_t *restrict order, const int64_t *restrict line,
				int64_t n, int count, bool right)
{
	int64_t low[SEARCHES] = { 0 }, high[SEARCHES];

	for (int g = 0; g < count; g++)
		high[g] = n;
	for (int64_t left = n; left; left /= 2)
#pragma GCC unroll 8
		for (int g = 0; g < count; g++) {
			ONE_BY_ONE;
			int64_t active = -(int64_t)(low[g] < high[g]);
			int64_t mid = low[g] + (high[g] - low[g]) / 2,
				at = line[g] + (mid & active);
			T y = s[order ? line[g] + order[at] : at];
			int64_t before = -(int64_t)(right ? !(y > x[g]) : !(y >= x[g]));

			low[g] += (mid + 1 - low[g]) & before & active;
			high[g] += (mid - high[g]) & ~before & active;
		}
	for (int g = 0; g < count; g++)
		out[g] = low[g];
}

/* Values with indices begin to end - 1. */
static void CPU_PASTE(searchsorted, SUFFIX)(int64_t begin, int64_t end, void *ctx)
{
	const struct search_job *j = ctx;
	const int64_t *order = j->sorter ? j->sorter->data : NULL;
	const T *s = j->sequence->data, *x = (const T *)j->values;
	bool shared = j->sequence->ndim == 1;
	int64_t line[SEARCHES] = { 0 };

	for (int64_t i = begin; i < end; i += SEARCHES) {
		int count = end - i < SEARCHES ? (int)(end - i) : SEARCHES;

		for (int g = 0; g < count && !shared; g++)
			line[g] = (i + g) / j->m * j->n;
		if (!j->n)
			memset(j->out + i, 0, (size_t)count * sizeof(*j->out));
		else if (count < SEARCHES || order)
			CPU_PASTE(search_group, SUFFIX)
		(j->out + i, x + i, s, order, line, j->n, count, j->right);
		else if (j->right) CPU_PASTE(search_group, SUFFIX)(j->out + i, x + i, s, NULL, line,
								   j->n, SEARCHES, true);
		else CPU_PASTE(search_group, SUFFIX)(j->out + i, x + i, s, NULL, line, j->n,
						     SEARCHES, false);
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
