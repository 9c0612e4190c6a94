// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Advanced indexing, self[i, j]: masks are converted to positions, index tensors are broadcast and
 * stacked; _index and _index_put do the rest and have the derivatives.
 */
#include "kernels/abi/index.h"
#include "iter/indexed.h"
#include "ops/op.h"

#include "family/index_tensor.h"
#include "family/compare.h"
#include "family/copy.h"
#include "family/index.h"
#include "family/move.h"
#include "family/pointwise.h"
#include "family/ternary.h"
#include "family/view.h"

/* ---- _index, _index_put: stacked indices ---- */

static int check_stacked(const struct tensor_op *op, const tensor *self, const tensor *at,
			 tensor_ints dims, int *d)
{
	if (at->dtype != TENSOR_I64 || at->ndim < 1 || dims.len < 1 || dims.len > self->ndim ||
	    at->sizes[0] != dims.len)
		return tensor_fail(EINVAL,
				   "%s: at must be i64 with one row for each of %lld "
				   "dimensions, got %s %s",
				   op->schema.name, (long long)dims.len,
				   tensor_dtype_name(at->dtype), SHAPE_STR(at));
	for (int i = 0; i < dims.len; i++) {
		d[i] = wrap_dim(op->schema.name, dims.data[i], self->ndim);
		if (d[i] < 0)
			return error_code();
		if (i && d[i] <= d[i - 1])
			return tensor_fail(EINVAL, "%s: dims must ascend", op->schema.name);
	}
	return 0;
}

int op_index_at(const struct tensor_op *op, tensor **out, tensor *self, tensor *at,
		tensor_ints dims)
{
	const tensor *inputs[] = { self, at };
	int d[TENSOR_MAX_DIMS], err = 0;
	struct op_output o;
	struct indexed r;

	if (check_stacked(op, self, at, dims, d) < 0 ||
	    indexed_build(&r, "index", self, at, d, (int)dims.len) < 0 ||
	    output_begin_apart(op, &o, *out, self->dtype, r.sizes, r.ndim, inputs, 2) < 0)
		return error_code();
	if (o.t->numel) {
		index_take_kernel fn = (index_take_kernel)op_kernel(op, op->kernels, o.t);

		err = fn ? fn(o.t, self, at, d, (int)dims.len) : error_code();
	}
	return output_end(op, &o, out, err);
}

/* values expanded to the shape of self[at]. Owned. */
static tensor *spread_values(const struct tensor_op *op, const struct indexed *r, tensor *values)
{
	int64_t strides[TENSOR_MAX_DIMS];
	char text[SHAPE_TEXT];
	int lead = r->ndim - values->ndim, skip = 0;

	/* Ignore leading dimensions of size 1, as NumPy does in assignments. */
	while (lead < 0 && skip < -lead && values->sizes[skip] == 1)
		skip++;
	for (int i = 0; lead + skip >= 0 && i < r->ndim; i++) {
		int own = i - lead;

		strides[i] = 0;
		if (own < skip || own < 0 || (values->sizes[own] == 1 && r->sizes[i] != 1))
			continue;
		if (values->sizes[own] != r->sizes[i])
			goto mismatch;
		strides[i] = values->strides[own];
	}
	if (lead + skip >= 0)
		return tensor_new_view(values, r->sizes, strides, r->ndim, values->offset);
mismatch:
	return tensor_fail_null(EINVAL, "%s: values %s do not broadcast to the indexed shape %s",
				op->schema.name, SHAPE_STR(values),
				format_sizes(r->sizes, r->ndim, text, sizeof(text)));
}

int op_index_put_at(const struct tensor_op *op, tensor **out, tensor *self, tensor *at,
		    tensor_ints dims, tensor *values, bool accumulate)
{
	const tensor *inputs[] = { at, values, self };
	int n = op->variant == VARIANT_INPLACE ? 2 : 3, err = 0, d[TENSOR_MAX_DIMS];
	struct op_output o;
	struct indexed r;
	tensor *from;

	if (check_stacked(op, self, at, dims, d) < 0 ||
	    indexed_build(&r, "index_put", self, at, d, (int)dims.len) < 0)
		return error_code();
	if (values->dtype != self->dtype)
		return tensor_fail(EINVAL,
				   "index_put: self and values must have one dtype, got %s "
				   "and %s",
				   tensor_dtype_name(self->dtype),
				   tensor_dtype_name(values->dtype));
	from = spread_values(op, &r, values);
	if (!from || output_begin_like(op, &o, *out, self->dtype, self, inputs, n) < 0) {
		tensor_put(from);
		return error_code();
	}
	if (o.t != self)
		err = operand_copy(o.t, self);
	if (!err && from->numel) {
		index_put_kernel fn = (index_put_kernel)op_kernel(op, op->kernels, o.t);

		err = fn ? fn("index_put", o.t, at, d, (int)dims.len, from,
			      accumulate ? SCATTER_ADD : SCATTER_SET) :
			   error_code();
	}
	tensor_put(from);
	return output_end(op, &o, out, err);
}

