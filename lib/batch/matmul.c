// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Products of matrices and vectors, by matmul of the physical tensors. */
#include "batch/batch.h"

#include "family/copy.h"
#include "family/matmul.h"
#include "family/mm.h"
#include "family/pointwise.h"
#include "family/shape.h"
#include "family/view.h"

/* The samples of a and b are matrices, or batches of n matrices; others have an error that the loop finds. */
static bool are_matrices(const struct batch_call *c, int a, int b, int ndim)
{
	return arg_ndim(c, a) == ndim && arg_ndim(c, b) == ndim &&
	       (ndim == 2 || arg_sample(c, a)->sizes[0] == arg_sample(c, b)->sizes[0]);
}

int batch_rule_mm(struct batch_call *c)
{
	if (!are_matrices(c, 0, 1, 2))
		return batch_rule_loop(c);
	return batch_return(c, 0, tensor_matmul(c->phys[0].t, c->phys[1].t));
}

int batch_rule_bmm(struct batch_call *c)
{
	if (!are_matrices(c, 0, 1, 3))
		return batch_rule_loop(c);
	return batch_return(c, 0, tensor_matmul(c->phys[0].t, c->phys[1].t));
}

/* The product of argument m, matrices, and argument v, vectors. */
static tensor *matrix_vector(const struct batch_call *c, int m, int v)
{
	tensor *matrix = c->phys[m].t, *vector = c->phys[v].t;

	if (!arg_batched(c, v))
		return tensor_matmul(matrix, vector);
	if (!arg_batched(c, m))
		return tensor_matmul(vector, tensor_t(matrix));
	return tensor_squeeze_dim(tensor_matmul(matrix, tensor_unsqueeze(vector, 2)), 2);
}

int batch_rule_mv(struct batch_call *c)
{
	if (arg_ndim(c, 0) != 2 || arg_ndim(c, 1) != 1)
		return batch_rule_loop(c);
	return batch_return(c, 0, matrix_vector(c, 0, 1));
}

int batch_rule_dot(struct batch_call *c)
{
	const tensor *a = arg_sample(c, 0), *b = arg_sample(c, 1);
	tensor *x = c->phys[0].t, *y = c->phys[1].t;

	if (a->ndim != 1 || b->ndim != 1 || a->dtype != b->dtype ||
	    itemsize(a) == 1) /* matmul has no 8-bit floats */
		return batch_rule_loop(c);
	if (!arg_batched(c, 1))
		return batch_return(c, 0, tensor_matmul(x, y));
	if (!arg_batched(c, 0))
		return batch_return(c, 0, tensor_matmul(y, x));
	y = tensor_matmul(tensor_unsqueeze(x, 1), tensor_unsqueeze(y, 2));
	return batch_return(c, 0, tensor_reshape(y, TENSOR_INTS(c->size)));
}

int batch_rule_vdot(struct batch_call *c)
{
	return dtype_is_complex(c->phys[0].t->dtype) ? batch_rule_loop(c) : batch_rule_dot(c);
}

/* ---- beta * self + alpha * product ---- */

static bool is_zero(tensor_scalar s)
{
	return scalar_double(s) == 0 && s.kind != TENSOR_SCALAR_COMPLEX;
}

static bool is_one(tensor_scalar s)
{
	return scalar_double(s) == 1 && s.kind != TENSOR_SCALAR_COMPLEX;
}

/* product has samples of ndim dimensions, to which self broadcasts. */
static int add_product(struct batch_call *c, tensor *product, int ndim)
{
	tensor_scalar beta = c->args[3].scalar, alpha = c->args[4].scalar;
	tensor *self = c->phys[0].t;

	if (!product)
		return batch_failed();
	if (!is_one(alpha))
		product = tensor_mul_scalar(product, alpha);
	if (!product)
		return batch_failed();
	if (is_zero(beta))
		return batch_return(c, 0,
				    (c->batched & ~1ull) ? product : batch_expand(c, product));
	if (arg_batched(c, 0))
		self = batch_pad(self, ndim - arg_ndim(c, 0));
	if (!is_one(beta))
		self = tensor_mul_scalar(self, beta);
	return batch_return(c, 0, tensor_add(product, self));
}

/* A bias for each column: rows of all samples are rows of one matrix. */
static bool is_layer(const struct batch_call *c)
{
	return !arg_batched(c, 0) && !arg_batched(c, 2) && arg_ndim(c, 0) == 1;
}

int batch_rule_addmm(struct batch_call *c)
{
	if (!are_matrices(c, 1, 2, 2) || arg_ndim(c, 0) > 2)
		return batch_rule_loop(c);
	if (is_layer(c))
		return batch_return(
			c, 0,
			batch_unfold(c, tensor_addmm_opt(c->phys[0].t, batch_fold(c->phys[1].t),
							 c->phys[2].t, c->args[3].scalar,
							 c->args[4].scalar)));
	return add_product(c, tensor_matmul(c->phys[1].t, c->phys[2].t), 2);
}

int batch_rule_addmv(struct batch_call *c)
{
	if (arg_ndim(c, 0) > 1 || arg_ndim(c, 1) != 2 || arg_ndim(c, 2) != 1)
		return batch_rule_loop(c);
	return add_product(c, matrix_vector(c, 1, 2), 1);
}

int batch_rule_baddbmm(struct batch_call *c)
{
	if (!are_matrices(c, 1, 2, 3) || arg_ndim(c, 0) > 3)
		return batch_rule_loop(c);
	return add_product(c, tensor_matmul(c->phys[1].t, c->phys[2].t), 3);
}
