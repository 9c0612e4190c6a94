// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Loads cuSOLVER (cusolver.h), keeps its handles, and begins and ends the calls that use them. */
#include "kernels/cuda/linalg/cusolver.h"

#include "base/library.h"
#include "dispatch/kernel_error.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- loading ---- */

static struct cusolver functions;
static bool is_loaded;
static char why_not[TENSOR_ERROR_TEXT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define FUNCTION(member, name) LIBRARY_FUNCTION(struct cusolver, member, name)

static const struct library_function shared[] = {
	FUNCTION(create, "cusolverDnCreate"),
	FUNCTION(set_stream, "cusolverDnSetStream"),
	FUNCTION(blas_create, "cublasCreate_v2"),
	FUNCTION(blas_set_stream, "cublasSetStream_v2"),
	FUNCTION(create_gesvdj, "cusolverDnCreateGesvdjInfo"),
	FUNCTION(destroy_gesvdj, "cusolverDnDestroyGesvdjInfo"),
};

/* The names for real and for complex numbers; ? is the letter of the dtype. */
static const struct {
	size_t at;
	const char *name[2];
} typed[] = {
#define AT(member) offsetof(struct cusolver_of, member)
#define SAME(text)         \
	{                  \
		text, text \
	}
	{ AT(getrf_size), SAME("cusolverDn?getrf_bufferSize") },
	{ AT(getrf), SAME("cusolverDn?getrf") },
	{ AT(getrs), SAME("cusolverDn?getrs") },
	{ AT(potrf_size), SAME("cusolverDn?potrf_bufferSize") },
	{ AT(potrf), SAME("cusolverDn?potrf") },
	{ AT(potrf_batched), SAME("cusolverDn?potrfBatched") },
	{ AT(potrs), SAME("cusolverDn?potrs") },
	{ AT(geqrf_size), SAME("cusolverDn?geqrf_bufferSize") },
	{ AT(geqrf), SAME("cusolverDn?geqrf") },
	{ AT(orgqr_size), { "cusolverDn?orgqr_bufferSize", "cusolverDn?ungqr_bufferSize" } },
	{ AT(orgqr), { "cusolverDn?orgqr", "cusolverDn?ungqr" } },
	{ AT(syevd_size), { "cusolverDn?syevd_bufferSize", "cusolverDn?heevd_bufferSize" } },
	{ AT(syevd), { "cusolverDn?syevd", "cusolverDn?heevd" } },
	{ AT(gesvd_size), SAME("cusolverDn?gesvd_bufferSize") },
	{ AT(gesvd), SAME("cusolverDn?gesvd") },
	{ AT(gesvdj_size), SAME("cusolverDn?gesvdj_bufferSize") },
	{ AT(gesvdj), SAME("cusolverDn?gesvdj") },
	{ AT(gesvda_size), SAME("cusolverDn?gesvdaStridedBatched_bufferSize") },
	{ AT(gesvda), SAME("cusolverDn?gesvdaStridedBatched") },
	{ AT(getrf_batched), SAME("cublas?getrfBatched") },
	{ AT(getrs_batched), SAME("cublas?getrsBatched") },
	{ AT(trsm), SAME("cublas?trsm_v2") },
	{ AT(trsm_batched), SAME("cublas?trsmBatched") },
#undef AT
#undef SAME
};

static const char letters[] = "SDCZ";

static int place_of(enum tensor_dtype dtype)
{
	return dtype == TENSOR_F32 ? 0 : dtype == TENSOR_F64 ? 1 : dtype == TENSOR_C64 ? 2 : 3;
}

/* That of the runtime's CUDA. */
static const char *file_of_library(void)
{
	const char *name = secure_getenv("TENSOR_CUSOLVER");
	int version = 0;

	if (name && *name)
		return name;
	if (cudaRuntimeGetVersion(&version) != cudaSuccess)
		cudaGetLastError();
	return version >= 13000 ? "libcusolver.so.12" : "libcusolver.so.11";
}

/* Those of cuBLAS are found because cuSOLVER depends on it. */
static void load(void)
{
	enum { LETTERS = 4, SHARED = ARRAY_SIZE(shared), TYPED = ARRAY_SIZE(typed) };
	struct library_function all[SHARED + LETTERS * TYPED];
	char text[LETTERS * TYPED][48];
	const char *reason;
	size_t n = SHARED;

	memcpy(all, shared, sizeof(shared));
	for (size_t d = 0; d < LETTERS; d++)
		for (size_t i = 0; i < TYPED; i++) {
			char *name = text[n - SHARED];

			snprintf(name, sizeof(text[0]), "%s", typed[i].name[d >= 2]);
			*strchr(name, '?') = letters[d];
			all[n++] = (struct library_function){
				name, offsetof(struct cusolver, of) +
					      d * sizeof(struct cusolver_of) + typed[i].at
			};
		}
	reason = library_load(file_of_library(), all, n, &functions);
	is_loaded = !reason;
	if (reason)
		snprintf(why_not, sizeof(why_not), "%.400s", reason);
}

/* ---- handles ---- */

struct handles {
	void *dense, *blas;
};

/* A handle has a stream: the lock is held until the work of a call is queued. Handles stay open. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct handles handles[CUDA_DEVICES];

int cuda_solver_check(const struct solver *s, int status)
{
	if (likely(!status))
		return 0;
	return tensor_fail(status == CUSOLVER_ALLOC_FAILED ? ENOMEM : EIO, "%s: cuSOLVER: error %d",
			   s->c.op, status);
}

int cuda_solver_check_blas(const struct solver *s, int status)
{
	if (likely(!status))
		return 0;
	return tensor_fail(status == CUBLAS_ALLOC_FAILED ? ENOMEM : EIO, "%s: cuBLAS: error %d",
			   s->c.op, status);
}

static int open_handles(struct solver *s)
{
	struct handles *h = &handles[s->c.device];
	int err = h->dense ? 0 : cuda_solver_check(s, functions.create(&h->dense));

	if (!err && !h->blas)
		err = cuda_solver_check_blas(s, functions.blas_create(&h->blas));
	s->dense = h->dense;
	s->blas = h->blas;
	if (!err)
		err = cuda_solver_check(s, functions.set_stream(s->dense, s->c.stream));
	if (!err)
		err = cuda_solver_check_blas(s, functions.blas_set_stream(s->blas, s->c.stream));
	return err;
}

/* ---- a call ---- */

int cuda_solver_begin(struct solver *s, const char *op, const tensor *const *t, int n)
{
	int err;

	pthread_once(&once, load);
	if (!is_loaded)
		return tensor_kernel_missing(op, why_not);
	*s = (struct solver){ .library = &functions, .of = &functions.of[place_of(t[0]->dtype)] };
	err = cuda_begin_all(&s->c, op, t[0]->device.index, t, n);
	if (err)
		return err;
	pthread_mutex_lock(&lock);
	err = open_handles(s);
	return err ? cuda_solver_end(s, err) : 0;
}

int cuda_solver_end(struct solver *s, int err)
{
	pthread_mutex_unlock(&lock);
	cuda_scratch_free(&s->c, s->work);
	return cuda_end(&s->c, err);
}

int cuda_solver_work(struct solver *s, enum tensor_dtype dtype)
{
	size_t bytes = ((size_t)s->lwork * tensor_itemsize(dtype) + 255) / 256 * 256;
	int err = cuda_scratch(&s->c, bytes + sizeof(*s->ignored), &s->work);

	if (!err)
		s->ignored = (int *)((char *)s->work + bytes);
	return err;
}

int cuda_solver_dims(const char *op, const tensor *a, int *m, int *n)
{
	int64_t rows = a->sizes[a->ndim - 2], columns = a->sizes[a->ndim - 1];

	if (rows > INT32_MAX / 2 || columns > INT32_MAX / 2)
		return tensor_fail(EINVAL, "%s: matrices [%lld, %lld] are too large for cuSOLVER",
				   op, (long long)rows, (long long)columns);
	*m = (int)rows;
	*n = (int)columns;
	return 0;
}
