// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ioctls: one table, one place where sizes are negotiated, and those that are about a single
 * buffer.
 *
 * An ioctl works on a copy. It says its reply with tensor_call_reply() when all that can fail has
 * been done, and only after that makes visible what it made: a caller whose reply could not be
 * written has changed nothing.
 */
#include <linux/build_bug.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/math.h>
#include <linux/nodemask.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>

#include "call.h"
#include "core.h"

#define ALLOC_FLAGS	(TENSOR_ALLOC_ORDERS | TENSOR_ALLOC_NODE_ONLY | TENSOR_ALLOC_INTERLEAVE | \
			 TENSOR_ALLOC_CONTIG | TENSOR_ALLOC_DMA32)

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
	if (handle || !tensor_fs_hold(call->file, hold))
		return -EINVAL;
	tensor_buf_get(hold->buf);
	return 0;
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

static int alloc_node(const struct tensor_alloc *arg, struct tensor_want *want)
{
	want->node = arg->node;
	want->node_only = arg->flags & TENSOR_ALLOC_NODE_ONLY;
	if (arg->node == TENSOR_NODE_ANY)
		return want->node_only ? -EINVAL : 0;
	if (arg->node < 0 || arg->node >= MAX_NUMNODES)
		return -EINVAL;
	return node_state(array_index_nospec(arg->node, MAX_NUMNODES), N_MEMORY) ? 0 : -EINVAL;
}

static int alloc_place(const struct tensor_alloc *arg, struct tensor_want *want)
{
	want->interleave = arg->flags & TENSOR_ALLOC_INTERLEAVE;
	want->contig = arg->flags & TENSOR_ALLOC_CONTIG;
	want->dma32 = arg->flags & TENSOR_ALLOC_DMA32;
	if (want->interleave && (want->contig || arg->node != TENSOR_NODE_ANY))
		return -EINVAL;
	return want->contig && (arg->flags & TENSOR_ALLOC_ORDERS) ? -EINVAL : 0;
}

static int alloc_orders(const struct tensor_alloc *arg, struct tensor_want *want)
{
	bool given = arg->flags & TENSOR_ALLOC_ORDERS;

	if (!given && (arg->min_order || arg->max_order))
		return -EINVAL;
	want->min_order = arg->min_order;
	want->max_order = given ? arg->max_order : TENSOR_TOP_ORDER;
	if (want->min_order > want->max_order || want->max_order > TENSOR_TOP_ORDER)
		return -EINVAL;
	return 0;
}

static int alloc_want(const struct tensor_alloc *arg, struct tensor_want *want)
{
	int err;

	if (arg->flags & ~ALLOC_FLAGS)
		return -EOPNOTSUPP;
	if (arg->__reserved || !arg->bytes || arg->bytes > TENSOR_MAX_BYTES)
		return -EINVAL;
	*want = (struct tensor_want){};
	err = alloc_node(arg, want);
	if (err)
		return err;
	err = alloc_place(arg, want);
	if (err)
		return err;
	err = alloc_orders(arg, want);
	if (err)
		return err;
	want->pages = round_up(arg->bytes, PAGE_SIZE << want->min_order) >> PAGE_SHIFT;
	return 0;
}

static int call_alloc(struct tensor_call *call)
{
	struct tensor_alloc *arg = &call->arg.alloc;
	struct tensor_handle *handle;
	struct tensor_hold hold;
	struct tensor_want want;
	struct tensor_buf *buf;
	int err;

	err = alloc_want(arg, &want);
	if (err)
		return err;
	buf = tensor_buf_alloc(&want, call->client);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	hold = tensor_hold_all(buf, false);
	handle = tensor_handle_new(call->client, &hold);
	if (IS_ERR(handle)) {
		tensor_buf_put(buf);
		return PTR_ERR(handle);
	}
	arg->bytes = buf->bytes;
	arg->handle = handle->id;
	arg->cookie = tensor_handle_cookie(handle);
	return tensor_call_give(call, handle);
}

