// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * unique on a device, by operators that run there: a stable sort, comparisons of neighbours, the positions of those that
 * differ, for whose number the host waits, and selections at these positions. Slices, and complex numbers, are rows of numbers.
 */
#include "ops/sort/unique.h"

#include "core/scope.h"
#include "family/search.h"
#include "kernels/abi/search.h"

#include <tensor/ops.h>

bool unique_is_on_device(const tensor *self)
{
	return self->device.type != TENSOR_CPU;
}

/* NULL, as the operators return it, if a result that is used here failed: `like` is NULL then. */
static tensor *ints(const tensor *like, int64_t n, int64_t value)
{
	if (!like)
		return NULL;
	return tensor_full(TENSOR_INTS(n), TENSOR_SCALAR(value),
			   TENSOR_OPTIONS(.dtype = TENSOR_I64, .device = like->device));
}

static tensor *joined(tensor *first, tensor *then)
{
	return tensor_cat((tensor_list){ (tensor *[]){ first, then }, 2 }, 0);
}

/* The positions of the first elements of runs among n > 0 values; NaN differs from all. */
static tensor *starts_of(tensor *differs, int64_t n)
{
	tensor *at = tensor_reshape(tensor_nonzero(differs), TENSOR_INTS(-1));

	return joined(ints(differs, 1, 0), tensor_add_scalar(at, TENSOR_SCALAR(1)));
}

static tensor *lengths_of(tensor *starts, int64_t n)
{
	int64_t runs = starts ? starts->sizes[0] : 1;

	return tensor_sub(joined(tensor_narrow(starts, 0, 1, runs - 1), ints(starts, 1, n)),
			  starts);
}

/* The run of each element, whose place among the values order says; NULL: its own. */
static tensor *numbers_of(tensor *differs, tensor *order)
{
	tensor *numbers = joined(ints(differs, 1, 0), tensor_cumsum_opt(differs, 0, TENSOR_I64));

	if (order)
		numbers = tensor_scatter(tensor_empty_like(order,
							   TENSOR_OPTIONS(.dtype = TENSOR_I64)),
					 0, order, numbers);
	return numbers;
}

/* The values that are compared: [n] elements, or [n, k] numbers of slices along d or of complex numbers. */
static tensor *comparable(tensor *self, int d)
{
	tensor *x = d < 0 ? tensor_reshape(self, TENSOR_INTS(-1)) : tensor_movedim_int(self, d, 0);
	const int64_t n = d < 0 ? self->numel : self->sizes[d];

	if (x && dtype_is_f8(x->dtype))
		x = tensor_to(x, TENSOR_OPTIONS(.dtype = TENSOR_F32));
	if (x && dtype_is_complex(x->dtype))
		x = tensor_view_as_real(x);
	if (!x || x->ndim == 1)
		return x;
	/* Without elements, a size cannot be inferred. */
	return tensor_reshape(x, TENSOR_INTS(n, x->numel / n));
}

/* The order of rows [n, k]; NULL as operators return it. */
static tensor *order_of(tensor *rows)
{
	sort_rows_kernel fn =
		(sort_rows_kernel)op_kernel(&entry_unique_dim, &kernels_sort_rows, rows);
	tensor *full = fn ? tensor_contiguous(rows) : NULL;
	tensor *order =
		full ? tensor_empty(TENSOR_INTS(rows->sizes[0]),
				    TENSOR_OPTIONS(.dtype = TENSOR_I64, .device = rows->device)) :
		       NULL;

	return order && fn(order, full) == 0 ? order : NULL;
}

/* Whether each of the values but the first differs from the one before; NaN differs from all. */
static tensor *differences(tensor *values, int64_t n)
{
	tensor *ne =
		tensor_ne(tensor_narrow(values, 0, 1, n - 1), tensor_narrow(values, 0, 0, n - 1));

	return ne && ne->ndim > 1 ? tensor_any_dim(ne, 1, false) : ne;
}

static void find_runs(tensor *self, int d, bool sort, const struct unique_wanted *wanted,
		      struct unique_results *u)
{
	tensor *values = comparable(self, d), *order = NULL, *differs, *starts, *firsts;
	const int64_t n = values ? values->sizes[0] : 0;

	if (!values)
		return;
	if (sort && values->ndim > 1) {
		order = order_of(values);
		values = order ? tensor_index_select(values, 0, order) : NULL;
	} else if (sort) {
		tensor_sort_stable_opt(values, true, 0, false, &values, &order);
	}
	differs = values ? differences(values, n) : NULL;
	starts = starts_of(differs, n);
	/* Without it all else would run, on what was not computed if a capture has ended, and have other errors. */
	if (!starts)
		return;
	firsts = order ? tensor_index_select(order, 0, starts) : starts;
	u->values = d < 0 ? tensor_index_select(tensor_reshape(self, TENSOR_INTS(-1)), 0, firsts) :
			    tensor_index_select(self, d, firsts);
	u->firsts = wanted->firsts ? firsts : ints(self, 0, 0);
	u->counts = wanted->counts ? lengths_of(starts, n) : ints(self, 0, 0);
	u->inverse = !wanted->inverse ? ints(self, 0, 0) :
		     d < 0	      ? tensor_reshape(numbers_of(differs, order),
						       (tensor_ints){ self->sizes, self->ndim }) :
					numbers_of(differs, order);
}

static void find_nothing(tensor *self, int d, const struct unique_wanted *wanted,
			 struct unique_results *u)
{
	const tensor_options o = TENSOR_OPTIONS(.dtype = self->dtype, .device = self->device);

	u->values = d < 0 ? tensor_empty(TENSOR_INTS(0), o) :
			    tensor_empty((tensor_ints){ self->sizes, self->ndim }, o);
	u->firsts = ints(self, 0, 0);
	u->counts = ints(self, 0, 0);
	u->inverse =
		wanted->inverse && d < 0 ?
			tensor_empty((tensor_ints){ self->sizes, self->ndim },
				     TENSOR_OPTIONS(.dtype = TENSOR_I64, .device = self->device)) :
			ints(self, 0, 0);
}

static tensor *kept(tensor *t)
{
	return t ? tensor_get(t) : NULL;
}

int unique_on_device(tensor *self, int d, bool sort, const struct unique_wanted *wanted,
		     struct unique_results *u)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	bool done;

	*u = (struct unique_results){ NULL };
	if (d < 0 ? self->numel : self->sizes[d])
		find_runs(self, d, sort, wanted, u);
	else
		find_nothing(self, d, wanted, u);
	done = u->values && u->firsts && u->counts && u->inverse;
	if (done)
		*u = (struct unique_results){ kept(u->values), kept(u->firsts), kept(u->inverse),
					      kept(u->counts) };
	tensor_scope_leave(&guard);
	return done ? 0 : -thread()->error.code;
}
