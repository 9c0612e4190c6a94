// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Triangles and diagonals; rot90, tile and repeat_interleave, composed of flip, repeat and
 * index_select. */
#include "kernels/abi/pad.h"
#include "ops/op.h"

#include "family/copy.h"
#include "family/factory.h"
#include "family/index.h"
#include "family/move.h"
#include "family/reduce.h"
#include "family/view.h"

static int triangle(const struct tensor_op *op, tensor **out, tensor *self, int64_t diagonal,
		    bool upper)
{
	const tensor *inputs[] = { self };
	struct op_output o;
	triangle_kernel fn;
	int err;

	if (self->ndim < 2)
		return tensor_fail(EINVAL, "%s: at least 2 dimensions, got shape %s",
				   op->schema.name, SHAPE_STR(self));
	if (output_begin(op, &o, *out, self->dtype, self->sizes, self->ndim, inputs, 1) < 0)
		return error_code();
	fn = (triangle_kernel)op_kernel(op, op->kernels, o.t);
	err = fn ? fn(o.t, self, diagonal, upper) : error_code();
	return output_end(op, &o, out, err);
}

int op_tril(const struct tensor_op *op, tensor **out, tensor *self, int64_t diagonal)
{
	return triangle(op, out, self, diagonal, false);
}

int op_triu(const struct tensor_op *op, tensor **out, tensor *self, int64_t diagonal)
{
	return triangle(op, out, self, diagonal, true);
}

/* ---- diagonals ---- */

tensor *explicit_diag_embed(tensor *self, int64_t offset, int64_t dim1, int64_t dim2)
{
	int64_t sizes[TENSOR_MAX_DIMS], n, side;
	int a, b, ndim = self->ndim + 1;
	tensor *t, *diagonal;

	if (!self->ndim || ndim > TENSOR_MAX_DIMS)
		return tensor_fail_null(EINVAL, "diag_embed: 1 to %d dimensions, got shape %s",
					TENSOR_MAX_DIMS - 1, SHAPE_STR(self));
	a = wrap_dim("diag_embed", dim1, ndim);
	b = a < 0 ? -1 : wrap_dim("diag_embed", dim2, ndim);
	if (b < 0)
		return NULL;
	if (a == b)
		return tensor_fail_null(EINVAL, "diag_embed: dim1 and dim2 are both %d", a);
	n = self->sizes[self->ndim - 1];
	if (offset == INT64_MIN || __builtin_add_overflow(n, offset < 0 ? -offset : offset, &side))
		return tensor_fail_null(EOVERFLOW, "diag_embed: the size of the diagonal's "
						   "dimensions overflows");
	for (int i = 0, k = 0; i < ndim; i++)
		sizes[i] = i == a || i == b ? side : self->sizes[k++];
	t = call_zeros((tensor_ints){ sizes, ndim },
		       (tensor_options){ .dtype = self->dtype, .device = self->device });
	diagonal = t ? view_diagonal(t, offset, a, b) : NULL;
	if (!diagonal || operand_copy(diagonal, self) < 0) {
		tensor_put(t);
		t = NULL;
	}
	tensor_put(diagonal);
	return t;
}

tensor *composite_diag(tensor *self, int64_t diagonal)
{
	tensor *view, *t;

	if (self->ndim == 1)
		return call_diag_embed(self, diagonal, 0, 1);
	if (self->ndim != 2)
		return tensor_fail_null(EINVAL, "diag: a vector or a matrix, got shape %s",
					SHAPE_STR(self));
	view = call_diagonal(self, diagonal, 0, 1);
	t = view ? call_clone(view, TENSOR_PRESERVE_FORMAT) : NULL;
	tensor_put(view);
	return t;
}

tensor *composite_diagflat(tensor *self, int64_t offset)
{
	tensor *flat = composite_reshape(self, TENSOR_INTS(-1));
	tensor *t = flat ? call_diag_embed(flat, offset, 0, 1) : NULL;

	tensor_put(flat);
	return t;
}

