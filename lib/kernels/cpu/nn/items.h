/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Elements of a list of tensors as one range, and blocks of f16 and bf16 in f32. */
#ifndef TENSOR_CPU_ITEMS_H
#define TENSOR_CPU_ITEMS_H

#include "kernels/abi/optimizer.h"
#include "kernels/cpu/simd/cpu.h"

#define BLOCK 256 /* elements */

/* Converts n elements from index i on to f32. Returns to, or NULL if `from` is NULL. */
static inline float *load_f32(float *to, const void *from, enum tensor_dtype dtype, int64_t i,
			      int64_t n)
{
	int64_t size = dtype_sizes[dtype];

	if (!from)
		return NULL;
	from = (const char *)from + i * size;
	CPU_NAME(convert)(to, TENSOR_F32, sizeof(*to), from, dtype, size, n);
	return to;
}

/* Converts n elements back, unless `to` is NULL. */
static inline void store_f32(void *to, const float *from, enum tensor_dtype dtype, int64_t i,
			     int64_t n)
{
	int64_t size = dtype_sizes[dtype];

	if (!to)
		return;
	to = (char *)to + i * size;
	CPU_NAME(convert)(to, dtype, size, from, TENSOR_F32, sizeof(*from), n);
}

/* The item that has element `at` of all items together. */
static inline int64_t item_of(const struct optimizer_item *items, int64_t nitems, int64_t at)
{
	int64_t low = 0, high = nitems - 1;

	while (low < high) {
		int64_t middle = (low + high + 1) / 2;

		if (items[middle].begin <= at)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

/* The number of elements of all items. */
static inline int64_t items_end(const struct optimizer_item *items, int64_t nitems)
{
	return items[nitems - 1].begin + items[nitems - 1].n;
}

/* FOR_ITEMS(items, nitems, begin, end, item, from, to) { ... }: the parts of the items between begin and end. */
#define FOR_ITEMS(items, nitems, begin, end, item, from, to)                                 \
	for (const struct optimizer_item *item = &(items)[item_of(items, nitems, begin)];    \
	     item < (items) + (nitems) && item->begin < (end); item++)                       \
		for (int64_t from = (begin) > item->begin ? (begin)-item->begin : 0,         \
			     to = (end)-item->begin < item->n ? (end)-item->begin : item->n; \
		     from < to; from = to)

#endif
