/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The runs of sorted items; included by unique.c through sort_each.h (no include guard). */
#define F(name) CPU_PASTE(name, SUFFIX)

/*
 * The runs of items a, which are overwritten by the positions of the first elements; b is as large.
 * Item i has been read when the results of run r <= i are written.
 */
static void F(unique_runs)(struct unique_job *j, ITEM *a, void *b)
{
	KEY_T before = 0, nan = (KEY_T)j->nan;
	int64_t *firsts = (int64_t *)a, *starts = b, *numbers = j->numbers, runs = 0, last = 0;
	const struct narrow *wide = j->wide;
	bool floats = j->floats;

	for (int64_t i = 0; i < j->n; i++) {
		ITEM x = a[i];
		KEY_T key = KEY(x);
		int64_t at = AT(x);
		bool differ = !i | (key != before) | (floats & (key == nan));

		if (wide && !differ)
			differ = narrow_key(wide, at) != narrow_key(wide, last);
		firsts[runs] = differ ? at : firsts[runs];
		runs += differ;
		before = key;
		last = at;
		if (numbers)
			numbers[at] = runs - 1;
		starts[runs - 1] = differ ? i : starts[runs - 1];
	}
	*j->result = (struct unique_runs){ runs, firsts, starts };
}

static inline void F(unique_sorted)(struct unique_job *j, ITEM *a, int bits)
{
	ITEM *items = F(items_sort)(a, a + j->n, j->n, bits);

	F(unique_runs)(j, items, items == a ? a + j->n : a);
}

#undef F