tensor *composite_trace(tensor *self)
{
	tensor *view, *t;

	if (self->ndim != 2)
		return tensor_fail_null(EINVAL, "trace: a matrix, got shape %s", SHAPE_STR(self));
	view = call_diagonal(self, 0, 0, 1);
	t = view ? call_sum(view, TENSOR_DTYPE_NONE) : NULL;
	tensor_put(view);
	return t;
}

/* ---- flips and rotations ---- */

tensor *composite_fliplr(tensor *self)
{
	if (self->ndim < 2)
		return tensor_fail_null(EINVAL, "fliplr: at least 2 dimensions, got shape %s",
					SHAPE_STR(self));
	return call_flip(self, TENSOR_INTS(1));
}

tensor *composite_flipud(tensor *self)
{
	if (self->ndim < 1)
		return tensor_fail_null(EINVAL, "flipud: at least 1 dimension, got shape %s",
					SHAPE_STR(self));
	return call_flip(self, TENSOR_INTS(0));
}

tensor *composite_rot90(tensor *self, int64_t k, tensor_ints dims)
{
	tensor *turned, *t;
	int a, b;

	if (dims.len != 2 || self->ndim < 2)
		return tensor_fail_null(EINVAL,
					"rot90: 2 of at least 2 dimensions, got %lld for "
					"shape %s",
					(long long)dims.len, SHAPE_STR(self));
	a = wrap_dim("rot90", dims.data[0], self->ndim);
	b = a < 0 ? -1 : wrap_dim("rot90", dims.data[1], self->ndim);
	if (b < 0)
		return NULL;
	if (a == b)
		return tensor_fail_null(EINVAL, "rot90: the dimensions are both %d", a);
	switch ((k % 4 + 4) % 4) {
	case 1:
		turned = call_flip(self, TENSOR_INTS(b));
		break;
	case 2:
		return call_flip(self, TENSOR_INTS(a, b));
	case 3:
		turned = call_flip(self, TENSOR_INTS(a));
		break;
	default:
		return call_clone(self, TENSOR_PRESERVE_FORMAT);
	}
	t = turned ? call_transpose_int(turned, a, b) : NULL;
	tensor_put(turned);
	return t;
}

/* ---- repetitions ---- */

tensor *composite_tile(tensor *self, tensor_ints dims)
{
	int64_t all[TENSOR_MAX_DIMS];
	int missing = self->ndim - (int)dims.len;

	if (missing <= 0)
		return call_repeat(self, dims);
	for (int i = 0; i < self->ndim; i++)
		all[i] = i < missing ? 1 : dims.data[i - missing];
	return call_repeat(self, (tensor_ints){ all, self->ndim });
}

/* Position i, repeats[i] times; repeats is a vector of i64 or i32. */
tensor *explicit_repeat_interleave(tensor *repeats, int64_t output_size)
{
	tensor *wide, *flat, *t = NULL;
	const int64_t *n;
	int64_t total = 0, *to;

	if (repeats->ndim != 1 || (repeats->dtype != TENSOR_I64 && repeats->dtype != TENSOR_I32))
		return tensor_fail_null(EINVAL,
					"repeat_interleave: repeats must be a vector of i64 "
					"or i32, got %s %s",
					tensor_dtype_name(repeats->dtype), SHAPE_STR(repeats));
	wide = operand_cast(repeats, TENSOR_I64);
	flat = wide ? operand_on_host(wide) : NULL;
	tensor_put(wide);
	if (!flat)
		return NULL;
	n = flat->data;
	for (int64_t i = 0; i < flat->numel; i++) {
		if (n[i] < 0) {
			tensor_fail(EINVAL,
				    "repeat_interleave: repeats must not be negative, got "
				    "%lld",
				    (long long)n[i]);
			goto out;
		}
		if (__builtin_add_overflow(total, n[i], &total)) {
			tensor_fail(EOVERFLOW, "repeat_interleave: the sum of repeats overflows");
			goto out;
		}
	}
	if (output_size != TENSOR_NONE && output_size != total) {
		tensor_fail(EINVAL,
			    "repeat_interleave: output_size is %lld, repeats add up to %lld",
			    (long long)output_size, (long long)total);
		goto out;
	}
	t = tensor_new_opt((tensor_options){ .dtype = repeats->dtype }, &total, 1);
	to = t && repeats->dtype == TENSOR_I64 ? t->data : NULL;
	for (int64_t i = 0, k = 0; t && i < flat->numel; i++)
		for (int64_t j = 0; j < n[i]; j++, k++) {
			if (to)
				to[k] = i;
			else
				((int32_t *)t->data)[k] = (int32_t)i;
		}
	if (t && repeats->device.type != TENSOR_CPU) {
		tensor *host = t;

		t = call__to_copy(host, (tensor_options){ .device = repeats->device });
		tensor_put(host);
	}
out:
	tensor_put(flat);
	return t;
}

