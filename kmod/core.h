/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The objects of the module and who may call whom.
 *
 *	owner   who made something: process, user, name           owner.c
 *	buffer  pages and a descriptor, on an inode of its own     buffer.c meta.c fs.c
 *	client  an open /dev/tensor: a table of handles            client.c device.c
 *	call    one ioctl on its way                               ioctl.c share.c
 *
 * Lifetime: a buffer lives as long as its inode. An inode reference is held by each handle and by
 * each file on the inode; a file is held by fds, messages in flight and mappings. The superblock
 * holds a reference on the module, each reference on a buffer holds the mount: so the module cannot
 * go while a buffer lives, on any kernel, and no file needs to count it.
 *
 * Locks: none is held while another is taken, except that the registry's mutex is outside of the
 * descriptor's spinlock. Handle tables use the lock of their xarray.
 */
#ifndef TENSOR_CORE_H
#define TENSOR_CORE_H

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/fs.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/tensor.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/xarray.h>

#include "alloc/alloc.h"

struct seq_file;
struct sk_buff;

/*
 * A cookie is a handle in its upper bits and an offset into the buffer in its lower ones. Users
 * must not know that: to them it is a number that ALLOC gave.
 */
#define TENSOR_COOKIE_SHIFT	40
#define TENSOR_MAX_BYTES	BIT_ULL(TENSOR_COOKIE_SHIFT)
#define TENSOR_MAX_HANDLES	((1U << 22) - 1)

/**
 * struct tensor_owner - who made a client or a buffer; shared, never changed
 * @ref: references
 * @pid: the process; may have ended
 * @ns: its user namespace then
 * @uid: its effective user then
 * @comm: its name then
 */
struct tensor_owner {
	refcount_t ref;
	struct pid *pid;
	struct user_namespace *ns;
	kuid_t uid;
	char comm[TASK_COMM_LEN];
};

struct tensor_owner *tensor_owner_new(void);
struct tensor_owner *tensor_owner_current(struct tensor_owner *guess);
struct tensor_owner *tensor_owner_get(struct tensor_owner *owner);
void tensor_owner_put(struct tensor_owner *owner);
bool tensor_owner_visible(const struct tensor_owner *owner, struct sk_buff *request);

/**
 * struct tensor_buf - a buffer
 * @inode: its inode; i_private points back
 * @mnt: the mount that the inode belongs to; every reference holds it as well
 * @id: inode number
 * @client: id of the client that made it
 * @born: boot time clock, nanoseconds
 * @bytes: size, whole pages; charged to the limit
 * @owner: who made it
 * @chunks: its pages; do not change while it lives
 * @handles: handles to it
 * @files: open files made by EXPORT
 * @mappings: mappings
 * @desc_lock: guards @desc, for as long as a copy takes
 * @desc: the descriptor
 */
struct tensor_buf {
	struct inode *inode;
	struct vfsmount *mnt;
	u64 id;
	u64 client;
	u64 born;
	u64 bytes;
	struct tensor_owner *owner;
	struct tensor_chunks chunks;
	atomic_t handles;
	atomic_t files;
	atomic_t mappings;
	spinlock_t desc_lock; /* guards desc */
	struct tensor_desc desc;
};

/**
 * struct tensor_hold - a counted reference to a buffer and what it permits
 * @buf: the buffer
 * @rdonly: no writable mapping, no change of the descriptor, no writable fd
 */
struct tensor_hold {
	struct tensor_buf *buf;
	bool rdonly;
};

/* buffer.c */
struct tensor_buf *tensor_buf_new(const struct tensor_want *want, struct tensor_owner *guess,
				  u64 client);
void tensor_buf_get(struct tensor_buf *buf);
void tensor_buf_put(struct tensor_buf *buf);
void tensor_buf_evict(struct tensor_buf *buf);
void tensor_buf_info(const struct tensor_hold *hold, struct tensor_info *info);

/* fs.c */
int tensor_fs_get(void);
void tensor_fs_put(void);
int tensor_fs_inode(struct tensor_buf *buf);
struct file *tensor_fs_file(struct tensor_buf *buf, bool rdonly, bool counted);
bool tensor_fs_hold(struct file *file, struct tensor_hold *hold);

/* map.c */
int tensor_map(const struct tensor_hold *hold, struct vm_area_struct *vma);
int tensor_map_cookie(struct file *file, struct vm_area_struct *vma);

