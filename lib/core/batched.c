// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Batched tensors: their levels and allocation. */
#include "core/batched.h"

#include <stdio.h>
#include <stdlib.h>

struct batch_level *batch_level_new(struct batch_level *parent, int64_t size,
				    enum tensor_vmap_randomness randomness)
{
	struct batch_level *level = malloc(sizeof(*level));

	if (!level) {
		tensor_fail(ENOMEM, "vmap: no memory");
		return NULL;
	}
	if (parent)
		ref_get(&parent->refs);
	*level = (struct batch_level){ .refs = 1,
				       .depth = parent ? parent->depth + 1 : 1,
				       .parent = parent,
				       .size = size,
				       .randomness = randomness };
	return level;
}

void batch_level_put(struct batch_level *level)
{
	while (level && ref_put(&level->refs)) {
		struct batch_level *parent = level->parent;

		free(level);
		level = parent;
	}
}

static void batched_free(struct tensor_extension *x)
{
	struct batched *b = (struct batched *)x;

	tensor_put(b->physical);
	batch_level_put(b->level);
	free(b);
}

static tensor *batched_part(const tensor *t, int i, const char **name)
{
	if (i)
		return NULL;
	*name = "";
	return tensor_get(batched_of(t)->physical);
}

static void batched_describe(const tensor *t, char *buf, size_t size)
{
	const struct batched *b = batched_of(t);

	snprintf(buf, size, ", samples=%lld, sample_size=%s, vmap=%d", (long long)b->level->size,
		 SHAPE_STR(t), b->level->depth);
}

static const struct extension_ops batched_ops = {
	.free = batched_free,
	.part = batched_part,
	.describe = batched_describe,
};

static bool sample_contiguous(const tensor *t)
{
	int64_t step = 1;

	for (int i = t->ndim - 1; i >= 0; i--) {
		if (t->sizes[i] != 1 && t->strides[i] != step)
			return false;
		step *= t->sizes[i];
	}
	return true;
}

/* Removes dimension 0, that of the batch. */
static void take_sample_geometry(tensor *t)
{
	t->ndim--;
	t->numel = 1;
	for (int i = 0; i < t->ndim; i++) {
		t->sizes[i] = t->sizes[i + 1];
		t->strides[i] = t->strides[i + 1];
		t->numel *= t->sizes[i];
	}
	t->contiguous = t->numel <= 1 || sample_contiguous(t);
}

tensor *batched_new(struct batch_level *level, tensor *physical)
{
	struct batched *b = malloc(sizeof(*b));
	tensor *t = b ? tensor_new_detached(physical) : NULL;

	if (!b)
		tensor_fail(ENOMEM, "vmap: no memory");
	if (!t) {
		free(b);
		tensor_put(physical);
		return NULL;
	}
	extension_put(t->ext);
	ref_get(&level->refs);
	*b = (struct batched){ { .refs = 1, .ops = &batched_ops }, physical, level };
	t->ext = &b->ext;
	t->keys = (physical->keys & KEYS_BACKEND) | BATCHED_BIT;
	t->data = NULL;
	take_sample_geometry(t);
	return t;
}
