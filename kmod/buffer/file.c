// SPDX-License-Identifier: GPL-2.0-only
/*
 * Open files on buffers: made by EXPORT, and behind mappings.
 *
 * A file is allocated before the buffer's lock is taken and counted under the lock.
 */
#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/slab.h>
#include <linux/tensor_netlink.h>

#include "event.h"
#include "file.h"
#include "fs.h"
#include "trace.h"

static const struct file_operations *file_fops;

/**
 * tensor_file_init() - set the operations of buffer files
 * @fops: the operations; their release method calls tensor_file_release()
 */
void __init tensor_file_init(const struct file_operations *fops)
{
	file_fops = fops;
}

/**
 * tensor_file_open() - open a file on a buffer
 * @hold: the range and rights of the file, which takes a reference of its own
 *
 * Return: the file or an ERR_PTR().
 */
struct file *tensor_file_open(const struct tensor_hold *hold)
{
	struct tensor_file *open = kzalloc(sizeof(*open), TENSOR_GFP);
	struct file *file;
	int err;

	if (!open)
		return ERR_PTR(-ENOMEM);
	open->hold = *hold;
	err = tensor_fs_get();
	if (err)
		goto free_open;
	file = tensor_fs_open(hold->buf, tensor_hold_may(hold, TENSOR_RIGHT_WRITE), file_fops);
	if (IS_ERR(file)) {
		err = PTR_ERR(file);
		goto put_fs;
	}
	file->private_data = open;
	trace_tensor_file_open(hold);
	return file;

put_fs:
	tensor_fs_put();
free_open:
	kfree(open);
	return ERR_PTR(err);
}

/**
 * tensor_file_list() - add a file to the list of exports
 * @file: from tensor_file_open()
 *
 * Return: 0 or -ENOMEM.
 */
int tensor_file_list(struct file *file)
{
	struct tensor_file *open = file->private_data;

	return tensor_registry_add_export(&open->exported, &open->hold, TENSOR_EXPORT_KIND_FD);
}

/**
 * tensor_file_count() - count a file as a holder; its release posts TENSOR_EVENT_GONE
 * @file: from tensor_file_open()
 * @count: the counter in its buffer
 * @client: id of the client that gets no event; 0: none
 */
void tensor_file_count(struct file *file, atomic_t *count, u64 client)
{
	struct tensor_file *open = file->private_data;

	open->count = count;
	open->client = client;
	atomic_inc(count);
}

/**
 * tensor_file_uncount() - undo tensor_file_count(), if it was called, without an event
 * @file: from tensor_file_open()
 */
void tensor_file_uncount(struct file *file)
{
	struct tensor_file *open = file->private_data;

	if (open->count)
		atomic_dec(open->count);
	open->count = NULL;
}

/**
 * tensor_file_release() - release a file
 * @file: the file; it keeps the module loaded until the core has released it
 */
void tensor_file_release(struct file *file)
{
	struct tensor_file *open = file->private_data;

	trace_tensor_file_release(&open->hold);
	tensor_registry_del_export(&open->exported);
	if (open->count) {
		atomic_dec(open->count);
		tensor_event_post(open->hold.buf, TENSOR_EVENT_GONE, open->client);
	}
	kfree(open);
	tensor_fs_put();
}

/**
 * tensor_file_hold() - find the buffer of a file
 * @file: any file
 * @hold: filled in if the file belongs to a buffer
 *
 * Takes no reference: @hold lives as long as the file does.
 *
 * Return: whether it is a buffer file.
 */
bool tensor_file_hold(struct file *file, struct tensor_hold *hold)
{
	const struct tensor_file *open = file->private_data;

	if (file->f_op != file_fops)
		return false;
	*hold = open->hold;
	return true;
}
