// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Stands for cuSPARSE, as far as the plugin uses it: products of compressed rows with a dense matrix. Arguments are checked as
 * the documentation describes them; a loop adds the entries in order. A workspace is overwritten. Test programs can
 * give it another version (CUDA_HOST_CUSPARSE).
 */
#include "host.hpp"

#include <complex>
#include <cstdlib>
#include <cstring>
#include <set>

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 3, NOT_SUPPORTED = 10 };
enum { R_32F = 0, R_64F = 1, C_32F = 4, C_64F = 5 };
enum {
	NON_TRANSPOSE = 0,
	BASE_ZERO = 0,
	ORDER_COL = 1,
	ORDER_ROW = 2,
	INDEX_32I = 2,
	INDEX_64I = 3
};
enum { CSR_ALG3 = 12, VERSION = 12603, WORKSPACE = 1024 };

struct sparse_handle {
	int device;
	cudaStream_t stream;
};

struct csr_matrix {
	int64_t rows, columns, entries;
	const int64_t *crow, *col;
	const void *values;
	int type;
};

struct dense_matrix {
	int64_t rows, columns, ld;
	void *values;
	int type, order;
};

/* Those that exist: a descriptor may not be used once it has been destroyed. */
static std::set<const void *> &handles = *new std::set<const void *>();
static std::set<const void *> &sparse = *new std::set<const void *>();
static std::set<const void *> &dense = *new std::set<const void *>();

#define SPARSE()                  \
	host_call call(__func__); \
	if (call.injected)        \
	return call.injected

static size_t item_of(int type)
{
	return type == R_32F ? 4 : type == R_64F || type == C_32F ? 8 : type == C_64F ? 16 : 0;
}

/* ---- handles ---- */

/* NULL unless it is a handle of the current device. */
static sparse_handle *handle_of(void *handle)
{
	sparse_handle *h = handles.count(handle) ? (sparse_handle *)handle : nullptr;

	return h && h->device == host_current_device() ? h : nullptr;
}

extern "C" int cusparseCreate(void **handle)
{
	SPARSE();
	*handle = new sparse_handle{ host_current_device(), nullptr };
	handles.insert(*handle);
	return SUCCESS;
}

extern "C" int cusparseGetVersion(void *handle, int *version)
{
	SPARSE();
	const char *text = getenv("CUDA_HOST_CUSPARSE");

	*version = text && *text ? atoi(text) : VERSION;
	return handle_of(handle) ? SUCCESS : NOT_INITIALIZED;
}

extern "C" int cusparseSetStream(void *handle, cudaStream_t stream)
{
	SPARSE();
	sparse_handle *h = handle_of(handle);

	if (!h)
		return NOT_INITIALIZED;
	h->stream = stream;
	return SUCCESS;
}

/* ---- descriptors ---- */

extern "C" int cusparseCreateConstCsr(void **matrix, int64_t rows, int64_t columns, int64_t entries,
				      const void *crow, const void *col, const void *values,
				      int crow_type, int col_type, int base, int type)
{
	SPARSE();
	if (!matrix || rows < 0 || columns < 0 || entries < 0 || !crow ||
	    (entries && (!col || !values)) || base != BASE_ZERO || !item_of(type) ||
	    crow_type != col_type || (crow_type != INDEX_32I && crow_type != INDEX_64I))
		return INVALID_VALUE;
	if (crow_type != INDEX_64I)
		host_fatal("cuSPARSE: the emulation has indices of 64 bits alone");
	if (((uintptr_t)crow | (uintptr_t)col) % sizeof(int64_t) ||
	    (uintptr_t)values % item_of(type))
		host_fatal("cusparseCreateConstCsr: %p, %p or %p is not aligned", crow, col,
			   values);
	*matrix = new csr_matrix{
		rows, columns, entries, (const int64_t *)crow, (const int64_t *)col, values, type
	};
	sparse.insert(*matrix);
	return SUCCESS;
}

extern "C" int cusparseCreateDnMat(void **matrix, int64_t rows, int64_t columns, int64_t ld,
				   void *values, int type, int order)
{
	SPARSE();
	if (!matrix || rows < 0 || columns < 0 || !item_of(type) || (rows && columns && !values) ||
	    (order != ORDER_ROW && order != ORDER_COL) ||
	    ld < (order == ORDER_ROW ? columns : rows))
		return INVALID_VALUE;
	if ((uintptr_t)values % item_of(type))
		host_fatal("cusparseCreateDnMat: %p is not aligned", values);
	*matrix = new dense_matrix{ rows, columns, ld, values, type, order };
	dense.insert(*matrix);
	return SUCCESS;
}

extern "C" int cusparseDestroySpMat(const void *matrix)
{
	SPARSE();
	if (!sparse.erase(matrix))
		host_fatal("cusparseDestroySpMat(%p): no descriptor, or destroyed twice", matrix);
	delete (const csr_matrix *)matrix;
	return SUCCESS;
}

extern "C" int cusparseDestroyDnMat(const void *matrix)
{
	SPARSE();
	if (!dense.erase(matrix))
		host_fatal("cusparseDestroyDnMat(%p): no descriptor, or destroyed twice", matrix);
	delete (const dense_matrix *)matrix;
	return SUCCESS;
}

/* ---- products ---- */

struct spmm_work {
	csr_matrix a;
	dense_matrix b, c;
	char alpha[16], beta[16]; /* of the type */
	void *workspace;
};

