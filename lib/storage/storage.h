/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Memory of tensors: reference counted, on one device. ops defines how it is released. */
#ifndef TENSOR_LIB_STORAGE_H
#define TENSOR_LIB_STORAGE_H

#include "base/compiler.h"
#include "base/refcount.h"

struct moved;
struct tensor_storage;
struct tensor_buffer;

/* Functions of the memory of a storage. */
struct storage_ops {
	/* Releases the memory when the last tensor on it is freed. */
	void (*free)(struct tensor_storage *s);
	/*
	 * Describes how to free private memory after a buffer replaced it; NULL if it is not
	 * private memory of the library.
	 */
	void (*describe_release)(struct tensor_storage *s, struct moved *m);
	/* The buffer of a provider that has the memory, or NULL. */
	struct tensor_buffer *(*buffer)(struct tensor_storage *s);
	/* The storage whose memory this one has, if it has no buffer of its own: of loans and leases. Or NULL. */
	struct tensor_storage *(*base)(const struct tensor_storage *s);
	/* Other processes may write to the memory: two reads may give different values. */
	bool shared;
};

struct tensor_storage {
	atomic_int refs;
	atomic_int
		version; /* number of in-place changes, through any view, unless the buffer counts them */
	void *data;
	size_t nbytes; /* of the block, which may be larger than its tensors */
	const struct storage_ops *ops;
	void *owner; /* for ops: a buffer, an arena, an allocator */
	tensor_device device;
	uint8_t size_class; /* for ops */
	bool readonly;
	bool buffer_counts; /* the buffer counts in-place changes, of all processes (version.c) */
	/*
	 * Bytes of its tensors: those that were requested, or that resize_ has reached since. Bytes from used to
	 * nbytes may be data of earlier storages, and no view may have them.
	 */
	uint64_t used : 48;
	/*
	 * The memory of a tensor before resize_ enlarged it: earlier views still use it. Usually
	 * NULL.
	 */
	struct tensor_storage *previous;
};

/* Records that a tensor uses the first n bytes of s. */
static inline void storage_reach(struct tensor_storage *s, size_t n)
{
	if (n > s->used)
		s->used = n;
}

/* A new storage of at least nbytes, which may be 0; NULL with the error set. */
struct tensor_storage *storage_alloc(tensor_device device, size_t nbytes, bool shareable);
/* The struct without memory, with one reference; NULL with the error set. */
struct tensor_storage *storage_alloc_struct(void);
void storage_free_struct(struct tensor_storage *s);
void tensor_storage_free(struct tensor_storage *s);

static inline void storage_get(struct tensor_storage *s)
{
	ref_get(&s->refs);
}

static inline void storage_put(struct tensor_storage *s)
{
	if (ref_put(&s->refs))
		tensor_storage_free(s);
}

/* Acquire: another thread that moves s into a buffer writes ops last. */
static inline const struct storage_ops *storage_ops_of(const struct tensor_storage *s)
{
	return __atomic_load_n(&s->ops, __ATOMIC_ACQUIRE);
}

/* ---- versions (version.c) ---- */

/* s is a new storage, or its changes begin to be counted by its buffer, from the number that it has. */
void storage_version_begin(struct tensor_storage *s);
/* The number of changes, and one more of them, for a storage whose buffer counts. */
uint32_t storage_buffer_version(const struct tensor_storage *s);
void storage_buffer_written(struct tensor_storage *s);
/* From now on s counts alone, and so do processes that receive its buffer later. */
void storage_version_alone(struct tensor_storage *s);

/* The number of in-place changes. */
static inline uint32_t storage_version(const struct tensor_storage *s)
{
	if (unlikely(s->buffer_counts))
		return storage_buffer_version(s);
	return (uint32_t)atomic_load_explicit(&s->version, memory_order_relaxed);
}

/* Counts an in-place change. */
static inline void storage_written(struct tensor_storage *s)
{
	if (unlikely(s->buffer_counts))
		storage_buffer_written(s);
	else
		ref_get(&s->version);
}

/* The buffer of s, or NULL. */
struct tensor_buffer *tensor_storage_buffer(struct tensor_storage *s);

#endif
