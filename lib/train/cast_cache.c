// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Conversions of leaves, by address: open addressing, at most half full. */
#include "train/cast_cache.h"

#include <stdlib.h>

static int version_of(const tensor *t)
{
	return (int)storage_version(t->storage);
}

/* The entry of t, or the free one where it belongs. cap is not 0. */
static struct cast_entry *entry_of(const struct cast_cache *c, const tensor *t)
{
	size_t i = (size_t)(((uintptr_t)t >> 4) * 0x9e3779b97f4a7c15u >> 20);

	for (;; i++) {
		struct cast_entry *e = &c->entries[i & (c->cap - 1)];

		if (!e->from || e->from == t)
			return e;
	}
}

tensor *cast_cache_get(const struct cast_cache *c, const tensor *t, enum tensor_dtype dtype)
{
	struct cast_entry *e = c->cap ? entry_of(c, t) : NULL;

	if (!e || !e->from || e->to->dtype != dtype || e->version != version_of(t))
		return NULL;
	return tensor_get(e->to);
}

static bool grow(struct cast_cache *c)
{
	struct cast_cache next = { .n = c->n, .cap = c->cap ? 2 * c->cap : 64 };

	next.entries = calloc(next.cap, sizeof(*next.entries));
	if (!next.entries)
		return false;
	for (size_t i = 0; i < c->cap; i++)
		if (c->entries[i].from)
			*entry_of(&next, c->entries[i].from) = c->entries[i];
	free(c->entries);
	*c = next;
	return true;
}

void cast_cache_put(struct cast_cache *c, tensor *from, tensor *to)
{
	struct cast_entry *e, old;

	if (2 * (c->n + 1) > c->cap && !grow(c))
		return;
	e = entry_of(c, from);
	old = *e;
	c->n += !old.from;
	*e = (struct cast_entry){ tensor_get(from), tensor_get(to), version_of(from) };
	tensor_put(old.from);
	tensor_put(old.to);
}

void cast_cache_clear(struct cast_cache *c)
{
	struct cast_cache old = *c;

	*c = (struct cast_cache){ 0 };
	for (size_t i = 0; i < old.cap; i++) {
		tensor_put(old.entries[i].from);
		tensor_put(old.entries[i].to);
	}
	free(old.entries);
}
