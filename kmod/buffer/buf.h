/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A buffer, and a reference to it with rights: the two types that most files share. The functions
 * are in buffer.h (lifetime), state.h (state), file.h (open files).
 *
 * Lifetime: a buffer is an inode. A handle, a dma-buf and the dentry of a file each have a
 * reference to it; a file is held by fds, messages in flight and mappings. The superblock has a
 * reference to the module. Clients, files and dma-bufs each count as a user of the file system
 * (fs.h), so the mount exists while any buffer can be reached, and the module cannot be unloaded.
 *
 * Locks, outermost first; two locks that are not in one line are never nested:
 *
 *	mmap_lock (the core's), a reservation object (a driver's)
 *	tensor_buf.lock		one transition of the contract at a time
 *	tensor_buf.pages	which pages there are; a fault reads, a transition writes
 *	a folio's lock		from its fault to its page table entry
 *	tensor_buf.spin		the small state, for as long as a copy takes
 *
 *	tensor_buf.lock, the lock of purgelist.c (which takes the former by trylock)
 *	tensor_buf.lock, tensor_buf.watch_lock, tensor_inbox.lock
 *	the lock of tensor_client.handles, tensor_buf.watch_lock
 *	the lock of a table of registry.c, tensor_buf.spin
 *	the lock of a table of registry.c, that of tensor_buf.exports
 *	the lock of a table of registry.c or of tensor_buf.exports, the lock of its totals
 *
 * The module allocates no memory under any of these but mmap_lock, so that a task that waits for
 * one does not wait for reclaim in the memory cgroup of another. The shrinker takes
 * tensor_buf.lock, tensor_buf.pages and folio locks by trylock only.
 */
#ifndef TENSOR_BUF_H
#define TENSOR_BUF_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/dma-direction.h>
#include <linux/dma-resv.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/tensor.h>
#include <linux/types.h>

#include "../alloc/alloc.h"
#include "../core/owner.h"
#include "../core/table.h"

/*
 * A cookie is a handle in its upper bits and an offset into the buffer in its lower ones. Users
 * must not know that: to them it is a number that ALLOC gave.
 */
#define TENSOR_MMAP_OFFSET_SHIFT 40
#define TENSOR_MAX_BYTES	 BIT_ULL(39)
#define TENSOR_MAX_HANDLES	 ((1U << 22) - 1)

struct tensor_buf;

/**
 * struct tensor_hold - a reference to a buffer and what it permits
 * @buf: the buffer
 * @first: first page that it reaches
 * @count: pages that it reaches
 * @rights: TENSOR_RIGHT_*
 */
struct tensor_hold {
	struct tensor_buf *buf;
	unsigned long first;
	unsigned long count;
	u32 rights;
};

/**
 * struct tensor_span - pages of a buffer that a device, or the kernel, uses
 * @first: the first of them
 * @count: how many
 * @pages: room for them, until they were found
 * @folios: what holds them in place, where the buffer itself does not
 * @nr: folios there
 * @paid: who pays for these
 */
struct tensor_span {
	unsigned long first;
	unsigned long count;
	struct page **pages;
	struct folio **folios;
	unsigned long nr;
	struct tensor_paid paid;
};

/**
 * struct tensor_backing - what is different between kinds of memory
 * @kind: enum tensor_kind
 * @map: mmap(); NULL: it cannot be mapped. What tensor_map() promises was checked
 * @resv: where devices put their fences; NULL: the buffer's own
 * @begin: of an access by the processor; NULL: it is the buffer's mappings that matter
 * @end: of it
 * @pin: find the pages of a span, which stay until @unpin; between tensor_device_get() and
 *	tensor_device_put()
 * @unpin: undo @pin, of pages that may have been written to; NULL: nothing to do
 * @release: give the memory back; NULL: nothing to do
 */
struct tensor_backing {
	u32 kind;
	int (*map)(const struct tensor_hold *hold, struct vm_area_struct *vma);
	struct dma_resv *(*resv)(struct tensor_buf *buf);
	int (*begin)(struct tensor_buf *buf, enum dma_data_direction dir);
	int (*end)(struct tensor_buf *buf, enum dma_data_direction dir);
	int (*pin)(struct tensor_buf *buf, struct tensor_span *span);
	void (*unpin)(struct tensor_span *span, bool dirty);
	void (*release)(struct tensor_buf *buf);
};

/**
 * struct tensor_memory - numbers about a buffer's pages
 * @huge_bytes: in chunks of PMD size
 * @pinned_bytes: resident and unmovable
 * @node: node of all, or NUMA_NO_NODE
 * @count: chunks of each order
 */
struct tensor_memory {
	u64 huge_bytes;
	u64 pinned_bytes;
	int node;
	u32 count[TENSOR_ORDERS];
};

