// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Stands for cuBLASLt: the arguments are checked as its documentation describes them (column-major
 * layouts, leading dimensions, alignments that the preference has promised, the workspace), and the
 * product is computed by loops, in the order of the columns, with sums in double.
 */
#include "cublasLt.h"

#include "base/reduced_float.h"
#include "host.hpp"

#include <complex>

#include <set>

struct cublasLtContext {
	int device;
};

struct cublasLtMatmulDescOpaque {
	cublasComputeType_t compute;
	cudaDataType_t scale;
	cublasOperation_t op[2];
};

struct cublasLtMatrixLayoutOpaque {
	cudaDataType_t type;
	uint64_t rows, cols;
	int64_t ld;
	int32_t batch = 1;
	int64_t step = 0; /* elements between matrices */
};

struct cublasLtMatmulPreferenceOpaque {
	uint64_t workspace;
	uint32_t alignment[4];
};

/* Of the algorithm that the heuristic returns. */
struct algorithm {
	uint64_t mark;
	uint32_t alignment[4];
	uint64_t workspace;
};

enum : uint64_t { MARK = 0x68656f7265746963, WORKSPACE = 12288 };

static std::set<const void *> &objects = *new std::set<const void *>();

/* A call of a function that cuda_host_fail() names returns that status. */
#define BLAS()                    \
	host_call call(__func__); \
	if (call.injected)        \
	return (cublasStatus_t)call.injected

template <class T> static cublasStatus_t create(T **object, const T &value)
{
	*object = new T(value);
	objects.insert(*object);
	return CUBLAS_STATUS_SUCCESS;
}

template <class T> static cublasStatus_t destroy(T *object)
{
	if (!objects.erase(object))
		host_fatal("cuBLASLt: an object is destroyed twice, or was never created");
	delete object;
	return CUBLAS_STATUS_SUCCESS;
}

static bool exists(const void *object)
{
	return objects.count(object);
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
	switch (status) {
	case CUBLAS_STATUS_SUCCESS:
		return "CUBLAS_STATUS_SUCCESS";
	case CUBLAS_STATUS_NOT_INITIALIZED:
		return "CUBLAS_STATUS_NOT_INITIALIZED";
	case CUBLAS_STATUS_ALLOC_FAILED:
		return "CUBLAS_STATUS_ALLOC_FAILED";
	case CUBLAS_STATUS_INVALID_VALUE:
		return "CUBLAS_STATUS_INVALID_VALUE";
	case CUBLAS_STATUS_NOT_SUPPORTED:
		return "CUBLAS_STATUS_NOT_SUPPORTED";
	default:
		return "an error of cuBLASLt";
	}
}

/* ---- objects ---- */

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
	BLAS();
	if (host_may_be_unsafe() != cudaSuccess)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	return create(handle, { host_current_device() });
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
	BLAS();
	return destroy(handle);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
					cudaDataType_t scale)
{
	BLAS();
	return create(desc, { compute, scale, { CUBLAS_OP_N, CUBLAS_OP_N } });
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
	BLAS();
	return destroy(desc);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
					      cublasLtMatmulDescAttributes_t attribute,
					      const void *value, size_t size)
{
	int32_t op;

	BLAS();
	if (!exists(desc) || !value || size != sizeof(op) ||
	    (attribute != CUBLASLT_MATMUL_DESC_TRANSA && attribute != CUBLASLT_MATMUL_DESC_TRANSB))
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(&op, value, sizeof(op));
	if (op < CUBLAS_OP_N || op > CUBLAS_OP_C)
		return CUBLAS_STATUS_INVALID_VALUE;
	desc->op[attribute - CUBLASLT_MATMUL_DESC_TRANSA] = (cublasOperation_t)op;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
					  uint64_t rows, uint64_t cols, int64_t ld)
{
	BLAS();
	return create(layout, { type, rows, cols, ld, 1, 0 });
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
						cublasLtMatrixLayoutAttribute_t attribute,
						const void *value, size_t size)
{
	bool count = attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT;

	BLAS();
	if (!exists(layout) || !value ||
	    (!count && attribute != CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) ||
	    size != (count ? sizeof(layout->batch) : sizeof(layout->step)))
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(count ? (void *)&layout->batch : (void *)&layout->step, value, size);
	return layout->batch < 1 ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
	BLAS();
	return destroy(layout);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
	BLAS();
	return create(preference, { 0, { 256, 256, 256, 256 } });
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
	BLAS();
	return destroy(preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
						    cublasLtMatmulPreferenceAttributes_t attribute,
						    const void *value, size_t size)
{
	uint32_t alignment;

	BLAS();
	if (!exists(preference) || !value)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
		if (size != sizeof(preference->workspace))
			return CUBLAS_STATUS_INVALID_VALUE;
		memcpy(&preference->workspace, value, size);
		return CUBLAS_STATUS_SUCCESS;
	}
	if (attribute < CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES ||
	    attribute > CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES || size != sizeof(alignment))
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(&alignment, value, size);
	if (!alignment || alignment & (alignment - 1))
		return CUBLAS_STATUS_INVALID_VALUE;
	preference->alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES] = alignment;
	return CUBLAS_STATUS_SUCCESS;
}

