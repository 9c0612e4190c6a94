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
