/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The loops of bincount.c for elements of type T (no include guard; see each_int.h). */
#define F(name) CPU_PASTE(name, SUFFIX)

static void F(range)(struct count_job *j)
{
	const T *x = j->self;
	T least = x[0], most = x[0];

	for (int64_t i = 1; i < j->numel; i++) {
		least = x[i] < least ? x[i] : least;
		most = x[i] > most ? x[i] : most;
	}
	j->least = (int64_t)least;
	j->most = (int64_t)most;
}

/* Another process may write to self: its elements are compared with n again. */
static void F(count)(struct count_job *j)
{
	const volatile T *x = j->self;
	uint64_t n = (uint64_t)j->n;
	int64_t second[SMALL_TABLE], *odd = j->counts, i = 0;

	if (n <= SMALL_TABLE && j->numel >= 4 * j->n) {
		memset(second, 0, n * sizeof(*second));
		odd = second;
	}
	for (; i + 2 <= j->numel; i += 2) {
		uint64_t a = (uint64_t)(int64_t)x[i], b = (uint64_t)(int64_t)x[i + 1];

		if (a < n)
			j->counts[a]++;
		if (b < n)
			odd[b]++;
	}
	if (i < j->numel) {
		uint64_t a = (uint64_t)(int64_t)x[i];

		if (a < n)
			j->counts[a]++;
	}
	for (uint64_t k = 0; odd == second && k < n; k++)
		j->counts[k] += second[k];
}

#undef F
