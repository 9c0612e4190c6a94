// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Matrix products by cuBLASLt, whose matrices are column-major. A row-major out = a b is computed
 * as out' = b' a', where ' reads the same memory as columns; a transposed operand sets the
 * transpose operation. A matrix that is neither row- nor column-major is copied first. A batch is
 * one call, whose matrices are a stride apart.
 *
 * f32 is computed in f32, not in TF32, to keep the accuracy of the dtype; bf16 and f16 are summed
 * in f32.
 */
#include "kernels/cuda/linalg/mm.h"

#include <cublasLt.h>
#include <pthread.h>

#define WORKSPACE ((size_t)32 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cublasLtHandle_t handles[CUDA_DEVICES]; /* a handle may be used by several threads */

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
	if (!handles[c->device]) {
		const enum cudaStreamCaptureMode before = cuda_relax();

		err = blas_check(c, cublasLtCreate(&handles[c->device]));
		cuda_unrelax(before);
	}
	*handle = handles[c->device];
	pthread_mutex_unlock(&lock);
	return err;
}

/* ---- matrices ---- */

/* The stride of a dimension of size 1 is arbitrary: sets the one that cuBLASLt accepts. */
static struct cuda_matrix matrix_of(const tensor *t)
{
	const int d = t->ndim - 2;
	struct cuda_matrix m = { .data = t->data,
				 .dtype = t->dtype,
				 .rows = t->sizes[d],
				 .cols = t->sizes[d + 1],
				 .row = t->strides[d],
				 .col = t->strides[d + 1],
				 .batch = d ? t->sizes[0] : 1,
				 .step = d ? t->strides[0] : 0 };

	if (m.rows == 1 && m.cols == 1)
		m.row = m.col = 1;
	else if (m.cols == 1)
		m.col = 1;
	else if (m.rows == 1)
		m.row = m.col == 1 ? m.cols : 1;
	return m;
}

static bool row_major(const struct cuda_matrix *m)
{
	return m->col == 1 && m->row >= (m->cols > 1 ? m->cols : 1);
}

static bool col_major(const struct cuda_matrix *m)
{
	return m->row == 1 && m->col >= (m->rows > 1 ? m->rows : 1);
}

/* Copies `from` to `to`, of the same shape. */
static int copy_matrix(const struct cuda_call *c, const struct cuda_matrix *to,
		       const struct cuda_matrix *from)
{
	struct cuda_pointwise p = { .data = { to->data, from->data } };
	int64_t size = (int64_t)tensor_itemsize(to->dtype);

	cuda_dims_init(&p.dims);
	cuda_dims_add(&p.dims, 2, to->cols, (const int64_t[]){ to->col * size, from->col * size });
	cuda_dims_add(&p.dims, 2, to->rows, (const int64_t[]){ to->row * size, from->row * size });
	cuda_dims_add(&p.dims, 2, to->batch,
		      (const int64_t[]){ to->step * size, from->step * size });
	return cuda_copy_within(c, &p, to->dtype, from->dtype);
}

/* A row-major matrix of m's shape in scratch memory, uninitialised. */
static int make_apart(const struct cuda_call *c, struct cuda_matrix *apart,
		      const struct cuda_matrix *m)
{
	*apart = *m;
	apart->row = m->cols;
	apart->col = 1;
	apart->step = m->rows * m->cols;
	int err = cuda_scratch(c, m->batch * m->rows * m->cols * tensor_itemsize(m->dtype),
			       &apart->scratch);

	apart->data = apart->scratch;
	return err;
}

/* Replaces m by a copy unless cuBLASLt can read it. */
static int readable(const struct cuda_call *c, struct cuda_matrix *m)
{
	struct cuda_matrix apart;
	int err;

	if (row_major(m) || col_major(m))
		return 0;
	err = make_apart(c, &apart, m);
	if (err)
		return err;
	err = copy_matrix(c, &apart, m);
	*m = apart;
	return err;
}

static struct cuda_matrix transposed(const struct cuda_matrix *m)
{
	struct cuda_matrix t = *m;

	t.rows = m->cols;
	t.cols = m->rows;
	t.row = m->col;
	t.col = m->row;
	return t;
}

/* ---- the product, in columns: out = alpha * a b + beta * out ---- */

struct product {
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t a, b, out;
	cublasLtMatmulPreference_t preference;
	cublasLtMatmulHeuristicResult_t algo;
};

static const cudaDataType_t data_types[TENSOR_DTYPE_COUNT] = {
	[TENSOR_F32] = CUDA_R_32F,   [TENSOR_F64] = CUDA_R_64F, [TENSOR_F16] = CUDA_R_16F,
	[TENSOR_BF16] = CUDA_R_16BF, [TENSOR_C64] = CUDA_C_32F, [TENSOR_C128] = CUDA_C_64F,
};

