// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Store inputs in full that repeat a few elements within short rows. See iter_expand(). */
#include "iter/iter.h"

/* Bytes of an expanded input, at most: they stay in the second-level cache. */
#define EXPAND_BYTES 131072
#define EXPAND_USES  4	  /* least number of times that an expanded input is read */
#define EXPAND_LEAST 1024 /* elements of the output; fewer do not pay for the set-up */
#define SHORT_ROW    128  /* bytes; rows of whole vectors of 64 bytes are read in place */

/* True if dimensions 0 to k of operand i are one run of evenly spaced elements. */
static bool one_run(const struct tensor_iter *it, int i, int k)
{
	for (int d = 0; d < k; d++)
		if (it->shape[d] * it->strides[i][d] != it->strides[i][d + 1])
			return false;
	return true;
}

/* True if input i has the same elements in dimensions 0 to k for all positions of the others. */
static bool same_outside(const struct tensor_iter *it, int i, int k)
{
	for (int d = k + 1; d < it->ndim; d++)
		if (it->strides[i][d])
			return false;
	return true;
}

/* The highest dimension up to which every operand is one run, or can be expanded; 0 if none. */
static int highest(const struct tensor_iter *it)
{
	int64_t n = it->numel;

	for (int k = it->ndim - 2; k > 0; k--) {
		bool runs = true;

		n /= it->shape[k + 1];
		if (n * EXPAND_USES > it->numel)
			continue;
		for (int i = 0; i < it->nops && runs; i++)
			runs = one_run(it, i, k) ||
			       (i && it->op[i] && same_outside(it, i, k) &&
				n * (int64_t)itemsize(it->op[i]) <= EXPAND_BYTES);
		if (runs)
			return k;
	}
	return 0;
}

/* Whether rows are so short, and elements so many, that storing inputs in full may pay. */
static bool has_short_rows(const struct tensor_iter *it)
{
	int64_t row = it->ndim > 2 ? it->shape[0] * dtype_sizes[it->dtype] : SHORT_ROW;

	return row < SHORT_ROW && row % ITER_LINE && it->numel >= EXPAND_LEAST;
}

/* Copy the elements of dimensions 0 to k of input i to `to`, in order. */
static void store(const struct tensor_iter *it, int i, int k, char *to, iter_loop copy)
{
	int64_t size = dtype_sizes[iter_dtype(it, i)], n = it->shape[0] * it->shape[1];
	int64_t pos[TENSOR_MAX_DIMS] = { 0 };
	char *from = it->data[i];

	for (int d = 1; d <= k; to += n * size) {
		copy((char *[]){ to, from }, (int64_t[]){ size, it->strides[i][0] },
		     (int64_t[]){ it->shape[0] * size, it->strides[i][1] }, it->shape[0],
		     it->shape[1], NULL);
		for (d = 2; d <= k; d++) {
			from += it->strides[i][d];
			if (++pos[d] < it->shape[d])
				break;
			from -= it->shape[d] * it->strides[i][d];
			pos[d] = 0;
		}
	}
}

int iter_expand(struct tensor_iter *it, iter_lookup move, struct tensor_storage **block)
{
	int k = has_short_rows(it) ? highest(it) : 0;
	int64_t n = 1, bytes[ITER_OPERANDS] = { 0 }, all = 0;
	char *to;

	*block = NULL;
	if (!k)
		return 0;
	for (int d = 0; d <= k; d++)
		n *= it->shape[d];
	for (int i = 0; i < it->nops; i++) {
		if (!one_run(it, i, k))
			bytes[i] = (n * (int64_t)itemsize(it->op[i]) + ITER_LINE - 1) & -ITER_LINE;
		all += bytes[i];
	}
	*block = storage_alloc(TENSOR_DEVICE_CPU, all, false);
	if (!*block)
		return -ENOMEM;
	to = (*block)->data;
	for (int i = 0; i < it->nops; i++) {
		enum tensor_dtype dtype = iter_dtype(it, i);

		if (!bytes[i])
			continue;
		store(it, i, k, to, move(dtype, dtype));
		it->data[i] = to;
		it->strides[i][0] = dtype_sizes[dtype];
		for (int d = 1; d <= k; d++)
			it->strides[i][d] = it->strides[i][d - 1] * it->shape[d - 1];
		to += bytes[i];
	}
	iter_settle(it);
	return 0;
}
