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
/* output_grads and grads have one more dimension, in front: several backwards at once */
#define TENSOR_GRADS_BATCHED 4u

/*
 * Backward from several outputs. output_grads has a gradient of each output's shape; an entry may
 * be NULL for an output with one element, which is 1. With inputs.len == 0, gradients are
 * accumulated in the leaves. Otherwise grads[i] is set to the gradient of inputs[i], a new tensor,
 * or to NULL if the outputs do not depend on it, and leaves are unchanged. 0 or -errno.
 *
 * With TENSOR_GRADS_BATCHED there must be inputs, and a gradient for each output; dimension 0 of
 * them has one size, that of the returned gradients. The backward runs once, as in tensor_vmap().
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
	bool grad, inference, anomaly, excluded; /* the state before */
};
/* Set the mode of this thread; tensor_grad_leave() restores the one before, in reverse order of nested
 * ones. For bindings: C code uses the macros below. */
struct tensor_grad_guard tensor_grad_enter(bool enabled);
struct tensor_grad_guard tensor_inference_enter(bool enabled);
struct tensor_grad_guard tensor_anomaly_enter(bool enabled);
void tensor_grad_leave(struct tensor_grad_guard *guard);

/* tensor_no_grad { ... }: operators inside record nothing. The previous state is restored at the
 * end, also by break, return and goto. */
#define tensor_no_grad TENSOR_MODE_(tensor_grad_enter(false))
/* tensor_enable_grad { ... }: operators inside are recorded, also within tensor_no_grad. */
#define tensor_enable_grad TENSOR_MODE_(tensor_grad_enter(true))
/*
 * tensor_inference_mode { ... }: as tensor_no_grad, and faster, because operators do not look for
 * gradients. Tensors that are made inside, also views, stay inference tensors: outside they can be
 * read, but not be changed in place, require a gradient, or be saved for a backward; a clone can.
 */
#define tensor_inference_mode TENSOR_MODE_(tensor_inference_enter(true))

/*
 * tensor_anomaly_mode { ... }: a backward inside fails with EDOM at the first node that computes a
 * NaN. The error record names the node and, if the forward ran inside, too, the line of the program
 * that called the operator (from debug information and addr2line; otherwise the address). So do
 * other errors of nodes. Slow.
 */
#define tensor_anomaly_mode TENSOR_MODE_(tensor_anomaly_enter(true))

