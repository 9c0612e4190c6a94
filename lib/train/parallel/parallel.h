/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Data-parallel training: bucket.c has the gradients that travel together, owner.c the
 * parts of a sharded optimizer, data_parallel.c the other public functions.
 */
#ifndef TENSOR_LIB_PARALLEL_H
#define TENSOR_LIB_PARALLEL_H

#include "core/tensor_impl.h"

#include <pthread.h>
#include <tensor/autograd.h>
#include <tensor/parallel.h>

struct parameter {
	struct tensor_data_parallel *dp;
	tensor *leaf;	   /* owned */
	tensor_hook *hook; /* or NULL */
	int owner;	   /* the rank whose optimizer has it */
	int bucket;
	int64_t offset; /* in the bucket, elements */
	bool ready;	/* its gradient is in the bucket */
};

struct bucket {
	tensor *flat; /* owned, on the device of the parameters */
	void *stream; /* of the device: the one in which the last gradient was copied */
	int pending;  /* parameters that are not ready */
	bool filled;  /* some are */
	tensor_request *request;
};

struct tensor_data_parallel {
	tensor_module *module; /* or NULL: its buffers are */
	tensor **buffers;      /* owned */
	int64_t nbuffers;
	tensor_group *group;
	struct tensor_data_parallel_options options;
	bool sync;
	int n, nbuckets;
	struct parameter *parameters; /* in the order of the module */
	struct bucket *buckets;
	int *order;	/* of the parameters in the buckets */
	tensor **owned; /* this rank's, borrowed */
	int64_t nowned;

	pthread_mutex_t lock; /* of what hooks change: ready, pending, and */
	int next;	      /* the bucket that is sent next */
	int *came, ncame;     /* parameters in the order in which they became ready */
	int err;	      /* of an operation that has ended, until buckets_wait() returns it */
	char text[TENSOR_ERROR_TEXT];
	bool ordered; /* the buckets have rank 0's order of a first backward */
};

/* Divides the parameters into buckets, in the order of dp->order. 0, or -ENOMEM with the error set. */
int buckets_make(tensor_data_parallel *dp);
void buckets_free(tensor_data_parallel *dp);
/* The gradient is there. Sends the buckets that are complete. The caller holds lock. 0, or -errno with the error set. */
int bucket_add(struct parameter *p, tensor *grad);
/* The same for a parameter that this rank did not use. */
int bucket_add_zeros(struct parameter *p);
/*
 * Waits for all buckets that were sent. Without a limit (negative) returns their first error, and begins anew. Otherwise
 * -ETIMEDOUT with the error set, or 0 when all have ended, in whatever way.
 */
int buckets_wait(tensor_data_parallel *dp, int64_t timeout_ns);
/* The part of the bucket with the parameter's shape: a new tensor, or NULL with the error set. */
tensor *bucket_part(const struct parameter *p);

/* Each parameter, the largest first, to the rank with the fewest elements. 0, or -ENOMEM with the error set. */
int owners_choose(tensor_data_parallel *dp);

#endif
