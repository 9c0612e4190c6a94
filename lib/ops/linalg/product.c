// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of products with vectors and of batched products. A vector is passed to the
 * backend's mm as a matrix of one column. */
#include "ops/linalg/product.h"

#include "family/matmul.h"

int product_bad_rank(const struct tensor_op *op, const char *name, const tensor *t, int ndim)
{
	static const char *const words[] = { "", "a vector", "a matrix", "a batch of matrices" };

	return tensor_fail(EINVAL, "%s: %s must be %s, got shape %s", op->schema.name, name,
			   words[ndim], SHAPE_STR(t));
}

int product_bad_dtype(const struct tensor_op *op, const char *name_a, const tensor *a,
		      const char *name_b, const tensor *b)
{
	return tensor_fail(EINVAL, "%s: %s and %s must have one dtype, got %s and %s",
			   op->schema.name, name_a, name_b, tensor_dtype_name(a->dtype),
			   tensor_dtype_name(b->dtype));
}

/* Copy self, broadcast, into the output for the kernel to accumulate, unless self is the output or
 * beta is 0. */
static int fill_with(const struct op_output *o, const tensor *self, tensor_scalar beta)
{
	return scalar_is_zero(beta) || o->t == self ? 0 : operand_copy(o->t, self);
}

static int check_self(const struct tensor_op *op, const tensor *self, const int64_t *sizes,
		      int ndim)
{
	char text[SHAPE_TEXT];

	if (iter_broadcasts_to(self, sizes, ndim))
		return 0;
	return tensor_fail(EINVAL, "%s: self %s does not broadcast to the product's shape %s",
			   op->schema.name, SHAPE_STR(self),
			   format_sizes(sizes, ndim, text, sizeof(text)));
}

static int factors(const struct tensor_op *op, enum tensor_dtype dtype, tensor_scalar *beta,
		   tensor_scalar *alpha)
{
	if (scalar_operand_truncated(op, "beta", *beta, dtype, beta) < 0 ||
	    scalar_operand_truncated(op, "alpha", *alpha, dtype, alpha) < 0)
		return error_code();
	return 0;
}

/* ---- batches ---- */

/* Check a [b, m, k] @ b [b, k, n]. */
static int check_batches(const struct tensor_op *op, const char *name_a, const tensor *a,
			 const char *name_b, const tensor *b, int64_t *sizes)
{
	if (product_check_rank(op, name_a, a, 3) < 0 || product_check_rank(op, name_b, b, 3) < 0 ||
	    product_check_dtype(op, name_a, a, name_b, b) < 0)
		return error_code();
	if (a->sizes[0] != b->sizes[0] || a->sizes[2] != b->sizes[1])
		return tensor_fail(EINVAL,
				   "%s: %s must be %lld matrices of %lld rows to match %s "
				   "%s, got %s",
				   op->schema.name, name_b, (long long)a->sizes[0],
				   (long long)a->sizes[2], name_a, SHAPE_STR(a), SHAPE_STR(b));
	sizes[0] = a->sizes[0];
	sizes[1] = a->sizes[1];
	sizes[2] = b->sizes[2];
	return 0;
}

int op_bmm(const struct tensor_op *op, tensor **out, tensor *self, tensor *mat2)
{
	const tensor *inputs[] = { self, mat2 };
	struct op_output o;
	int64_t sizes[3];
	mm_kernel fn;

	if (check_batches(op, "self", self, "mat2", mat2, sizes) < 0 ||
	    output_begin_apart(op, &o, *out, self->dtype, sizes, 3, inputs, 2) < 0)
		return error_code();
	fn = (mm_kernel)op_kernel(op, op->kernels, o.t);
	return output_end(op, &o, out,
			  fn ? fn(o.t, self, mat2, tensor_scalar_int(1), tensor_scalar_int(0)) :
			       error_code());
}

int op_baddbmm(const struct tensor_op *op, tensor **out, tensor *self, tensor *batch1,
	       tensor *batch2, tensor_scalar beta, tensor_scalar alpha)
{
	const tensor *inputs[] = { batch1, batch2, self };
	int n = op->variant == VARIANT_INPLACE ? 2 : 3, err = 0;
	struct op_output o;
	int64_t sizes[3];
	mm_kernel fn;

	if (check_batches(op, "batch1", batch1, "batch2", batch2, sizes) < 0 ||
	    product_check_dtype(op, "self", self, "batch1", batch1) < 0 ||
	    factors(op, self->dtype, &beta, &alpha) < 0 || check_self(op, self, sizes, 3) < 0 ||
	    output_begin_apart(op, &o, *out, self->dtype, sizes, 3, inputs, n) < 0)
		return error_code();
	fn = (mm_kernel)op_kernel(op, op->kernels, o.t);
	err = fn ? fill_with(&o, self, beta) : error_code();
	return output_end(op, &o, out, err ? err : fn(o.t, batch1, batch2, alpha, beta));
}

