// SPDX-License-Identifier: GPL-2.0-only
/*
 * The arguments and the reply of an ioctl.
 *
 * An ioctl works on a copy of its struct. It writes the reply with tensor_call_reply() after
 * everything that can fail, and publishes new objects only after that: if the reply cannot be
 * written nothing has changed.
 */
#include <linux/minmax.h>
#include <linux/uaccess.h>

#include "../buffer/file.h"
#include "call.h"

/**
 * tensor_call_hold() - find the buffer of a call
 * @call: the call
 * @handle: the handle that the caller passed; 0 on a buffer fd
 * @hold: filled in, with a reference for the caller
 *
 * Return: 0, -ENOENT, or -EINVAL for a handle given to a buffer fd.
 */
int tensor_call_hold(const struct tensor_call *call, u32 handle, struct tensor_hold *hold)
{
	if (call->client)
		return tensor_handle_get(call->client, handle, hold);
	if (handle || !tensor_file_hold(call->file, hold))
		return -EINVAL;
	tensor_buf_get(hold->buf);
	return 0;
}

/**
 * tensor_call_begin() - check the arguments of a call, then find its buffer
 * @call: the call
 * @unsupported: an argument has a bit or a value that this module does not know
 * @invalid: the arguments contradict each other, or a reserved field is not 0
 * @handle: the handle that the caller passed; 0 on a buffer fd
 * @hold: filled in, with a reference for the caller
 *
 * Return: 0, -EOPNOTSUPP, -EINVAL, or what tensor_call_hold() returns.
 */
int tensor_call_begin(const struct tensor_call *call, bool unsupported, bool invalid, u32 handle,
		      struct tensor_hold *hold)
{
	if (unsupported)
		return -EOPNOTSUPP;
	return invalid ? -EINVAL : tensor_call_hold(call, handle, hold);
}

/**
 * tensor_call_reply() - write the copy back to the caller
 * @call: the call
 *
 * Bytes of the caller's struct beyond the module's version were checked to be zero and are not
 * written.
 *
 * Return: 0 or -EFAULT.
 */
int tensor_call_reply(const struct tensor_call *call)
{
	u32 size = min(call->user_size, call->size);

	return copy_to_user(call->user, &call->arg, size) ? -EFAULT : 0;
}

/**
 * tensor_call_reply_handle() - reply to a call that made a handle, and publish the handle
 * @call: the call
 * @handle: from tensor_handle_new(); passes to this function
 *
 * Return: 0, or -EFAULT and the handle is freed with its reference.
 */
int tensor_call_reply_handle(const struct tensor_call *call, struct tensor_handle *handle)
{
	int err = tensor_call_reply(call);

	if (err)
		tensor_handle_cancel(call->client, handle);
	else
		tensor_handle_publish(call->client, handle);
	return err;
}
