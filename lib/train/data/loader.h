/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A loader. loader.c has the public functions, sample.c loads a batch in any process,
 * worker.c is the worker process, crew.c starts workers and ends them,
 * send.c sends them batches, receive.c takes the results, message.h has the
 * messages. sampler.c determines order and seeds.
 */
#ifndef TENSOR_LOADER_H
#define TENSOR_LOADER_H

#include "core/tensor_impl.h"
#include "train/data/message.h"

#include <tensor/data.h>
#include <tensor/random.h>

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>

#define PREFETCH_MAX 64

/* An error, and the sample that it concerns; sample -1: none. */
struct loader_failure {
	int code; /* errno, 0: none */
	int64_t sample;
	char text[TENSOR_ERROR_TEXT];
};

/* ---- memory that the loader and its workers share ---- */

/* Values of loader_board.at[].sample below 0. */
#define AT_NOTHING (-1)
#define AT_INIT	   (-2)
#define AT_COLLATE (-3)

/* The work of a worker, written by it, so that it is known after the worker was killed. */
struct worker_at {
	_Atomic int64_t sample; /* index of the sample, or AT_ */
	_Atomic int64_t batch;
	_Atomic uint32_t run;
} __attribute__((aligned(64)));

struct loader_board {
	_Atomic uint32_t run; /* batches of other runs are not wanted any more */
	_Atomic bool stop;
	struct worker_at at[]; /* one for each worker, then the order of the epoch */
};

/* ---- a worker, as its loader sees it ---- */

enum buffer_state {
	BUFFER_NONE,
	BUFFER_WORKER, /* the worker may write to it */
	BUFFER_READY,  /* has an output of a batch that was not returned yet */
	BUFFER_OUT,    /* the program has a tensor on it */
	BUFFER_BACK,   /* the worker may use it again but was not told yet */
	BUFFER_DROP    /* the worker must free it but was not told yet */
};

struct loader_buffer {
	enum buffer_state state;
	struct tensor_storage *storage; /* owned; another reference is the program's */
	uint32_t fork;			/* fork_generation when it was given to the program */
};

struct loader_worker {
	int number;
	pid_t pid;		    /* 0: not running */
	int socket, life, pidfd;    /* -1: none. The worker is killed when `life` is closed */
	int peer_socket, peer_life; /* the ends of the worker, until it has them */
	tensor_channel *channel;    /* on `socket` */
	int pending;		    /* batches that it has not answered */
	uint32_t nbuffers, nfresh;
	struct loader_buffer *buffers;			     /* by number, nbuffers of them */
	struct tensor_storage *fresh[TENSOR_LOADER_OUTPUTS]; /* received before their result */
};

enum slot_state { SLOT_EMPTY, SLOT_SENT, SLOT_READY, SLOT_FAILED };

/* A batch between the worker and the program. */
struct loader_slot {
	enum slot_state state;
	struct loader_worker *worker;
	struct loader_output outputs[TENSOR_LOADER_OUTPUTS];
	struct loader_failure failure;
};

struct tensor_loader {
	struct tensor_loader_options options; /* with defaults filled in */
	struct tensor_sample_type types[TENSOR_LOADER_OUTPUTS];
	int64_t shapes[TENSOR_LOADER_OUTPUTS][TENSOR_MAX_DIMS];
	uint64_t seed;
	int64_t batches;	 /* of an epoch */
	int64_t epoch, position; /* the next sample */
	int64_t total;	/* samples of an epoch of all shards; options.length: of this one */
	bool ordered;	/* `order` is that of the epoch */
	int64_t *order; /* in the board; NULL: 0, 1, 2 ... */
	struct loader_board *board;
	size_t board_bytes;
	pthread_mutex_t lock;
	_Atomic pid_t inside; /* the thread that is in a function of the loader */
	pid_t owner;	      /* process that made it */

