// SPDX-License-Identifier: GPL-2.0-only
/*
 * EXPORT and IMPORT: from a handle to an fd and back.
 *
 * Each export is an open file of its own, so it has its own rights, and the number of exports
 * bounds how many other processes can hold the buffer. An import is a handle like that of the
 * maker, but never with more rights or a larger range than the fd had.
 */
#include <linux/err.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/tensor_netlink.h>

#include "../buffer/file.h"
#include "../buffer/state.h"
#include "../client/client.h"
#include "../import/dmabuf.h"
#include "../import/memfd.h"
#include "../map/dmabuf.h"
#include "../netlink/notify.h"
#include "call.h"
#include "share.h"

/* Narrow the range of the hold as the caller requested. */
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
	/* the exporter of an imported dma-buf decides how it is mapped, so it is exported whole */
	if (hold->buf->backing->kind == TENSOR_KIND_DMABUF && count != hold->count)
		return -EOPNOTSUPP;
	hold->first += first;
	hold->count = count;
	return 0;
}

static int export_rights(const struct tensor_export *arg, struct tensor_hold *hold)
{
	u32 needs = TENSOR_RIGHT_EXPORT;

	if (arg->flags & TENSOR_EXPORT_DMABUF)
		needs |= TENSOR_RIGHT_ATTACH;
	if (!tensor_hold_may(hold, arg->rights | needs))
		return -EACCES;
	/* an fd that can never write must not have the right to */
	if (arg->rights & TENSOR_RIGHT_WRITE && tensor_buf_seals(hold->buf) & TENSOR_SEAL_WRITE)
		return -EPERM;
	hold->rights = arg->rights;
	return 0;
}

static struct file *export_buf(const struct tensor_hold *hold)
{
	struct file *file = tensor_file_open(hold);
	int err;

	if (IS_ERR(file))
		return file;
	err = tensor_file_list(file);
	if (!err)
		return file;
	fput(file);
	return ERR_PTR(err);
}

static struct file *export_file(const struct tensor_export *arg, struct tensor_hold *hold)
{
	int err = export_range(arg, hold) ?: export_rights(arg, hold);

	if (err)
		return ERR_PTR(err);
	if (!(arg->flags & TENSOR_EXPORT_DMABUF))
		return export_buf(hold);
	if (hold->buf->backing->kind == TENSOR_KIND_DMABUF)
		return tensor_imported_dmabuf(hold);
	return tensor_dmabuf_file(hold);
}

/*
 * Count the file as a holder, whose end is reported. While the lock is held the buffer does not
 * become purgeable.
 */
static int export_count(const struct tensor_export *arg, const struct tensor_hold *hold,
			struct file *file)
{
	struct tensor_buf *buf = hold->buf;
	int err;

	mutex_lock(&buf->lock);
	err = tensor_buf_state(buf) & TENSOR_STATE_PURGEABLE ? -EBUSY : tensor_buf_usable(buf);
	if (!err && arg->flags & TENSOR_EXPORT_DMABUF)
		tensor_dmabuf_count(file->private_data);
	else if (!err)
		tensor_file_count(file, &buf->files, 0);
	mutex_unlock(&buf->lock);
	return err;
}

static int export_install(struct tensor_call *call, const struct tensor_hold *hold,
			  struct file *file)
{
	struct tensor_export *arg = &call->arg.export;
	s32 was = arg->fd;
	int fd, err;