static int call_info(struct tensor_call *call)
{
	struct tensor_info *info = &call->arg.info;
	struct tensor_hold hold;
	int err;

	if (info->flags)
		return -EOPNOTSUPP;
	if (info->__reserved)
		return -EINVAL;
	err = tensor_call_hold(call, info->handle, &hold);
	if (err)
		return err;
	tensor_buf_info(&hold, info);
	tensor_buf_put(hold.buf);
	return tensor_call_reply(call);
}

static int call_meta(struct tensor_call *call)
{
	struct tensor_meta *meta = &call->arg.meta;
	struct tensor_hold hold;
	int err;

	if (meta->flags & ~TENSOR_META_SET)
		return -EOPNOTSUPP;
	if (meta->__reserved)
		return -EINVAL;
	err = tensor_call_hold(call, meta->handle, &hold);
	if (err)
		return err;
	err = tensor_buf_usable(hold.buf);
	if (err)
		goto put_buf;
	if (!(meta->flags & TENSOR_META_SET)) {
		tensor_desc_get_part(&hold, &meta->desc);
		err = tensor_call_reply(call);
	} else {
		err = tensor_hold_full(&hold) ? tensor_desc_set(hold.buf, &meta->desc) : -EACCES;
	}
put_buf:
	tensor_buf_put(hold.buf);
	return err;
}

static int call_close(struct tensor_call *call)
{
	const struct tensor_close *arg = &call->arg.close;

	if (arg->flags)
		return -EOPNOTSUPP;
	if (arg->__reserved)
		return -EINVAL;
	return tensor_handle_close(call->client, arg->handle);
}

static int call_query(struct tensor_call *call);

/**
 * struct ioctl_op - an ioctl
 * @run: does it
 * @size: bytes of its struct
 * @least: bytes of the first version of that struct
 * @on_buf: works on a buffer fd too
 * @write: wants the device open for writing
 */
struct ioctl_op {
	int (*run)(struct tensor_call *call);
	u32 size;
	u32 least;
	bool on_buf;
	bool write;
};

/* @last: the last member of the first version, which never changes. */
#define OP(nr, fn, type, last, ...) \
	[(nr) - TENSOR_IOC_QUERY] = { \
		.run = fn, \
		.size = sizeof(type) + \
			BUILD_BUG_ON_ZERO(sizeof(type) > sizeof_field(struct tensor_call, arg)), \
		.least = offsetofend(type, last), \
		__VA_ARGS__ \
	}

static const struct ioctl_op ops[] = {
	OP(TENSOR_IOC_QUERY, call_query, struct tensor_query, nodes),
	OP(TENSOR_IOC_ALLOC, call_alloc, struct tensor_alloc, cookie, .write = true),
	OP(TENSOR_IOC_INFO, call_info, struct tensor_info, chunks, .on_buf = true),
	OP(TENSOR_IOC_META, call_meta, struct tensor_meta, desc, .on_buf = true),
	OP(TENSOR_IOC_EXPORT, tensor_export, struct tensor_export, fd),
	OP(TENSOR_IOC_IMPORT, tensor_import, struct tensor_import, cookie, .write = true),
	OP(TENSOR_IOC_CLOSE, call_close, struct tensor_close, __reserved),
	OP(TENSOR_IOC_SEAL, tensor_seal, struct tensor_seal, seals, .on_buf = true),
	OP(TENSOR_IOC_REVOKE, tensor_revoke, struct tensor_revoke, __reserved),
	OP(TENSOR_IOC_ADVISE, tensor_advise, struct tensor_advise, __reserved),
	OP(TENSOR_IOC_PIN, tensor_pin, struct tensor_pin, __reserved, .write = true),
	OP(TENSOR_IOC_SYNC, tensor_sync, struct tensor_sync, generation, .on_buf = true),
};