static void check_range(const void *data, size_t bytes, bool write)
{
	host_check(data, bytes, write, "cusparseSpMM");
#ifdef CUDA_HOST_TSAN
	if (write)
		__tsan_write_range((void *)data, bytes);
	else
		__tsan_read_range((void *)data, bytes);
#endif
}

static void check_rows(const dense_matrix &m, bool write)
{
	for (int64_t i = 0; i < m.rows; i++)
		check_range((char *)m.values + (size_t)(i * m.ld) * item_of(m.type),
			    (size_t)m.columns * item_of(m.type), write);
}

template <class T> static void multiply(const spmm_work &w)
{
	const T *values = (const T *)w.a.values, *b = (const T *)w.b.values;
	T alpha, beta, *c = (T *)w.c.values;

	memcpy(&alpha, w.alpha, sizeof(T));
	memcpy(&beta, w.beta, sizeof(T));
	for (int64_t i = 0; i < w.c.rows; i++)
		for (int64_t j = 0; j < w.c.columns; j++) {
			T sum = 0;

			for (int64_t p = w.a.crow[i]; p < w.a.crow[i + 1]; p++) {
				if (w.a.col[p] < 0 || w.a.col[p] >= w.a.columns)
					host_fatal("cusparseSpMM: column %lld of %lld",
						   (long long)w.a.col[p], (long long)w.a.columns);
				sum += values[p] * b[w.a.col[p] * w.b.ld + j];
			}
			sum *= alpha;
			c[i * w.c.ld + j] = beta == T(0) ? sum : sum + beta * c[i * w.c.ld + j];
		}
}

static void compute(const spmm_work &w)
{
	check_range(w.a.crow, (size_t)(w.a.rows + 1) * sizeof(int64_t), false);
	check_range(w.a.col, (size_t)w.a.entries * sizeof(int64_t), false);
	check_range(w.a.values, (size_t)w.a.entries * item_of(w.a.type), false);
	check_rows(w.b, false);
	check_rows(w.c, true);
	check_range(w.workspace, WORKSPACE, true);
	memset(w.workspace, 0x5a, WORKSPACE);
	if (w.a.crow[0] || w.a.crow[w.a.rows] != w.a.entries)
		host_fatal("cusparseSpMM: rows end at %lld of %lld entries",
			   (long long)w.a.crow[w.a.rows], (long long)w.a.entries);
	switch (w.a.type) {
	case R_32F:
		return multiply<float>(w);
	case R_64F:
		return multiply<double>(w);
	case C_32F:
		return multiply<std::complex<float>>(w);
	default:
		return multiply<std::complex<double>>(w);
	}
}

/* The status of arguments that both functions have. */
static int check(void *handle, int trans_a, int trans_b, const void *alpha, const void *a,
		 const void *b, const void *beta, void *c, int type, int algorithm)
{
	if (!handle_of(handle))
		return NOT_INITIALIZED;
	if (!sparse.count(a) || !dense.count(b) || !dense.count(c))
		host_fatal("cuSPARSE: a descriptor does not exist");
	const csr_matrix *m = (const csr_matrix *)a;
	const dense_matrix *x = (const dense_matrix *)b, *y = (const dense_matrix *)c;
	if (!alpha || !beta || m->columns != x->rows || m->rows != y->rows ||
	    x->columns != y->columns)
		return INVALID_VALUE;
	if (algorithm != CSR_ALG3)
		host_fatal("cuSPARSE: algorithm %d may give other bits in another call", algorithm);
	if (trans_a != NON_TRANSPOSE || trans_b != NON_TRANSPOSE || m->type != type ||
	    x->type != type || y->type != type || x->order != ORDER_ROW || y->order != ORDER_ROW)
		return NOT_SUPPORTED;
	return SUCCESS;
}

extern "C" int cusparseSpMM_bufferSize(void *handle, int trans_a, int trans_b, const void *alpha,
				       const void *a, const void *b, const void *beta, void *c,
				       int type, int algorithm, size_t *bytes)
{
	SPARSE();
	*bytes = WORKSPACE;
	return check(handle, trans_a, trans_b, alpha, a, b, beta, c, type, algorithm);
}

extern "C" int cusparseSpMM(void *handle, int trans_a, int trans_b, const void *alpha,
			    const void *a, const void *b, const void *beta, void *c, int type,
			    int algorithm, void *workspace)
{
	SPARSE();
	int status = check(handle, trans_a, trans_b, alpha, a, b, beta, c, type, algorithm);

	if (status)
		return status;
	spmm_work w = { *(const csr_matrix *)a,
			*(const dense_matrix *)b,
			*(const dense_matrix *)c,
			{},
			{},
			workspace };
	const int device = host_current_device();
	memcpy(w.alpha, alpha, item_of(type));
	memcpy(w.beta, beta, item_of(type));
	for (const void *p :
	     { (const void *)w.a.crow, (const void *)w.a.col, w.a.values, (const void *)w.b.values,
	       (const void *)w.c.values, (const void *)workspace })
		if (!p || host_device_of(p) != device)
			host_fatal("cusparseSpMM: %p is no memory of cuda:%d", p, device);
	host_counts.launches++;
	host_submit(host_stream(handle_of(handle)->stream, device), "cusparseSpMM", 1u << device,
		    [w] { compute(w); });
	return SUCCESS;
}
