/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Functions of the program with a backward of their own, as nodes of the graph. */
#ifndef TENSOR_FUNCTION_H
#define TENSOR_FUNCTION_H

#include <tensor/autograd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One call of a function, opaque: valid in its forward and, again, in its backward. */
typedef struct tensor_function_ctx tensor_function_ctx;

struct tensor_value; /* <tensor/dispatch.h> */

/* The backward cannot be differentiated: with TENSOR_CREATE_GRAPH its gradients have a node that fails. */
#define TENSOR_FUNCTION_ONCE_DIFFERENTIABLE 1u
/* backward gets NULL for an output without a gradient, instead of zeros. */
#define TENSOR_FUNCTION_UNDEFINED_GRADS 2u
/* forward computes and records the batch of the samples itself (<tensor/binding.h>), so inputs may be samples of tensors
 * that require a gradient outside of tensor_vmap(). */
#define TENSOR_FUNCTION_RECORDS_BATCH 4u

/* A function. It and its name must stay valid as long as graphs with calls of it. */
struct tensor_function {
	/* At most 40 bytes of UTF-8 without quotation marks, backslashes and control characters; nodes of "Exp" are
	 * called "ExpBackward". */
	const char *name;
	/*
	 * Computes outputs[] from inputs[], both borrowed; operators inside are not recorded. An
	 * output may be an input that was marked dirty. Any other input, and a tensor that is given as
	 * several outputs, becomes a view: where the call is recorded, an in-place change of it fails, and
	 * so does its use after one of the tensor. 0, or a negative error number.
	 */
	int (*forward)(tensor_function_ctx *ctx, tensor *const *inputs, int ninputs,
		       tensor **outputs, int noutputs);
	/*
	 * Computes input_grads[] (borrowed, NULL where there is none) from output_grads[]. Operators
	 * inside are recorded if the backward is, which makes second derivatives. NULL: the function
	 * has no gradient, a backward through it fails.
	 */
	int (*backward)(tensor_function_ctx *ctx, tensor *const *output_grads, int noutputs,
			tensor **input_grads, int ninputs);
	unsigned flags; /* TENSOR_FUNCTION_* */
};

/*
 * outputs[] = forward(inputs), new tensors with a node that calls backward, if an input requires a
 * gradient. `data` is any value of the caller; destroy is called with it (or is NULL) when the call
 * is over and its graph is freed, also after a failure. inputs may have entries tensor_none. 0 or
 * -errno.
 */
int tensor_function_apply(const struct tensor_function *function, void *data,
			  void (*destroy)(void *data), tensor_list_arg inputs, tensor **outputs,
			  int noutputs);

/*
 * As tensor_function_apply() with arguments of any kind (<tensor/dispatch.h>), as a binding has them. The
 * inputs of forward, and the gradients of backward, are those of the tensors among the arguments, in
 * order, with those in lists. If the call is recorded, it keeps a copy of the other arguments, with their
 * lists and strings, until its graph is freed; a generator must stay valid.
 */
int tensor_function_call(const struct tensor_function *function, void *data,
			 void (*destroy)(void *data), const struct tensor_value *args, int nargs,
			 tensor **outputs, int noutputs);
/* In forward and backward: the arguments of tensor_function_call(), borrowed; 0 of
 * tensor_function_apply(). In backward a tensor is NULL, and so is the array of a list of tensors: what
 * backward needs must be saved. NULL with the error set if there is no argument i. */
int tensor_function_argument_count(const tensor_function_ctx *ctx);
const struct tensor_value *tensor_function_argument(const tensor_function_ctx *ctx, int i);

/* The data of the call. */
void *tensor_function_data(const tensor_function_ctx *ctx);
/* In forward: input i requires a gradient. In backward: its gradient is wanted. */
bool tensor_function_needs_grad(const tensor_function_ctx *ctx, int input);
/* In forward: save inputs, outputs and other tensors for backward; again to append. 0 or -errno. */
int tensor_function_save(tensor_function_ctx *ctx, tensor_list_arg tensors);
/*
 * In forward, for a function whose number of outputs follows from the inputs: outputs[], an array of the caller that
 * is valid until the call returns, takes the place of the one that the call was given, which may be NULL with a number
 * of 0. forward sets its entries, and the call replaces them by its results. n may be 0: nothing is recorded then. 0
 * or -errno.
 */
int tensor_function_set_outputs(tensor_function_ctx *ctx, tensor **outputs, int n);
/* In forward: flags of this call in place of those of the function. 0 or -errno. */
int tensor_function_set_flags(tensor_function_ctx *ctx, unsigned flags);
/* In backward: the number of saved tensors, and the i-th, borrowed: tensor_none where that was saved. NULL
 * with the error set if it was changed in place or freed. Inputs and outputs have their history. */
int tensor_function_saved_count(const tensor_function_ctx *ctx);
tensor *tensor_function_saved(tensor_function_ctx *ctx, int i);
/* In forward: an input that forward changes in place and returns as an output. Call it before the
 * change: it fails for tensors that may not be changed. If forward fails after the change, the input
 * keeps it. 0 or -errno. */
int tensor_function_mark_dirty(tensor_function_ctx *ctx, tensor *input);
/* In forward: an output that requires no gradient. 0 or -errno. */
int tensor_function_mark_non_differentiable(tensor_function_ctx *ctx, tensor *output);

#ifdef __cplusplus
}
#endif
#endif
