/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Batching rules. A rule computes an operator on batched tensors by operators on their physical
 * tensors: it reads the call and sets c->rets to results in the open scope that have the batch as
 * dimension 0. The generated table names the rule of each operator.
 */
#ifndef TENSOR_BATCH_H
#define TENSOR_BATCH_H

#include "core/batched.h"
#include "dispatch/dispatch.h"

#include "batch_rules.h"

#include <tensor/random.h>

#define BATCH_LISTS 6 /* lists of numbers that a rule may change in one call */

struct batch_call {
	const tensor_op *op; /* the function that the rule computes, also for an in-place form */
	struct batch_level *level;
	int64_t size;		  /* number of samples */
	const tensor_value *args; /* of the caller: the samples */
	tensor_value *phys;	  /* a copy with physical tensors, which rules change */
	int nargs, nrets;
	uint64_t batched; /* bit i: args[i] is a batched tensor, or a list with one */
	bool inplace;	  /* phys[0] is to be changed in place; c->rets[0] is not used */
	tensor_value *rets;
	/* Set by the rule of random operators: the loop gives the generator this state before each sample. */
	tensor_generator *restart;
	struct tensor_generator_state restart_state;
	int nlists;
	int64_t lists[BATCH_LISTS][TENSOR_MAX_DIMS + 1];
};

/* Generated. */
extern const struct batch_row batch_rows[];
extern const int batch_rows_count;

/* ---- arguments ---- */

static inline bool arg_batched(const struct batch_call *c, int i)
{
	return c->batched >> i & 1;
}

/* True if argument i is a tensor. */
static inline bool arg_tensor(const struct batch_call *c, int i)
{
	return c->args[i].kind == TENSOR_VALUE_TENSOR && c->args[i].t &&
	       c->args[i].t != tensor_none;
}

/* The sample, and the physical tensor; NULL for an absent one. */
static inline tensor *arg_sample(const struct batch_call *c, int i)
{
	return arg_tensor(c, i) ? c->args[i].t : NULL;
}

static inline tensor *arg_physical(const struct batch_call *c, int i)
{
	return arg_tensor(c, i) ? c->phys[i].t : NULL;
}

/* For calls of operators, which get tensor_none for an absent tensor. */
static inline tensor *or_none(tensor *t)
{
	return t ?: tensor_none;
}

static inline int64_t arg_int(const struct batch_call *c, int i)
{
	return c->args[i].i;
}

/* Number of dimensions of a sample of argument i. */
static inline int arg_ndim(const struct batch_call *c, int i)
{
	return c->args[i].t->ndim;
}

/* The position of the argument `name`, -1 if there is none. */
int batch_arg(const struct batch_call *c, const char *name);
/* Space for a list; NULL with the error set if all is in use. */
int64_t *batch_list(struct batch_call *c);
/* Argument i with the batch as dimension 0: its physical tensor, or an expanded view. NULL for an absent one, and
 * with the error set. */
tensor *batch_full(const struct batch_call *c, int i);
/* t, whose dimension 0 is the batch, with n dimensions of size 1 after it. */
tensor *batch_pad(tensor *t, int n);
/* t with its dimensions 0 and 1 as one; batch_unfold() is the inverse. */
tensor *batch_fold(tensor *t);
tensor *batch_unfold(const struct batch_call *c, tensor *t);
/* t, whose dimension 0 is the batch, with each sample as a vector. */
tensor *batch_flatten(const struct batch_call *c, tensor *t);
/* A view of t, without the batch, with dimension 0 of that size and stride 0. */
tensor *batch_expand(const struct batch_call *c, tensor *t);
/* 0 .. size - 1 as i64, with the shape [size, 1, ...] of n dimensions, times step. */
tensor *batch_numbers(const struct batch_call *c, const tensor *like, int n, int64_t step);

/* ---- results ---- */

/* The physical tensor of output i of a function, with its tangent; in the open scope. NULL with the error set. */
tensor *batch_output(const struct batch_level *level, int i, tensor *t);

/* Sets result i; -errno for NULL. */
int batch_return(struct batch_call *c, int i, tensor *t);
/* Calls the operator with c->phys. */
int batch_call_physical(struct batch_call *c);
/* The same for another operator. */
int batch_call_op(struct batch_call *c, const char *name, const tensor_value *args, int nargs);

static inline tensor_value value_tensor(tensor *t)
{
	return (tensor_value){ .kind = t ? TENSOR_VALUE_TENSOR : TENSOR_VALUE_NONE, .t = t };
}

static inline tensor_value value_int(int64_t i)
{
	return (tensor_value){ .kind = TENSOR_VALUE_INT, .i = i };
}

static inline tensor_value value_ints(const int64_t *data, int64_t len)
{
	return (tensor_value){ .kind = TENSOR_VALUE_INTS, .ints = { data, len } };
}

static inline int batch_failed(void)
{
	return -thread()->error.code;
}

#endif
