/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The library itself: its functions by dtype, and a batch of matrices in parallel. Fortran takes
 * every argument by address and the lengths of texts at the end.
 */
#ifndef TENSOR_LAPACK_H
#define TENSOR_LAPACK_H

#include "kernels/abi/lapack.h"

enum lapack_routine {
	LAPACK_SYEVD,
	LAPACK_GEEV,
	LAPACK_GETRF,
	LAPACK_GETRS,
	LAPACK_POTRF,
	LAPACK_POTRS,
	LAPACK_TRSM,
	LAPACK_GEQRF,
	LAPACK_ORGQR,
	LAPACK_GESDD,
	LAPACK_ROUTINES,
};

/* The function for a dtype; NULL with the error set. op: for the message. Thread-safe. */
void *lapack_function(const char *op, enum lapack_routine routine, enum tensor_dtype dtype);

/**
 * struct lapack_batch - matrices of one shape, to be computed one after the other or in parallel
 * @count: how many
 * @flops: of one, roughly
 * @work_bytes: scratch memory that each call gets, 64-byte aligned
 * @one: computes matrix i
 * @job: its first argument
 */
struct lapack_batch {
	int64_t count;
	double flops;
	size_t work_bytes;
	void (*one)(const void *job, int64_t i, char *work);
	const void *job;
};

/* 0 or ENOMEM with the error set. */
int lapack_run(const char *op, const struct lapack_batch *batch);

/* Rows and columns as LAPACK's integers; EINVAL with the error set if they do not fit. */
int lapack_dims(const char *op, const tensor *a, int *m, int *n);
/* The size of a workspace, which LAPACK answers as an element of this dtype when it is called with
 * a size of -1. Some routines write to the other workspaces then, too. */
#define LAPACK_ANSWER 64
int lapack_answer(const void *element, enum tensor_dtype dtype);

/* Bytes of n elements, rounded up so that what follows is aligned. */
static inline size_t lapack_bytes(int64_t n, enum tensor_dtype dtype)
{
	return ((size_t)n * dtype_sizes[dtype] + 63) & ~(size_t)63;
}

/* The workspace after one of n elements; after an answer, where n is -1. */
static inline char *lapack_after(char *work, int64_t n, enum tensor_dtype dtype)
{
	return work + (n < 0 ? LAPACK_ANSWER : lapack_bytes(n, dtype));
}

static inline int64_t lapack_count(const tensor *a)
{
	return a->numel / (a->sizes[a->ndim - 1] * a->sizes[a->ndim - 2]);
}

/* Matrix i of a, whose matrices follow each other. */
static inline char *lapack_matrix(const tensor *a, int64_t i)
{
	return (char *)a->data +
	       i * a->sizes[a->ndim - 1] * a->sizes[a->ndim - 2] * dtype_sizes[a->dtype];
}

/* Vector i of a contiguous [.., n]. */
static inline char *lapack_vector(const tensor *v, int64_t i)
{
	return (char *)v->data + i * v->sizes[v->ndim - 1] * dtype_sizes[v->dtype];
}

struct lapack_kernel {
	const char *name;
	tensor_kernel fn;
};

void lapack_register(const struct lapack_kernel *kernels, size_t n);

/* Registers cpu_NAME() as the kernel NAME, after the tables are there (101). */
#define LAPACK_KERNELS(...)                                                    \
	__attribute__((constructor(102))) static void register_kernels(void)   \
	{                                                                      \
		static const struct lapack_kernel kernels[] = { __VA_ARGS__ }; \
                                                                               \
		lapack_register(kernels, ARRAY_SIZE(kernels));                 \
	}
#define K(NAME)                                  \
	{                                        \
#NAME, (tensor_kernel)cpu_##NAME \
	}

#endif
