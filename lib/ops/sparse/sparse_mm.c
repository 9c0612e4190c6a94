// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Products with a sparse matrix. The kernel takes compressed rows; with the sparse matrix on the
 * right, the transposed product is computed. */
#include "ops/sparse/sparse.h"

#include "family/copy.h"
#include "family/mm.h"
#include "family/sparse.h"
#include "family/view.h"

static int check_shapes(const struct tensor_op *op, const tensor *a, const tensor *b)
{
	if (a->ndim != 2 || b->ndim != 2 || a->sizes[1] != b->sizes[0])
		return tensor_fail(EINVAL,
				   "%s: matrices [m, k] and [k, n] are needed, got %s and %s",
				   op->schema.name, SHAPE_STR(a), SHAPE_STR(b));
	if (operand_check_device(op->schema.name, a, b) < 0)
		return error_code();
	if (a->dtype != b->dtype)
		return tensor_fail(EINVAL, "%s: both matrices must have one dtype, got %s and %s",
				   op->schema.name, tensor_dtype_name(a->dtype),
				   tensor_dtype_name(b->dtype));
	return 0;
}

/* t in the kernels' dtype with contiguous rows. Owned. */
static tensor *dense_operand(tensor *t)
{
	tensor *wide = operand_widen(t), *full;

	if (!wide || t->sizes[1] <= 1 || (wide->strides[1] == 1 && wide->strides[0] >= 0))
		return wide;
	full = operand_contiguous(wide);
	tensor_put(wide);
	return full;
}

/* result = beta * result + alpha * S @ dense; result is new, contiguous and of the wide dtype. */
static int product(tensor *result, tensor *sparse, tensor *dense, double alpha, double beta)
{
	spmm_kernel fn = (spmm_kernel)kernels_spmm.fn[backend_key(result)];
	tensor *csr = sparse_to_csr(sparse), *operand = dense_operand(dense), *values = NULL;
	int err = -ENOMEM;

	if (csr && operand)
		values = operand_widen(sparse_of(csr)->values);
	if (values)
		err = fn(result, sparse_of(csr)->crow, sparse_of(csr)->col, values, operand, alpha,
			 beta);
	tensor_put(csr);
	tensor_put(operand);
	tensor_put(values);
	return err;
}

/* dense @ S = (S^T @ dense^T)^T; result is the transpose, as in product(). Rows are compressed first: their transpose needs no sort. */
static int product_right(tensor *result, tensor *dense, tensor *sparse, double alpha, double beta)
{
	tensor *csr = is_on_device(sparse) ? tensor_get(sparse) : sparse_to_csr(sparse);
	tensor *s = csr ? call_transpose_int(csr, 0, 1) : NULL,
	       *d = call_transpose_int(dense, 0, 1);
	int err = s && d ? product(result, s, d, alpha, beta) : error_code();

	tensor_put(csr);
	tensor_put(s);
	tensor_put(d);
	return err;
}

/* ---- sparse times sparse ---- */

/* The values of the product of two CSR matrices, whose indices are crow and col, of their dtype. Owned. */
static tensor *product_values(const tensor *a, const tensor *b, const tensor *crow,
			      const tensor *col)
{
	const struct sparse *x = sparse_of(a), *y = sparse_of(b);
	tensor *va = operand_widen(x->values), *vb = operand_widen(y->values), *out = NULL,
	       *result = NULL;
	spgemm_kernel fn = (spgemm_kernel)kernels_spgemm.fn[backend_key(x->values)];

	if (va && vb)
		out = tensor_new(TENSOR_DEVICE_CPU, va->dtype, &col->numel, 1);
	if (out) {
		struct spgemm p = { a->sizes[0],
				    b->sizes[1],
				    i64_data(crow),
				    i64_data(col),
				    i64_data(x->crow),
				    i64_data(x->col),
				    i64_data(y->crow),
				    i64_data(y->col),
				    va,
				    vb,
				    out };

		if (fn(&p) == 0)
			result = operand_cast(out, a->dtype);
	}
	tensor_put(va);
	tensor_put(vb);
	tensor_put(out);
	return result;
}

static tensor *product_of_csr(const tensor *a, const tensor *b)
{
	const struct sparse *x = sparse_of(a), *y = sparse_of(b);
	int64_t m = a->sizes[0], n = b->sizes[1];
	tensor *crow = sparse_new_i64(m + 1), *col = NULL, *values = NULL, *t = NULL;

	if (crow)
		col = sparse_product_columns(i64_data(crow), i64_data(x->crow), i64_data(x->col),
					     i64_data(y->crow), i64_data(y->col), m, n);
	if (col)
		values = product_values(a, b, crow, col);
	if (values)
		t = sparse_new_csr((tensor_ints){ (int64_t[]){ m, n }, 2 }, crow, col, values);
	tensor_put(crow);
	tensor_put(col);
	tensor_put(values);
	return t;
}

