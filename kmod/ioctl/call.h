/* SPDX-License-Identifier: GPL-2.0-only */
/* The arguments and the reply of an ioctl: what the table of ioctl.c and the ioctls share. */
#ifndef TENSOR_CALL_H
#define TENSOR_CALL_H

#include <linux/tensor.h>
#include <linux/types.h>

#include "../buffer/buf.h"
#include "../client/client.h"

/* All flags of EXPORT; QUERY returns them. */
#define TENSOR_EXPORT_FLAGS (TENSOR_EXPORT_INHERIT | TENSOR_EXPORT_RANGE | TENSOR_EXPORT_DMABUF)

/**
 * struct tensor_call - one ioctl
 * @client: the client, or NULL on a buffer fd
 * @file: the file that it was called on
 * @user: address of the caller's struct
 * @user_size: size of the caller's struct
 * @size: size of the module's struct
 * @arg: the copy
 */
struct tensor_call {
	struct tensor_client *client;
	struct file *file;
	void __user *user;
	u32 user_size;
	u32 size;
	union {
		struct tensor_query query;
		struct tensor_alloc alloc;
		struct tensor_info info;
		struct tensor_meta meta;
		struct tensor_export export;
		struct tensor_import import;
		struct tensor_close close;
		struct tensor_seal seal;
		struct tensor_revoke revoke;
		struct tensor_advise advise;
		struct tensor_sync sync;
		struct tensor_pin pin;
	} arg;
};

int tensor_call_hold(const struct tensor_call *call, u32 handle, struct tensor_hold *hold);
int tensor_call_begin(const struct tensor_call *call, bool unsupported, bool invalid, u32 handle,
		      struct tensor_hold *hold);
int tensor_call_reply(const struct tensor_call *call);
int tensor_call_reply_handle(const struct tensor_call *call, struct tensor_handle *handle);

/* Id of the client, which gets no event for what this call does; 0 on a buffer fd. */
static inline u64 tensor_call_client(const struct tensor_call *call)
{
	return call->client ? call->client->id : 0;
}

#endif /* TENSOR_CALL_H */
