// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Loads cuSPARSE, and computes products of a matrix of compressed rows with a dense one by its generic functions. The declarations
 * are those of their documentation; descriptors are void here. cusparseSpMM() may be captured, and calls the device in the
 * order of the handle's stream.
 */
#include "kernels/cuda/sparse/cusparse.h"

#include "base/library.h"

#include <pthread.h>
#include <stdlib.h>

/* cudaDataType */
enum { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_C_32F = 4, CUDA_C_64F = 5 };
enum { CUSPARSE_ALLOC_FAILED = 2, CUSPARSE_NOT_SUPPORTED = 10, CUSPARSE_INSUFFICIENT = 11 };
enum { CUSPARSE_N = 0, CUSPARSE_BASE_ZERO = 0, CUSPARSE_ORDER_ROW = 2, CUSPARSE_INDEX_64I = 3 };
/* CUSPARSE_SPMM_CSR_ALG3, the only algorithm for compressed rows that gives the same bits in every call. Before
 * LEAST_VERSION, that of CUDA 12.3, other ones took its place without a word where it could not compute. */
enum { CUSPARSE_CSR_ALG3 = 12, LEAST_VERSION = 12200 };

/* With fewer columns, or entries, the kernels of sparse.cu are taken. The tests of the emulation have few entries. */
#define LEAST_COLUMNS 5
#ifdef TENSOR_CUDA_EMULATED
#define LEAST_ENTRIES 1
#else
#define LEAST_ENTRIES (1 << 16)
#endif
#define ALIGNMENT \
	16 /* of values and matrices, for loads of several elements; indices have their own */

struct cusparse {
	int (*create)(void **handle);
	int (*version)(void *handle, int *version);
	int (*set_stream)(void *handle, cudaStream_t stream);
	int (*create_csr)(void **matrix, int64_t rows, int64_t columns, int64_t entries,
			  const void *crow, const void *col, const void *values, int crow_type,
			  int col_type, int base, int type);
	int (*create_dense)(void **matrix, int64_t rows, int64_t columns, int64_t ld, void *values,
			    int type, int order);
	int (*destroy_csr)(const void *matrix);
	int (*destroy_dense)(const void *matrix);
	int (*spmm_size)(void *handle, int trans_a, int trans_b, const void *alpha, const void *a,
			 const void *b, const void *beta, void *c, int type, int algorithm,
			 size_t *bytes);
	int (*spmm)(void *handle, int trans_a, int trans_b, const void *alpha, const void *a,
		    const void *b, const void *beta, void *c, int type, int algorithm,
		    void *workspace);
};

/* ---- loading ---- */

static struct cusparse functions;
static bool is_loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define FUNCTION(member, name) LIBRARY_FUNCTION(struct cusparse, member, name)

static const struct library_function names[] = {
	FUNCTION(create, "cusparseCreate"),
	FUNCTION(version, "cusparseGetVersion"),
	FUNCTION(set_stream, "cusparseSetStream"),
	FUNCTION(create_csr, "cusparseCreateConstCsr"),
	FUNCTION(create_dense, "cusparseCreateDnMat"),
	FUNCTION(destroy_csr, "cusparseDestroySpMat"),
	FUNCTION(destroy_dense, "cusparseDestroyDnMat"),
	FUNCTION(spmm_size, "cusparseSpMM_bufferSize"),
	FUNCTION(spmm, "cusparseSpMM"),
};

static void load(void)
{
	const char *name = secure_getenv("TENSOR_CUSPARSE") ?: "libcusparse.so.12";

	is_loaded = *name && strcmp(name, "0") != 0 &&
		    !library_load(name, names, ARRAY_SIZE(names), &functions);
}

/* ---- when it computes ---- */

static int type_of(enum tensor_dtype dtype)
{
	switch (dtype) {
	case TENSOR_F32:
		return CUDA_R_32F;
	case TENSOR_F64:
		return CUDA_R_64F;
	case TENSOR_C64:
		return CUDA_C_32F;
	case TENSOR_C128:
		return CUDA_C_64F;
	default:
		return -1;
	}
}

/*
 * Whether cuSPARSE is expected to be faster, and computes the same. Its kernels share the entries of long rows among threads, and
 * load a row of `dense` once for many columns; a call costs the host descriptors and a look at the workspace, which small
 * products cannot repay. No GPU has measured the limits yet (bench/gpu/operators.py measures both ways). alpha 0 may
 * leave out a product that is NaN. Nothing here depends on values of the tensors, so that equal calls have equal bits.
 */
static bool takes(const struct cuda_spmm *s, enum tensor_dtype dtype)
{
	const uintptr_t numbers = (uintptr_t)s->values | (uintptr_t)s->dense | (uintptr_t)s->out;

	return s->n >= LEAST_COLUMNS && s->entries >= LEAST_ENTRIES && type_of(dtype) >= 0 &&
	       s->k > 0 && s->alpha != 0 && s->lda >= s->n && s->ldo >= s->n &&
	       numbers % ALIGNMENT == 0;
}

