// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Stands for cuSOLVER and for the functions of cuBLAS that come with it, as far as the plugin uses them. Arguments are
 * checked as the documentation describes them; LAPACK computes. A workspace is overwritten, and a matrix whose
 * values are not defined afterwards as well.
 */
#include "lapack.hpp"

#include "host.hpp"

#include <cmath>
#include <set>

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 3 };
enum { BLAS_NOT_INITIALIZED = 1, BLAS_INVALID_VALUE = 7 };

struct solver_handle {
	int device;
	bool blas;
	cudaStream_t stream;
};

static std::set<const void *> &handles = *new std::set<const void *>();

#define SOLVER()                  \
	host_call call(__func__); \
	if (call.injected)        \
	return call.injected

static int create(void **handle, bool blas)
{
	*handle = new solver_handle{ host_current_device(), blas, nullptr };
	handles.insert(*handle);
	return SUCCESS;
}

/* NULL unless it is a handle of that library for the current device. */
static solver_handle *handle_of(void *handle, bool blas)
{
	solver_handle *h = handles.count(handle) ? (solver_handle *)handle : nullptr;

	return h && h->blas == blas && h->device == host_current_device() ? h : nullptr;
}

static int set_stream(void *handle, bool blas, cudaStream_t stream)
{
	solver_handle *h = handle_of(handle, blas);

	if (!h)
		return NOT_INITIALIZED;
	h->stream = stream;
	return SUCCESS;
}

extern "C" int cusolverDnCreate(void **handle)
{
	SOLVER();
	return create(handle, false);
}

extern "C" int cublasCreate_v2(void **handle)
{
	SOLVER();
	return create(handle, true);
}

extern "C" int cusolverDnSetStream(void *handle, cudaStream_t stream)
{
	SOLVER();
	return set_stream(handle, false, stream);
}

extern "C" int cublasSetStream_v2(void *handle, cudaStream_t stream)
{
	SOLVER();
	return set_stream(handle, true, stream);
}

/* ---- what a call accesses ---- */

/* `columns` columns of `rows` elements, ld elements apart. */
struct access {
	const void *data;
	size_t item;
	long long rows, columns, ld;
	bool write;

	void check(const char *name) const
	{
		for (long long c = 0; rows && c < columns; c++) {
			char *at = (char *)data + (size_t)(c * ld) * item;
			const size_t size = (size_t)rows * item;

			host_check(at, size, write, name);
#ifdef CUDA_HOST_TSAN
			if (write)
				__tsan_write_range(at, size);
			else
				__tsan_read_range(at, size);
#endif
		}
	}
};

static access matrix(int kind, const void *data, long long rows, long long columns, long long ld,
		     bool write = true)
{
	return { data, item_of(kind), rows, columns, ld, write };
}

static access vector(size_t item, const void *data, long long n, bool write = true)
{
	return { data, item, n, 1, n, write };
}

/* The accesses that are known only when the work runs are checked by it. */
static int submit(solver_handle *h, const char *name, std::vector<access> all,
		  std::function<void()> work)
{
	for (const access &a : all)
		if (!a.data || host_device_of(a.data) != h->device)
			host_fatal("%s: %p is no memory of cuda:%d", name, a.data, h->device);
	host_counts.launches++;
	host_submit(host_stream(h->stream, h->device), name, 1u << h->device, [=] {
		for (const access &a : all)
			a.check(name);
		work();
	});
	return SUCCESS;
}

static int answer(int *lwork, long long n)
{
	*lwork = (int)(n + 32);
	return SUCCESS;
}

static void scribble(void *work, size_t bytes)
{
	memset(work, 0x5a, bytes);
}

static char uplo_of(int uplo)
{
	return uplo ? 'U' : 'L';
}

static char trans_of(int trans)
{
	return "NTC"[trans];
}

static bool is_square(int n, int lda)
{
	return n >= 0 && lda >= (n ? n : 1);
}

static bool is_matrix(int m, int n, int lda)
{
	return n >= 0 && is_square(m, lda);
}

/* ---- LU ---- */

