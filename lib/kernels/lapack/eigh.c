// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Eigenvalues of symmetric and Hermitian matrices by divide and conquer. */
#include "kernels/lapack/lapack.h"

#include <stdatomic.h>

typedef void (*syevd)(const char *jobz, const char *uplo, const int *n, void *a, const int *lda,
		      void *w, void *work, const int *lwork, int *iwork, const int *liwork,
		      int *info, size_t jobz_len, size_t uplo_len);
typedef void (*heevd)(const char *jobz, const char *uplo, const int *n, void *a, const int *lda,
		      void *w, void *work, const int *lwork, void *rwork, const int *lrwork,
		      int *iwork, const int *liwork, int *info, size_t jobz_len, size_t uplo_len);

struct job {
	void *fn;
	tensor *a, *values;
	int n;
	char jobz, uplo;
	int size[3]; /* of the workspaces: elements, real numbers, integers */
	atomic_int *info;
};

/*
 * work[] has the workspaces. With sizes of -1, writes the required size to the first element of
 * each.
 */
static int solve(const struct job *j, char *a, char *w, char *const work[3])
{
	int info = 0;

	if (dtype_is_complex(j->a->dtype))
		((heevd)j->fn)(&j->jobz, &j->uplo, &j->n, a, &j->n, w, work[0], &j->size[0],
			       work[1], &j->size[1], (int *)work[2], &j->size[2], &info, 1, 1);
	else
		((syevd)j->fn)(&j->jobz, &j->uplo, &j->n, a, &j->n, w, work[0], &j->size[0],
			       (int *)work[2], &j->size[2], &info, 1, 1);
	return info;
}

static void solve_one(const void *job, int64_t i, char *work)
{
	const struct job *j = job;
	char *reals = work + lapack_bytes(j->size[0], j->a->dtype);
	char *const parts[] = { work, reals, reals + lapack_bytes(j->size[1], j->values->dtype) };
	int info = solve(j, lapack_matrix(j->a, i), lapack_vector(j->values, i), parts);

	if (info)
		atomic_store(j->info, info);
}

static int cpu__linalg_eigh(tensor *values, tensor *a, bool upper, bool vectors)
{
	_Alignas(64) char answer[3][LAPACK_ANSWER] = { { 0 } };
	char *const answers[] = { answer[0], answer[1], answer[2] };
	atomic_int info = 0;
	struct job j = { .a = a,
			 .values = values,
			 .jobz = vectors ? 'V' : 'N',
			 .uplo = upper ? 'U' : 'L',
			 .size = { -1, -1, -1 },
			 .info = &info };
	struct lapack_batch batch = { .one = solve_one, .job = &j };
	int err;

	if (!a->numel)
		return 0;
	j.fn = lapack_function("linalg_eigh", LAPACK_SYEVD, a->dtype);
	if (!j.fn || lapack_dims("linalg_eigh", a, &j.n, &j.n) < 0)
		return -thread()->error.code;
	solve(&j, a->data, values->data, answers);
	j.size[0] = lapack_answer(answer[0], a->dtype);
	j.size[1] = lapack_answer(answer[1], a->dtype);
	j.size[2] = *(int *)answer[2];
	batch.count = lapack_count(a);
	batch.flops = (double)j.n * j.n * j.n;
	batch.work_bytes = lapack_bytes(j.size[0], a->dtype) +
			   lapack_bytes(j.size[1], values->dtype) + j.size[2] * sizeof(int);
	err = lapack_run("linalg_eigh", &batch);
	if (!err && atomic_load(&info))
		return tensor_fail(EDOM,
				   "linalg_eigh: a matrix did not converge (LAPACK's info "
				   "%d): are there NaN in it?",
				   atomic_load(&info));
	return err;
}

LAPACK_KERNELS(KERNEL(_linalg_eigh))
