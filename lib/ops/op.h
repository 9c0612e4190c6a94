/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What fronts share. A front infers shape and dtype, gets the output, and calls the kernel of the
 * output's backend. It serves the functional, in-place and out forms alike: *out is NULL for the
 * first (and is set to an owned tensor), the caller's tensor for the others.
 */
#ifndef TENSOR_OP_H
#define TENSOR_OP_H

#include "dispatch/dispatch.h"
#include "kernels/abi/kernels.h"

/*
 * The output between output_begin() and output_end(). A kernel writes to `t`, which is a temporary
 * when the caller's tensor has another dtype or overlaps an input in another way than element
 * for element.
 */
struct op_output {
	tensor *t;
	tensor *given;		 /* the caller's, NULL for the functional form */
	enum tensor_dtype dtype; /* of the functional form's result */
	bool channels_last;	 /* how that result is to lie, while t is contiguous */
};

/* Inputs (NULL entries are skipped) are checked for being on one device and for overlap. */
int output_begin(const struct tensor_op *op, struct op_output *o, tensor *given,
		 enum tensor_dtype dtype, const int64_t *sizes, int ndim,
		 const tensor *const *inputs, int ninputs);
/*
 * The same for kernels that read inputs again after they began to write: an output that shares
 * any memory with an input is written apart, and a functional result is always contiguous.
 */
int output_begin_apart(const struct tensor_op *op, struct op_output *o, tensor *given,
		       enum tensor_dtype dtype, const int64_t *sizes, int ndim,
		       const tensor *const *inputs, int ninputs);
/* The same with a functional result of self's sizes whose dimensions are in the order of self's,
 * for kernels that write to any strides. */
int output_begin_like(const struct tensor_op *op, struct op_output *o, tensor *given,
		      enum tensor_dtype dtype, const tensor *self, const tensor *const *inputs,
		      int ninputs);
/* ... and with one whose channels are last, if that is so. */
int output_begin_channels(const struct tensor_op *op, struct op_output *o, tensor *given,
			  enum tensor_dtype dtype, const int64_t *sizes, int ndim,
			  bool channels_last, const tensor *const *inputs, int ninputs);
/*
 * For kernels that know f32 instead of the halves: t is of the wider dtype then, and output_end()
 * converts. The inputs' counterpart is operand_widen().
 */
int output_begin_wide(const struct tensor_op *op, struct op_output *o, tensor *given,
		      enum tensor_dtype dtype, const int64_t *sizes, int ndim,
		      const tensor *const *inputs, int ninputs);
/* For kernels of whole images: apart from the inputs, contiguous, f32 instead of the halves. The
 * inputs' counterpart is operand_dense(). */
int output_begin_dense(const struct tensor_op *op, struct op_output *o, tensor *given,
		       enum tensor_dtype dtype, const int64_t *sizes, int ndim,
		       const tensor *const *inputs, int ninputs);
/* For kernels whose t is contiguous: the functional form's result is to have its channels last if
 * self has. */
void output_keep_format(struct op_output *o, const tensor *self);
/* t in this dtype, and with channels last where that is wanted: an owned tensor, or t with one more
 * reference. */
tensor *operand_lay_out(tensor *t, enum tensor_dtype dtype, bool channels_last);
/* Finishes with the kernel's result: copies a temporary to its place, sets *out; on error
 * releases what was made. Returns err. */
int output_end(const struct tensor_op *op, struct op_output *o, tensor **out, int err);

/* The result dtype for inputs of dtype `common`; *common becomes what the kernel computes in. */
enum tensor_dtype op_result_dtype(const struct tensor_op *op, enum tensor_dtype *common);

/* An operand in another dtype: an owned tensor, or self with one more reference. */
tensor *operand_cast(tensor *self, enum tensor_dtype dtype);
/* Halves as f32, others as they are: an owned tensor, or self with one more reference. */
static inline tensor *operand_widen(tensor *self)
{
	return operand_cast(self, dtype_wide(self->dtype));
}
/* A copy in row-major order, also of a tensor that is so; _to_copy and clone keep the order of
 * self's dimensions. Owned; it has a history if self has one. */
tensor *operand_contiguous_copy(tensor *self, tensor_options options);
/* dst = src, any dtypes, strides and devices, shapes that broadcast. */
int operand_copy(tensor *dst, const tensor *src);
int check_same_device(const char *op, const tensor *a, const tensor *b);
/* A new contiguous tensor with self's values, or self with one more reference when it is so. */
tensor *operand_contiguous(tensor *self);
/* The same, with f32 instead of the halves. */
tensor *operand_dense(tensor *self);

/* What reshape(self, shape) has: a size of -1 is filled in. 0, or -errno with the error set. */
int reshape_sizes(const char *op, const tensor *self, tensor_ints shape, int64_t *sizes);

/*
 * An alpha or beta for a kernel that computes in dtype: a whole number for integers, and one
 * that a double holds exactly.
 */
int scalar_factor(const struct tensor_op *op, const char *name, tensor_scalar s,
		  enum tensor_dtype dtype, double *value);

/*
 * The same without loss: a scalar of dtype's own category (a bool counts as an integer), so that
 * an integer kernel reads value->i, a floating one value->d, a complex one value->imag as well.
 */
int scalar_operand(const struct tensor_op *op, const char *name, tensor_scalar s,
		   enum tensor_dtype dtype, tensor_scalar *value);

/* And with a fraction cut off where dtype is whole, as matrix products take their factors. */
int scalar_operand_truncated(const struct tensor_op *op, const char *name, tensor_scalar s,
			     enum tensor_dtype dtype, tensor_scalar *value);

/* Of a scalar that scalar_operand() made. */
static inline bool scalar_is_zero(tensor_scalar s)
{
	return s.kind == TENSOR_SCALAR_INT ? !s.i : s.d == 0 && s.imag == 0;
}

/* A result: where the caller wants it, and the tensor of the scope that has it. */
struct op_result {
	tensor **out;
	tensor *made;
};

/* Ends the scope of a composite with several results: hands them on. With err, or without one of them, the
 * caller gets NULL for all. Returns 0 or -errno with the error set. */
int results_leave(struct tensor_scope_guard *guard, const struct op_result *results, int n,
		  int err);

static inline int error_code(void)
{
	return -thread()->error.code;
}

#endif
