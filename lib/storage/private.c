// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Storages in private memory: blocks of the heap up to BLOCK_MAX, mappings above. After a fork both
 * are copied on write.
 */
#include "storage/private.h"

#include "base/error.h"
#include "storage/debug.h"
#include "storage/heap.h"
#include "storage/large.h"
#include "storage/magazine.h"

/* ---- blocks ---- */

static void block_free(struct tensor_storage *s)
{
	block_give(s->size_class, s->data);
}

static void block_end(struct moved *m)
{
	heap_give(m->class, &m->memory, 1);
}

static void block_describe_release(struct tensor_storage *s, struct moved *m)
{
	m->memory = s->data;
	m->class = s->size_class;
	m->over = s->nbytes >= BLOCK_PAGE;
	m->end = block_end;
}

static const struct storage_ops block_ops = { .free = block_free,
					      .describe_release = block_describe_release };

/* Slow path: the magazine is empty. */
static __attribute__((noinline)) bool block_slow(struct tensor_storage *s, size_t nbytes)
{
	unsigned c = s->size_class;

	if (debug_memory)
		return debug_alloc(s, nbytes);
	s->data = magazine_empty(c, &thread()->blocks[c]);
	return s->data;
}

static inline struct tensor_storage *block_alloc(size_t nbytes)
{
	struct tensor_storage *s = storage_alloc_struct();
	unsigned c = block_class(nbytes);
	struct magazine *m;

	if (unlikely(!s))
		return NULL;
	s->nbytes = block_size(c);
	s->used = nbytes;
	s->ops = &block_ops;
	s->owner = NULL;
	s->size_class = c;
	s->device = TENSOR_DEVICE_CPU;
	m = &thread()->blocks[c];
	if (likely(m->n)) {
		s->data = m->slot[--m->n];
	} else if (!block_slow(s, nbytes)) {
		storage_free_struct(s);
		tensor_fail(ENOMEM, "no memory for %zu bytes", nbytes);
		return NULL;
	}
	return s;
}

/* ---- mappings of their own ---- */

static void large_free(struct tensor_storage *s)
{
	large_give(s->owner);
}

static void large_end(struct moved *m)
{
	large_lose(m->memory);
}

static void large_describe_release(struct tensor_storage *s, struct moved *m)
{
	m->memory = s->owner;
	m->over = m->mapping = true;
	m->end = large_end;
}

static const struct storage_ops large_ops = { .free = large_free,
					      .describe_release = large_describe_release };

static struct tensor_storage *large_alloc(size_t nbytes)
{
	struct tensor_storage *s = storage_alloc_struct();
	struct mapping *m;

	if (!s)
		return NULL;
	s->device = TENSOR_DEVICE_CPU;
	s->used = nbytes;
	if (debug_memory && debug_alloc(s, nbytes))
		return s;
	m = debug_memory ? NULL : large_take(nbytes);
	if (!m) {
		storage_free_struct(s);
		tensor_fail(ENOMEM,
			    "no memory for %zu bytes, or the process has as many mappings as "
			    "vm.max_map_count permits",
			    nbytes);
		return NULL;
	}
	s->data = m->map;
	s->nbytes = m->size;
	s->ops = &large_ops;
	s->owner = m;
	return s;
}

struct tensor_storage *private_storage_alloc(size_t nbytes)
{
	return likely(nbytes <= BLOCK_MAX) ? block_alloc(nbytes) : large_alloc(nbytes);
}
