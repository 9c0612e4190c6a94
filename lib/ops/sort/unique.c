// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of unique: rows [n, k] are sorted, runs of equal ones found, and one of each
 * kept. The size of the result depends on the data. Single elements have a kernel of their own. */
#include "ops/op.h"

#include "kernels/abi/search.h"
#include "ops/sort/unique.h"

#include "family/copy.h"
#include "family/reinterpret.h"
#include "family/search.h"
#include "family/view.h"

struct unique {
	tensor *rows, *wide;	/* [n, k], contiguous; compared values, for complex rows [n, 2k] */
	tensor *order, *starts; /* i64 [n]; order is NULL if the rows are not reordered */
	tensor *numbers;	/* i64 [n], the run of each row; no elements if it is not wanted */
	int64_t runs;
};

static tensor *new_ints(int64_t n)
{
	return tensor_new(TENSOR_DEVICE_CPU, TENSOR_I64, &n, 1);
}

static void release(struct unique *u)
{
	tensor_put(u->rows);
	tensor_put(u->wide);
	tensor_put(u->order);
	tensor_put(u->starts);
	tensor_put(u->numbers);
}

/* Column `column` of the rows in their current order. */
static tensor *column_of(const struct unique *u, int64_t column)
{
	int64_t n = u->wide->sizes[0], k = u->wide->sizes[1], size = itemsize(u->wide);
	tensor *t = tensor_new_like(u->wide, &n, 1);
	const char *from = (const char *)u->wide->data + column * size;

	for (int64_t i = 0; t && i < n; i++)
		memcpy((char *)t->data + i * size, from + ((int64_t *)u->order->data)[i] * k * size,
		       size);
	return t;
}

/*
 * Lexicographic: stable sorts by each column, beginning with the last. One row is sorted; without rows, the number of
 * columns has no limit.
 */
static int sort_rows(const struct tensor_op *op, struct unique *u)
{
	sort_kernel sort = (sort_kernel)op_kernel(op, &kernels_sort, u->wide);
	int64_t n = u->wide->sizes[0], *order;
	int err = 0;

	u->order = new_ints(n);
	if (!sort || !u->order)
		return error_code();
	order = u->order->data;
	for (int64_t i = 0; i < n; i++)
		order[i] = i;
	for (int64_t c = u->wide->sizes[1] - 1; n > 1 && c >= 0 && !err; c--) {
		tensor *column = column_of(u, c), *next = new_ints(n), *at = new_ints(n);
		tensor *values = column ? tensor_new_like(column, &n, 1) : NULL;

		err = values && next && at ? sort(values, at, column, 0, false) : error_code();
		for (int64_t i = 0; !err && i < n; i++)
			((int64_t *)next->data)[i] = order[((int64_t *)at->data)[i]];
		if (!err) {
			memcpy(order, next->data, n * sizeof(*order));
		}
		tensor_put(values);
		tensor_put(at);
		tensor_put(next);
		tensor_put(column);
	}
	return err;
}

/* t's memory in another shape with as many elements; t is given up. */
static tensor *viewed(tensor *t, const int64_t *sizes, int ndim)
{
	tensor *view = t ? call_view(t, (tensor_ints){ sizes, ndim }) : NULL;

	tensor_put(t);
	return view;
}

/* The same as a copy. */
static tensor *reshaped(tensor *t, const int64_t *sizes, int ndim)
{
	tensor *view = viewed(t, sizes, ndim);
	tensor *result = view ? call_clone(view, TENSOR_PRESERVE_FORMAT) : NULL;

	tensor_put(view);
	return result;
}

static tensor *comparable(tensor *rows)
{
	if (!dtype_is_complex(rows->dtype))
		return operand_widen(rows);
	return reshaped(call_view_as_real(rows), (int64_t[]){ rows->sizes[0], 2 * rows->sizes[1] },
			2);
}

static int find_runs(const struct tensor_op *op, struct unique *u, bool sort, bool numbered)
{
	runs_kernel fn;

	u->wide = comparable(u->rows);
	fn = u->wide ? (runs_kernel)op_kernel(op, op->kernels, u->wide) : NULL;
	if (!fn)
		return error_code();
	if (sort && sort_rows(op, u) < 0)
		return error_code();
	u->starts = new_ints(u->rows->sizes[0] + 1);
	u->numbers = new_ints(numbered ? u->rows->sizes[0] : 0);
	if (!u->starts || !u->numbers)
		return error_code();
	return fn(u->wide, u->order ? u->order->data : NULL, u->starts->data,
		  numbered ? u->numbers->data : NULL, &u->runs);
}

/* to[r] = row at[r] of `from`, or row order[at[r]]. bytes is a constant. */
static inline __attribute__((always_inline)) void copy_rows(char *to, const char *from,
							    const int64_t *at, const int64_t *order,
							    int64_t n, int64_t bytes)
{
	for (int64_t r = 0; r < n; r++)
		memcpy(to + r * bytes, from + (order ? order[at[r]] : at[r]) * bytes,
		       (size_t)bytes);
}

