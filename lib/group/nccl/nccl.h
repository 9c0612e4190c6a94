/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The engine "nccl": each rank has one device. It owns a group of an engine of the host, "local" or "mpi", in which the ranks
 * meet, and which compares the calls of all ranks before NCCL begins an operation, finds ranks that died, and carries
 * tensors of the host and messages (host.c). library.c loads NCCL, communicator.c has its communicator and its errors,
 * collective.c queues operations in streams, running.c keeps their tensors until the device has carried them out, and ends
 * the group if it does not. plugin.c has the table.
 *
 * The communicator is non-blocking: its functions return at once, and communicator_state() says when they are done.
 *
 * The order of the files, lowest first: library.c; communicator.c; running.c; host.c and collective.c; plugin.c.
 */
#ifndef TENSOR_GROUP_NCCL_H
#define TENSOR_GROUP_NCCL_H

#include "group/engine/engine.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

/* ---- library.c ---- */

struct nccl_library {
	__typeof__(ncclGetVersion) *get_version;
	__typeof__(ncclGetUniqueId) *get_unique_id;
	__typeof__(ncclCommInitRankConfig) *comm_init;
	__typeof__(ncclCommGetAsyncError) *comm_state;
	__typeof__(ncclCommFinalize) *comm_finalize;
	__typeof__(ncclCommDestroy) *comm_destroy;
	__typeof__(ncclCommAbort) *comm_abort;
	__typeof__(ncclGetErrorString) *error_string;
	__typeof__(ncclGetLastError) *last_error;
	__typeof__(ncclAllReduce) *all_reduce;
	__typeof__(ncclReduce) *reduce;
	__typeof__(ncclBroadcast) *broadcast;
	__typeof__(ncclReduceScatter) *reduce_scatter;
	__typeof__(ncclAllGather) *all_gather;
	__typeof__(ncclSend) *send;
	__typeof__(ncclRecv) *recv;
	__typeof__(ncclGroupStart) *group_start;
	__typeof__(ncclGroupEnd) *group_end;
};

/* NULL with the error set: there is no usable NCCL. */
const struct nccl_library *nccl_library(void);

/* ---- the group ---- */

/*
 * An operation in a stream. Its request has a reference, and so has the list of those that run, which keeps the tensors
 * until the device has reached `done`.
 */
struct operation {
	atomic_int refs;
	int device;
	struct operation *next;
	cudaStream_t stream;
	cudaEvent_t ready; /* what the caller queued before; NULL: it is in the same stream */
	cudaEvent_t done;
	bool queued;   /* the device may use the tensors */
	bool recorded; /* done was recorded */
	int64_t since;
	const char *name;
	tensor *parts; /* of all ranks, which the library's operators reduce; or NULL */
	tensor *tensors[4];
};

struct nccl {
	tensor_group *group, *host;
	int device;
	cudaStream_t stream; /* of operations with a request */

	pthread_mutex_t lock;	/* of what follows, and of functions of NCCL */
	pthread_cond_t changed; /* running, stop */
	ncclComm_t comm;	/* NULL after an abort */
	struct operation *running, **last;
	pthread_t watcher;
	bool has_watcher, stop;
};

static inline struct nccl *nccl_of(const tensor_group *g)
{
	return g->state;
}

int64_t nccl_now(void);
/* Whether an error has ended the group. */
bool nccl_has_ended(tensor_group *g);
void nccl_nap(int64_t ns);
/* Makes the device the current one; the former one, for nccl_leave(). */
int nccl_enter(int device);
void nccl_leave(int device, int before);
/* Zero: no error. Otherwise ends the group and returns -EIO with the error set. */
int cuda_failed(tensor_group *g, cudaError_t result, const char *function);

/* ---- communicator.c ---- */

/* Joins the ranks of the host's group: all of them, or none. 0, or -errno with the error set. */
int communicator_open(struct nccl *n);
/* Leaves: waits for the other ranks for a moment. */
void communicator_close(struct nccl *n);
/* Ends what runs on the device. */
void communicator_abort(struct nccl *n);
/* Zero: the result of a function of NCCL is no error. Otherwise ends the group and returns -EIO with the error set. */
int communicator_failed(struct nccl *n, ncclResult_t result, const char *function);
/* 1: NCCL has done what it was called for; 0: not yet; -errno with the error set. */
int communicator_state(struct nccl *n, const char *function);

/* ---- running.c ---- */

struct operation *operation_new(struct nccl *n, const char *name, cudaStream_t stream);
void operation_put(struct operation *o);
/* Records the end of the operation, and keeps r's tensors until then. 0, or -errno with the error set. */
int operation_run(struct nccl *n, struct operation *o, tensor_request *r);
/* Also after the end of the group. */
bool operation_is_done(const struct operation *o);
/* Waits for the end of all, or of the group. */
void operations_end(struct nccl *n);

/* ---- host.c ---- */

/* Begins the comparison of the calls, or, of a request without an operation, all of it. */
int host_start(tensor_request *r);
/* 1: it has ended; 0; -errno with the error set. */
int host_step(tensor_request *r);
/* The other functions of the engine of the host. */
void host_drop(tensor_request *r);
void host_arm(tensor_group *g);
int host_sleep(tensor_group *g, tensor_request *r, int64_t ns);
void host_wake(tensor_group *g);
int host_late(tensor_group *g, tensor_request *r);
void host_give_up(tensor_group *g);
void host_counted(tensor_group *g);
/* A rank that was lost ends the group: -errno with the error set. closed: one that has closed the group was lost, too. */
int host_lost(struct nccl *n, bool closed);
void host_close(struct nccl *n);

/* ---- collective.c ---- */

/* Queues the operation of r in its stream. 0, or -errno with the error set. */
int collective_queue(tensor_request *r);
/* NCCL has it in the stream: queues what is left to do. */
int collective_end(tensor_request *r);

#endif
