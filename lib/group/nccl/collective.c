// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Collectives in a stream. NCCL copies bytes; it reduces most dtypes as they are, bool as bytes of 0 and 1, and sums of complex
 * numbers as pairs. For the others it collects the parts of all ranks, which the library's operators reduce.
 */
#include "group/nccl/nccl.h"

/* How NCCL reduces a dtype. */
struct numbers {
	ncclDataType_t type;
	ncclRedOp_t op;
	int64_t n; /* of them */
};

static bool is_reduction(const tensor_request *r)
{
	return r->call.kind == GROUP_ALL_REDUCE || r->call.kind == GROUP_REDUCE ||
	       r->call.kind == GROUP_REDUCE_SCATTER;
}

static ncclRedOp_t op_of(const tensor_request *r)
{
	static const ncclRedOp_t ops[] = {
		[TENSOR_GROUP_SUM] = ncclSum,	   [TENSOR_GROUP_MEAN] = ncclAvg,
		[TENSOR_GROUP_PRODUCT] = ncclProd, [TENSOR_GROUP_MIN] = ncclMin,
		[TENSOR_GROUP_MAX] = ncclMax,
	};

	if (r->call.dtype != TENSOR_BOOL)
		return ops[r->call.op];
	return r->call.op == TENSOR_GROUP_SUM || r->call.op == TENSOR_GROUP_MAX ? ncclMax : ncclMin;
}

/* False: NCCL has no such reduction. */
static bool numbers_of(const tensor_request *r, struct numbers *x)
{
	bool is_sum = r->call.op == TENSOR_GROUP_SUM || r->call.op == TENSOR_GROUP_MEAN;

	*x = (struct numbers){ .op = op_of(r), .n = r->n };
	switch (r->call.dtype) {
	case TENSOR_BOOL:
	case TENSOR_U8:
		x->type = ncclUint8;
		return true;
	case TENSOR_I8:
		x->type = ncclInt8;
		return true;
	case TENSOR_I32:
		x->type = ncclInt32;
		return true;
	case TENSOR_U32:
		x->type = ncclUint32;
		return true;
	case TENSOR_I64:
		x->type = ncclInt64;
		return true;
	case TENSOR_U64:
		x->type = ncclUint64;
		return true;
	case TENSOR_F16:
		x->type = ncclFloat16;
		return true;
	case TENSOR_BF16:
		x->type = ncclBfloat16;
		return true;
	case TENSOR_F32:
		x->type = ncclFloat32;
		return true;
	case TENSOR_F64:
		x->type = ncclFloat64;
		return true;
	case TENSOR_C64:
		x->type = ncclFloat32;
		x->n *= 2;
		return is_sum;
	case TENSOR_C128:
		x->type = ncclFloat64;
		x->n *= 2;
		return is_sum;
	default:
		return false;
	}
}

/* ---- calls of NCCL: the caller holds lock, and the device is the current one ---- */

static ncclResult_t all_reduce(const tensor_request *r, const struct numbers *x, ncclComm_t comm,
			       cudaStream_t stream)
{
	const struct nccl_library *nccl = nccl_library();

	switch (r->call.kind) {
	case GROUP_ALL_REDUCE:
		return nccl->all_reduce(r->in, r->out, (size_t)x->n, x->type, x->op, comm, stream);
	case GROUP_REDUCE:
		return nccl->reduce(r->in, r->out, (size_t)x->n, x->type, x->op, r->call.root, comm,
				    stream);
	default:
		return nccl->reduce_scatter(r->in, r->out, (size_t)x->n, x->type, x->op, comm,
					    stream);
	}
}

/* Of a communicator that does not block. */
static bool is_error(ncclResult_t result)
{
	return result != ncclSuccess && result != ncclInProgress;
}

/*
 * One part of `bytes` to each rank from `in`, and one from each to `out`; with a root, to or from this rank alone. NULL: this rank
 * sends, or receives, nothing.
 */