#define TENSOR_MODE_(enter)	    TENSOR_MODE__(TENSOR_PASTE_(tensor_grad_guard_, __COUNTER__), enter)
#define TENSOR_MODE__(guard, enter) TENSOR_MODE___(guard, enter)
#define TENSOR_MODE___(guard, enter)                                                             \
	for (struct tensor_grad_guard guard __attribute__((cleanup(tensor_grad_leave))) = enter, \
					    *guard##_once = &guard;                              \
	     guard##_once; guard##_once = NULL)

/* True within tensor_inference_mode. */
bool tensor_is_inference_mode_enabled(void);
/* True within tensor_anomaly_mode. */
bool tensor_is_anomaly_mode_enabled(void);
/* True for a tensor that was made in inference mode. */
bool tensor_is_inference(const tensor *t);

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

/* ---- hooks ---- */

/* A registered hook, opaque. */
typedef struct tensor_hook tensor_hook;

/*
 * Functions that backward calls, in order of registration, on the thread that runs the node. They
 * may call operators, which are recorded with TENSOR_CREATE_GRAPH only, register and remove hooks,
 * and run another backward. Gradients that they get are borrowed and must not be changed in place.
 * A gradient that they give must have the shape, dtype and device of the one that it replaces.
 *
 * All registrations take `ctx`, which fn gets, `destroy`, which is called with ctx when fn cannot be
 * called any more (or NULL), and `handle`, which is set to a handle for the caller (or NULL). They
 * return 0 or -errno; destroy is not called for a registration that failed.
 *
 * A hook belongs to the value that t has at registration. After an in-place change of t it still
 * runs on the gradient of the old value.
 */

/* fn gets the gradient of t before it is used. It returns the gradient to use, the same or another
 * tensor, or NULL to fail. It also runs if t is an input of tensor_backward_ex(). */
int tensor_register_hook(tensor *t, tensor *(*fn)(tensor *grad, void *ctx), void *ctx,
			 void (*destroy)(void *ctx), tensor_hook **handle);
/* fn runs after the gradient of a leaf was accumulated, while backward continues: it may use
 * tensor_grad(leaf), change the leaf under tensor_no_grad, and drop the gradient. It returns 0, or
 * a negative error number to fail. */
int tensor_register_post_accumulate_grad_hook(tensor *leaf, int (*fn)(tensor *leaf, void *ctx),
					      void *ctx, void (*destroy)(void *ctx),
					      tensor_hook **handle);
/* fn gets the gradients of the node's n outputs, NULL where undefined, before the node runs. It may
 * replace entries by borrowed tensors. */
int tensor_node_register_prehook(tensor_node *node, int (*fn)(tensor **grads, int n, void *ctx),
				 void *ctx, void (*destroy)(void *ctx), tensor_hook **handle);
/* fn gets the gradients that the node computed for its inputs, NULL where undefined or not needed,
 * and may replace entries; output_grads are those of the outputs. */
int tensor_node_register_hook(tensor_node *node,
			      int (*fn)(tensor **input_grads, int ninputs,
					tensor *const *output_grads, int noutputs, void *ctx),
			      void *ctx, void (*destroy)(void *ctx), tensor_hook **handle);
/* Remove the hook and free the handle. A call that runs on another thread ends normally. */
void tensor_hook_remove(tensor_hook *hook);
/* Free the handle; the hook stays. */
void tensor_hook_release(tensor_hook *hook);

/* Keep the gradient of t, the result of an operator, in tensor_grad(t) as if it were a leaf: what
 * later backwards compute is added to it. After an in-place change it is that of the new value. */
int tensor_retain_grad(tensor *t);
/* True after tensor_retain_grad() of a result. */
bool tensor_retains_grad(const tensor *t);

/* ---- saved tensors in another form ---- */

/*
 * Functions for the tensors that recorded operators save for their backward: to compute them again,
 * to convert them to a smaller dtype, to move them to a file or to another device. pack gets such
 * a tensor, borrowed and without history, and returns any pointer but NULL, which fails the operator.
 * unpack gets that pointer, once or several times, and returns a tensor of the same shape, dtype and
 * device in the open scope; NULL fails the backward. discard frees the pointer (or is NULL). No
 * operator that they call is recorded. destroy is called with ctx after the last discard (or is NULL).
 * unpack, discard and destroy may be called by another thread. They cannot use the node
 * that the tensor belongs to: EDEADLK.
 */
struct tensor_saved_hooks {
	void *(*pack)(tensor *t, void *ctx);
	tensor *(*unpack)(void *packed, void *ctx);
	void (*discard)(void *packed, void *ctx);
	void *ctx;
	void (*destroy)(void *ctx);
};

struct tensor_saved_hooks_guard {
	void *scope; /* NULL after a failure */
};
/* Use the functions, which are copied, in operators that this thread records until the guard is
 * left; the innermost counts. NULL: save tensors as they are. For bindings: C code uses
 * tensor_with_saved_hooks. */
struct tensor_saved_hooks_guard tensor_saved_hooks_enter(const struct tensor_saved_hooks *hooks);
void tensor_saved_hooks_leave(struct tensor_saved_hooks_guard *guard);

/* tensor_with_saved_hooks(&hooks) { ... }; the body does not run if there is no memory for it. */
#define tensor_with_saved_hooks(hooks) \
	TENSOR_SAVED_HOOKS_(TENSOR_PASTE_(tensor_saved_hooks_guard_, __COUNTER__), hooks)
#define TENSOR_SAVED_HOOKS_(guard, hooks) TENSOR_SAVED_HOOKS__(guard, hooks)
#define TENSOR_SAVED_HOOKS__(guard, hooks)                                                         \
	for (struct tensor_saved_hooks_guard guard                                                 \
	     __attribute__((cleanup(tensor_saved_hooks_leave))) = tensor_saved_hooks_enter(hooks), \
	     *guard##_once = guard.scope ? &guard : NULL;                                          \
	     guard##_once; guard##_once = NULL)

/* A function of tensors: computes outputs, borrowed tensors in the open scope, from inputs. 0, or a
 * negative error number. */
typedef int (*tensor_graph_fn)(tensor *const *inputs, int ninputs, tensor **outputs, int noutputs,
			       void *ctx);

/* ---- checkpoints ---- */

/*
 * Compute outputs[] = fn(inputs), new tensors, without keeping what its operators save: backward
 * runs fn again, when it first needs one of these tensors, and then frees them. fn must compute the
 * same both times. It finds the default generator in the same state; it must not change its inputs
 * in place, and other tensors that it reads must keep their values. Gradients are those without a
 * checkpoint, to the bit. Checkpoints nest. inputs may have entries tensor_none.
 *
 * destroy is called with ctx when the graph does not need fn any more (or is NULL), also after a
 * failure. 0 or -errno.
 */
int tensor_checkpoint(tensor_graph_fn fn, void *ctx, void (*destroy)(void *ctx),
		      tensor_list_arg inputs, tensor **outputs, int noutputs);

/* ---- forward mode ---- */

/*
 * A dual tensor has a tangent: its derivative in a direction that the tangents of the inputs give.
 * Operators on dual tensors return dual tensors. tensor_make_dual() returns a new tensor on primal's
 * memory, or on a copy if elements of primal share memory and may have different tangents. The tangent has its shape, dtype
 * and device; tensor_primal() returns one without a tangent. They are recorded like views. tensor_tangent() is borrowed, NULL for a tensor without one. NULL with
 * the error set: EINVAL for a tangent that does not fit or a tensor that has one. The gradients of a
 * dual tensor are dual: their tangents are products of the Hessian with the direction.
 */
tensor *tensor_make_dual(tensor *primal, tensor *tangent);
tensor *tensor_primal(tensor *t);
tensor *tensor_tangent(const tensor *t);
/*
 * outputs[] = fn(inputs), and output_tangents[] = the product of its Jacobian with tangents[], whose
 * entries may be NULL for zero; new tensors. Both are recorded, so reverse mode over forward mode
 * gives second derivatives. 0 or -errno.
 */
int tensor_jvp(tensor_graph_fn fn, void *ctx, tensor_list_arg inputs, tensor *const *tangents,
	       tensor **outputs, tensor **output_tangents, int noutputs);

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
/* Compare the derivative of fn in one direction by forward mode with that by backward. 0, or -EDOM
 * with both values in the error record. */
int tensor_forwardcheck(tensor *(*fn)(tensor *const *inputs, void *ctx), void *ctx,
			tensor_list_arg inputs, double atol, double rtol);

#ifdef __cplusplus
}
#endif
#endif
