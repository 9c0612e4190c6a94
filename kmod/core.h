/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The objects of the module and who may call whom.
 *
 *	owner   who made something: process, user, name           owner.c
 *	buffer  memory and a descriptor, on an inode of its own    buffer.c meta.c fs.c map.c
 *	        as devices see it                                  dmabuf.c sync.c
 *	        of somebody else's memory                          foreign.c memfd.c user.c
 *	        what may be done with it, and no longer            contract.c purge.c
 *	        what its holders are told                          event.c status.c
 *	client  an open /dev/tensor: a table of handles            client.c device.c
 *	call    one ioctl on its way                               call.h
 *
 * Lifetime: a buffer lives as long as its inode. An inode reference is held by each handle and by
 * each file on the inode; a file is held by fds, messages in flight and mappings. The superblock
 * holds a reference on the module, and each client, each file and each dma-buf holds the mount: so
 * the module cannot go while a buffer lives, on any kernel, and no file needs to count it. A call
 * comes through a client or a file, and need not hold the mount itself, which takes a lock that all
 * of the machine shares.
 *
 * Locks, outermost first; what is not in one line is never nested:
 *
 *	mmap_lock (the core's), a reservation object (a driver's)
 *	tensor_buf.lock		one transition of the contract at a time
 *	tensor_buf.pages	which pages there are; a fault reads, a transition writes
 *	a folio's lock		from its fault to its page table entry
 *	tensor_buf.spin		the small state, for as long as a copy takes
 *
 *	tensor_buf.lock, the registry's mutex, tensor_buf.pages, tensor_buf.spin
 *	the registry's mutex, the handle table's lock (that of its xarray)
 *	tensor_buf.holders_lock, tensor_client.ready_lock
 *
 * The shrinker takes tensor_buf.lock, tensor_buf.pages and folio locks by trylock only: whoever
 * allocates may hold them.
 */
#ifndef TENSOR_CORE_H
#define TENSOR_CORE_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/compat.h>
#include <linux/dma-direction.h>
#include <linux/dma-resv.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/tensor.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include "alloc/alloc.h"

struct dma_buf;
struct seq_file;
struct sk_buff;

/*
 * A cookie is a handle in its upper bits and an offset into the buffer in its lower ones. Users
 * must not know that: to them it is a number that ALLOC gave.
 */
#define TENSOR_COOKIE_SHIFT	40
#define TENSOR_MAX_BYTES	TENSOR_STATUS_OFFSET
#define TENSOR_MAX_HANDLES	((1U << 22) - 1)

/**
 * struct tensor_owner - who made a client or a buffer; shared, never changed
 * @ref: references
 * @pid: the process; may have ended
 * @ns: its user namespace then
 * @uid: its effective user then
 * @user: the same, who pays
 * @comm: its name then
 */
struct tensor_owner {
	refcount_t ref;
	struct pid *pid;
	struct user_namespace *ns;
	kuid_t uid;
	struct tensor_user *user;
	char comm[TASK_COMM_LEN];
};

struct tensor_owner *tensor_owner_new(void);
struct tensor_owner *tensor_owner_current(struct tensor_owner *guess);
struct tensor_owner *tensor_owner_get(struct tensor_owner *owner);
void tensor_owner_put(struct tensor_owner *owner);
bool tensor_owner_visible(const struct tensor_owner *owner, struct sk_buff *request);

struct tensor_buf;
struct tensor_client;

/**
 * struct tensor_span - pages of a buffer that a device, or the kernel, uses
 * @first: the first of them
 * @count: how many
 * @pages: room for them, until they were found
 * @folios: what holds them in place, where the buffer itself does not
 * @nr: folios there
 */
struct tensor_span {
	unsigned long first;
	unsigned long count;
	struct page **pages;
	struct folio **folios;
	unsigned long nr;
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
	int (*map)(struct tensor_buf *buf, struct vm_area_struct *vma);
	struct dma_resv *(*resv)(struct tensor_buf *buf);
	int (*begin)(struct tensor_buf *buf, enum dma_data_direction dir);
	int (*end)(struct tensor_buf *buf, enum dma_data_direction dir);
	int (*pin)(struct tensor_buf *buf, struct tensor_span *span);
	void (*unpin)(struct tensor_span *span, bool dirty);
	void (*release)(struct tensor_buf *buf);
};