static void copy_rows_of(char *to, const char *from, const int64_t *at, const int64_t *order,
			 int64_t n, int64_t bytes)
{
	switch (bytes) {
	case 1:
		copy_rows(to, from, at, order, n, 1);
		break;
	case 2:
		copy_rows(to, from, at, order, n, 2);
		break;
	case 4:
		copy_rows(to, from, at, order, n, 4);
		break;
	case 8:
		copy_rows(to, from, at, order, n, 8);
		break;
	default:
		copy_rows(to, from, at, order, n, bytes);
	}
}

/* The first row of each run, [runs, k], or [runs] if it is flat. */
static tensor *first_rows(const struct unique *u, bool flat)
{
	int64_t sizes[] = { u->runs, u->rows->sizes[1] };
	tensor *t = tensor_new_like(u->rows, sizes, flat ? 1 : 2);

	if (t)
		copy_rows_of(t->data, u->rows->data, u->starts->data,
			     u->order ? u->order->data : NULL, u->runs,
			     sizes[1] * itemsize(u->rows));
	return t;
}

/* Differences of the n positions in starts; the last run ends at `end`. */
static tensor *run_lengths(const int64_t *starts, int64_t n, int64_t end, bool wanted)
{
	tensor *t = new_ints(wanted ? n : 0);
	int64_t *to = t ? t->data : NULL;

	for (int64_t r = 0; to && wanted && r < n; r++)
		to[r] = (r + 1 < n ? starts[r + 1] : end) - starts[r];
	return t;
}

/* Return the results: flat, or as slices along dim d of self. */
static int return_results(struct unique *u, const tensor *self, int d, bool inverse_wanted,
			  bool counts_wanted, tensor **output, tensor **inverse, tensor **counts)
{
	int64_t sizes[TENSOR_MAX_DIMS] = { u->runs };
	tensor *moved;

	*output = first_rows(u, d < 0);
	*inverse = u->numbers;
	u->numbers = NULL;
	*counts = run_lengths(u->starts->data, u->runs, u->rows->sizes[0], counts_wanted);
	if (d < 0) {
		if (inverse_wanted && self->ndim != 1)
			*inverse = reshaped(*inverse, self->sizes, self->ndim);
	} else {
		for (int i = 0, k = 1; i < self->ndim; i++)
			if (i != d)
				sizes[k++] = self->sizes[i];
		*output = reshaped(*output, sizes, self->ndim);
		for (int i = 0; i < self->ndim; i++)
			sizes[i] = i == d ? 0 : i < d ? i + 1 : i;
		moved = *output ? call_permute(*output, (tensor_ints){ sizes, self->ndim }) : NULL;
		tensor_put(*output);
		*output = moved ? operand_contiguous(moved) : NULL;
		tensor_put(moved);
	}
	if (*output && *inverse && *counts)
		return 0;
	tensor_put(*output);
	tensor_put(*inverse);
	tensor_put(*counts);
	*output = *inverse = *counts = NULL;
	return error_code();
}

/* self as [n, 1], or as slices along d. */
static tensor *as_rows(tensor *self, int d)
{
	int64_t order[TENSOR_MAX_DIMS] = { d }, sizes[2] = { self->numel, 1 };
	tensor *moved, *rows;

	if (d < 0)
		return viewed(operand_contiguous(self), sizes, 2);
	for (int i = 0, k = 1; i < self->ndim; i++)
		if (i != d)
			order[k++] = i;
	sizes[0] = self->sizes[d];
	/* Without elements, the product of the other sizes may overflow. */
	sizes[1] = self->numel ? self->numel / self->sizes[d] : 0;
	moved = call_permute(self, (tensor_ints){ order, self->ndim });
	rows = moved ? operand_contiguous(moved) : NULL;
	tensor_put(moved);
	return viewed(rows, sizes, 2);
}

static int of_device(tensor *self, int d, bool sort, bool return_inverse, bool return_counts,
		     tensor **output, tensor **inverse, tensor **counts)
{
	const struct unique_wanted wanted = { false, return_inverse, return_counts };
	struct unique_results u;
	int err = unique_on_device(self, d, sort, &wanted, &u);

	if (err)
		return err;
	*output = u.values;
	*inverse = u.inverse;
	*counts = u.counts;
	tensor_put(u.firsts);
	return 0;
}

static int unique(const struct tensor_op *op, tensor **output, tensor **inverse, tensor **counts,
		  tensor *self, int d, bool sort, bool return_inverse, bool return_counts)
{
	struct unique u = { 0 };
	int err;

	if (unique_is_on_device(self))
		return of_device(self, d, sort, return_inverse || d >= 0, return_counts || d >= 0,
				 output, inverse, counts);
	u.rows = as_rows(self, d);
	err = u.rows ? find_runs(op, &u, sort, return_inverse || d >= 0) : error_code();
	/* With a dimension both are always returned, as in PyTorch. */
	if (!err)
		err = return_results(&u, self, d, return_inverse || d >= 0, return_counts || d >= 0,
				     output, inverse, counts);
	release(&u);
	return err;
}

/* ---- elements ---- */

