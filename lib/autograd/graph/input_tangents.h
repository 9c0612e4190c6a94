/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Tangents of the inputs of a node that saved a result. The history of the result's tangent leads to the node, so the node
 * cannot own it: a backward that is recorded computes the tangent again, from those of the inputs.
 */
#ifndef TENSOR_AUTOGRAD_INPUT_TANGENTS_H
#define TENSOR_AUTOGRAD_INPUT_TANGENTS_H

#include "autograd/graph/hooks.h"

/* Detached, with the edge of its history. */
struct input_tangent {
	tensor *t;	     /* owned */
	uint32_t version;    /* of the storage of t */
	struct edge history; /* owned; fn is NULL if the tangent requires no gradient */
	uint32_t input;	     /* the edge of the node that leads to the input */
};

struct input_tangents {
	struct node_attachment attachment;
	uint32_t n;
	struct input_tangent of[];
};

/* With space for n, freed by attachment.free(); NULL with the error set. */
struct input_tangents *input_tangents_new(uint32_t n);
/* 0, or -errno. */
int input_tangents_add(struct input_tangents *k, uint32_t input, tensor *tangent);
/* Tangent i with its history, in the open scope. NULL with the error set: also if it was changed in place. */
tensor *input_tangent_unpack(const tensor_node *n, const struct input_tangents *k, uint32_t i);

#endif
