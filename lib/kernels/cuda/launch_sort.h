/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Launchers of sorting and selection along lines. See launch.h. */
#ifndef TENSOR_CUDA_LAUNCH_SORT_H
#define TENSOR_CUDA_LAUNCH_SORT_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_SORT_SHORT 2048 /* elements of a line that a block sorts in shared memory */
#define CUDA_TOPK_MOST	1024 /* results of a line that a block selects */

/*
 * Elements are compared by unsigned keys, as the CPU does (sort.h): NaN is the greatest, zeros are
 * equal. `infinity` is that of a floating dtype, shifted left by one bit, or 0; keys are xored with
 * `flip`.
 */
struct cuda_keys {
	bool is_signed;
	int bits; /* 8, 16, 32 or 64 */
	uint64_t infinity, flip;
};

/*
 * Operand 0 of `lines` are the values, 1 the input, 2 the positions (i64); n elements of a line, of
 * which the first `count` in order are stored, `step` elements apart.
 */
struct cuda_sort {
	struct cuda_dims lines;
	struct cuda_keys keys;
	int64_t n, count, step[3];
	void *data[CUDA_OPERANDS];
};
/* n <= CUDA_SORT_SHORT */
int cuda_launch_sort_short(const struct cuda_sort *s, cudaStream_t stream);

/*
 * Others: two keys of 64 bits and two numbers of 32 bits for each element of all lines. If temporary
 * is NULL, only sets *nbytes.
 */
struct cuda_sort_scratch {
	uint64_t *key, *sorted;
	uint32_t *number, *order;
	void *temporary;
	size_t nbytes;
};
int cuda_launch_sort_long(const struct cuda_sort *s, struct cuda_sort_scratch *scratch,
			  cudaStream_t stream);

/* The elements of rank 0 to count - 1 in order, count <= CUDA_TOPK_MOST. */
int cuda_launch_topk(const struct cuda_sort *s, cudaStream_t stream);
/* The element of that rank, or the lower median: of all elements, NaN if one is, or of the numbers. */
enum { CUDA_RANK_MEDIAN = -1, CUDA_RANK_NANMEDIAN = -2 };
int cuda_launch_kth(const struct cuda_sort *s, int64_t rank, cudaStream_t stream);

/* Rows of k adjacent elements; order becomes their places in lexicographic order. If temporary is NULL, only sets nbytes. */
struct cuda_sort_rows {
	struct cuda_keys keys;
	int64_t n, k;
	const void *rows;
	int64_t *order;
	void *temporary;
	size_t nbytes;
};
int cuda_launch_sort_rows(struct cuda_sort_rows *s, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