/* meta.c */
int tensor_desc_check(const struct tensor_desc *desc, u64 bytes);
void tensor_desc_get(struct tensor_buf *buf, struct tensor_desc *desc);
int tensor_desc_set(struct tensor_buf *buf, const struct tensor_desc *desc);
const char *tensor_dtype_name(u32 dtype);

/**
 * struct tensor_client - an open /dev/tensor
 * @id: never given twice
 * @born: boot time clock, nanoseconds
 * @owner: who opened it
 * @handles: struct tensor_handle by handle
 * @next: where the search for a free handle begins, so that a closed one is not met again soon
 * @count: handles in the table
 * @bytes: bytes of the buffers behind them
 */
struct tensor_client {
	u64 id;
	u64 born;
	struct tensor_owner *owner;
	struct xarray handles;
	u32 next;
	atomic_t count;
	atomic64_t bytes;
};

/**
 * struct tensor_handle - an entry of the handle table
 * @hold: the reference that the handle is
 * @id: its number
 */
struct tensor_handle {
	struct tensor_hold hold;
	u32 id;
};

struct tensor_client *tensor_client_new(void);
void tensor_client_free(struct tensor_client *client);
struct tensor_handle *tensor_handle_new(struct tensor_client *client,
					const struct tensor_hold *hold);
void tensor_handle_publish(struct tensor_client *client, struct tensor_handle *handle);
void tensor_handle_cancel(struct tensor_client *client, struct tensor_handle *handle);
int tensor_handle_get(struct tensor_client *client, u32 id, struct tensor_hold *hold);
int tensor_handle_close(struct tensor_client *client, u32 id);

static inline u64 tensor_handle_cookie(const struct tensor_handle *handle)
{
	return (u64)handle->id << TENSOR_COOKIE_SHIFT;
}

/* registry.c */
extern struct mutex tensor_registry_lock;
extern struct xarray tensor_bufs;
extern struct xarray tensor_clients;

/**
 * struct tensor_totals - what the registry has counted
 * @generation: changes whenever anything is added or removed; never 0
 * @clients: open /dev/tensor
 * @bufs: buffers
 * @bytes: of all buffers
 * @huge_bytes: of these, in chunks of PMD size
 */
struct tensor_totals {
	u32 generation;
	u64 clients;
	u64 bufs;
	u64 bytes;
	u64 huge_bytes;
};

u64 tensor_registry_id(void);
int tensor_registry_add_buf(struct tensor_buf *buf);
void tensor_registry_del_buf(struct tensor_buf *buf);
int tensor_registry_add_client(struct tensor_client *client);
void tensor_registry_del_client(struct tensor_client *client);
u32 tensor_registry_generation(void);
void tensor_registry_totals(struct tensor_totals *totals);

/**
 * struct tensor_call - one ioctl
 * @client: on /dev/tensor, otherwise NULL
 * @file: the file it came through
 * @user: where the struct lies
 * @user_size: bytes of it that the caller has
 * @size: bytes of it that we have
 * @arg: our copy
 */
struct tensor_call {
	struct tensor_client *client;
	struct file *file;
	void __user *user;
	u32 user_size;
	u32 size;
	union {
		struct tensor_query query;
		struct tensor_alloc alloc;
		struct tensor_info info;
		struct tensor_meta meta;
		struct tensor_export export;
		struct tensor_import import;
		struct tensor_close close;
	} arg;
};

/* ioctl.c */
long tensor_ioctl_device(struct file *file, unsigned int cmd, unsigned long arg);
long tensor_ioctl_buf(struct file *file, unsigned int cmd, unsigned long arg);
int tensor_call_hold(const struct tensor_call *call, u32 handle, struct tensor_hold *hold);
int tensor_call_reply(const struct tensor_call *call);
int tensor_call_give(const struct tensor_call *call, struct tensor_handle *handle);

/* share.c */
int tensor_export(struct tensor_call *call);
int tensor_import(struct tensor_call *call);

/* fdinfo.c */
void tensor_fdinfo_client(struct seq_file *m, struct file *file);
void tensor_fdinfo_buf(struct seq_file *m, struct file *file);

/* netlink.c */
int tensor_netlink_init(void);
void tensor_netlink_exit(void);

#endif /* TENSOR_CORE_H */
