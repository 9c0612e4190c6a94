// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * sort: values and positions of each line in order, equal ones in the order they had. Keys with
 * positions are sorted by digits, short lines by merging; the values are fetched from the line
 * by their positions, so that a zero keeps its sign and a NaN its bits.
 */
#include "kernels/cpu/sort/sort.h"

#define FETCH_AS(NAME, T)                  \
	for (int64_t i = 0; i < j->n; i++) \
		*(T *)(data[0] + i * so) = *(const T *)(data[1] + NAME##_at(items, i) * sa);
#define STORE(NAME, ITEM, AT)                                                            \
	static inline int64_t NAME##_at(const ITEM *items, int64_t i)                    \
	{                                                                                \
		return AT;                                                               \
	}                                                                                \
                                                                                         \
	static void NAME(const struct line_job *j, char *const *data, const ITEM *items) \
	{                                                                                \
		int64_t so = j->t->along.stride[0][0], sa = j->t->along.stride[1][0];    \
		int64_t si = j->t->along.stride[2][0];                                   \
                                                                                         \
		for (int64_t i = 0; i < j->n; i++)                                       \
			*(int64_t *)(data[2] + i * si) = NAME##_at(items, i);            \
		switch (dtype_sizes[j->dtype]) {                                         \
		case 1:                                                                  \
			FETCH_AS(NAME, uint8_t)                                          \
			break;                                                           \
		case 2:                                                                  \
			FETCH_AS(NAME, uint16_t)                                         \
			break;                                                           \
		case 4:                                                                  \
			FETCH_AS(NAME, uint32_t)                                         \
			break;                                                           \
		default:                                                                 \
			FETCH_AS(NAME, uint64_t)                                         \
		}                                                                        \
	}

STORE(store_narrow, uint64_t, (int64_t)(uint32_t)items[i])
STORE(store_wide, struct item64, (int64_t)items[i].at)

static void narrow_line(const struct line_job *j, char *const *data, void *scratch)
{
	uint64_t *a = scratch;

	i32_load(a, data[1], j->t->along.stride[1][0], j->dtype, j->n, j->flip);
	store_narrow(j, data, i32_sort(a, a + j->n, j->n, key_bits(j->dtype)));
}

static void wide_line(const struct line_job *j, char *const *data, void *scratch)
{
	struct item64 *a = scratch;

	i64_load(a, data[1], j->t->along.stride[1][0], j->dtype, j->n, j->flip);
	store_wide(j, data, i64_sort(a, a + j->n, j->n, key_bits(j->dtype)));
}

static int cpu_sort(tensor *values, tensor *indices, const tensor *self, int dim, bool descending)
{
	struct line_job j = { .dtype = self->dtype, .n = self->sizes[dim], .flip = descending };
	bool narrow = is_narrow(j.dtype, j.n);

	if (unlikely(!is_ordered(self->dtype)))
		return kernel_no_dtype("sort", self->dtype, "cpu");
	j.line = narrow ? narrow_line : wide_line;
	j.scratch = 2 * j.n * (int64_t)(narrow ? sizeof(uint64_t) : sizeof(struct item64));
	return for_lines(&j, values, indices, self, dim);
}

CPU_KERNELS(K(sort))