/* ---- list of indices to one tensor ---- */

struct indices {
	int n; /* number of indexed dimensions */
	int64_t dims[TENSOR_MAX_DIMS];
	tensor *of[TENSOR_MAX_DIMS]; /* owned, i64 */
	tensor *at;		     /* owned: all indices, broadcast and stacked */
};

static void indices_free(struct indices *x)
{
	for (int i = 0; i < x->n; i++)
		tensor_put(x->of[i]);
	tensor_put(x->at);
}

/* True if the mask has the sizes of self from dimension dim on. A size of 0 fits any, because such a
 * mask selects nothing. */
static bool mask_fits(const tensor *self, int dim, const tensor *mask)
{
	for (int i = 0; i < mask->ndim; i++)
		if (mask->sizes[i] && mask->sizes[i] != self->sizes[dim + i])
			return false;
	return true;
}

/* Add a mask over dimensions dim, dim + 1, ... of self as one tensor of positions per dimension. */
static int add_mask(struct indices *x, const char *op, const tensor *self, int dim, tensor *mask)
{
	tensor *where;
	int err = 0;

	if (dim + mask->ndim > self->ndim)
		return tensor_fail(EINVAL, "%s: too many indices for shape %s", op,
				   SHAPE_STR(self));
	if (!mask_fits(self, dim, mask))
		return tensor_fail(EINVAL,
				   "%s: the mask %s at dimension %d does not match the shape %s",
				   op, SHAPE_STR(mask), dim, SHAPE_STR(self));
	where = call_nonzero(mask);
	if (!where)
		return error_code();
	for (int i = 0; !err && i < mask->ndim; i++) {
		x->dims[x->n] = dim + i;
		x->of[x->n] = call_select_int(where, 1, i);
		if (x->of[x->n])
			x->n++;
		else
			err = error_code();
	}
	tensor_put(where);
	return err;
}

static int add_index(struct indices *x, const char *op, const tensor *self, int *dim, tensor *index)
{
	if (*dim >= self->ndim && !(index->dtype <= TENSOR_U8 && !index->ndim))
		return tensor_fail(EINVAL, "%s: too many indices for shape %s", op,
				   SHAPE_STR(self));
	if (index->dtype == TENSOR_BOOL || index->dtype == TENSOR_U8) {
		int err = add_mask(x, op, self, *dim, index);

		*dim += index->ndim;
		return err;
	}
	if (index->dtype != TENSOR_I64 && index->dtype != TENSOR_I32)
		return tensor_fail(EINVAL, "%s: indices must be i64, i32, bool or u8, got %s", op,
				   tensor_dtype_name(index->dtype));
	x->dims[x->n] = (*dim)++;
	x->of[x->n] = operand_cast(index, TENSOR_I64);
	return x->of[x->n] ? (x->n++, 0) : error_code();
}

/* Compute the shape to which all indices broadcast. */
static int broadcast_indices(const struct indices *x, const char *op, int64_t *sizes)
{
	struct tensor shape = { .ndim = 0 };

	for (int i = 0; i < x->n; i++) {
		int64_t next[TENSOR_MAX_DIMS];
		int ndim = iter_broadcast_sizes(op, &shape, x->of[i], next);

		if (ndim < 0)
			return -1;
		shape.ndim = ndim;
		memcpy(shape.sizes, next, ndim * sizeof(*next));
	}
	memcpy(sizes, shape.sizes, shape.ndim * sizeof(*sizes));
	return shape.ndim;
}

/* Stack the indices, of batched tensors. */
static int stack_batched(struct indices *x, const int64_t *sizes, int ndim)
{
	tensor *list[TENSOR_MAX_DIMS];
	int n = 0;

	for (; n < x->n; n++) {
		list[n] = call_expand(x->of[n], (tensor_ints){ sizes, ndim });
		if (!list[n])
			break;
	}
	if (n == x->n)
		x->at = call_stack((tensor_list){ list, n }, 0);
	while (n--)
		tensor_put(list[n]);
	return x->at ? 0 : error_code();
}

static bool any_batched(const struct indices *x)
{
	uint32_t keys = 0;

	for (int i = 0; i < x->n; i++)
		keys |= x->of[i]->keys;
	return keys & BATCHED_BIT;
}

