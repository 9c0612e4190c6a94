// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of matrix products: shape and dtype checks, then the backend's mm kernel. */
#include "ops/linalg/product.h"

#include "family/mm.h"

/* Check a [m, k] @ b [k, n]. */
static int check_product(const struct tensor_op *op, const char *name_a, const tensor *a,
			 const tensor *b)
{
	if (product_check_rank(op, name_a, a, 2) < 0 || product_check_rank(op, "mat2", b, 2) < 0)
		return error_code();
	if (unlikely(a->sizes[1] != b->sizes[0]))
		return tensor_fail(EINVAL, "%s: mat2 must have %lld rows to match %s %s, got %s",
				   op->schema.name, (long long)a->sizes[1], name_a, SHAPE_STR(a),
				   SHAPE_STR(b));
	return product_check_dtype(op, name_a, a, "mat2", b);
}

int op_mm(const struct tensor_op *op, tensor **out, tensor *self, tensor *mat2)
{
	const tensor *inputs[] = { self, mat2 };
	struct op_output o;
	int64_t sizes[2];
	mm_kernel fn;

	if (check_product(op, "self", self, mat2) < 0)
		return error_code();
	sizes[0] = self->sizes[0];
	sizes[1] = mat2->sizes[1];
	if (output_begin_apart(op, &o, *out, self->dtype, sizes, 2, inputs, 2) < 0)
		return error_code();
	fn = (mm_kernel)op_kernel(op, op->kernels, o.t);
	return output_end(op, &o, out,
			  fn ? fn(o.t, self, mat2, tensor_scalar_int(1), tensor_scalar_int(0)) :
			       error_code());
}

int op_addmm(const struct tensor_op *op, tensor **out, tensor *self, tensor *mat1, tensor *mat2,
	     tensor_scalar beta, tensor_scalar alpha)
{
	const tensor *inputs[] = { mat1, mat2, self };
	bool inplace = op->variant == VARIANT_INPLACE;
	struct op_output o;
	int64_t sizes[2];
	mm_kernel fn;
	int err = 0;

	if (check_product(op, "mat1", mat1, mat2) < 0 ||
	    product_check_dtype(op, "self", self, "mat1", mat1) < 0 ||
	    scalar_operand_truncated(op, "beta", beta, mat1->dtype, &beta) < 0 ||
	    scalar_operand_truncated(op, "alpha", alpha, mat1->dtype, &alpha) < 0)
		return error_code();
	sizes[0] = mat1->sizes[0];
	sizes[1] = mat2->sizes[1];
	if (!iter_broadcasts_to(self, sizes, 2))
		return tensor_fail(EINVAL,
				   "%s: self %s does not broadcast to the product's shape "
				   "[%lld, %lld]",
				   op->schema.name, SHAPE_STR(self), (long long)sizes[0],
				   (long long)sizes[1]);
	/* In place, the kernel accumulates into self; otherwise self is an input. */
	if (output_begin_apart(op, &o, *out, mat1->dtype, sizes, 2, inputs, inplace ? 2 : 3) < 0)
		return error_code();
	fn = (mm_kernel)op_kernel(op, op->kernels, o.t);
	if (!fn)
		err = error_code();
	if (!err && !scalar_is_zero(beta) && o.t != self)
		err = operand_copy(o.t, self);
	if (!err)
		err = fn(o.t, mat1, mat2, alpha, beta);
	return output_end(op, &o, out, err);
}