static int getrf_size(int, void *handle, int m, int n, void *, int lda, int *lwork)
{
	return !handle_of(handle, false) ? NOT_INITIALIZED :
	       !is_matrix(m, n, lda)	 ? INVALID_VALUE :
					   answer(lwork, m);
}

static int getrf(int kind, void *handle, int m, int n, void *a, int lda, void *work, int *pivots,
		 int *info)
{
	solver_handle *h = handle_of(handle, false);
	const int k = m < n ? m : n;

	if (!h || !is_matrix(m, n, lda))
		return h ? INVALID_VALUE : NOT_INITIALIZED;
	return submit(h, "getrf",
		      { matrix(kind, a, m, n, lda), vector(item_of(kind), work, m + 32),
			vector(4, pivots, k), vector(4, info, 1) },
		      [=] {
			      scribble(work, (size_t)(m + 32) * item_of(kind));
			      *info = lapack_getrf(kind, m, n, a, lda, pivots);
		      });
}

static int getrs(int kind, void *handle, int trans, int n, int columns, const void *a, int lda,
		 const int *pivots, void *b, int ldb, int *info)
{
	solver_handle *h = handle_of(handle, false);

	if (!h || !is_square(n, lda) || !is_matrix(n, columns, ldb) || trans < 0 || trans > 2)
		return h ? INVALID_VALUE : NOT_INITIALIZED;
	return submit(h, "getrs",
		      { matrix(kind, a, n, n, lda, false), vector(4, pivots, n, false),
			matrix(kind, b, n, columns, ldb), vector(4, info, 1) },
		      [=] {
			      for (int i = 0; i < n; i++)
				      if (pivots[i] < 1 || pivots[i] > n)
					      host_fatal("getrs: pivot %d of %d rows", pivots[i],
							 n);
			      *info = lapack_getrs(kind, trans_of(trans), n, columns, (void *)a,
						   lda, pivots, b, ldb);
		      });
}

static int getrf_batched(int kind, void *handle, int n, void *const *a, int lda, int *pivots,
			 int *info, int count)
{
	solver_handle *h = handle_of(handle, true);

	if (!h || !is_square(n, lda) || count < 0)
		return h ? BLAS_INVALID_VALUE : BLAS_NOT_INITIALIZED;
	return submit(h, "getrfBatched",
		      { vector(sizeof(*a), a, count, false),
			vector(4, pivots, (long long)n * count), vector(4, info, count) },
		      [=] {
			      for (int i = 0; i < count; i++) {
				      matrix(kind, a[i], n, n, lda).check("getrfBatched");
				      info[i] = lapack_getrf(kind, n, n, a[i], lda,
							     pivots + (long long)i * n);
			      }
		      });
}

static int getrs_batched(int kind, void *handle, int trans, int n, int columns,
			 const void *const *a, int lda, const int *pivots, void *const *b, int ldb,
			 int *info, int count)
{
	solver_handle *h = handle_of(handle, true);

	if (!h || !is_square(n, lda) || !is_matrix(n, columns, ldb) || count < 0 || !info)
		return h ? BLAS_INVALID_VALUE : BLAS_NOT_INITIALIZED;
	*info = 0;
	return submit(h, "getrsBatched",
		      { vector(sizeof(*a), a, count, false), vector(sizeof(*b), b, count, false),
			vector(4, pivots, (long long)n * count, false) },
		      [=] {
			      for (int i = 0; i < count; i++) {
				      matrix(kind, a[i], n, n, lda, false).check("getrsBatched");
				      matrix(kind, b[i], n, columns, ldb).check("getrsBatched");
				      lapack_getrs(kind, trans_of(trans), n, columns, (void *)a[i],
						   lda, pivots + (long long)i * n, b[i], ldb);
			      }
		      });
}

/* ---- Cholesky ---- */

static int potrf_size(int, void *handle, int, int n, void *, int lda, int *lwork)
{
	return !handle_of(handle, false) ? NOT_INITIALIZED :
	       !is_square(n, lda)	 ? INVALID_VALUE :
					   answer(lwork, 2ll * n);
}

