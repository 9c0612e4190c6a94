/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Captured work of a stream (include/tensor/cuda.h). The blocks that are allocated in a capture come from a private pool,
 * which other graphs may share, and the graph holds all other memory that its operators use. Numbers that differ from
 * replay to replay are in device memory, which a replay sets before the graph runs.
 *
 * Lock order: those of memory.c, then those of captures.c. A graph is used by one thread at a time; while it is captured,
 * only by the thread that captures.
 */
#ifndef TENSOR_CUDA_GRAPH_H
#define TENSOR_CUDA_GRAPH_H

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/launch_nn.h"

#include <pthread.h>

#define GRAPH_GENERATORS 32

/* The memory and the stream of captures. A stream is used again by later pools and never destroyed, because blocks and
 * nodes of autograd refer to it. */
struct graph_pool {
	int refs; /* graphs */
	int device;
	uint64_t owner; /* of its blocks */
	cudaStream_t stream;
	cudaEvent_t last; /* what the next replay of a graph of this pool follows */
	bool recorded;	  /* `last` was */
	bool capturing;
	struct graph_pool *next; /* that are unused */
};

/* Steps of an optimizer: two numbers for each item, computed from its count before each replay. */
struct graph_rates {
	struct graph_rates *next;
	struct optimizer_step step;
	cuda_rates_of compute;
	double *to;
	int n;
	tensor *count[CUDA_STEP_ITEMS];
	double nth[CUDA_STEP_ITEMS]; /* step of the count's in the capture, from 1 */
};

/* The count of an optimizer's steps for a parameter, of f32 on the CPU: a replay adds those of the capture. */
struct graph_count {
	tensor *t; /* NULL: a free place */
	float steps;
};

/* A check of values on the device (check.c): its flag, and the first value of the flag that is an error. */
struct graph_check {
	struct graph_check *next;
	const char *op;
	unsigned long long *flag;
};

struct tensor_cuda_graph {
	int device;
	enum { GRAPH_EMPTY, GRAPH_CAPTURING, GRAPH_BROKEN, GRAPH_READY } state;
	uint64_t id; /* of the capture; never used again */
	pthread_t thread;
	cudaStream_t before; /* of the thread that captures */
	struct graph_pool *pool;
	cudaGraphExec_t exec;
	struct tensor_error why; /* GRAPH_BROKEN */
	bool lost;		 /* no memory for a description */
	struct tensor_cuda_graph *next;

	uint64_t *words; /* on the device: seed and offset of each generator */
	int ngenerators;
	struct {
		tensor_generator *g;
		uint64_t used;
	} generator[GRAPH_GENERATORS];
	struct graph_rates *rates;
	struct graph_check *checks;
	struct graph_count *counts; /* a table by address */
	size_t ncounts, counts_size;
	struct tensor_storage **held; /* a table by address */
	size_t nheld, held_size;
};

/* ---- captures.c ---- */

/* The calling thread's stream becomes that of the capture. 0 or -errno. */
int capture_open(struct tensor_cuda_graph *g);
/* The stream becomes the one before. Sets *graph unless that is NULL. */
cudaError_t capture_close(struct tensor_cuda_graph *g, cudaGraph_t *graph);

/* ---- capture.c ---- */

/* Device memory that is not allocated in the capture, set to a byte; NULL with the error set. */
void *capture_outside_memory(const struct tensor_cuda_graph *g, const char *op, int byte,
			     size_t nbytes);
/* Releases what the graph holds. */
void capture_forget(struct tensor_cuda_graph *g);
/* A call in the stream that the thread had before the capture. */
int capture_outside(const struct tensor_cuda_graph *g, const char *op, struct cuda_call *c);

/* ---- steps.c ---- */

/* The steps of a count in the capture so far. */
double capture_steps(const struct tensor_cuda_graph *g, const tensor *count);

#endif
