/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Launchers of the kernels of sparse tensors, by the formulas of kernels/abi/sparse.h. See launch.h. */
#ifndef TENSOR_CUDA_LAUNCH_SPARSE_H
#define TENSOR_CUDA_LAUNCH_SPARSE_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out [m, n] with rows ldo elements apart, dense [k, n] with rows lda apart; entries of the sparse matrix. */
struct cuda_spmm {
	int64_t m, n, k, lda, ldo, entries;
	const int64_t *crow, *col;
	const void *values, *dense;
	void *out;
	double alpha, beta;
};
int cuda_launch_spmm(const struct cuda_spmm *s, int dtype, cudaStream_t stream);

/* n products of rows of k elements. */
struct cuda_sampled_mm {
	int64_t n, k, lda, ldb;
	const int64_t *row, *col;
	const void *a, *b;
	void *out;
};
int cuda_launch_sampled_mm(const struct cuda_sampled_mm *s, int dtype, cudaStream_t stream);

/* `runs` sums of blocks of `block` elements. */
struct cuda_sum_runs {
	int64_t runs, block;
	const int64_t *order, *starts;
	const void *values;
	void *out;
};
int cuda_launch_sum_runs(const struct cuda_sum_runs *s, int dtype, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