static int potrf(int kind, void *handle, int uplo, int n, void *a, int lda, void *work, int lwork,
		 int *info)
{
	solver_handle *h = handle_of(handle, false);

	if (!h || !is_square(n, lda) || lwork < 2 * n + 32)
		return h ? INVALID_VALUE : NOT_INITIALIZED;
	return submit(h, "potrf",
		      { matrix(kind, a, n, n, lda), vector(item_of(kind), work, lwork),
			vector(4, info, 1) },
		      [=] {
			      scribble(work, (size_t)lwork * item_of(kind));
			      *info = lapack_potrf(kind, uplo_of(uplo), n, a, lda);
		      });
}

static int potrf_batched(int kind, void *handle, int uplo, int n, void **a, int lda, int *info,
			 int count)
{
	solver_handle *h = handle_of(handle, false);

	if (!h || !is_square(n, lda) || count < 0)
		return h ? INVALID_VALUE : NOT_INITIALIZED;
	return submit(h, "potrfBatched",
		      { vector(sizeof(*a), a, count, false), vector(4, info, count) }, [=] {
			      for (int i = 0; i < count; i++) {
				      matrix(kind, a[i], n, n, lda).check("potrfBatched");
				      info[i] = lapack_potrf(kind, uplo_of(uplo), n, a[i], lda);
			      }
		      });
}

static int potrs(int kind, void *handle, int uplo, int n, int columns, const void *a, int lda,
		 void *b, int ldb, int *info)
{
	solver_handle *h = handle_of(handle, false);

	if (!h || !is_square(n, lda) || !is_matrix(n, columns, ldb))
		return h ? INVALID_VALUE : NOT_INITIALIZED;
	return submit(h, "potrs",
		      { matrix(kind, a, n, n, lda, false), matrix(kind, b, n, columns, ldb),
			vector(4, info, 1) },
		      [=] {
			      *info = lapack_potrs(kind, uplo_of(uplo), n, columns, (void *)a, lda,
						   b, ldb);
		      });
}

/* ---- triangular ---- */

/* alpha is on the host. */
static std::vector<char> copy_of(int kind, const void *alpha)
{
	return std::vector<char>((const char *)alpha, (const char *)alpha + item_of(kind));
}

static int trsm(int kind, void *handle, int side, int uplo, int trans, int diag, int m, int n,
		const void *alpha, const void *a, int lda, void *b, int ldb)
{
	solver_handle *h = handle_of(handle, true);
	const int rows = side ? n : m;

	if (!h || !is_square(rows, lda) || !is_matrix(m, n, ldb) || !alpha)
		return h ? BLAS_INVALID_VALUE : BLAS_NOT_INITIALIZED;
	const std::vector<char> factor = copy_of(kind, alpha);
	return submit(h, "trsm",
		      { matrix(kind, a, rows, rows, lda, false), matrix(kind, b, m, n, ldb) }, [=] {
			      lapack_trsm(kind, side ? 'R' : 'L', uplo_of(uplo), trans_of(trans),
					  diag ? 'U' : 'N', m, n, factor.data(), (void *)a, lda, b,
					  ldb);
		      });
}

static int trsm_batched(int kind, void *handle, int side, int uplo, int trans, int diag, int m,
			int n, const void *alpha, const void *const *a, int lda, void *const *b,
			int ldb, int count)
{
	solver_handle *h = handle_of(handle, true);
	const int rows = side ? n : m;

	if (!h || !is_square(rows, lda) || !is_matrix(m, n, ldb) || !alpha || count < 0)
		return h ? BLAS_INVALID_VALUE : BLAS_NOT_INITIALIZED;
	const std::vector<char> factor = copy_of(kind, alpha);
	return submit(
		h, "trsmBatched",
		{ vector(sizeof(*a), a, count, false), vector(sizeof(*b), b, count, false) }, [=] {
			for (int i = 0; i < count; i++) {
				matrix(kind, a[i], rows, rows, lda, false).check("trsmBatched");
				matrix(kind, b[i], m, n, ldb).check("trsmBatched");
				lapack_trsm(kind, side ? 'R' : 'L', uplo_of(uplo), trans_of(trans),
					    diag ? 'U' : 'N', m, n, factor.data(), (void *)a[i],
					    lda, b[i], ldb);
			}
		});
}