static u64 query_features(void)
{
	u64 features = TENSOR_FEATURE_RDONLY | TENSOR_FEATURE_NETLINK | TENSOR_FEATURE_STATUS |
		       TENSOR_FEATURE_EVENTS | TENSOR_FEATURE_DMABUF |
		       TENSOR_FEATURE_MEMFD;

	if (IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE) && TENSOR_TOP_ORDER == TENSOR_PMD_ORDER)
		features |= TENSOR_FEATURE_HUGE;
	if (IS_ENABLED(CONFIG_MEMCG))
		features |= TENSOR_FEATURE_MEMCG;
	if (num_node_state(N_MEMORY) > 1)
		features |= TENSOR_FEATURE_NUMA;
	return features;
}

static int call_query(struct tensor_call *call)
{
	struct tensor_query *query = &call->arg.query;

	if (query->flags)
		return -EOPNOTSUPP;
	query->features = query_features();
	query->ioctls = GENMASK_ULL(ARRAY_SIZE(ops) - 1, 0);
	query->alloc_flags = ALLOC_FLAGS;
	query->export_flags = TENSOR_EXPORT_FLAGS;
	query->max_bytes = TENSOR_MAX_BYTES;
	query->limit_bytes = tensor_limit_bytes();
	query->used_bytes = tensor_limit_used();
	query->chunk_sizes = GENMASK_ULL(PAGE_SHIFT + TENSOR_TOP_ORDER, PAGE_SHIFT);
	query->page_size = PAGE_SIZE;
	query->max_order = TENSOR_TOP_ORDER;
	query->max_dims = TENSOR_UAPI_MAX_DIMS;
	query->dtypes = TENSOR_DT_COUNT;
	query->max_handles = TENSOR_MAX_HANDLES;
	query->nodes = num_node_state(N_MEMORY);
	query->status_offset = TENSOR_STATUS_OFFSET;
	return tensor_call_reply(call);
}

static const struct ioctl_op *ioctl_op(unsigned int cmd)
{
	unsigned int nr = cmd - TENSOR_IOC_QUERY;

	if (nr >= ARRAY_SIZE(ops))
		return NULL;
	return &ops[array_index_nospec(nr, ARRAY_SIZE(ops))];
}

static long ioctl_run(struct tensor_call *call, const struct ioctl_op *op)
{
	int err;

	if (op->write && !(call->file->f_mode & FMODE_WRITE))
		return -EACCES;
	if (get_user(call->user_size, (u32 __user *)call->user))
		return -EFAULT;
	if (call->user_size < op->least)
		return -EINVAL;
	if (call->user_size > PAGE_SIZE)
		return -E2BIG;
	call->size = op->size;
	err = copy_struct_from_user(&call->arg, op->size, call->user, call->user_size);
	if (err)
		return err;
	return op->run(call);
}

/**
 * tensor_ioctl_device() - an ioctl on /dev/tensor
 * @file: an open of it
 * @cmd: TENSOR_IOC_*
 * @arg: address of the struct
 *
 * Return: 0 or -errno.
 */
long tensor_ioctl_device(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct tensor_call call = {
		.client = file->private_data,
		.file = file,
		.user = (void __user *)arg,
	};
	const struct ioctl_op *op = ioctl_op(cmd);

	return op ? ioctl_run(&call, op) : -ENOTTY;
}

/**
 * tensor_ioctl_buf() - an ioctl on a buffer fd
 * @file: the buffer's file
 * @cmd: TENSOR_IOC_*, one of those about a buffer
 * @arg: address of the struct
 *
 * Return: 0 or -errno.
 */
long tensor_ioctl_buf(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct tensor_call call = {
		.file = file,
		.user = (void __user *)arg,
	};
	const struct ioctl_op *op = ioctl_op(cmd);

	return op && op->on_buf ? ioctl_run(&call, op) : -ENOTTY;
}
