// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of unique: rows [n, k] are sorted, runs of equal ones found, and one of each
 * kept. The size of the result depends on the data. */
#include "ops/op.h"

#include "kernels/abi/search.h"

#include "family/copy.h"
#include "family/reinterpret.h"
#include "family/search.h"
#include "family/view.h"

struct unique {
	tensor *rows, *wide;	/* [n, k], contiguous; compared values, for complex rows [n, 2k] */
	tensor *order, *starts; /* i64 [n]; order is NULL if the rows are not reordered */
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

/* Lexicographic: stable sorts by each column, beginning with the last. */
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
	for (int64_t c = u->wide->sizes[1] - 1; c >= 0 && !err; c--) {
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

/* t's memory in another shape with as many elements. */
static tensor *reshaped(tensor *t, const int64_t *sizes, int ndim)
{
	tensor *view = t ? call_view(t, (tensor_ints){ sizes, ndim }) : NULL;
	tensor *result = view ? call_clone(view, TENSOR_PRESERVE_FORMAT) : NULL;

	tensor_put(view);
	tensor_put(t);
	return result;
}

static tensor *comparable(tensor *rows)
{
	if (!dtype_is_complex(rows->dtype))
		return operand_widen(rows);
	return reshaped(call_view_as_real(rows), (int64_t[]){ rows->sizes[0], 2 * rows->sizes[1] },
			2);
}

static int find_runs(const struct tensor_op *op, struct unique *u, bool sort)
{
	runs_kernel fn;

	u->wide = comparable(u->rows);
	fn = u->wide ? (runs_kernel)op_kernel(op, op->kernels, u->wide) : NULL;
	if (!fn)
		return error_code();
	if (sort && sort_rows(op, u) < 0)
		return error_code();
	u->starts = new_ints(u->rows->sizes[0] + 1);
	if (!u->starts)
		return error_code();
	return fn(u->wide, u->order ? u->order->data : NULL, u->starts->data, &u->runs);
}

/* The first row of each run, [runs, k]. */
static tensor *first_rows(const struct unique *u)
{
	int64_t sizes[] = { u->runs, u->rows->sizes[1] }, bytes = sizes[1] * itemsize(u->rows);
	const int64_t *order = u->order ? u->order->data : NULL, *starts = u->starts->data;
	tensor *t = tensor_new_like(u->rows, sizes, 2);

	for (int64_t r = 0; t && r < u->runs; r++)
		memcpy((char *)t->data + r * bytes,
		       (char *)u->rows->data + (order ? order[starts[r]] : starts[r]) * bytes,
		       bytes);
	return t;
}

static tensor *run_indices(const struct unique *u, bool wanted)
{
	int64_t n = u->rows->sizes[0], *starts = u->starts->data;
	const int64_t *order = u->order ? u->order->data : NULL;
	tensor *t = new_ints(wanted ? n : 0);
	int64_t r = 0;

	for (int64_t i = 0; t && wanted && i < n; i++) {
		r += r + 1 < u->runs && i == starts[r + 1];
		((int64_t *)t->data)[order ? order[i] : i] = r;
	}
	return t;
}

static tensor *run_lengths(const struct unique *u, bool wanted)
{
	int64_t *starts = u->starts->data;
	tensor *t = new_ints(wanted ? u->runs : 0);

	starts[u->runs] = u->rows->sizes[0];
	for (int64_t r = 0; t && wanted && r < u->runs; r++)
		((int64_t *)t->data)[r] = starts[r + 1] - starts[r];
	return t;
}

/* Return the results: flat, or as slices along dim d of self. */
static int return_results(struct unique *u, const tensor *self, int d, bool inverse_wanted,
			  bool counts_wanted, tensor **output, tensor **inverse, tensor **counts)
{
	int64_t sizes[TENSOR_MAX_DIMS] = { u->runs };
	tensor *moved;

	*output = first_rows(u);
	*inverse = run_indices(u, inverse_wanted);
	*counts = run_lengths(u, counts_wanted);
	if (d < 0) {
		*output = reshaped(*output, sizes, 1);
		if (inverse_wanted && *inverse)
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
		return reshaped(operand_contiguous(self), sizes, 2);
	for (int i = 0, k = 1; i < self->ndim; i++)
		if (i != d)
			order[k++] = i;
	sizes[0] = self->sizes[d];
	sizes[1] = 1;
	for (int i = 0; i < self->ndim; i++)
		sizes[1] *= i == d ? 1 : self->sizes[i];
	moved = call_permute(self, (tensor_ints){ order, self->ndim });
	rows = moved ? operand_contiguous(moved) : NULL;
	tensor_put(moved);
	return reshaped(rows, sizes, 2);
}

static int unique(const struct tensor_op *op, tensor **output, tensor **inverse, tensor **counts,
		  tensor *self, int d, bool sort, bool return_inverse, bool return_counts)
{
	struct unique u = { .rows = as_rows(self, d) };
	int err = u.rows ? find_runs(op, &u, sort) : error_code();

	/* With a dimension both are always returned, as in PyTorch. */
	if (!err)
		err = return_results(&u, self, d, return_inverse || d >= 0, return_counts || d >= 0,
				     output, inverse, counts);
	release(&u);
	return err;
}

int op_unique(const struct tensor_op *op, tensor **output, tensor **inverse, tensor **counts,
	      tensor *self, bool sorted, bool return_inverse, bool return_counts)
{
	return unique(op, output, inverse, counts, self, -1, true, return_inverse, return_counts);
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
	struct unique u = { .rows = as_rows(self, -1) };
	int err = u.rows ? find_runs(op, &u, true) : error_code();

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