/* The result is sparse, with a's layout: elements at all positions that have a product, also where their sum is 0. */
static int multiply_sparse(const struct tensor_op *op, tensor **out, tensor *a, tensor *b)
{
	tensor *x, *y = NULL, *t = NULL;

	if (*out)
		return tensor_fail(EOPNOTSUPP, "%s: the product of sparse matrices has no out form",
				   op->schema.name);
	if (is_on_device(a))
		return tensor_fail(EOPNOTSUPP,
				   "%s: the product of sparse matrices is on the CPU only",
				   op->schema.name);
	x = sparse_to_csr(a);
	y = x ? sparse_to_csr(b) : NULL;
	t = y ? product_of_csr(x, y) : NULL;
	tensor_put(x);
	tensor_put(y);
	if (t && is_coo(a)) {
		*out = sparse_coalesced(t);
		tensor_put(t);
	} else {
		*out = t;
	}
	return *out ? 0 : error_code();
}

/* New result initialized to beta * self, transposed for product_right(). */
static tensor *new_result(tensor_device device, tensor *self, double beta, int64_t rows,
			  int64_t columns, bool transposed, enum tensor_dtype dtype)
{
	int64_t sizes[] = { rows, columns }, turned[] = { columns, rows };
	tensor *t = tensor_new(device, dtype_wide(dtype), transposed ? turned : sizes, 2);
	tensor *as_self = t && transposed ? call_transpose_int(t, 0, 1) : t ? tensor_get(t) : NULL;

	if (as_self && beta != 0 && operand_copy(as_self, self) < 0) {
		tensor_put(t);
		t = NULL;
	}
	tensor_put(as_self);
	return t;
}

/* Convert the result and set *out; consumes t. */
static int return_result(const struct tensor_op *op, tensor **out, tensor *t, bool transposed,
			 enum tensor_dtype dtype)
{
	tensor *seen = transposed ? call_transpose_int(t, 0, 1) : tensor_get(t), *result = NULL;
	const tensor *inputs[] = { seen };
	struct op_output o;
	int err = 0;

	if (!seen) {
		err = error_code();
	} else if (*out) {
		err = output_begin(op, &o, *out, dtype, seen->sizes, 2, inputs, 1);
		if (!err)
			err = output_end(op, &o, out, operand_copy(o.t, seen));
	} else {
		result = transposed ?
				 operand_contiguous_copy(seen, TENSOR_OPTIONS(.dtype = dtype)) :
				 operand_cast(seen, dtype);
		*out = result;
		err = result ? 0 : error_code();
	}
	tensor_put(seen);
	tensor_put(t);
	return err;
}

static int multiply(const struct tensor_op *op, tensor **out, tensor *self, tensor *mat1,
		    tensor *mat2, double alpha, double beta)
{
	bool right = !is_sparse(mat1);
	tensor *t;
	int err;

	if (is_sparse(mat1) && is_sparse(mat2) && !self)
		return multiply_sparse(op, out, mat1, mat2);
	if (is_sparse(mat1) && is_sparse(mat2))
		return tensor_fail(EOPNOTSUPP, "%s: one of the matrices must be strided",
				   op->schema.name);
	if (*out && (*out)->ext)
		return tensor_fail(EINVAL, "%s: the result is strided, out is not",
				   op->schema.name);
	t = new_result(mat1->device, self, beta, mat1->sizes[0], mat2->sizes[1], right,
		       mat1->dtype);
	if (!t)
		return error_code();
	err = right ? product_right(t, mat1, mat2, alpha, beta) :
		      product(t, mat1, mat2, alpha, beta);
	if (err < 0) {
		tensor_put(t);
		return err;
	}
	return return_result(op, out, t, right, mat1->dtype);
}

int op_sparse_mm(const struct tensor_op *op, tensor **out, tensor *self, tensor *mat2)
{
	if (check_shapes(op, self, mat2) < 0)
		return error_code();
	return multiply(op, out, NULL, self, mat2, 1, 0);
}