/* The kernel for self's elements, or NULL: they are rows of one or two numbers. */
static unique_elements_kernel elements_kernel(const tensor *self)
{
	return dtype_is_complex(self->dtype) || dtype_is_f8(self->dtype) ?
		       NULL :
		       (unique_elements_kernel)kernels_unique_elements.fn[backend_key(self)];
}

/* firsts is NULL, or becomes the positions of the first elements. */
static int unique_elements(unique_elements_kernel fn, tensor *self, bool return_inverse,
			   bool return_counts, tensor **output, tensor **firsts, tensor **inverse,
			   tensor **counts)
{
	int64_t n = self->numel, bytes = 32 * n;
	tensor *x = operand_contiguous(self);
	tensor *scratch = tensor_new(TENSOR_DEVICE_CPU, TENSOR_U8, &bytes, 1);
	tensor *at = NULL;
	struct unique_runs u;
	int err;

	*output = *counts = NULL;
	*inverse = return_inverse ?
			   tensor_new(TENSOR_DEVICE_CPU, TENSOR_I64, self->sizes, self->ndim) :
			   new_ints(0);
	err = x && scratch && *inverse ?
		      fn(x, scratch->data, return_inverse ? (*inverse)->data : NULL, &u) :
		      error_code();
	if (!err) {
		*output = tensor_new_like(x, &u.runs, 1);
		*counts = run_lengths(u.starts, u.runs, n, return_counts);
		at = firsts ? new_ints(u.runs) : NULL;
		err = *output && *counts && (at || !firsts) ? 0 : error_code();
	}
	if (!err) {
		copy_rows_of((*output)->data, x->data, u.firsts, NULL, u.runs, itemsize(x));
		if (firsts && u.runs)
			memcpy(at->data, u.firsts, (size_t)u.runs * sizeof(*u.firsts));
	} else {
		tensor_put(*output);
		tensor_put(*inverse);
		tensor_put(*counts);
		tensor_put(at);
		*output = *inverse = *counts = at = NULL;
	}
	if (firsts)
		*firsts = at;
	tensor_put(scratch);
	tensor_put(x);
	return err;
}

int op_unique(const struct tensor_op *op, tensor **output, tensor **inverse, tensor **counts,
	      tensor *self, bool sorted, bool return_inverse, bool return_counts)
{
	unique_elements_kernel fn = elements_kernel(self);

	return fn ? unique_elements(fn, self, return_inverse, return_counts, output, NULL, inverse,
				    counts) :
		    unique(op, output, inverse, counts, self, -1, true, return_inverse,
			   return_counts);
}

/* Position in self of the first element of each run; equal elements keep their order. */
static tensor *run_starts(const struct unique *u)
{
	const int64_t *order = u->order->data, *starts = u->starts->data;
	tensor *t = new_ints(u->runs);

	for (int64_t r = 0; t && r < u->runs; r++)
		((int64_t *)t->data)[r] = order[starts[r]];
	return t;
}

int op_unique_all(const struct tensor_op *op, tensor **values, tensor **indices,
		  tensor **inverse_indices, tensor **counts, tensor *self)
{
	const struct unique_wanted all = { true, true, true };
	unique_elements_kernel fn = elements_kernel(self);
	struct unique_results found;
	struct unique u = { 0 };
	int err;

	if (unique_is_on_device(self)) {
		err = unique_on_device(self, -1, true, &all, &found);
		if (!err) {
			*values = found.values;
			*indices = found.firsts;
			*inverse_indices = found.inverse;
			*counts = found.counts;
		}
		return err;
	}
	if (fn)
		return unique_elements(fn, self, true, true, values, indices, inverse_indices,
				       counts);
	u.rows = as_rows(self, -1);
	err = u.rows ? find_runs(op, &u, true, true) : error_code();
	*indices = err ? NULL : run_starts(&u);
	if (!err)
		err = *indices ? return_results(&u, self, -1, true, true, values, inverse_indices,
						counts) :
				 error_code();
	if (err) {
		tensor_put(*indices);
		*indices = NULL;
	}
	release(&u);
	return err;
}

int op_unique_consecutive(const struct tensor_op *op, tensor **output, tensor **inverse,
			  tensor **counts, tensor *self, bool return_inverse, bool return_counts,
			  int64_t dim)
{
	int d = -1;

	/* Slices along the only dimension are elements, so both forms agree. */
	if (dim != TENSOR_NONE && self->ndim && !(dim == 0 && self->ndim == 1)) {
		d = wrap_dim(op->schema.name, dim, self->ndim);
		if (d < 0)
			return error_code();
	}
	return unique(op, output, inverse, counts, self, d, false, return_inverse, return_counts);
}

int op_unique_dim(const struct tensor_op *op, tensor **output, tensor **inverse, tensor **counts,
		  tensor *self, int64_t dim, bool sorted, bool return_inverse, bool return_counts)
{
	int d = wrap_dim(op->schema.name, dim, self->ndim);

	if (d < 0)
		return error_code();
	return unique(op, output, inverse, counts, self, self->ndim ? d : -1, true, return_inverse,
		      return_counts);
}