/* ---- checks ---- */

static size_t size_of(cudaDataType_t type)
{
	switch (type) {
	case CUDA_R_16F:
	case CUDA_R_16BF:
		return 2;
	case CUDA_R_32F:
		return 4;
	case CUDA_C_64F:
		return 16;
	default:
		return 8;
	}
}

static bool is_double(cudaDataType_t type)
{
	return type == CUDA_R_64F || type == CUDA_C_64F;
}

/* The type of alpha and beta. */
static cudaDataType_t scale_of(cudaDataType_t type)
{
	return type == CUDA_R_16F || type == CUDA_R_16BF ? CUDA_R_32F : type;
}

static bool valid_layout(const cublasLtMatrixLayoutOpaque *l, cudaDataType_t type)
{
	return l->type == type && l->rows && l->cols && l->ld >= (int64_t)l->rows;
}

static cublasStatus_t check_product(const cublasLtMatmulDescOpaque *desc,
				    const cublasLtMatrixLayoutOpaque *a,
				    const cublasLtMatrixLayoutOpaque *b,
				    const cublasLtMatrixLayoutOpaque *c,
				    const cublasLtMatrixLayoutOpaque *d)
{
	cudaDataType_t type = d->type;
	cudaDataType_t from = type == CUDA_R_32F && scale_of(a->type) == type ? a->type : type;
	bool ta = desc->op[0] != CUBLAS_OP_N, tb = desc->op[1] != CUBLAS_OP_N;

	if (desc->compute != (is_double(type) ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F) ||
	    desc->scale != scale_of(type))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (!valid_layout(a, from) || !valid_layout(b, from) || !valid_layout(c, type) ||
	    !valid_layout(d, type))
		return CUBLAS_STATUS_INVALID_VALUE;
	if ((ta ? a->cols : a->rows) != d->rows || (tb ? b->rows : b->cols) != d->cols ||
	    (ta ? a->rows : a->cols) != (tb ? b->cols : b->rows) || c->rows != d->rows ||
	    c->cols != d->cols || a->batch != d->batch || b->batch != d->batch ||
	    c->batch != d->batch)
		return CUBLAS_STATUS_INVALID_VALUE;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
					      cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
					      cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
					      cublasLtMatmulPreference_t preference, int requested,
					      cublasLtMatmulHeuristicResult_t results[], int *found)
{
	algorithm algo = {};
	cublasStatus_t st;

	BLAS();
	static_assert(sizeof(algo) <= sizeof(results->algo), "an algorithm has 64 bytes");
	if (!exists(handle))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!exists(desc) || !exists(a) || !exists(b) || !exists(c) || !exists(d) ||
	    !exists(preference) || requested < 1 || !results || !found)
		return CUBLAS_STATUS_INVALID_VALUE;
	*found = 0;
	st = check_product(desc, a, b, c, d);
	if (st != CUBLAS_STATUS_SUCCESS)
		return st;
	for (int i = 0; i < 4; i++)
		if (preference->alignment[i] < size_of(i < 2 ? a->type : d->type))
			return CUBLAS_STATUS_NOT_SUPPORTED;
	algo.mark = MARK;
	memcpy(algo.alignment, preference->alignment, sizeof(algo.alignment));
	algo.workspace = preference->workspace < WORKSPACE ? 0 : (uint64_t)WORKSPACE;
	results[0] = cublasLtMatmulHeuristicResult_t();
	memcpy(&results[0].algo, &algo, sizeof(algo));
	results[0].workspaceSize = algo.workspace;
	results[0].state = CUBLAS_STATUS_SUCCESS;
	results[0].wavesCount = 1;
	*found = 1;
	return CUBLAS_STATUS_SUCCESS;
}

/* ---- the product ---- */

struct matrix {
	const char *data;
	cublasLtMatrixLayoutOpaque layout;
	bool transposed;
};

typedef std::complex<double> value;

/* Element i of memory with that type. */
static value load(cudaDataType_t type, const void *data, uint64_t i)
{
	const uint16_t *half = (const uint16_t *)data;
	const float *single = (const float *)data;
	const double *wide = (const double *)data;

	switch (type) {
	case CUDA_R_16F:
		return f16_to_f32(half[i]);
	case CUDA_R_16BF:
		return bf16_to_f32(half[i]);
	case CUDA_R_32F:
		return single[i];
	case CUDA_C_32F:
		return value(single[2 * i], single[2 * i + 1]);
	case CUDA_C_64F:
		return value(wide[2 * i], wide[2 * i + 1]);
	default:
		return wide[i];
	}
}

