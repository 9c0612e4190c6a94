/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Saved tensors of a node: the inputs and outputs that its formulas read. */
#ifndef TENSOR_AUTOGRAD_SAVED_H
#define TENSOR_AUTOGRAD_SAVED_H

#include "autograd/graph/node.h"
#include "autograd/graph/pack.h"

/* Saves t, in the form of the innermost tensor_saved_hooks scope if there is one. 0, or -1 with the error set. */
int saved_set(struct saved *s, tensor *t, int source);
/* Saves t, which may be NULL, in a slot. 0, or -1 with the error set. */
int node_save(tensor_node *n, int slot, tensor *t, int source);
/* Saves a copy of the values of t, for an argument that the call overwrites. */
int node_save_copy(tensor_node *n, int slot, tensor *t, int source);
/*
 * Adds the tangent of output k to the tensors that were saved of it, without its history, which leads to the node. Returns 1
 * if there was one, 0, or -1 with the error set.
 */
int node_save_tangent(tensor_node *n, unsigned k, tensor *tangent);
/* Computes the tangent of output k of a node that the thread runs again, from those of the inputs; with its history, in the open
 * scope. NULL with the error set. Set at load. */
extern tensor *(*saved_tangent_again)(tensor_node *n, unsigned k);
/*
 * The saved tensor, owned by the node or the open scope; with its history if a graph is being
 * recorded, and its tangent in a backward that propagates tangents. NULL with the error set if it was released or changed in place; tensor_none for an
 * argument that was not given.
 */
tensor *node_unpack(tensor_node *n, int slot);

/*
 * A list of tensors in the slots from first on. node_list() reserves space in the node, which
 * node_unpack_list() fills; elements that were not given are tensor_none.
 */
int node_save_list(tensor_node *n, int first, tensor_list list, int source);
int node_unpack_list(tensor_node *n, int first, tensor_list list);

static inline tensor_list node_list(tensor_node *n, int64_t len)
{
	tensor_list list = { (tensor *const *)n->ints, len };

	n->ints += len;
	return list;
}

/* The name of the saved tensor in a slot: "self"; "saved" for a node without names. */
const char *node_saved_name(const tensor_node *n, int slot);
/* A copy of s that is never freed; the number of different strings is limited to 64. */
const char *node_string(const char *s);
/* Releases what a slot holds. */
static inline void saved_drop(struct saved *s)
{
	if (unlikely(s->is_packed))
		packed_free(s->packed);
	else
		tensor_put(s->t);
}

/* Releases the saved tensors. */
void node_release(tensor_node *n);

#endif
