/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* For bindings of other languages, which keep an object of their own for each tensor. */
#ifndef TENSOR_BINDING_H
#define TENSOR_BINDING_H

#include <tensor/autograd.h>
#include <tensor/vmap.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The object of a binding that stands for t: a borrowed pointer, NULL for a new tensor. A binding
 * sets it when it makes the object and clears it before it frees the object, both under a lock of
 * its own, so that it finds the same object when an operator returns the same tensor. Views and
 * detached tensors are other tensors. One binding in a process may use it. NULL for NULL.
 */
void *tensor_binding(const tensor *t);
void tensor_set_binding(tensor *t, void *object);

/*
 * The number of references to t, those of its views included: 1 if the caller has the only one. For
 * a garbage collector that has to know whether it sees all owners. 0 for NULL.
 */
int64_t tensor_use_count(const tensor *t);

/* As tensor_grad() with a reference of the caller: a backward on another thread may replace the gradient. */
tensor *tensor_grad_get(tensor *t);

/*
 * Nodes of the graph. tensor_grad_fn() and tensor_node_edge() lend them; a reference keeps a node and the graph that it
 * leads to, and for the AccumulateGrad node of a leaf the leaf. NULL is ignored.
 */
tensor_node *tensor_node_retain(tensor_node *node);
void tensor_node_release(tensor_node *node);
/* The leaf of an AccumulateGrad node, borrowed; NULL for another node. */
tensor *tensor_node_leaf(const tensor_node *node);
/*
 * Keep ctx with the node until it is freed; destroy, which must be given, is called with it then. 0 or -errno.
 * tensor_node_attached() returns the ctx of that destroy function, borrowed, or NULL.
 */
int tensor_node_attach(tensor_node *node, void *ctx, void (*destroy)(void *ctx));
void *tensor_node_attached(tensor_node *node, void (*destroy)(void *ctx));

/*
 * For a garbage collector: calls visit for each value with a destroy function that the program gave to hooks, functions
 * and nodes (ctx, data), and that is freed if the caller's reference to t, or to the node, is dropped: the reference
 * is the only one to t, and no other tensor leads to the value. Until visit returns something other than 0, which is
 * returned; -errno if there is no memory. Operators may run on other threads meanwhile.
 */
typedef int (*tensor_visit_fn)(void *ctx, void (*destroy)(void *ctx), void *arg);
int tensor_visit_owned(tensor *t, tensor_visit_fn visit, void *arg);
int tensor_node_visit_owned(tensor_node *node, tensor_visit_fn visit, void *arg);

/*
 * Add a number of the binding to the thread's error record, in which the library carries it to the thread that gets the
 * error: tensor_last_error()->binding. The next error sets it to 0.
 */
void tensor_set_error_binding(uint64_t value);

/*
 * tensor_vmap() in parts, for functions whose outputs are known only after they ran. tensor_vmap_enter() begins a call
 * of a function on `size` samples on this thread: NULL with the error set, or a level. tensor_vmap_samples() returns
 * the samples of t, whose dimension `dim` is the batch, a new tensor; tensor_vmap_batch() the batch of an output as
 * dimension `dim` of a new tensor. tensor_vmap_leave() ends the call, in reverse order of nested ones.
 */
struct tensor_vmap_level;
struct tensor_vmap_level *tensor_vmap_enter(int64_t size, enum tensor_vmap_randomness randomness);
tensor *tensor_vmap_samples(struct tensor_vmap_level *level, tensor *t, int64_t dim);
tensor *tensor_vmap_batch(struct tensor_vmap_level *level, tensor *t, int64_t dim);
void tensor_vmap_leave(struct tensor_vmap_level *level);
/*
 * For functions of the program that compute a whole batch at once. tensor_vmap_has_samples() is true for a tensor that
 * stands for the samples of this level. tensor_vmap_suspend() makes operators those of the caller of the level, until
 * tensor_vmap_resume(); false, without an effect, if the level is not the innermost one of the thread.
 */
bool tensor_vmap_has_samples(const struct tensor_vmap_level *level, const tensor *t);
bool tensor_vmap_suspend(struct tensor_vmap_level *level);
void tensor_vmap_resume(struct tensor_vmap_level *level);

#ifdef __cplusplus
}
#endif
#endif
