// SPDX-License-Identifier: GPL-2.0-only
/*
 * From a handle to an fd and back.
 *
 * Each export is an open file of its own, so it carries its own access mode, and the number of
 * them says how many strangers may still hold the buffer. An import is a handle like that of the
 * maker, only never with more rights, and to no more of the buffer, than the fd had.
 */
#include <linux/err.h>
#include <linux/fcntl.h>
#include <linux/file.h>

#include "core.h"
#include "netlink.h"

#define EXPORT_FLAGS	(TENSOR_EXPORT_CLOEXEC | TENSOR_EXPORT_RDONLY | TENSOR_EXPORT_RANGE)

/* Narrow what the handle reaches to what was asked for. */
static int export_range(const struct tensor_export *arg, struct tensor_hold *hold)
{
	u64 first = arg->offset >> PAGE_SHIFT;
	u64 count = arg->bytes >> PAGE_SHIFT;

	if (!(arg->flags & TENSOR_EXPORT_RANGE))
		return arg->offset || arg->bytes ? -EINVAL : 0;
	if (offset_in_page(arg->offset) || offset_in_page(arg->bytes))
		return -EINVAL;
	if (!count || first >= hold->count || count > hold->count - first)
		return -EINVAL;
	hold->first += first;
	hold->count = count;
	return 0;
}

static int export_rights(const struct tensor_export *arg, struct tensor_hold *hold)
{
	bool rdonly = arg->flags & TENSOR_EXPORT_RDONLY;

	if (hold->rdonly && !rdonly)
		return -EACCES;
	/* what could never write need not say that it could */
	if (!rdonly && tensor_buf_seals(hold->buf) & TENSOR_SEAL_WRITE)
		return -EACCES;
	hold->rdonly = rdonly;
	return 0;
}

/* With the buffer's lock: it does not become purgeable before the file is counted. */
static struct file *export_open(const struct tensor_export *arg, const struct tensor_hold *hold)
{
	int err = tensor_buf_usable(hold->buf);

	if (err)
		return ERR_PTR(err);
	if (tensor_buf_state(hold->buf) & TENSOR_STATE_PURGEABLE)
		return ERR_PTR(-EBUSY);
	return tensor_fs_file(hold, &hold->buf->files);
}

static struct file *export_file(const struct tensor_export *arg, struct tensor_hold *hold)
{
	struct file *file;
	int err;

	err = export_range(arg, hold);
	if (!err)
		err = export_rights(arg, hold);
	if (err)
		return ERR_PTR(err);
	mutex_lock(&hold->buf->lock);
	file = export_open(arg, hold);
	mutex_unlock(&hold->buf->lock);
	return file;
}

/**
 * tensor_export() - EXPORT
 * @call: the call
 *
 * Return: 0 or -errno.
 */
int tensor_export(struct tensor_call *call)
{
	struct tensor_export *arg = &call->arg.export;
	struct tensor_hold hold;
	struct file *file;
	int fd, err;

	if (arg->flags & ~EXPORT_FLAGS)
		return -EOPNOTSUPP;
	err = tensor_call_hold(call, arg->handle, &hold);
	if (err)
		return err;
	file = export_file(arg, &hold);
	tensor_buf_put(hold.buf);
	if (IS_ERR(file))
		return PTR_ERR(file);
	fd = get_unused_fd_flags(arg->flags & TENSOR_EXPORT_CLOEXEC ? O_CLOEXEC : 0);
	if (fd < 0) {
		err = fd;
		goto put_file;
	}
	arg->fd = fd;
	err = tensor_call_reply(call);
	if (err)
		goto put_fd;
	tensor_fs_hold(file, &hold);
	tensor_notify_export(call->client, &hold);
	fd_install(fd, file);
	return 0;

put_fd:
	put_unused_fd(fd);
put_file:
	fput(file);
	return err;
}

/**
 * tensor_export_flags() - what EXPORT knows
 *
 * Return: TENSOR_EXPORT_*.
 */
u64 tensor_export_flags(void)
{
	return EXPORT_FLAGS;
}

/* With a reference in @hold for the caller. */
static int import_hold(struct file *file, struct tensor_hold *hold)
{
	if (!tensor_fs_hold(file, hold))
		return -EOPNOTSUPP;
	tensor_buf_get(hold->buf);
	return tensor_buf_usable(hold->buf);
}

/* Once published the handle is no longer ours to look at. */
static int import_give(struct tensor_call *call, struct tensor_handle *handle)
{
	int err = tensor_call_reply(call);

	if (err) {
		tensor_handle_cancel(call->client, handle);
		return err;
	}
	tensor_notify_import(call->client, &handle->hold);
	tensor_handle_publish(call->client, handle);
	return 0;
}

static int import_file(struct tensor_call *call, struct file *file)
{
	struct tensor_import *arg = &call->arg.import;
	struct tensor_handle *handle;
	struct tensor_hold hold = {};
	int err;

	err = import_hold(file, &hold);
	if (err)
		goto put_buf;
	handle = tensor_handle_new(call->client, &hold);
	if (IS_ERR(handle)) {
		err = PTR_ERR(handle);
		goto put_buf;
	}
	arg->handle = handle->id;
	arg->bytes = (u64)hold.count << PAGE_SHIFT;
	arg->cookie = tensor_handle_cookie(handle);
	return import_give(call, handle);

put_buf:
	if (hold.buf)
		tensor_buf_put(hold.buf);
	return err;
}

/**
 * tensor_import() - IMPORT
 * @call: the call
 *
 * Return: 0 or -errno.
 */
int tensor_import(struct tensor_call *call)
{
	struct file *file;
	int err;

	if (call->arg.import.flags)
		return -EOPNOTSUPP;
	file = fget(call->arg.import.fd);
	if (!file)
		return -EBADF;
	/* the file counts as a holder until the handle does */
	err = import_file(call, file);
	fput(file);
	return err;
}
