// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Reports of tensors that are used after their release, and counts of those that are alive. */
#include "core/debug.h"

#include "base/init.h"
#include "storage/debug.h"
#include "storage/heap.h"
#include "storage/magazine.h"

void debug_dead(const tensor *t, const char *function)
{
	debug_die("%s: the tensor at %p was released; it was made by %s", function, (const void *)t,
		  debug_memory ? t->made_by : "? (TENSOR_DEBUG=1 tells)");
}

void debug_released(const tensor *t)
{
	if (debug_memory)
		debug_dead(t, debug_caller());
}

static void tensor_taken(void *block)
{
	((tensor *)block)->made_by = debug_caller();
}

static void tensor_kept(void *block)
{
	tensor *t = block;

	t->storage = NULL;
	t->base = NULL;
	t->data = NULL;
	t->autograd_meta = NULL;
	t->ext = NULL;
}

INIT(INIT_HOOKS) static void set_hooks(void)
{
	debug_tensor_hooks.taken = tensor_taken;
	debug_tensor_hooks.kept = tensor_kept;
}

/* ---- live tensors and storages ---- */

static void count_tensors(void *first, void *count)
{
	size_t size = heap_size(CLASS_TENSOR), n = HEAP_UNIT / size;

	for (size_t i = 0; i < n; i++) {
		const tensor *t = (const tensor *)((const char *)first + i * size);

		*(uint64_t *)count += atomic_load_explicit(&t->refs, memory_order_relaxed) > 0;
	}
}

static void count_storages(void *first, void *count)
{
	size_t size = heap_size(CLASS_STORAGE), n = HEAP_UNIT / size;

	for (size_t i = 0; i < n; i++) {
		const struct tensor_storage *s =
			(const struct tensor_storage *)((const char *)first + i * size);

		*(uint64_t *)count += atomic_load_explicit(&s->refs, memory_order_relaxed) > 0;
	}
}

static uint64_t count_all(unsigned class, void (*count)(void *first, void *n))
{
	uint64_t arena = 0, n = 0;

	while (heap_next_arena(&arena, class, count, &n))
		;
	return n;
}

TENSOR_EXPORT void tensor_live_counts(struct tensor_live_counts *counts)
{
	counts->tensors = count_all(CLASS_TENSOR, count_tensors);
	counts->storages = count_all(CLASS_STORAGE, count_storages);
}