static ncclResult_t exchange(const tensor_request *r, const char *in, bool same_part, char *out,
			     int64_t bytes, cudaStream_t stream)
{
	const struct nccl_library *nccl = nccl_library();
	const ncclComm_t comm = nccl_of(r->group)->comm;
	const bool to_root = r->call.kind == GROUP_GATHER || r->call.kind == GROUP_REDUCE,
		   from_root = r->call.kind == GROUP_SCATTER;
	ncclResult_t result = nccl->group_start(), end;

	for (int i = 0; i < r->group->size && !is_error(result); i++) {
		if (in && (!to_root || i == r->call.root))
			result = nccl->send(in + (same_part ? 0 : i * bytes), (size_t)bytes,
					    ncclUint8, i, comm, stream);
		if (!is_error(result) && out && (!from_root || i == r->call.root))
			result = nccl->recv(out + (from_root ? 0 : i * bytes), (size_t)bytes,
					    ncclUint8, i, comm, stream);
	}
	end = nccl->group_end();
	return is_error(result) ? result : end;
}

static ncclResult_t copy(const tensor_request *r, void *out, int64_t bytes, cudaStream_t stream)
{
	const struct nccl_library *nccl = nccl_library();
	const ncclComm_t comm = nccl_of(r->group)->comm;

	switch (r->call.kind) {
	case GROUP_BROADCAST:
		return nccl->broadcast(r->in ? r->in : out, r->in ? (void *)r->in : out,
				       (size_t)bytes, ncclUint8, r->call.root, comm, stream);
	case GROUP_ALL_GATHER:
	case GROUP_ALL_REDUCE:
		return nccl->all_gather(r->in, out, (size_t)bytes, ncclUint8, comm, stream);
	case GROUP_GATHER:
	case GROUP_REDUCE:
		return exchange(r, r->in, true, out, bytes, stream);
	default:
		return exchange(r, r->in, false, out, bytes, stream);
	}
}

static ncclResult_t call(const tensor_request *r, const struct numbers *x, void *parts)
{
	const struct operation *o = r->operation;
	const ncclComm_t comm = nccl_of(r->group)->comm;
	const int64_t bytes = request_bytes(r);

	if (x)
		return all_reduce(r, x, comm, o->stream);
	return copy(r, parts ? parts : r->out, bytes, o->stream);
}

/* ---- an operation ---- */

static int order(struct nccl *n, const struct operation *o)
{
	if (!o->ready)
		return 0;
	return cuda_failed(n->group, cudaStreamWaitEvent(o->stream, o->ready, 0),
			   "cudaStreamWaitEvent");
}

/* Memory for the parts of all ranks, where this rank reduces them. */
static int need_parts(tensor_request *r)
{
	struct operation *o = r->operation;

	if (r->out)
		o->parts = group_parts_new(r);
	return r->out && !o->parts ? group_fail_here(r->group) : 0;
}

int collective_queue(tensor_request *r)
{
	struct nccl *n = nccl_of(r->group);
	struct operation *o = r->operation;
	struct numbers x;
	bool is_number = is_reduction(r) && numbers_of(r, &x);
	int err = 0, before;

	o->queued = true;
	if (!r->n)
		return 0;
	if (is_reduction(r) && !is_number)
		err = need_parts(r);
	pthread_mutex_lock(&n->lock);
	before = nccl_enter(n->device);
	if (!err && !n->comm)
		err = group_fail(r->group, -1, EPIPE, "the group has ended");
	if (!err)
		err = order(n, o);
	if (!err)
		err = communicator_failed(
			n, call(r, is_number ? &x : NULL, o->parts ? o->parts->data : NULL),
			o->name);
	nccl_leave(n->device, before);
	pthread_mutex_unlock(&n->lock);
	return err;
}

int collective_end(tensor_request *r)
{
	struct operation *o = r->operation;
	int res = r->n ? communicator_state(nccl_of(r->group), o->name) : 1;

	if (res > 0 && o->parts && group_reduce_parts(r, o->parts) < 0)
		return group_fail_here(r->group);
	return res;
}
