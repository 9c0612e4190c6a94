/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A provider makes host memory that can be shared: buffers, mapped at birth. The device provider
 * has them from /dev/tensor, the memfd provider from sealed memfds; nothing above knows which.
 */
#ifndef TENSOR_PROVIDER_H
#define TENSOR_PROVIDER_H

#include "../internal.h"

#include <sys/types.h>

#define TENSOR_LABEL_MAX 32 /* bytes, the final NUL included */

/* What a buffer is about, for tools; the device provider has it checked by the kernel. */
struct tensor_descriptor {
	uint32_t dtype, ndim;
	int64_t sizes[TENSOR_MAX_DIMS];
	int64_t strides[TENSOR_MAX_DIMS]; /* elements */
	int64_t offset; /* bytes */
	char label[TENSOR_LABEL_MAX];
};

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
	bool readonly;
	bool shared; /* exported or imported: never reused for anything else */
	uint32_t generation; /* see fork_generation */
};

struct tensor_provider {
	const char *name;
	/* 0 when buffers can be made here, else -errno */
	int (*probe)(void);
	/* Zeroed, reserved (never SIGBUS for lack of memory) and mapped; fills *b or -errno. */
	int (*alloc)(size_t size, struct tensor_buffer *b);
	/* A new fd for another process, close-on-exec. */
	int (*export)(struct tensor_buffer *b, bool readonly);
	/* Is this fd one of this provider's buffers? 1 or 0. */
	int (*recognise)(int fd);
	/* Maps a buffer that came as an fd; the fd stays the caller's. Checks everything. */
	int (*import)(int fd, struct tensor_buffer *b);
	/* No new writable mapping, by anyone, from now on. */
	int (*seal)(struct tensor_buffer *b);
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

/* ---- storage on buffers (cache.c) ----------------------------------------------------------- */

/* The buffer that a storage has to itself, or NULL. */
struct tensor_buffer *storage_buffer(struct tensor_storage *s);
/* Storage on an imported buffer; takes the buffer over, closes it on failure. */
struct tensor_storage *storage_from_buffer(const struct tensor_buffer *b);
/* A new host storage in a buffer of its own, or in an arena. NULL with the error set. */
struct tensor_storage *cache_alloc(size_t nbytes, bool shareable);

#endif