static bool has_dtype(enum tensor_dtype dtype)
{
	return dtype == TENSOR_F32 || data_types[dtype];
}

static bool is_double(enum tensor_dtype dtype)
{
	return dtype == TENSOR_F64 || dtype == TENSOR_C128;
}

/* alpha and beta have the dtype of the matrices, f32 for bf16 and f16. */
static cudaDataType_t scale_type(enum tensor_dtype dtype)
{
	return dtype == TENSOR_F16 || dtype == TENSOR_BF16 ? CUDA_R_32F : data_types[dtype];
}

/* alpha or beta as an argument of cuBLASLt. */
union factor {
	float f32[2];
	double f64[2];
};

static union factor factor_of(tensor_scalar s, enum tensor_dtype dtype)
{
	const double re = scalar_double(s), im = scalar_imag(s);
	union factor f;

	if (is_double(dtype)) {
		f.f64[0] = re;
		f.f64[1] = im;
	} else {
		f.f32[0] = (float)re;
		f.f32[1] = (float)im;
	}
	return f;
}

/* Describes the memory of m as columns: m itself, or its transpose if m is row-major. */
static cublasStatus_t make_layout(cublasLtMatrixLayout_t *layout, const struct cuda_matrix *m,
				  cublasOperation_t *op)
{
	const bool columns = col_major(m);
	const int32_t batch = (int32_t)m->batch;
	cublasStatus_t st;

	*op = columns ? CUBLAS_OP_N : CUBLAS_OP_T;
	st = cublasLtMatrixLayoutCreate(layout, data_types[m->dtype], columns ? m->rows : m->cols,
					columns ? m->cols : m->rows, columns ? m->col : m->row);
	if (st || m->batch == 1)
		return st;
	st = cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
					      sizeof(batch));
	return st ? st :
		    cublasLtMatrixLayoutSetAttribute(*layout,
						     CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
						     &m->step, sizeof(m->step));
}

/* Sets the alignment of m: the heuristic assumes 256 bytes, which a view may not have. */
static cublasStatus_t set_alignment(cublasLtMatmulPreference_t preference,
				    cublasLtMatmulPreferenceAttributes_t attribute,
				    const struct cuda_matrix *m)
{
	const uintptr_t step = (uintptr_t)m->step * tensor_itemsize(m->dtype);
	const uintptr_t address = (uintptr_t)m->data | (m->batch > 1 ? step : 0);
	uint32_t bytes = 256;

	while (address & (bytes - 1))
		bytes /= 2;
	return cublasLtMatmulPreferenceSetAttribute(preference, attribute, &bytes, sizeof(bytes));
}

static cublasStatus_t set_preference(struct product *p, const struct cuda_matrix *a,
				     const struct cuda_matrix *b, const struct cuda_matrix *out)
{
	const size_t workspace = WORKSPACE;
	cublasStatus_t st;

	st = cublasLtMatmulPreferenceCreate(&p->preference);
	if (!st)
		st = cublasLtMatmulPreferenceSetAttribute(p->preference,
							  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
							  &workspace, sizeof(workspace));
	if (!st)
		st = set_alignment(p->preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, a);
	if (!st)
		st = set_alignment(p->preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, b);
	if (!st)
		st = set_alignment(p->preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, out);
	if (!st)
		st = set_alignment(p->preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, out);
	return st;
}

/* out is column-major. After a failure *p has the objects created so far. */
static cublasStatus_t describe(struct product *p, const struct cuda_matrix *a,
			       const struct cuda_matrix *b, const struct cuda_matrix *out)
{
	const enum tensor_dtype dtype = out->dtype;
	cublasOperation_t op_a, op_b, op_out;
	cublasStatus_t st;

	st = cublasLtMatmulDescCreate(&p->desc,
				      is_double(dtype) ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
				      scale_type(dtype));
	if (!st)
		st = make_layout(&p->a, a, &op_a);
	if (!st)
		st = make_layout(&p->b, b, &op_b);
	if (!st)
		st = make_layout(&p->out, out, &op_out);
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
		       const struct cuda_matrix *a, const struct cuda_matrix *b,
		       const struct cuda_matrix *out, tensor_scalar alpha, tensor_scalar beta)
{
	const union factor by = factor_of(alpha, out->dtype), add = factor_of(beta, out->dtype);
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
	err = blas_check(c, cublasLtMatmul(handle, p->desc, &by, a->data, p->a, b->data, p->b, &add,
					   out->data, p->out, out->data, p->out, &p->algo.algo,
					   workspace, p->algo.workspaceSize, c->stream));
	cuda_scratch_free(c, workspace);
	return err;
}

