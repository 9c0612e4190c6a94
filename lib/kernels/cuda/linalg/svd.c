// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Singular values by cuSOLVER: gesvd, by QR, and gesvdj, by Jacobi rotations, one matrix after another; gesvda, approximate,
 * all together. The last two give V, whose adjoint is the result.
 */
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/linalg/cusolver.h"

/* The operands of all matrices; u and vt are NULL without vectors. */
struct svd {
	enum svd_driver driver;
	char job;
	int m, n; /* m >= n */
	int64_t count;
	enum tensor_dtype dtype, real;
	char *a, *s, *u, *vt;
	int ldvt, u_columns;
	int *info;
};

static int by_gesvd(struct solver *s, const struct svd *v)
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

/* Conjugates n complex numbers. */
static int conjugate(const struct solver *s, enum tensor_dtype dtype, void *data, int64_t n)
{
	const int64_t size = (int64_t)tensor_itemsize(dtype);
	struct cuda_pointwise p = { .data = { data, data }, .itemsize = { size, size } };

	cuda_dims_init(&p.dims);
	cuda_dims_add(&p.dims, 2, n, (const int64_t[]){ size, size });
	cuda_dims_done(&p.dims, 2);
	return cuda_launched(
		&s->c, cuda_launch_parts(cuda_launch_conj_physical, &p, 2, (int)dtype, s->c.stream),
		dtype);
}

/* The adjoints of the matrices [n, n] at `from`. */
static int adjoints(const struct solver *s, const struct svd *v, void *from)
{
	int err = transpose(s, v->dtype, v->vt, from, v->n, v->n, v->count);

	return err || v->dtype == v->real ? err :
					    conjugate(s, v->dtype, v->vt, v->count * v->n * v->n);
}

/* Where a driver that gives V writes its vectors: it needs memory for them even if they are not wanted. */
struct vectors {
	char *u, *v;
	void *scratch;
};

static int make_vectors(const struct solver *s, const struct svd *v, struct vectors *to)
{
	const size_t item = tensor_itemsize(v->dtype), count = (size_t)v->count;
	const size_t u = v->u ? 0 : count * (size_t)v->m * (size_t)v->n * item;
	const int err =
		cuda_scratch(&s->c, u + count * (size_t)v->n * (size_t)v->n * item, &to->scratch);

	to->u = v->u ? v->u : to->scratch;
	to->v = (char *)to->scratch + u;
	return err;
}

static int by_gesvdj(struct solver *s, const struct svd *v)
{
	const int64_t item = (int64_t)tensor_itemsize(v->dtype);
	const int jobz = v->u != NULL, econ = v->job != 'A', columns = v->u ? v->u_columns : v->n;
	struct vectors to = { NULL };
	void *params = NULL;
	int err = make_vectors(s, v, &to);

	if (!err)
		err = cuda_solver_check(s, s->library->create_gesvdj(&params));
	if (!err)
		err = cuda_solver_check(s, s->of->gesvdj_size(s->dense, jobz, econ, v->m, v->n,
							      v->a, v->m, v->s, to.u, v->m, to.v,
							      v->n, &s->lwork, params));
	if (!err)
		err = cuda_solver_work(s, v->dtype);
	for (int64_t i = 0; i < v->count && !err; i++)
		err = cuda_solver_check(
			s, s->of->gesvdj(s->dense, jobz, econ, v->m, v->n,
					 v->a + i * v->m * v->n * item, v->m,
					 v->s + i * v->n * (int64_t)tensor_itemsize(v->real),
					 to.u + i * v->m * columns * item, v->m,
					 to.v + i * v->n * v->n * item, v->n, s->work, s->lwork,
					 v->info + i, params));
	if (params)
		s->library->destroy_gesvdj(params);
	if (!err && v->u)
		err = adjoints(s, v, to.v);
	cuda_scratch_free(&s->c, to.scratch);
	return err;
}

/* Without residuals, for which the host would wait. */
static int by_gesvda(struct solver *s, const struct svd *v)
{
	const int jobz = v->u != NULL, m = v->m, n = v->n;
	const long long step = (long long)m * n, square = (long long)n * n;
	struct vectors to = { NULL };
	int err = make_vectors(s, v, &to);

	if (!err && v->count > INT32_MAX)
		err = tensor_fail(EINVAL, "%s: %lld matrices are too many for gesvda", s->c.op,
				  (long long)v->count);
	if (!err)
		err = cuda_solver_check(s, s->of->gesvda_size(s->dense, jobz, n, m, n, v->a, m,
							      step, v->s, n, to.u, m, step, to.v, n,
							      square, &s->lwork, (int)v->count));
	if (!err)
		err = cuda_solver_work(s, v->dtype);
	if (!err)
		err = cuda_solver_check(s,
					s->of->gesvda(s->dense, jobz, n, m, n, v->a, m, step, v->s,
						      n, to.u, m, step, to.v, n, square, s->work,
						      s->lwork, v->info, NULL, (int)v->count));
	if (!err && v->u)
		err = adjoints(s, v, to.v);
	cuda_scratch_free(&s->c, to.scratch);
	return err;
}

static int svd_each(struct solver *s, const struct svd *v)
{
	switch (v->driver) {
	case SVD_GESVDJ:
		return by_gesvdj(s, v);
	case SVD_GESVDA:
		return by_gesvda(s, v);
	default:
		return by_gesvd(s, v);
	}
}

/*
 * Two of the drivers take matrices with at least as many rows as columns. If a^T = x s y, then a = y^T s x^T: u is the transpose of y
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

int cuda__linalg_svd(tensor *u, tensor *s, tensor *vh, tensor *a, tensor *info,
		     enum svd_driver driver)
{
	struct solver solver;
	struct svd v = { .driver = driver,
			 .job = 'N',
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
