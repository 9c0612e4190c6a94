// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pseudo file system of buffers: a buffer is an inode.
 *
 * A buffer needs an inode of its own: its address space finds all mappings of it, its number is the
 * buffer's identity, and each open file on it has its own access mode. The file system cannot be
 * mounted or walked, and a file cannot be opened a second time through /proc.
 *
 * An inode must not outlive its superblock. A handle is a reference to an inode only, so there is
 * one mount for all buffers: it is created for the first user (a client, a file or a dma-buf) and
 * released by the last. A handle belongs to a client, and a buffer reaches another client through a
 * file or a dma-buf, so there is a user as long as a buffer can be reached.
 *
 * The superblock references the module through the file system type, and keeps it loaded: the core
 * destroys the superblock after the module's last function has returned. So the file operations
 * have no owner; whether alloc_file_pseudo() references one differs between kernels.
 */
#include <linux/atomic.h>
#include <linux/dcache.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs_context.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/mutex.h>
#include <linux/pseudo_fs.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/statfs.h>
#include <linux/user_namespace.h>

#include "fs.h"

static struct kmem_cache *fs_cache;
static void (*fs_evict)(struct tensor_buf *buf);

/* Guards the first get and the last put. */
static DEFINE_MUTEX(fs_mutex);
static struct vfsmount *fs_mnt;
static atomic_long_t fs_users;

static struct inode *fs_alloc_inode(struct super_block *sb)
{
	struct tensor_buf *buf = alloc_inode_sb(sb, fs_cache, TENSOR_GFP);

	if (!buf)
		return NULL;
	memset((void *)buf + sizeof(buf->inode), 0, sizeof(*buf) - sizeof(buf->inode));
	return &buf->inode;
}

/*
 * Called after an RCU grace period: the shrinker may still unlock the buffer's mutex, and a reader
 * of events may still access its watch lock.
 */
static void fs_free_inode(struct inode *inode)
{
	kmem_cache_free(fs_cache, tensor_buf_of(inode));
}

static void fs_evict_inode(struct inode *inode)
{
	truncate_inode_pages_final(&inode->i_data);
	clear_inode(inode);
	/* the root inode of the file system is no buffer */
	if (tensor_buf_of(inode)->id)
		fs_evict(tensor_buf_of(inode));
}

static const struct super_operations super_ops = {
	.alloc_inode = fs_alloc_inode,
	.free_inode = fs_free_inode,
	.statfs = simple_statfs,
	.evict_inode = fs_evict_inode,
};

/* The name of a buffer in /proc/PID/fd and /proc/PID/maps. */
static char *fs_dname(struct dentry *dentry, char *text, int room)
{
	char name[32];
	int n = snprintf(name, sizeof(name), "tensor:[%llu]", (u64)d_inode(dentry)->i_ino) + 1;

	if (n > room)
		return ERR_PTR(-ENAMETOOLONG);
	return memcpy(text + room - n, name, n);
}

static const struct dentry_operations dentry_ops = {
	.d_dname = fs_dname,
};

static int init_context(struct fs_context *fc)
{
	struct pseudo_fs_context *ctx = init_pseudo(fc, TENSOR_FS_MAGIC);

	if (!ctx)
		return -ENOMEM;
	/* the mount belongs to the initial user namespace, not to that of its first user */
	put_user_ns(fc->user_ns);
	fc->user_ns = get_user_ns(&init_user_ns);
	ctx->ops = &super_ops;
	ctx->dops = &dentry_ops;
	fc->s_iflags |= SB_I_NOEXEC | SB_I_NODEV;
	return 0;
}

static struct file_system_type fs_type = {
	.owner = THIS_MODULE,
	.name = "tensorfs",
	.init_fs_context = init_context,
	.kill_sb = kill_anon_super,
};

/*
 * The mount is created without the mutex: that allocates, and other tasks should not wait for
 * reclaim.
 */
static int fs_get_first(void)
{
	struct vfsmount *mnt = vfs_kern_mount(&fs_type, SB_KERNMOUNT, fs_type.name, NULL);

	if (IS_ERR(mnt))
		return PTR_ERR(mnt);
	mutex_lock(&fs_mutex);
	if (!fs_mnt) {
		fs_mnt = mnt;
		mnt = NULL;
	}
	/* tensor_fs_get() checks the count without the mutex */
	smp_mb__before_atomic();
	atomic_long_inc(&fs_users);
	mutex_unlock(&fs_mutex);
	mntput(mnt);
	return 0;
}