/* The tensor to repeat and its dimension: self flattened if no dimension is given. Owned. */
static tensor *to_interleave(tensor *self, int64_t dim, int *d)
{
	tensor *flat;

	if (dim == TENSOR_NONE) {
		*d = 0;
		return composite_reshape(self, TENSOR_INTS(-1));
	}
	*d = wrap_dim("repeat_interleave", dim, self->ndim);
	if (*d < 0)
		return NULL;
	flat = self->ndim ? tensor_get(self) : call_unsqueeze(self, 0);
	return flat;
}

tensor *composite_repeat_interleave_tensor(tensor *self, tensor *repeats, int64_t dim,
					   int64_t output_size)
{
	int d;
	tensor *from = to_interleave(self, dim, &d), *wide = NULL, *index, *t = NULL;

	if (!from)
		return NULL;
	if (!repeats->ndim || (repeats->ndim == 1 && repeats->numel == 1)) {
		tensor *one = composite_reshape(repeats, TENSOR_INTS(1));

		wide = one ? call_expand(one, TENSOR_INTS(from->sizes[d])) : NULL;
		tensor_put(one);
	} else if (repeats->ndim == 1 && repeats->numel == from->sizes[d]) {
		wide = tensor_get(repeats);
	} else {
		tensor_fail(EINVAL,
			    "repeat_interleave: repeats must have %lld elements, got shape "
			    "%s",
			    (long long)from->sizes[d], SHAPE_STR(repeats));
	}
	index = wide ? call_repeat_interleave_Tensor(wide, output_size) : NULL;
	t = index ? call_index_select(from, d, index) : NULL;
	tensor_put(index);
	tensor_put(wide);
	tensor_put(from);
	return t;
}

tensor *composite_repeat_interleave_int(tensor *self, int64_t repeats, int64_t dim,
					int64_t output_size)
{
	int64_t sizes[TENSOR_MAX_DIMS + 1];
	int d;
	tensor *from, *wide, *spread = NULL, *copy = NULL, *t = NULL;

	if (repeats < 0)
		return tensor_fail_null(EINVAL,
					"repeat_interleave: repeats must not be negative, "
					"got %lld",
					(long long)repeats);
	from = to_interleave(self, dim, &d);
	if (!from)
		return NULL;
	if (output_size != TENSOR_NONE && output_size != from->sizes[d] * repeats) {
		tensor_put(from);
		return tensor_fail_null(EINVAL,
					"repeat_interleave: output_size is %lld, but %lld "
					"positions come out",
					(long long)output_size,
					(long long)(from->sizes[d] * repeats));
	}
	wide = call_unsqueeze(from, d + 1);
	if (wide) {
		memcpy(sizes, wide->sizes, wide->ndim * sizeof(*sizes));
		sizes[d + 1] = repeats;
		spread = call_expand(wide, (tensor_ints){ sizes, wide->ndim });
	}
	if (spread) {
		memcpy(sizes, from->sizes, from->ndim * sizeof(*sizes));
		sizes[d] *= repeats;
		/* Copy even a single repetition: the result must not be a view. */
		copy = call_clone(spread, TENSOR_PRESERVE_FORMAT);
		t = copy ? composite_reshape(copy, (tensor_ints){ sizes, from->ndim }) : NULL;
	}
	tensor_put(from);
	tensor_put(wide);
	tensor_put(spread);
	tensor_put(copy);
	return t;
}