/* ---- QR ---- */

static int geqrf_size(int, void *handle, int m, int n, void *, int lda, int *lwork)
{
	return !handle_of(handle, false) ? NOT_INITIALIZED :
	       !is_matrix(m, n, lda)	 ? INVALID_VALUE :
					   answer(lwork, n);
}

static int geqrf(int kind, void *handle, int m, int n, void *a, int lda, void *tau, void *work,
		 int lwork, int *info)
{
	solver_handle *h = handle_of(handle, false);

	if (!h || !is_matrix(m, n, lda) || lwork < n + 32)
		return h ? INVALID_VALUE : NOT_INITIALIZED;
	return submit(h, "geqrf",
		      { matrix(kind, a, m, n, lda), vector(item_of(kind), tau, m < n ? m : n),
			vector(item_of(kind), work, lwork), vector(4, info, 1) },
		      [=] {
			      scribble(work, (size_t)lwork * item_of(kind));
			      *info = lapack_geqrf(kind, m, n, a, lda, tau);
		      });
}

static int orgqr_size(int, void *handle, int m, int n, int k, const void *, int lda, const void *,
		      int *lwork)
{
	return !handle_of(handle, false)			? NOT_INITIALIZED :
	       !is_matrix(m, n, lda) || n > m || k > n || k < 0 ? INVALID_VALUE :
								  answer(lwork, n);
}

static int orgqr(int kind, void *handle, int m, int n, int k, void *a, int lda, const void *tau,
		 void *work, int lwork, int *info)
{
	solver_handle *h = handle_of(handle, false);

	if (!h || !is_matrix(m, n, lda) || n > m || k > n || k < 0 || lwork < n + 32)
		return h ? INVALID_VALUE : NOT_INITIALIZED;
	return submit(h, "orgqr",
		      { matrix(kind, a, m, n, lda), vector(item_of(kind), tau, k, false),
			vector(item_of(kind), work, lwork), vector(4, info, 1) },
		      [=] {
			      scribble(work, (size_t)lwork * item_of(kind));
			      *info = lapack_orgqr(kind, m, n, k, a, lda, (void *)tau);
		      });
}

/* ---- eigenvalues and singular values ---- */

static int syevd_size(int, void *handle, int jobz, int, int n, const void *, int lda, const void *,
		      int *lwork)
{
	return !handle_of(handle, false)		  ? NOT_INITIALIZED :
	       !is_square(n, lda) || jobz < 0 || jobz > 1 ? INVALID_VALUE :
							    answer(lwork, 3ll * n);
}

static int syevd(int kind, void *handle, int jobz, int uplo, int n, void *a, int lda, void *w,
		 void *work, int lwork, int *info)
{
	solver_handle *h = handle_of(handle, false);

	if (!h || !is_square(n, lda) || jobz < 0 || jobz > 1 || lwork < 3 * n + 32)
		return h ? INVALID_VALUE : NOT_INITIALIZED;
	return submit(h, "syevd",
		      { matrix(kind, a, n, n, lda), vector(real_of(kind), w, n),
			vector(item_of(kind), work, lwork), vector(4, info, 1) },
		      [=] {
			      scribble(work, (size_t)lwork * item_of(kind));
			      *info = lapack_eigh(kind, jobz ? 'V' : 'N', uplo_of(uplo), n, a, lda,
						  w);
			      if (!jobz)
				      scribble(a, (size_t)n * item_of(kind));
		      });
}

static int gesvd_size(int, void *handle, int m, int n, int *lwork)
{
	return !handle_of(handle, false) ? NOT_INITIALIZED :
	       m < n || n < 0		 ? INVALID_VALUE :
					   answer(lwork, m);
}