/**
 * tensor_fs_get() - keep the file system mounted until tensor_fs_put()
 *
 * Return: 0 or -errno.
 */
int tensor_fs_get(void)
{
	return atomic_long_inc_not_zero(&fs_users) ? 0 : fs_get_first();
}

/**
 * tensor_fs_put() - undo tensor_fs_get()
 *
 * May drop the last reference to the module except for the caller's: the caller is an operation of
 * a device, a file or a dma-buf, and the core keeps the module loaded until it returns.
 */
void tensor_fs_put(void)
{
	struct vfsmount *mnt;

	if (atomic_long_add_unless(&fs_users, -1, 1))
		return;
	mutex_lock(&fs_mutex);
	mnt = fs_mnt;
	if (atomic_long_dec_and_test(&fs_users))
		fs_mnt = NULL;
	else
		mnt = NULL;
	mutex_unlock(&fs_mutex);
	mntput(mnt);
}

/* Users of a buffer must not change its size or mode. */
static int buf_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	return -EPERM;
}

/*
 * The inode cannot be opened by a path, not through /proc either. In particular it cannot be
 * watched: a mark of inotify or fanotify holds the inode but not the mount, whose release would
 * wait for the mark, because older kernels find only the marks of inodes that the superblock lists.
 */
static int buf_permission(struct mnt_idmap *idmap, struct inode *inode, int mask)
{
	return -ENXIO;
}

static const struct inode_operations inode_ops = {
	.permission = buf_permission,
	.setattr = buf_setattr,
};

/**
 * tensor_fs_buf() - create an inode, which is a buffer without memory
 * @id: inode number, not 0
 * @bytes: its size
 *
 * The caller holds the file system. tensor_buf_put() evicts and frees it.
 *
 * Return: the buffer with one reference, or an ERR_PTR().
 */
struct tensor_buf *tensor_fs_buf(u64 id, u64 bytes)
{
	struct inode *inode = alloc_anon_inode(fs_mnt->mnt_sb);
	struct tensor_buf *buf;

	if (IS_ERR(inode))
		return ERR_CAST(inode);
	buf = tensor_buf_of(inode);
	inode->i_ino = id;
	inode->i_op = &inode_ops;
	inode->i_flags |= S_NOATIME | S_NOCMTIME;
	/* buffers are shared between users, so security modules must see their files */
	inode->i_flags &= ~S_PRIVATE;
	/* newer kernels map a large folio only if it ends within the file */
	i_size_write(inode, bytes);
	buf->bytes = bytes;
	buf->id = id;
	return buf;
}

/**
 * tensor_fs_open() - open a file on a buffer
 * @buf: the buffer; the file gets a reference of its own
 * @write: whether it is open for writing as well as for reading
 * @fops: its file operations
 *
 * Return: the file or an ERR_PTR().
 */
struct file *tensor_fs_open(struct tensor_buf *buf, bool write, const struct file_operations *fops)
{
	struct file *file;

	tensor_buf_get(buf);
	file = alloc_file_pseudo(&buf->inode, fs_mnt, "", write ? O_RDWR : O_RDONLY, fops);
	if (IS_ERR(file))
		tensor_buf_put(buf);
	return file;
}

static void fs_init_once(void *buf)
{
	inode_init_once(&((struct tensor_buf *)buf)->inode);
}

/**
 * tensor_fs_init() - register the file system
 * @evict: called when the last reference to a buffer is dropped, to free what it owns
 *
 * Return: 0 or -ENOMEM.
 */
int __init tensor_fs_init(void (*evict)(struct tensor_buf *buf))
{
	fs_cache = kmem_cache_create("tensor_buf", sizeof(struct tensor_buf), 0, SLAB_ACCOUNT,
				     fs_init_once);
	if (!fs_cache)
		return -ENOMEM;
	fs_evict = evict;
	return 0;
}

/**
 * tensor_fs_exit() - unregister the file system; no user is left
 */
void tensor_fs_exit(void)
{
	/* wait for the inodes that RCU frees */
	rcu_barrier();
	kmem_cache_destroy(fs_cache);
}
