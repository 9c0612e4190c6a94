// SPDX-License-Identifier: GPL-2.0-only
/* The file operations of /dev/tensor and of buffer fds, and module init and exit. */
#include <linux/compat.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/poll.h>

#include "buffer/buffer.h"
#include "buffer/event.h"
#include "buffer/file.h"
#include "buffer/shrinker.h"
#include "client/client.h"
#include "fdinfo.h"
#include "ioctl/ioctl.h"
#include "map/map.h"
#include "netlink/family.h"

#ifndef CONFIG_64BIT
#error "mmap offsets need 64-bit file offsets in mmap()"
#endif

static int device_open(struct inode *inode, struct file *file)
{
	struct tensor_client *client = tensor_client_new();

	if (IS_ERR(client))
		return PTR_ERR(client);
	file->private_data = client;
	return nonseekable_open(inode, file);
}

static int device_release(struct inode *inode, struct file *file)
{
	tensor_client_free(file->private_data);
	return 0;
}

static ssize_t device_read(struct file *file, char __user *to, size_t room, loff_t *pos)
{
	struct tensor_client *client = file->private_data;

	return tensor_inbox_read(&client->inbox, to, room, !(file->f_flags & O_NONBLOCK));
}

static __poll_t device_poll(struct file *file, struct poll_table_struct *table)
{
	struct tensor_client *client = file->private_data;

	poll_wait(file, &client->inbox.wait, table);
	return tensor_inbox_ready(&client->inbox) ? EPOLLIN | EPOLLRDNORM : 0;
}

/*
 * The buffer of an mmap offset, with a reference; the lower bits of @pgoff are an offset into it.
 */
static int mmap_offset_hold(struct tensor_client *client, unsigned long pgoff,
			    struct tensor_hold *hold)
{
	unsigned long handle = pgoff >> (TENSOR_MMAP_OFFSET_SHIFT - PAGE_SHIFT);

	return handle > TENSOR_MAX_HANDLES ? -ENOENT : tensor_handle_get(client, handle, hold);
}

/*
 * The offset is an mmap offset plus an offset into the buffer. A 32-bit mmap() loses the upper
 * bits, so the rest may refer to another handle.
 */
static int device_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct tensor_client *client = file->private_data;
	struct tensor_hold hold;
	int err;

	if (in_compat_syscall())
		return -EOPNOTSUPP;
	err = mmap_offset_hold(client, vma->vm_pgoff, &hold);
	if (err)
		return err;
	vma->vm_pgoff &= BIT(TENSOR_MMAP_OFFSET_SHIFT - PAGE_SHIFT) - 1;
	err = tensor_map_through(&hold, vma, client->id);
	tensor_buf_put(hold.buf);
	return err;
}

static int buf_mmap(struct file *file, struct vm_area_struct *vma)
{
	const struct tensor_file *open = file->private_data;

	return tensor_map(&open->hold, vma);
}

#ifdef CONFIG_TRANSPARENT_HUGEPAGE
/* Align for the offset in the buffer, not in the part that the handle reaches. */
static unsigned long device_area(struct file *file, unsigned long addr, unsigned long len,
				 unsigned long pgoff, unsigned long flags)
{
	struct tensor_hold hold;

	/* below PMD size any address will do */
	if (len >= PMD_SIZE && !mmap_offset_hold(file->private_data, pgoff, &hold)) {
		pgoff += hold.first;
		tensor_buf_put(hold.buf);
	}
	return thp_get_unmapped_area(file, addr, len, pgoff, flags);
}

static unsigned long buf_area(struct file *file, unsigned long addr, unsigned long len,
			      unsigned long pgoff, unsigned long flags)
{
	const struct tensor_file *open = file->private_data;

	return thp_get_unmapped_area(file, addr, len, pgoff + open->hold.first, flags);
}
#else
#define device_area NULL
#define buf_area    NULL
#endif

static int buf_release(struct inode *inode, struct file *file)
{
	tensor_file_release(file);
	return 0;
}

static const struct file_operations device_fops = {
	.owner = THIS_MODULE,
	.open = device_open,
	.release = device_release,
	.read = device_read,
	.poll = device_poll,
	.unlocked_ioctl = tensor_ioctl_device,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = device_mmap,
	.get_unmapped_area = device_area,
	.show_fdinfo = tensor_fdinfo_client,
};

/* Without an owner: see buffer/fs.c. */
static const struct file_operations buf_fops = {
	.mmap = buf_mmap,
	.get_unmapped_area = buf_area,
	.unlocked_ioctl = tensor_ioctl_buf,
	.compat_ioctl = compat_ptr_ioctl,
	.show_fdinfo = tensor_fdinfo_buf,
	.release = buf_release,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "tensor",
	.mode = 0660,
	.fops = &device_fops,
};

static int __init tensor_init(void)
{
	int err = tensor_alloc_init();

	if (err)
		return err;
	tensor_file_init(&buf_fops);
	err = tensor_buffer_init();
	if (err)
		goto exit_alloc;
	err = tensor_shrinker_init();
	if (err)
		goto exit_buffer;
	err = tensor_netlink_init();
	if (err)
		goto exit_shrinker;
	err = misc_register(&device);
	if (err)
		goto exit_netlink;
	return 0;

exit_netlink:
	tensor_netlink_exit();
exit_shrinker:
	tensor_shrinker_exit();
exit_buffer:
	tensor_buffer_exit();
exit_alloc:
	tensor_alloc_exit();
	return err;
}

static void __exit tensor_exit(void)
{
	misc_deregister(&device);
	tensor_netlink_exit();
	tensor_shrinker_exit();
	/* waits for inodes that RCU is freeing */
	tensor_buffer_exit();
	tensor_alloc_exit();
}

module_init(tensor_init);
module_exit(tensor_exit);

MODULE_DESCRIPTION("Tensor storage as a kernel object");
MODULE_LICENSE("GPL");
