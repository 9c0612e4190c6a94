// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Sort and merge the dimensions of reductions and softmax. See reduce_iter.h. */
#include "iter/reduce_iter.h"

static int64_t magnitude(int64_t stride)
{
	/* Stride 0 sorts last: an expanded dimension needs no memory locality. */
	return !stride ? INT64_MAX : stride < 0 ? -stride : stride;
}

/* Insert dimension d of the operands in the order of the input's strides. */
static void insert(struct reduce_iter_dims *k, const tensor *const *op, int nops, int d)
{
	int64_t step = op[1]->strides[d] * (int64_t)itemsize(op[1]);
	int at = k->n++;

	for (; at > 0 && magnitude(k->stride[1][at - 1]) > magnitude(step); at--) {
		k->size[at] = k->size[at - 1];
		for (int i = 0; i < nops; i++)
			k->stride[i][at] = k->stride[i][at - 1];
	}
	k->size[at] = op[1]->sizes[d];
	for (int i = 0; i < nops; i++)
		k->stride[i][at] = op[i]->strides[d] * (int64_t)itemsize(op[i]);
	k->count *= k->size[at];
}

static bool one_run(const struct reduce_iter_dims *k, int nops, int a, int b)
{
	for (int i = 0; i < nops; i++)
		if (k->size[a] * k->stride[i][a] != k->stride[i][b])
			return false;
	return true;
}

static void merge(struct reduce_iter_dims *k, int nops)
{
	int last = 0;

	for (int d = 1; d < k->n; d++) {
		if (one_run(k, nops, last, d)) {
			k->size[last] *= k->size[d];
			continue;
		}
		last++;
		k->size[last] = k->size[d];
		for (int i = 0; i < nops; i++)
			k->stride[i][last] = k->stride[i][d];
	}
	k->n = last + 1;
}

/* Represent no dimensions (n = 1) or no elements (n = 0) by one dimension of size n. */
static void flatten(struct reduce_iter_dims *k, int nops, int64_t n)
{
	k->n = 1;
	k->size[0] = n;
	for (int i = 0; i < nops; i++)
		k->stride[i][0] = 0;
}

void reduce_iter_build(struct reduce_iter *t, const tensor *const *op, int nops, uint32_t along)
{
	t->nops = nops;
	t->kept.n = t->along.n = 0;
	t->kept.count = t->along.count = 1;
	for (int i = 0; i < nops; i++)
		t->data[i] = op[i]->data;
	/* Insert from the last dimension, so that equal strides keep the order in memory. */
	for (int d = op[1]->ndim - 1; d >= 0; d--)
		if (op[1]->sizes[d] != 1)
			insert(along >> d & 1 ? &t->along : &t->kept, op, nops, d);
	if (!t->kept.n)
		flatten(&t->kept, nops, 1);
	if (!t->along.n || !t->along.count)
		flatten(&t->along, nops, t->along.count);
	merge(&t->kept, nops);
	merge(&t->along, nops);
}

void reduce_iter_seek(const struct reduce_iter *t, int64_t index, char **data)
{
	int64_t pos[TENSOR_MAX_DIMS];

	for (int d = 0; d < t->kept.n; d++) {
		pos[d] = index % t->kept.size[d];
		index /= t->kept.size[d];
	}
	for (int i = 0; i < t->nops; i++) {
		data[i] = t->data[i];
		for (int d = 0; d < t->kept.n; d++)
			data[i] += pos[d] * t->kept.stride[i][d];
	}
}
