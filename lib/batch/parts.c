// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* tensor_vmap() in parts (include/tensor/binding.h). */
#include "batch/batch.h"

#include "core/scope.h"

#include "family/shape.h"

#include <tensor/binding.h>

#include <stdlib.h>

struct tensor_vmap_level {
	struct batch_level *level;
	struct batch_level *outer;
	uint32_t include; /* whether the batched key was included before */
};

TENSOR_EXPORT struct tensor_vmap_level *tensor_vmap_enter(int64_t size,
							  enum tensor_vmap_randomness randomness)
{
	struct thread_modes *modes = &thread()->modes;
	struct tensor_vmap_level *l;

	if (size < 1 || (unsigned)randomness > TENSOR_VMAP_RANDOM_SAME) {
		tensor_fail(EINVAL, "vmap: %lld samples, randomness %d", (long long)size,
			    (int)randomness);
		return NULL;
	}
	l = malloc(sizeof(*l));
	if (!l) {
		tensor_fail(ENOMEM, "vmap: no memory");
		return NULL;
	}
	*l = (struct tensor_vmap_level){ batch_level_new(modes->batch_level, size, randomness),
					 modes->batch_level, modes->include & BATCHED_BIT };
	if (!l->level) {
		free(l);
		return NULL;
	}
	modes->include |= BATCHED_BIT;
	modes->batch_level = l->level;
	return l;
}

TENSOR_EXPORT void tensor_vmap_leave(struct tensor_vmap_level *l)
{
	struct thread_modes *modes = &thread()->modes;

	if (!l)
		return;
	modes->include = (modes->include & ~BATCHED_BIT) | l->include;
	modes->batch_level = l->outer;
	atomic_store_explicit(&l->level->ended, true, memory_order_release);
	batch_level_put(l->level);
	free(l);
}

/* Operators on physical tensors are those of the caller of the function. */
static struct thread_modes enter_outer(const struct tensor_vmap_level *l)
{
	struct thread_modes *modes = &thread()->modes, before = *modes;

	modes->include = (modes->include & ~BATCHED_BIT) | l->include;
	modes->batch_level = l->outer;
	return before;
}

static tensor *samples(struct tensor_vmap_level *l, tensor *t, int64_t dim)
{
	if (!t->ndim || dim < -t->ndim || dim >= t->ndim)
		return tensor_fail_null(EINVAL, "vmap: input %s has no dimension %lld",
					SHAPE_STR(t), (long long)dim);
	if (t->ext && !is_batched(t))
		return tensor_fail_null(EOPNOTSUPP,
					"vmap: an input must be strided, got a %s tensor",
					tensor_layout_name(t->layout));
	dim = dim < 0 ? dim + t->ndim : dim;
	if (t->sizes[dim] != l->level->size)
		return tensor_fail_null(EINVAL, "vmap: an input has %lld samples, others have %lld",
					(long long)t->sizes[dim], (long long)l->level->size);
	t = dim ? tensor_movedim_int(t, dim, 0) : t;
	return t ? batched_new(l->level, tensor_get(t)) : NULL;
}

TENSOR_EXPORT tensor *tensor_vmap_samples(struct tensor_vmap_level *l, tensor *t, int64_t dim)
{
	struct tensor_scope_guard scope;
	struct thread_modes before;

	if (!l || tensor_absent("vmap_samples", t))
		return null_argument("vmap_samples");
	scope = tensor_scope_enter();
	before = enter_outer(l);
	t = samples(l, t, dim);
	thread()->modes = before;
	scope_leave(&scope);
	return scope_own(thread(), t);
}

/* In the open scope. */
static tensor *batch(const struct batch_level *level, tensor *t, int64_t dim)
{
	t = batch_output(level, 0, t);
	if (t && (dim < -t->ndim || dim >= t->ndim))
		return tensor_fail_null(EINVAL, "vmap: an output has no dimension %lld",
					(long long)dim);
	return t && dim ? tensor_movedim_int(t, 0, dim) : t;
}

TENSOR_EXPORT tensor *tensor_vmap_batch(struct tensor_vmap_level *l, tensor *t, int64_t dim)
{
	struct tensor_scope_guard scope;
	struct thread_modes before;

	if (!l || tensor_absent("vmap_batch", t))
		return null_argument("vmap_batch");
	scope = tensor_scope_enter();
	before = enter_outer(l);
	t = batch(l->level, t, dim);
	thread()->modes = before;
	t = scope_leave_with(&scope, t);
	return scope_own(thread(), t);
}

TENSOR_EXPORT bool tensor_vmap_has_samples(const struct tensor_vmap_level *l, const tensor *t)
{
	return l && t && t != tensor_none && is_batched(t) && batched_of(t)->level == l->level;
}

TENSOR_EXPORT bool tensor_vmap_suspend(struct tensor_vmap_level *l)
{
	if (!l || thread()->modes.batch_level != l->level)
		return false;
	enter_outer(l);
	return true;
}

TENSOR_EXPORT void tensor_vmap_resume(struct tensor_vmap_level *l)
{
	struct thread_modes *modes = &thread()->modes;

	if (!l)
		return;
	modes->include |= BATCHED_BIT;
	modes->batch_level = l->level;
}
