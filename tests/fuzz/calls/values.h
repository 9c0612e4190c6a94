/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Arguments that nobody should give to an operator, and among them those that everybody gives. */
#ifndef FUZZ_VALUES_H
#define FUZZ_VALUES_H

#include <tensor/tensor.h>
#include <tensor/dispatch.h>

#define LIST_MAX 5
#define OWNED	 128

/* What a call's arguments consist of. */
struct arguments {
	uint64_t random;	  /* state */
	bool tame;		  /* most values are small and in range */
	int gradients;		  /* one tensor in so many requires a gradient */
	int odds;		  /* one in so many is not */
	int64_t longest;	  /* dimension */
	enum tensor_dtype wanted; /* by the argument that is being made, or NONE */
	int ndim;		  /* what most tensors look like */
	int64_t sizes[4];
	enum tensor_dtype dtype;
	tensor *owned[OWNED]; /* made for this call */
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
int64_t below(struct arguments *a, int64_t n); /* 0 .. n-1 */
bool one_in(struct arguments *a, int n);

/* A value for an argument; now and then one of another kind. */
tensor_value any_value(struct arguments *a, const struct tensor_arg *arg);

#endif
