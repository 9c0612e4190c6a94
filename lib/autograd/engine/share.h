/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A task with nodes on other devices than the CPU. Threads of the devices and the caller run its nodes at the same time:
 * counts, arrived gradients and the caller's queue are under the lock of the task, which is not held while an operator or
 * a function of the program runs. Every gradient is in the stream of the output that it belongs to.
 */
#ifndef TENSOR_AUTOGRAD_SHARE_H
#define TENSOR_AUTOGRAD_SHARE_H

#include "autograd/engine/carry.h"
#include "autograd/engine/heap.h"

#include <pthread.h>

/* A stream in which the task runs nodes. */
struct used_stream {
	tensor_device device;
	uint32_t nr;
};

struct task_share {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a node of the caller is ready, or `pending` is 0 */
	struct node_heap ready; /* nodes of the caller */
	uint32_t pending;	/* nodes that are queued for or run by threads of devices */
	uint32_t epoch;		/* node_lock_epoch at the beginning */
	int err;		/* of the first node that failed; no further one is run */
	struct tensor_error error;
	struct carried caller;
	double *paths; /* of each state, owned; NULL if one thread runs all nodes */
	tensor_device
		own; /* nodes of this device run on the calling thread, as those of the CPU; type 0: none */
	bool alone;	       /* all nodes run on the calling thread */
	bool waits;	       /* a node runs on another thread */
	tensor_device started; /* the device whose thread was started last */
	uint64_t seq,
		last_seq; /* of the nodes that existed before; of those that threads recorded meanwhile */
	struct used_stream *streams;
	uint32_t nstreams, cap;
};

/* The output whose device and stream are the node's: the first one that is not on the CPU. */
unsigned share_output(const tensor_node *n);
/* The node runs on the calling thread of the backward. */
bool share_is_own(const struct task_share *s, tensor_device device);

/* NULL with the error set. */
struct task_share *share_new(void);
void share_free(struct task *k);

/* 0, or -ECANCELED in a child of a fork inside of the backward, which does not have the other threads. */
int share_lock(struct task_share *s);
void share_unlock(struct task_share *s);

/* Adds a node to the queue of the thread that runs it. 0, or -errno. */
int share_push(struct task *k, uint32_t index);
/*
 * Adds a gradient (consumed; may be NULL) that came over an edge, in the stream of the output. *complete: it was the
 * last one of the node. 0, or -errno.
 */
int share_arrived(struct task *k, uint32_t to, uint32_t nr, tensor *grad, bool *complete);
/* The task ends with the calling thread's error, unless it failed before. */
void share_fail(struct task *k, int err);

/* Adds the streams of the node's outputs. 0, or -ENOMEM. */
int share_add_streams(struct task_share *s, const tensor_node *n);
/* The task's streams wait for the caller's current ones, or (end) the caller's for them. 0, or -errno. */
int share_order_streams(const struct task_share *s, bool end);

#endif
