// SPDX-License-Identifier: GPL-2.0-only
/*
 * Open files on buffers: those that EXPORT makes, and those behind mappings.
 *
 * A file is allocated before the buffer's lock is taken, and counted under it.
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
 * tensor_file_init() - before the first file
 * @fops: operations of all files; their release calls tensor_file_release()
 */
void __init tensor_file_init(const struct file_operations *fops)
{
	file_fops = fops;
}

/**
 * tensor_file_open() - open a file on a buffer
 * @hold: what it shall reach and permit; the file gets a reference of its own
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
 * tensor_file_list() - list a file as one that EXPORT made
 * @file: what tensor_file_open() gave
 *
 * Return: 0 or -ENOMEM.
 */
int tensor_file_list(struct file *file)
{
	struct tensor_file *open = file->private_data;

	return tensor_registry_add_export(&open->exported, &open->hold, TENSOR_EXPORT_KIND_FD);
}

/**
 * tensor_file_count() - count a file as a holder; the others are told when it is released
 * @file: what tensor_file_open() gave
 * @count: counter of its buffer
 * @client: id of the client that is not told; 0: all are
 */
void tensor_file_count(struct file *file, atomic_t *count, u64 client)
{
	struct tensor_file *open = file->private_data;

	open->count = count;
	open->client = client;
	atomic_inc(count);
}

/**
 * tensor_file_uncount() - undo tensor_file_count(), if that was called: nobody has seen the holder
 * @file: what tensor_file_open() gave
 */
void tensor_file_uncount(struct file *file)
{
	struct tensor_file *open = file->private_data;

	if (open->count)
		atomic_dec(open->count);
	open->count = NULL;
}

/**
 * tensor_file_release() - a file goes
 * @file: the file; it keeps the module until the core is done with it
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
 * tensor_file_hold() - see what a file is
 * @file: any file
 * @hold: its buffer and what it permits, if it is one of a buffer
 *
 * Takes no reference: @hold lives as long as the file does.
 *
 * Return: whether it is a buffer's.
 */
bool tensor_file_hold(struct file *file, struct tensor_hold *hold)
{
	const struct tensor_file *open = file->private_data;

	if (file->f_op != file_fops)
		return false;
	*hold = open->hold;
	return true;
}
