/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Conversions of leaves that autocast keeps until the outermost scope of a thread ends: a hash table by address. */
#ifndef TENSOR_CAST_CACHE_H
#define TENSOR_CAST_CACHE_H

#include "core/tensor_impl.h"

struct cast_entry {
	tensor *from, *to; /* owned */
	int version;	   /* of `from` when it was converted */
};

struct cast_cache {
	struct cast_entry *entries;
	size_t n, cap; /* cap: a power of two, more than n; 0 without entries */
};

/* The conversion of t to dtype with a new reference, or NULL if there is none or t was changed since. */
tensor *cast_cache_get(const struct cast_cache *c, const tensor *t, enum tensor_dtype dtype);
/* Keep `to` for `from`, in place of an earlier one. Without memory nothing is kept. */
void cast_cache_put(struct cast_cache *c, tensor *from, tensor *to);
void cast_cache_clear(struct cast_cache *c);

#endif
