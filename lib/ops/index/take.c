// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* take and put, which index the flattened tensor, and take_along_dim. */
#include "iter/iter.h"
#include "ops/op.h"

#include "family/index_tensor.h"
#include "family/compare.h"
#include "family/copy.h"
#include "family/index.h"
#include "family/move.h"
#include "family/pointwise.h"
#include "family/ternary.h"
#include "family/view.h"

/* ---- take, put: on the flattened tensor ---- */

tensor *composite_take(tensor *self, tensor *index)
{
	tensor *flat = composite_reshape(self, TENSOR_INTS(-1)), *t;
	tensor *const list[] = { index };

	if (index->dtype != TENSOR_I64 && index->dtype != TENSOR_I32) {
		tensor_put(flat);
		return tensor_fail_null(EINVAL, "take: index must be i64, got %s",
					tensor_dtype_name(index->dtype));
	}
	t = flat ? composite_index(flat, (tensor_list){ list, 1 }) : NULL;
	tensor_put(flat);
	return t;
}

static int check_put(const tensor *self, const tensor *index, const tensor *source)
{
	if (index->dtype != TENSOR_I64 && index->dtype != TENSOR_I32)
		return tensor_fail(EINVAL, "put: index must be i64, got %s",
				   tensor_dtype_name(index->dtype));
	if (source->dtype != self->dtype)
		return tensor_fail(EINVAL,
				   "put: self and source must have one dtype, got %s and "
				   "%s",
				   tensor_dtype_name(self->dtype),
				   tensor_dtype_name(source->dtype));
	if (index->numel != source->numel)
		return tensor_fail(EINVAL,
				   "put: index %s and source %s must have the same number "
				   "of elements",
				   SHAPE_STR(index), SHAPE_STR(source));
	return 0;
}

/* Common part of put and put_: the flattened self with the source written to it. */
static tensor *put_flat(tensor *self, tensor *index, tensor *source, bool accumulate)
{
	tensor *flat = composite_reshape(self, TENSOR_INTS(-1));
	tensor *from = composite_reshape(source, TENSOR_INTS(-1));
	tensor *at = composite_reshape(index, TENSOR_INTS(-1)), *t = NULL;
	tensor *const list[] = { at };

	if (flat && from && at)
		t = composite_index_put(flat, (tensor_list){ list, 1 }, from, accumulate);
	tensor_put(flat);
	tensor_put(from);
	tensor_put(at);
	return t;
}

tensor *composite_put(tensor *self, tensor *index, tensor *source, bool accumulate)
{
	tensor *flat, *t;

	if (check_put(self, index, source) < 0)
		return NULL;
	flat = put_flat(self, index, source, accumulate);
	t = flat ? call_view(flat, (tensor_ints){ self->sizes, self->ndim }) : NULL;
	tensor_put(flat);
	return t;
}

tensor *composite_put_(tensor *self, tensor *index, tensor *source, bool accumulate)
{
	tensor *changed = composite_put(self, index, source, accumulate), *t;

	t = changed ? call_copy_(self, changed) : NULL;
	tensor_put(changed);
	return t;
}

/* ---- take_along_dim ---- */

/* t expanded to `sizes` in all dimensions but d. */
static tensor *expand_but(tensor *t, const int64_t *sizes, int ndim, int d)
{
	int64_t want[TENSOR_MAX_DIMS];

	memcpy(want, sizes, ndim * sizeof(*sizes));
	want[d] = t->sizes[d];
	return call_expand(t, (tensor_ints){ want, ndim });
}

/* Wrap negative positions of a dimension of size n. */
static tensor *from_the_end(tensor *indices, int64_t n)
{
	tensor *negative = call_lt_Scalar(indices, tensor_scalar_int(0));
	tensor *moved =
		negative ? call_add_Scalar(indices, tensor_scalar_int(n), tensor_scalar_int(1)) :
			   NULL;
	tensor *t = moved ? call_where_self(negative, moved, indices) : NULL;

	tensor_put(negative);
	tensor_put(moved);
	return t;
}

/* gather with negative positions. */
static tensor *gather_wrapped(tensor *self, int d, tensor *indices)
{
	tensor *at = from_the_end(indices, self->ndim ? self->sizes[d] : 1);
	tensor *t = at ? call_gather(self, d, at) : NULL;

	tensor_put(at);
	return t;
}

tensor *composite_take_along_dim(tensor *self, tensor *indices, int64_t dim)
{
	struct tensor a = *self, b = *indices;
	tensor *from = NULL, *at = NULL, *t = NULL;
	int64_t sizes[TENSOR_MAX_DIMS];
	int d, ndim;

	if (indices->dtype != TENSOR_I64)
		return tensor_fail_null(EINVAL, "take_along_dim: indices must be i64, got %s",
					tensor_dtype_name(indices->dtype));
	if (dim == TENSOR_NONE) {
		from = composite_reshape(self, TENSOR_INTS(-1));
		at = composite_reshape(indices, TENSOR_INTS(-1));
		t = from && at ? gather_wrapped(from, 0, at) : NULL;
		goto out;
	}
	if (self->ndim != indices->ndim)
		return tensor_fail_null(EINVAL,
					"take_along_dim: self %s and indices %s must have "
					"the same number of dimensions",
					SHAPE_STR(self), SHAPE_STR(indices));
	d = wrap_dim("take_along_dim", dim, self->ndim);
	if (d < 0)
		return NULL;
	a.sizes[d] = b.sizes[d] = 1;
	ndim = iter_broadcast_sizes("take_along_dim", &a, &b, sizes);
	if (ndim < 0)
		return NULL;
	from = ndim ? expand_but(self, sizes, ndim, d) : tensor_get(self);
	at = ndim ? expand_but(indices, sizes, ndim, d) : tensor_get(indices);
	t = from && at ? gather_wrapped(from, d, at) : NULL;
out:
	tensor_put(from);
	tensor_put(at);
	return t;
}
