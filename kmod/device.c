// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/tensor and the module around it.
 */
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/rcupdate.h>

#include "core.h"
#include "netlink.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

#ifndef CONFIG_64BIT
#error "cookies need 64-bit file offsets in mmap()"
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

static const struct file_operations device_fops = {
	.owner = THIS_MODULE,
	.open = device_open,
	.release = device_release,
	.read = tensor_event_read,
	.poll = tensor_event_poll,
	.unlocked_ioctl = tensor_ioctl_device,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = tensor_map_cookie,
	.get_unmapped_area = tensor_map_area,
	.show_fdinfo = tensor_fdinfo_client,
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
	err = tensor_purge_init();
	if (err)
		goto exit_alloc;
	err = tensor_netlink_init();
	if (err)
		goto exit_purge;
	err = misc_register(&device);
	if (err)
		goto exit_netlink;
	return 0;

exit_netlink:
	tensor_netlink_exit();
exit_purge:
	tensor_purge_exit();
exit_alloc:
	tensor_alloc_exit();
	return err;
}

static void __exit tensor_exit(void)
{
	misc_deregister(&device);
	tensor_netlink_exit();
	tensor_purge_exit();
	tensor_alloc_exit();
	/* buffers that went a moment ago may still be on their way */
	rcu_barrier();
}

module_init(tensor_init);
module_exit(tensor_exit);

MODULE_DESCRIPTION("Tensor storage as a kernel object");
MODULE_LICENSE("GPL");
