// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Sparse tensors on a device, by operators that run there. The host waits for numbers of elements; all else is queued. */
#include "ops/sparse/sparse.h"

#include "ops/sort/unique.h"

#include <tensor/ops.h>

/* In the scope of the caller. */
static tensor *keys_of(tensor *indices, const int64_t *sizes)
{
	tensor *keys = sparse_keys_on_device(indices, sizes);

	return keys ? tensor_scope_add(keys) : NULL;
}

/* The first elements of runs in sorted keys, and the number of keys behind them. */
static tensor *starts_of(tensor *sorted)
{
	const struct unique_wanted wanted = { .firsts = true };
	const int64_t n = sorted->sizes[0];
	struct unique_results u;
	tensor *end, *starts;

	if (unique_on_device(sorted, -1, false, &wanted, &u) < 0)
		return NULL;
	end = tensor_full(TENSOR_INTS(1), TENSOR_SCALAR(n),
			  TENSOR_OPTIONS(.dtype = TENSOR_I64, .device = sorted->device));
	starts = tensor_cat((tensor_list){ (tensor *[]){ u.firsts, end }, 2 }, 0);
	tensor_put(u.values);
	tensor_put(u.firsts);
	tensor_put(u.inverse);
	tensor_put(u.counts);
	return starts;
}

tensor *sparse_coalesced_on_device(const tensor *self)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *sorted, *order, *starts = NULL, *firsts, *indices = NULL, *values = NULL, *t = NULL;
	tensor *keys = keys_of(sparse_of(self)->indices, self->sizes);
	int64_t runs;

	if (keys && tensor_sort_stable_opt(keys, true, 0, false, &sorted, &order) == 0)
		starts = starts_of(sorted);
	if (starts) {
		runs = starts->sizes[0] - 1;
		firsts = tensor_index_select(order, 0, tensor_narrow(starts, 0, 0, runs));
		indices = tensor_index_select(sparse_of(self)->indices, 1, firsts);
		values = sparse_sum_values(sparse_of(self)->values, order, starts, runs);
	}
	if (indices && values)
		t = sparse_new_coo(sizes_of(self), indices, values, true);
	tensor_put(values);
	scope_leave(&guard);
	return t;
}

tensor *sparse_csr_to_coo_on_device(const tensor *self)
{
	const struct sparse *s = sparse_of(self);
	tensor *indices = sparse_expand_on_device(s->crow, s->col), *t;

	t = indices ? sparse_new_coo(sizes_of(self), indices, s->values, true) : NULL;
	tensor_put(indices);
	return t;
}

/* Row i begins behind the elements of the rows before it. */
tensor *sparse_to_csr_on_device(const tensor *self)
{
	const struct sparse *s = sparse_of(self);
	const tensor_options i64 = TENSOR_OPTIONS(.dtype = TENSOR_I64, .device = self->device);
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *rows = tensor_select(s->indices, 0, 0), *cols = tensor_select(s->indices, 0, 1), *t;
	tensor *crow =
		tensor_searchsorted(rows, tensor_arange(TENSOR_SCALAR(self->sizes[0] + 1), i64));

	t = crow && cols ? sparse_new_csr(sizes_of(self), crow, cols, s->values) : NULL;
	scope_leave(&guard);
	return t;
}

/* ---- strided tensors ---- */

/* t as [places, rest], a place for each index of its first d dimensions. It has elements. */
static tensor *by_place(tensor *t, int d)
{
	int64_t sizes[TENSOR_MAX_DIMS + 1] = { 1 };

	for (int k = 0; k < d; k++)
		sizes[0] *= t->sizes[k];
	memcpy(sizes + 1, t->sizes + d, (t->ndim - d) * sizeof(*sizes));
	return tensor_reshape(t, (tensor_ints){ sizes, t->ndim - d + 1 });
}

tensor *sparse_to_dense_on_device(const tensor *coo)
{
	const struct sparse *s = sparse_of(coo);
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *t = tensor_zeros(sizes_of(coo),
				 TENSOR_OPTIONS(.dtype = coo->dtype, .device = coo->device));

	if (t && t->numel && s->nnz &&
	    !tensor_index_copy_(by_place(t, s->sparse_dim), 0, keys_of(s->indices, coo->sizes),
				s->values))
		t = NULL;
	t = t ? tensor_get(t) : NULL;
	scope_leave(&guard);
	return t;
}

/* Indices [d, n] of the places of which an element is not zero. */
static tensor *nonzero_places(tensor *places, const int64_t *sizes, int d)
{
	tensor *some = tensor_ne_scalar(places, TENSOR_SCALAR(0));

	if (some && some->ndim > 1)
		some = tensor_any_dim(tensor_flatten(some, 1, -1), 1, false);
	return tensor_t(tensor_nonzero(tensor_reshape(some, (tensor_ints){ sizes, d })));
}

