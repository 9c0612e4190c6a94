/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A buffer, and a reference to it with rights: the two types that most files share. Their functions
 * are in buffer.h (lifetime), state.h (state) and file.h (open files).
 *
 * Lifetime: a buffer is an inode. A handle, a dma-buf and the dentry of a file each have a
 * reference to it; fds, fds in flight and mappings hold a file. The superblock has a reference to
 * the module. Clients, files and dma-bufs each count as a user of the file system (fs.h), so the
 * mount exists while any buffer can be reached, and the module cannot be unloaded.
 *
 * Locks, outermost first; two locks that are not in one line are never nested:
 *
 *	mmap_lock (the core's), a reservation object (a driver's)
 *	tensor_buf.lock		one transition at a time: seal, revoke, purge, export
 *	tensor_buf.pages	the list of pages; a fault reads it, a transition writes it
 *	a folio's lock		held by a fault until the page table entry is set
 *	tensor_buf.spin		the state word, descriptor and counts, while they are copied
 *
 *	tensor_buf.lock, the lock of purgelist.c (which takes the former by trylock)
 *	tensor_buf.lock, tensor_buf.watch_lock, tensor_inbox.lock
 *	the lock of tensor_client.handles, tensor_buf.watch_lock
 *	the lock of a table of registry.c, tensor_buf.spin
 *	the lock of a table of registry.c, that of tensor_buf.exports
 *	the lock of a table of registry.c or of tensor_buf.exports, the lock of its totals
 *
 * Except under mmap_lock, the module allocates no memory under these locks, so that a task that
 * waits for one does not wait for reclaim in the memory cgroup of another. The shrinker takes
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
 * The mmap offset of a handle has its number in the upper bits and an offset into the buffer in the
 * lower ones. User space must treat it as opaque.
 */
#define TENSOR_MMAP_OFFSET_SHIFT 40
#define TENSOR_MAX_BYTES	 BIT_ULL(39)
#define TENSOR_MAX_HANDLES	 ((1U << 22) - 1)

struct tensor_buf;

/**
 * struct tensor_hold - a reference to a range of a buffer, with rights
 * @buf: the buffer
 * @first: first page of the range
 * @count: pages in the range
 * @rights: TENSOR_RIGHT_*
 */
struct tensor_hold {
	struct tensor_buf *buf;
	unsigned long first;
	unsigned long count;
	u32 rights;
};

/**
 * struct tensor_span - pages of a buffer that a device or the kernel has mapped
 * @first: index of the first page
 * @count: number of pages
 * @pages: temporary array for the pages
 * @folios: pinned folios, where the buffer itself does not keep its pages in place
 * @nr: number of folios
 * @charges: the charge for these
 */
struct tensor_span {
	unsigned long first;
	unsigned long count;
	struct page **pages;
	struct folio **folios;
	unsigned long nr;
	struct tensor_pin_charges charges;
};

/**
 * struct tensor_backing - the operations of a kind of memory
 * @kind: enum tensor_kind
 * @map: mmap(), called after tensor_map_check(); NULL: it cannot be mapped
 * @resv: reservation object with the fences of devices; NULL: the buffer's own
 * @begin: begin of an access by the processor; NULL: sync the device mappings of the buffer
 * @end: end of such an access; NULL: as with @begin
 * @pin: find the pages of a span, which stay in place until @unpin; called between
 *	tensor_device_get() and tensor_device_put()
 * @unpin: undo @pin; the pages may have been written to; NULL: nothing to do
 * @release: release the memory; NULL: nothing to do
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
 * struct tensor_memory - counts of a buffer's pages
 * @huge_bytes: bytes in chunks of PMD size
 * @pinned_bytes: bytes that are resident and unmovable
 * @node: node of all pages, or NUMA_NO_NODE
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
 * @inode: its inode, whose address space finds all mappings and whose eviction frees the buffer
 * @id: inode number
 * @client: id of the client that made it
 * @born: time of creation, boot time clock, nanoseconds
 * @bytes: size, a multiple of the page size
 * @huge_bytes: bytes in chunks of PMD size when it was made
 * @owner: the process that made it
 * @backing: the operations of its kind of memory
 * @source: private data of @backing; NULL with ALLOC
 * @request: with ALLOC, the request, repeated after a purge
 * @lock: serialises transitions: seal, export, purge, revoke, map and unmap by a device
 * @pages: guards @chunks
 * @chunks: with ALLOC, the pages; empty after a purge or a revocation
 * @orphans: pages of a revoked buffer that devices still use; guarded by @lock
 * @handles: number of handles
 * @files: number of open files made by EXPORT
 * @peers: with ALLOC, number of files behind mappings of a dma-buf, and behind mappings through
 *	the handle of another client than the maker
 * @mappings: number of mappings
 * @writers: number of mappings by processes, devices and the kernel that are or may become
 *	writable; TENSOR_SEALED when sealed, and while a seal is checked
 * @dmabufs: number of dma-bufs made by EXPORT
 * @attachments: number of devices attached to these
 * @devices: number of mappings of these by devices and the kernel; guarded by @lock
 * @maps: mappings of these by devices; guarded by @lock
 * @resv: the reservation object of these
 * @exports: files and dma-bufs made by EXPORT
 * @listed: its entry in the table of all buffers
 * @purgeable: node in the list of purgeable buffers, or empty; guarded by that list's lock
 * @spin: guards the members up to @generation while they are copied; a single word may be read
 * without it
 * @desc: the descriptor
 * @memory: counts of @chunks
 * @seals: TENSOR_SEAL_*; changed with @lock held as well
 * @state: TENSOR_STATE_*; changed with @lock held as well
 * @generation: number of writes that have ended
 * @watch_lock: guards @watches and @watches_unread
 * @watches: watches without an unread TENSOR_EVENT_GONE
 * @gone: number of times TENSOR_EVENT_GONE was posted
 * @watches_unread: watches with an unread TENSOR_EVENT_GONE
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
	struct tensor_request request;
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

/* A hold of the whole buffer. */
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

/* Whether a hold reaches the whole buffer with these rights. */
static inline bool tensor_hold_may_all(const struct tensor_hold *hold, u32 rights)
{
	return tensor_hold_may(hold, rights) && !tensor_hold_part(hold);
}

static inline u32 tensor_hold_state(const struct tensor_hold *hold)
{
	return (hold->rights & TENSOR_RIGHT_WRITE ? 0 : TENSOR_STATE_RDONLY) |
	       (tensor_hold_part(hold) ? TENSOR_STATE_RANGE : 0);
}

/* The caller already has a reference, or a file of the buffer. */
static inline void tensor_buf_get(struct tensor_buf *buf)
{
	ihold(&buf->inode);
}

static inline void tensor_buf_put(struct tensor_buf *buf)
{
	iput(&buf->inode);
}

#endif /* TENSOR_BUF_H */
