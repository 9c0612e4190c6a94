// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operators with indices. Where the indices differ between samples, the sample's number is one more of them. */
#include "batch/batch.h"

#include "family/cat.h"
#include "family/copy.h"
#include "family/embedding.h"
#include "family/factory.h"
#include "family/index.h"
#include "family/index_tensor.h"
#include "family/pointwise.h"
#include "family/scatter.h"
#include "family/shape.h"
#include "family/ternary.h"
#include "family/view.h"

/* self[.., index, ..] along a dimension, by gather: the index has one element for each place of it. */
static tensor *gather_rows(struct batch_call *c, tensor *self, int dim, tensor *index)
{
	int64_t sizes[TENSOR_MAX_DIMS], place[TENSOR_MAX_DIMS];

	for (int i = 0; i < self->ndim; i++) {
		sizes[i] = self->sizes[i];
		place[i] = 1;
	}
	place[0] = c->size;
	place[dim] = sizes[dim] = index->numel / c->size;
	index = tensor_to(index, TENSOR_OPTIONS(.dtype = TENSOR_I64));
	index = tensor_reshape(index, (tensor_ints){ place, self->ndim });
	return tensor_gather(self, dim, tensor_expand(index, (tensor_ints){ sizes, self->ndim }));
}

int batch_rule_index_select(struct batch_call *c)
{
	tensor *self = batch_full(c, 0);
	int dim;

	if (!arg_ndim(c, 0) || arg_ndim(c, 2) > 1)
		return batch_rule_loop(c);
	dim = wrap_dim(c->op->schema.name, arg_int(c, 1), arg_ndim(c, 0));
	if (dim < 0 || !self)
		return batch_failed();
	if (!arg_batched(c, 2))
		return batch_return(c, 0, tensor_index_select(self, dim + 1, c->phys[2].t));
	return batch_return(c, 0, gather_rows(c, self, dim + 1, c->phys[2].t));
}

/* ---- _index, _index_put: at has a row of indices for each of the dimensions dims ---- */

struct places {
	tensor *at;
	tensor_ints own;  /* dimensions of a sample */
	tensor_ints dims; /* of the physical tensor */
	int nindex;	  /* dimensions of the indices */
	int before;	  /* dimensions of a sample in front of the indices in the result */
	bool in_front;	  /* of the physical result */
};

static bool adjacent(tensor_ints dims)
{
	for (int64_t i = 1; i < dims.len; i++)
		if (dims.data[i] != dims.data[0] + i)
			return false;
	return true;
}

/* Adds the sample's number as the index of dimension 0. */
static tensor *with_numbers(struct batch_call *c, tensor *at)
{
	tensor *numbers = batch_numbers(c, at, at->ndim - 1, 1), *list[2];
	int64_t sizes[TENSOR_MAX_DIMS];

	if (!numbers)
		return NULL;
	at = tensor_transpose(at, 0, 1);
	if (!at)
		return NULL;
	for (int i = 0; i < at->ndim; i++)
		sizes[i] = i ? at->sizes[i] : 1;
	list[0] = tensor_expand(tensor_unsqueeze(numbers, 0), (tensor_ints){ sizes, at->ndim });
	list[1] = at;
	return list[0] ? tensor_cat((tensor_list){ list, 2 }, 0) : NULL;
}

/* The dimensions of argument 2, wrapped. */
static int wrap_places(struct batch_call *c, struct places *p)
{
	tensor_ints dims = c->args[2].ints;
	int64_t *to = batch_list(c);

	if (!to || dims.len < 1 || dims.len >= TENSOR_MAX_DIMS)
		return tensor_fail(EINVAL, "%s: wrong dims", c->op->schema.name);
	for (int64_t i = 0; i < dims.len; i++) {
		to[i] = wrap_dim(c->op->schema.name, dims.data[i], arg_ndim(c, 0));
		if (to[i] < 0)
			return batch_failed();
	}
	p->own = (tensor_ints){ to, dims.len };
	return 0;
}

/* The physical indices; at and dims are the arguments 1 and 2. */
static int find_places(struct batch_call *c, struct places *p)
{
	int64_t *to = batch_list(c), n = 0;

	*p = (struct places){ .at = c->phys[1].t, .nindex = arg_ndim(c, 1) - 1 };
	if (!to || wrap_places(c, p) < 0 || p->nindex < 0)
		return tensor_fail(EINVAL, "%s: wrong indices", c->op->schema.name);
	p->before = adjacent(p->own) ? (int)p->own.data[0] : 0;
	if (arg_batched(c, 1)) {
		p->at = with_numbers(c, p->at);
		to[n++] = 0;
	}
	for (int64_t i = 0; i < p->own.len; i++)
		to[n++] = p->own.data[i] + 1;
	p->dims = (tensor_ints){ to, n };
	p->in_front = !adjacent(p->dims) || arg_batched(c, 1);
	return p->at ? 0 : batch_failed();
}

/*
 * The order of the physical result's dimensions, where the indices are in front: with the batch among
 * them, [batch, i.., before.., after..], else [i.., batch, after..].
 */
static tensor_ints result_order(const struct batch_call *c, const struct places *p, int ndim,
				int64_t *order)
{
	int n = 0;

	order[n++] = arg_batched(c, 1) ? 0 : p->nindex;
	for (int i = 0; i < p->before; i++)
		order[n++] = 1 + p->nindex + i;
	for (int i = 0; i < p->nindex; i++)
		order[n++] = arg_batched(c, 1) ? 1 + i : i;
	while (n < ndim) {
		order[n] = n;
		n++;
	}
	return (tensor_ints){ order, ndim };
}

