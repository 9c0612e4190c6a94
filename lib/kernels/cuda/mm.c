// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Matrix products by cuBLASLt, whose matrices are column-major. A row-major out = a b is computed
 * as out' = b' a', where ' reads the same memory as columns; a transposed operand sets the
 * transpose operation. A matrix that is neither row- nor column-major is copied first.
 *
 * f32 is computed in f32, not in TF32, to keep the accuracy of the dtype.
 */
#include "kernels/cuda/cuda.h"

#include <cublasLt.h>
#include <pthread.h>

#define WORKSPACE ((size_t)32 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cublasLtHandle_t handles[CUDA_DEVICES]; /* a handle may be used by several threads */

/* A matrix in memory: element [i][j] at data + i * row + j * col. */
struct matrix {
	void *data, *scratch;
	int64_t rows, cols, row, col;
};

static int blas_check(const struct cuda_call *c, cublasStatus_t status)
{
	if (likely(status == CUBLAS_STATUS_SUCCESS))
		return 0;
	return tensor_fail(status == CUBLAS_STATUS_ALLOC_FAILED ? ENOMEM : EIO, "%s: cuBLASLt: %s",
			   c->op, cublasLtGetStatusString(status));
}

static int get_handle(const struct cuda_call *c, cublasLtHandle_t *handle)
{
	int err = 0;

	pthread_mutex_lock(&lock);
	if (!handles[c->device])
		err = blas_check(c, cublasLtCreate(&handles[c->device]));
	*handle = handles[c->device];
	pthread_mutex_unlock(&lock);
	return err;
}

/* ---- matrices ---- */

/* The stride of a dimension of size 1 is arbitrary: sets the one that cuBLASLt accepts. */
static struct matrix matrix_of(const tensor *t)
{
	struct matrix m = { .data = t->data,
			    .rows = t->sizes[0],
			    .cols = t->sizes[1],
			    .row = t->strides[0],
			    .col = t->strides[1] };

	if (m.rows == 1 && m.cols == 1)
		m.row = m.col = 1;
	else if (m.cols == 1)
		m.col = 1;
	else if (m.rows == 1)
		m.row = m.col == 1 ? m.cols : 1;
	return m;
}

static bool row_major(const struct matrix *m)
{
	return m->col == 1 && m->row >= (m->cols > 1 ? m->cols : 1);
}

static bool col_major(const struct matrix *m)
{
	return m->row == 1 && m->col >= (m->rows > 1 ? m->rows : 1);
}

/* Copies `from` to `to`, of the same shape. */
static int copy_matrix(const struct cuda_call *c, const struct matrix *to,
		       const struct matrix *from, enum tensor_dtype dtype)
{
	struct cuda_pointwise p = { .data = { to->data, from->data } };
	int64_t size = (int64_t)tensor_itemsize(dtype);

	cuda_dims_init(&p.dims);
	cuda_dims_add(&p.dims, 2, to->cols, (const int64_t[]){ to->col * size, from->col * size });
	cuda_dims_add(&p.dims, 2, to->rows, (const int64_t[]){ to->row * size, from->row * size });
	return cuda_copy_within(c, &p, dtype, dtype);
}

/* A row-major matrix of m's shape in scratch memory, uninitialised. */
static int make_apart(const struct cuda_call *c, struct matrix *apart, const struct matrix *m,
		      enum tensor_dtype dtype)
{
	*apart = *m;
	apart->row = m->cols;
	apart->col = 1;
	int err = cuda_scratch(c, m->rows * m->cols * tensor_itemsize(dtype), &apart->scratch);

	apart->data = apart->scratch;
	return err;
}

/* Replaces m by a copy unless cuBLASLt can read it. */
static int readable(const struct cuda_call *c, struct matrix *m, enum tensor_dtype dtype)
{
	struct matrix apart;
	int err;

	if (row_major(m) || col_major(m))
		return 0;
	err = make_apart(c, &apart, m, dtype);
	if (err)
		return err;
	err = copy_matrix(c, &apart, m, dtype);
	*m = apart;
	return err;
}

static struct matrix transposed(const struct matrix *m)
{
	return (struct matrix){ m->data, m->scratch, m->cols, m->rows, m->col, m->row };
}

/* ---- the product, in columns: out = alpha * a b + beta * out ---- */