static int gesvd(int kind, void *handle, signed char jobu, signed char jobvt, int m, int n, void *a,
		 int lda, void *s, void *u, int ldu, void *vt, int ldvt, void *work, int lwork,
		 void *rwork, int *info)
{
	solver_handle *h = handle_of(handle, false);
	const bool vectors = jobu != 'N';

	if (!h || m < n || !is_matrix(m, n, lda) || jobu != jobvt || !strchr("ASN", jobu) ||
	    lwork < m + 32 || (vectors && (ldu < m || ldvt < n)))
		return h ? INVALID_VALUE : NOT_INITIALIZED;
	std::vector<access> all = { matrix(kind, a, m, n, lda), vector(real_of(kind), s, n),
				    vector(item_of(kind), work, lwork),
				    vector(real_of(kind), rwork, n > 1 ? n - 1 : 1),
				    vector(4, info, 1) };
	if (vectors) {
		all.push_back(matrix(kind, u, m, jobu == 'A' ? m : n, ldu));
		all.push_back(matrix(kind, vt, n, n, ldvt));
	}
	return submit(h, "gesvd", all, [=] {
		scribble(work, (size_t)lwork * item_of(kind));
		*info = lapack_gesvd(kind, (char)jobu, m, n, a, lda, s, u, ldu, vt, ldvt);
		scribble(a, (size_t)m * item_of(kind));
	});
}

/* ---- singular values by other drivers, which give v ---- */

/* LAPACK's V^H, from which V is made. */
static int gesvd_with_v(int kind, char job, int m, int n, void *a, void *s, void *u, void *v)
{
	const size_t item = item_of(kind);
	std::vector<char> vt((size_t)n * (size_t)n * item);
	const int info = lapack_gesvd(kind, job, m, n, a, m, s, u, m, vt.data(), n);

	for (int i = 0; job != 'N' && i < n; i++)
		for (int k = 0; k < n; k++) {
			char *to = (char *)v + ((size_t)i + (size_t)k * (size_t)n) * item;

			memcpy(to, vt.data() + ((size_t)k + (size_t)i * (size_t)n) * item, item);
			if (kind == 2)
				((float *)to)[1] *= -1;
			else if (kind == 3)
				((double *)to)[1] *= -1;
		}
	return info;
}

static std::set<const void *> &jacobi = *new std::set<const void *>();

extern "C" int cusolverDnCreateGesvdjInfo(void **params)
{
	SOLVER();
	*params = new int;
	jacobi.insert(*params);
	return SUCCESS;
}

extern "C" int cusolverDnDestroyGesvdjInfo(void *params)
{
	SOLVER();
	jacobi.erase(params);
	delete (int *)params;
	return SUCCESS;
}

static int gesvdj_size(int, void *handle, int m, int n, int lda, int ldu, int ldv, int *lwork,
		       void *params)
{
	return !handle_of(handle, false)			      ? NOT_INITIALIZED :
	       !jacobi.count(params) || lda < m || ldu < m || ldv < n ? INVALID_VALUE :
									answer(lwork, m);
}

/* Matrices with fewer rows than columns are permitted, and not computed here. */
static int gesvdj(int kind, void *handle, int jobz, int econ, int m, int n, void *a, int lda,
		  void *s, void *u, int ldu, void *v, int ldv, void *work, int lwork, int *info,
		  void *params)
{
	solver_handle *h = handle_of(handle, false);

	if (!h || !jacobi.count(params) || m < n || lda != m || ldu != m || ldv != n ||
	    lwork < m + 32)
		return h ? INVALID_VALUE : NOT_INITIALIZED;
	return submit(h, "gesvdj",
		      { matrix(kind, a, m, n, lda), vector(real_of(kind), s, n),
			matrix(kind, u, m, jobz && !econ ? m : n, ldu), matrix(kind, v, n, n, ldv),
			vector(item_of(kind), work, lwork), vector(4, info, 1) },
		      [=] {
			      scribble(work, (size_t)lwork * item_of(kind));
			      *info = gesvd_with_v(kind,
						   !jobz ? 'N' :
						   econ	 ? 'S' :
							   'A',
						   m, n, a, s, u, v);
			      scribble(a, (size_t)m * item_of(kind));
		      });
}