int op_sparse_addmm(const struct tensor_op *op, tensor **out, tensor *self, tensor *mat1,
		    tensor *mat2, tensor_scalar beta, tensor_scalar alpha)
{
	double a = 0, b = 0;

	if (self->ext || (!is_sparse(mat1) && !is_sparse(mat2)))
		return tensor_fail(EOPNOTSUPP, "%s: self must be strided, got layout %s",
				   op->schema.name, tensor_layout_name(self->layout));
	if (check_shapes(op, mat1, mat2) < 0 ||
	    scalar_factor(op, "beta", beta, mat1->dtype, &b) < 0 ||
	    scalar_factor(op, "alpha", alpha, mat1->dtype, &a) < 0)
		return error_code();
	if (operand_check_device(op->schema.name, self, mat1) < 0)
		return error_code();
	if (self->dtype != mat1->dtype)
		return tensor_fail(EINVAL, "%s: self must have dtype %s, got %s", op->schema.name,
				   tensor_dtype_name(mat1->dtype), tensor_dtype_name(self->dtype));
	if (!iter_broadcasts_to(self, (int64_t[]){ mat1->sizes[0], mat2->sizes[1] }, 2))
		return tensor_fail(EINVAL, "%s: self %s does not broadcast to [%lld, %lld]",
				   op->schema.name, SHAPE_STR(self), (long long)mat1->sizes[0],
				   (long long)mat2->sizes[1]);
	return multiply(op, out, self, mat1, mat2, a, b);
}

tensor *kernel_sparse_mm_masked(tensor *sparse, tensor *dense)
{
	return call_mm(sparse, dense);
}

static tensor *sampled(tensor *mat1, tensor *mat2, const tensor *mask)
{
	sampled_mm_kernel fn = (sampled_mm_kernel)kernels_sampled_mm.fn[backend_key(mat1)];
	const struct sparse *s = sparse_of(mask);
	tensor *turned = call_transpose_int(mat2, 0, 1), *a = dense_operand(mat1);
	tensor *b = turned ? dense_operand(turned) : NULL;
	tensor *wide = a ? tensor_new(a->device, a->dtype, &s->nnz, 1) : NULL, *values = NULL;
	tensor *result = NULL;

	if (b && wide && fn(wide, s->indices, a, b) == 0)
		values = operand_cast(wide, mat1->dtype);
	if (values)
		result = sparse_with_values(mask, values);
	tensor_put(turned);
	tensor_put(a);
	tensor_put(b);
	tensor_put(wide);
	tensor_put(values);
	return result;
}

/* The gradient of a factor whose product with another sparse matrix is sparse: both have elements anywhere. */
static tensor *sampled_of_sparse(tensor *mat1, tensor *mat2, tensor *mask)
{
	tensor *a = is_sparse(mat1) ? kernel_sparse_to_dense(mat1, TENSOR_DTYPE_NONE) :
				      tensor_get(mat1);
	tensor *b = !a		    ? NULL :
		    is_sparse(mat2) ? kernel_sparse_to_dense(mat2, TENSOR_DTYPE_NONE) :
				      tensor_get(mat2);
	tensor *t = b ? kernel_sparse_sampled_mm(a, b, mask) : NULL;

	tensor_put(a);
	tensor_put(b);
	return t;
}

/* Elements of mat1 @ mat2 at the indices of mask: the gradient of a sparse factor. The mask is
 * coalesced first, because duplicate indices would count twice. */
tensor *kernel_sparse_sampled_mm(tensor *mat1, tensor *mat2, tensor *mask)
{
	tensor *coo, *t, *csr;

	if (is_sparse(mask) && (is_sparse(mat1) || is_sparse(mat2)))
		return sampled_of_sparse(mat1, mat2, mask);
	if (!is_sparse(mask) || is_sparse(mat1) || is_sparse(mat2) || mat1->ndim != 2 ||
	    mat2->ndim != 2 || mask->ndim != 2 || sparse_of(mask)->sparse_dim != 2 ||
	    mat1->sizes[1] != mat2->sizes[0] || mask->sizes[0] != mat1->sizes[0] ||
	    mask->sizes[1] != mat2->sizes[1] || mat1->dtype != mat2->dtype)
		return tensor_fail_null(EINVAL,
					"_sparse_sampled_mm: matrices [m, k] and [k, n] "
					"of one dtype and a sparse mask [m, n] are needed, got "
					"%s, %s and %s",
					SHAPE_STR(mat1), SHAPE_STR(mat2), SHAPE_STR(mask));
	if (operand_check_device("_sparse_sampled_mm", mat1, mat2) < 0 ||
	    operand_check_device("_sparse_sampled_mm", mat1, mask) < 0)
		return NULL;
	coo = sparse_coalesced(mask);
	t = coo ? sampled(mat1, mat2, coo) : NULL;
	tensor_put(coo);
	if (!t || is_coo(mask))
		return t;
	csr = sparse_to_csr(t);
	tensor_put(t);
	return csr;
}
