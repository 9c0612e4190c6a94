// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ioctls: the table, the negotiation of struct sizes, and ALLOC, INFO, META, CLOSE and QUERY.
 * See call.c for the rules that all of them follow.
 */
#include <linux/build_bug.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/math.h>
#include <linux/nodemask.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>

#include "../buffer/buffer.h"
#include "../buffer/meta.h"
#include "../buffer/state.h"
#include "../import/userptr.h"
#include "advise.h"
#include "call.h"
#include "ioctl.h"
#include "seal.h"
#include "share.h"
#include "sync.h"

#define ALLOC_FLAGS                                                               \
	(TENSOR_ALLOC_ORDERS | TENSOR_ALLOC_NODE_ONLY | TENSOR_ALLOC_INTERLEAVE | \
	 TENSOR_ALLOC_CONTIG | TENSOR_ALLOC_DMA32)

static int alloc_node(const struct tensor_alloc *arg, struct tensor_request *request)
{
	request->node = arg->node;
	request->node_only = arg->flags & TENSOR_ALLOC_NODE_ONLY;
	if (arg->node == TENSOR_NODE_ANY)
		return request->node_only ? -EINVAL : 0;
	if (arg->node < 0 || arg->node >= MAX_NUMNODES)
		return -EINVAL;
	return node_state(array_index_nospec(arg->node, MAX_NUMNODES), N_MEMORY) ? 0 : -EINVAL;
}

static int alloc_place(const struct tensor_alloc *arg, struct tensor_request *request)
{
	request->interleave = arg->flags & TENSOR_ALLOC_INTERLEAVE;
	request->contig = arg->flags & TENSOR_ALLOC_CONTIG;
	request->dma32 = arg->flags & TENSOR_ALLOC_DMA32;
	if (request->interleave && (request->contig || arg->node != TENSOR_NODE_ANY))
		return -EINVAL;
	return request->contig && (arg->flags & TENSOR_ALLOC_ORDERS) ? -EINVAL : 0;
}

static int alloc_orders(const struct tensor_alloc *arg, struct tensor_request *request)
{
	bool given = arg->flags & TENSOR_ALLOC_ORDERS;

	if (!given && (arg->min_order || arg->max_order))
		return -EINVAL;
	request->min_order = arg->min_order;
	request->max_order = given ? arg->max_order : TENSOR_TOP_ORDER;
	if (request->min_order > request->max_order || request->max_order > TENSOR_TOP_ORDER)
		return -EINVAL;
	return 0;
}

static int alloc_request(const struct tensor_alloc *arg, struct tensor_request *request)
{
	int err;

	if (arg->flags & ~ALLOC_FLAGS)
		return -EOPNOTSUPP;
	if (arg->__reserved || !arg->bytes || arg->bytes > TENSOR_MAX_BYTES)
		return -EINVAL;
	*request = (struct tensor_request){};
	err = alloc_node(arg, request);
	if (err)
		return err;
	err = alloc_place(arg, request);
	if (err)
		return err;
	err = alloc_orders(arg, request);
	if (err)
		return err;
	request->pages = round_up(arg->bytes, PAGE_SIZE << request->min_order) >> PAGE_SHIFT;
	return 0;
}

static int call_alloc(struct tensor_call *call)
{
	struct tensor_alloc *arg = &call->arg.alloc;
	struct tensor_handle *handle;
	struct tensor_hold hold;
	struct tensor_request request;
	struct tensor_buf *buf;
	int err;

	err = alloc_request(arg, &request);
	if (err)
		return err;
	buf = tensor_buf_alloc(&request, call->client->owner, call->client->id);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	hold = tensor_hold_all(buf, TENSOR_RIGHTS_ALL);
	handle = tensor_handle_new(call->client, &hold);
	if (IS_ERR(handle)) {
		tensor_buf_put(buf);
		return PTR_ERR(handle);
	}
	arg->bytes = buf->bytes;
	arg->handle = handle->id;
	arg->mmap_offset = tensor_handle_mmap_offset(handle->id);
	return tensor_call_reply_handle(call, handle);
}

