/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * The functions of the LAPACK library by dtype, and the parallel loop over a batch of matrices.
 * Fortran functions take all arguments by address, and the lengths of strings as additional
 * arguments.
 */
#ifndef TENSOR_LAPACK_H
#define TENSOR_LAPACK_H

#include "base/init.h"
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

/*
 * Returns the function for a dtype, or NULL with the error recorded; op is the name in its message.
 * Thread-safe.
 */
void *lapack_function(const char *op, enum lapack_routine routine, enum tensor_dtype dtype);

/**
 * struct lapack_batch - matrices of one shape, computed in parallel
 * @count: number of matrices
 * @flops: approximate number of operations for one of them
 * @work_bytes: scratch memory for a call of @one, 64-byte aligned
 * @one: computes matrix i
 * @job: first argument of @one
 */
struct lapack_batch {
	int64_t count;
	double flops;
	size_t work_bytes;
	void (*one)(const void *job, int64_t i, char *work);
	const void *job;
};

/* Returns 0, or -ENOMEM with the error recorded. */
int lapack_run(const char *op, const struct lapack_batch *batch);

/* The rows and columns of a as int; returns -EINVAL with the error recorded if they do not fit. */
int lapack_dims(const char *op, const tensor *a, int *m, int *n);
/*
 * The size of a workspace. If LAPACK is called with a size of -1, it writes the required size as an
 * element of this dtype. Some routines also write to the other workspaces then: each needs room for
 * LAPACK_ANSWER bytes.
 */
#define LAPACK_ANSWER 64
int lapack_answer(const void *element, enum tensor_dtype dtype);

/* Bytes of n elements, rounded up to 64. */
static inline size_t lapack_bytes(int64_t n, enum tensor_dtype dtype)
{
	return ((size_t)n * dtype_sizes[dtype] + 63) & ~(size_t)63;
}

/* The workspace after one of n elements, or, if n is -1, after a required size. */
static inline char *lapack_after(char *work, int64_t n, enum tensor_dtype dtype)
{
	return work + (n < 0 ? LAPACK_ANSWER : lapack_bytes(n, dtype));
}

/* The number of matrices. */
static inline int64_t lapack_count(const tensor *a)
{
	return a->numel / (a->sizes[a->ndim - 1] * a->sizes[a->ndim - 2]);
}

/* Matrix i of a, whose batch is contiguous. */
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

/*
 * LAPACK_KERNELS(KERNEL(NAME), ...) registers cpu_NAME() as the kernel NAME. The constructor runs after
 * the one that creates the kernel tables (priority 101).
 */
#define LAPACK_KERNELS(...)                                                    \
	INIT(INIT_KERNELS) static void register_kernels(void)                  \
	{                                                                      \
		static const struct lapack_kernel kernels[] = { __VA_ARGS__ }; \
                                                                               \
		lapack_register(kernels, ARRAY_SIZE(kernels));                 \
	}
#define KERNEL(NAME)                                                          \
	{                                                                     \
#NAME, KERNEL_OF_TYPE(__typeof__(type_of_##NAME), cpu_##NAME) \
	}

#endif
