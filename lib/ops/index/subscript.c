// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* x[...] of tensor/index.h: numbers, slices and new axes become views, one item after another;
 * index tensors are collected for index and index_put. */
#include "ops/op.h"

#include "family/index_tensor.h"
#include "family/copy.h"
#include "family/view.h"

#include <tensor/index.h>

struct subscript {
	tensor *t; /* owned: the view so far, at first the tensor itself */
	int dim;   /* dimension of t for the next item */
	bool tensors;
	/* index per dimension of t, tensor_none for a full slice; borrowed */
	tensor *of[TENSOR_MAX_DIMS];
};

/* Number of dimensions of x that an item consumes. */
static int taken(const tensor_subscript *item)
{
	switch (item->kind) {
	case TENSOR_ITEM_INT:
	case TENSOR_ITEM_SLICE:
		return 1;
	case TENSOR_ITEM_TENSOR:
		return item->t->dtype <= TENSOR_U8 ? item->t->ndim : 1;
	default:
		return 0;
	}
}

/* Number of dimensions an ellipsis stands for, or -1 with the error set. */
static int left_over(const tensor *x, const tensor_subscript *items, int n)
{
	int ellipses = 0, sum = 0;

	for (int i = 0; i < n; i++) {
		if (items[i].kind == TENSOR_ITEM_TENSOR && !tensor_given(items[i].t))
			return null_argument_code("index"), -1;
		if (items[i].kind < TENSOR_ITEM_INT || items[i].kind > TENSOR_ITEM_TENSOR)
			return tensor_fail(EINVAL, "index: item %d has an unknown kind", i), -1;
		sum += taken(&items[i]);
		ellipses += items[i].kind == TENSOR_ITEM_ELLIPSIS;
	}
	if (ellipses > 1)
		return tensor_fail(EINVAL, "index: one ellipsis at most, got %d", ellipses), -1;
	if (sum > x->ndim)
		return tensor_fail(ERANGE, "index: too many indices for shape %s: %d", SHAPE_STR(x),
				   sum),
		       -1;
	return x->ndim - sum;
}

/* Make `next` the current view, consuming it; false if it is NULL. */
static bool advance(struct subscript *s, tensor *next)
{
	if (!next)
		return false;
	tensor_put(s->t);
	s->t = next;
	return true;
}

/* Resolve an end of a slice with a negative step: -1 is before the first position. */
static int64_t down_end(int64_t i, int64_t n, int64_t left_out)
{
	if (i == TENSOR_NONE)
		return left_out;
	i += i < 0 ? n : 0;
	return i < -1 ? -1 : i >= n ? n - 1 : i;
}

/* Slice dimension d with a negative step, as a view with a negative stride. The slice operator,
 * like PyTorch's, has no negative steps. */
static tensor *slice_down(tensor *t, int d, const tensor_subscript *item)
{
	int64_t n = t->sizes[d], start = down_end(item->start, n, n - 1),
		stop = down_end(item->stop, n, -1);
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS], step = item->step;
	int64_t offset = t->offset;

	memcpy(sizes, t->sizes, t->ndim * sizeof(*sizes));
	memcpy(strides, t->strides, t->ndim * sizeof(*strides));
	sizes[d] = start > stop ? (start - stop - 1) / -step + 1 : 0;
	if (sizes[d])
		offset += start * strides[d];
	if (sizes[d] > 1) /* the step is then below the dimension's size and cannot overflow */
		strides[d] *= step;
	return call_as_strided(t, (tensor_ints){ sizes, t->ndim },
			       (tensor_ints){ strides, t->ndim }, offset);
}

static bool apply_slice(struct subscript *s, const tensor_subscript *item)
{
	int64_t step = item->step == TENSOR_NONE ? 1 : item->step;

	if (item->start == TENSOR_NONE && item->stop == TENSOR_NONE && step == 1)
		return ++s->dim;
	if (step < 0)
		return advance(s, slice_down(s->t, s->dim++, item));
	return advance(s, call_slice_Tensor(s->t, s->dim++, item->start, item->stop, step));
}