static int gesvda_size(int, void *handle, int rank, int m, int n, int lda, int ldu, int ldv,
		       int *lwork, int count)
{
	return !handle_of(handle, false) ? NOT_INITIALIZED :
	       m < n || rank < 1 || rank > n || lda < m || ldu < m || ldv < n || count < 1 ?
					   INVALID_VALUE :
					   answer(lwork, (long long)m * count);
}

static int gesvda(int kind, void *handle, int jobz, int rank, int m, int n, const void *a, int lda,
		  long long a_step, void *s, long long s_step, void *u, int ldu, long long u_step,
		  void *v, int ldv, long long v_step, void *work, int lwork, int *info,
		  double *residuals, int count)
{
	solver_handle *h = handle_of(handle, false);
	const size_t item = item_of(kind);
	std::vector<access> all = { vector(item, work, lwork), vector(4, info, count) };

	if (!h || residuals || m < n || rank != n || lda != m || ldu != m || ldv != n ||
	    lwork < m * count + 32 || a_step < (long long)m * n || s_step < n ||
	    u_step < (long long)m * n || v_step < (long long)n * n)
		return h ? INVALID_VALUE : NOT_INITIALIZED;
	for (int i = 0; i < count; i++) {
		all.push_back(matrix(kind, (const char *)a + (size_t)(i * a_step) * item, m, n, lda,
				     false));
		all.push_back(
			vector(real_of(kind), (char *)s + (size_t)(i * s_step) * real_of(kind), n));
		all.push_back(matrix(kind, (char *)u + (size_t)(i * u_step) * item, m, n, ldu));
		all.push_back(matrix(kind, (char *)v + (size_t)(i * v_step) * item, n, n, ldv));
	}
	return submit(h, "gesvda", all, [=] {
		scribble(work, (size_t)lwork * item);
		for (int i = 0; i < count; i++) {
			const char *from = (const char *)a + (size_t)(i * a_step) * item;
			std::vector<char> own(from, from + (size_t)m * (size_t)n * item);

			info[i] = gesvd_with_v(kind, jobz ? 'S' : 'N', m, n, own.data(),
					       (char *)s + (size_t)(i * s_step) * real_of(kind),
					       (char *)u + (size_t)(i * u_step) * item,
					       (char *)v + (size_t)(i * v_step) * item);
		}
	});
}

/* ---- names ---- */

/* The functions for the four dtypes are FN with a kind in front of its arguments. */
#define FUNCTIONS(S, D, C, Z, FN, PARAMETERS, ...) \
	extern "C" int S PARAMETERS                \
	{                                          \
		SOLVER();                          \
		return FN(0, __VA_ARGS__);         \
	}                                          \
	extern "C" int D PARAMETERS                \
	{                                          \
		SOLVER();                          \
		return FN(1, __VA_ARGS__);         \
	}                                          \
	extern "C" int C PARAMETERS                \
	{                                          \
		SOLVER();                          \
		return FN(2, __VA_ARGS__);         \
	}                                          \
	extern "C" int Z PARAMETERS                \
	{                                          \
		SOLVER();                          \
		return FN(3, __VA_ARGS__);         \
	}

FUNCTIONS(cusolverDnSgetrf_bufferSize, cusolverDnDgetrf_bufferSize, cusolverDnCgetrf_bufferSize,
	  cusolverDnZgetrf_bufferSize, getrf_size,
	  (void *handle, int m, int n, void *a, int lda, int *lwork), handle, m, n, a, lda, lwork)
FUNCTIONS(cusolverDnSgetrf, cusolverDnDgetrf, cusolverDnCgetrf, cusolverDnZgetrf, getrf,
	  (void *handle, int m, int n, void *a, int lda, void *work, int *pivots, int *info),
	  handle, m, n, a, lda, work, pivots, info)
FUNCTIONS(cusolverDnSgetrs, cusolverDnDgetrs, cusolverDnCgetrs, cusolverDnZgetrs, getrs,
	  (void *handle, int trans, int n, int columns, const void *a, int lda, const int *pivots,
	   void *b, int ldb, int *info),
	  handle, trans, n, columns, a, lda, pivots, b, ldb, info)
