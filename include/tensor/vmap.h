/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Functions of one sample, applied to a whole batch at once. */
#ifndef TENSOR_VMAP_H
#define TENSOR_VMAP_H

#include <tensor/autograd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Random operators inside tensor_vmap(). */
enum tensor_vmap_randomness {
	TENSOR_VMAP_RANDOM_ERROR = 0, /* they fail */
	TENSOR_VMAP_RANDOM_DIFFERENT, /* each sample gets other numbers */
	TENSOR_VMAP_RANDOM_SAME,      /* all samples get the same numbers */
};

/* Zero is the default of each member. */
struct tensor_vmap_options {
	int64_t chunk_size; /* samples that are computed at once; 0: all */
	enum tensor_vmap_randomness randomness;
};

/*
 * Computes outputs[] = fn(inputs) for every sample of a batch. fn is called once, or once for each
 * chunk, and sees tensors without their batch dimension. Operators on these compute all samples in
 * one call.
 *
 * in_dims[i] is the batch dimension of inputs[i], which may be negative; TENSOR_NONE: the input is
 * the same for all samples, as are tensors that fn gets from elsewhere. in_dims == NULL: all are 0.
 * All batch dimensions have one size, which is not zero, and at least one input has one.
 * out_dims[i] is the dimension that the batch gets in outputs[i]; NULL: all are 0. The outputs are
 * new tensors; one that does not depend on the samples is repeated as a view.
 *
 * vmap nests, and works in and around autograd: fn may run a backward, whose gradients with
 * respect to inputs (tensor_backward_ex()) are those of the samples, also for a tensor without a
 * batch dimension; the outputs have the history of the inputs. Where a backward inside is
 * differentiated again, pass TENSOR_CREATE_GRAPH to it. fn cannot read values (tensor_item()),
 * write results with _out functions, change a tensor without a batch dimension in place by one that
 * has it, or keep its tensors: after tensor_vmap() returned, operators refuse them.
 *
 * options: NULL for the defaults. 0 or -errno.
 */
int tensor_vmap(tensor_graph_fn fn, void *ctx, tensor_list_arg inputs, const int64_t *in_dims,
		tensor **outputs, int noutputs, const int64_t *out_dims,
		const struct tensor_vmap_options *options);

/* True for a tensor that stands for the samples of a batch. False for NULL. */
bool tensor_is_batched(const tensor *t);

/* The number of calls of the operator `name` ("linalg_eig") in this process that had no batching
 * rule for their arguments and were computed sample by sample; NULL: of all operators. -ENOENT for
 * an unknown operator. */
int64_t tensor_vmap_loops(const char *name);

/*
 * The Jacobian of outputs[] = fn(inputs) at the inputs, by reverse mode on all elements of an output
 * at once. jacobian[o * inputs.len + i] is set to a new tensor with the sizes of output o followed by
 * those of input i. The inputs, of one floating dtype or several, are used without their history,
 * and the results have none; with TENSOR_CREATE_GRAPH in flags both have. 0 or -errno.
 */
int tensor_jacobian(tensor_graph_fn fn, void *ctx, tensor_list_arg inputs, int noutputs,
		    tensor **jacobian, unsigned flags);
/*
 * The second derivatives of fn, whose only output has one element. hessian[i * inputs.len + j] is
 * set to a new tensor with the sizes of input i followed by those of input j. Otherwise as
 * tensor_jacobian().
 */
int tensor_hessian(tensor_graph_fn fn, void *ctx, tensor_list_arg inputs, tensor **hessian,
		   unsigned flags);

#ifdef __cplusplus
}
#endif
#endif