tensor *sparse_from_dense_on_device(tensor *self, int sparse_dim)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	int64_t sizes[TENSOR_MAX_DIMS + 1] = { 0 };
	tensor *places, *indices, *values, *t = NULL;

	if (self->numel) {
		places = by_place(self, sparse_dim);
		indices = nonzero_places(places, self->sizes, sparse_dim);
		values = indices ? tensor_index_select(places, 0, keys_of(indices, self->sizes)) :
				   NULL;
	} else {
		memcpy(sizes + 1, self->sizes + sparse_dim,
		       (self->ndim - sparse_dim) * sizeof(*sizes));
		indices = tensor_zeros(TENSOR_INTS(sparse_dim, 0),
				       TENSOR_OPTIONS(.dtype = TENSOR_I64, .device = self->device));
		values = tensor_zeros((tensor_ints){ sizes, self->ndim - sparse_dim + 1 },
				      TENSOR_OPTIONS(.dtype = self->dtype, .device = self->device));
	}
	t = sparse_new_coo(sizes_of(self), indices, values, true);
	scope_leave(&guard);
	return t;
}

/* ---- elements at given indices ---- */

/* Positions of the wanted keys in the ascending keys, where *found; 0 where they are not. */
static tensor *find(tensor *keys, tensor *wanted, tensor **found)
{
	const tensor_device at_device = keys->device;
	const tensor_ints n = TENSOR_INTS(wanted->sizes[0]);
	tensor *at;

	if (!keys->numel) {
		*found = tensor_zeros(n, TENSOR_OPTIONS(.dtype = TENSOR_BOOL, .device = at_device));
		return tensor_zeros(n, TENSOR_OPTIONS(.dtype = TENSOR_I64, .device = at_device));
	}
	at = tensor_clamp_max(tensor_searchsorted(keys, wanted), TENSOR_SCALAR(keys->numel - 1));
	*found = tensor_eq(tensor_index_select(keys, 0, at), wanted);
	return tensor_mul(at, *found);
}

/* Of the coalesced coo, zeros where it has no element. */
static tensor *pick_sparse(const tensor *coo, tensor *keys, const int64_t *sizes, int n)
{
	const struct sparse *s = sparse_of(coo);
	const tensor_options like = TENSOR_OPTIONS(.dtype = coo->dtype, .device = coo->device);
	tensor *own = keys_of(s->indices, coo->sizes), *found, *at;
	int64_t ones[TENSOR_MAX_DIMS] = { -1 };

	if (!own || !s->nnz)
		return own ? tensor_zeros((tensor_ints){ sizes, n }, like) : NULL;
	for (int d = 1; d < n; d++)
		ones[d] = 1;
	at = find(own, keys, &found);
	return tensor_masked_fill(tensor_index_select(s->values, 0, at),
				  tensor_reshape(tensor_logical_not(found),
						 (tensor_ints){ ones, n }),
				  TENSOR_SCALAR(0));
}

tensor *sparse_pick_on_device(tensor *self, int sparse_dim, tensor *keys)
{
	const int n = self->ndim - sparse_dim + 1;
	const tensor_options like = TENSOR_OPTIONS(.dtype = self->dtype, .device = self->device);
	struct tensor_scope_guard guard = tensor_scope_enter();
	int64_t sizes[TENSOR_MAX_DIMS + 1] = { keys->numel };
	tensor *t = NULL;

	memcpy(sizes + 1, self->sizes + sparse_dim, (n - 1) * sizeof(*sizes));
	if (!self->numel) {
		t = tensor_zeros((tensor_ints){ sizes, n }, like);
	} else if (is_sparse(self)) {
		t = pick_sparse(self, keys, sizes, n);
	} else {
		t = tensor_index_select(by_place(self, sparse_dim), 0, keys);
	}
	t = t ? tensor_get(t) : NULL;
	scope_leave(&guard);
	return t;
}

tensor *sparse_intersect_on_device(const tensor *a, const tensor *b)
{
	const struct sparse *x = sparse_of(a), *y = sparse_of(b);
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *kx = keys_of(x->indices, a->sizes), *ky = keys_of(y->indices, b->sizes), *found;
	tensor *at = kx && ky ? find(ky, kx, &found) : NULL, *indices, *values, *keep, *t = NULL;

	if (at) {
		keep = tensor_reshape(tensor_nonzero(found), TENSOR_INTS(-1));
		indices = tensor_index_select(x->indices, 1, keep);
		values = tensor_mul(tensor_index_select(x->values, 0, keep),
				    tensor_index_select(y->values, 0,
							tensor_index_select(at, 0, keep)));
		t = sparse_new_coo(sizes_of(a), indices, values, true);
	}
	scope_leave(&guard);
	return t;
}
