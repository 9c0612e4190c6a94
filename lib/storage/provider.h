/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A provider makes host memory that can be shared: buffers, mapped at birth. The device provider
 * has them from /dev/tensor, the memfd provider from sealed memfds; nothing above knows which.
 */
#ifndef TENSOR_PROVIDER_H
#define TENSOR_PROVIDER_H

#include "../internal.h"

#include "descriptor.h"

#include <sys/types.h>

/* Who a buffer is, whichever process and fd it is seen through. */
struct tensor_identity {
	uint64_t dev, ino;
};

struct tensor_buffer {
	const struct tensor_provider *provider;
	void *map;
	size_t size; /* bytes that may be used */
	size_t map_size;
	struct tensor_identity id;
	int fd; /* memfd, or the buffer fd of an import; -1 */
	uint32_t handle; /* of the device */
	uint32_t open_serial; /* in which open of the device the handle is a number */
	bool readonly;
	bool shared; /* exported or imported: never reused for anything else */
	bool described;
	uint32_t generation; /* see fork_generation */
	/* Set by who attached something to the mapping that must go before it: a backend that
	 * pinned it. Called once by buffer_close(), without locks. */
	void (*on_close)(struct tensor_buffer *b);
};

struct tensor_provider {
	const char *name;
	/* 0 when buffers can be made here, else -errno */
	int (*probe)(void);
	/* Zeroed, reserved (never SIGBUS for lack of memory) and mapped; fills *b or -errno. */
	int (*alloc)(size_t size, struct tensor_buffer *b);
	/* A new fd for another process, close-on-exec. -ESTALE: the buffer was the parent's
	 * before fork(), and this process has nothing of it but the mapping. */
	int (*export)(struct tensor_buffer *b, bool readonly);
	/* How may this fd be mapped, PROT_READ | PROT_WRITE? 0: it is none of this provider's. */
	int (*recognise)(int fd);
	/* Maps a buffer that came as an fd, which stays the caller's. Checks everything: -EBADMSG
	 * for what could fault under its reader. */
	int (*import)(int fd, struct tensor_buffer *b);
	/* No new writable mapping, by anyone, from now on. The device's is no longer writable then,
	 * either: b->readonly tells. -EBUSY: another process, or a device, still can write. */
	int (*seal)(struct tensor_buffer *b);
	/* With dtype 0 the buffer is about nothing any more. */
	int (*describe)(struct tensor_buffer *b, const struct tensor_descriptor *d);
	void (*close)(struct tensor_buffer *b);
};

extern const struct tensor_provider memfd_provider;
extern const struct tensor_provider device_provider;

/* The provider for new buffers, chosen once. */
const struct tensor_provider *tensor_provider(void);
/* The provider that made this fd, or NULL. */
const struct tensor_provider *tensor_provider_of_fd(int fd);

/* Counts forks: a buffer that existed before a fork is shared with the other process. */
extern _Atomic uint32_t fork_generation;

static inline bool identity_equal(struct tensor_identity a, struct tensor_identity b)
{
	return a.ino == b.ino && a.dev == b.dev;
}

/* ---- storage on buffers (cache.c) ----------------------------------------------------------- */

/* The buffer that a storage has to itself, or NULL. */
struct tensor_buffer *storage_buffer(struct tensor_storage *s);
/* A new host storage in a buffer of its own, or in an arena. NULL with the error set. */
struct tensor_storage *cache_alloc(size_t nbytes, bool shareable);

/* ---- buffers of other processes (import.c) -------------------------------------------------- */

/* New storage on the buffer behind an fd, which stays the caller's; a buffer is mapped once in a
 * process, however often it comes. NULL with the error set: EBADMSG unless it is `id`. */
struct tensor_storage *import_storage(int fd, struct tensor_identity id);
/* The buffer of an imported storage, NULL for others. */
struct tensor_buffer *import_buffer(struct tensor_storage *s);

/* ---- sharing (share.c, label.c) --------------------------------------------------------------- */

/* A shared buffer is about to go from this process: channels forget that they sent it. */
void share_forget(const struct tensor_buffer *b);
/* The end of a buffer, whoever made it. */
static inline void buffer_close(struct tensor_buffer *b)
{
	if (b->on_close)
		b->on_close(b);
	if (b->shared)
		share_forget(b);
	b->provider->close(b);
}

/* Writes t's geometry, and a label, into its buffer's descriptor. */
int describe_tensor(struct tensor_buffer *b, const tensor *t, const char *label);

#endif
