// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Indexing, sorting and scanning. */
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * i64 or i32 indices into a dimension of this size; occasionally one is out of range, which sets
 * c->refuse.
 */
static tensor *indices(struct call *c, int ndim, const int64_t *shape, int64_t size, bool negative)
{
	bool narrow = one_in(4);
	int64_t n = 1, strides[TENSOR_MAX_DIMS];
	tensor *flat;

	for (int d = ndim - 1; d >= 0; d--) {
		strides[d] = n;
		n *= shape[d];
	}
	flat = tensor_empty(TENSOR_SHAPE(n + 1),
			    TENSOR_OPTIONS(.dtype = narrow ? TENSOR_I32 : TENSOR_I64));
	for (int64_t i = 0; i <= n; i++) {
		int64_t v = size ? below(size) : 0;

		if (negative && one_in(4))
			v -= size;
		if (i < n && (!size || one_in(3000))) {
			v = size + below(3);
			c->refuse = true;
		}
		if (narrow)
			((int32_t *)tensor_mutable_data(flat))[i] = (int32_t)v;
		else
			((int64_t *)tensor_mutable_data(flat))[i] = v;
	}
	return tensor_as_strided(flat, (tensor_ints){ shape, ndim }, (tensor_ints){ strides, ndim },
				 0);
}

static int64_t at_index(const struct value *v, int64_t size)
{
	return v->i < 0 ? v->i + size : v->i;
}

/* ---- one index per position ---- */

static void make_index_select(struct call *c)
{
	int64_t sizes[TENSOR_MAX_DIMS], index[TENSOR_MAX_DIMS] = { 0 }, count = below(6), given;
	tensor *t = any_tensor(0);
	int n = tensor_dim(t), dim;
	struct plain *in = &c->in[0], *out = &c->want[0];

	while (!n) {
		t = any_tensor(0);
		n = tensor_dim(t);
	}
	given = any_dim(c, n);
	dim = c->refuse ? 0 : wrapped(given, n);
	arg_tensor(c, t);
	arg_int(c, given);
	arg_tensor(c, indices(c, 1, &count, in->sizes[dim], false));
	memcpy(sizes, in->sizes, sizeof(*sizes) * n);
	sizes[dim] = count;
	plain_make(out, in->dtype, n, sizes);
	/* Without elements to copy, indices need not be checked. */
	c->either = !out->numel && c->refuse;
	for (int64_t i = 0; !c->refuse && i < out->numel; i++) {
		int64_t from[TENSOR_MAX_DIMS];

		memcpy(from, index, sizeof(from));
		from[dim] = at_index(&c->in[1].v[index[dim]], in->sizes[dim]);
		out->v[i] = in->v[plain_at(in, from)];
		plain_next(out, index);
	}
}

/* gather: out[i][j] = self[index[i][j]][j]; scatter_add: self[index[i][j]][j] += src[i][j]. */
static void make_gather(struct call *c)
{
	int64_t sizes[TENSOR_MAX_DIMS], index[TENSOR_MAX_DIMS] = { 0 }, given;
	bool add = c->row->detail;
	tensor *t = any_tensor(0);
	int n = tensor_dim(t), dim;
	struct plain *in = &c->in[0], *ix = &c->in[1], *out = &c->want[0];

	while (!n || (add && plain_category(tensor_dtype(t)) == 1)) {
		t = any_tensor(0);
		n = tensor_dim(t);
	}
	given = any_dim(c, n);
	dim = c->refuse ? 0 : wrapped(given, n);
	arg_tensor(c, t);
	arg_int(c, given);
	for (int d = 0; d < n; d++)
		sizes[d] = d == dim ? below(5) : in->sizes[d] ? 1 + below(in->sizes[d]) : 0;
	arg_tensor(c, indices(c, n, sizes, in->sizes[dim], false));
	if (add)
		arg_tensor(c, tensor_like(in->dtype, n, sizes));
	plain_make(out, in->dtype, n, add ? in->sizes : sizes);
	if (add)
		memcpy(out->v, in->v, in->numel * sizeof(*in->v));
	if (add && !plain_is_integral(in->dtype)) {
		out->slack = 8;
		out->size = plain_size(in) + plain_size(&c->in[2]);
	}
	for (int64_t i = 0; !c->refuse && i < ix->numel; i++) {
		int64_t from[TENSOR_MAX_DIMS];
		struct value *v;

		memcpy(from, index, sizeof(from));
		from[dim] = ix->v[i].i;
		v = add ? &out->v[plain_at(out, from)] : &out->v[i];
		if (!add)
			*v = in->v[plain_at(in, from)];
		else if (plain_is_integral(in->dtype))
			*v = plain_round(
				plain_int((int64_t)((uint64_t)v->i + (uint64_t)c->in[2].v[i].i)),
				TENSOR_I64, in->dtype);
		else
			*v = plain_round((struct value){ 0, v->re + c->in[2].v[i].re,
							 v->im + c->in[2].v[i].im },
					 TENSOR_C128, in->dtype);
		plain_next(ix, index);
	}
}

