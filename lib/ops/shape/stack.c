// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* stack, hstack, vstack, dstack, meshgrid, block_diag: cat and expand of reshaped tensors. */
#include "ops/op.h"

#include "family/factory.h"
#include "family/cat.h"
#include "family/move.h"
#include "family/pad.h"
#include "family/shape.h"
#include "family/view.h"

#include <stdlib.h>

/* A reshaped tensor for each of a list. Owned. */
struct made {
	tensor **t;
	int64_t n;
};

typedef tensor *(*make_fn)(tensor *t, const void *ctx);

static void made_free(struct made *m)
{
	for (int64_t i = 0; i < m->n; i++)
		tensor_put(m->t[i]);
	free(m->t);
}

static int made_init(struct made *m, const char *op, tensor_list list, make_fn make,
		     const void *ctx)
{
	m->n = 0;
	m->t = NULL;
	if (list.len < 1)
		return tensor_fail(EINVAL, "%s: the list of tensors is empty", op);
	m->t = calloc(list.len, sizeof(*m->t));
	if (!m->t)
		return tensor_fail(ENOMEM, "%s: no memory for %lld tensors", op,
				   (long long)list.len);
	for (int64_t i = 0; i < list.len; i++) {
		m->t[i] = make(list.data[i], ctx);
		if (!m->t[i]) {
			made_free(m);
			return error_code();
		}
		m->n++;
	}
	return 0;
}

static tensor *cat_made(const char *op, tensor_list list, make_fn make, const void *ctx,
			int64_t dim, tensor *out)
{
	struct made m;
	tensor *t;

	if (made_init(&m, op, list, make, ctx) < 0)
		return NULL;
	t = out ? call_cat_out(out, (tensor_list){ m.t, m.n }, dim) :
		  call_cat((tensor_list){ m.t, m.n }, dim);
	made_free(&m);
	return t;
}

/* ---- stack ---- */

static tensor *make_unsqueezed(tensor *t, const void *dim)
{
	return call_unsqueeze(t, *(const int64_t *)dim);
}

static tensor *stack(tensor_list tensors, int64_t dim, tensor *out)
{
	int64_t d;

	if (tensors.len < 1)
		return tensor_fail_null(EINVAL, "stack: the list of tensors is empty");
	d = wrap_dim("stack", dim, tensors.data[0]->ndim + 1);
	if (d < 0)
		return NULL;
	for (int64_t i = 1; i < tensors.len; i++)
		if (!sizes_equal(tensors.data[0], tensors.data[i]))
			return tensor_fail_null(EINVAL,
						"stack: tensors must have one shape, got %s "
						"and, as number %lld, %s",
						SHAPE_STR(tensors.data[0]), (long long)i,
						SHAPE_STR(tensors.data[i]));
	return cat_made("stack", tensors, make_unsqueezed, &d, d, out);
}

tensor *composite_stack(tensor_list tensors, int64_t dim)
{
	return stack(tensors, dim, NULL);
}

tensor *composite_stack_out(tensor *out, tensor_list tensors, int64_t dim)
{
	return stack(tensors, dim, out);
}

/* ---- atleast_*d ---- */

static tensor *make_1d(tensor *t, const void *unused)
{
	return composite_atleast_1d(t);
}

static tensor *make_2d(tensor *t, const void *unused)
{
	return composite_atleast_2d(t);
}

static tensor *make_3d(tensor *t, const void *unused)
{
	return composite_atleast_3d(t);
}

static tensor *make_column(tensor *t, const void *unused)
{
	return t->ndim < 2 ? composite_reshape(t, TENSOR_INTS(t->numel, 1)) : tensor_get(t);
}

tensor *composite_hstack(tensor_list tensors)
{
	bool vectors = tensors.len > 0 && tensors.data[0]->ndim <= 1;

	return cat_made("hstack", tensors, make_1d, NULL, vectors ? 0 : 1, NULL);
}

tensor *composite_vstack(tensor_list tensors)
{
	return cat_made("vstack", tensors, make_2d, NULL, 0, NULL);
}

tensor *composite_dstack(tensor_list tensors)
{
	return cat_made("dstack", tensors, make_3d, NULL, 2, NULL);
}

tensor *composite_column_stack(tensor_list tensors)
{
	return cat_made("column_stack", tensors, make_column, NULL, 1, NULL);
}

tensor *composite_concat(tensor_list tensors, int64_t dim)
{
	return call_cat(tensors, dim);
}

/* ---- meshgrid ---- */