static bool apply_tensor(struct subscript *s, tensor *index)
{
	s->tensors = true;
	/* A 0-d mask consumes no dimension: add one of size 1 to index. */
	if (index->dtype <= TENSOR_U8 && !index->ndim) {
		if (!advance(s, call_unsqueeze(s->t, s->dim)))
			return false;
		s->of[s->dim++] = index;
		return true;
	}
	s->of[s->dim] = index;
	s->dim += index->dtype <= TENSOR_U8 ? index->ndim : 1;
	return true;
}

static bool apply(struct subscript *s, const tensor_subscript *item, int rest)
{
	switch (item->kind) {
	case TENSOR_ITEM_INT:
		return advance(s, call_select_int(s->t, s->dim, item->start));
	case TENSOR_ITEM_SLICE:
		return apply_slice(s, item);
	case TENSOR_ITEM_ELLIPSIS:
		s->dim += rest;
		return true;
	case TENSOR_ITEM_NEWAXIS:
		return advance(s, call_unsqueeze(s->t, s->dim++));
	default:
		return apply_tensor(s, item->t);
	}
}

/* The geometry of a view, and the dimension of the tensor that the next item is for. */
struct geometry {
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS], offset;
	int ndim, dim;
};

static bool plain_position(struct geometry *g, const tensor *x, int64_t i)
{
	int64_t n = x->sizes[g->dim];

	if (i < 0)
		i += n;
	if (i < 0 || i >= n)
		return false;
	g->offset += i * x->strides[g->dim++];
	return true;
}

static int64_t clamp(int64_t i, int64_t n)
{
	i += i < 0 ? n : 0;
	return i < 0 ? 0 : i > n ? n : i;
}

static bool plain_slice(struct geometry *g, const tensor *x, const tensor_subscript *item)
{
	int64_t n = x->sizes[g->dim], stride = x->strides[g->dim++], start, stop;
	int64_t step = item->step == TENSOR_NONE ? 1 : item->step;

	if (step < 1 || g->ndim == TENSOR_MAX_DIMS)
		return false;
	start = item->start == TENSOR_NONE ? 0 : clamp(item->start, n);
	stop = item->stop == TENSOR_NONE ? n : clamp(item->stop, n);
	n = stop > start ? (stop - start - 1) / step + 1 : 0;
	g->offset += start * stride;
	g->sizes[g->ndim] = n;
	/* With at most one element a large step must not overflow the stride. */
	if (__builtin_mul_overflow(stride, step, &g->strides[g->ndim]))
		g->strides[g->ndim] = stride;
	g->ndim++;
	return true;
}

static bool plain_whole(struct geometry *g, const tensor *x, int n)
{
	if (g->ndim + n > TENSOR_MAX_DIMS)
		return false;
	for (; n > 0; n--, g->ndim++, g->dim++) {
		g->sizes[g->ndim] = x->sizes[g->dim];
		g->strides[g->ndim] = x->strides[g->dim];
	}
	return true;
}

/* As view_unsqueeze(). */
static bool plain_newaxis(struct geometry *g, const tensor *x)
{
	if (g->ndim == TENSOR_MAX_DIMS)
		return false;
	g->sizes[g->ndim] = 1;
	g->strides[g->ndim++] = g->dim < x->ndim ? x->sizes[g->dim] * x->strides[g->dim] : 1;
	return true;
}

/* The view of several items at once, for a tensor whose operators nothing but its backend handles.
 * NULL without an error for items that have to be applied one after another, and wrong ones. */
static tensor *plain_view(tensor *x, const tensor_subscript *items, int n, int rest)
{
	struct geometry g;
	bool ok = true;

	/* The arrays are not initialized: most of their entries are not used. */
	g.ndim = g.dim = 0;
	g.offset = x->offset;
	if (dispatch_keys(thread(), op_mask(&entry_as_strided), x->keys) !=
		    KEY_BIT(TENSOR_KEY_CPU) ||
	    x->ext)
		return NULL;
	for (int i = 0; ok && i < n; i++) {
		switch (items[i].kind) {
		case TENSOR_ITEM_INT:
			ok = plain_position(&g, x, items[i].start);
			break;
		case TENSOR_ITEM_SLICE:
			ok = plain_slice(&g, x, &items[i]);
			break;
		case TENSOR_ITEM_ELLIPSIS:
			ok = plain_whole(&g, x, rest);
			break;
		case TENSOR_ITEM_NEWAXIS:
			ok = plain_newaxis(&g, x);
			break;
		default:
			ok = false;
		}
	}
	if (!ok || !plain_whole(&g, x, x->ndim - g.dim))
		return NULL;
	return tensor_new_view(x, g.sizes, g.strides, g.ndim, g.offset);
}

