// SPDX-License-Identifier: GPL-2.0-only
/*
 * PIN: import of memory that the calling process has mapped.
 *
 * It is meant for devices: EXPORT makes dma-bufs of it as of memory of ALLOC. It cannot be mapped
 * through the module: the process has already mapped it, and its pages may belong to a file whose
 * rules for writes a mapping of this module could not follow.
 */
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "../buffer/buffer.h"
#include "../client/client.h"
#include "../ioctl/call.h"
#include "../netlink/notify.h"
#include "userptr.h"

/**
 * struct tensor_user_memory - private data of a pinned buffer
 * @pinned: the pages
 * @write: devices may write to them
 */
struct tensor_user_memory {
	struct tensor_pinned pinned;
	bool write;
};

static int user_pin(struct tensor_buf *buf, struct tensor_span *span)
{
	const struct tensor_user_memory *user = buf->source;

	memcpy(span->pages, user->pinned.pages + span->first, span->count * sizeof(*span->pages));
	return 0;
}

static void user_free(struct tensor_user_memory *user)
{
	tensor_unpin(&user->pinned, user->write);
	kfree(user);
}

static void user_release(struct tensor_buf *buf)
{
	user_free(buf->source);
}

static const struct tensor_backing user_backing = {
	.kind = TENSOR_KIND_PIN,
	.pin = user_pin,
	.release = user_release,
};

static int user_pages(struct tensor_user_memory *user, const struct tensor_pin *arg,
		      struct tensor_owner *hint)
{
	struct tensor_owner *owner = tensor_owner_current(hint);
	int err;

	if (!owner)
		return -ENOMEM;
	user->write = !(arg->flags & TENSOR_PIN_RDONLY);
	err = tensor_pin_user(&user->pinned, owner->user, arg->addr, arg->bytes, user->write);
	tensor_owner_put(owner);
	return err;
}

static struct tensor_buf *user_buf(const struct tensor_pin *arg, struct tensor_client *client)
{
	struct tensor_user_memory *user = kzalloc(sizeof(*user), TENSOR_GFP);
	struct tensor_buf *buf;
	int err;

	if (!user)
		return ERR_PTR(-ENOMEM);
	err = user_pages(user, arg, client->owner);
	if (err == -EDQUOT)
		tensor_notify_limit(client->id, arg->bytes);
	if (err) {
		kfree(user);
		return ERR_PTR(err);
	}
	buf = tensor_buf_adopt(&user_backing, user, arg->bytes, client->owner, client->id);
	if (IS_ERR(buf))
		user_free(user);
	return buf;
}

/**
 * tensor_pin() - PIN
 * @call: the call
 *
 * Return: 0 or -errno.
 */
int tensor_pin(struct tensor_call *call)
{
	struct tensor_pin *arg = &call->arg.pin;
	struct tensor_handle *handle;
	struct tensor_hold hold;
	struct tensor_buf *buf;

	if (arg->flags & ~TENSOR_PIN_RDONLY)
		return -EOPNOTSUPP;
	if (arg->__reserved || arg->bytes > TENSOR_MAX_BYTES)
		return -EINVAL;
	buf = user_buf(arg, call->client);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	hold = tensor_hold_all(buf, arg->flags & TENSOR_PIN_RDONLY ? TENSOR_RIGHTS_RO :
								     TENSOR_RIGHTS_RW);
	handle = tensor_handle_new(call->client, &hold);
	if (IS_ERR(handle)) {
		tensor_buf_put(buf);
		return PTR_ERR(handle);
	}
	arg->handle = handle->id;
	return tensor_call_reply_handle(call, handle);
}
