// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* libtensor_nccl.so: the engine "nccl". */
#include "group/nccl/nccl.h"

#include <stdlib.h>

#define QUEUE_NAP_NS INT64_C(50000)

/* The phases of an operation on the device: the calls are compared, then NCCL has it. */
enum { COMPARE, QUEUED };

/* ---- operations ---- */

static int begin_queue(tensor_request *r)
{
	int err = collective_queue(r);

	r->phase = QUEUED;
	return err;
}

static int step(tensor_request *r)
{
	int res;

	if (r->phase == COMPARE) {
		res = host_step(r);
		if (res <= 0 || !r->operation)
			return res;
		res = begin_queue(r);
		if (res < 0)
			return res;
	}
	return collective_end(r);
}

/* While NCCL connects to ranks that have called the operation: they may die. */
static int sleep_queued(tensor_group *g, int64_t ns)
{
	int res = host_sleep(g, NULL, ns && ns < QUEUE_NAP_NS ? ns : ns ? QUEUE_NAP_NS : 0);

	return res < 0 ? res : host_lost(nccl_of(g), false);
}

static int engine_sleep(tensor_group *g, tensor_request *r, int64_t ns)
{
	return r && r->phase == QUEUED ? sleep_queued(g, ns) : host_sleep(g, r, ns);
}

static int late(tensor_group *g, tensor_request *r)
{
	if (r && r->phase == QUEUED)
		return group_fail_late(g, "NCCL has not begun it", "");
	return host_late(g, r);
}

static void give_up(tensor_group *g)
{
	communicator_abort(nccl_of(g));
	host_give_up(g);
}

/* ---- memory of the device ---- */

static tensor_device place(const tensor_group *g, enum group_kind kind, const tensor *t)
{
	if (t->device.type != TENSOR_CUDA || kind == GROUP_SEND || kind == GROUP_RECV)
		return TENSOR_DEVICE_CPU;
	return g->device;
}

/* The stream of the group goes on when that of the caller has come here. */
static int record_ready(struct nccl *n, struct operation *o, cudaStream_t stream)
{
	int before = nccl_enter(n->device), err;

	err = cuda_failed(n->group, cudaEventCreateWithFlags(&o->ready, cudaEventDisableTiming),
			  "cudaEventCreateWithFlags");
	if (!err)
		err = cuda_failed(n->group, cudaEventRecord(o->ready, stream), "cudaEventRecord");
	nccl_leave(n->device, before);
	return err;
}

static int begin(tensor_request *r, bool later)
{
	struct nccl *n = nccl_of(r->group);
	struct operation *o =
		operation_new(n, group_kind_name(r->call.kind), later ? n->stream : r->stream);

	if (!o)
		return -tensor_last_error()->code;
	if (later && record_ready(n, o, r->stream) < 0) {
		operation_put(o);
		return -tensor_last_error()->code;
	}
	r->stream = o->stream;
	r->operation = o;
	return 0;
}

static int finish(tensor_request *r)
{
	struct operation *o = r->operation;

	return o->queued ? operation_run(nccl_of(r->group), o, r) : 0;
}

static int order(tensor_request *r, void *stream)
{
	const struct operation *o = r->operation;
	int before, err;

	if (!o->recorded || o->stream == stream)
		return 0;
	before = nccl_enter(o->device);
	err = cuda_failed(r->group, cudaStreamWaitEvent(stream, o->done, 0), "cudaStreamWaitEvent");
	nccl_leave(o->device, before);
	return err;
}

static bool reached(tensor_request *r)
{
	return operation_is_done(r->operation);
}

static void release(tensor_request *r)
{
	operation_put(r->operation);
	r->operation = NULL;
}

/* ---- the group ---- */

static void free_nccl(struct nccl *n)
{
	pthread_cond_destroy(&n->changed);
	pthread_mutex_destroy(&n->lock);
	free(n);
}

static void close_group(tensor_group *g)
{
	struct nccl *n = nccl_of(g);

	operations_end(n);
	communicator_close(n);
	host_close(n);
	if (!n->running)
		free_nccl(n);
}

static int open_group(tensor_group *g, const struct tensor_group_options *options)
{
	struct nccl *n = calloc(1, sizeof(*n));
	struct tensor_error error;

	if (!n)
		return tensor_fail(ENOMEM, "group_open: no memory");
	pthread_mutex_init(&n->lock, NULL);
	pthread_cond_init(&n->changed, NULL);
	n->group = g;
	n->last = &n->running;
	n->host = group_open_host(options);
	if (!n->host) {
		free_nccl(n);
		return -tensor_last_error()->code;
	}
	g->state = n;
	g->rank = n->host->rank;
	g->size = n->host->size;
	g->spin_ns = n->host->spin_ns;
	if (communicator_open(n) < 0) {
		error = *tensor_last_error();
		communicator_abort(n);
		host_close(n);
		free_nccl(n);
		return tensor_fail(error.code, "%s", error.text);
	}
	g->device = TENSOR_DEVICE_CUDA(n->device);
	return 0;
}

static const struct group_device device = {
	.place = place,
	.begin = begin,
	.finish = finish,
	.order = order,
	.reached = reached,
	.release = release,
};

static const struct group_engine engine = {
	.name = "nccl",
	.open = open_group,
	.close = close_group,
	.start = host_start,
	.step = step,
	.drop = host_drop,
	.arm = host_arm,
	.sleep = engine_sleep,
	.wake = host_wake,
	.late = late,
	.give_up = give_up,
	.counted = host_counted,
	.device = &device,
};

__attribute__((constructor)) static void load(void)
{
	tensor_register_group_engine(&engine, NULL);
}
