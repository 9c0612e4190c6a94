// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Conversions of sparse tensors on a device, by operators that run there. The host waits for the number of different
 * indices; all else is queued.
 */
#include "ops/sparse/sparse.h"

#include "ops/sort/unique.h"

#include <tensor/ops.h>

/* Keys of self's elements, i64 [nnz]. */
static tensor *keys_of(const tensor *self)
{
	const struct sparse *s = sparse_of(self);
	tensor *keys = tensor_zeros(TENSOR_INTS(s->nnz),
				    TENSOR_OPTIONS(.dtype = TENSOR_I64, .device = self->device));

	for (int d = 0; d < s->sparse_dim; d++)
		keys = tensor_add(tensor_mul_scalar(keys, TENSOR_SCALAR(self->sizes[d])),
				  tensor_select(s->indices, 0, d));
	return keys;
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
	tensor *keys = keys_of(self);
	int64_t runs;

	if (keys && tensor_sort_stable_opt(keys, true, 0, false, &sorted, &order) == 0)
		starts = starts_of(sorted);
	if (starts) {
		runs = starts->sizes[0] - 1;
		firsts = tensor_index_select(order, 0, tensor_narrow(starts, 0, 0, runs));
		indices = tensor_index_select(sparse_of(self)->indices, 1, firsts);
		values = sparse_sum_runs(self, order, starts, runs);
	}
	if (indices && values)
		t = sparse_new_coo(sizes_of(self), indices, values, true);
	tensor_put(values);
	scope_leave(&guard);
	return t;
}

/* The row of element p is the number of rows that end at or before p. */
tensor *sparse_csr_to_coo_on_device(const tensor *self)
{
	const struct sparse *s = sparse_of(self);
	const tensor_options i64 = TENSOR_OPTIONS(.dtype = TENSOR_I64, .device = self->device);
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *ends = tensor_narrow(s->crow, 0, 1, self->sizes[0]);
	tensor *rows = tensor_searchsorted_opt(ends, tensor_arange(TENSOR_SCALAR(s->nnz), i64),
					       false, true, NULL, tensor_none);
	tensor *indices = tensor_stack((tensor_list){ (tensor *[]){ rows, s->col }, 2 }, 0), *t;

	t = indices ? sparse_new_coo(sizes_of(self), indices, s->values, true) : NULL;
	scope_leave(&guard);
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