/**
 * struct tensor_buf - a buffer
 * @inode: its inode; i_private points back
 * @mnt: the mount that the inode belongs to; no reference
 * @id: inode number
 * @client: id of the client that made it
 * @born: boot time clock, nanoseconds
 * @bytes: size, whole pages
 * @owner: who made it
 * @backing: what its memory is
 * @source: what @backing keeps; NULL with ALLOC
 * @want: with ALLOC, what was asked for; asked again after a purge
 * @lock: one transition at a time: a seal, an export, a purge, a device that comes or goes
 * @pages: guards @chunks
 * @huge_bytes: of @bytes, in chunks of PMD size when it was made
 * @chunks: with ALLOC, the pages, charged to the limit; none once purged or revoked
 * @orphans: pages of a revoked buffer that devices still use; guarded by @lock
 * @handles: handles to it
 * @files: open files made by EXPORT
 * @guests: files behind mappings of a dma-buf, and of those made by cookie through another client
 *	than the maker's
 * @mappings: mappings
 * @writers: mappings, devices and kernel mappings that write or may come to; TENSOR_SEALED once
 *	there can be none
 * @dmabufs: dma-bufs made by EXPORT
 * @attachments: devices attached to these
 * @devices: mappings of these by devices and the kernel; guarded by @lock
 * @maps: those by devices; guarded by @lock
 * @resv: the reservation object of all of these
 * @purgeable: in the list of purgeable buffers, or empty; guarded by that list's lock
 * @spin: guards what follows, for as long as a copy takes
 * @desc: the descriptor
 * @seals: TENSOR_SEAL_*; changed with @lock held as well
 * @state: TENSOR_STATE_REVOKED and later ones; changed with @lock held as well
 * @generation: of writes
 * @status: page that shows them to user space, or NULL
 * @holders_lock: guards @holders
 * @holders: handles that can be found
 * @wait: who polls a file of it
 * @rcu: the shrinker may still be unlocking @lock
 */
struct tensor_buf {
	struct inode *inode;
	struct vfsmount *mnt;
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
	atomic_t guests;
	atomic_t mappings;
	atomic_t writers;
	atomic_t dmabufs;
	atomic_t attachments;
	unsigned int devices;
	struct list_head maps;
	struct dma_resv resv;
	struct list_head purgeable;
	spinlock_t spin; /* guards desc to status */
	struct tensor_desc desc;
	u32 seals;
	u32 state;
	u64 generation;
	struct page *status;
	spinlock_t holders_lock; /* guards holders */
	struct list_head holders;
	wait_queue_head_t wait;
	struct rcu_head rcu;
};

/**
 * struct tensor_hold - a counted reference to a buffer and what it permits
 * @buf: the buffer
 * @first: first page that it reaches
 * @count: pages that it reaches
 * @rdonly: no writable mapping, no change of the descriptor, no writable fd
 */
struct tensor_hold {
	struct tensor_buf *buf;
	unsigned long first;
	unsigned long count;
	bool rdonly;
};

/* All of a buffer. */
static inline struct tensor_hold tensor_hold_all(struct tensor_buf *buf, bool rdonly)
{
	return (struct tensor_hold){ .buf = buf, .count = buf->bytes >> PAGE_SHIFT,
				     .rdonly = rdonly };
}

static inline bool tensor_hold_part(const struct tensor_hold *hold)
{
	return hold->count != hold->buf->bytes >> PAGE_SHIFT;
}

/* May it do what changes the buffer for all others? */
static inline bool tensor_hold_full(const struct tensor_hold *hold)
{
	return !hold->rdonly && !tensor_hold_part(hold);
}

/* buffer.c */
struct tensor_buf *tensor_buf_alloc(const struct tensor_want *want, struct tensor_client *client);
struct tensor_buf *tensor_buf_adopt(const struct tensor_backing *backing, void *source, u64 bytes,
				    struct tensor_client *client);
void tensor_buf_get(struct tensor_buf *buf);
void tensor_buf_put(struct tensor_buf *buf);
void tensor_buf_evict(struct tensor_buf *buf);
int tensor_buf_charge(struct tensor_buf *buf, struct tensor_chunks *chunks);
void tensor_buf_uncharge(struct tensor_buf *buf, struct tensor_chunks *chunks);
bool tensor_buf_shut(struct tensor_buf *buf, bool wait);
void tensor_buf_open(struct tensor_buf *buf);
void tensor_buf_take(struct tensor_buf *buf, struct tensor_chunks *chunks);
void tensor_buf_info(const struct tensor_hold *hold, struct tensor_info *info);

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

void tensor_buf_memory(struct tensor_buf *buf, struct tensor_memory *memory);

