/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* One call of an operator in forward mode: it is recorded, and the tangents of its results come from that graph. */
#ifndef TENSOR_AUTOGRAD_FORWARD_CALL_H
#define TENSOR_AUTOGRAD_FORWARD_CALL_H

#include "autograd/graph/node.h"
#include "dispatch/boxed.h"

/* The dual inputs of a call, and its arguments with aliases in their place, through which it is recorded. */
struct forward_call {
	const tensor_op *op;
	tensor_value *args;
	int nargs, n;
	tensor **x, **alias;  /* x borrowed, alias in the open scope */
	tensor **lists;	      /* elements of the lists in args */
	bool inference;	      /* the call is in inference mode: its results are inference tensors */
	bool record;	      /* the graph of the call stays */
	const tensor *self;   /* of an in-place operator */
	tensor *self_tangent; /* its tangent, or a copy: the operator changes it */
	const tensor_node *copied; /* the node of the copy of self that it changes */
	uint64_t since; /* the sequence number of the node that was recorded last before the call */
};

int forward_call_init(struct forward_call *c, const tensor_op *op, const tensor_value *args,
		      int nargs, bool inference, bool record);
void forward_call_free(struct forward_call *c);
/* The tangents of those results that were recorded; in the open scope, NULL for zero. 0, or -errno. */
int forward_call_tangents(const struct forward_call *c, tensor_value *rets, int nrets, tensor **ty,
			  bool record);
/* Adds the tangents of the results to the tensors that the node of the call saved of them. 0, or -errno. */
int forward_call_save(const struct forward_call *c, const tensor_value *rets, int nrets,
		      tensor **ty);

#endif
