// SPDX-License-Identifier: GPL-2.0-only
/*
 * One ioctl on its way.
 *
 * An ioctl works on a copy. It writes its reply with tensor_call_reply() when all that can fail has
 * been done, and only after that makes visible what it made: a caller whose reply could not be
 * written has changed nothing.
 */
#include <linux/minmax.h>
#include <linux/uaccess.h>

#include "../buffer/file.h"
#include "call.h"

/**
 * tensor_call_hold() - find the buffer that a call is about
 * @call: the call
 * @handle: the handle it gave; 0 on a buffer fd
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
 * @handle: the handle that the caller gave; 0 on a buffer fd
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
 * What the caller has beyond our struct was checked to be zero, and stays so.
 *
 * Return: 0 or -EFAULT.
 */
int tensor_call_reply(const struct tensor_call *call)
{
	u32 size = min(call->user_size, call->size);

	return copy_to_user(call->user, &call->arg, size) ? -EFAULT : 0;
}

/**
 * tensor_call_give() - reply to a call that made a handle, and let the handle be found
 * @call: the call
 * @handle: what tensor_handle_new() gave; not the caller's any more
 *
 * Return: 0, or -EFAULT and the handle is gone with its reference.
 */
int tensor_call_give(const struct tensor_call *call, struct tensor_handle *handle)
{
	int err = tensor_call_reply(call);

	if (err)
		tensor_handle_cancel(call->client, handle);
	else
		tensor_handle_publish(call->client, handle);
	return err;
}