/* ---- x[i, :, j]: several index tensors ---- */

struct advanced {
	int ndim, nindex, blocks_ndim, first;
	int which[TENSOR_MAX_DIMS]; /* index tensor of a dimension, or -1 */
	int64_t block[TENSOR_MAX_DIMS];
	bool apart; /* not adjacent: the dimensions of the indices come first */
};

/* The element of self for an index of the result. */
static int64_t advanced_at(const struct call *c, const struct advanced *a, const struct plain *out,
			   const int64_t *index)
{
	const struct plain *in = &c->in[0];
	int64_t from[TENSOR_MAX_DIMS];
	int block_at = a->apart ? 0 : a->first, o = a->apart ? a->blocks_ndim : 0;

	for (int d = 0; d < in->ndim; d++) {
		if (!a->apart && d == a->first)
			o += a->blocks_ndim;
		if (a->which[d] < 0) {
			from[d] = index[o++];
		} else {
			const struct plain *ix = &c->in[a->which[d]];
			int64_t own[TENSOR_MAX_DIMS];

			for (int k = 0; k < ix->ndim; k++) {
				int64_t i = index[block_at + a->blocks_ndim - ix->ndim + k];

				own[k] = ix->sizes[k] == 1 ? 0 : i;
			}
			from[d] = at_index(&ix->v[plain_at(ix, own)], in->sizes[d]);
		}
	}
	return plain_at(in, from);
}

static void make_index(struct call *c)
{
	struct advanced a = { .nindex = 0, .first = -1 };
	int64_t sizes[TENSOR_MAX_DIMS], index[TENSOR_MAX_DIMS] = { 0 };
	tensor *t = any_tensor(0), *list[TENSOR_MAX_DIMS];
	int n = tensor_dim(t), o = 0, last = -1, listed;
	struct plain *in = &c->in[0], *out = &c->want[0];

	while (!n || n > 4) {
		t = any_tensor(0);
		n = tensor_dim(t);
	}
	arg_tensor(c, t);
	a.blocks_ndim = (int)below(3);
	for (int k = 0; k < a.blocks_ndim; k++)
		a.block[k] = 1 + below(4);
	listed = 1 + (int)below(n);
	for (int d = 0; d < n; d++) {
		int64_t shape[TENSOR_MAX_DIMS];
		int own;

		a.which[d] = -1;
		if (d >= listed)
			continue;
		list[d] = tensor_none;
		if (a.nindex == 3 || (one_in(2) && !(d == listed - 1 && !a.nindex)))
			continue;
		/* At least one index tensor has all dimensions, others may have fewer. */
		own = a.nindex && one_in(3) ? (int)below(a.blocks_ndim + 1) : a.blocks_ndim;
		for (int k = 0; k < own; k++)
			shape[k] = a.nindex && one_in(4) ? 1 : a.block[a.blocks_ndim - own + k];
		list[d] = indices(c, own, shape, in->sizes[d], true);
		a.which[d] = ++a.nindex;
		a.apart |= last >= 0 && last != d - 1;
		a.first = a.first < 0 ? d : a.first;
		last = d;
	}
	{
		tensor **own = plain_alloc(sizeof(list));

		memcpy(own, list, listed * sizeof(*own));
		c->args[c->nargs++] =
			(tensor_value){ .kind = TENSOR_VALUE_TENSOR_LIST, .list = { own, listed } };
		for (int d = 0; d < listed; d++)
			if (list[d] != tensor_none) {
				c->t[c->ntensors] = list[d];
				plain_read(&c->in[c->ntensors++], list[d]);
			}
	}
	if (a.apart)
		for (int k = 0; k < a.blocks_ndim; k++)
			sizes[o++] = a.block[k];
	for (int d = 0; d < n; d++) {
		if (!a.apart && d == a.first)
			for (int k = 0; k < a.blocks_ndim; k++)
				sizes[o++] = a.block[k];
		if (a.which[d] < 0)
			sizes[o++] = in->sizes[d];
	}
	plain_make(out, in->dtype, o, sizes);
	c->either = !out->numel && c->refuse;
	for (int64_t i = 0; !c->refuse && i < out->numel; i++) {
		out->v[i] = in->v[advanced_at(c, &a, out, index)];
		plain_next(out, index);
	}
}

/* ---- along one dimension: cumsum, sort, topk ---- */

static const struct plain *compared_values;

/* NaN compares greater than all numbers. */
static bool value_less(const struct value *a, const struct value *b, enum tensor_dtype d)
{
	if (plain_is_integral(d))
		return a->i < b->i;
	return isnan(b->re) ? !isnan(a->re) : a->re < b->re;
}

