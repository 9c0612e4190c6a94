/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Random arguments for operators, valid and invalid. */
#ifndef FUZZ_VALUES_H
#define FUZZ_VALUES_H

#include <tensor/tensor.h>
#include <tensor/dispatch.h>

#define LIST_MAX 5
#define OWNED	 128

/* The state from which the arguments of a call are made. */
struct arguments {
	uint64_t random;	  /* state of the generator */
	bool tame;		  /* most values are small and in range */
	int gradients;		  /* one tensor in `gradients` requires a gradient */
	int odds;		  /* one argument in `odds` is invalid */
	int64_t longest;	  /* largest size of a dimension */
	enum tensor_dtype wanted; /* required by the argument that is being made, or NONE */
	int ndim;		  /* shape that most tensors have */
	int64_t sizes[4];
	enum tensor_dtype dtype;
	tensor *owned[OWNED]; /* tensors that were made for this call */
	int nowned;
	tensor *list[8][LIST_MAX];
	int64_t ints[8][LIST_MAX];
	double floats[8][LIST_MAX];
	tensor_scalar scalars[8][LIST_MAX];
	int nlists;
};

/* autograd: most tensors require a gradient. */
void arguments_begin(struct arguments *a, uint64_t seed, bool autograd);
void arguments_end(struct arguments *a);

uint64_t chance(struct arguments *a);
int64_t below(struct arguments *a, int64_t n); /* Random in 0 .. n-1. */
bool one_in(struct arguments *a, int n);

/* A value for an argument; occasionally one of another type. */
tensor_value any_value(struct arguments *a, const struct tensor_arg *arg);

#endif
