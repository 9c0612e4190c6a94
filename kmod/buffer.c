// SPDX-License-Identifier: GPL-2.0-only
/*
 * A buffer from birth to eviction.
 *
 * All memory is there when ALLOC returns: too little is an error then, never a SIGBUS later. The
 * inode owns everything; who drops the last reference to it, by whatever way of dying, evicts it.
 */
#include <linux/err.h>
#include <linux/kdev_t.h>
#include <linux/mount.h>
#include <linux/pid.h>
#include <linux/slab.h>
#include <linux/ktime.h>
#include <linux/user_namespace.h>

#include "core.h"
#include "trace.h"

static struct tensor_buf *buf_init(const struct tensor_want *want, u64 client)
{
	struct tensor_buf *buf = kzalloc(sizeof(*buf), GFP_KERNEL_ACCOUNT);

	if (!buf)
		return NULL;
	buf->id = tensor_registry_id();
	buf->client = client;
	buf->born = ktime_get_boottime_ns();
	buf->bytes = (u64)want->pages << PAGE_SHIFT;
	spin_lock_init(&buf->desc_lock);
	return buf;
}

/**
 * tensor_buf_new() - make a buffer
 * @want: its pages
 * @guess: probably the owner that describes the calling process
 * @client: id of the client that asks, which holds the filesystem
 *
 * Return: the buffer with one reference, which tensor_buf_put() gives back; or an ERR_PTR():
 * -EDQUOT at the limit, -ENOMEM, -EINTR.
 */
struct tensor_buf *tensor_buf_new(const struct tensor_want *want, struct tensor_owner *guess,
				  u64 client)
{
	struct tensor_buf *buf = buf_init(want, client);
	int err = -ENOMEM;

	if (!buf)
		return ERR_PTR(-ENOMEM);
	buf->owner = tensor_owner_current(guess);
	if (!buf->owner)
		goto free_buf;
	err = tensor_limit_charge(buf->bytes);
	if (err)
		goto put_owner;
	err = tensor_chunks_alloc(&buf->chunks, want);
	if (err)
		goto uncharge;
	err = tensor_fs_inode(buf);
	if (err)
		goto free_chunks;
	err = tensor_registry_add_buf(buf);
	if (err) {
		/* the inode owns all of it by now */
		tensor_buf_put(buf);
		return ERR_PTR(err);
	}
	trace_tensor_buf_new(buf);
	return buf;

free_chunks:
	tensor_chunks_free(&buf->chunks);
uncharge:
	tensor_limit_uncharge(buf->bytes);
put_owner:
	tensor_owner_put(buf->owner);
free_buf:
	kfree(buf);
	return ERR_PTR(err);
}

/**
 * tensor_buf_evict() - the inode goes: free what tensor_buf_new() made
 * @buf: the buffer, without handle, file or mapping
 */
void tensor_buf_evict(struct tensor_buf *buf)
{
	trace_tensor_buf_evict(buf);
	tensor_registry_del_buf(buf);
	tensor_chunks_free(&buf->chunks);
	tensor_limit_uncharge(buf->bytes);
	tensor_owner_put(buf->owner);
	kfree(buf);
}

/**
 * tensor_buf_get() - take a reference
 * @buf: a buffer that somebody holds
 */
void tensor_buf_get(struct tensor_buf *buf)
{
	mntget(buf->mnt);
	ihold(buf->inode);
}

/**
 * tensor_buf_put() - give a reference back
 * @buf: the buffer
 */
void tensor_buf_put(struct tensor_buf *buf)
{
	struct vfsmount *mnt = buf->mnt;

	/* in this order: the superblock must outlive its inode */
	iput(buf->inode);
	mntput(mnt);
}

static void info_who(const struct tensor_owner *owner, struct tensor_info *info)
{
	info->pid = pid_vnr(owner->pid);
	info->uid = from_kuid_munged(current_user_ns(), owner->uid);
}

static void info_refs(const struct tensor_buf *buf, struct tensor_info *info)
{
	info->handles = atomic_read(&buf->handles);
	info->files = atomic_read(&buf->files);
	info->mappings = atomic_read(&buf->mappings);
	info->refs = info->handles + info->files + info->mappings;
}

/**
 * tensor_buf_info() - answer INFO
 * @hold: the buffer and what the caller may do with it
 * @info: all of it is written but what the caller asked with
 */
void tensor_buf_info(const struct tensor_hold *hold, struct tensor_info *info)
{
	struct tensor_buf *buf = hold->buf;
	struct tensor_desc desc;

	BUILD_BUG_ON(TENSOR_ORDERS > TENSOR_UAPI_ORDERS);
	tensor_desc_get(buf, &desc);
	info->state = (hold->rdonly ? TENSOR_STATE_RDONLY : 0) |
		      (desc.dtype != TENSOR_DT_NONE ? TENSOR_STATE_META : 0);
	info->bytes = buf->bytes;
	info->huge_bytes = tensor_chunks_huge_bytes(&buf->chunks);
	info->pinned_bytes = buf->bytes;
	info->dma_bytes = tensor_chunks_dma_bytes(&buf->chunks);
	info->dev = new_encode_dev(buf->inode->i_sb->s_dev);
	info->ino = buf->id;
	info->age_ns = ktime_get_boottime_ns() - buf->born;
	info_who(buf->owner, info);
	info_refs(buf, info);
	info->node = buf->chunks.node;
	memset(info->chunks, 0, sizeof(info->chunks));
	memcpy(info->chunks, buf->chunks.count, sizeof(buf->chunks.count));
}