FUNCTIONS(cusolverDnSpotrf_bufferSize, cusolverDnDpotrf_bufferSize, cusolverDnCpotrf_bufferSize,
	  cusolverDnZpotrf_bufferSize, potrf_size,
	  (void *handle, int uplo, int n, void *a, int lda, int *lwork), handle, uplo, n, a, lda,
	  lwork)
FUNCTIONS(cusolverDnSpotrf, cusolverDnDpotrf, cusolverDnCpotrf, cusolverDnZpotrf, potrf,
	  (void *handle, int uplo, int n, void *a, int lda, void *work, int lwork, int *info),
	  handle, uplo, n, a, lda, work, lwork, info)
FUNCTIONS(cusolverDnSpotrfBatched, cusolverDnDpotrfBatched, cusolverDnCpotrfBatched,
	  cusolverDnZpotrfBatched, potrf_batched,
	  (void *handle, int uplo, int n, void **a, int lda, int *info, int count), handle, uplo, n,
	  a, lda, info, count)
FUNCTIONS(cusolverDnSpotrs, cusolverDnDpotrs, cusolverDnCpotrs, cusolverDnZpotrs, potrs,
	  (void *handle, int uplo, int n, int columns, const void *a, int lda, void *b, int ldb,
	   int *info),
	  handle, uplo, n, columns, a, lda, b, ldb, info)
FUNCTIONS(cusolverDnSgeqrf_bufferSize, cusolverDnDgeqrf_bufferSize, cusolverDnCgeqrf_bufferSize,
	  cusolverDnZgeqrf_bufferSize, geqrf_size,
	  (void *handle, int m, int n, void *a, int lda, int *lwork), handle, m, n, a, lda, lwork)
FUNCTIONS(cusolverDnSgeqrf, cusolverDnDgeqrf, cusolverDnCgeqrf, cusolverDnZgeqrf, geqrf,
	  (void *handle, int m, int n, void *a, int lda, void *tau, void *work, int lwork,
	   int *info),
	  handle, m, n, a, lda, tau, work, lwork, info)
FUNCTIONS(cusolverDnSorgqr_bufferSize, cusolverDnDorgqr_bufferSize, cusolverDnCungqr_bufferSize,
	  cusolverDnZungqr_bufferSize, orgqr_size,
	  (void *handle, int m, int n, int k, const void *a, int lda, const void *tau, int *lwork),
	  handle, m, n, k, a, lda, tau, lwork)
FUNCTIONS(cusolverDnSorgqr, cusolverDnDorgqr, cusolverDnCungqr, cusolverDnZungqr, orgqr,
	  (void *handle, int m, int n, int k, void *a, int lda, const void *tau, void *work,
	   int lwork, int *info),
	  handle, m, n, k, a, lda, tau, work, lwork, info)
FUNCTIONS(cusolverDnSsyevd_bufferSize, cusolverDnDsyevd_bufferSize, cusolverDnCheevd_bufferSize,
	  cusolverDnZheevd_bufferSize, syevd_size,
	  (void *handle, int jobz, int uplo, int n, const void *a, int lda, const void *w,
	   int *lwork),
	  handle, jobz, uplo, n, a, lda, w, lwork)
FUNCTIONS(cusolverDnSsyevd, cusolverDnDsyevd, cusolverDnCheevd, cusolverDnZheevd, syevd,
	  (void *handle, int jobz, int uplo, int n, void *a, int lda, void *w, void *work,
	   int lwork, int *info),
	  handle, jobz, uplo, n, a, lda, w, work, lwork, info)
FUNCTIONS(cusolverDnSgesvd_bufferSize, cusolverDnDgesvd_bufferSize, cusolverDnCgesvd_bufferSize,
	  cusolverDnZgesvd_bufferSize, gesvd_size, (void *handle, int m, int n, int *lwork), handle,
	  m, n, lwork)
