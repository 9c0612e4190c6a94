// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The communicator of NCCL. Before it is made, all ranks tell each other whether they can make it, and which devices they
 * have: NCCL waits for ever for a rank that does not come, and for two ranks on one device.
 */
#include "group/nccl/nccl.h"

#include "core/plugin_tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <tensor/cuda.h>
#include <time.h>
#include <unistd.h>

#define CLOSE_NS INT64_C(1000000000) /* for the other ranks to close the group, too */
#define NAP_NS	 INT64_C(100000)

/* ---- time, the current device, errors ---- */

int64_t nccl_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void nccl_nap(int64_t ns)
{
	nanosleep(&(struct timespec){ 0, ns }, NULL);
}

bool nccl_has_ended(tensor_group *g)
{
	int err;

	pthread_mutex_lock(&g->lock);
	err = g->err;
	pthread_mutex_unlock(&g->lock);
	return err;
}

int nccl_enter(int device)
{
	int before = device;

	if (cudaGetDevice(&before) == cudaSuccess && before != device)
		cudaSetDevice(device);
	return before;
}

void nccl_leave(int device, int before)
{
	if (before != device)
		cudaSetDevice(before);
}

int cuda_failed(tensor_group *g, cudaError_t result, const char *function)
{
	if (result == cudaSuccess)
		return 0;
	cudaGetLastError();
	return group_fail(g, -1, EIO, "%s: %s (%s)", function, cudaGetErrorString(result),
			  cudaGetErrorName(result));
}

int communicator_failed(struct nccl *n, ncclResult_t result, const char *function)
{
	const struct nccl_library *nccl = nccl_library();

	if (result == ncclSuccess || result == ncclInProgress)
		return 0;
	return group_fail(n->group, -1, EIO, "%s: %s: %.300s", function, nccl->error_string(result),
			  nccl->last_error(n->comm));
}

int communicator_state(struct nccl *n, const char *function)
{
	ncclResult_t state = ncclInProgress, result = ncclSuccess;
	int err;

	pthread_mutex_lock(&n->lock);
	if (n->comm)
		result = nccl_library()->comm_state(n->comm, &state);
	err = n->comm ? communicator_failed(n, result ? result : state, function) :
			group_fail(n->group, -1, EPIPE, "the group has ended");
	pthread_mutex_unlock(&n->lock);
	return err ? err : state == ncclSuccess;
}

/* ---- what the ranks say before ---- */

struct hello {
	int32_t code; /* 0, or errno: the rank cannot open the group */
	char machine[64], device[32];
	char text[192];
	ncclUniqueId id; /* of rank 0 */
};

/* The error of this rank, which all ranks will get with its number. */
static void take_error(struct hello *h)
{
	const struct tensor_error *e = tensor_last_error();

	h->code = e->code;
	snprintf(h->text, sizeof(h->text), "%.*s", (int)sizeof(h->text) - 1, e->text);
}

/* Gives the hello of each rank to all. -errno with the error set if one of them is an error, which all get. */
static int exchange(struct nccl *n, struct hello *all)
{
	const int64_t one = sizeof(*all), size = one * n->host->size;
	tensor *in = tensor_plugin_new(TENSOR_U8, &one, 1);
	tensor *out = tensor_plugin_new(TENSOR_U8, &size, 1);
	int err = in && out ? 0 : -ENOMEM;

	if (!err) {
		memcpy(in->data, &all[n->host->rank], sizeof(*all));
		err = tensor_group_all_gather(n->host, out, in, NULL);
	}
	if (!err)
		memcpy(all, out->data, (size_t)size);
	tensor_plugin_put(out);
	tensor_plugin_put(in);
	for (int i = 0; !err && i < n->host->size; i++)
		if (all[i].code)
			err = tensor_fail(all[i].code, "group_open: nccl: rank %d: %.*s", i,
					  (int)sizeof(all[i].text) - 1, all[i].text);
	return err;
}

static void say_first(struct nccl *n, struct hello *h)
{
	const struct nccl_library *nccl = nccl_library();
	ncclResult_t result = ncclSuccess;

	gethostname(h->machine, sizeof(h->machine) - 1);
	if (!nccl || tensor_cuda_device_count() < 1) {
		take_error(h);
		return;
	}
	if (!n->host->rank)
		result = nccl->get_unique_id(&h->id);
	if (result != ncclSuccess) {
		tensor_fail(EIO, "ncclGetUniqueId: %s", nccl->error_string(result));
		take_error(h);
	}
}

