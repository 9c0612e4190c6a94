// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* QR factorization into reflectors and a triangle, and the product of reflectors. */
#include "kernels/lapack/lapack.h"

typedef void (*geqrf)(const int *m, const int *n, void *a, const int *lda, void *tau, void *work,
		      const int *lwork, int *info);
typedef void (*orgqr)(const int *m, const int *n, const int *k, void *a, const int *lda,
		      const void *tau, void *work, const int *lwork, int *info);

struct job {
	void *fn;
	tensor *a, *tau;
	int m, n, k, lwork;
};

static void factor_one(const void *job, int64_t i, char *work)
{
	const struct job *j = job;
	int info;

	((geqrf)j->fn)(&j->m, &j->n, lapack_matrix(j->a, i), &j->m, lapack_vector(j->tau, i), work,
		       &j->lwork, &info);
}

static void product_one(const void *job, int64_t i, char *work)
{
	const struct job *j = job;
	int info;

	((orgqr)j->fn)(&j->m, &j->n, &j->k, lapack_matrix(j->a, i), &j->m, lapack_vector(j->tau, i),
		       work, &j->lwork, &info);
}

static int compute_batch(const char *op, enum lapack_routine routine, tensor *a, tensor *tau,
			 void (*one)(const void *, int64_t, char *))
{
	_Alignas(64) char answer[LAPACK_ANSWER] = { 0 };
	struct job j = { .a = a, .tau = tau, .k = (int)tau->sizes[tau->ndim - 1], .lwork = -1 };
	struct lapack_batch batch = { .one = one, .job = &j };

	j.fn = lapack_function(op, routine, a->dtype);
	if (!j.fn || lapack_dims(op, a, &j.m, &j.n) < 0)
		return -thread()->error.code;
	one(&j, 0, answer);
	j.lwork = lapack_answer(answer, a->dtype);
	batch.count = lapack_count(a);
	batch.flops = 2.0 * j.m * j.n * j.k;
	batch.work_bytes = lapack_bytes(j.lwork, a->dtype);
	return lapack_run(op, &batch);
}

static int cpu_geqrf(tensor *a, tensor *tau)
{
	return compute_batch("geqrf", LAPACK_GEQRF, a, tau, factor_one);
}

static int cpu_linalg_householder_product(tensor *a, tensor *tau)
{
	return compute_batch("linalg_householder_product", LAPACK_ORGQR, a, tau, product_one);
}

LAPACK_KERNELS(KERNEL(geqrf), KERNEL(linalg_householder_product))
