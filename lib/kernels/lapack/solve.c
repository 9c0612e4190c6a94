// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* LU and Cholesky factorization, and solutions of systems of equations. */
#include "kernels/lapack/lapack.h"

#include <complex.h>
#undef I

typedef void (*getrf)(const int *m, const int *n, void *a, const int *lda, int *pivots, int *info);
typedef void (*getrs)(const char *trans, const int *n, const int *columns, const void *a,
		      const int *lda, const int *pivots, void *b, const int *ldb, int *info,
		      size_t trans_len);
typedef void (*potrf)(const char *uplo, const int *n, void *a, const int *lda, int *info,
		      size_t uplo_len);
typedef void (*potrs)(const char *uplo, const int *n, const int *columns, const void *a,
		      const int *lda, void *b, const int *ldb, int *info, size_t uplo_len);
typedef void (*trsm)(const char *side, const char *uplo, const char *trans, const char *diag,
		     const int *m, const int *n, const void *alpha, const void *a, const int *lda,
		     void *b, const int *ldb, size_t side_len, size_t uplo_len, size_t trans_len,
		     size_t diag_len);

/* Arguments of a call: a is the matrix or its factors, b the right-hand sides. */
struct job {
	void *fn;
	tensor *a, *b, *pivots, *info;
	int m, n, columns;
	char side, uplo, trans, diag;
};

/* Sets the function and the sizes of j. */
static int prepare(struct job *j, const char *op, enum lapack_routine routine)
{
	int rows;

	j->fn = lapack_function(op, routine, j->a->dtype);
	if (!j->fn || lapack_dims(op, j->a, &j->m, &j->n) < 0 ||
	    (j->b && lapack_dims(op, j->b, &rows, &j->columns) < 0))
		return -thread()->error.code;
	return 0;
}

static int compute_batch(const char *op, const struct job *j,
			 void (*one)(const void *, int64_t, char *))
{
	struct lapack_batch batch = { .one = one,
				      .job = j,
				      .count = lapack_count(j->a),
				      .flops = (double)j->m * j->n * (j->b ? j->columns : j->n) };

	return lapack_run(op, &batch);
}

static int *info_of(const struct job *j, int64_t i)
{
	return (int *)j->info->data + i;
}

/* ---- LU ---- */

static void factor_one(const void *job, int64_t i, char *work)
{
	const struct job *j = job;

	((getrf)j->fn)(&j->m, &j->n, lapack_matrix(j->a, i), &j->m,
		       (int *)lapack_vector(j->pivots, i), info_of(j, i));
}

static int cpu_linalg_lu_factor(tensor *a, tensor *pivots, tensor *info)
{
	struct job j = { .a = a, .pivots = pivots, .info = info };
	int err = prepare(&j, "linalg_lu_factor", LAPACK_GETRF);

	return err ? err : compute_batch("linalg_lu_factor", &j, factor_one);
}

static void lu_solve_one(const void *job, int64_t i, char *work)
{
	const struct job *j = job;
	int info;

	((getrs)j->fn)(&j->trans, &j->n, &j->columns, lapack_matrix(j->a, i), &j->n,
		       (const int *)lapack_vector(j->pivots, i), lapack_matrix(j->b, i), &j->n,
		       &info, 1);
}

static int cpu_linalg_lu_solve(tensor *lu, tensor *pivots, tensor *b, char trans)
{
	struct job j = { .a = lu, .pivots = pivots, .b = b, .trans = trans };
	int err = prepare(&j, "linalg_lu_solve", LAPACK_GETRS);

	return err ? err : compute_batch("linalg_lu_solve", &j, lu_solve_one);
}

/* ---- Cholesky ---- */

static void cholesky_one(const void *job, int64_t i, char *work)
{
	const struct job *j = job;

	((potrf)j->fn)(&j->uplo, &j->n, lapack_matrix(j->a, i), &j->n, info_of(j, i), 1);
}

static int cpu_linalg_cholesky(tensor *a, bool upper, tensor *info)
{
	struct job j = { .a = a, .info = info, .uplo = upper ? 'U' : 'L' };
	int err = prepare(&j, "linalg_cholesky", LAPACK_POTRF);

	return err ? err : compute_batch("linalg_cholesky", &j, cholesky_one);
}

static void cholesky_solve_one(const void *job, int64_t i, char *work)
{
	const struct job *j = job;
	int info;

	((potrs)j->fn)(&j->uplo, &j->n, &j->columns, lapack_matrix(j->a, i), &j->n,
		       lapack_matrix(j->b, i), &j->n, &info, 1);
}

static int cpu_cholesky_solve(tensor *factor, tensor *b, bool upper)
{
	struct job j = { .a = factor, .b = b, .uplo = upper ? 'U' : 'L' };
	int err = prepare(&j, "cholesky_solve", LAPACK_POTRS);

	return err ? err : compute_batch("cholesky_solve", &j, cholesky_solve_one);
}

/* ---- triangular ---- */

static void triangular_one(const void *job, int64_t i, char *work)
{
	static const float one_f32 = 1;
	static const double one_f64 = 1;
	static const float complex one_c64 = 1;
	static const double complex one_c128 = 1;
	const struct job *j = job;
	const void *one = j->a->dtype == TENSOR_F32 ? (const void *)&one_f32 :
			  j->a->dtype == TENSOR_F64 ? (const void *)&one_f64 :
			  j->a->dtype == TENSOR_C64 ? (const void *)&one_c64 :
						      (const void *)&one_c128;
	int rows = (int)j->b->sizes[j->b->ndim - 2];

	((trsm)j->fn)(&j->side, &j->uplo, &j->trans, &j->diag, &rows, &j->columns, one,
		      lapack_matrix(j->a, i), &j->n, lapack_matrix(j->b, i), &rows, 1, 1, 1, 1);
}

static int cpu_linalg_solve_triangular(tensor *a, tensor *b, const struct triangle *how)
{
	struct job j = { .a = a,
			 .b = b,
			 .side = how->left ? 'L' : 'R',
			 .uplo = how->upper ? 'U' : 'L',
			 .trans = 'N',
			 .diag = how->unit ? 'U' : 'N' };
	int err = prepare(&j, "linalg_solve_triangular", LAPACK_TRSM);

	return err ? err : compute_batch("linalg_solve_triangular", &j, triangular_one);
}

LAPACK_KERNELS(KERNEL(linalg_lu_factor), KERNEL(linalg_lu_solve), KERNEL(linalg_cholesky),
	       KERNEL(cholesky_solve), KERNEL(linalg_solve_triangular))
