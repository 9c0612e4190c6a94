/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Memory that tensors lie in: reference counted, of one device, owned by whoever set its ops. */
#ifndef TENSOR_LIB_STORAGE_H
#define TENSOR_LIB_STORAGE_H

#include "base/compiler.h"
#include "base/refcount.h"

struct moved;
struct tensor_storage;
struct tensor_buffer;

/* What becomes of the memory when the last tensor on it is gone. */
struct storage_ops {
	void (*free)(struct tensor_storage *s);
	/* Says what is to be done at the end with memory that a buffer takes the place of; NULL for
	 * what is not private memory of the library. */
	void (*lend)(struct tensor_storage *s, struct moved *m);
	/* The buffer of a provider that the memory lies in; NULL: there is none. */
	struct tensor_buffer *(*buffer)(struct tensor_storage *s);
	/* Other processes may write to it: what is read twice may differ. */
	bool shared;
};

struct tensor_storage {
	atomic_int refs;
	atomic_int version; /* in-place changes, whichever view made them */
	void *data;
	size_t nbytes; /* what a tensor may use; the block behind may be larger */
	const struct storage_ops *ops;
	void *owner; /* of ops: a buffer, an arena, an allocator */
	tensor_device device;
	uint8_t size_class; /* of ops */
	bool readonly;
	/* Bytes that its tensors have had, now or before: in private memory, what lies behind them up to
	 * nbytes may be what other tensors left there. */
	uint64_t used : 48;
	/* What a tensor that grew had before: views made then still look at it. Usually NULL. */
	struct tensor_storage *previous;
};

/* A tensor has the first n bytes of s from now on. */
static inline void storage_reach(struct tensor_storage *s, size_t n)
{
	if (n > s->used)
		s->used = n;
}

/* New storage of at least nbytes (0 is fine) on the device; NULL with the error set. */
struct tensor_storage *storage_alloc(tensor_device device, size_t nbytes, bool shareable);
/* The description alone, with one reference; NULL with the error set. */
struct tensor_storage *storage_alloc_struct(void);
void storage_free_struct(struct tensor_storage *s);
void storage_free(struct tensor_storage *s);

static inline void storage_get(struct tensor_storage *s)
{
	ref_get(&s->refs);
}

static inline void storage_put(struct tensor_storage *s)
{
	if (ref_put(&s->refs))
		storage_free(s);
}

/* Another thread may be moving s into a buffer: it writes the ops last. */
static inline const struct storage_ops *storage_ops_of(const struct tensor_storage *s)
{
	return __atomic_load_n(&s->ops, __ATOMIC_ACQUIRE);
}

/* The buffer that s lies in, or NULL. */
struct tensor_buffer *storage_buffer(struct tensor_storage *s);

#endif
