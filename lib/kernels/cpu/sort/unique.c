// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * unique of elements: the runs of equal keys among sorted items. Every NaN is a run of its own. The
 * results overwrite the items that were read and the other buffer of the sort.
 */
#include "kernels/cpu/sort/sort.h"

#include "kernels/abi/search.h"

struct unique_job {
	int64_t n, *numbers;
	const struct narrow *wide; /* of narrow items that do not have all bits of their keys */
	bool floats;
	uint64_t nan; /* its key, for floats */
	struct unique_runs *result;
};

#define LOOPS_FILE "kernels/cpu/sort/unique_loops.h"
#include "kernels/cpu/sort/sort_each.h"

static void wide_runs(struct unique_job *j, const tensor *self, void *scratch)
{
	struct narrow w = { self->data, itemsize(self), self->dtype, .flip = false };
	uint64_t *narrow = scratch, *items = NULL;
	struct item64 *wide = scratch;

	if (j->n >= SMALL && j->n <= UINT32_MAX)
		items = narrow_sort(&w, narrow, j->n);
	if (items) {
		j->wide = w.shift ? &w : NULL;
		j->nan = (UINT64_MAX - w.low) >> w.shift;
		/* A key that is too small for NaN has no bits above the 32 of an item. */
		j->floats &= j->nan <= UINT32_MAX;
		unique_runs_k32(j, items, items == narrow ? narrow + j->n : narrow);
		return;
	}
	items_load_k64(wide, self->data, itemsize(self), self->dtype, j->n, false);
	j->nan = UINT64_MAX;
	unique_sorted_k64(j, wide, 64);
}

static int cpu_unique_elements(const tensor *self, void *scratch, int64_t *numbers,
			       struct unique_runs *result)
{
	struct unique_job j = { self->numel, numbers, NULL, dtype_is_float(self->dtype), 0, result };

	if (unlikely(!is_ordered(self->dtype)))
		return tensor_kernel_no_dtype("unique", self->dtype, "cpu");
	*result = (struct unique_runs){ 0 };
	if (!j.n)
		return 0;
	if (!is_k32(self->dtype, j.n)) {
		wide_runs(&j, self, scratch);
		return 0;
	}
	items_load_k32(scratch, self->data, itemsize(self), self->dtype, j.n, false);
	j.nan = dtype_sizes[self->dtype] == 2 ? UINT16_MAX : UINT32_MAX;
	unique_sorted_k32(&j, scratch, key_bits(self->dtype));
	return 0;
}

CPU_KERNELS(KERNEL(unique_elements))
