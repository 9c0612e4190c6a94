/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Process groups: processes, each with a rank from 0 to size - 1, that call the same collective operations in the same
 * order. An engine carries the data: "local" between processes of one machine through shared memory, "mpi" through the
 * MPI library that the program was started with (plugin libtensor_mpi), "nccl" between CUDA devices (plugin
 * libtensor_nccl). docs/distributed.md has the rules.
 *
 * 	tensor_group *g = tensor_group_open(NULL, NULL);	     started by tensorrun or mpirun
 * 	tensor_group_all_reduce(g, grad, grad, TENSOR_GROUP_MEAN, NULL);
 * 	tensor_group_close(g);
 *
 * Tensors may have any strides and be on any device: what an engine cannot read in place is packed first. Results are
 * written under tensor_no_grad. `out` and `in` may be one tensor, where both have the same shape.
 *
 * In a group of "nccl" each rank has one device, and operations on tensors of it are work of streams, as operators are: they
 * come after what the thread has queued in its current stream, and a call returns when all ranks have called it and
 * it is queued. Tensors of the host, barriers and messages go through the host. All ranks must have the tensors of a
 * collective on devices, or none.
 *
 * Every collective takes `request`. NULL: the call returns when the operation has ended on this rank. Otherwise it
 * returns at once, *request is set, and the tensors must not be changed, nor `out` read, before the request has ended.
 * A group carries its collectives out one after the other, in the order of the calls; sends and receives beside them.
 * In a group of "nccl" one on tensors of the device is carried out in a stream of the group, beside other work.
 *
 * Errors, besides those of each function: 0 or -errno, with the thread's error record.
 * 	EINVAL		a rank, operation, shape or dtype that is not possible; ranks that called different operations,
 * 			or with different shapes or dtypes: all ranks get the error, with both values, and the group
 * 			goes on
 * 	ECONNRESET	a rank has died; the text names it. The group can only be closed
 * 	EPIPE		a rank has closed the group, or has left it after an error of its own
 * 	ETIMEDOUT	a rank did not call the operation within the timeout of the group, which can only be closed
 * 	EBUSY		a child of fork(): the group is the parent's
 *
 * Threads. Calls of several threads take turns; their order must be the same on all ranks.
 */
#ifndef TENSOR_GROUP_H
#define TENSOR_GROUP_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A process group, and an operation that runs: opaque. */
typedef struct tensor_group tensor_group;
typedef struct tensor_request tensor_request;

/*
 * A reduction combines the elements of all ranks in the order of the ranks. Sums of f16 and bf16 are formed in f32 and rounded once; of
 * bool the sum and the maximum are "or", the product and the minimum "and". Integers have no mean, complex numbers no
 * minimum and maximum.
 */
enum tensor_group_op {
	TENSOR_GROUP_SUM = 0,
	TENSOR_GROUP_MEAN,
	TENSOR_GROUP_PRODUCT,
	TENSOR_GROUP_MIN,
	TENSOR_GROUP_MAX,
};

/* Zero is: what the environment says. */
struct tensor_group_options {
	int rank,
		size; /* of "local" and "nccl"; size 0: what tensorrun or mpirun has set, else a group of this process alone */
	const char *
		address; /* of "local" and "nccl": a name that the ranks share; NULL: TENSOR_GROUP_ADDRESS */
	int64_t timeout_ns; /* for the ranks to join, and for each operation; 0: ten minutes; negative: none */
};

#define TENSOR_GROUP_OPTIONS(...) (&(const struct tensor_group_options){ __VA_ARGS__ })

#define TENSOR_GROUP_LOCAL_MAX 128 /* ranks of "local" */

/*
 * Join a group; returns when all ranks have. engine: "local", "mpi", "nccl", or NULL: TENSOR_GROUP, else "mpi" in a
 * process that mpirun has started, else "local". NULL with the error set: EINVAL, ETIMEDOUT with the ranks that are
 * missing, EADDRINUSE: the address is another group's, EEXIST: the rank is taken, ENOTSUP: no such engine, plugin or
 * library, ENODEV: a rank has no device, EBUSY: two ranks have the same one. Errors of one rank in joining "nccl" are
 * those of all.
 */
