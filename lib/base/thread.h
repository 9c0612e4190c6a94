/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The state of a thread: dispatch keys, open scopes, free blocks, the error record. */
#ifndef TENSOR_THREAD_H
#define TENSOR_THREAD_H

#include "base/compiler.h"

/* Free blocks of one size class, taken and given without a lock (storage/magazine.h). */
#define MAGAZINE      64
#define BLOCK_CLASSES 64

/* Tensor structs that a scope released and that are not reused yet (storage/magazine.h). */
#define HELD_TENSORS 64

struct magazine {
	unsigned n;
	void *slot[MAGAZINE];
};

/* Modes that a function of the program can set for the calls inside of it, and what a node of the graph finds. */
struct thread_modes {
	uint32_t include, exclude;	       /* dispatch keys */
	bool grad_enabled, inference, anomaly; /* see grad_mode.c */
	bool dual_gradients;		       /* the innermost backward propagates tangents */
	uint8_t autocast_dtype;		       /* enum tensor_dtype, see tensor_autocast() */
	bool past_forward;	 /* forward mode leaves this call to the operators inside of it */
	uint32_t autocast_depth; /* of open scopes */
	struct batch_level *batch_level; /* of the innermost tensor_vmap() */
	tensor_generator *generator;	 /* borrowed; replaces the default generator unless NULL */
};

struct tensor_thread {
	struct thread_modes modes;
	uint32_t scope_depth, scope_n, scope_cap;
	tensor **scope;
	struct magazine blocks[BLOCK_CLASSES];
	unsigned held_at; /* index of the oldest entry of held[] */
	void *held[HELD_TENSORS];
	const struct traced_op *traced; /* the innermost operator that is traced */
	struct trace_span *span;	/* the innermost span, of any category */
	void *autograd;			/* struct autograd_thread, owned by lib/autograd */
	struct tensor_error error;
	bool no_kernel; /* the error says that a device has no kernel, which dispatch_may_fall_back() reads */
};

extern __thread struct tensor_thread *tensor_thread_ptr __attribute__((tls_model("initial-exec")));
struct tensor_thread *tensor_thread_init(void);

/* Keys that a new thread includes. An operator has a function for this one only while operators are traced. */
#define THREAD_FIRST_INCLUDE (1u << TENSOR_KEY_PROFILE)

static inline struct tensor_thread *thread(void)
{
	struct tensor_thread *th = tensor_thread_ptr;

	return likely(th) ? th : tensor_thread_init();
}

/*
 * Set the modes of a new thread that records nothing, but for the generator; returns those before. For tensors that an
 * object keeps: made in inference mode they could not be changed later, and in tensor_vmap() or tensor_autocast they
 * would have other values.
 */
static inline struct thread_modes thread_enter_plain(void)
{
	struct tensor_thread *th = thread();
	struct thread_modes before = th->modes;

	th->modes = (struct thread_modes){ .include = THREAD_FIRST_INCLUDE,
					   .generator = before.generator };
	return before;
}

/* Stages of the exit of a thread, in this order. A stage has one function, set by a constructor. */
enum thread_exit_stage {
	THREAD_EXIT_AUTOCAST,
	THREAD_EXIT_SCOPES,
	THREAD_EXIT_AUTOGRAD,
	THREAD_EXIT_MAGAZINES,
	THREAD_EXIT_STAGES
};

void thread_on_exit(enum thread_exit_stage stage, void (*fn)(struct tensor_thread *th));

#endif
