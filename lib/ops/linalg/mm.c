// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of matrix products: shape and dtype checks, then the backend's mm kernel. */
#include "ops/linalg/product.h"

#include "kernels/abi/product.h"

#include "family/activation.h"
#include "family/mm.h"
#include "family/pointwise.h"

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

/* ---- addmm, with an activation ---- */

struct activation {
	const char *name;
	const struct tensor_kernel_table *kernels; /* NULL: none */
};

static const struct activation activations[] = { { "none", NULL },
						 { "relu", &kernels_relu },
						 { "gelu", &kernels_gelu },
						 { "gelu_tanh", &kernels_gelu_tanh },
						 { "silu", &kernels_silu } };

static const struct activation *find_activation(const struct tensor_op *op, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(activations); i++)
		if (!strcmp(activations[i].name, name))
			return &activations[i];
	tensor_fail(EINVAL, "%s: activation must be none, relu, gelu, gelu_tanh or silu, got %s",
		    op->schema.name, QUOTED(name));
	return NULL;
}

struct sum {
	tensor *self, *mat1, *mat2;
	tensor_scalar beta, alpha;
};

static int check_sum(const struct tensor_op *op, struct sum *s, int64_t *sizes)
{
	if (check_product(op, "mat1", s->mat1, s->mat2) < 0 ||
	    product_check_dtype(op, "self", s->self, "mat1", s->mat1) < 0 ||
	    scalar_operand_truncated(op, "beta", s->beta, s->mat1->dtype, &s->beta) < 0 ||
	    scalar_operand_truncated(op, "alpha", s->alpha, s->mat1->dtype, &s->alpha) < 0)
		return error_code();
	sizes[0] = s->mat1->sizes[0];
	sizes[1] = s->mat2->sizes[1];
	if (!iter_broadcasts_to(s->self, sizes, 2))
		return tensor_fail(EINVAL,
				   "%s: self %s does not broadcast to the product's shape "
				   "[%lld, %lld]",
				   op->schema.name, SHAPE_STR(s->self), (long long)sizes[0],
				   (long long)sizes[1]);
	return 0;
}

/* Whether the backend can add self to each row while it writes the product. */
static bool is_bias(const tensor *self, const tensor *out)
{
	const int last = self->ndim - 1;

	return self != out && (last == 0 || (last == 1 && self->sizes[0] == 1)) &&
	       self->sizes[last] == out->sizes[1] && self->strides[last] == 1;
}

/* The kernel that adds the bias and applies the activation to blocks of out; NULL if there is none. */
static mm_epilogue_kernel epilogue_kernel(const tensor *out)
{
	const enum tensor_dtype dtype = out->dtype;

	return dtype == TENSOR_F32 || dtype == TENSOR_F64 || dtype_is_reduced_float(dtype) ?
		       (mm_epilogue_kernel)kernels_mm_epilogue.fn[backend_key(out)] :
		       NULL;
}

static int activate(tensor *out, pointwise_kernel fn)
{
	const tensor *ops[] = { out, out };
	struct tensor_iter it = { .dtype = out->dtype };

	iter_build(&it, ops, 2);
	return fn(&it, NULL);
}

static int compute_sum(const struct tensor_op *op, tensor *out, const struct sum *s,
		       const struct tensor_kernel_table *activation)
{
	const mm_epilogue_kernel fused = epilogue_kernel(out);
	struct mm_epilogue e = { 0 };
	mm_kernel fn = NULL;
	int err = 0;

	if (activation && !(e.activation = (pointwise_kernel)op_kernel(op, activation, out)))
		return error_code();
	if (!fused && !(fn = (mm_kernel)op_kernel(op, op->kernels, out)))
		return error_code();
	if (!scalar_is_zero(s->beta) && out != s->self) {
		if (fused && is_bias(s->self, out))
			e.bias = s->self;
		else
			err = operand_copy(out, s->self);
	}
	if (err)
		return err;
	if (fused)
		return fused(out, s->mat1, s->mat2, s->alpha, s->beta, &e);
	err = fn(out, s->mat1, s->mat2, s->alpha, s->beta);
	return err || !activation ? err : activate(out, e.activation);
}

static int sum(const struct tensor_op *op, tensor **out, struct sum *s,
	       const struct tensor_kernel_table *activation)
{
	const tensor *inputs[] = { s->mat1, s->mat2, s->self };
	/* In place, the kernel accumulates into self; otherwise self is an input. */
	const int n = op->variant == VARIANT_INPLACE ? 2 : 3;
	struct op_output o;
	int64_t sizes[2];

	if (check_sum(op, s, sizes) < 0 ||
	    output_begin_apart(op, &o, *out, s->mat1->dtype, sizes, 2, inputs, n) < 0)
		return error_code();
	return output_end(op, &o, out, compute_sum(op, o.t, s, activation));
}

int op_addmm(const struct tensor_op *op, tensor **out, tensor *self, tensor *mat1, tensor *mat2,
	     tensor_scalar beta, tensor_scalar alpha)
{
	struct sum s = { self, mat1, mat2, beta, alpha };

	return sum(op, out, &s, NULL);
}

int op_addmm_pointwise(const struct tensor_op *op, tensor **out, tensor *self, tensor *mat1,
		       tensor *mat2, const char *activation, tensor_scalar beta,
		       tensor_scalar alpha)
{
	const struct activation *f = find_activation(op, activation);
	struct sum s = { self, mat1, mat2, beta, alpha };

	return f ? sum(op, out, &s, f->kernels) : error_code();
}