static int grid(tensor_list tensors, bool swap, tensor **results, int64_t room)
{
	int64_t sizes[TENSOR_MAX_DIMS], shape[TENSOR_MAX_DIMS];
	int n = (int)tensors.len;

	if (tensors.len < 1 || tensors.len > TENSOR_MAX_DIMS)
		return tensor_fail(EINVAL, "meshgrid: 1 to %d tensors, got %lld", TENSOR_MAX_DIMS,
				   (long long)tensors.len);
	if (results_fit("meshgrid", n, room) < 0)
		return error_code();
	swap &= n > 1;
	for (int i = 0; i < n; i++) {
		tensor *t = tensors.data[i];
		int at = swap && i < 2 ? 1 - i : i;

		if (t->ndim > 1)
			return tensor_fail(EINVAL,
					   "meshgrid: tensor %d must have at most one "
					   "dimension, got shape %s",
					   i, SHAPE_STR(t));
		if (t->dtype != tensors.data[0]->dtype)
			return tensor_fail(EINVAL,
					   "meshgrid: tensors must have one dtype, got %s "
					   "and %s",
					   tensor_dtype_name(tensors.data[0]->dtype),
					   tensor_dtype_name(t->dtype));
		sizes[at] = t->numel;
	}
	for (int i = 0; i < n; i++) {
		int at = swap && i < 2 ? 1 - i : i;
		tensor *line;

		for (int k = 0; k < n; k++)
			shape[k] = k == at ? sizes[k] : 1;
		line = call_view(tensors.data[i], (tensor_ints){ shape, n });
		results[i] = line ? call_expand(line, (tensor_ints){ sizes, n }) : NULL;
		tensor_put(line);
		if (results[i])
			continue;
		while (i > 0)
			tensor_put(results[--i]);
		return error_code();
	}
	return n;
}

int composite_meshgrid(tensor_list tensors, tensor **results, int64_t room)
{
	return grid(tensors, false, results, room);
}

int composite_meshgrid_indexing(tensor_list tensors, const char *indexing, tensor **results,
				int64_t room)
{
	bool swap = !strcmp(indexing, "xy");

	if (!swap && strcmp(indexing, "ij"))
		return tensor_fail(EINVAL, "meshgrid: indexing must be ij or xy, got %s",
				   QUOTED(indexing));
	return grid(tensors, swap, results, room);
}

tensor *composite_cartesian_prod(tensor_list tensors)
{
	tensor *grids[TENSOR_MAX_DIMS], *flat[TENSOR_MAX_DIMS] = { NULL }, *t = NULL;
	int n, whole = 1;

	for (int64_t i = 0; i < tensors.len; i++)
		if (tensors.data[i]->ndim != 1)
			return tensor_fail_null(EINVAL, "cartesian_prod: vectors, got shape %s",
						SHAPE_STR(tensors.data[i]));
	if (tensors.len == 1)
		return call_alias(tensors.data[0]);
	n = grid(tensors, false, grids, TENSOR_MAX_DIMS);
	for (int i = 0; i < n; i++) {
		flat[i] = composite_reshape(grids[i], TENSOR_INTS(-1));
		whole &= flat[i] != NULL;
	}
	if (n > 0 && whole)
		t = stack((tensor_list){ flat, n }, 1, NULL);
	for (int i = 0; i < n; i++) {
		tensor_put(grids[i]);
		tensor_put(flat[i]);
	}
	return t;
}

/* ---- block_diag ---- */

/* Zeros before a block, and the total width. */
struct sides {
	int64_t before, all;
};

static tensor *block_row(tensor *block, const struct sides *s)
{
	return call_constant_pad_nd(block,
				    TENSOR_INTS(s->before, s->all - s->before - block->sizes[1]),
				    tensor_scalar_int(0));
}

tensor *composite_block_diag(tensor_list tensors)
{
	enum tensor_dtype dtype = TENSOR_DTYPE_NONE;
	struct sides s = { 0, 0 };
	struct made m;
	tensor *t = NULL;

	for (int64_t i = 0; i < tensors.len; i++) {
		const tensor *b = tensors.data[i];

		if (b->ndim > 2)
			return tensor_fail_null(EINVAL,
						"block_diag: at most 2 dimensions, got "
						"shape %s",
						SHAPE_STR(b));
		dtype = dtype ? tensor_promote_types(dtype, b->dtype) : b->dtype;
		if (!dtype)
			return NULL;
	}
	if (!tensors.len)
		return call_zeros(TENSOR_INTS(1, 0), (tensor_options){ 0 });
	if (made_init(&m, "block_diag", tensors, make_2d, NULL) < 0)
		return NULL;
	for (int64_t i = 0; i < m.n; i++)
		s.all += m.t[i]->sizes[1];
	for (int64_t i = 0; i < m.n; i++) {
		int64_t width = m.t[i]->sizes[1];
		tensor *row = block_row(m.t[i], &s);

		if (!row)
			goto out;
		s.before += width;
		tensor_put(m.t[i]);
		m.t[i] = row;
	}
	t = call_cat((tensor_list){ m.t, m.n }, 0);
out:
	made_free(&m);
	return t;
}