/* A single contiguous index tensor needs no copy. */
static int stack(struct indices *x, const char *op)
{
	int64_t sizes[TENSOR_MAX_DIMS + 1], strides[TENSOR_MAX_DIMS];
	int ndim = broadcast_indices(x, op, sizes + 1);

	if (ndim < 0)
		return error_code();
	if (ndim + 1 > TENSOR_MAX_DIMS)
		return tensor_fail(EINVAL, "%s: indices of at most %d dimensions", op,
				   TENSOR_MAX_DIMS - 1);
	if (unlikely(any_batched(x)))
		return stack_batched(x, sizes + 1, ndim);
	sizes[0] = x->n;
	if (x->n == 1 && x->of[0]->contiguous) {
		strides[0] = x->of[0]->numel;
		contiguous_strides(sizes + 1, ndim, strides + 1);
		x->at = tensor_new_view(x->of[0], sizes, strides, ndim + 1, x->of[0]->offset);
		return x->at ? 0 : error_code();
	}
	x->at = tensor_new(x->of[0]->device, TENSOR_I64, sizes, ndim + 1);
	for (int i = 0; x->at && i < x->n; i++) {
		tensor *row = call_select_int(x->at, 0, i);
		int err = row ? operand_copy(row, x->of[i]) : error_code();

		tensor_put(row);
		if (err)
			return err;
	}
	return x->at ? 0 : error_code();
}

static int indices_init(struct indices *x, const char *op, const tensor *self, tensor_list list)
{
	int dim = 0, err = 0;

	x->n = 0;
	x->at = NULL;
	for (int64_t i = 0; !err && i < list.len; i++) {
		if (list.data[i] == tensor_none || !list.data[i])
			dim++;
		else
			err = add_index(x, op, self, &dim, list.data[i]);
	}
	if (!err && dim > self->ndim)
		err = tensor_fail(EINVAL, "%s: too many indices for shape %s", op, SHAPE_STR(self));
	if (!err && x->n)
		err = stack(x, op);
	if (err)
		indices_free(x);
	return err;
}

/* ---- index, index_put ---- */

/* A 0-d mask adds a dimension, of size 1 if it is true, else 0. */
static bool has_zero_dim_mask(tensor_list list)
{
	for (int64_t i = 0; i < list.len; i++) {
		const tensor *t = list.data[i];

		if (t && t != tensor_none && !t->ndim && t->dtype <= TENSOR_U8)
			return true;
	}
	return false;
}

tensor *composite_index(tensor *self, tensor_list indices)
{
	struct indices x;
	tensor *t;

	if (has_zero_dim_mask(indices) && indices.len == 1) {
		tensor *wide = call_unsqueeze(self, 0);
		tensor *mask = wide ? call_unsqueeze(indices.data[0], 0) : NULL;
		tensor *const list[] = { mask };

		t = mask ? composite_index(wide, (tensor_list){ list, 1 }) : NULL;
		tensor_put(wide);
		tensor_put(mask);
		return t;
	}
	if (has_zero_dim_mask(indices))
		return tensor_fail_null(EOPNOTSUPP, "index: a 0-d mask must be the only index");
	if (indices_init(&x, "index", self, indices) < 0)
		return NULL;
	t = x.n ? call__index(self, x.at, (tensor_ints){ x.dims, x.n }) : call_alias(self);
	indices_free(&x);
	return t;
}

/* values in self's dtype: only 0-d tensors are converted. */
static tensor *values_like(tensor *self, tensor *values)
{
	if (values->dtype != self->dtype && values->ndim == 0 && values->numel == 1)
		return call__to_copy(values, (tensor_options){ .dtype = self->dtype });
	return tensor_get(values);
}

static tensor *index_put(tensor *self, tensor_list indices, tensor *values, bool accumulate,
			 bool inplace)
{
	tensor *(*fn)(tensor *, tensor *, tensor_ints, tensor *, bool) =
		inplace ? call__index_put_ : call__index_put;
	struct indices x;
	tensor *from, *t = NULL;

	if (has_zero_dim_mask(indices))
		return tensor_fail_null(EOPNOTSUPP, "index_put: a 0-d mask is not supported");
	if (indices_init(&x, "index_put", self, indices) < 0)
		return NULL;
	from = values_like(self, values);
	if (!x.n)
		tensor_fail(EINVAL, "index_put: at least one index is needed");
	else if (from)
		t = fn(self, x.at, (tensor_ints){ x.dims, x.n }, from, accumulate);
	tensor_put(from);
	indices_free(&x);
	return t;
}

tensor *composite_index_put(tensor *self, tensor_list indices, tensor *values, bool accumulate)
{
	return index_put(self, indices, values, accumulate, false);
}

tensor *composite_index_put_(tensor *self, tensor_list indices, tensor *values, bool accumulate)
{
	return index_put(self, indices, values, accumulate, true);
}
