// SPDX-License-Identifier: GPL-2.0-only
/*
 * From a handle to an fd and back.
 *
 * Each export is an open file of its own, so it carries its own access mode, and the number of
 * them says how many strangers may still hold the buffer. An import is a handle like that of the
 * maker, only never with more rights, and to no more of the buffer, than the fd had.
 */
#include <linux/dma-buf.h>
#include <linux/err.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/tensor_netlink.h>

#include "call.h"
#include "core.h"
#include "netlink.h"

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
	/* where its exporter maps it, it alone decides */
	if (hold->buf->backing->kind == TENSOR_KIND_DMABUF && count != hold->count)
		return -EOPNOTSUPP;
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

/* With the lock held until the file is counted it does not become purgeable. */
static int export_ready(struct tensor_buf *buf)
{
	lockdep_assert_held(&buf->lock);
	if (tensor_buf_state(buf) & TENSOR_STATE_PURGEABLE)
		return -EBUSY;
	return tensor_buf_usable(buf);
}

static struct file *export_buf(const struct tensor_hold *hold)
{
	struct file *file;
	int err;

	mutex_lock(&hold->buf->lock);
	err = export_ready(hold->buf);
	file = err ? ERR_PTR(err) : tensor_fs_file(hold, &hold->buf->files);
	mutex_unlock(&hold->buf->lock);
	return file;
}

static struct file *export_dmabuf(const struct tensor_hold *hold)
{
	struct tensor_buf *buf = hold->buf;
	struct file *file;
	int err;

	if (buf->backing->kind == TENSOR_KIND_DMABUF)
		return tensor_foreign_dmabuf(hold);
	mutex_lock(&buf->lock);
	err = export_ready(buf);
	if (!err)
		atomic_inc(&buf->dmabufs);
	mutex_unlock(&buf->lock);
	if (err)
		return ERR_PTR(err);
	file = tensor_dmabuf_file(hold);
	if (IS_ERR(file))
		atomic_dec(&buf->dmabufs);
	return file;
}

static struct file *export_file(const struct tensor_export *arg, struct tensor_hold *hold)
{
	int err;

	err = export_range(arg, hold);
	if (!err)
		err = export_rights(arg, hold);
	if (err)
		return ERR_PTR(err);
	return arg->flags & TENSOR_EXPORT_DMABUF ? export_dmabuf(hold) : export_buf(hold);
}

static int export_give(struct tensor_call *call, const struct tensor_hold *hold, struct file *file)
{
	struct tensor_export *arg = &call->arg.export;
	int fd, err;

	fd = get_unused_fd_flags(arg->flags & TENSOR_EXPORT_CLOEXEC ? O_CLOEXEC : 0);
	if (fd < 0)
		return fd;
	arg->fd = fd;
	err = tensor_call_reply(call);
	if (err) {
		put_unused_fd(fd);
		return err;
	}
	tensor_notify_export(call->client, hold,
			     arg->flags & TENSOR_EXPORT_DMABUF ? TENSOR_EXPORT_KIND_DMABUF :
								 TENSOR_EXPORT_KIND_FD);
	fd_install(fd, file);
	return 0;
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
	int err;

	if (arg->flags & ~TENSOR_EXPORT_FLAGS)
		return -EOPNOTSUPP;
	err = tensor_call_hold(call, arg->handle, &hold);
	if (err)
		return err;
	file = export_file(arg, &hold);
	if (IS_ERR(file)) {
		err = PTR_ERR(file);
		goto put_buf;
	}
	err = export_give(call, &hold, file);
	if (err)
		fput(file);
put_buf:
	tensor_buf_put(hold.buf);
	return err;
}

static int import_dmabuf(struct tensor_client *client, struct dma_buf *dmabuf,
			 struct tensor_hold *hold)
{
	if (!tensor_dmabuf_hold(dmabuf, hold))
		return tensor_foreign_hold(client, dmabuf, hold);
	tensor_buf_get(hold->buf);
	return tensor_buf_usable(hold->buf);
}

/*
 * With a reference in @hold for the caller. What a dma-buf is, only the number of its fd tells; if
 * that means another file by now, the one it means is taken.
 */
static int import_hold(struct tensor_call *call, struct file *file, struct tensor_hold *hold)
{
	struct dma_buf *dmabuf;
	int err;

	if (tensor_fs_hold(file, hold)) {
		tensor_buf_get(hold->buf);
		return tensor_buf_usable(hold->buf);
	}
	dmabuf = dma_buf_get(call->arg.import.fd);
	if (IS_ERR(dmabuf))
		return tensor_memfd_hold(call->client, file, hold);
	err = import_dmabuf(call->client, dmabuf, hold);
	dma_buf_put(dmabuf);
	return err;
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

	err = import_hold(call, file, &hold);
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