/* ---- handles ---- */

/* A handle has a stream: the device's lock is held until the product is queued. Handles stay open. */
static struct device_handle {
	pthread_mutex_t lock;
	void *handle;
	bool unusable; /* too old, or it cannot start: no later call tries again, which might give other bits */
} handles[CUDA_DEVICES] = { [0 ... CUDA_DEVICES - 1] = { .lock = PTHREAD_MUTEX_INITIALIZER } };

/* 0 if another kernel should compute, or -errno. */
static int failed(const struct cuda_call *c, int status)
{
	const bool memory = status == CUSPARSE_ALLOC_FAILED || status == CUSPARSE_INSUFFICIENT;

	cudaGetLastError();
	if (status == CUSPARSE_NOT_SUPPORTED)
		return 0;
	return tensor_fail(memory ? ENOMEM : EIO, "%s: cuSPARSE: error %d", c->op, status);
}

/* The handle of the call's device, with its stream, or NULL with *err, which is 0 if another kernel should compute. */
static void *open_handle(const struct cuda_call *c, int *err)
{
	struct device_handle *h = &handles[c->device];
	int status, version = 0;

	*err = 0;
	if (!h->handle && !h->unusable) {
		h->unusable = functions.create(&h->handle) ||
			      functions.version(h->handle, &version) || version < LEAST_VERSION;
		cudaGetLastError();
	}
	if (h->unusable)
		return NULL;
	status = functions.set_stream(h->handle, c->stream);
	*err = status ? failed(c, status) : 0;
	return status ? NULL : h->handle;
}

/* ---- a product ---- */

struct product {
	void *a, *b, *c; /* descriptors */
	int type;
	double alpha[2], beta[2]; /* of the type; the imaginary parts are 0 */
};

static void set_scalar(double to[2], double value, int type)
{
	const float narrow[2] = { (float)value };

	to[0] = value;
	to[1] = 0;
	if (type == CUDA_R_32F || type == CUDA_C_32F)
		memcpy(to, narrow, sizeof(narrow));
}

static void close_product(struct product *p)
{
	if (p->a)
		functions.destroy_csr(p->a);
	if (p->b)
		functions.destroy_dense(p->b);
	if (p->c)
		functions.destroy_dense(p->c);
}

/* A status; close_product() follows in any case. */
static int open_product(struct product *p, const struct cuda_spmm *s, enum tensor_dtype dtype)
{
	int status;

	*p = (struct product){ .type = type_of(dtype) };
	set_scalar(p->alpha, s->alpha, p->type);
	set_scalar(p->beta, s->beta, p->type);
	status = functions.create_csr(&p->a, s->m, s->k, s->entries, s->crow, s->col, s->values,
				      CUSPARSE_INDEX_64I, CUSPARSE_INDEX_64I, CUSPARSE_BASE_ZERO,
				      p->type);
	if (!status)
		status = functions.create_dense(&p->b, s->k, s->n, s->lda, (void *)s->dense,
						p->type, CUSPARSE_ORDER_ROW);
	if (!status)
		status = functions.create_dense(&p->c, s->m, s->n, s->ldo, s->out, p->type,
						CUSPARSE_ORDER_ROW);
	return status;
}

/* 1, 0 or -errno as cusparse_spmm(). */
static int multiply(const struct cuda_call *c, void *handle, const struct product *p)
{
	void *workspace = NULL;
	size_t bytes = 0;
	int status, err = 0;

	status = functions.spmm_size(handle, CUSPARSE_N, CUSPARSE_N, p->alpha, p->a, p->b, p->beta,
				     p->c, p->type, CUSPARSE_CSR_ALG3, &bytes);
	if (status)
		return failed(c, status);
	if (bytes)
		err = cuda_scratch(c, bytes, &workspace);
	if (err)
		return err;
	status = functions.spmm(handle, CUSPARSE_N, CUSPARSE_N, p->alpha, p->a, p->b, p->beta, p->c,
				p->type, CUSPARSE_CSR_ALG3, workspace);
	cuda_scratch_free(c, workspace);
	return status ? failed(c, status) : 1;
}

int cusparse_spmm(const struct cuda_call *c, const struct cuda_spmm *s, enum tensor_dtype dtype)
{
	enum cudaStreamCaptureMode before;
	struct product p;
	void *handle;
	int err, status;

	if (!takes(s, dtype))
		return 0;
	pthread_once(&once, load);
	if (!is_loaded)
		return 0;
	pthread_mutex_lock(&handles[c->device].lock);
	/* A handle allocates, and code of a kernel may be loaded now. */
	before = cuda_relax();
	handle = open_handle(c, &err);
	if (handle) {
		status = open_product(&p, s, dtype);
		err = status ? failed(c, status) : multiply(c, handle, &p);
		close_product(&p);
	}
	cuda_unrelax(before);
	pthread_mutex_unlock(&handles[c->device].lock);
	return err;
}