static int multiply(const struct cuda_call *c, const struct cuda_matrix *a,
		    const struct cuda_matrix *b, const struct cuda_matrix *out, tensor_scalar alpha,
		    tensor_scalar beta)
{
	/* A row-major out is computed as the transpose of both sides. */
	const bool columns = col_major(out);
	const struct cuda_matrix at = transposed(a), bt = transposed(b), ot = transposed(out);
	const struct cuda_matrix *first = columns ? a : &bt, *second = columns ? b : &at;
	struct product p = { 0 };
	cublasLtHandle_t handle;
	int err = get_handle(c, &handle);

	if (err)
		return err;
	out = columns ? out : &ot;
	err = blas_check(c, describe(&p, first, second, out));
	if (!err)
		err = run_product(c, handle, &p, first, second, out, alpha, beta);
	undescribe(&p);
	return err;
}

/* ---- the kernel ---- */

static bool is_zero(tensor_scalar s)
{
	return scalar_double(s) == 0 && scalar_imag(s) == 0;
}

/* For k = 0: out = beta * out. */
static int scale(const struct cuda_call *c, const struct cuda_matrix *m, tensor_scalar beta)
{
	const enum tensor_dtype dtype = m->dtype;
	const bool zero = is_zero(beta);
	int64_t size = (int64_t)tensor_itemsize(dtype);
	struct cuda_pointwise p = { .data = { m->data, zero ? NULL : m->data },
				    .itemsize = { size, size, size } };
	int err;

	cuda_dims_init(&p.dims);
	for (int i = 0; i < 3; i++) {
		const int64_t sizes[] = { m->cols, m->rows, m->batch };
		const int64_t steps[] = { m->col * size, m->row * size, m->step * size };

		cuda_dims_add(&p.dims, 3, sizes[i], (const int64_t[]){ steps[i], steps[i], 0 });
	}
	cuda_dims_done(&p.dims, 3);
	if (zero) {
		err = cuda_launch_parts(cuda_launch_bits, &p, 3, (int)size, c->stream);
	} else {
		tensor_element_store(&p.scalar[2], dtype_wide(dtype), beta);
		err = cuda_launch_parts(cuda_launch_mul, &p, 3, (int)dtype, c->stream);
	}
	return cuda_launched(c, err, dtype);
}

static int multiply_any(const struct cuda_call *c, struct cuda_matrix *m, tensor_scalar alpha,
			tensor_scalar beta)
{
	struct cuda_matrix *a = &m[0], *b = &m[1], *out = &m[2], apart;
	int err;

	if (!a->cols)
		return scale(c, out, beta);
	err = readable(c, a);
	if (!err)
		err = readable(c, b);
	if (err)
		return err;
	if (row_major(out) || col_major(out))
		return multiply(c, a, b, out, alpha, beta);
	err = make_apart(c, &apart, out);
	if (!err && !is_zero(beta))
		err = copy_matrix(c, &apart, out);
	if (!err)
		err = multiply(c, a, b, &apart, alpha, beta);
	if (!err)
		err = copy_matrix(c, out, &apart);
	cuda_scratch_free(c, apart.scratch);
	return err;
}

int cuda_multiply(const struct cuda_call *c, struct cuda_matrix *m, tensor_scalar alpha,
		  tensor_scalar beta)
{
	const int err = multiply_any(c, m, alpha, beta);

	for (int i = 0; i < 2; i++)
		cuda_scratch_free(c, m[i].scratch);
	return err;
}

static int product(const char *op, tensor *out, const tensor *a, const tensor *b,
		   tensor_scalar alpha, tensor_scalar beta)
{
	struct cuda_matrix m[] = { matrix_of(a), matrix_of(b), matrix_of(out) };
	struct cuda_call c;
	int err;

	if (!has_dtype(out->dtype))
		return tensor_kernel_no_dtype(op, out->dtype, "cuda");
	if (!out->numel)
		return 0;
	if (m[2].batch > INT32_MAX)
		return tensor_fail(EOPNOTSUPP, "%s: cuda: %lld matrices, at most 2^31 - 1", op,
				   (long long)m[2].batch);
	err = cuda_begin_with(&c, op, out->device.index, out, a, b);
	if (err)
		return err;
	return cuda_end(&c, cuda_multiply(&c, m, alpha, beta));
}

int cuda_mm(tensor *out, const tensor *a, const tensor *b, tensor_scalar alpha, tensor_scalar beta)
{
	return product("mm", out, a, b, alpha, beta);
}

int cuda_bmm(tensor *out, const tensor *a, const tensor *b, tensor_scalar alpha, tensor_scalar beta)
{
	return product("bmm", out, a, b, alpha, beta);
}
