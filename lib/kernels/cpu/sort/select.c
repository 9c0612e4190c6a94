// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Elements of each line by rank: topk, kthvalue, median, mode. A few greatest elements are kept in
 * order while the line is read once; other ranks are found by the digits of keys, the most
 * significant first.
 */
#include "kernels/cpu/sort/sort_short.h"

#define FEW 64 /* elements that are kept in order while a line is read */

static uint64_t nan_key(enum tensor_dtype dtype)
{
	return ~0ull >> (64 - key_bits(dtype));
}

#define LOOPS_FILE "kernels/cpu/sort/select_loops.h"
#include "kernels/cpu/sort/sort_each.h"

static int select_elements(const char *name, struct line_job *j, tensor *values, tensor *indices,
			   const tensor *self, int dim)
{
	bool narrow = is_k32(self->dtype, self->sizes[dim]);

	if (unlikely(!is_ordered(self->dtype)))
		return tensor_kernel_no_dtype(name, self->dtype, "cpu");
	j->dtype = self->dtype;
	j->n = self->sizes[dim];
	j->scratch = 2 * j->n * (int64_t)(narrow ? sizeof(uint64_t) : sizeof(struct item64));
	return for_each_line(j, values, indices, self, dim);
}

static int cpu_topk(tensor *values, tensor *indices, const tensor *self, int dim, int64_t k,
		    bool largest, bool sorted)
{
	bool narrow = is_k32(self->dtype, self->sizes[dim]);
	struct line_job j = { .k = k,
			      .flip = largest,
			      .sorted = sorted,
			      .line = narrow ? topk_line_k32 : topk_line_k64 };

	if (8 * k > self->sizes[dim] && is_ordered(self->dtype) && short_lines_suit(self, dim))
		return for_each_short_line(&j, values, indices, self, dim);
	return k ? select_elements("topk", &j, values, indices, self, dim) : 0;
}

static int cpu_kthvalue(tensor *values, tensor *indices, const tensor *self, int dim, int64_t k)
{
	bool narrow = is_k32(self->dtype, self->sizes[dim]);
	struct line_job j = { .k = k, .line = narrow ? kthvalue_line_k32 : kthvalue_line_k64 };

	return select_elements("kthvalue", &j, values, indices, self, dim);
}

static int cpu_mode(tensor *values, tensor *indices, const tensor *self, int dim, int64_t k)
{
	bool narrow = is_k32(self->dtype, self->sizes[dim]);
	struct line_job j = { .line = narrow ? mode_line_k32 : mode_line_k64 };

	return select_elements("mode", &j, values, indices, self, dim);
}

CPU_KERNELS(KERNEL(topk), KERNEL(kthvalue), KERNEL(mode))
