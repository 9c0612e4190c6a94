// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Views composed of other views: aliases, several dimensions at once, sizes of another tensor. */
#include "ops/op.h"

#include "family/copy.h"
#include "family/shape.h"
#include "family/view.h"

/* ---- sizes of another tensor ---- */

tensor *composite_view_as(tensor *self, tensor *other)
{
	return call_view(self, (tensor_ints){ other->sizes, other->ndim });
}

tensor *composite_reshape_as(tensor *self, tensor *other)
{
	return composite_reshape(self, (tensor_ints){ other->sizes, other->ndim });
}

tensor *composite_expand_as(tensor *self, tensor *other)
{
	return call_expand(self, (tensor_ints){ other->sizes, other->ndim });
}

tensor *composite_broadcast_to(tensor *self, tensor_ints size)
{
	return call_expand(self, size);
}

/* ---- fewer and more dimensions ---- */

tensor *composite_flatten(tensor *self, int64_t start_dim, int64_t end_dim)
{
	int64_t sizes[TENSOR_MAX_DIMS], n = 1;
	int a = wrap_dim("flatten", start_dim, self->ndim), b, k = 0;

	b = a < 0 ? -1 : wrap_dim("flatten", end_dim, self->ndim);
	if (b < 0)
		return NULL;
	if (a > b)
		return tensor_fail_null(EINVAL, "flatten: start_dim %d is after end_dim %d", a, b);
	if (!self->ndim)
		return composite_reshape(self, TENSOR_INTS(1));
	if (a == b)
		return call_alias(self);
	for (int i = 0; i < self->ndim; i++) {
		if (i >= a && i <= b)
			n *= self->sizes[i];
		if (i < a || i > b)
			sizes[k++] = self->sizes[i];
		else if (i == b)
			sizes[k++] = n;
	}
	return call_reshape(self, (tensor_ints){ sizes, k });
}

tensor *composite_ravel(tensor *self)
{
	tensor *dense = call_contiguous(self, TENSOR_CONTIGUOUS_FORMAT),
	       *t = dense ? call_view(dense, TENSOR_INTS(-1)) : NULL;

	tensor_put(dense);
	return t;
}

tensor *composite_unflatten(tensor *self, int64_t dim, tensor_ints sizes)
{
	int64_t shape[TENSOR_MAX_DIMS], known = 1;
	int d = wrap_dim("unflatten", dim, self->ndim), k = 0, unknown = -1;

	if (d < 0)
		return NULL;
	if (!self->ndim || sizes.len < 1 || self->ndim - 1 + sizes.len > TENSOR_MAX_DIMS)
		return tensor_fail_null(EINVAL,
					"unflatten: %lld sizes for dimension %d of shape %s",
					(long long)sizes.len, d, SHAPE_STR(self));
	for (int i = 0; i < self->ndim; i++) {
		if (i != d) {
			shape[k++] = self->sizes[i];
			continue;
		}
		for (int64_t j = 0; j < sizes.len; j++) {
			if (sizes.data[j] == -1 && unknown < 0)
				unknown = k;
			else if (sizes.data[j] < 0 ||
				 __builtin_mul_overflow(known, sizes.data[j], &known))
				goto mismatch;
			shape[k++] = sizes.data[j];
		}
	}
	if (unknown >= 0) {
		if (!known || self->sizes[d] % known)
			goto mismatch;
		shape[unknown] = self->sizes[d] / known;
		known *= shape[unknown];
	}
	if (known != self->sizes[d])
		goto mismatch;
	return call_view(self, (tensor_ints){ shape, k });
mismatch:
	return tensor_fail_null(EINVAL,
				"unflatten: the sizes do not multiply to the size %lld of "
				"dimension %d",
				(long long)self->sizes[d], d);
}

tensor *composite_atleast_1d(tensor *self)
{
	return self->ndim ? tensor_get(self) : call_view(self, TENSOR_INTS(1));
}

tensor *composite_atleast_2d(tensor *self)
{
	if (self->ndim == 0)
		return call_view(self, TENSOR_INTS(1, 1));
	return self->ndim == 1 ? call_unsqueeze(self, 0) : tensor_get(self);
}

tensor *composite_atleast_3d(tensor *self)
{
	tensor *wide, *t;

	if (self->ndim == 0)
		return call_view(self, TENSOR_INTS(1, 1, 1));
	if (self->ndim > 2)
		return tensor_get(self);
	if (self->ndim == 2)
		return call_unsqueeze(self, 2);
	wide = call_unsqueeze(self, 0);
	t = wide ? call_unsqueeze(wide, 2) : NULL;
	tensor_put(wide);
	return t;
}

/* ---- order of dimensions ---- */

tensor *composite_movedim(tensor *self, tensor_ints source, tensor_ints destination)
{
	int64_t order[TENSOR_MAX_DIMS];
	uint32_t moved = 0, placed = 0;

	if (source.len != destination.len)
		return tensor_fail_null(EINVAL,
					"movedim: source has %lld dimensions, destination %lld",
					(long long)source.len, (long long)destination.len);
	for (int64_t i = 0; i < source.len; i++) {
		int from = wrap_dim("movedim", source.data[i], self->ndim), to;

		to = from < 0 ? -1 : wrap_dim("movedim", destination.data[i], self->ndim);
		if (to < 0)
			return NULL;
		if (moved >> from & 1 || placed >> to & 1)
			return tensor_fail_null(EINVAL, "movedim: a dimension occurs twice");
		moved |= 1u << from;
		placed |= 1u << to;
		order[to] = from;
	}
	if (!self->ndim)
		return call_alias(self);
	for (int to = 0, from = 0; to < self->ndim; to++) {
		if (placed >> to & 1)
			continue;
		while (moved >> from & 1)
			from++;
		order[to] = from++;
	}
	return call_permute(self, (tensor_ints){ order, self->ndim });
}

tensor *composite_movedim_int(tensor *self, int64_t source, int64_t destination)
{
	return composite_movedim(self, TENSOR_INTS(source), TENSOR_INTS(destination));
}

tensor *composite_swapaxes(tensor *self, int64_t axis0, int64_t axis1)
{
	return call_transpose_int(self, axis0, axis1);
}

tensor *composite_numpy_T(tensor *self)
{
	int64_t order[TENSOR_MAX_DIMS];

	for (int i = 0; i < self->ndim; i++)
		order[i] = self->ndim - 1 - i;
	return call_permute(self, (tensor_ints){ order, self->ndim });
}

static tensor *last_two(const char *op, tensor *self)
{
	if (self->ndim < 2)
		return tensor_fail_null(EINVAL, "%s: at least 2 dimensions, got shape %s", op,
					SHAPE_STR(self));
	return call_transpose_int(self, -2, -1);
}

tensor *composite_mT(tensor *self)
{
	return last_two("mT", self);
}
