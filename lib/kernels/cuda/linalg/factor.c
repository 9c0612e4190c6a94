// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * LU and Cholesky factorization, and solutions of systems, by cuSOLVER and cuBLAS. The matrices of a batch are computed
 * one after another, or together if they are small.
 */
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch_linalg.h"
#include "kernels/cuda/linalg/cusolver.h"

#define TOGETHER_MOST 256 /* rows of matrices that are computed together */

static bool together(const tensor *a)
{
	const int64_t count = cuda_matrices(a);

	return count > 1 && count <= INT32_MAX && a->sizes[a->ndim - 2] <= TOGETHER_MOST &&
	       a->sizes[a->ndim - 1] <= TOGETHER_MOST;
}

/* Pointers to the matrices of a, and of b unless it is NULL, on the device; a's are *data. */
static int pointers_of(const struct solver *s, const tensor *a, const tensor *b, void ***data)
{
	const int64_t n = cuda_matrices(a);
	int err = cuda_scratch(&s->c, (size_t)n * (b ? 2 : 1) * sizeof(void *), (void **)data);

	if (!err)
		err = cuda_check(s->c.op,
				 cuda_launch_pointers(*data, a->data,
						      (char *)cuda_matrix(a, 1) - (char *)a->data,
						      n, s->c.stream));
	if (!err && b)
		err = cuda_check(s->c.op,
				 cuda_launch_pointers(*data + n, b->data,
						      (char *)cuda_matrix(b, 1) - (char *)b->data,
						      n, s->c.stream));
	if (err)
		cuda_scratch_free(&s->c, *data);
	return err;
}

/* ---- LU ---- */

static int lu_factor_each(struct solver *s, tensor *a, tensor *pivots, tensor *info, int m, int n)
{
	int err = cuda_solver_check(s, s->of->getrf_size(s->dense, m, n, a->data, m, &s->lwork));

	if (!err)
		err = cuda_solver_work(s, a->dtype);
	for (int64_t i = 0; i < cuda_matrices(a) && !err; i++)
		err = cuda_solver_check(s, s->of->getrf(s->dense, m, n, cuda_matrix(a, i), m,
							s->work, cuda_vector(pivots, i),
							(int *)info->data + i));
	return err;
}

static int lu_factor_together(struct solver *s, tensor *a, tensor *pivots, tensor *info, int n)
{
	void **at;
	int err = pointers_of(s, a, NULL, &at);

	if (err)
		return err;
	err = cuda_solver_check_blas(s, s->of->getrf_batched(s->blas, n, at, n, pivots->data,
							     info->data, (int)cuda_matrices(a)));
	cuda_scratch_free(&s->c, at);
	return err;
}

int cuda_linalg_lu_factor(tensor *a, tensor *pivots, tensor *info)
{
	struct solver s;
	int m, n, err = cuda_solver_dims("linalg_lu_factor", a, &m, &n);

	if (!err)
		err = cuda_solver_begin(&s, "linalg_lu_factor",
					(const tensor *const[]){ a, pivots, info }, 3);
	if (err)
		return err;
	err = m == n && together(a) ? lu_factor_together(&s, a, pivots, info, n) :
				      lu_factor_each(&s, a, pivots, info, m, n);
	return cuda_solver_end(&s, err);
}

static int lu_solve_together(struct solver *s, tensor *lu, tensor *pivots, tensor *b, int n,
			     int columns, int trans)
{
	const int64_t count = cuda_matrices(lu);
	int wrong = 0, err;
	void **at;

	err = pointers_of(s, lu, b, &at);
	if (err)
		return err;
	err = cuda_solver_check_blas(
		s, s->of->getrs_batched(s->blas, trans, n, columns, (const void *const *)at, n,
					pivots->data, at + count, n, &wrong, (int)count));
	if (!err && wrong)
		err = tensor_fail(EIO, "%s: cuBLAS: argument %d is wrong", s->c.op, -wrong);
	cuda_scratch_free(&s->c, at);
	return err;
}

int cuda_linalg_lu_solve(tensor *lu, tensor *pivots, tensor *b, char trans)
{
	const char *op = "linalg_lu_solve";
	const int how = trans == 'C' ? CUBLAS_C : trans == 'T' ? CUBLAS_T : CUBLAS_N;
	struct solver s;
	int n, columns, err = cuda_solver_dims(op, lu, &n, &n);

	if (!err)
		err = cuda_solver_dims(op, b, &n, &columns);
	if (!err)
		err = cuda_solver_begin(&s, op, (const tensor *const[]){ lu, pivots, b }, 3);
	if (err)
		return err;
	if (together(lu))
		return cuda_solver_end(&s, lu_solve_together(&s, lu, pivots, b, n, columns, how));
	err = cuda_solver_work(&s, lu->dtype);
	for (int64_t i = 0; i < cuda_matrices(lu) && !err; i++)
		err = cuda_solver_check(
			&s, s.of->getrs(s.dense, how, n, columns, cuda_matrix(lu, i), n,
					cuda_vector(pivots, i), cuda_matrix(b, i), n, s.ignored));
	return cuda_solver_end(&s, err);
}

/* ---- triangular ---- */

struct system {
	int side, uplo, trans, diag;
};

static const void *one_of(enum tensor_dtype dtype)
{
	static const float one_f32[2] = { 1, 0 };
	static const double one_f64[2] = { 1, 0 };

	return dtype == TENSOR_F64 || dtype == TENSOR_C128 ? (const void *)one_f64 :
							     (const void *)one_f32;
}