static int by_value(const void *x, const void *y)
{
	int64_t i = *(const int64_t *)x, j = *(const int64_t *)y;
	enum tensor_dtype d = compared_values->dtype;

	if (value_less(&compared_values->v[i], &compared_values->v[j], d))
		return -1;
	if (value_less(&compared_values->v[j], &compared_values->v[i], d))
		return 1;
	return i < j ? -1 : i > j;
}

static int by_value_down(const void *x, const void *y)
{
	int64_t i = *(const int64_t *)x, j = *(const int64_t *)y;
	int order = by_value(x, y);

	if (value_less(&compared_values->v[i], &compared_values->v[j], compared_values->dtype) ||
	    value_less(&compared_values->v[j], &compared_values->v[i], compared_values->dtype))
		return -order;
	return i < j ? -1 : i > j;
}

/*
 * sort.stable(self, *, stable, dim, descending): values and indices; equal elements keep their
 * order.
 */
static void make_sort(struct call *c)
{
	tensor *t;
	enum tensor_dtype d = any_dtype();
	struct plain *in = &c->in[0];
	int64_t dim, index[TENSOR_MAX_DIMS] = { 0 };
	bool descending = one_in(2);
	int n;

	while (plain_is_complex(d))
		d = any_dtype();
	t = any_tensor(d);
	n = tensor_dim(t);
	dim = any_dim(c, n);
	arg_tensor(c, t);
	arg_bool(c, true);
	arg_int(c, dim);
	arg_bool(c, descending);
	c->nresults = 2;
	plain_make(&c->want[0], d, n, in->sizes);
	plain_make(&c->want[1], TENSOR_I64, n, in->sizes);
	c->want[0].slack = 1e-6; /* -0 and 0 are equal */
	if (c->refuse)
		return;
	if (!n) {
		c->want[0].v[0] = in->v[0];
		return;
	}
	n = wrapped(dim, n);
	for (int64_t i = 0; i < in->numel; i++, plain_next(in, index)) {
		int64_t at[TENSOR_MAX_DIMS], *line;

		if (index[n])
			continue;
		line = plain_alloc(in->sizes[n] * sizeof(*line));
		memcpy(at, index, sizeof(at));
		for (int64_t k = 0; k < in->sizes[n]; k++) {
			at[n] = k;
			line[k] = plain_at(in, at);
		}
		compared_values = in;
		qsort(line, in->sizes[n], sizeof(*line), descending ? by_value_down : by_value);
		for (int64_t k = 0; k < in->sizes[n]; k++) {
			int64_t inner = 1, to;

			at[n] = k;
			to = plain_at(in, at);
			for (int e = n + 1; e < in->ndim; e++)
				inner *= in->sizes[e];
			c->want[0].v[to] = in->v[line[k]];
			c->want[1].v[to] = plain_int(line[k] / inner % in->sizes[n]);
		}
	}
}

static void make_cumsum(struct call *c)
{
	tensor *t = any_tensor(0);
	struct plain *in = &c->in[0], *out = &c->want[0];
	int n = tensor_dim(t);
	int64_t dim = any_dim(c, n), index[TENSOR_MAX_DIMS] = { 0 };
	enum tensor_dtype d, acc;

	arg_tensor(c, t);
	arg_int(c, dim);
	d = plain_is_integral(in->dtype) ? TENSOR_I64 : in->dtype;
	acc = plain_is_integral(d) ? TENSOR_I64 : plain_is_complex(d) ? TENSOR_C128 : TENSOR_F64;
	plain_make(out, d, n, in->sizes);
	out->slack = plain_is_integral(d) ? 0 : 4;
	out->size = plain_size(in);
	for (int64_t i = 0; !c->refuse && i < in->numel; i++, plain_next(in, index)) {
		struct value v = plain_round(in->v[i], in->dtype, acc), before = { 0 };

		if (n && index[wrapped(dim, n)]) {
			int64_t at[TENSOR_MAX_DIMS];

			memcpy(at, index, sizeof(at));
			at[wrapped(dim, n)]--;
			before = out->v[plain_at(out, at)];
		}
		out->v[i] = (struct value){ (int64_t)((uint64_t)v.i + (uint64_t)before.i),
					    v.re + before.re, v.im + before.im };
	}
	for (int64_t i = 0; i < out->numel; i++)
		out->v[i] = plain_round(out->v[i], acc, d);
}

const struct row index_rows[] = {
	{ .name = "index_select", .make = make_index_select, .out = true },
	{ .name = "gather", .make = make_gather, .out = true },
	{ .name = "scatter_add", .make = make_gather, .detail = 1, .inplace = true },
	{ .name = "index.Tensor", .make = make_index },
	{ .name = "sort.stable", .make = make_sort },
	{ .name = "cumsum", .make = make_cumsum },
};
const int index_count = sizeof(index_rows) / sizeof(*index_rows);
