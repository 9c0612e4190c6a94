/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Between process groups and the engines that carry their data. An engine gets operations on contiguous memory of the
 * host, or of the device that it asks for (struct group_device), whose arguments were checked as far as one rank can. All its
 * functions but open, close and those that say otherwise are called by one thread at a time.
 */
#ifndef TENSOR_GROUP_ENGINE_H
#define TENSOR_GROUP_ENGINE_H

#include "core/tensor_impl.h"
#include "group/engine/call.h"

#include <pthread.h>
#include <tensor/group.h>

enum group_kind {
	GROUP_BARRIER,
	GROUP_BROADCAST,
	GROUP_ALL_REDUCE,
	GROUP_REDUCE,
	GROUP_REDUCE_SCATTER,
	GROUP_ALL_GATHER,
	GROUP_GATHER,
	GROUP_SCATTER,
	GROUP_ALL_TO_ALL,
	GROUP_SEND,
	GROUP_RECV,
};

extern const char *const group_kind_names[];
const char *group_kind_name(int kind);

#define CALL_TEXT 256
/* "all_reduce (sum) of f32 [2, 3]" into text; returns it. */
const char *group_call_text(const struct group_call *call, char *text);
/* Sets the error of two ranks that differ; returns -EINVAL. */
int group_calls_differ(int a, const struct group_call *of_a, int b, const struct group_call *of_b);
bool group_calls_match(const struct group_call *a, const struct group_call *b);

struct tensor_request {
	tensor_group *group;
	struct group_call call; /* root: also the peer of a send or receive */
	/*
	 * Contiguous memory of the host, or of a device: n elements of call.dtype in `in`, or, where a rank has a part for each
	 * rank, n in each part. NULL where this rank has none. `out` may be `in`.
	 */
	const void *in;
	void *out;
	int64_t n;

	/* The engine's: zero at the start. */
	uint64_t step;
	int64_t at; /* elements that are done */
	unsigned phase;
	void *private[2];
	void *operation; /* of struct group_device; NULL: it works on memory of the host */

	/* The group's. */
	tensor_device device; /* of the caller's tensors, if one of them is not on the CPU */
	void *stream;	      /* of the device: in which tensors are packed and results written */
	tensor *out_tensor,
		*in_tensor; /* owned: the caller's, and those that are read and written for them */
	tensor *out_packed,
		*in_packed; /* owned, or NULL: the engine reads and writes the caller's */
	bool started, ended;
	int err;
	struct tensor_request *next;
	char text[TENSOR_ERROR_TEXT]; /* of err; the last member, which a new request does not initialise */
};

/*
 * The functions of an engine that queues operations in the streams of a device. A request with such memory has an
 * operation of the engine, and ends on the host when it is queued.
 */
struct group_device {
	/* Where the tensors of an operation must be, of which t is one: on the CPU, or on a device. */
	tensor_device (*place)(const tensor_group *g, enum group_kind kind, const tensor *t);
	/*
	 * In the thread of the call, when r->stream is that of the caller: makes r->operation, which comes after what was queued
	 * there. later: the call does not wait, and r->stream may become another one. 0, or -errno with the error set.
	 */
	int (*begin)(tensor_request *r, bool later);
	/*
	 * The operation and the copies of its results are queued, or it has failed. The engine takes the tensors of r that
	 * the device may still use. 0, or -errno with the error set.
	 */
	int (*finish)(tensor_request *r);
	/* Work that the stream queues later waits for the operation. Any thread, also after close(). */
	int (*order)(tensor_request *r, void *stream);
	/* Whether the device has carried it out. Any thread, also after close(). */
	bool (*reached)(tensor_request *r);
	/* Frees r->operation. Any thread, also after close(). */
	void (*release)(tensor_request *r);
};

struct group_engine {
	const char *name;
	/* Joins: sets rank, size and state. 0, or -errno with the error set. */
	int (*open)(tensor_group *g, const struct tensor_group_options *options);
	void (*close)(tensor_group *g);
	/* Begins an operation, in the order of the calls; may be NULL. 0, or -errno with the error set. */
	int (*start)(tensor_request *r);
	/* Goes on as far as possible without waiting. 1: it has ended, 0: it has not, or -errno with the error set. */
	int (*step)(tensor_request *r);
	/*
	 * The operation ends, also one that step() did not end, because the group has: frees what the engine keeps for it. May
	 * be NULL.
	 */
	void (*drop)(tensor_request *r);
	/* Before a sleep: what peers do from now on ends it. step() is called once more in between. May be NULL. */
	void (*arm)(tensor_group *g);
	/* Sleeps, at most for a time, or does not sleep after all. -errno with the error set if a rank that r needs is gone. */
	int (*sleep)(tensor_group *g, tensor_request *r, int64_t ns);
	/* Ends a sleep of this rank; any thread, with the lock of the group. May be NULL. */
	void (*wake)(tensor_group *g);
	/* The time is over: sets the error, which names the ranks that are late. */
	int (*late)(tensor_group *g, tensor_request *r);
	/* This rank leaves because of an error. May be NULL. */
	void (*give_up)(tensor_group *g);
	/* g->stats has changed. May be NULL. */
	void (*counted)(tensor_group *g);
	/*
	 * A rank that has died, or left after an error, ends the group: -errno with the error set, else 0. closed: one that
	 * has closed the group does so, too. Any thread; may be NULL.
	 */
	int (*lost)(tensor_group *g, bool closed);
	const struct group_device *device; /* or NULL */
};

