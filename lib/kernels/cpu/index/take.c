// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * index_select, gather, index: copies of the elements that indices select. An iterator walks the
 * output, the indices, and self with stride 0 in the indexed dimensions; a loop adds the offset of
 * each index, its value times the stride. In index_select the index is the same along a row.
 */
#include "kernels/cpu/index/indices.h"

#include "iter/copy_bytes.h"

#define LOOPS_FILE "kernels/cpu/index/take_loops.h"
#include "kernels/cpu/simd/each_size.h"

static iter_loop take_loop(const tensor *t)
{
	switch (itemsize(t)) {
	case 1:
		return take_1;
	case 2:
		return take_2;
	case 4:
		return take_4;
	case 8:
		return take_8;
	default:
		return take_16;
	}
}

static int take_dim(const char *name, tensor *out, const tensor *self, int dim, const tensor *index,
		    const struct tensor *walked)
{
	struct tensor from = walk_view(self, out, 1u << dim);
	const tensor *ops[] = { out, walked, &from };
	struct indices x = { .name = name,
			     .n = 1,
			     .step = { self->strides[dim] * (int64_t)itemsize(self) },
			     .limit = { self->sizes[dim] },
			     .narrow = index->dtype == TENSOR_I32 };
	struct tensor_iter it;

	iter_build(&it, ops, 3);
	iter_run(&it, take_loop(self), &x);
	return x.bad ? indices_refuse(&x, index, &dim) : 0;
}

static int cpu_index_select(tensor *out, const tensor *self, int dim, const tensor *index)
{
	struct tensor walked = walk_spread(index, out, dim);

	return take_dim("index_select", out, self, dim, index, &walked);
}

static int cpu_gather(tensor *out, const tensor *self, int dim, const tensor *index)
{
	return take_dim("gather", out, self, dim, index, index);
}

static int cpu_index_take(tensor *out, const tensor *self, const tensor *at, const int *dims, int n)
{
	struct indices x = { .name = "index", .n = n, .wrap = true };
	struct tensor from, walked, first;
	const tensor *ops[] = { out, &walked, &from };
	struct tensor_iter it;
	struct indexed r;

	if (indexed_build(&r, x.name, self, at, dims, n) < 0)
		return -thread()->error.code;
	indices_describe(&x, self, at, dims, n);
	indices_walk(&r, self, at, &from, &walked, &first);
	iter_build(&it, ops, 3);
	iter_run(&it, take_loop(self), &x);
	return x.bad ? indices_refuse(&x, &first, dims) : 0;
}

CPU_KERNELS(KERNEL(index_select), KERNEL(gather), KERNEL(index_take))
