// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Reports of uses after release; counts of live tensors. */
#include "core/debug.h"

#include "base/init.h"
#include "storage/debug.h"
#include "storage/heap.h"
#include "storage/magazine.h"

#include <stdio.h>
#include <stdlib.h>

#define PLACE_TEXT 512

/* "  made by tensor_add, called at train.c:12" */
static void print_place(const char *what, struct call_place place)
{
	char text[PLACE_TEXT];

	fprintf(stderr, "  %s by %s, called at %s\n", what, place.function,
		call_place_text(place.at, text, sizeof(text)));
}

static void print_release(struct call_place place)
{
	char text[PLACE_TEXT];

	if (!strcmp(place.function,
		    "?")) /* tensor_release() ends in a tail call, which leaves no frame */
		fprintf(stderr, "  released at %s\n",
			call_place_text(place.at, text, sizeof(text)));
	else if (strcmp(place.function, "tensor_scope_leave"))
		print_place("released", place);
	else
		fprintf(stderr,
			"  released by the scope that ended at %s; tensor_keep() takes a result out of its "
			"scope\n",
			call_place_text(place.at, text, sizeof(text)));
}

void debug_dead(const tensor *t, const char *function)
{
	if (!debug_memory)
		debug_die(
			"%s: the tensor at %p was released, by tensor_release() or by the end of its "
			"scope, out of which tensor_keep() takes it; TENSOR_DEBUG=1 tells where",
			function, (const void *)t);
	fprintf(stderr, "libtensor: %s: the tensor at %p was released\n", function,
		(const void *)t);
	print_place("used", call_place());
	print_place("made", t->made);
	print_release(t->released);
	abort();
}

void debug_released(const tensor *t)
{
	debug_dead(t, call_place().function);
}

static void tensor_taken(void *block)
{
	((tensor *)block)->made = call_place();
}

static void tensor_kept(void *block)
{
	tensor *t = block;

	t->released = call_place();
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