/* Sends to one rank, or receives from it, which go one after the other. */
struct message_queue {
	struct tensor_request *first, **last;
};

struct tensor_group {
	const struct group_engine *engine;
	void *state; /* the engine's */
	int rank, size;
	tensor_device device; /* of this rank; the CPU, or open() sets it */
	int64_t timeout_ns;   /* negative: none */
	int64_t spin_ns;      /* a wait spins for this time before it sleeps; open() sets it */
	unsigned process;     /* of group_process, to tell a child of fork() */

	pthread_mutex_t running; /* held by the thread that calls the engine; taken inside of lock */
	pthread_mutex_t lock;	 /* of all that follows */
	pthread_cond_t changed;	 /* a request was added or has ended, or the group ends */
	pthread_t worker;
	bool has_worker, stop;
	bool left; /* the other ranks were told; of the thread that holds running */
	int refs;  /* of the program, and of requests that it has not waited for */
	struct tensor_request *first, **last; /* collectives that wait for their turn, or run */
	struct message_queue *
		queues; /* sends to each rank, then receives from each; NULL before the engine has joined */
	int64_t messages; /* in all queues */
	int err;	  /* that ended the group, and its text */
	char text[TENSOR_ERROR_TEXT];
	struct tensor_group_stats stats;
};

/* Ends the group because of a rank; -1: none is to blame. Sets the error, returns -code. */
int group_fail(tensor_group *g, int rank, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5), cold));

/* The same because of the thread's error, which the other ranks cannot know. Returns it. */
int group_fail_here(tensor_group *g);
/* The same for operations that did not end in time: what has not happened, and a list of the ranks that are late, or "". */
int group_fail_late(tensor_group *g, const char *what, const char *ranks);
/* The group has ended because of an error: tells the other ranks. No lock of the group may be held. */
void group_leave(tensor_group *g);
/* Appends a rank to a list of them: "1, 3". */
void group_list_rank(char *list, size_t size, int rank);

/*
 * to: the elements i of n parts, whose first elements are `pitch` bytes apart (any sign), reduced in the order of the
 * parts, which it does not overlap. 0, or -errno with the error set.
 */
int group_reduce(void *to, const void *parts, ptrdiff_t pitch, int n, int64_t elements,
		 enum tensor_dtype dtype, enum tensor_group_op op);
/* Memory on the device of r, of its stream, for n elements of each rank; owned. NULL with the error set. */
tensor *group_parts_new(const tensor_request *r);
/* In the stream of r: its result, of the parts of all ranks. 0, or -errno with the error set. */
int group_reduce_parts(const tensor_request *r, tensor *parts);
/* Whether the dtype has the operation; -EINVAL or -EOPNOTSUPP with the error set. */
int group_reduce_check(const char *what, enum tensor_dtype dtype, enum tensor_group_op op);

extern const struct group_engine group_local;
static inline bool request_is_message(const tensor_request *r)
{
	return r->call.kind == GROUP_SEND || r->call.kind == GROUP_RECV;
}

/* Whether `in` has a part for each rank. */
static inline bool request_has_parts(const tensor_request *r)
{
	return r->call.kind == GROUP_REDUCE_SCATTER || r->call.kind == GROUP_SCATTER ||
	       r->call.kind == GROUP_ALL_TO_ALL;
}

/* Bytes of n elements. */
static inline int64_t request_bytes(const tensor_request *r)
{
	return r->n * (int64_t)tensor_itemsize((enum tensor_dtype)r->call.dtype);
}

/* The thread's current stream of the device becomes `stream`; returns the former one. Does nothing for the CPU. */
void *group_enter_stream(tensor_device device, void *stream);

/* For plugins. */
void tensor_register_group_engine(const struct group_engine *engine, const char *why_not);
/* A group of the engine that mpirun or tensorrun has chosen, for an engine that needs one of the host. */
tensor_group *group_open_host(const struct tensor_group_options *options);

#endif
