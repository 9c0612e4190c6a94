// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Sharded optimizers: each parameter has a rank that owns it. */
#include "train/parallel/parallel.h"

#include <stdlib.h>

/* The largest first; equal ones in the order of the module. */
static int compare_sizes(const void *a, const void *b)
{
	const struct parameter *x = *(struct parameter *const *)a,
			       *y = *(struct parameter *const *)b;

	if (x->leaf->numel != y->leaf->numel)
		return x->leaf->numel < y->leaf->numel ? 1 : -1;
	return x < y ? -1 : x > y;
}

/* A rank and the elements that it owns. */
struct load {
	int64_t elements;
	int rank;
};

static bool is_less(const struct load *a, const struct load *b)
{
	return a->elements != b->elements ? a->elements < b->elements : a->rank < b->rank;
}

/* The first of a heap has grown. */
static void sink_first(struct load *heap, int n)
{
	for (int i = 0, least; (least = 2 * i + 1) < n; i = least) {
		struct load up = heap[i];

		if (least + 1 < n && is_less(&heap[least + 1], &heap[least]))
			least++;
		if (!is_less(&heap[least], &up))
			return;
		heap[i] = heap[least];
		heap[least] = up;
	}
}

int owners_choose(tensor_data_parallel *dp)
{
	int size = tensor_group_size(dp->group), rank = tensor_group_rank(dp->group);
	struct load *heap = calloc((size_t)size, sizeof(*heap));
	struct parameter **sorted = calloc((size_t)dp->n + 1, sizeof(struct parameter *));
	int err = heap && sorted ? 0 : tensor_fail(ENOMEM, "data_parallel: no memory");

	for (int i = 0; i < size && !err; i++)
		heap[i].rank = i;
	for (int i = 0; i < dp->n && !err; i++)
		sorted[i] = &dp->parameters[i];
	if (!err)
		qsort(sorted, (size_t)dp->n, sizeof(struct parameter *), compare_sizes);
	for (int i = 0; i < dp->n && !err; i++) {
		sorted[i]->owner = heap[0].rank;
		heap[0].elements += sorted[i]->leaf->numel;
		sink_first(heap, size);
	}
	for (int i = 0; i < dp->n && !err; i++)
		if (dp->parameters[i].owner == rank)
			dp->owned[dp->nowned++] = dp->parameters[i].leaf;
	free(heap);
	free(sorted);
	return err;
}

TENSOR_EXPORT tensor_list tensor_data_parallel_owned(tensor_data_parallel *dp)
{
	if (!dp) {
		tensor_fail(EINVAL, "data_parallel_owned: dp is NULL");
		return (tensor_list){ NULL, 0 };
	}
	return (tensor_list){ dp->owned, dp->nowned };
}

TENSOR_EXPORT int tensor_data_parallel_share(tensor_data_parallel *dp)
{
	int err = 0;

	if (!dp)
		return tensor_fail(EINVAL, "data_parallel_share: dp is NULL");
	for (int i = 0; i < dp->n && !err; i++)
		err = tensor_group_broadcast(dp->group, dp->parameters[i].leaf,
					     dp->parameters[i].owner, NULL);
	return err;
}
