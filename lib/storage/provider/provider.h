/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A provider makes host memory that can be shared: buffers, mapped at birth. The device provider
 * has them from /dev/tensor, the memfd provider from sealed memfds; nothing above knows which.
 */
#ifndef TENSOR_PROVIDER_H
#define TENSOR_PROVIDER_H

#include "base/dtype.h"
#include "storage/descriptor.h"

#include <sys/types.h>

/* Who a buffer is, whichever process and fd it is seen through. */
struct tensor_identity {
	uint64_t dev, ino;
};

/* Rights of a tensor that is sent: what the receiver gets, as far as the sender has it. */
#define SHARE_RO (TENSOR_BUFFER_READ | TENSOR_BUFFER_ATTACH | TENSOR_BUFFER_EXPORT)
#define SHARE_RW (SHARE_RO | TENSOR_BUFFER_WRITE)

struct tensor_buffer {
	const struct tensor_provider *provider;
	void *map;   /* NULL: not mapped yet */
	size_t size; /* bytes that may be used */
	size_t map_size;
	void *page; /* of the descriptor, where that is in memory; not always behind the others */
	struct tensor_identity id;
	uint64_t offset; /* bytes from the begin of what `id` names: not 0 in a part of a buffer */
	uint64_t cookie; /* of the handle: where mmap() of the device finds the buffer */
	int fd;		 /* memfd, or the buffer fd of an import; -1 */
	uint32_t handle; /* of the device; 0: there is only the fd */
	uint32_t open_serial; /* in which open of the device the handle is a number */
	uint32_t rights;      /* TENSOR_BUFFER_*, of the handle or fd */
	uint32_t kind;	      /* enum tensor_buffer_kind */
	bool readonly;
	bool shared; /* exported, imported or sealed: never reused for anything else */
	bool described;
	bool purgeable;	     /* the kernel may take the memory: never reused, either */
	uint32_t generation; /* see fork_generation */
	/* Set by who attached something to the mapping that must go before it: a backend that
	 * pinned it. Called once by buffer_close(), without locks. */
	void (*on_close)(struct tensor_buffer *b);
};

/*
 * Every function returns 0, or a file descriptor where it makes one, or -errno. -ESTALE: the
 * buffer was the parent's before fork(), and this process has only the mapping of it.
 */
struct tensor_provider {
	const char *name;
	/* 0 when buffers can be made here, else -errno */
	int (*probe)(void);
	/* Zeroed, reserved (never SIGBUS for lack of memory) and mapped; fills *b or -errno. */
	int (*alloc)(size_t size, struct tensor_buffer *b);
	/* A new fd for another process, close-on-exec, with these TENSOR_BUFFER_* and no more.
	 * -EACCES: rights that b has not; -EOPNOTSUPP: that the provider does not know. */
	int (*export)(struct tensor_buffer *b, unsigned rights);
	/* Takes hold of the buffer behind an fd, which stays the caller's, and fills *b in but for
	 * the mapping. Checks everything: -EBADMSG for what is not of this provider, or could
	 * fault under its reader. With `foreign` also memory of other makers. */
	int (*open)(int fd, bool foreign, struct tensor_buffer *b);
	int (*map)(struct tensor_buffer *b);
	/* No writing, by any process or device, from now on: b->readonly is set. It may be set
	 * after a failure too. -EBUSY: another process, or a device, still can write. */
	int (*seal)(struct tensor_buffer *b);
	/* Write and read the descriptor. With dtype 0 there is none. What was read may be anything
	 * that another process wrote. */
	int (*describe)(struct tensor_buffer *b, const struct tensor_descriptor *d);
	int (*descriptor)(const struct tensor_buffer *b, struct tensor_descriptor *d);
	/* Fills in all but size. */
	int (*info)(const struct tensor_buffer *b, struct tensor_buffer_info *info);
	void (*close)(struct tensor_buffer *b);

	/* The rest is optional: buffer.c answers -EOPNOTSUPP for a provider without. */
	int (*handle)(const struct tensor_buffer *b, uint32_t *handle);
	int (*dmabuf)(struct tensor_buffer *b, unsigned rights);
	int (*revoke)(struct tensor_buffer *b);
	/* 1: the contents were lost while it was purgeable. */
	int (*purgeable)(struct tensor_buffer *b, bool purgeable);
	int (*sync)(struct tensor_buffer *b, unsigned flags, int64_t timeout_ns);
};

extern const struct tensor_provider memfd_provider;
extern const struct tensor_provider device_provider;

/* The provider for new buffers, chosen once. */
const struct tensor_provider *tensor_provider(void);
/* open() of the provider that made the fd; -EBADMSG if none did. */
int provider_open_fd(int fd, bool foreign, struct tensor_buffer *b);

/* Raises the soft limit of open files to the hard one; false: it was there. */
bool fd_limit_raise(void);
unsigned long long fd_limit(void);

/* Counts forks: a buffer that existed before a fork is shared with the other process. */
extern _Atomic uint32_t fork_generation;

static inline bool identity_equal(struct tensor_identity a, struct tensor_identity b)
{
	return a.ino == b.ino && a.dev == b.dev;
}

/* Before the mapping of a buffer goes away. */
static inline void buffer_unhook(struct tensor_buffer *b)
{
	if (b->on_close)
		b->on_close(b);
	b->on_close = NULL;
}

/* A shared buffer is about to be closed. Set by lib/sharing, whose channels remember what they sent. */
extern void (*buffer_forget)(const struct tensor_buffer *b);

/* The end of a buffer, whoever made it. */
static inline void buffer_close(struct tensor_buffer *b)
{
	buffer_unhook(b);
	if (b->shared && buffer_forget)
		buffer_forget(b);
	b->provider->close(b);
}

#endif
