// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Eigenvalues by LAPACK's divide and conquer (?syevd, ?heevd). The library is loaded when the
 * first matrix comes: who has none needs no LAPACK (docs/decisions/0008-lapack.md).
 */
#include "cpu.h"

#include "../eigh.h"
#include "../parallel.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

/* Fortran: every argument by address, lengths of texts at the end. */
typedef void (*syevd)(const char *jobz, const char *uplo, const int *n, void *a, const int *lda,
		      void *w, void *work, const int *lwork, int *iwork, const int *liwork,
		      int *info, size_t jobz_len, size_t uplo_len);
typedef void (*heevd)(const char *jobz, const char *uplo, const int *n, void *a, const int *lda,
		      void *w, void *work, const int *lwork, void *rwork, const int *lrwork,
		      int *iwork, const int *liwork, int *info, size_t jobz_len,
		      size_t uplo_len);

#define LIBRARY "liblapack.so.3"

static struct {
	pthread_once_t once;
	void *fn[TENSOR_DTYPE_COUNT];
	char error[128];
} lapack = {.once = PTHREAD_ONCE_INIT};

static void load_lapack(void)
{
	static const struct {
		enum tensor_dtype dtype;
		const char *name;
	} names[] = {{TENSOR_F32, "ssyevd_"},
		     {TENSOR_F64, "dsyevd_"},
		     {TENSOR_C64, "cheevd_"},
		     {TENSOR_C128, "zheevd_"}};
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	for (size_t i = 0; library && i < ARRAY_SIZE(names); i++) {
		lapack.fn[names[i].dtype] = dlsym(library, names[i].name);
		if (!lapack.fn[names[i].dtype])
			library = NULL;
	}
	if (!library) {
		const char *why = dlerror();

		snprintf(lapack.error, sizeof(lapack.error), "%s", why ? why : LIBRARY);
	}
}

struct job {
	enum tensor_dtype dtype;
	int n;
	char jobz, uplo;
	char *a, *w;
	atomic_int info, failed;
};

/* One matrix. work NULL: asks for the sizes of the three workspaces, in bytes and numbers. */
static int solve(const struct job *j, char *a, char *w, char *work[3], int size[3])
{
	void *fn = lapack.fn[j->dtype];
	int info = 0;

	if (dtype_is_complex(j->dtype))
		((heevd)fn)(&j->jobz, &j->uplo, &j->n, a, &j->n, w, work[0], &size[0], work[1],
			    &size[1], (int *)work[2], &size[2], &info, 1, 1);
	else
		((syevd)fn)(&j->jobz, &j->uplo, &j->n, a, &j->n, w, work[0], &size[0],
			    (int *)work[2], &size[2], &info, 1, 1);
	return info;
}

/* A size that was answered as an element. */
static int answered(const char *p, enum tensor_dtype real)
{
	return real == TENSOR_F64 ? (int)*(const double *)p : (int)*(const float *)p;
}

static void solve_some(int64_t begin, int64_t end, void *ctx)
{
	struct job *j = ctx;
	enum tensor_dtype real = dtype_real(j->dtype);
	int64_t matrix = (int64_t)j->n * j->n * dtype_sizes[j->dtype];
	int64_t values = (int64_t)j->n * dtype_sizes[real], bytes, first, second;
	_Alignas(16) char answer[3][16] = {{0}};
	char *work[3] = {answer[0], answer[1], answer[2]};
	int size[3] = {-1, -1, -1};
	tensor *block;

	solve(j, j->a, j->w, work, size);
	size[0] = answered(answer[0], real);
	size[1] = answered(answer[1], real);
	size[2] = *(int *)answer[2];
	first = ((int64_t)size[0] * dtype_sizes[j->dtype] + 63) & ~63;
	second = ((int64_t)size[1] * dtype_sizes[real] + 63) & ~63;
	bytes = first + second + (int64_t)size[2] * (int64_t)sizeof(int);
	block = tensor_new(TENSOR_DEVICE_CPU, TENSOR_U8, &bytes, 1);
	if (!block) {
		atomic_store(&j->failed, 1);
		return;
	}
	work[0] = block->data;
	work[1] = work[0] + first;
	work[2] = work[1] + second;
	for (int64_t i = begin; i < end; i++) {
		int info = solve(j, j->a + i * matrix, j->w + i * values, work, size);

		if (info)
			atomic_store(&j->info, info);
	}
	tensor_put(block);
}

static int cpu__linalg_eigh(tensor *values, tensor *a, bool upper, bool vectors)
{
	int64_t n = a->sizes[a->ndim - 1], grain;
	struct job j = {.dtype = a->dtype, .n = (int)n, .a = a->data, .w = values->data,
			.jobz = vectors ? 'V' : 'N', .uplo = upper ? 'U' : 'L'};

	if (!a->numel)
		return 0;
	if (n > INT32_MAX / 2)
		return tensor_fail(EINVAL, "linalg_eigh: matrices of %lld rows are too large",
				   (long long)n);
	pthread_once(&lapack.once, load_lapack);
	if (lapack.error[0])
		return tensor_fail(ENOSYS, "linalg_eigh: needs LAPACK, Debian's liblapack3: %s",
				   lapack.error);
	grain = ITER_GRAIN / (n * n * n);
	parallel_for(0, a->numel / (n * n), grain < 1 ? 1 : grain, solve_some, &j);
	if (atomic_load(&j.failed))
		return tensor_fail(ENOMEM, "linalg_eigh: no memory to work in");
	if (atomic_load(&j.info))
		return tensor_fail(EDOM, "linalg_eigh: a matrix did not converge (LAPACK's info "
					 "%d): are there NaN in it?", atomic_load(&j.info));
	return 0;
}

CPU_KERNELS(K(_linalg_eigh))
