/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A provider allocates host memory that can be shared: buffers, mapped at allocation. The device
 * provider uses /dev/tensor, the memfd provider sealed memfds. Higher layers do not depend on the
 * choice.
 */
#ifndef TENSOR_PROVIDER_H
#define TENSOR_PROVIDER_H

#include "base/dtype.h"
#include "storage/descriptor.h"

#include <sys/types.h>

/* Identity of a buffer, the same in all processes and for all its fds. */
struct tensor_identity {
	uint64_t dev, ino;
};

/* Rights of a sent tensor: the receiver gets those of them that the sender has. */
#define SHARE_RO (TENSOR_BUFFER_READ | TENSOR_BUFFER_ATTACH | TENSOR_BUFFER_EXPORT)
#define SHARE_RW (SHARE_RO | TENSOR_BUFFER_WRITE)

struct tensor_buffer {
	const struct tensor_provider *provider;
	void *map;   /* NULL if not mapped */
	size_t size; /* usable bytes */
	size_t map_size;
	void *page; /* address of the descriptor, if it is in memory */
	/*
	 * In-place operators of all processes, in that page; NULL: the provider counts. Other processes may write anything
	 * to it.
	 */
	_Atomic uint32_t *writes;
	struct tensor_identity id;
	uint64_t offset; /* offset in bytes within the buffer that id names; not 0 for a part of a buffer */
	uint64_t mmap_offset; /* mmap() offset of the handle */
	int fd;		      /* memfd, or buffer fd of an import; -1 if none */
	uint32_t handle;      /* handle of the device; 0 if there is only the fd */
	uint32_t open_serial; /* number of the open that the handle belongs to */
	uint32_t rights;      /* TENSOR_BUFFER_* of the handle or fd */
	uint32_t kind;	      /* enum tensor_buffer_kind */
	bool readonly;
	bool shared; /* exported, imported or sealed: never reused */
	bool described;
	bool purgeable;	     /* the kernel may reclaim the memory: never reused */
	uint32_t generation; /* see fork_generation */
	/*
	 * Called once by buffer_close(), without locks, before the mapping is removed; set by a
	 * backend that pinned it.
	 */
	void (*on_close)(struct tensor_buffer *b);
	/* The same of the network that the buffer is registered with, and what the network needs for it. */
	void (*on_unregister)(struct tensor_buffer *b);
	void *registration;
};

/*
 * Functions return 0, a new file descriptor, or -errno. -ESTALE: the buffer was allocated before
 * fork() by the parent, and this process has only its mapping.
 */
struct tensor_provider {
	const char *name;
	/* 0 if the provider is available, else -errno */
	int (*probe)(void);
	/*
	 * Allocates a zeroed, mapped buffer whose pages are reserved (no SIGBUS for lack of
	 * memory).
	 */
	int (*alloc)(size_t size, struct tensor_buffer *b);
	/*
	 * A new close-on-exec fd with exactly these TENSOR_BUFFER_* rights. -EACCES: b does not
	 * have them; -EOPNOTSUPP: the provider does not support them.
	 */
	int (*export)(struct tensor_buffer *b, unsigned rights);
	/*
	 * Opens the buffer of an fd, which the caller keeps, without mapping it. -EBADMSG if the
	 * file is not of this provider or an access could fault. With foreign, memory of other
	 * drivers and other memfds is accepted.
	 */
	int (*open)(int fd, bool foreign, struct tensor_buffer *b);
	int (*map)(struct tensor_buffer *b);
	/*
	 * Forbids writes by all processes and devices, and sets b->readonly, possibly also on
	 * failure. -EBUSY: another process or a device can still write.
	 */
	int (*seal)(struct tensor_buffer *b);
	/*
	 * Write and read the descriptor; dtype 0: there is none. The content is not trusted:
	 * another process may have written it.
	 */
	int (*describe)(struct tensor_buffer *b, const struct tensor_descriptor *d);
	int (*descriptor)(const struct tensor_buffer *b, struct tensor_descriptor *d);
	/* Counts a write by an operator, and reads the count of all processes; NULL if writes of the buffer is used. */
	int (*wrote)(struct tensor_buffer *b);
	int (*generation)(const struct tensor_buffer *b, uint64_t *n);
	/* Sets all members except size. */
	int (*info)(const struct tensor_buffer *b, struct tensor_buffer_info *info);
	void (*close)(struct tensor_buffer *b);

	/* The following functions are optional; without them buffer.c returns -EOPNOTSUPP. */
	int (*handle)(const struct tensor_buffer *b, uint32_t *handle);
	int (*dmabuf)(struct tensor_buffer *b, unsigned rights);
	int (*revoke)(struct tensor_buffer *b);
	/* Returns 1 if the contents were lost while the buffer was purgeable. */
	int (*purgeable)(struct tensor_buffer *b, bool purgeable);
	int (*sync)(struct tensor_buffer *b, unsigned flags, int64_t timeout_ns);
};

extern const struct tensor_provider memfd_provider;
extern const struct tensor_provider device_provider;
/* Mapped files (file.c): it has no functions but export, open, map and close. */
extern const struct tensor_provider file_provider;

/* The provider for new buffers, chosen once. */
const struct tensor_provider *tensor_provider(void);
/* open() of the provider that the fd belongs to; -EBADMSG if there is none. */
int provider_open_fd(int fd, bool foreign, struct tensor_buffer *b);

/* Raises the soft limit of open files to the hard limit; false if it already was there. */
bool fd_limit_raise(void);
unsigned long long fd_limit(void);
/* Whether n descriptors are free; raises the limit for them. fd: any that is open. */
bool fd_limit_leaves(int fd, unsigned n);

/* Number of forks: a buffer that existed before a fork is shared with the other process. */
extern _Atomic uint32_t fork_generation;

static inline bool identity_equal(struct tensor_identity a, struct tensor_identity b)
{
	return a.ino == b.ino && a.dev == b.dev;
}

/* Called before the mapping of a buffer is removed. */
static inline void buffer_unhook(struct tensor_buffer *b)
{
	if (b->on_close)
		b->on_close(b);
	b->on_close = NULL;
	if (b->on_unregister)
		b->on_unregister(b);
	b->on_unregister = NULL;
}

/*
 * Called before a shared buffer is closed. Set by lib/sharing, whose channels have tables of sent
 * buffers.
 */
extern void (*buffer_forget)(const struct tensor_buffer *b);

/* Unmaps and closes a buffer of any provider. */
static inline void buffer_close(struct tensor_buffer *b)
{
	buffer_unhook(b);
	if (b->shared && buffer_forget)
		buffer_forget(b);
	b->provider->close(b);
}

#endif
