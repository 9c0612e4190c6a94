/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Sorting a line; included by sort.c through sort_each.h (no include guard). */
#define F(name) CPU_PASTE(name, SUFFIX)

/* Copies the n values of a line in the order of the items; `size` is a constant. */
static inline __attribute__((always_inline)) void F(gather_values)(char *o, int64_t so,
								   const char *s, int64_t sa,
								   const ITEM *items, int64_t n,
								   size_t size)
{
	for (int64_t i = 0; i < n; i++)
		memcpy(o + i * so, s + AT(items[i]) * sa, size);
}

static void F(store_sorted)(const struct line_job *j, char *const *data, const ITEM *items)
{
	int64_t so = j->t->along.stride[0][0], sa = j->t->along.stride[1][0];
	int64_t si = j->t->along.stride[2][0];

	for (int64_t i = 0; i < j->n; i++)
		*(int64_t *)(data[2] + i * si) = AT(items[i]);
	switch (dtype_sizes[j->dtype]) {
	case 1:
		F(gather_values)(data[0], so, data[1], sa, items, j->n, 1);
		break;
	case 2:
		F(gather_values)(data[0], so, data[1], sa, items, j->n, 2);
		break;
	case 4:
		F(gather_values)(data[0], so, data[1], sa, items, j->n, 4);
		break;
	default:
		F(gather_values)(data[0], so, data[1], sa, items, j->n, 8);
	}
}

static void F(sort_line)(const struct line_job *j, char *const *data, void *scratch)
{
	ITEM *a = scratch;

	F(items_load)(a, data[1], j->t->along.stride[1][0], j->dtype, j->n, j->flip);
	F(store_sorted)(j, data, F(items_sort)(a, a + j->n, j->n, key_bits(j->dtype)));
}

#undef F
