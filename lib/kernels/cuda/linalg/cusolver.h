/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * cuSOLVER, and the functions of cuBLAS that it depends on, loaded when first needed, so that the plugin can be used
 * without them. The declarations are those of their documentation (the dense functions of LAPACK's names); pointers to
 * numbers are void here. Matrices are column-major, as in LAPACK.
 */
#ifndef TENSOR_CUDA_CUSOLVER_H
#define TENSOR_CUDA_CUSOLVER_H

#include "kernels/cuda/cuda.h"

enum { CUSOLVER_ALLOC_FAILED = 2, CUBLAS_ALLOC_FAILED = 3 };
enum { CUBLAS_LOWER = 0, CUBLAS_UPPER = 1 };
enum { CUBLAS_LEFT = 0, CUBLAS_RIGHT = 1 };
enum { CUBLAS_NON_UNIT = 0, CUBLAS_UNIT = 1 };
enum { CUBLAS_N = 0, CUBLAS_T = 1, CUBLAS_C = 2 };

/* The functions for one dtype. Each returns a status, 0 for success; info and pivots are on the device. */
struct cusolver_of {
	int (*getrf_size)(void *handle, int m, int n, void *a, int lda, int *lwork);
	int (*getrf)(void *handle, int m, int n, void *a, int lda, void *work, int *pivots,
		     int *info);
	int (*getrs)(void *handle, int trans, int n, int columns, const void *a, int lda,
		     const int *pivots, void *b, int ldb, int *info);
	int (*potrf_size)(void *handle, int uplo, int n, void *a, int lda, int *lwork);
	int (*potrf)(void *handle, int uplo, int n, void *a, int lda, void *work, int lwork,
		     int *info);
	int (*potrf_batched)(void *handle, int uplo, int n, void **a, int lda, int *info,
			     int count);
	int (*potrs)(void *handle, int uplo, int n, int columns, const void *a, int lda, void *b,
		     int ldb, int *info);
	int (*geqrf_size)(void *handle, int m, int n, void *a, int lda, int *lwork);
	int (*geqrf)(void *handle, int m, int n, void *a, int lda, void *tau, void *work, int lwork,
		     int *info);
	int (*orgqr_size)(void *handle, int m, int n, int k, const void *a, int lda,
			  const void *tau, int *lwork);
	int (*orgqr)(void *handle, int m, int n, int k, void *a, int lda, const void *tau,
		     void *work, int lwork, int *info);
	int (*syevd_size)(void *handle, int jobz, int uplo, int n, const void *a, int lda,
			  const void *w, int *lwork);
	int (*syevd)(void *handle, int jobz, int uplo, int n, void *a, int lda, void *w, void *work,
		     int lwork, int *info);
	int (*gesvd_size)(void *handle, int m, int n, int *lwork);
	int (*gesvd)(void *handle, signed char jobu, signed char jobvt, int m, int n, void *a,
		     int lda, void *s, void *u, int ldu, void *vt, int ldvt, void *work, int lwork,
		     void *rwork, int *info);
	/* econ: 1 for the first min(m, n) columns of u and v alone. v is not its adjoint. */
	int (*gesvdj_size)(void *handle, int jobz, int econ, int m, int n, const void *a, int lda,
			   const void *s, const void *u, int ldu, const void *v, int ldv,
			   int *lwork, void *params);
	int (*gesvdj)(void *handle, int jobz, int econ, int m, int n, void *a, int lda, void *s,
		      void *u, int ldu, void *v, int ldv, void *work, int lwork, int *info,
		      void *params);
	int (*gesvda_size)(void *handle, int jobz, int rank, int m, int n, const void *a, int lda,
			   long long a_step, const void *s, long long s_step, const void *u,
			   int ldu, long long u_step, const void *v, int ldv, long long v_step,
			   int *lwork, int count);
	int (*gesvda)(void *handle, int jobz, int rank, int m, int n, const void *a, int lda,
		      long long a_step, void *s, long long s_step, void *u, int ldu,
		      long long u_step, void *v, int ldv, long long v_step, void *work, int lwork,
		      int *info, double *residuals, int count);
	/* Of cuBLAS. info of getrs_batched is on the host. */
	int (*getrf_batched)(void *handle, int n, void *const *a, int lda, int *pivots, int *info,
			     int count);
	int (*getrs_batched)(void *handle, int trans, int n, int columns, const void *const *a,
			     int lda, const int *pivots, void *const *b, int ldb, int *info,
			     int count);
	int (*trsm)(void *handle, int side, int uplo, int trans, int diag, int m, int n,
		    const void *alpha, const void *a, int lda, void *b, int ldb);
	int (*trsm_batched)(void *handle, int side, int uplo, int trans, int diag, int m, int n,
			    const void *alpha, const void *const *a, int lda, void *const *b,
			    int ldb, int count);
};

struct cusolver {
	int (*create)(void **handle);
	int (*set_stream)(void *handle, cudaStream_t stream);
	int (*blas_create)(void **handle);
	int (*blas_set_stream)(void *handle, cudaStream_t stream);
	int (*create_gesvdj)(void **params);
	int (*destroy_gesvdj)(void *params);
	struct cusolver_of of[4]; /* f32, f64, c64, c128 */
};

/* ---- a call ---- */

/* A call of a kernel with the functions of its dtype, the handles of its device and a workspace. */
struct solver {
	struct cuda_call c;
	const struct cusolver *library;
	const struct cusolver_of *of;
	void *dense, *blas; /* handles of cuSOLVER and cuBLAS */
	void *work;
	int lwork;    /* elements of work */
	int *ignored; /* an info for functions that can only report wrong arguments */
};

/*
 * Locks the handles and sets their stream; t are the n tensors of the call, the first of them gives device and dtype. Fails
 * with the error of a missing kernel, after which the operator runs on the CPU, if there is no cuSOLVER.
 */
int cuda_solver_begin(struct solver *s, const char *op, const tensor *const *t, int n);
/* Frees the workspace; returns err. */
int cuda_solver_end(struct solver *s, int err);
/* Allocates s->lwork elements of `dtype`, and s->ignored. */
int cuda_solver_work(struct solver *s, enum tensor_dtype dtype);
/* Translates a status of cuSOLVER, or of cuBLAS, to 0 or -errno with the error set. */
int cuda_solver_check(const struct solver *s, int status);
int cuda_solver_check_blas(const struct solver *s, int status);
/* Sets *m and *n; EINVAL for matrices whose sizes cuSOLVER cannot take. */
int cuda_solver_dims(const char *op, const tensor *a, int *m, int *n);

/* The number of matrices. */
static inline int64_t cuda_matrices(const tensor *a)
{
	return a->numel / (a->sizes[a->ndim - 1] * a->sizes[a->ndim - 2]);
}

/* Matrix i of a, and vector i of a contiguous v [.., n]. */
static inline void *cuda_matrix(const tensor *a, int64_t i)
{
	return (char *)a->data + i * a->sizes[a->ndim - 1] * a->sizes[a->ndim - 2] *
					 (int64_t)tensor_itemsize(a->dtype);
}
static inline void *cuda_vector(const tensor *v, int64_t i)
{
	return (char *)v->data + i * v->sizes[v->ndim - 1] * (int64_t)tensor_itemsize(v->dtype);
}

#endif
