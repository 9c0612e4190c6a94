/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The fuzzer of operators: random tensors with random strides, an operator called by name, and the
 * expected result of a plain implementation.
 */
#ifndef FUZZ_OPS_H
#define FUZZ_OPS_H

#include "plain.h"

#define ARGS	 8
#define RESULTS	 2
#define LIST_MAX 6

/* ---- random numbers ---- */

uint64_t chance(void);
int64_t below(int64_t n); /* Random in 0 .. n-1. */
bool one_in(int n);

/* ---- a case ---- */

struct call {
	const struct row *row;
	char name[80];
	int nargs, ntensors, nresults;
	tensor_value args[ARGS];
	/* The tensor arguments in order, and their values before the call. */
	tensor *t[LIST_MAX];
	struct plain in[LIST_MAX];
	struct plain want[RESULTS];
	bool refuse; /* the arguments are invalid: the call must fail */
	bool either; /* success is permitted as well, since no element is computed */
};

struct row {
	const char *name;
	/* Makes the arguments and the expected results. */
	void (*make)(struct call *c);
	bool inplace; /* has the form name_ */
	bool out;     /* has the form with out= */
	int detail;   /* for make: the function of the family */
};

extern const struct row pointwise_rows[], shape_rows[], index_rows[];
extern const int pointwise_count, shape_count, index_count;

/* ---- building arguments ---- */

/* A tensor of this dtype (0: any) with a random shape and strides; owned by the open scope. */
tensor *any_tensor(enum tensor_dtype dtype);
/* With ndim dimensions (-1: any number) of these sizes (NULL: any). */
tensor *tensor_like(enum tensor_dtype dtype, int ndim, const int64_t *sizes);
enum tensor_dtype any_dtype(void);
/* A shape that broadcasts with these sizes; occasionally one that does not. */
int broadcasting(const int64_t *sizes, int ndim, int64_t *to);
/* Appends arguments. */
void arg_tensor(struct call *c, tensor *t);
void arg_int(struct call *c, int64_t i);
void arg_bool(struct call *c, bool b);
void arg_ints(struct call *c, const int64_t *v, int n);
void arg_scalar(struct call *c, tensor_scalar s);
void arg_list(struct call *c, tensor *const *t, int n);
/* A dimension, possibly negative; occasionally out of range, which sets c->refuse. */
int64_t any_dim(struct call *c, int ndim);
int wrapped(int64_t dim, int ndim);

#endif