struct product {
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t a, b, out;
	cublasLtMatmulPreference_t preference;
	cublasLtMatmulHeuristicResult_t algo;
};

static cudaDataType_t data_type(enum tensor_dtype dtype)
{
	return dtype == TENSOR_F64 ? CUDA_R_64F : CUDA_R_32F;
}

/* Describes the memory of m as columns: m itself, or its transpose if m is row-major. */
static cublasStatus_t make_layout(cublasLtMatrixLayout_t *layout, const struct matrix *m,
				  enum tensor_dtype dtype, cublasOperation_t *op)
{
	bool columns = col_major(m);

	*op = columns ? CUBLAS_OP_N : CUBLAS_OP_T;
	return cublasLtMatrixLayoutCreate(layout, data_type(dtype), columns ? m->rows : m->cols,
					  columns ? m->cols : m->rows, columns ? m->col : m->row);
}

/* Sets the alignment of p: the heuristic assumes 256 bytes, which a view may not have. */
static cublasStatus_t set_alignment(cublasLtMatmulPreference_t preference,
				    cublasLtMatmulPreferenceAttributes_t attribute, const void *p)
{
	uintptr_t address = (uintptr_t)p;
	uint32_t bytes = 256;

	while (address & (bytes - 1))
		bytes /= 2;
	return cublasLtMatmulPreferenceSetAttribute(preference, attribute, &bytes, sizeof(bytes));
}

static cublasStatus_t set_preference(struct product *p, const struct matrix *a,
				     const struct matrix *b, const struct matrix *out)
{
	const size_t workspace = WORKSPACE;
	cublasStatus_t st;

	st = cublasLtMatmulPreferenceCreate(&p->preference);
	if (!st)
		st = cublasLtMatmulPreferenceSetAttribute(p->preference,
							  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
							  &workspace, sizeof(workspace));
	if (!st)
		st = set_alignment(p->preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
				   a->data);
	if (!st)
		st = set_alignment(p->preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
				   b->data);
	if (!st)
		st = set_alignment(p->preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
				   out->data);
	if (!st)
		st = set_alignment(p->preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
				   out->data);
	return st;
}

/* out is column-major. After a failure *p has the objects created so far. */
static cublasStatus_t describe(struct product *p, const struct matrix *a, const struct matrix *b,
			       const struct matrix *out, enum tensor_dtype dtype)
{
	cublasOperation_t op_a, op_b;
	cublasStatus_t st;

	st = cublasLtMatmulDescCreate(&p->desc,
				      dtype == TENSOR_F64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
				      data_type(dtype));
	if (!st)
		st = make_layout(&p->a, a, dtype, &op_a);
	if (!st)
		st = make_layout(&p->b, b, dtype, &op_b);
	if (!st)
		st = cublasLtMatrixLayoutCreate(&p->out, data_type(dtype), out->rows, out->cols,
						out->col);
	if (!st)
		st = cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &op_a,
						    sizeof(op_a));
	if (!st)
		st = cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSB, &op_b,
						    sizeof(op_b));
	return st ? st : set_preference(p, a, b, out);
}

static void undescribe(struct product *p)
{
	if (p->preference)
		cublasLtMatmulPreferenceDestroy(p->preference);
	if (p->out)
		cublasLtMatrixLayoutDestroy(p->out);
	if (p->b)
		cublasLtMatrixLayoutDestroy(p->b);
	if (p->a)
		cublasLtMatrixLayoutDestroy(p->a);
	if (p->desc)
		cublasLtMatmulDescDestroy(p->desc);
}

static int run_product(const struct cuda_call *c, cublasLtHandle_t handle, struct product *p,
		       const struct matrix *a, const struct matrix *b, const struct matrix *out,
		       enum tensor_dtype dtype, double alpha, double beta)
{
	const float alpha32 = (float)alpha, beta32 = (float)beta;
	const bool f64 = dtype == TENSOR_F64;
	void *workspace = NULL;
	int err, found = 0;

