// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Eigenvalues and right eigenvectors of general square matrices; both are complex. */
#include "kernels/lapack/lapack.h"

typedef void (*geev_real)(const char *left, const char *right, const int *n, void *a,
			  const int *lda, void *re, void *im, void *vl, const int *ldvl, void *vr,
			  const int *ldvr, void *work, const int *lwork, int *info, size_t left_len,
			  size_t right_len);
typedef void (*geev_complex)(const char *left, const char *right, const int *n, void *a,
			     const int *lda, void *w, void *vl, const int *ldvl, void *vr,
			     const int *ldvr, void *work, const int *lwork, void *rwork, int *info,
			     size_t left_len, size_t right_len);

struct job {
	void *fn;
	tensor *a, *values, *vectors, *info;
	int n, lwork;
	char right;
};

static const int one = 1;

/*
 * work has the workspace, then the real parts, the imaginary parts and the vectors in LAPACK's
 * form.
 */
static void solve_real(const struct job *j, int64_t i, char *work)
{
	int64_t n = j->lwork < 0 ? -1 : j->n;
	char *re = lapack_after(work, j->lwork, j->a->dtype),
	     *im = lapack_after(re, n, j->a->dtype);
	char *v = lapack_after(im, n, j->a->dtype);

	((geev_real)j->fn)("N", &j->right, &j->n, lapack_matrix(j->a, i), &j->n, re, im, NULL, &one,
			   v, &j->n, work, &j->lwork, (int *)j->info->data + i, 1, 1);
}

/*
 * Joins real and imaginary parts. A pair of conjugate eigenvalues has conjugate vectors, of which
 * LAPACK stores the real part in the first column and the imaginary part in the second.
 */
#define JOIN(NAME, T)                                                                             \
	static void NAME(int64_t n, const T *re, const T *im, const T *v, T *values, T *vectors)  \
	{                                                                                         \
		for (int64_t c = 0; c < n; c++) {                                                 \
			bool pair = im[c] != 0, second = pair && im[c] < 0;                       \
			const T *x = v + (c - second) * n, *y = x + n;                            \
                                                                                                  \
			values[2 * c] = re[c];                                                    \
			values[2 * c + 1] = im[c];                                                \
			for (int64_t r = 0; vectors && r < n; r++) {                              \
				vectors[2 * (c * n + r)] = x[r];                                  \
				vectors[2 * (c * n + r) + 1] = !pair ? 0 : second ? -y[r] : y[r]; \
			}                                                                         \
		}                                                                                 \
	}

JOIN(join_f32, float)
JOIN(join_f64, double)

static void join(const struct job *j, int64_t i, const char *work)
{
	const char *re = work + lapack_bytes(j->lwork, j->a->dtype);
	const char *im = re + lapack_bytes(j->n, j->a->dtype),
		   *v = im + lapack_bytes(j->n, j->a->dtype);
	char *values = lapack_vector(j->values, i);
	char *vectors = j->vectors ? lapack_matrix(j->vectors, i) : NULL;

	if (j->a->dtype == TENSOR_F64)
		join_f64(j->n, (const double *)re, (const double *)im, (const double *)v,
			 (double *)values, (double *)vectors);
	else
		join_f32(j->n, (const float *)re, (const float *)im, (const float *)v,
			 (float *)values, (float *)vectors);
}

static void real_one(const void *job, int64_t i, char *work)
{
	const struct job *j = job;

	solve_real(j, i, work);
	if (!((const int *)j->info->data)[i])
		join(j, i, work);
}

static void complex_one(const void *job, int64_t i, char *work)
{
	const struct job *j = job;
	char *rwork = lapack_after(work, j->lwork, j->a->dtype);

	((geev_complex)j->fn)("N", &j->right, &j->n, lapack_matrix(j->a, i), &j->n,
			      lapack_vector(j->values, i), NULL, &one,
			      j->vectors ? lapack_matrix(j->vectors, i) : NULL, &j->n, work,
			      &j->lwork, rwork, (int *)j->info->data + i, 1, 1);
}

/* Bytes that solve_real() and complex_one() use after the workspace. */
static size_t extra_bytes(const struct job *j)
{
	enum tensor_dtype real = dtype_real(j->a->dtype);

	if (dtype_is_complex(j->a->dtype))
		return lapack_bytes(2 * (int64_t)j->n, real);
	return 2 * lapack_bytes(j->n, real) +
	       (j->vectors ? lapack_bytes((int64_t)j->n * j->n, real) : 0);
}

static int cpu_linalg_eig(tensor *values, tensor *vectors, tensor *a, tensor *info)
{
	_Alignas(64) char answer[4 * LAPACK_ANSWER] = { 0 };
	bool is_complex = dtype_is_complex(a->dtype);
	struct job j = { .a = a,
			 .values = values,
			 .vectors = vectors,
			 .info = info,
			 .lwork = -1,
			 .right = vectors ? 'V' : 'N' };
	struct lapack_batch batch = { .one = is_complex ? complex_one : real_one, .job = &j };

	j.fn = lapack_function("linalg_eig", LAPACK_GEEV, a->dtype);
	if (!j.fn || lapack_dims("linalg_eig", a, &j.n, &j.n) < 0)
		return -thread()->error.code;
	if (is_complex)
		complex_one(&j, 0, answer);
	else
		solve_real(&j, 0, answer);
	j.lwork = lapack_answer(answer, a->dtype);
	batch.count = lapack_count(a);
	batch.flops = 10.0 * j.n * j.n * j.n;
	batch.work_bytes = lapack_bytes(j.lwork, a->dtype) + extra_bytes(&j);
	return lapack_run("linalg_eig", &batch);
}

LAPACK_KERNELS(KERNEL(linalg_eig))