/* ---- vectors ---- */

/* Describe a vector as a matrix of one column, in `column`. */
static const tensor *as_column(tensor *column, const tensor *t)
{
	*column = *t;
	column->ndim = 2;
	column->sizes[1] = column->strides[1] = 1;
	return column;
}

/* out = beta * self + alpha * mat @ vec; self may be NULL. */
static int matrix_times_vector(const struct tensor_op *op, tensor **out, tensor *self, tensor *mat,
			       tensor *vec, tensor_scalar beta, tensor_scalar alpha)
{
	const tensor *inputs[] = { mat, vec, self };
	int n = self && op->variant != VARIANT_INPLACE ? 3 : 2, err = 0;
	tensor column, result;
	struct op_output o;
	mm_kernel fn;

	if (output_begin_apart(op, &o, *out, mat->dtype, mat->sizes, 1, inputs, n) < 0)
		return error_code();
	fn = (mm_kernel)op_kernel(op, op->kernels, o.t);
	err = !fn ? error_code() : self ? fill_with(&o, self, beta) : 0;
	return output_end(op, &o, out,
			  err ? err :
				fn((tensor *)as_column(&result, o.t), mat, as_column(&column, vec),
				   alpha, beta));
}

static int check_vector(const struct tensor_op *op, const tensor *mat, const tensor *vec)
{
	if (product_check_rank(op, "the matrix", mat, 2) < 0 ||
	    product_check_rank(op, "vec", vec, 1) < 0 ||
	    product_check_dtype(op, "the matrix", mat, "vec", vec) < 0)
		return error_code();
	if (mat->sizes[1] != vec->sizes[0])
		return tensor_fail(EINVAL,
				   "%s: vec must have %lld elements to match the matrix %s, "
				   "got %s",
				   op->schema.name, (long long)mat->sizes[1], SHAPE_STR(mat),
				   SHAPE_STR(vec));
	return 0;
}

int op_mv(const struct tensor_op *op, tensor **out, tensor *self, tensor *vec)
{
	if (check_vector(op, self, vec) < 0)
		return error_code();
	return matrix_times_vector(op, out, NULL, self, vec, tensor_scalar_int(0),
				   tensor_scalar_int(1));
}

int op_addmv(const struct tensor_op *op, tensor **out, tensor *self, tensor *mat, tensor *vec,
	     tensor_scalar beta, tensor_scalar alpha)
{
	if (check_vector(op, mat, vec) < 0 ||
	    product_check_dtype(op, "self", self, "mat", mat) < 0 ||
	    factors(op, self->dtype, &beta, &alpha) < 0 || check_self(op, self, mat->sizes, 1) < 0)
		return error_code();
	return matrix_times_vector(op, out, self, mat, vec, beta, alpha);
}

static int dot(const struct tensor_op *op, tensor **out, tensor *self, const char *name,
	       tensor *other, bool conjugate)
{
	const tensor *inputs[] = { self, other };
	struct op_output o;
	dot_kernel fn;

	if (product_check_rank(op, "self", self, 1) < 0 ||
	    product_check_rank(op, name, other, 1) < 0 ||
	    product_check_dtype(op, "self", self, name, other) < 0)
		return error_code();
	if (self->numel != other->numel)
		return tensor_fail(EINVAL, "%s: self and %s must have one length, got %s and %s",
				   op->schema.name, name, SHAPE_STR(self), SHAPE_STR(other));
	if (output_begin_apart(op, &o, *out, self->dtype, NULL, 0, inputs, 2) < 0)
		return error_code();
	fn = (dot_kernel)op_kernel(op, op->kernels, o.t);
	return output_end(op, &o, out, fn ? fn(o.t, self, other, conjugate) : error_code());
}

int op_dot(const struct tensor_op *op, tensor **out, tensor *self, tensor *other)
{
	return dot(op, out, self, "tensor", other, false);
}

int op_vdot(const struct tensor_op *op, tensor **out, tensor *self, tensor *other)
{
	return dot(op, out, self, "other", other, dtype_is_complex(self->dtype));
}