/* contract.c */
#define TENSOR_SEALED	INT_MIN

int tensor_write_get(struct tensor_buf *buf);
void tensor_write_put(struct tensor_buf *buf);
int tensor_device_get(struct tensor_buf *buf, bool write);
int tensor_device_join(struct tensor_buf *buf, bool write);
void tensor_device_put(struct tensor_buf *buf, bool write);
u32 tensor_buf_seals(struct tensor_buf *buf);
u32 tensor_buf_state(struct tensor_buf *buf);
int tensor_buf_usable(struct tensor_buf *buf);

/* dmabuf.c */
struct file *tensor_dmabuf_file(const struct tensor_hold *hold);
bool tensor_dmabuf_hold(const struct dma_buf *dmabuf, struct tensor_hold *hold);
void tensor_dmabuf_sync(const struct tensor_hold *hold, bool for_cpu);

/* foreign.c, memfd.c */
int tensor_foreign_hold(struct tensor_client *client, struct dma_buf *dmabuf,
			struct tensor_hold *hold);
struct file *tensor_foreign_dmabuf(const struct tensor_hold *hold);
int tensor_memfd_hold(struct tensor_client *client, struct file *file, struct tensor_hold *hold);

/* sync.c */
int tensor_sync_check(const struct tensor_hold *hold, bool write);

/* purge.c */
int tensor_purge_init(void);
void tensor_purge_exit(void);
void tensor_purge_forget(struct tensor_buf *buf);
u64 tensor_purge_bytes(void);

/* status.c */
#define TENSOR_STATUS_INDEX	(TENSOR_STATUS_OFFSET >> PAGE_SHIFT)

void tensor_status_state(struct tensor_buf *buf, u32 set, u32 clear);
void tensor_status_seal(struct tensor_buf *buf, u32 seals);
u64 tensor_status_wrote(struct tensor_buf *buf);
u64 tensor_status_generation(struct tensor_buf *buf);
int tensor_status_map(struct tensor_buf *buf, struct vm_area_struct *vma);
void tensor_status_free(struct tensor_buf *buf);

/* fs.c */

/**
 * struct tensor_exported - a file that EXPORT made, as it is listed
 * @id: never given twice
 * @born: boot time clock, nanoseconds
 * @kind: enum tensor_export_kind
 * @hold: what it reaches and permits
 * @owner: who made it
 */
struct tensor_exported {
	u64 id;
	u64 born;
	u32 kind;
	const struct tensor_hold *hold;
	struct tensor_owner *owner;
};

/**
 * struct tensor_file - an open file on a buffer
 * @hold: what it reaches and permits; no reference, the file has one
 * @count: counter of the buffer that counts it, or NULL
 * @exported: how it is listed, if EXPORT made it
 */
struct tensor_file {
	struct tensor_hold hold;
	atomic_t *count;
	struct tensor_exported exported;
};

int tensor_fs_get(void);
void tensor_fs_put(void);
int tensor_fs_inode(struct tensor_buf *buf);
struct file *tensor_fs_file(const struct tensor_hold *hold, atomic_t *count);
bool tensor_fs_hold(struct file *file, struct tensor_hold *hold);

/* map.c */
int tensor_map(const struct tensor_hold *hold, struct vm_area_struct *vma);
int tensor_map_foreign(const struct tensor_hold *hold, struct vm_area_struct *vma, atomic_t *count);
int tensor_map_cookie(struct file *file, struct vm_area_struct *vma);
#ifdef CONFIG_TRANSPARENT_HUGEPAGE
unsigned long tensor_map_area(struct file *file, unsigned long addr, unsigned long len,
			      unsigned long pgoff, unsigned long flags);
#else
#define tensor_map_area NULL
#endif

/* meta.c */
int tensor_desc_check(const struct tensor_desc *desc, u64 bytes);
void tensor_desc_get(struct tensor_buf *buf, struct tensor_desc *desc);
void tensor_desc_get_part(const struct tensor_hold *hold, struct tensor_desc *desc);
int tensor_desc_set(struct tensor_buf *buf, const struct tensor_desc *desc);
const char *tensor_dtype_name(u32 dtype);

/**
 * struct tensor_client - an open /dev/tensor
 * @id: never given twice
 * @born: boot time clock, nanoseconds
 * @owner: who opened it
 * @handles: struct tensor_handle by handle
 * @next: where the search for a free handle begins, so that a closed one is not met again soon
 * @spare: a handle that is reserved for the next, or 0
 * @count: handles in the table
 * @bytes: bytes of the buffers behind them
 * @ready_lock: guards @ready and the events of its handles
 * @ready: handles with events
 * @wait: who polls or reads
 */