	/* The rest is for workers. */
	struct loader_worker *workers;
	uint32_t run;  /* of board->run */
	int64_t first; /* number of the next batch for the program */
	int64_t sent;  /* batches from `first` to before this one are in slots that are not empty */
	int window;    /* number of slots */
	struct loader_slot *slots;   /* of batch b: slots[b % window] */
	struct loader_failure idle;  /* a worker that died without a batch */
	tensor_loader *next, **link; /* in the list of crew.c */
};

/* ---- program.c ---- */

/* Sets the modes that functions of the program find. Returns those before, for the caller to restore. */
struct thread_modes enter_program(tensor_generator *g);

/* ---- sampler.c ---- */

/* Seed of the order of an epoch, and of the sample at a position of an epoch. */
uint64_t order_seed(uint64_t seed, int64_t epoch);
uint64_t sample_seed(uint64_t seed, int64_t epoch, int64_t position);
/* The position in the epoch of all shards of a position of this one. */
static inline int64_t whole_position(const tensor_loader *l, int64_t position)
{
	return l->options.shard + position * l->options.shards;
}

/* Writes the order of the loader's epoch. 0, or -errno with the error set. */
int sampler_fill(tensor_loader *l);

/* ---- sample.c ---- */

/* Makes the memory of output i of a batch: an owned tensor. NULL with the error set. */
typedef tensor *(*output_alloc)(void *ctx, int i, enum tensor_dtype dtype, const int64_t *sizes,
				int ndim);

/* A batch to load. */
struct batch_job {
	tensor_loader *l;
	int64_t epoch, position, count;
	output_alloc alloc;
	void *ctx;
	struct worker_at *at; /* NULL without workers */
	uint32_t run;
};

/* outputs[0 ... batch_outputs - 1]: owned. -errno: all are NULL, and `failure` has the reason. */
int load_batch(const struct batch_job *job, tensor **outputs, struct loader_failure *failure);

/* ---- worker.c ---- */

/* A worker process, forked with all signals blocked; signals: the mask of the caller. */
void worker_main(tensor_loader *l, struct loader_worker *w, const sigset_t *signals)
	__attribute__((noreturn));
/*
 * The kernel sends SIGKILL to the process when the last write end of the pipe is closed, also while a function of the
 * program runs or the process is stopped. PR_SET_PDEATHSIG would do so at the end of the thread that forked.
 */
void kill_at_end_of(int life, pid_t pid);

/* ---- crew.c ---- */

/* Allocates the workers and starts them. 0, or -errno with the error set. */
int crew_start(tensor_loader *l);
/* Starts those that do not run. */
int crew_restart(tensor_loader *l);
/* Ends all workers and frees what belongs to them. In another process than the owner only memory. */
void crew_end(tensor_loader *l);
/* Takes the worker that has ended, or that this call ends, out of the loader; text: how it ended. */
void crew_bury(tensor_loader *l, struct loader_worker *w, char *text, size_t size);

/* ---- send.c ---- */

/* Sends batches to workers that have fewer than `prefetch`. */
void dispatch(tensor_loader *l);
/* Gives the buffers whose tensors the program has released back to their workers. */
void recycle_buffers(tensor_loader *l);
/* Forgets all batches that were not returned. */
void cancel_batches(tensor_loader *l);
struct loader_slot *slot_of(const tensor_loader *l, int64_t batch);
/* The entry of a buffer number; NULL: no memory. */
struct loader_buffer *buffer_entry(struct loader_worker *w, uint32_t number);
/* Gives back the buffers of a batch that the program never got. */
void return_outputs(struct loader_worker *w, const struct loader_output *outputs, uint32_t n);
/* Frees buffers that were received and not named yet; all buffers of a worker. */
void drop_fresh(struct loader_worker *w);
void drop_buffers(struct loader_worker *w);

/* ---- receive.c ---- */

/* Waits until the next batch is there. 0, or -errno with the error set. */
int await_batch(tensor_loader *l);
/* The tensors of the next batch, which is ready. 0, or -errno with the error set. */
int take_batch(tensor_loader *l, tensor **batch);

#endif