/**
 * struct tensor_buf - a buffer
 * @inode: its inode: it is found by its address space, and freed by it
 * @id: inode number
 * @client: id of the client that made it
 * @born: boot time clock, nanoseconds
 * @bytes: size, whole pages
 * @huge_bytes: of @bytes, in chunks of PMD size when it was made
 * @owner: who made it
 * @backing: what its memory is
 * @source: what @backing keeps; NULL with ALLOC
 * @want: with ALLOC, what was asked for; asked again after a purge
 * @lock: one transition at a time: a seal, an export, a purge, a device that comes or goes
 * @pages: guards @chunks
 * @chunks: with ALLOC, the pages; none once purged or revoked
 * @orphans: pages of a revoked buffer that devices still use; guarded by @lock
 * @handles: handles to it
 * @files: open files made by EXPORT
 * @peers: with ALLOC, files behind mappings of a dma-buf, and behind those made by cookie through
 *	another client than the maker's
 * @mappings: mappings
 * @writers: mappings, devices and kernel mappings that write or may come to; TENSOR_SEALED once
 *	there can be none, and while a seal finds out
 * @dmabufs: dma-bufs made by EXPORT
 * @attachments: devices attached to these
 * @devices: mappings of these by devices and the kernel; guarded by @lock
 * @maps: those by devices; guarded by @lock
 * @resv: the reservation object of all of these
 * @exports: files and dma-bufs made by EXPORT
 * @listed: its place in the table of all buffers
 * @purgeable: in the list of purgeable buffers, or empty; guarded by that list's lock
 * @spin: guards what follows, for as long as a copy takes; one word may be read without
 * @desc: the descriptor
 * @memory: numbers about @chunks
 * @seals: TENSOR_SEAL_*; changed with @lock held as well
 * @state: TENSOR_STATE_REVOKED and later ones; changed with @lock held as well
 * @generation: of writes
 * @watch_lock: guards @watches and @watches_unread
 * @watches: watches without an unread TENSOR_EVENT_GONE
 * @gone: how often TENSOR_EVENT_GONE was posted
 * @watches_unread: watches with one
 */
struct tensor_buf {
	struct inode inode;
	u64 id;
	u64 client;
	u64 born;
	u64 bytes;
	u64 huge_bytes;
	struct tensor_owner *owner;
	const struct tensor_backing *backing;
	void *source;
	struct tensor_want want;
	struct mutex lock; /* transitions */
	struct rw_semaphore pages;
	struct tensor_chunks chunks;
	struct tensor_chunks orphans;
	atomic_t handles;
	atomic_t files;
	atomic_t peers;
	atomic_t mappings;
	atomic_t writers;
	atomic_t dmabufs;
	atomic_t attachments;
	unsigned int devices;
	struct list_head maps;
	struct dma_resv resv;
	struct tensor_table exports;
	struct tensor_entry listed;
	struct list_head purgeable;
	spinlock_t spin; /* guards desc to generation */
	struct tensor_desc desc;
	struct tensor_memory memory;
	u32 seals;
	u32 state;
	u64 generation;
	spinlock_t watch_lock; /* guards watches */
	u64 gone;
	struct list_head watches;
	struct list_head watches_unread;
};

static inline struct tensor_buf *tensor_buf_of(struct inode *inode)
{
	return container_of(inode, struct tensor_buf, inode);
}

/* All of a buffer. */
static inline struct tensor_hold tensor_hold_all(struct tensor_buf *buf, u32 rights)
{
	return (struct tensor_hold){ .buf = buf,
				     .count = buf->bytes >> PAGE_SHIFT,
				     .rights = rights };
}

static inline bool tensor_hold_part(const struct tensor_hold *hold)
{
	return hold->count != hold->buf->bytes >> PAGE_SHIFT;
}

static inline bool tensor_hold_may(const struct tensor_hold *hold, u32 rights)
{
	return (hold->rights & rights) == rights;
}

/* May it do to the whole buffer what takes these rights? */
static inline bool tensor_hold_may_all(const struct tensor_hold *hold, u32 rights)
{
	return tensor_hold_may(hold, rights) && !tensor_hold_part(hold);
}

static inline u32 tensor_hold_state(const struct tensor_hold *hold)
{
	return (hold->rights & TENSOR_RIGHT_WRITE ? 0 : TENSOR_STATE_RDONLY) |
	       (tensor_hold_part(hold) ? TENSOR_STATE_RANGE : 0);
}

/* The caller has one already, or a file of it. */
static inline void tensor_buf_get(struct tensor_buf *buf)
{
	ihold(&buf->inode);
}

static inline void tensor_buf_put(struct tensor_buf *buf)
{
	iput(&buf->inode);
}

#endif /* TENSOR_BUF_H */
