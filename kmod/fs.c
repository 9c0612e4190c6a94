// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pseudo filesystem that buffers' inodes live in.
 *
 * A buffer needs an inode of its own: its address space is what finds all mappings of it, its
 * number is the buffer's identity, and each open file on it has its own access mode. Nobody can
 * mount or walk this filesystem, and a file cannot be opened a second time through /proc.
 *
 * The filesystem type counts the module, which is what keeps it loaded: a superblock lives until
 * the last file and the last handle have given their mount back, and is torn down by the core after
 * our last line has run. So the file operations have no owner; whether alloc_file_pseudo() counts
 * one differs between kernels.
 */
#include <linux/dcache.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>
#include <linux/slab.h>
#include <linux/statfs.h>
#include <linux/tensor_netlink.h>

#include "core.h"
#include "trace.h"

static struct vfsmount *fs_mnt;
static int fs_pins;

static void evict_inode(struct inode *inode)
{
	struct tensor_buf *buf = inode->i_private;

	truncate_inode_pages_final(&inode->i_data);
	clear_inode(inode);
	if (buf)
		tensor_buf_evict(buf);
}

static const struct super_operations super_ops = {
	.statfs = simple_statfs,
	.evict_inode = evict_inode,
};

/* What /proc/PID/fd and /proc/PID/maps show. */
static char *buf_dname(struct dentry *dentry, char *text, int room)
{
	char name[32];
	int n = snprintf(name, sizeof(name), "tensor:[%llu]", (u64)d_inode(dentry)->i_ino) + 1;

	if (n > room)
		return ERR_PTR(-ENAMETOOLONG);
	return memcpy(text + room - n, name, n);
}

static const struct dentry_operations dentry_ops = {
	.d_dname = buf_dname,
};

static int init_context(struct fs_context *fc)
{
	struct pseudo_fs_context *ctx = init_pseudo(fc, TENSOR_FS_MAGIC);

	if (!ctx)
		return -ENOMEM;
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

/**
 * tensor_fs_get() - have the filesystem there until tensor_fs_put()
 *
 * Return: 0 or -errno.
 */
int tensor_fs_get(void)
{
	return simple_pin_fs(&fs_type, &fs_mnt, &fs_pins);
}

/**
 * tensor_fs_put() - undo tensor_fs_get()
 */
void tensor_fs_put(void)
{
	simple_release_fs(&fs_mnt, &fs_pins);
}

/* Size and mode of a buffer are not for its users to change. */
static int buf_setattr(struct mnt_idmap *idmap, struct dentry *dentry, struct iattr *attr)
{
	return -EPERM;
}

static const struct inode_operations inode_ops = {
	.setattr = buf_setattr,
};

/**
 * tensor_fs_inode() - give a buffer its inode
 * @buf: the buffer, with its id and pages; gets @buf->inode and @buf->mnt and one reference
 *
 * The caller holds the filesystem. From here on dropping the reference evicts the buffer.
 *
 * Return: 0 or -errno.
 */
int tensor_fs_inode(struct tensor_buf *buf)
{
	struct inode *inode = alloc_anon_inode(fs_mnt->mnt_sb);

	if (IS_ERR(inode))
		return PTR_ERR(inode);
	inode->i_ino = buf->id;
	inode->i_op = &inode_ops;
	inode->i_flags |= S_NOATIME | S_NOCMTIME;
	/* newer kernels map a large page only if it ends within the file */
	i_size_write(inode, buf->bytes);
	inode->i_private = buf;
	buf->inode = inode;
	buf->mnt = fs_mnt;
	return 0;
}

static int buf_mmap(struct file *file, struct vm_area_struct *vma)
{
	const struct tensor_file *open = file->private_data;

	return tensor_map(&open->hold, vma);
}

#ifdef CONFIG_TRANSPARENT_HUGEPAGE
/* Aligned for the buffer, not for the part of it that the file reaches. */
static unsigned long buf_area(struct file *file, unsigned long addr, unsigned long len,
			      unsigned long pgoff, unsigned long flags)
{
	const struct tensor_file *open = file->private_data;

	return thp_get_unmapped_area(file, addr, len, pgoff + open->hold.first, flags);
}
#else
#define buf_area NULL
#endif

/* What EXPORT makes is listed; what a mapping by cookie needs is not. */
static struct tensor_file *file_open(const struct tensor_hold *hold, atomic_t *count)
{
	struct tensor_file *open = kmalloc(sizeof(*open), GFP_KERNEL_ACCOUNT);
	int err;

	if (!open)
		return ERR_PTR(-ENOMEM);
	*open = (struct tensor_file){ .hold = *hold, .count = count };
	if (count != &hold->buf->files)
		return open;
	open->exported.hold = &open->hold;
	open->exported.kind = TENSOR_EXPORT_KIND_FD;
	err = tensor_registry_add_export(&open->exported);
	if (err) {
		kfree(open);
		return ERR_PTR(err);
	}
	return open;
}

/* Of a file that is closed, or was never opened. */
static void file_free(struct tensor_file *open)
{
	if (open->exported.owner)
		tensor_registry_del_export(&open->exported);
	kfree(open);
}

static int buf_release(struct inode *inode, struct file *file)
{
	struct tensor_file *open = file->private_data;

	/* an open that failed has none */
	if (!open)
		return 0;
	trace_tensor_file_release(&open->hold);
	if (open->count) {
		atomic_dec(open->count);
		tensor_event_post(open->hold.buf, TENSOR_EVENT_GONE, NULL);
	}
	file_free(open);
	return 0;
}

static const struct file_operations buf_fops = {
	.mmap = buf_mmap,
	.get_unmapped_area = buf_area,
	.unlocked_ioctl = tensor_ioctl_buf,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = tensor_event_poll_buf,
	.show_fdinfo = tensor_fdinfo_buf,
	.release = buf_release,
};

/**
 * tensor_fs_file() - open a file on a buffer
 * @hold: what it shall reach and permit; the file gets a reference of its own
 * @count: counter of the buffer that shall count it, or NULL
 *
 * Return: the file or an ERR_PTR().
 */
struct file *tensor_fs_file(const struct tensor_hold *hold, atomic_t *count)
{
	struct tensor_file *open = file_open(hold, count);
	struct tensor_buf *buf = hold->buf;
	struct file *file;

	if (IS_ERR(open))
		return ERR_CAST(open);
	ihold(buf->inode);
	file = alloc_file_pseudo(buf->inode, buf->mnt, "", hold->rdonly ? O_RDONLY : O_RDWR,
				 &buf_fops);
	if (IS_ERR(file)) {
		iput(buf->inode);
		file_free(open);
		return file;
	}
	file->private_data = open;
	if (count)
		atomic_inc(count);
	trace_tensor_file_open(hold);
	return file;
}

/**
 * tensor_fs_hold() - see what a file is
 * @file: any file
 * @hold: its buffer and what it permits, if it is one of a buffer
 *
 * Takes no reference: @hold lives as long as the file does.
 *
 * Return: whether it is a buffer's.
 */
bool tensor_fs_hold(struct file *file, struct tensor_hold *hold)
{
	const struct tensor_file *open = file->private_data;

	if (file->f_op != &buf_fops)
		return false;
	*hold = open->hold;
	return true;
}
