/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Automatic differentiation: operators on tensors that require a gradient record a graph of
 * nodes; tensor_backward() walks it from an output to the leaves.
 */
#ifndef TENSOR_AUTOGRAD_H
#define TENSOR_AUTOGRAD_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks a leaf (floating dtype) whose gradient is wanted. EINVAL for a result of an operator. */
int tensor_set_requires_grad(tensor *t, bool requires_grad);
bool tensor_requires_grad(const tensor *t);
/* True for a tensor that no recorded operator made. */
bool tensor_is_leaf(const tensor *t);
/* The gradient that backward left in a leaf: borrowed, NULL when there is none. */
tensor *tensor_grad(const tensor *t);
/* Replaces the gradient (shape, dtype and device must fit); NULL drops it. */
int tensor_set_grad(tensor *t, tensor *grad);

/* From a scalar output, with gradient 1, to all leaves. The graph is freed. */
int tensor_backward(tensor *output);

#define TENSOR_RETAIN_GRAPH 1u /* keep saved tensors for another backward */
#define TENSOR_CREATE_GRAPH 2u /* record the backward itself, to differentiate it again */

/*
 * From several outputs with gradients of their shapes (an entry may be NULL for a scalar
 * output: 1). With inputs.len == 0 gradients are added into the leaves; otherwise grads[i]
 * gets a tensor for inputs[i] and no leaf is touched. grads[i] is NULL when the output does
 * not depend on it.
 *
 * TENSOR_CREATE_GRAPH without inputs: a leaf then holds a gradient whose graph leads to the leaf, so neither is freed
 * when the caller lets go of both, as in PyTorch. tensor_set_grad(leaf, NULL) breaks the circle, and so does a gradient without
 * its graph, tensor_set_grad(leaf, tensor_detach(tensor_grad(leaf))). Gradients that are asked for by inputs and
 * grads close none.
 */
int tensor_backward_ex(tensor_list_arg outputs, tensor *const *output_grads, tensor_list_arg inputs,
		       tensor **grads, unsigned flags);

/* Per thread: whether operators record a graph. Returns the former state. */
bool tensor_set_grad_enabled(bool enabled);
bool tensor_is_grad_enabled(void);

struct tensor_grad_guard {
	bool before, once;
};
struct tensor_grad_guard tensor_grad_enter(bool enabled);
void tensor_grad_leave(struct tensor_grad_guard *guard);

/* tensor_no_grad { ... }: nothing is recorded inside, on every way out the mode is restored. */
#define tensor_no_grad	       TENSOR_NO_GRAD_(TENSOR_PASTE_(tensor_grad_guard_, __COUNTER__))
#define TENSOR_NO_GRAD_(guard) TENSOR_NO_GRAD__(guard)
#define TENSOR_NO_GRAD__(guard)                                                   \
	for (struct tensor_grad_guard __attribute__((cleanup(tensor_grad_leave))) \
	     guard = tensor_grad_enter(false);                                    \
	     guard.once; guard.once = false)

/* ---- looking at the graph ---- */

/* A node of the graph, opaque; borrowed from the tensor it belongs to. */
typedef struct tensor_node tensor_node;

/* The node that made t, or the AccumulateGrad of a leaf; NULL when it requires no gradient. */
tensor_node *tensor_grad_fn(const tensor *t);
const char *tensor_node_name(const tensor_node *node); /* "MmBackward" */
int tensor_node_edges(const tensor_node *node);
/* The node that edge i leads to, NULL when that input needs no gradient; *input_nr is which of
 * its outputs (in forward order) this edge carries the gradient of. */
tensor_node *tensor_node_edge(const tensor_node *node, int i, int *input_nr);
/* Names of the tensors that the node holds for its formulas ("self", "mat2", "result"), only
 * those that it holds now. */
int tensor_node_saved(const tensor_node *node);
const char *tensor_node_saved_name(const tensor_node *node, int i);
/* The i-th saved tensor, checked against later in-place changes; a new result. */
tensor *tensor_node_saved_get(tensor_node *node, int i);

/* ---- checking ---- */

/*
 * Compares backward of fn with central differences in f64, for every element of every input
 * that requires a gradient. fn returns a new tensor or NULL. 0, or -EDOM with the element and
 * both values in the error record.
 */
int tensor_gradcheck(tensor *(*fn)(tensor *const *inputs, void *ctx), void *ctx,
		     tensor_list_arg inputs, double eps, double atol, double rtol);
/* The same for the recorded backward: second derivatives, and those by the output's gradient. */
int tensor_gradgradcheck(tensor *(*fn)(tensor *const *inputs, void *ctx), void *ctx,
			 tensor_list_arg inputs, double eps, double atol, double rtol);

#ifdef __cplusplus
}
#endif
#endif
