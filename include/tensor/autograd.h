/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Automatic differentiation: operators on tensors that require a gradient record a graph of nodes;
 * tensor_backward() traverses it from an output to the leaves. */
#ifndef TENSOR_AUTOGRAD_H
#define TENSOR_AUTOGRAD_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Set whether t, of a floating or complex dtype, requires a gradient. 0, or EINVAL for another
 * dtype and for clearing it on the result of a recorded operator (detach that instead). */
int tensor_set_requires_grad(tensor *t, bool requires_grad);
/* True if t is such a leaf, or a recorded result of one. False for NULL. */
bool tensor_requires_grad(const tensor *t);
/* True unless a recorded operator returned the tensor. */
bool tensor_is_leaf(const tensor *t);
/* The gradient that backward accumulated in a leaf: borrowed, NULL if there is none. */
tensor *tensor_grad(const tensor *t);
/* Replace the gradient, whose shape, dtype and device must be t's; NULL removes it. 0 or -errno. */
int tensor_set_grad(tensor *t, tensor *grad);

/* Compute the gradients of all leaves of `output`, which has one element, with gradient 1. Frees
 * the graph. 0 or -errno. */
int tensor_backward(tensor *output);

#define TENSOR_RETAIN_GRAPH 1u /* keep saved tensors for another backward */
#define TENSOR_CREATE_GRAPH 2u /* record the backward, so that it can be differentiated */

/*
 * Backward from several outputs. output_grads has a gradient of each output's shape; an entry may
 * be NULL for an output with one element, which is 1. With inputs.len == 0, gradients are
 * accumulated in the leaves. Otherwise grads[i] is set to the gradient of inputs[i], a new tensor,
 * or to NULL if the outputs do not depend on it, and leaves are unchanged. 0 or -errno.
 *
 * With TENSOR_CREATE_GRAPH and without inputs, a leaf's gradient has a graph that refers to the
 * leaf: a reference cycle, as in PyTorch, which is not freed when the caller releases both.
 * tensor_set_grad(leaf, NULL) breaks it, as does a gradient without its graph,
 * tensor_set_grad(leaf, tensor_detach(tensor_grad(leaf))). Gradients returned in grads make no
 * cycle.
 */
int tensor_backward_ex(tensor_list_arg outputs, tensor *const *output_grads, tensor_list_arg inputs,
		       tensor **grads, unsigned flags);

/* Set whether operators of this thread record a graph. Returns the previous state. */
bool tensor_set_grad_enabled(bool enabled);
bool tensor_is_grad_enabled(void);

struct tensor_grad_guard {
	bool before;
};
/* tensor_set_grad_enabled() with a guard that restores the state. For bindings: C code uses
 * tensor_no_grad. */
struct tensor_grad_guard tensor_grad_enter(bool enabled);
void tensor_grad_leave(struct tensor_grad_guard *guard);

/* tensor_no_grad { ... }: operators inside record nothing. The previous state is restored at the
 * end, also by break, return and goto. */
#define tensor_no_grad	       TENSOR_NO_GRAD_(TENSOR_PASTE_(tensor_grad_guard_, __COUNTER__))
#define TENSOR_NO_GRAD_(guard) TENSOR_NO_GRAD__(guard)
#define TENSOR_NO_GRAD__(guard)                                                      \
	for (struct tensor_grad_guard guard                                          \
	     __attribute__((cleanup(tensor_grad_leave))) = tensor_grad_enter(false), \
	     *guard##_once = &guard;                                                 \
	     guard##_once; guard##_once = NULL)

/* ---- inspection of the graph ---- */

/* A node of the graph, opaque. Borrowed from the tensor it belongs to. */
typedef struct tensor_node tensor_node;

/* The node of the operator that returned t, or the AccumulateGrad node of a leaf. NULL if t
 * requires no gradient. */
tensor_node *tensor_grad_fn(const tensor *t);
const char *tensor_node_name(const tensor_node *node); /* "MmBackward" */
/* Number of edges: one per input of the operator that may require a gradient. */
int tensor_node_edges(const tensor_node *node);
/* The node that edge i leads to, NULL if that input requires no gradient. *input_nr is the index of
 * the node's output, in forward order, whose gradient the edge carries. */
tensor_node *tensor_node_edge(const tensor_node *node, int i, int *input_nr);
/* Names of the tensors currently saved in the node ("self", "mat2", "result"): their number, and
 * the i-th. */
int tensor_node_saved(const tensor_node *node);
const char *tensor_node_saved_name(const tensor_node *node, int i);
/* The i-th saved tensor, a new tensor. NULL with the error set if it was changed in place since. */
tensor *tensor_node_saved_get(tensor_node *node, int i);

/* ---- checking ---- */

/*
 * Compare the gradients of fn with central differences in f64, for every element of every input
 * that requires a gradient. fn returns a new tensor or NULL. eps is the step of the differences; a
 * gradient may differ by atol + rtol * |difference|. 0, or -EDOM with the element and both values
 * in the error record.
 */
int tensor_gradcheck(tensor *(*fn)(tensor *const *inputs, void *ctx), void *ctx,
		     tensor_list_arg inputs, double eps, double atol, double rtol);
/* As tensor_gradcheck() for the recorded backward: second derivatives with respect to inputs and
 * output gradients. */
int tensor_gradgradcheck(tensor *(*fn)(tensor *const *inputs, void *ctx), void *ctx,
			 tensor_list_arg inputs, double eps, double atol, double rtol);

#ifdef __cplusplus
}
#endif
#endif
