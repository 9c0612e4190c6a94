// SPDX-License-Identifier: GPL-2.0-only
/*
 * From a handle to an fd and back.
 *
 * Each export is an open file of its own, so it carries its own access mode, and the number of
 * them says how many strangers may still hold the buffer. An import is a handle like that of the
 * maker, only never with more rights than the fd had.
 */
#include <linux/err.h>
#include <linux/fcntl.h>
#include <linux/file.h>

#include "core.h"

static struct file *export_file(const struct tensor_call *call, const struct tensor_export *arg)
{
	bool rdonly = arg->flags & TENSOR_EXPORT_RDONLY;
	struct tensor_hold hold;
	struct file *file;
	int err;

	err = tensor_call_hold(call, arg->handle, &hold);
	if (err)
		return ERR_PTR(err);
	if (hold.rdonly && !rdonly)
		file = ERR_PTR(-EACCES);
	else
		file = tensor_fs_file(hold.buf, rdonly, true);
	tensor_buf_put(hold.buf);
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
	struct file *file;
	int fd, err;

	if (arg->flags & ~(TENSOR_EXPORT_CLOEXEC | TENSOR_EXPORT_RDONLY))
		return -EOPNOTSUPP;
	file = export_file(call, arg);
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
	fd_install(fd, file);
	return 0;

put_fd:
	put_unused_fd(fd);
put_file:
	fput(file);
	return err;
}

static int import_hold(int fd, struct tensor_hold *hold)
{
	struct file *file = fget(fd);
	int err = 0;

	if (!file)
		return -EBADF;
	if (tensor_fs_hold(file, hold))
		tensor_buf_get(hold->buf);
	else
		err = -EOPNOTSUPP;
	fput(file);
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
	struct tensor_import *arg = &call->arg.import;
	struct tensor_handle *handle;
	struct tensor_hold hold;
	int err;

	if (arg->flags)
		return -EOPNOTSUPP;
	err = import_hold(arg->fd, &hold);
	if (err)
		return err;
	handle = tensor_handle_new(call->client, &hold);
	if (IS_ERR(handle)) {
		tensor_buf_put(hold.buf);
		return PTR_ERR(handle);
	}
	arg->handle = handle->id;
	arg->bytes = hold.buf->bytes;
	arg->cookie = tensor_handle_cookie(handle);
	return tensor_call_give(call, handle);
}