	err = blas_check(c,
			 cublasLtMatmulAlgoGetHeuristic(handle, p->desc, p->a, p->b, p->out, p->out,
							p->preference, 1, &p->algo, &found));
	if (!err && !found)
		err = blas_check(c, CUBLAS_STATUS_NOT_SUPPORTED);
	if (!err && p->algo.workspaceSize)
		err = cuda_scratch(c, p->algo.workspaceSize, &workspace);
	if (err)
		return err;
	err = blas_check(c, cublasLtMatmul(handle, p->desc, f64 ? (void *)&alpha : (void *)&alpha32,
					   a->data, p->a, b->data, p->b,
					   f64 ? (void *)&beta : (void *)&beta32, out->data, p->out,
					   out->data, p->out, &p->algo.algo, workspace,
					   p->algo.workspaceSize, c->stream));
	cuda_scratch_free(c, workspace);
	return err;
}

static int multiply(const struct cuda_call *c, const struct matrix *a, const struct matrix *b,
		    const struct matrix *out, enum tensor_dtype dtype, double alpha, double beta)
{
	/* A row-major out is computed as the transpose of both sides. */
	const bool columns = col_major(out);
	const struct matrix at = transposed(a), bt = transposed(b), ot = transposed(out);
	const struct matrix *first = columns ? a : &bt, *second = columns ? b : &at;
	struct product p = { 0 };
	cublasLtHandle_t handle;
	int err = get_handle(c, &handle);

	if (err)
		return err;
	out = columns ? out : &ot;
	err = blas_check(c, describe(&p, first, second, out, dtype));
	if (!err)
		err = run_product(c, handle, &p, first, second, out, dtype, alpha, beta);
	undescribe(&p);
	return err;
}

/* ---- the kernel ---- */

/* For k = 0: out = beta * out. */
static int scale(const struct cuda_call *c, const struct matrix *m, enum tensor_dtype dtype,
		 double beta)
{
	int64_t size = (int64_t)tensor_itemsize(dtype);
	struct cuda_pointwise p = { .data = { m->data, beta == 0 ? NULL : m->data },
				    .itemsize = { size, size, size } };
	int err;

	cuda_dims_init(&p.dims);
	for (int i = 0; i < 2; i++) {
		int64_t step = (i ? m->row : m->col) * size;

		cuda_dims_add(&p.dims, 3, i ? m->rows : m->cols,
			      (const int64_t[]){ step, step, 0 });
	}
	cuda_dims_done(&p.dims, 3);
	if (beta == 0) {
		err = cuda_launch_parts(cuda_launch_bits, &p, 3, (int)size, c->stream);
	} else {
		tensor_element_store(&p.scalar[2], dtype, tensor_scalar_float(beta));
		err = cuda_launch_parts(cuda_launch_mul, &p, 3, (int)dtype, c->stream);
	}
	return cuda_launched(c, err, dtype);
}

static int mm(const struct cuda_call *c, struct matrix *m, enum tensor_dtype dtype, double alpha,
	      double beta)
{
	struct matrix *a = &m[0], *b = &m[1], *out = &m[2], apart;
	int err;

	if (!a->cols)
		return scale(c, out, dtype, beta);
	err = readable(c, a, dtype);
	if (!err)
		err = readable(c, b, dtype);
	if (err)
		return err;
	if (row_major(out) || col_major(out))
		return multiply(c, a, b, out, dtype, alpha, beta);
	err = make_apart(c, &apart, out, dtype);
	if (!err && beta != 0)
		err = copy_matrix(c, &apart, out, dtype);
	if (!err)
		err = multiply(c, a, b, &apart, dtype, alpha, beta);
	if (!err)
		err = copy_matrix(c, out, &apart, dtype);
	cuda_scratch_free(c, apart.scratch);
	return err;
}

int cuda_mm(tensor *out, const tensor *a, const tensor *b, tensor_scalar alpha, tensor_scalar beta)
{
	struct matrix m[] = { matrix_of(a), matrix_of(b), matrix_of(out) };
	struct cuda_call c;
	int err;

	if (out->dtype != TENSOR_F32 && out->dtype != TENSOR_F64)
		return tensor_kernel_no_dtype("mm", out->dtype, "cuda");
	if (!out->numel)
		return 0;
	err = cuda_begin(&c, "mm", out->device.index);
	if (err)
		return err;
	cuda_use(&c, out);
	cuda_use(&c, a);
	cuda_use(&c, b);
	err = mm(&c, m, out->dtype, scalar_double(alpha), scalar_double(beta));
	for (int i = 0; i < 2; i++)
		cuda_scratch_free(&c, m[i].scratch);
	return cuda_end(&c, err);
}
