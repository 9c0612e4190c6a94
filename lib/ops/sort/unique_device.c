// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * unique of elements on a device, by operators that run there: a stable sort, comparisons of neighbours, the positions of those
 * that differ, for whose number the host waits, and selections at these positions.
 */
#include "ops/sort/unique.h"

#include "core/scope.h"

#include <tensor/ops.h>

bool unique_is_on_device(const tensor *self)
{
	return self->device.type != TENSOR_CPU && !dtype_is_complex(self->dtype) &&
	       !dtype_is_f8(self->dtype);
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
static tensor *numbers_of(tensor *differs, tensor *order, tensor *self)
{
	tensor *numbers = joined(ints(differs, 1, 0), tensor_cumsum_opt(differs, 0, TENSOR_I64));

	if (order)
		numbers = tensor_scatter(tensor_empty_like(order,
							   TENSOR_OPTIONS(.dtype = TENSOR_I64)),
					 0, order, numbers);
	return tensor_reshape(numbers, (tensor_ints){ self->sizes, self->ndim });
}

static void find_runs(tensor *self, bool sort, const struct unique_wanted *wanted,
		      struct unique_results *u)
{
	const int64_t n = self->numel;
	tensor *values = tensor_reshape(self, TENSOR_INTS(-1)), *order = NULL, *differs, *starts;

	if (sort)
		tensor_sort_stable_opt(values, true, 0, false, &values, &order);
	differs = tensor_ne(tensor_narrow(values, 0, 1, n - 1), tensor_narrow(values, 0, 0, n - 1));
	starts = starts_of(differs, n);
	u->values = tensor_index_select(values, 0, starts);
	u->firsts = !wanted->firsts ? ints(self, 0, 0) :
		    order	    ? tensor_index_select(order, 0, starts) :
				      starts;
	u->counts = wanted->counts ? lengths_of(starts, n) : ints(self, 0, 0);
	u->inverse = wanted->inverse ? numbers_of(differs, order, self) : ints(self, 0, 0);
}

static void find_nothing(tensor *self, const struct unique_wanted *wanted, struct unique_results *u)
{
	u->values = tensor_empty(TENSOR_INTS(0),
				 TENSOR_OPTIONS(.dtype = self->dtype, .device = self->device));
	u->firsts = ints(self, 0, 0);
	u->counts = ints(self, 0, 0);
	u->inverse =
		wanted->inverse ?
			tensor_empty((tensor_ints){ self->sizes, self->ndim },
				     TENSOR_OPTIONS(.dtype = TENSOR_I64, .device = self->device)) :
			ints(self, 0, 0);
}

static tensor *kept(tensor *t)
{
	return t ? tensor_get(t) : NULL;
}

int unique_on_device(tensor *self, bool sort, const struct unique_wanted *wanted,
		     struct unique_results *u)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	bool done;

	if (self->numel)
		find_runs(self, sort, wanted, u);
	else
		find_nothing(self, wanted, u);
	done = u->values && u->firsts && u->counts && u->inverse;
	if (done)
		*u = (struct unique_results){ kept(u->values), kept(u->firsts), kept(u->inverse),
					      kept(u->counts) };
	tensor_scope_leave(&guard);
	return done ? 0 : -thread()->error.code;
}