	fd = get_unused_fd_flags(arg->flags & TENSOR_EXPORT_INHERIT ? 0 : O_CLOEXEC);
	if (fd < 0)
		return fd;
	arg->fd = fd;
	err = tensor_call_reply(call);
	if (err)
		goto put_fd;
	err = export_count(arg, hold, file);
	if (err) {
		/* the failed call must not return an fd number that the caller would close */
		arg->fd = was;
		tensor_call_reply(call);
		goto put_fd;
	}
	tensor_notify_export(call->client->id, hold,
			     arg->flags & TENSOR_EXPORT_DMABUF ? TENSOR_EXPORT_KIND_DMABUF :
								 TENSOR_EXPORT_KIND_FD);
	fd_install(fd, file);
	return 0;

put_fd:
	put_unused_fd(fd);
	return err;
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
	bool unsupported = arg->flags & ~TENSOR_EXPORT_FLAGS || arg->rights & ~TENSOR_RIGHTS_ALL;
	struct tensor_hold hold;
	struct file *file;
	int err;

	err = tensor_call_begin(call, unsupported, !arg->rights || arg->__reserved, arg->handle,
				&hold);
	if (err)
		return err;
	file = export_file(arg, &hold);
	if (IS_ERR(file)) {
		err = PTR_ERR(file);
		goto put_buf;
	}
	err = export_install(call, &hold, file);
	if (err)
		fput(file);
put_buf:
	tensor_buf_put(hold.buf);
	return err;
}

static int import_own(const struct tensor_hold *hold)
{
	tensor_buf_get(hold->buf);
	return tensor_buf_usable(hold->buf);
}

/* @hold gets a reference, also on some errors: the caller checks @hold->buf. */
static int import_file(struct tensor_call *call, struct file *file, struct tensor_hold *hold)
{
	struct tensor_client *client = call->client;
	struct dma_buf *dmabuf;

	if (tensor_file_hold(file, hold))
		return import_own(hold);
	dmabuf = tensor_dmabuf_of(file, call->arg.import.fd);
	if (!dmabuf)
		return tensor_import_memfd(client->owner, client->id, file, hold);
	if (tensor_dmabuf_hold(dmabuf, hold))
		return import_own(hold);
	return tensor_import_dmabuf(client->owner, client->id, dmabuf, hold);
}

static int import_reply(struct tensor_call *call, const struct tensor_hold *hold, u32 handle)
{
	struct tensor_import *arg = &call->arg.import;

	arg->handle = handle;
	arg->bytes = (u64)hold->count << PAGE_SHIFT;
	arg->mmap_offset = tensor_handle_mmap_offset(handle);
	arg->rights = hold->rights;
	return tensor_call_reply(call);
}

/*
 * Return the number of an existing handle again. It may be closed meanwhile by another thread of
 * the caller.
 */
static int import_reuse(struct tensor_call *call, const struct tensor_hold *hold, u32 handle)
{
	int err = import_reply(call, hold, handle);

	if (err)
		tensor_handle_close(call->client, handle);
	tensor_buf_put(hold->buf);
	return err;
}

/* Takes over the reference in @hold. */
static int import_handle(struct tensor_call *call, const struct tensor_hold *hold)
{
	u32 same = tensor_handle_reuse(call->client, hold);
	struct tensor_handle *handle;
	int err;

	if (same)
		return import_reuse(call, hold, same);
	handle = tensor_handle_new(call->client, hold);
	if (IS_ERR(handle)) {
		tensor_buf_put(hold->buf);
		return PTR_ERR(handle);
	}
	err = import_reply(call, hold, handle->id);
	if (err) {
		tensor_handle_cancel(call->client, handle);
		return err;
	}
	tensor_notify_import(call->client->id, hold);
	/* after publishing, another thread may close and free the handle */
	tensor_handle_publish(call->client, handle);
	return 0;
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
	struct tensor_hold hold = {};
	struct file *file;
	int err;

	if (arg->flags)
		return -EOPNOTSUPP;
	if (arg->__reserved)
		return -EINVAL;
	file = fget(arg->fd);
	if (!file)
		return -EBADF;
	err = import_file(call, file, &hold);
	if (!err)
		err = import_handle(call, &hold);
	else if (hold.buf)
		tensor_buf_put(hold.buf);
	/* the file counts as a holder until the handle does */
	fput(file);
	return err;
}
