// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * index_select, gather, index: copies of the elements that indices select. An iterator walks the
 * output, the indices, and self with stride 0 in the indexed dimensions; a loop adds the offset of
 * each index, its value times the stride. In index_select the index is the same along a row.
 */
#include "kernels/cpu/index/indices.h"

#include "iter/copy_bytes.h"

#include "iter/parallel.h"

/*
 * A small block of contiguous elements for each position of the dimensions before the indexed one:
 * `n` elements of the result, in rows of `inner`, `span` bytes apart in self.
 */
struct take_blocks {
	struct indices *x;
	char *out;
	const char *self, *index;
	int64_t n, inner, span;
	int64_t stride; /* bytes between indices if all blocks have the same, one for each row; else 0 */
};

#define COPIED_ROW 16 /* bytes of a row from which it is copied as such */

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

static parallel_fn blocks_loop(const tensor *t)
{
	switch (itemsize(t)) {
	case 1:
		return take_blocks_1;
	case 2:
		return take_blocks_2;
	case 4:
		return take_blocks_4;
	case 8:
		return take_blocks_8;
	default:
		return take_blocks_16;
	}
}

#define BLOCK_INNER 32 /* elements of rows that are copied as such */

/* Computes contiguous tensors with small blocks; `same`: all have the indices of a vector. */
static bool take_small_blocks(struct indices *x, tensor *out, const tensor *self, int dim,
			      const tensor *index, bool same)
{
	struct take_blocks b = { .x = x,
				 .out = out->data,
				 .self = self->data,
				 .index = index->data,
				 .inner = 1,
				 .stride = same ? index->strides[0] * (int64_t)itemsize(index) :
						  0 };

	for (int i = dim + 1; i < out->ndim; i++)
		b.inner *= self->sizes[i];
	b.n = out->sizes[dim] * b.inner;
	b.span = self->sizes[dim] * b.inner * (int64_t)itemsize(self);
	if (!out->numel || !self->contiguous || !out->contiguous || b.inner >= BLOCK_INNER ||
	    b.n > INDEX_BLOCK || b.n == out->numel || (same ? !b.stride : !index->contiguous))
		return false;
	for (int i = 0; i < out->ndim; i++)
		if (i != dim && out->sizes[i] != self->sizes[i])
			return false;
	parallel_for(0, out->numel / b.n, ITER_GRAIN / b.n, blocks_loop(self), &b);
	return true;
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

	if (!take_small_blocks(&x, out, self, dim, index, walked != index)) {
		iter_build(&it, ops, 3);
		iter_run(&it, take_loop(self), &x);
	}
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
