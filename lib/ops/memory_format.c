// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Order of a result's dimensions in memory. See memory_format.h. */
#include "ops/memory_format.h"

#include "iter/iter.h"

struct operands {
	const tensor *const *inputs;
	int n;
	const int64_t *sizes; /* of the result */
	int ndim;
};

/* Stride of t in dimension d of the result; 0 if t lacks that dimension or is expanded along it. */
static int64_t stride_in(const tensor *t, const struct operands *ops, int d)
{
	int own = d - (ops->ndim - t->ndim);

	if (own < 0 || t->sizes[own] != ops->sizes[d])
		return 0;
	return t->strides[own] < 0 ? -t->strides[own] : t->strides[own];
}

/* Positive if dimension a belongs outside b, negative if inside, 0 if undecided. */
static int compare(const struct operands *ops, int a, int b)
{
	for (int i = 0; i < ops->n; i++) {
		const tensor *t = ops->inputs[i];
		int64_t sa = t ? stride_in(t, ops, a) : 0, sb = t ? stride_in(t, ops, b) : 0;

		if (!sa || !sb)
			continue;
		if (sa != sb)
			return sa < sb ? -1 : 1;
		if (ops->sizes[a] > ops->sizes[b])
			return 1;
	}
	return 0;
}

/* Insertion sort, as in PyTorch: an undecided comparison is followed by one with the next outer
 * dimension. order[0] becomes the innermost dimension. */
static void sort(const struct operands *ops, int *order)
{
	for (int i = 0; i < ops->ndim; i++)
		order[i] = ops->ndim - 1 - i;
	for (int i = 1; i < ops->ndim; i++) {
		int at = i;

		for (int j = i - 1; j >= 0; j--) {
			int c = compare(ops, order[j], order[at]), d = order[j];

			if (c < 0)
				break;
			if (!c)
				continue;
			order[j] = order[at];
			order[at] = d;
			at = j;
		}
	}
}

static void strides_in_order(const int64_t *sizes, int ndim, const int *order, int64_t *strides)
{
	int64_t step = 1;

	for (int i = 0; i < ndim; i++) {
		strides[order[i]] = step;
		step *= sizes[order[i]] ? sizes[order[i]] : 1;
	}
}

bool memory_order_of(const tensor *const *inputs, int ninputs, const int64_t *sizes, int ndim,
		     int64_t *strides)
{
	const struct operands ops = { inputs, ninputs, sizes, ndim };
	int order[TENSOR_MAX_DIMS];
	bool row_major = true;

	for (int i = 0; i < ninputs; i++)
		if (inputs[i] && !iter_broadcasts_to(inputs[i], sizes, ndim))
			return false;
	sort(&ops, order);
	for (int i = 0; i < ndim; i++)
		row_major &= order[i] == ndim - 1 - i;
	if (row_major)
		return false;
	strides_in_order(sizes, ndim, order, strides);
	return true;
}

/* True if t has neither gaps nor overlapping elements. */
static bool is_dense(const tensor *t)
{
	int64_t extent = 1;

	for (int i = 0; i < t->ndim; i++) {
		if (t->strides[i] < 0)
			return false;
		extent += (t->sizes[i] - 1) * t->strides[i];
	}
	return extent == t->numel && !tensor_overlaps_itself(t);
}

tensor *memory_new_like(const tensor *t, tensor_options options)
{
	int64_t strides[TENSOR_MAX_DIMS];

	if (t->layout != TENSOR_STRIDED || t->ext || (t->contiguous && !memory_channels_last(t)))
		return tensor_new_opt(options, t->sizes, t->ndim);
	if (t->numel && is_dense(t))
		return tensor_new_strided(options, t->sizes, t->strides, t->ndim);
	if (!memory_order_of(&t, 1, t->sizes, t->ndim, strides))
		return tensor_new_opt(options, t->sizes, t->ndim);
	return tensor_new_strided(options, t->sizes, strides, t->ndim);
}

int memory_check_clone(enum tensor_memory_format format)
{
	if (format <= TENSOR_PRESERVE_FORMAT)
		return 0;
	return tensor_fail(EOPNOTSUPP,
			   "clone: only strided tensors of plain numbers have a memory format");
}