int batch_rule_index(struct batch_call *c)
{
	int64_t order[TENSOR_MAX_DIMS];
	struct places p;
	tensor *self = batch_full(c, 0), *t;

	if (!self || find_places(c, &p) < 0)
		return batch_failed();
	t = tensor_index_at(self, p.at, p.dims);
	if (!t || !p.in_front)
		return batch_return(c, 0, t);
	return batch_return(c, 0, tensor_permute(t, result_order(c, &p, t->ndim, order)));
}

/* The sizes of a sample's self[at]; their number. */
static int part_sizes(const struct batch_call *c, const struct places *p, int64_t *sizes)
{
	const tensor *self = c->args[0].t, *at = c->args[1].t;
	tensor_ints dims = p->own;
	int n = 0;

	for (int i = 0; i < p->before; i++)
		sizes[n++] = self->sizes[i];
	for (int i = 1; i < at->ndim; i++)
		sizes[n++] = at->sizes[i];
	for (int i = p->before; i < self->ndim; i++) {
		bool indexed = false;

		for (int64_t k = 0; k < dims.len; k++)
			indexed |= dims.data[k] == i;
		if (!indexed)
			sizes[n++] = self->sizes[i];
	}
	return n;
}

/* values without dimensions of size 1 after the batch, so that ndim are left: as NumPy does. */
static tensor *without_leading(tensor *values, int ndim)
{
	while (values && values->ndim > ndim && values->ndim > 1 && values->sizes[1] == 1)
		values = tensor_select(values, 1, 0);
	return values;
}

/* The values in the shape and order of the physical self[at]. */
static tensor *lay_out_values(struct batch_call *c, const struct places *p)
{
	int64_t sizes[TENSOR_MAX_DIMS + 1] = { c->size }, order[TENSOR_MAX_DIMS + 1],
					inverse[TENSOR_MAX_DIMS + 1];
	int ndim = 1 + part_sizes(c, p, sizes + 1);
	tensor *values = batch_full(c, 3);
	tensor_ints to;

	values = without_leading(values, ndim);
	if (!values || ndim < values->ndim || ndim > TENSOR_MAX_DIMS)
		return values ? tensor_fail_null(EINVAL, "%s: values do not fit",
						 c->op->schema.name) :
				NULL;
	values = batch_pad(values, ndim - values->ndim);
	values = values ? tensor_expand(values, (tensor_ints){ sizes, ndim }) : NULL;
	if (!values || !p->in_front)
		return values;
	to = result_order(c, p, ndim, order);
	for (int i = 0; i < ndim; i++)
		inverse[to.data[i]] = i;
	return tensor_permute(values, (tensor_ints){ inverse, ndim });
}

int batch_rule_index_put(struct batch_call *c)
{
	tensor *self = batch_full(c, 0), *values;
	struct places p;

	if (!self || find_places(c, &p) < 0)
		return batch_failed();
	values = lay_out_values(c, &p);
	if (!values)
		return batch_failed();
	return batch_return(c, 0, tensor_index_put_at(self, p.at, p.dims, values, c->args[4].b));
}

/* ---- embedding: rows of a table for each sample are rows of one table ---- */

/* Row i of sample b is row b * rows + i of all. */
static tensor *rows_of_all(struct batch_call *c, int indices, int64_t rows)
{
	tensor *at = batch_full(c, indices);

	return at ? tensor_add(at, batch_numbers(c, at, at->ndim, rows)) : NULL;
}

int batch_rule_embedding(struct batch_call *c)
{
	tensor *weight = c->phys[0].t, *at;

	if (arg_ndim(c, 0) != 2)
		return batch_rule_loop(c);
	if (!arg_batched(c, 0))
		return batch_call_physical(c);
	if (arg_int(c, 2) >= 0 || c->args[3].b || c->args[4].b)
		return batch_rule_loop(c);
	at = rows_of_all(c, 1, arg_sample(c, 0)->sizes[0]);
	return batch_return(c, 0, tensor_embedding(batch_fold(weight), at, -1, false, false));
}

int batch_rule_embedding_dense_backward(struct batch_call *c)
{
	int64_t rows = arg_int(c, 2), padding = arg_int(c, 3);
	tensor *grad = batch_full(c, 0), *at, *all;

	if (c->args[4].b || rows < 1 || padding >= rows)
		return batch_rule_loop(c);
	at = rows_of_all(c, 1, rows);
	all = batch_unfold(c, tensor_embedding_dense_backward(grad, at, rows * c->size, -1, false));
	if (!all || padding < 0)
		return batch_return(c, 0, all);
	at = tensor_zeros_like(tensor_select(all, 1, padding), (tensor_options){ 0 });
	return batch_return(c, 0, tensor_select_scatter(all, at, 1, padding));
}

/* ---- masked_fill with a tensor ---- */

int batch_rule_masked_fill(struct batch_call *c)
{
	const tensor *self = c->args[0].t, *mask = c->args[1].t;
	int ndim = self->ndim > mask->ndim ? self->ndim : mask->ndim;
	tensor *t[3];

	if (arg_ndim(c, 2) || mask->dtype != TENSOR_BOOL)
		return batch_rule_loop(c); /* which has the error */
	for (int i = 0; i < 3; i++) {
		t[i] = c->phys[i].t;
		if (arg_batched(c, i))
			t[i] = batch_pad(t[i], ndim - arg_ndim(c, i));
		if (!t[i])
			return batch_failed();
	}
	return batch_return(
		c, 0,
		tensor_where(t[1], tensor_to(t[2], TENSOR_OPTIONS(.dtype = self->dtype)), t[0]));
}
