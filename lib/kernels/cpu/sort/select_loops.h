/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * topk, kthvalue, median and mode of a line; included by select.c through sort_each.h, which see
 * (no include guard).
 */
#define F(name) CPU_PASTE(name, SUFFIX)

/* Stores value and position of item x as element i of the line's results. */
static inline void F(store_item)(const struct line_job *j, char *const *data, int64_t i, ITEM x)
{
	*(int64_t *)(data[2] + i * j->t->along.stride[2][0]) = AT(x);
	copy_element(data[0], i, j->t->along.stride[0][0], data[1], AT(x), j->t->along.stride[1][0],
		     j->dtype);
}

static void F(topk_line)(const struct line_job *j, char *const *data, void *scratch)
{
	int64_t sa = j->t->along.stride[1][0];
	ITEM *a = scratch;

	if (j->k <= FEW && 8 * j->k <= j->n) {
		F(items_few)(a, j->k, data[1], sa, j->dtype, j->n, j->flip);
	} else {
		F(items_load)(a, data[1], sa, j->dtype, j->n, j->flip);
		if (4 * j->k < 3 * j->n) {
			F(items_least)(a, a + j->n, j->n, j->k);
			if (j->sorted)
				a = F(items_sort)(a, a + j->n, j->k, key_bits(j->dtype));
		} else {
			a = F(items_sort)(a, a + j->n, j->n, key_bits(j->dtype));
		}
	}
	for (int64_t i = 0; i < j->k; i++)
		F(store_item)(j, data, i, a[i]);
}

/*
 * The rank of the element that j->k selects. Of a median that is NaN, the first NaN is moved to
 * a[0] and -1 returned.
 */
static int64_t F(rank)(const struct line_job *j, ITEM *a)
{
	int64_t numbers = 0, first = -1;

	if (j->k >= 0)
		return j->k;
	if (dtype_is_integral(j->dtype))
		return (j->n - 1) / 2;
	for (int64_t i = 0; i < j->n; i++) {
		bool nan = KEY(a[i]) == (KEY_T)nan_key(j->dtype);

		first = nan && first < 0 ? i : first;
		numbers += !nan;
	}
	if (j->k == SELECT_MEDIAN && first >= 0) {
		a[0] = a[first];
		return -1;
	}
	return numbers ? (numbers - 1) / 2 : 0;
}

static void F(kthvalue_line)(const struct line_job *j, char *const *data, void *scratch)
{
	int64_t sa = j->t->along.stride[1][0], rank;
	ITEM *a = scratch, x;

	if (j->k >= 0 && j->k < FEW && 8 * (j->k + 1) <= j->n) {
		F(items_few)(a, j->k + 1, data[1], sa, j->dtype, j->n, false);
		x = a[j->k];
	} else {
		F(items_load)(a, data[1], sa, j->dtype, j->n, false);
		rank = F(rank)(j, a);
		x = rank < 0 ? a[0] : F(items_nth)(a, j->n, rank);
	}
	F(store_item)(j, data, 0, x);
}

/* The last item of the longest run of equal keys, of the first such run. */
static void F(mode_line)(const struct line_job *j, char *const *data, void *scratch)
{
	int64_t longest = 0, begin = 0;
	ITEM *a = scratch, best;

	F(items_load)(a, data[1], j->t->along.stride[1][0], j->dtype, j->n, false);
	a = F(items_sort)(a, a + j->n, j->n, key_bits(j->dtype));
	best = a[0];
	for (int64_t i = 1; i <= j->n; i++) {
		if (i < j->n && !F(item_less)(a[i - 1], a[i]))
			continue;
		if (i - begin > longest) {
			longest = i - begin;
			best = a[i - 1];
		}
		begin = i;
	}
	F(store_item)(j, data, 0, best);
}

#undef F
