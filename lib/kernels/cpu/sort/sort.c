// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * sort: values and positions of each line in order; equal elements keep their order. Items are
 * sorted by radix sort, those of short lines by merge sort or, if there are several lines, by a network. Values are then copied from the line by their
 * positions, so that zeros keep their signs and NaN their bits.
 */
#include "kernels/cpu/sort/sort_short.h"

#define LOOPS_FILE "kernels/cpu/sort/sort_loops.h"
#include "kernels/cpu/sort/sort_each.h"

static void sort_line_wide(const struct line_job *j, char *const *data, void *scratch)
{
	struct narrow w = { data[1], j->t->along.stride[1][0], j->dtype, .flip = j->flip };
	uint64_t *items = j->n >= SMALL && j->n <= UINT32_MAX ? narrow_sort(&w, scratch, j->n) :
								NULL;

	if (items)
		store_sorted_k32(j, data, items);
	else
		sort_line_k64(j, data, scratch);
}

static int cpu_sort(tensor *values, tensor *indices, const tensor *self, int dim, bool descending)
{
	struct line_job j = { .dtype = self->dtype, .n = self->sizes[dim], .flip = descending };
	bool narrow = is_k32(j.dtype, j.n);

	if (unlikely(!is_ordered(self->dtype)))
		return tensor_kernel_no_dtype("sort", self->dtype, "cpu");
	if (short_lines_suit(self, dim)) {
		j.k = j.n;
		return for_each_short_line(&j, values, indices, self, dim);
	}
	j.line = narrow ? sort_line_k32 : sort_line_wide;
	j.scratch = 2 * j.n * (int64_t)(narrow ? sizeof(uint64_t) : sizeof(struct item64));
	return for_each_line(&j, values, indices, self, dim);
}

CPU_KERNELS(KERNEL(sort))
