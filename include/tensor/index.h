/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * x[...] in C: numbers, slices, new axes and tensors of indices in one call.
 *
 *   tensor_index(x, TENSOR_I(-1))                                   x[-1]
 *   tensor_index(x, TENSOR_ELLIPSIS, TENSOR_SLICE(0, TENSOR_NONE, 2))  x[..., ::2]
 *   tensor_index(x, TENSOR_AT(rows), TENSOR_NEWAXIS, TENSOR_AT(columns))
 *   tensor_index_put(x, value, TENSOR_AT(mask))                     x[mask] = value
 *
 * With three tensors of integers for the three dimensions of x the result has their shape:
 *
 *   x[[1, 2], [3, 2], [1, 0]]  ==  [x[1, 3, 1], x[2, 2, 0]]
 *
 * Tensors of integers (i64, i32) are broadcast together; masks (bool, u8) stand for the positions
 * where they hold. Their dimensions stand where the indexed ones stood when those are neighbours,
 * else in front. Without tensors the result is a view of x, with them a copy. Everything is
 * differentiable.
 */
#ifndef TENSOR_INDEX_H
#define TENSOR_INDEX_H

#include <tensor/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum tensor_subscript_kind {
	TENSOR_ITEM_INT = 1,
	TENSOR_ITEM_SLICE,
	TENSOR_ITEM_ELLIPSIS,
	TENSOR_ITEM_NEWAXIS,
	TENSOR_ITEM_TENSOR,
};

typedef struct tensor_subscript {
	uint32_t kind; /* enum tensor_subscript_kind */
	uint32_t reserved;
	int64_t start, stop, step; /* of a slice; start is also the number */
	tensor *t;		   /* borrowed */
} tensor_subscript;

/* One position; the dimension disappears. A negative one counts from the end. */
#define TENSOR_I(i) ((tensor_subscript){ .kind = TENSOR_ITEM_INT, .start = (i) })
/* start:stop:step; TENSOR_NONE for what is left out. A step below 0 counts down from start and ends
 * before stop. */
#define TENSOR_SLICE(from, to, by) \
	((tensor_subscript){       \
		.kind = TENSOR_ITEM_SLICE, .start = (from), .stop = (to), .step = (by) })
/* All of a dimension. */
#define TENSOR_ALL TENSOR_SLICE(TENSOR_NONE, TENSOR_NONE, TENSOR_NONE)
/* All of as many dimensions as are left over. Once at most. */
#define TENSOR_ELLIPSIS ((tensor_subscript){ .kind = TENSOR_ITEM_ELLIPSIS })
/* A new dimension of size 1. */
#define TENSOR_NEWAXIS ((tensor_subscript){ .kind = TENSOR_ITEM_NEWAXIS })
/* Positions (i64, i32) or a mask (bool, u8). */
#define TENSOR_AT(x) ((tensor_subscript){ .kind = TENSOR_ITEM_TENSOR, .t = (x) })

/* Owned like any operator's result. EINVAL for what does not fit x. */
tensor *tensor_index_items(tensor *x, const tensor_subscript *items, int n);
/* x[items] = value, broadcast; returns x. */
tensor *tensor_index_put_items(tensor *x, tensor *value, const tensor_subscript *items, int n);

#define TENSOR_ITEMS_(...)                                                \
	(const tensor_subscript[]){ __VA_ARGS__ },                        \
		(int)(sizeof((const tensor_subscript[]){ __VA_ARGS__ }) / \
		      sizeof(tensor_subscript))
#define tensor_index(x, ...) tensor_index_items((x), TENSOR_ITEMS_(__VA_ARGS__))
#define tensor_index_put(x, value, ...) \
	tensor_index_put_items((x), (value), TENSOR_ITEMS_(__VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