/* The number of the rank on its machine chooses the device. */
static void choose_device(struct nccl *n, struct hello *all)
{
	struct hello *mine = &all[n->host->rank];
	int before = 0;
	cudaError_t err;

	for (int i = 0; i < n->host->rank; i++)
		before += !strcmp(all[i].machine, mine->machine);
	n->device = before % tensor_cuda_device_count();
	err = cudaDeviceGetPCIBusId(mine->device, sizeof(mine->device), n->device);
	if (err != cudaSuccess) {
		tensor_fail(EIO, "cudaDeviceGetPCIBusId: %s", cudaGetErrorString(err));
		take_error(mine);
	}
}

static int check_devices(const struct nccl *n, const struct hello *all)
{
	for (int i = 1; i < n->host->size; i++)
		for (int k = 0; k < i; k++)
			if (!strcmp(all[i].machine, all[k].machine) &&
			    !strcmp(all[i].device, all[k].device))
				return tensor_fail(
					EBUSY,
					"group_open: nccl: ranks %d and %d have the same device, %s: "
					"each rank needs one of its own",
					k, i, all[i].device);
	return 0;
}

static int agree(struct nccl *n, struct hello *all)
{
	int err;

	say_first(n, &all[n->host->rank]);
	err = exchange(n, all);
	if (err)
		return err;
	choose_device(n, all);
	err = exchange(n, all);
	return err ? err : check_devices(n, all);
}

/* ---- the communicator ---- */

static int late(struct nccl *n)
{
	return tensor_fail(ETIMEDOUT,
			   "group_open: nccl: NCCL has not joined the ranks within %lld ms",
			   (long long)(n->group->timeout_ns / 1000000));
}

static int join(struct nccl *n, const ncclUniqueId *id)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	int64_t begin = nccl_now(), timeout = n->group->timeout_ns;
	ncclResult_t result;
	int res = 0;

	config.blocking = 0;
	result = nccl_library()->comm_init(&n->comm, n->host->size, *id, n->host->rank, &config);
	res = communicator_failed(n, result, "group_open: ncclCommInitRankConfig");
	while (!res) {
		res = communicator_state(n, "group_open: ncclCommInitRankConfig");
		if (!res)
			res = host_lost(n, true);
		if (!res && timeout >= 0 && nccl_now() - begin > timeout)
			res = late(n);
		if (!res)
			nccl_nap(NAP_NS);
	}
	return res < 0 ? res : 0;
}

int communicator_open(struct nccl *n)
{
	struct hello *all = calloc((size_t)n->host->size, sizeof(*all));
	int err, before;

	if (!all)
		return tensor_fail(ENOMEM, "group_open: no memory");
	err = agree(n, all);
	if (!err) {
		before = nccl_enter(n->device);
		err = join(n, &all[0].id);
		if (!err)
			err = cuda_failed(n->group,
					  cudaStreamCreateWithFlags(&n->stream,
								    cudaStreamNonBlocking),
					  "group_open: cudaStreamCreateWithFlags");
		nccl_leave(n->device, before);
	}
	free(all);
	return err;
}

void communicator_abort(struct nccl *n)
{
	int before;

	pthread_mutex_lock(&n->lock);
	if (n->comm) {
		before = nccl_enter(n->device);
		nccl_library()->comm_abort(n->comm);
		nccl_leave(n->device, before);
	}
	n->comm = NULL;
	pthread_mutex_unlock(&n->lock);
}

/* NCCL may wait for the other ranks, which may go on without this one. True if it has not. */
static bool finalize(struct nccl *n)
{
	const struct nccl_library *nccl = nccl_library();
	ncclResult_t state = nccl->comm_finalize(n->comm);
	int64_t begin = nccl_now();

	while (state == ncclInProgress && nccl_now() - begin < CLOSE_NS) {
		if (nccl->comm_state(n->comm, &state) != ncclSuccess)
			return false;
		if (state == ncclInProgress)
			nccl_nap(NAP_NS);
	}
	return state == ncclSuccess;
}

void communicator_close(struct nccl *n)
{
	int before = nccl_enter(n->device);

	pthread_mutex_lock(&n->lock);
	if (n->comm && !nccl_has_ended(n->group) && finalize(n)) {
		nccl_library()->comm_destroy(n->comm);
		n->comm = NULL;
	}
	pthread_mutex_unlock(&n->lock);
	communicator_abort(n);
	if (n->stream)
		cudaStreamDestroy(n->stream);
	nccl_leave(n->device, before);
}