static void store(cudaDataType_t type, void *data, uint64_t i, value v)
{
	uint16_t *half = (uint16_t *)data;
	float *single = (float *)data;
	double *wide = (double *)data;

	switch (type) {
	case CUDA_R_16F:
		half[i] = f32_to_f16((float)v.real());
		break;
	case CUDA_R_16BF:
		half[i] = f32_to_bf16((float)v.real());
		break;
	case CUDA_R_32F:
		single[i] = (float)v.real();
		break;
	case CUDA_C_32F:
		single[2 * i] = (float)v.real();
		single[2 * i + 1] = (float)v.imag();
		break;
	case CUDA_C_64F:
		wide[2 * i] = v.real();
		wide[2 * i + 1] = v.imag();
		break;
	default:
		wide[i] = v.real();
	}
}

static value element(const matrix &m, uint64_t row, uint64_t col)
{
	return load(m.layout.type, m.data,
		    m.transposed ? col + row * m.layout.ld : row + col * m.layout.ld);
}

/* Checks the columns; for ThreadSanitizer they are accessed here. */
static void check_columns(const matrix &m, bool write)
{
	size_t size = size_of(m.layout.type);

	for (uint64_t j = 0; j < m.layout.cols; j++) {
		const char *column = m.data + j * m.layout.ld * size;

		host_check(column, m.layout.rows * size, write, "cublasLtMatmul");
#ifdef CUDA_HOST_TSAN
		if (write)
			__tsan_write_range((void *)column, m.layout.rows * size);
		else
			__tsan_read_range((void *)column, m.layout.rows * size);
#endif
	}
}

/* Matrix n of a batch. */
static matrix at(const matrix &m, int32_t n)
{
	matrix r = m;

	r.data += (int64_t)n * m.layout.step * (int64_t)size_of(m.layout.type);
	return r;
}

static void multiply(const matrix &a, const matrix &b, const matrix &c, const matrix &d,
		     value alpha, value beta)
{
	uint64_t inner = a.transposed ? a.layout.rows : a.layout.cols;

	check_columns(a, false);
	check_columns(b, false);
	if (beta != 0.0)
		check_columns(c, false);
	check_columns(d, true);
	for (uint64_t j = 0; j < d.layout.cols; j++) {
		for (uint64_t i = 0; i < d.layout.rows; i++) {
			value sum = 0;

			for (uint64_t k = 0; k < inner; k++)
				sum += element(a, i, k) * element(b, k, j);
			sum *= alpha;
			if (beta != 0.0)
				sum += beta * element(c, i, j);
			store(d.layout.type, (void *)d.data, i + j * d.layout.ld, sum);
		}
	}
}

static bool same_layout(const cublasLtMatrixLayoutOpaque *x, const cublasLtMatrixLayoutOpaque *y)
{
	return x->type == y->type && x->rows == y->rows && x->cols == y->cols && x->ld == y->ld &&
	       x->step == y->step;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
			      const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
			      cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
			      cublasLtMatrixLayout_t c_layout, void *d,
			      cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *given,
			      void *workspace, size_t workspace_size, cudaStream_t stream)
{
	const void *data[4] = { a, b, c, d };
	algorithm algo;
	cublasStatus_t st;

	BLAS();
	if (!exists(handle))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!exists(desc) || !exists(a_layout) || !exists(b_layout) || !exists(c_layout) ||
	    !exists(d_layout) || !alpha || !beta || !given)
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(&algo, given, sizeof(algo));
	st = check_product(desc, a_layout, b_layout, c_layout, d_layout);
	if (st != CUBLAS_STATUS_SUCCESS)
		return st;
	if (algo.mark != MARK || workspace_size < algo.workspace ||
	    (algo.workspace && !workspace) || (uintptr_t)workspace % 256 ||
	    (c == d && !same_layout(c_layout, d_layout)))
		return CUBLAS_STATUS_INVALID_VALUE;
	for (int i = 0; i < 4; i++)
		if (!data[i] || (uintptr_t)data[i] % algo.alignment[i])
			return CUBLAS_STATUS_INVALID_VALUE;

	CUstream_st *s = host_stream(stream, host_current_device());
	if (s->device != handle->device || s->device != host_current_device())
		return CUBLAS_STATUS_INVALID_VALUE;
	for (int i = 0; i < 4; i++)
		if (host_device_of(data[i]) != s->device)
			host_fatal("cublasLtMatmul: matrix %c is no memory of cuda:%d: %p",
				   "ABCD"[i], s -> device, data[i]);
	matrix ma = { (const char *)a, *a_layout, desc->op[0] != CUBLAS_OP_N };
	matrix mb = { (const char *)b, *b_layout, desc->op[1] != CUBLAS_OP_N };
	matrix mc = { (const char *)c, *c_layout, false };
	matrix md = { (const char *)d, *d_layout, false };
	value scale = load(desc->scale, alpha, 0), add = load(desc->scale, beta, 0);

	host_counts.launches++;
	host_submit(s, "cublasLtMatmul", 1u << s->device, [=] {
		if (algo.workspace) {
			host_check(workspace, algo.workspace, true, "cublasLtMatmul");
			memset(workspace, 0x5a, algo.workspace);
		}
		for (int32_t n = 0; n < md.layout.batch; n++)
			multiply(at(ma, n), at(mb, n), at(mc, n), at(md, n), scale, add);
	});
	return CUBLAS_STATUS_SUCCESS;
}