FUNCTIONS(cusolverDnSgesvd, cusolverDnDgesvd, cusolverDnCgesvd, cusolverDnZgesvd, gesvd,
	  (void *handle, signed char jobu, signed char jobvt, int m, int n, void *a, int lda,
	   void *s, void *u, int ldu, void *vt, int ldvt, void *work, int lwork, void *rwork,
	   int *info),
	  handle, jobu, jobvt, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, rwork, info)
FUNCTIONS(cusolverDnSgesvdj_bufferSize, cusolverDnDgesvdj_bufferSize, cusolverDnCgesvdj_bufferSize,
	  cusolverDnZgesvdj_bufferSize, gesvdj_size,
	  (void *handle, int jobz, int econ, int m, int n, const void *a, int lda, const void *s,
	   const void *u, int ldu, const void *v, int ldv, int *lwork, void *params),
	  handle, m, n, lda, ldu, ldv, lwork, params)
FUNCTIONS(cusolverDnSgesvdj, cusolverDnDgesvdj, cusolverDnCgesvdj, cusolverDnZgesvdj, gesvdj,
	  (void *handle, int jobz, int econ, int m, int n, void *a, int lda, void *s, void *u,
	   int ldu, void *v, int ldv, void *work, int lwork, int *info, void *params),
	  handle, jobz, econ, m, n, a, lda, s, u, ldu, v, ldv, work, lwork, info, params)
FUNCTIONS(cusolverDnSgesvdaStridedBatched_bufferSize, cusolverDnDgesvdaStridedBatched_bufferSize,
	  cusolverDnCgesvdaStridedBatched_bufferSize, cusolverDnZgesvdaStridedBatched_bufferSize,
	  gesvda_size,
	  (void *handle, int jobz, int rank, int m, int n, const void *a, int lda, long long a_step,
	   const void *s, long long s_step, const void *u, int ldu, long long u_step, const void *v,
	   int ldv, long long v_step, int *lwork, int count),
	  handle, rank, m, n, lda, ldu, ldv, lwork, count)
FUNCTIONS(cusolverDnSgesvdaStridedBatched, cusolverDnDgesvdaStridedBatched,
	  cusolverDnCgesvdaStridedBatched, cusolverDnZgesvdaStridedBatched, gesvda,
	  (void *handle, int jobz, int rank, int m, int n, const void *a, int lda, long long a_step,
	   void *s, long long s_step, void *u, int ldu, long long u_step, void *v, int ldv,
	   long long v_step, void *work, int lwork, int *info, double *residuals, int count),
	  handle, jobz, rank, m, n, a, lda, a_step, s, s_step, u, ldu, u_step, v, ldv, v_step, work,
	  lwork, info, residuals, count)
FUNCTIONS(cublasSgetrfBatched, cublasDgetrfBatched, cublasCgetrfBatched, cublasZgetrfBatched,
	  getrf_batched,
	  (void *handle, int n, void *const *a, int lda, int *pivots, int *info, int count), handle,
	  n, a, lda, pivots, info, count)
FUNCTIONS(cublasSgetrsBatched, cublasDgetrsBatched, cublasCgetrsBatched, cublasZgetrsBatched,
	  getrs_batched,
	  (void *handle, int trans, int n, int columns, const void *const *a, int lda,
	   const int *pivots, void *const *b, int ldb, int *info, int count),
	  handle, trans, n, columns, a, lda, pivots, b, ldb, info, count)
FUNCTIONS(cublasStrsm_v2, cublasDtrsm_v2, cublasCtrsm_v2, cublasZtrsm_v2, trsm,
	  (void *handle, int side, int uplo, int trans, int diag, int m, int n, const void *alpha,
	   const void *a, int lda, void *b, int ldb),
	  handle, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb)
FUNCTIONS(cublasStrsmBatched, cublasDtrsmBatched, cublasCtrsmBatched, cublasZtrsmBatched,
	  trsm_batched,
	  (void *handle, int side, int uplo, int trans, int diag, int m, int n, const void *alpha,
	   const void *const *a, int lda, void *const *b, int ldb, int count),
	  handle, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb, count)
