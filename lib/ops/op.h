/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Shared functions of operator functions. An operator function (op_NAME; ATen: structured function)
 * infers shape and dtype, gets the output, and calls the kernel of the output's backend. It serves
 * the functional, in-place and out forms: *out is NULL for the first, which sets it to an owned
 * tensor, and the caller's tensor for the others.
 */
#ifndef TENSOR_OP_H
#define TENSOR_OP_H

#include "dispatch/dispatch.h"
#include "kernels/abi/kernels.h"

/* The output between output_begin() and output_end(). The kernel writes to `t`, which is a
 * temporary if the caller's tensor has another dtype or partially overlaps an input. */
struct op_output {
	tensor *t;
	tensor *given;		 /* the caller's tensor, NULL for the functional form */
	enum tensor_dtype dtype; /* of the functional form's result */
	bool channels_last;	 /* convert that result to channels-last order; t is contiguous */
};

/* Begin an output. Checks that the inputs (NULL entries are skipped) and the output are on one
 * device, and whether they overlap. */
int output_begin(const struct tensor_op *op, struct op_output *o, tensor *given,
		 enum tensor_dtype dtype, const int64_t *sizes, int ndim,
		 const tensor *const *inputs, int ninputs);
/* As output_begin(), for kernels that read inputs after they begin to write: an output that shares
 * memory with an input is replaced by a temporary, and a functional result is contiguous. */
int output_begin_apart(const struct tensor_op *op, struct op_output *o, tensor *given,
		       enum tensor_dtype dtype, const int64_t *sizes, int ndim,
		       const tensor *const *inputs, int ninputs);
/* As output_begin_apart(); a functional result has self's sizes and order of dimensions, so the
 * kernel must accept any strides. */
int output_begin_like(const struct tensor_op *op, struct op_output *o, tensor *given,
		      enum tensor_dtype dtype, const tensor *self, const tensor *const *inputs,
		      int ninputs);
/* As output_begin_apart(); a functional result has channels-last order if `channels_last`. */
int output_begin_channels(const struct tensor_op *op, struct op_output *o, tensor *given,
			  enum tensor_dtype dtype, const int64_t *sizes, int ndim,
			  bool channels_last, const tensor *const *inputs, int ninputs);
/* As output_begin(), for kernels that compute reduced floats in f32: t has the wider dtype, and
 * output_end() converts. operand_widen() does the same for inputs. */
int output_begin_wide(const struct tensor_op *op, struct op_output *o, tensor *given,
		      enum tensor_dtype dtype, const int64_t *sizes, int ndim,
		      const tensor *const *inputs, int ninputs);
/* As output_begin_apart(), with t contiguous and reduced floats in f32. operand_dense() does the
 * same for inputs. */
int output_begin_dense(const struct tensor_op *op, struct op_output *o, tensor *given,
		       enum tensor_dtype dtype, const int64_t *sizes, int ndim,
		       const tensor *const *inputs, int ninputs);
/* For kernels whose t is contiguous: give the functional result channels-last order if self has it.
 */
void output_keep_format(struct op_output *o, const tensor *self);
/* t in this dtype, in channels-last order if `channels_last`: a new tensor, or another reference to
 * t. Owned. */
tensor *operand_lay_out(tensor *t, enum tensor_dtype dtype, bool channels_last);
/* Finish an output: copy a temporary to the caller's tensor and set *out or, if err is set, release
 * it. Returns err. */
int output_end(const struct tensor_op *op, struct op_output *o, tensor **out, int err);
/* For operator functions of extension keys, which always allocate a result: copy it to the caller's
 * tensor `out`. Consumes the result. 0, or -errno with the error set. */
int output_give_result(const struct tensor_op *op, tensor *out, tensor *result);

/* Result dtype for inputs of dtype `common`; *common becomes the dtype in which the kernel
 * computes. */
enum tensor_dtype op_result_dtype(const struct tensor_op *op, enum tensor_dtype *common);

/* self converted to a dtype: a new tensor, or another reference to self. Owned. */
tensor *operand_cast(tensor *self, enum tensor_dtype dtype);
/* A reduced float operand in f32, any other as it is: a new tensor, or another reference to self.
 * Owned. */
static inline tensor *operand_widen(tensor *self)
{
	return operand_cast(self, dtype_wide(self->dtype));
}
/* Copy in row-major order, even if self has that order; _to_copy and clone preserve self's order
 * instead. Owned; recorded by autograd. */
tensor *operand_contiguous_copy(tensor *self, tensor_options options);
/* dst = src with any dtypes, strides and devices; src broadcasts to dst. */
int operand_copy(tensor *dst, const tensor *src);
int operand_check_device(const char *op, const tensor *a, const tensor *b);
/* self if it is contiguous, else a contiguous copy. Owned. */
tensor *operand_contiguous(tensor *self);
/* The same in host memory, for functions that read elements. Waits for the device. */
tensor *operand_on_host(tensor *self);
/* As operand_contiguous(), with reduced floats in f32. */
tensor *operand_dense(tensor *self);

/* t, or a 0-d t as a vector of one element described in `header`. Borrowed. */
static inline tensor *operand_as_vector(tensor *header, const tensor *t)
{
	if (likely(t->ndim))
		return (tensor *)t;
	*header = *t;
	header->ndim = 1;
	header->sizes[0] = header->strides[0] = 1;
	return header;
}

/* Compute the sizes of reshape(self, shape), where one -1 is inferred. 0, or -errno with the error
 * set. */
int view_reshape_sizes(const char *op, const tensor *self, tensor_ints shape, int64_t *sizes);

/* Convert an alpha or beta to a double for a kernel that computes in dtype. For integer dtypes it
 * must be an integer that a double represents exactly. */
int scalar_factor(const struct tensor_op *op, const char *name, tensor_scalar s,
		  enum tensor_dtype dtype, double *value);

/* Convert a scalar without loss to dtype's category (bool counts as integer): an integer kernel
 * reads value->i, a floating one value->d, a complex one also value->imag. */
int scalar_operand(const struct tensor_op *op, const char *name, tensor_scalar s,
		   enum tensor_dtype dtype, tensor_scalar *value);

/* As scalar_operand(), but a fraction is truncated for integer dtypes, as matrix products do with
 * alpha and beta. */
int scalar_operand_truncated(const struct tensor_op *op, const char *name, tensor_scalar s,
			     enum tensor_dtype dtype, tensor_scalar *value);

/* True if a scalar set by scalar_operand() is zero. */
static inline bool scalar_is_zero(tensor_scalar s)
{
	return s.kind == TENSOR_SCALAR_INT ? !s.i : s.d == 0 && s.imag == 0;
}

/* True if autograd records a call with t as an argument. */
static inline bool operand_is_recorded(const tensor *t)
{
	return thread()->modes.grad_enabled && tensor_autograd_hooks.requires_grad(t);
}

/* One of several results: the caller's pointer, and the tensor in the open scope. */
struct op_result {
	tensor **out;
	tensor *made;
};

/* Close the scope of a composite and return its results. If err is set or a result is missing, all
 * of the caller's pointers become NULL. Returns 0, or -errno with the error set. */
int results_leave(struct tensor_scope_guard *guard, const struct op_result *results, int n,
		  int err);

static inline int error_code(void)
{
	return -thread()->error.code;
}

#endif
