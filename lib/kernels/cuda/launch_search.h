/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Launchers of binary searches, modes and multinomial draws. See launch.h. */
#ifndef TENSOR_CUDA_LAUNCH_SEARCH_H
#define TENSOR_CUDA_LAUNCH_SEARCH_H

#include "kernels/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A search for each of `numel` values, `m` in a line; `shared`: one sequence for all lines. */
struct cuda_search {
	int64_t numel, m, n;
	bool shared, right;
	const void *sequence, *values;
	const int64_t *sorter; /* or NULL */
	int64_t *out;
};
int cuda_launch_searchsorted(const struct cuda_search *s, int dtype, cudaStream_t stream);

/* The most frequent value of sorted lines of n elements, the least of several, and the last of its
 * positions. Operands 0 and 1 of `lines` are the results, whose strides are elements. */
struct cuda_mode {
	struct cuda_dims lines;
	int64_t n;
	const void *sorted;
	const int64_t *positions;
	void *values;
	int64_t *indices;
};
int cuda_launch_mode(const struct cuda_mode *m, int dtype, cudaStream_t stream);

/* ---- multinomial ---- */

struct cuda_draw {
	uint64_t seed, offset;
	const uint64_t *at; /* as in struct cuda_random */
	int64_t rows, n, k;
	const double *weights; /* [rows, n] */
	double *work; /* with replacement cumulated weights [rows, n], else keys [rows, n] */
	struct cuda_report bad;
};
/* Checks each row; with replacement writes the cumulated weights. */
int cuda_launch_draw_check(const struct cuda_draw *d, bool replacement, cudaStream_t stream);
int cuda_launch_draw(const struct cuda_draw *d, int64_t *out, cudaStream_t stream);
/* The keys whose k greatest are drawn; -inf for a weight of 0. */
int cuda_launch_draw_keys(const struct cuda_draw *d, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
