// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Singular values by divide and conquer. */
#include "kernels/lapack/lapack.h"

typedef void (*gesdd_real)(const char *jobz, const int *m, const int *n, void *a, const int *lda,
			   void *s, void *u, const int *ldu, void *vt, const int *ldvt, void *work,
			   const int *lwork, int *iwork, int *info, size_t jobz_len);
typedef void (*gesdd_complex)(const char *jobz, const int *m, const int *n, void *a, const int *lda,
			      void *s, void *u, const int *ldu, void *vt, const int *ldvt,
			      void *work, const int *lwork, void *rwork, int *iwork, int *info,
			      size_t jobz_len);

struct job {
	void *fn;
	tensor *a, *u, *s, *vh, *info;
	int m, n, ldvt, lwork;
	int64_t nreals; /* size of the real workspace, for complex matrices */
	char jobz;
};

static void svd_one(const void *job, int64_t i, char *work)
{
	const struct job *j = job;
	char *u = j->u ? lapack_matrix(j->u, i) : NULL,
	     *vt = j->vh ? lapack_matrix(j->vh, i) : NULL;
	char *a = lapack_matrix(j->a, i), *s = lapack_vector(j->s, i);
	char *reals = lapack_after(work, j->lwork, j->a->dtype);
	int *integers = (int *)lapack_after(reals, j->nreals, j->s->dtype);
	int *info = (int *)j->info->data + i;

	if (dtype_is_complex(j->a->dtype))
		((gesdd_complex)j->fn)(&j->jobz, &j->m, &j->n, a, &j->m, s, u, &j->m, vt, &j->ldvt,
				       work, &j->lwork, reals, integers, info, 1);
	else
		((gesdd_real)j->fn)(&j->jobz, &j->m, &j->n, a, &j->m, s, u, &j->m, vt, &j->ldvt,
				    work, &j->lwork, integers, info, 1);
}

/* The size of the real workspace of CGESDD and ZGESDD, from their documentation. */
static int64_t reals_of(const struct job *j)
{
	int64_t least = j->m < j->n ? j->m : j->n, most = j->m < j->n ? j->n : j->m, a, b;

	if (j->jobz == 'N')
		return 7 * least;
	a = 5 * least * least + 5 * least;
	b = 2 * most * least + 2 * least * least + least;
	return a > b ? a : b;
}

static int cpu__linalg_svd(tensor *u, tensor *s, tensor *vh, tensor *a, tensor *info,
			   enum svd_driver driver)
{
	_Alignas(64) char answer[3 * LAPACK_ANSWER] = { 0 };
	struct job j = { .a = a,
			 .u = u,
			 .s = s,
			 .vh = vh,
			 .info = info,
			 .lwork = -1,
			 .nreals = -1,
			 .ldvt = 1,
			 .jobz = 'N' };
	struct lapack_batch batch = { .one = svd_one, .job = &j };
	int64_t least;

	j.fn = lapack_function("linalg_svd", LAPACK_GESDD, a->dtype);
	if (!j.fn || lapack_dims("linalg_svd", a, &j.m, &j.n) < 0)
		return -thread()->error.code;
	least = j.m < j.n ? j.m : j.n;
	if (u) {
		j.jobz = u->sizes[u->ndim - 1] == j.m && vh->sizes[vh->ndim - 2] == j.n ? 'A' : 'S';
		j.ldvt = (int)vh->sizes[vh->ndim - 2];
	}
	svd_one(&j, 0, answer);
	j.nreals = dtype_is_complex(a->dtype) ? reals_of(&j) : 0;
	j.lwork = lapack_answer(answer, a->dtype);
	batch.count = lapack_count(a);
	batch.flops = 4.0 * j.m * j.n * (double)least;
	batch.work_bytes = lapack_bytes(j.lwork, a->dtype) + lapack_bytes(j.nreals, s->dtype) +
			   8 * (size_t)least * sizeof(int);
	return lapack_run("linalg_svd", &batch);
}

LAPACK_KERNELS(KERNEL(_linalg_svd))