/* at: pointers to all matrices of a and of b, or NULL. */
static int solve_triangles(struct solver *s, const tensor *a, tensor *b, const struct system *how,
			   void **at)
{
	const int n = (int)a->sizes[a->ndim - 1], rows = (int)b->sizes[b->ndim - 2],
		  columns = (int)b->sizes[b->ndim - 1];
	const void *one = one_of((enum tensor_dtype)a->dtype);
	const int64_t count = cuda_matrices(a);
	int err = 0;

	if (at)
		return cuda_solver_check_blas(
			s, s->of->trsm_batched(s->blas, how->side, how->uplo, how->trans, how->diag,
					       rows, columns, one, (const void *const *)at, n,
					       at + count, rows, (int)count));
	for (int64_t i = 0; i < count && !err; i++)
		err = cuda_solver_check_blas(s, s->of->trsm(s->blas, how->side, how->uplo,
							    how->trans, how->diag, rows, columns,
							    one, cuda_matrix(a, i), n,
							    cuda_matrix(b, i), rows));
	return err;
}

int cuda_linalg_solve_triangular(tensor *a, tensor *b, const struct triangle *how)
{
	const char *op = "linalg_solve_triangular";
	const struct system system = { how->left ? CUBLAS_LEFT : CUBLAS_RIGHT,
				       how->upper ? CUBLAS_UPPER : CUBLAS_LOWER, CUBLAS_N,
				       how->unit ? CUBLAS_UNIT : CUBLAS_NON_UNIT };
	struct solver s;
	void **at = NULL;
	int n, rows, columns, err = cuda_solver_dims(op, a, &n, &n);

	if (!err)
		err = cuda_solver_dims(op, b, &rows, &columns);
	if (!err)
		err = cuda_solver_begin(&s, op, (const tensor *const[]){ a, b }, 2);
	if (err)
		return err;
	if (together(a))
		err = pointers_of(&s, a, b, &at);
	if (!err) {
		err = solve_triangles(&s, a, b, &system, at);
		cuda_scratch_free(&s.c, at);
	}
	return cuda_solver_end(&s, err);
}

/* ---- Cholesky ---- */

static int cholesky_each(struct solver *s, tensor *a, int uplo, tensor *info, int n)
{
	int err = cuda_solver_check(s, s->of->potrf_size(s->dense, uplo, n, a->data, n, &s->lwork));

	if (!err)
		err = cuda_solver_work(s, a->dtype);
	for (int64_t i = 0; i < cuda_matrices(a) && !err; i++)
		err = cuda_solver_check(s, s->of->potrf(s->dense, uplo, n, cuda_matrix(a, i), n,
							s->work, s->lwork, (int *)info->data + i));
	return err;
}

static int cholesky_together(struct solver *s, tensor *a, int uplo, tensor *info, int n)
{
	void **at;
	int err = pointers_of(s, a, NULL, &at);

	if (err)
		return err;
	err = cuda_solver_check(s, s->of->potrf_batched(s->dense, uplo, n, at, n, info->data,
							(int)cuda_matrices(a)));
	cuda_scratch_free(&s->c, at);
	return err;
}

int cuda_linalg_cholesky(tensor *a, bool upper, tensor *info)
{
	const int uplo = upper ? CUBLAS_UPPER : CUBLAS_LOWER;
	struct solver s;
	int n, err = cuda_solver_dims("linalg_cholesky", a, &n, &n);

	if (!err)
		err = cuda_solver_begin(&s, "linalg_cholesky", (const tensor *const[]){ a, info },
					2);
	if (err)
		return err;
	err = together(a) ? cholesky_together(&s, a, uplo, info, n) :
			    cholesky_each(&s, a, uplo, info, n);
	return cuda_solver_end(&s, err);
}

/* Of small matrices as two systems, because potrsBatched of cuSOLVER takes one column only. */
static int cholesky_solve_together(struct solver *s, tensor *factor, tensor *b, bool upper)
{
	const int uplo = upper ? CUBLAS_UPPER : CUBLAS_LOWER;
	const struct system first = { CUBLAS_LEFT, uplo, upper ? CUBLAS_C : CUBLAS_N,
				      CUBLAS_NON_UNIT };
	const struct system then = { CUBLAS_LEFT, uplo, upper ? CUBLAS_N : CUBLAS_C,
				     CUBLAS_NON_UNIT };
	void **at;
	int err = pointers_of(s, factor, b, &at);

	if (err)
		return err;
	err = solve_triangles(s, factor, b, &first, at);
	if (!err)
		err = solve_triangles(s, factor, b, &then, at);
	cuda_scratch_free(&s->c, at);
	return err;
}

int cuda_cholesky_solve(tensor *factor, tensor *b, bool upper)
{
	const char *op = "cholesky_solve";
	const int uplo = upper ? CUBLAS_UPPER : CUBLAS_LOWER;
	struct solver s;
	int n, columns, err = cuda_solver_dims(op, factor, &n, &n);

	if (!err)
		err = cuda_solver_dims(op, b, &n, &columns);
	if (!err)
		err = cuda_solver_begin(&s, op, (const tensor *const[]){ factor, b }, 2);
	if (err)
		return err;
	if (together(factor))
		return cuda_solver_end(&s, cholesky_solve_together(&s, factor, b, upper));
	err = cuda_solver_work(&s, factor->dtype);
	for (int64_t i = 0; i < cuda_matrices(factor) && !err; i++)
		err = cuda_solver_check(&s, s.of->potrs(s.dense, uplo, n, columns,
							cuda_matrix(factor, i), n,
							cuda_matrix(b, i), n, s.ignored));
	return cuda_solver_end(&s, err);
}