struct tensor_client {
	u64 id;
	u64 born;
	struct tensor_owner *owner;
	struct xarray handles;
	u32 next;
	u32 spare;
	atomic_t count;
	atomic64_t bytes;
	spinlock_t ready_lock; /* guards ready */
	struct list_head ready;
	wait_queue_head_t wait;
};

/**
 * struct tensor_handle - an entry of the handle table
 * @hold: the reference that the handle is
 * @client: whose it is
 * @id: its number
 * @events: TENSOR_EVENT_* that were not read yet
 * @holder: in the buffer's list of holders
 * @ready: in the client's list, or empty
 */
struct tensor_handle {
	struct tensor_hold hold;
	struct tensor_client *client;
	u32 id;
	u32 events;
	struct list_head holder;
	struct list_head ready;
};

/**
 * struct tensor_handle_row - what is to be told about a handle; no reference
 * @client: id of the client
 * @id: its number
 * @buf: id of the buffer
 * @rdonly: as in struct tensor_hold
 */
struct tensor_handle_row {
	u64 client;
	u32 id;
	u64 buf;
	bool rdonly;
};

struct tensor_client *tensor_client_new(void);
void tensor_client_free(struct tensor_client *client);
struct tensor_handle *tensor_handle_new(struct tensor_client *client,
					const struct tensor_hold *hold);
void tensor_handle_publish(struct tensor_client *client, struct tensor_handle *handle);
void tensor_handle_cancel(struct tensor_client *client, struct tensor_handle *handle);
int tensor_handle_get(struct tensor_client *client, u32 id, struct tensor_hold *hold);
int tensor_handle_close(struct tensor_client *client, u32 id);
bool tensor_handle_next(struct tensor_client *client, unsigned long *id,
			struct tensor_handle_row *row);

static inline u64 tensor_handle_cookie(const struct tensor_handle *handle)
{
	/* no 32-bit mmap() could use it */
	return in_compat_syscall() ? 0 : (u64)handle->id << TENSOR_COOKIE_SHIFT;
}

/* event.c */
void tensor_event_join(struct tensor_handle *handle);
void tensor_event_leave(struct tensor_handle *handle);
void tensor_event_post(struct tensor_buf *buf, u32 events, const struct tensor_client *by);
ssize_t tensor_event_read(struct file *file, char __user *to, size_t room, loff_t *pos);
__poll_t tensor_event_poll(struct file *file, struct poll_table_struct *table);
__poll_t tensor_event_poll_buf(struct file *file, struct poll_table_struct *table);

/* registry.c */
extern struct mutex tensor_registry_lock;
extern struct xarray tensor_bufs;
extern struct xarray tensor_clients;
extern struct xarray tensor_exports;

/**
 * struct tensor_totals - what the registry has counted
 * @generation: changes whenever a client or a buffer is added or removed; never 0
 * @exports_generation: the same of exported files
 * @clients: open /dev/tensor
 * @bufs: buffers
 * @bytes: of all buffers
 * @huge_bytes: of these, in chunks of PMD size
 * @exports: files made by EXPORT, by enum tensor_export_kind
 */
struct tensor_totals {
	u32 generation;
	u32 exports_generation;
	u64 clients;
	u64 bufs;
	u64 bytes;
	u64 huge_bytes;
	u64 exports[2];
};

u64 tensor_registry_id(void);
int tensor_registry_add_buf(struct tensor_buf *buf);
void tensor_registry_del_buf(struct tensor_buf *buf);
int tensor_registry_add_client(struct tensor_client *client);
void tensor_registry_del_client(struct tensor_client *client);
int tensor_registry_add_export(struct tensor_exported *exported);
void tensor_registry_del_export(struct tensor_exported *exported);
u32 tensor_registry_generation(bool exports);
void tensor_registry_totals(struct tensor_totals *totals);

/* ioctl.c; what is behind it: call.h */
long tensor_ioctl_device(struct file *file, unsigned int cmd, unsigned long arg);
long tensor_ioctl_buf(struct file *file, unsigned int cmd, unsigned long arg);

/* fdinfo.c */
void tensor_fdinfo_client(struct seq_file *m, struct file *file);
void tensor_fdinfo_buf(struct seq_file *m, struct file *file);

#endif /* TENSOR_CORE_H */
