/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Batched tensors: inside tensor_vmap() a tensor stands for one of its samples. It has the sizes and
 * strides of a sample, the storage and thus the version counter of the physical tensor, which it
 * holds, and no data. The batch dimension is dimension 0 of the physical tensor.
 */
#ifndef TENSOR_BATCHED_H
#define TENSOR_BATCHED_H

#include "core/tensor_impl.h"

#include <tensor/vmap.h>

/* One tensor_vmap() that runs. Tensors that outlive it keep it, so that they can be refused. */
struct batch_level {
	atomic_int refs;
	int depth;		    /* 1 for the outermost */
	struct batch_level *parent; /* owned, NULL for the outermost */
	int64_t size;		    /* number of samples */
	enum tensor_vmap_randomness randomness;
	atomic_bool ended;
};

struct batched {
	struct tensor_extension ext;
	tensor *physical;	   /* owned */
	struct batch_level *level; /* owned */
};

static inline bool is_batched(const tensor *t)
{
	return t->keys & BATCHED_BIT;
}

static inline const struct batched *batched_of(const tensor *t)
{
	return (const struct batched *)t->ext;
}

/* The number of levels around a sample of t; 0 for a tensor that is not batched. */
static inline int batch_depth(const tensor *t)
{
	return is_batched(t) ? batched_of(t)->level->depth : 0;
}

/* True if the tensor whose sample t is requires a gradient. */
static inline bool batch_has_history(const tensor *t)
{
	while (is_batched(t)) {
		t = batched_of(t)->physical;
		if (t->keys & AUTOGRAD_BIT && tensor_autograd_hooks.requires_grad(t))
			return true;
	}
	return false;
}

/* A level inside of parent, which may be NULL; owned. NULL with the error set. */
struct batch_level *batch_level_new(struct batch_level *parent, int64_t size,
				    enum tensor_vmap_randomness randomness);
void batch_level_put(struct batch_level *level);
/* The samples of physical, whose dimension 0 has the size of the level; owned. Consumes the
 * reference to physical, also on failure. NULL with the error set. */
tensor *batched_new(struct batch_level *level, tensor *physical);

#endif
