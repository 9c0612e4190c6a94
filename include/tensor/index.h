/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * x[...] in C: numbers, slices, new axes and index tensors in one call.
 *
 *   tensor_index(x, TENSOR_I(-1))                                   x[-1]
 *   tensor_index(x, TENSOR_ELLIPSIS, TENSOR_SLICE(0, TENSOR_NONE, 2))  x[..., ::2]
 *   tensor_index(x, TENSOR_AT(rows), TENSOR_NEWAXIS, TENSOR_AT(columns))
 *   tensor_index_put(x, value, TENSOR_AT(mask))                     x[mask] = value
 *
 * Three index tensors for the three dimensions of x give a result of their shape:
 *
 *   x[[1, 2], [3, 2], [1, 0]]  ==  [x[1, 3, 1], x[2, 2, 0]]
 *
 * Index tensors (i64, i32) are broadcast together; a mask (bool, u8) stands for the positions where
 * it is true. Their dimensions replace the indexed ones if those are adjacent, else they come
 * first. The result is a view of x, or a copy if there are index tensors. Both are differentiable.
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
	int64_t start, stop, step; /* of a slice; start is also the position of TENSOR_I */
	tensor *t;		   /* borrowed */
} tensor_subscript;

static inline tensor_subscript tensor_subscript_of(enum tensor_subscript_kind kind, int64_t start,
						   int64_t stop, int64_t step, tensor *t)
{
	tensor_subscript s = { kind, 0, start, stop, step, t };

	return s;
}

#ifdef __cplusplus
#define TENSOR_SUBSCRIPT_ tensor_subscript_of
#else
#define TENSOR_SUBSCRIPT_(kind, start, stop, step, t) \
	((tensor_subscript){ kind, 0, start, stop, step, t })
#endif

/* One position; the dimension is removed. A negative position counts from the end. */
#define TENSOR_I(i) TENSOR_SUBSCRIPT_(TENSOR_ITEM_INT, (i), 0, 0, NULL)
/* start:stop:step; TENSOR_NONE for an omitted part. A negative step counts down from start and ends
 * before stop. */
#define TENSOR_SLICE(from, to, by) TENSOR_SUBSCRIPT_(TENSOR_ITEM_SLICE, (from), (to), (by), NULL)
/* A full slice. */
#define TENSOR_ALL TENSOR_SLICE(TENSOR_NONE, TENSOR_NONE, TENSOR_NONE)
/* Full slices of all dimensions without an item. At most once. */
#define TENSOR_ELLIPSIS TENSOR_SUBSCRIPT_(TENSOR_ITEM_ELLIPSIS, 0, 0, 0, NULL)
/* A new dimension of size 1. */
#define TENSOR_NEWAXIS TENSOR_SUBSCRIPT_(TENSOR_ITEM_NEWAXIS, 0, 0, 0, NULL)
/* An index tensor (i64, i32) or a mask (bool, u8). */
#define TENSOR_AT(x) TENSOR_SUBSCRIPT_(TENSOR_ITEM_TENSOR, 0, 0, 0, (x))

/* x[items]: a new tensor, owned like an operator's result. ERANGE for a position
 * out of range and for too many items, EINVAL for others that do not fit x. */
tensor *tensor_index_items(tensor *x, const tensor_subscript *items, int n);
/* x[items] = value, which broadcasts. Returns x, or NULL. */
tensor *tensor_index_put_items(tensor *x, tensor *value, const tensor_subscript *items, int n);

#ifndef __cplusplus
#define TENSOR_ITEMS_(...)                                                \
	(const tensor_subscript[]){ __VA_ARGS__ },                        \
		(int)(sizeof((const tensor_subscript[]){ __VA_ARGS__ }) / \
		      sizeof(tensor_subscript))
#define tensor_index(x, ...) tensor_index_items((x), TENSOR_ITEMS_(__VA_ARGS__))
#define tensor_index_put(x, value, ...) \
	tensor_index_put_items((x), (value), TENSOR_ITEMS_(__VA_ARGS__))
#endif

#ifdef __cplusplus
}

namespace tensor_literal
{
/* The list lives to the end of the full expression that has the call. */
inline tensor *index(tensor *x, std::initializer_list<tensor_subscript> items)
{
	return tensor_index_items(x, items.begin(), static_cast<int>(items.size()));
}

inline tensor *index_put(tensor *x, tensor *value, std::initializer_list<tensor_subscript> items)
{
	return tensor_index_put_items(x, value, items.begin(), static_cast<int>(items.size()));
}
} // namespace tensor_literal

#define tensor_index(x, ...)		tensor_literal::index((x), { __VA_ARGS__ })
#define tensor_index_put(x, value, ...) tensor_literal::index_put((x), (value), { __VA_ARGS__ })
#endif
#endif