tensor_group *tensor_group_open(const char *engine, const struct tensor_group_options *options);
/* Leave and free the group; NULL is ignored. Operations that have not ended fail with EPIPE; no other thread may be in
 * a call. */
void tensor_group_close(tensor_group *group);
/* -EINVAL for NULL. */
int tensor_group_rank(const tensor_group *group);
int tensor_group_size(const tensor_group *group);
/* The device of this rank in a group of "nccl"; the CPU in others, and for NULL with the error set. */
tensor_device tensor_group_device(const tensor_group *group);
/* "local", "mpi" or "nccl"; NULL for NULL. */
const char *tensor_group_engine(const tensor_group *group);

struct tensor_group_stats {
	uint64_t operations; /* that have ended on this rank */
	uint64_t bytes;	     /* of this rank's tensors that they read and wrote */
	int failed;	     /* the rank that ended the group by its death or its error, or -1 */
};
#ifdef __cplusplus /* a function with the name of a structure, as stat() */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif
/* Read the counters. 0 or -EINVAL. */
int tensor_group_stats(tensor_group *group, struct tensor_group_stats *stats);
#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

/* ---- collectives ---- */

/* No rank returns before all have called. */
int tensor_group_barrier(tensor_group *group, tensor_request **request);
/* The elements of rank root's t to the t of all ranks. */
int tensor_group_broadcast(tensor_group *group, tensor *t, int root, tensor_request **request);
/* out, of in's shape and dtype: the elements of all ranks, reduced. The same bits on all ranks. */
int tensor_group_all_reduce(tensor_group *group, tensor *out, tensor *in, enum tensor_group_op op,
			    tensor_request **request);
/* The same on rank root alone; out of other ranks is not used and may be NULL. */
int tensor_group_reduce(tensor_group *group, tensor *out, tensor *in, enum tensor_group_op op,
			int root, tensor_request **request);
/* in is [size * n, ...]; out, [n, ...], the part of this rank, reduced. */
int tensor_group_reduce_scatter(tensor_group *group, tensor *out, tensor *in,
				enum tensor_group_op op, tensor_request **request);
/* in is [n, ...]; out, [size * n, ...], the tensors of all ranks one after the other. */
int tensor_group_all_gather(tensor_group *group, tensor *out, tensor *in, tensor_request **request);
/* The same on rank root alone; out of other ranks is not used and may be NULL. */
int tensor_group_gather(tensor_group *group, tensor *out, tensor *in, int root,
			tensor_request **request);
/* in of rank root is [size * n, ...], and may be NULL on others; out, [n, ...], the part of this rank. */
int tensor_group_scatter(tensor_group *group, tensor *out, tensor *in, int root,
			 tensor_request **request);
/* in and out are [size * n, ...]: part i of rank j's in becomes part j of rank i's out. They share no memory. */
int tensor_group_all_to_all(tensor_group *group, tensor *out, tensor *in, tensor_request **request);

/* ---- from one rank to another ---- */

/*
 * Send to a rank, which receives into a tensor of the same shape and dtype; messages between two ranks keep their
 * order. A send ends when the receiver has taken it. -EINVAL on the receiver, with both values, if they differ: the message is then
 * dropped.
 */
int tensor_group_send(tensor_group *group, tensor *in, int to, tensor_request **request);
int tensor_group_recv(tensor_group *group, tensor *out, int from, tensor_request **request);

/* ---- requests ---- */

/*
 * Wait for the end of an operation, at most for a time (negative: no limit). Returns its result and frees the request,
 * or -ETIMEDOUT, with the error text "request_wait: ...", and the request remains. -EINVAL for NULL.
 *
 * In a group of "nccl", with tensors of the device, it waits until the operation is queued. What this thread queues in its current stream
 * from then on waits for it.
 */
int tensor_request_wait(tensor_request *request, int64_t timeout_ns);
/* 1 if the operation has ended, also on a device: tensor_request_wait() returns at once; 0 if not; -EINVAL for NULL. */
int tensor_request_done(tensor_request *request);

#ifdef __cplusplus
}
#endif
#endif