/* Applies the items one after another. */
static int subscript_init(struct subscript *s, tensor *x, const tensor_subscript *items, int n,
			  int rest)
{
	s->tensors = false;
	s->dim = 0;
	for (int i = 0; i < TENSOR_MAX_DIMS; i++)
		s->of[i] = tensor_none;
	s->t = tensor_get(x);
	for (int i = 0; s->t && i < n; i++) {
		if (apply(s, &items[i], rest))
			continue;
		tensor_put(s->t);
		return error_code();
	}
	return s->t ? 0 : error_code();
}

/* Build the list for index: a mask occurs once for all its dimensions. 0-d masks have become 1-d.
 */
static int collect(const struct subscript *s, tensor **list, tensor **owned)
{
	int n = 0, k = 0;

	for (int d = 0; d < s->dim; d++) {
		tensor *t = s->of[d];
		bool mask = t != tensor_none && t->dtype <= TENSOR_U8;

		if (mask && !t->ndim) {
			owned[k] = call_unsqueeze(t, 0);
			if (!owned[k])
				return -1;
			t = owned[k++];
		}
		list[n++] = t;
		d += mask && t->ndim > 1 ? t->ndim - 1 : 0;
	}
	return n;
}

static void drop(tensor *const *owned)
{
	for (int i = 0; owned[i]; i++)
		tensor_put(owned[i]);
}

static __attribute__((noinline)) tensor *index_stepwise(tensor *x, const tensor_subscript *items,
							int n, int rest)
{
	tensor *list[TENSOR_MAX_DIMS], *owned[TENSOR_MAX_DIMS + 1] = { NULL }, *t = NULL;
	struct subscript s;
	int count;

	if (subscript_init(&s, x, items, n, rest) < 0)
		return NULL;
	if (!s.tensors && s.t == x && !advance(&s, call_alias(x))) {
		tensor_put(x);
		return NULL;
	}
	if (!s.tensors)
		return scope_own(thread(), s.t);
	count = collect(&s, list, owned);
	if (count >= 0)
		t = call_index_Tensor(s.t, (tensor_list){ list, count });
	drop(owned);
	tensor_put(s.t);
	return scope_own(thread(), t);
}

TENSOR_EXPORT tensor *tensor_index_items(tensor *x, const tensor_subscript *items, int n)
{
	tensor *t;
	int rest;

	if (!tensor_given(x))
		return null_argument("index");
	rest = left_over(x, items, n);
	if (rest < 0)
		return NULL;
	t = plain_view(x, items, n, rest);
	if (likely(t))
		return scope_own(thread(), t);
	return index_stepwise(x, items, n, rest);
}

/* value without the leading dimensions of size 1 that exceed the rank. Owned. */
static tensor *trimmed(tensor *value, int ndim)
{
	tensor *t = tensor_get(value);

	while (t && t->ndim > ndim && t->sizes[0] == 1) {
		tensor *next = call_squeeze_dim(t, 0);

		tensor_put(t);
		t = next;
	}
	return t;
}

TENSOR_EXPORT tensor *tensor_index_put_items(tensor *x, tensor *value,
					     const tensor_subscript *items, int n)
{
	tensor *list[TENSOR_MAX_DIMS], *owned[TENSOR_MAX_DIMS + 1] = { NULL }, *from, *done = NULL;
	struct subscript s;
	int count, rest;

	if (!tensor_given(x) || !tensor_given(value))
		return null_argument("index_put");
	rest = left_over(x, items, n);
	if (rest < 0)
		return NULL;
	s.tensors = false;
	s.t = plain_view(x, items, n, rest);
	if (!s.t && subscript_init(&s, x, items, n, rest) < 0)
		return NULL;
	if (s.tensors) {
		count = collect(&s, list, owned);
		if (count >= 0)
			done = call_index_put_(s.t, (tensor_list){ list, count }, value, false);
		drop(owned);
	} else {
		from = trimmed(value, s.t->ndim);
		done = from ? call_copy_(s.t, from) : NULL;
		tensor_put(from);
	}
	tensor_put(s.t);
	return done ? x : NULL;
}