static int call_info(struct tensor_call *call)
{
	struct tensor_info *info = &call->arg.info;
	struct tensor_hold hold;
	int err;

	if (info->flags)
		return -EOPNOTSUPP;
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

	err = tensor_call_begin(call, meta->flags & ~TENSOR_META_SET, meta->__reserved,
				meta->handle, &hold);
	if (err)
		return err;
	err = tensor_buf_usable(hold.buf);
	if (err)
		goto put_buf;
	if (!(meta->flags & TENSOR_META_SET)) {
		tensor_desc_get_part(&hold, &meta->desc);
		err = tensor_call_reply(call);
	} else {
		err = tensor_hold_may_all(&hold, TENSOR_RIGHT_WRITE) ?
			      tensor_desc_set(hold.buf, &meta->desc) :
			      -EACCES;
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
 * @run: its function
 * @size: size of its struct
 * @least: size of the first version of that struct
 * @on_buf: also works on a buffer fd
 * @write: needs a device that is open for writing
 */
struct ioctl_op {
	int (*run)(struct tensor_call *call);
	u32 size;
	u32 least;
	bool on_buf;
	bool write;
};

/* @last: the last member of the first version, which never changes. */
#define OP(nr, fn, type, last, ...)                                                              \
	[_IOC_NR(nr) - TENSOR_IOC_BASE] = {                                                      \
		.run = fn,                                                                       \
		.size = sizeof(type) +                                                           \
			BUILD_BUG_ON_ZERO(sizeof(type) > sizeof_field(struct tensor_call, arg)), \
		.least = offsetofend(type, last),                                                \
		__VA_ARGS__                                                                      \
	}

static const struct ioctl_op ops[] = {
	OP(TENSOR_IOC_QUERY, call_query, struct tensor_query, __reserved),
	OP(TENSOR_IOC_ALLOC, call_alloc, struct tensor_alloc, mmap_offset, .write = true),
	OP(TENSOR_IOC_INFO, call_info, struct tensor_info, attachments, .on_buf = true),
	OP(TENSOR_IOC_META, call_meta, struct tensor_meta, desc, .on_buf = true),
	OP(TENSOR_IOC_EXPORT, tensor_export, struct tensor_export, __reserved),
	OP(TENSOR_IOC_IMPORT, tensor_import, struct tensor_import, __reserved, .write = true),
	OP(TENSOR_IOC_CLOSE, call_close, struct tensor_close, __reserved),
	OP(TENSOR_IOC_SEAL, tensor_seal, struct tensor_seal, seals, .on_buf = true),
	OP(TENSOR_IOC_REVOKE, tensor_revoke, struct tensor_revoke, __reserved),
	OP(TENSOR_IOC_ADVISE, tensor_advise, struct tensor_advise, __reserved),
	OP(TENSOR_IOC_PIN, tensor_pin, struct tensor_pin, __reserved, .write = true),
	OP(TENSOR_IOC_SYNC, tensor_sync, struct tensor_sync, generation, .on_buf = true),
};

static u64 query_features(unsigned int nodes)
{
	u64 features = TENSOR_FEATURE_NETLINK | TENSOR_FEATURE_EVENTS | TENSOR_FEATURE_DMABUF |
		       TENSOR_FEATURE_MEMFD;

	if (IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE) && TENSOR_TOP_ORDER == TENSOR_PMD_ORDER)
		features |= TENSOR_FEATURE_HUGE;
	if (IS_ENABLED(CONFIG_MEMCG))
		features |= TENSOR_FEATURE_MEMCG;
	if (nodes > 1)
		features |= TENSOR_FEATURE_NUMA;
	return features;
}

static void query_limits(struct tensor_query *query, const struct tensor_user *user)
{
	query->limit_bytes = tensor_limit_bytes();
	query->used_bytes = tensor_limit_used();
	query->user_limit_bytes = tensor_limit_user_bytes();
	query->user_used_bytes = atomic64_read(&user->used);
}

static int call_query(struct tensor_call *call)
{
	struct tensor_query *query = &call->arg.query;
	unsigned int nodes = num_node_state(N_MEMORY);
	struct tensor_owner *owner;

	if (query->flags)
		return -EOPNOTSUPP;
	owner = tensor_owner_current(call->client->owner);
	if (!owner)
		return -ENOMEM;
	/* overwrite every field, whatever the caller passed */
	*query = (struct tensor_query){
		.size = query->size,
		.features = query_features(nodes),
		.ioctls = GENMASK_ULL(ARRAY_SIZE(ops) - 1, 0),
		.alloc_flags = ALLOC_FLAGS,
		.export_flags = TENSOR_EXPORT_FLAGS,
		.rights = TENSOR_RIGHTS_ALL,
		.max_bytes = TENSOR_MAX_BYTES,
		.contig_bytes = min(tensor_contig_bytes(), TENSOR_MAX_BYTES),
		.chunk_sizes = GENMASK_ULL(PAGE_SHIFT + TENSOR_TOP_ORDER, PAGE_SHIFT),
		.page_size = PAGE_SIZE,
		.max_order = TENSOR_TOP_ORDER,
		.max_dims = TENSOR_UAPI_MAX_DIMS,
		.max_handles = TENSOR_MAX_HANDLES,
		.nodes = nodes,
	};
	query_limits(query, owner->user);
	tensor_owner_put(owner);
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
 * @file: the open device
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
 * @cmd: TENSOR_IOC_*
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
