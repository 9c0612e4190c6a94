// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Eigenvalues of symmetric and Hermitian matrices, and singular values, by cuSOLVER, one matrix after another. */
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/linalg/cusolver.h"

#include <stdlib.h>

/* ---- eigenvalues ---- */

/* Waits for the info of n matrices, because the kernel has no result for it. */
static int check_converged(const struct solver *s, const int *info, int64_t n)
{
	int *seen = malloc((size_t)n * sizeof(*seen)), err;

	if (!seen)
		return tensor_fail(ENOMEM, "%s: no memory", s->c.op);
	err = cuda_check(s->c.op, cudaMemcpyAsync(seen, info, (size_t)n * sizeof(*seen),
						  cudaMemcpyDeviceToHost, s->c.stream));
	if (!err)
		err = cuda_wait(&s->c);
	for (int64_t i = 0; i < n && !err; i++)
		if (seen[i])
			err = tensor_fail(EDOM,
					  "%s: matrix %lld did not converge (cuSOLVER's info %d)",
					  s->c.op, (long long)i, seen[i]);
	free(seen);
	return err;
}

static int eigh_each(struct solver *s, tensor *values, tensor *a, int uplo, int jobz, int n)
{
	const int64_t count = cuda_matrices(a);
	void *info = NULL;
	int err = cuda_solver_check(s, s->of->syevd_size(s->dense, jobz, uplo, n, a->data, n,
							 values->data, &s->lwork));

	if (!err)
		err = cuda_solver_work(s, (enum tensor_dtype)a->dtype);
	if (!err)
		err = cuda_scratch(&s->c, (size_t)count * sizeof(int), &info);
	for (int64_t i = 0; i < count && !err; i++)
		err = cuda_solver_check(s, s->of->syevd(s->dense, jobz, uplo, n, cuda_matrix(a, i),
							n, cuda_vector(values, i), s->work,
							s->lwork, (int *)info + i));
	if (!err)
		err = check_converged(s, info, count);
	cuda_scratch_free(&s->c, info);
	return err;
}

int cuda__linalg_eigh(tensor *values, tensor *a, bool upper, bool vectors)
{
	struct solver s;
	int n, err;

	if (!a->numel)
		return 0;
	err = cuda_solver_dims("linalg_eigh", a, &n, &n);
	if (!err)
		err = cuda_solver_begin(&s, "linalg_eigh", (const tensor *const[]){ a, values }, 2);
	if (err)
		return err;
	return cuda_solver_end(&s, eigh_each(&s, values, a, upper ? CUBLAS_UPPER : CUBLAS_LOWER,
					     vectors, n));
}

/* ---- singular values ---- */

/* The operands of all matrices; u and vt are NULL without vectors. */
struct svd {
	char job;
	int m, n; /* m >= n */
	int64_t count;
	enum tensor_dtype dtype, real;
	char *a, *s, *u, *vt;
	int ldvt, u_columns;
	int *info;
};

static int svd_each(struct solver *s, const struct svd *v)
{
	const int64_t item = (int64_t)tensor_itemsize(v->dtype);
	void *reals = NULL;
	int err = cuda_solver_check(s, s->of->gesvd_size(s->dense, v->m, v->n, &s->lwork));

	if (!err)
		err = cuda_solver_work(s, v->dtype);
	if (!err)
		err = cuda_scratch(&s->c, (size_t)v->n * tensor_itemsize(v->real), &reals);
	for (int64_t i = 0; i < v->count && !err; i++) {
		char *a = v->a + i * v->m * v->n * item;
		char *values = v->s + i * v->n * (int64_t)tensor_itemsize(v->real);
		char *u = v->u ? v->u + i * v->m * v->u_columns * item : NULL;
		char *vt = v->vt ? v->vt + i * v->ldvt * v->n * item : NULL;

		err = cuda_solver_check(s, s->of->gesvd(s->dense, v->job, v->job, v->m, v->n, a,
							v->m, values, u, v->m, vt, v->ldvt, s->work,
							s->lwork, reals, v->info + i));
	}
	cuda_scratch_free(&s->c, reals);
	return err;
}

/* Column-major [rows, columns] at `from` to their transposes at `to`. */
static int transpose(const struct solver *s, enum tensor_dtype dtype, void *to, void *from,
		     int64_t rows, int64_t columns, int64_t count)
{
	const int64_t item = (int64_t)tensor_itemsize(dtype), step = rows * columns * item;
	struct cuda_pointwise p = { .data = { to, from } };

	cuda_dims_init(&p.dims);
	cuda_dims_add(&p.dims, 2, columns, (const int64_t[]){ item, rows * item });
	cuda_dims_add(&p.dims, 2, rows, (const int64_t[]){ columns * item, item });
	cuda_dims_add(&p.dims, 2, count, (const int64_t[]){ step, step });
	return cuda_copy_within(&s->c, &p, dtype, dtype);
}

/*
 * cuSOLVER takes matrices with at least as many rows as columns. If a^T = x s y, then a = y^T s x^T: u is the transpose of y
 * and vh that of x.
 */
static int svd_of_transposes(struct solver *s, struct svd v, tensor *u, tensor *vh)
{
	const size_t item = tensor_itemsize(v.dtype), count = (size_t)v.count;
	const int64_t m = v.n, n = v.m; /* of a */
	void *a = NULL, *x = NULL, *y = NULL;
	int err = cuda_scratch(&s->c, count * (size_t)(m * n) * item, &a);

	if (!err)
		err = transpose(s, v.dtype, a, v.a, m, n, v.count);
	if (!err && u)
		err = cuda_scratch(&s->c, count * (size_t)(n * v.u_columns) * item, &x);
	if (!err && u)
		err = cuda_scratch(&s->c, count * (size_t)(m * v.ldvt) * item, &y);
	v.a = a;
	v.u = x;
	v.vt = y;
	if (!err)
		err = svd_each(s, &v);
	if (!err && u)
		err = transpose(s, v.dtype, vh->data, x, n, v.u_columns, v.count);
	if (!err && u)
		err = transpose(s, v.dtype, u->data, y, v.ldvt, m, v.count);
	cuda_scratch_free(&s->c, a);
	cuda_scratch_free(&s->c, x);
	cuda_scratch_free(&s->c, y);
	return err;
}

int cuda__linalg_svd(tensor *u, tensor *s, tensor *vh, tensor *a, tensor *info)
{
	struct solver solver;
	struct svd v = { .job = 'N',
			 .count = cuda_matrices(a),
			 .dtype = (enum tensor_dtype)a->dtype,
			 .real = (enum tensor_dtype)s->dtype,
			 .a = a->data,
			 .s = s->data,
			 .u = cuda_data(u),
			 .vt = cuda_data(vh),
			 .info = info->data };
	int m, n, err = cuda_solver_dims("linalg_svd", a, &m, &n);

	if (!err)
		err = cuda_solver_begin(&solver, "linalg_svd",
					(const tensor *const[]){ a, u, s, vh, info }, 5);
	if (err)
		return err;
	v.m = m < n ? n : m;
	v.n = m < n ? m : n;
	v.ldvt = v.n;
	if (u) {
		const bool full = u->sizes[u->ndim - 1] == m && vh->sizes[vh->ndim - 2] == n;

		v.job = full ? 'A' : 'S';
		v.u_columns = full ? v.m : v.n;
	}
	err = m < n ? svd_of_transposes(&solver, v, u, vh) : svd_each(&solver, &v);
	return cuda_solver_end(&solver, err);
}
