// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Views of the same bytes as another dtype, complex numbers as pairs, windows along a dimension;
 * resize_. */
#include "ops/op.h"

#include "family/copy.h"
#include "family/pointwise.h"
#include "family/reinterpret.h"
#include "family/unary.h"
#include "family/view.h"

/* View with elements of another dtype; offset counts those. Owned. */
static tensor *view_of_dtype(tensor *self, enum tensor_dtype dtype, const int64_t *sizes,
			     const int64_t *strides, int ndim, int64_t offset)
{
	tensor *t = tensor_new_view(self, sizes, strides, ndim, self->offset);

	if (!t)
		return NULL;
	t->dtype = dtype;
	t->offset = offset;
	t->data = (char *)self->storage->data + offset * (int64_t)dtype_sizes[dtype];
	return t;
}

/* Multiply strides and offset by `ratio` or, if it is negative, divide them by -ratio. */
static tensor *rescaled(const char *op, tensor *self, enum tensor_dtype dtype, const int64_t *sizes,
			int ndim, int64_t ratio)
{
	int64_t strides[TENSOR_MAX_DIMS];

	/* The last dimension has stride 1, in elements of either dtype. */
	for (int i = 0; i < ndim - 1; i++) {
		if (ratio > 0 && self->strides[i] % ratio && sizes[i] > 1)
			return tensor_fail_null(
				EINVAL, "%s: stride %lld of dimension %d is not a multiple of %lld",
				op, (long long)self->strides[i], i, (long long)ratio);
		strides[i] = ratio > 0 ? self->strides[i] / ratio : self->strides[i] * -ratio;
	}
	/* The storage itself may begin at any address: memory of the program. */
	if (ratio > 0 && (self->offset % ratio ||
			  (self->numel && (uintptr_t)self->data % dtype_sizes[dtype_real(dtype)])))
		return tensor_fail_null(EINVAL,
					"%s: the first element is not aligned to one of "
					"dtype %s",
					op, tensor_dtype_name(dtype));
	if (ndim)
		strides[ndim - 1] = 1;
	return view_of_dtype(self, dtype, sizes, strides, ndim,
			     ratio > 0 ? self->offset / ratio : self->offset * -ratio);
}

tensor *view_view_dtype(tensor *self, enum tensor_dtype dtype)
{
	int64_t from = (int64_t)itemsize(self), to, sizes[TENSOR_MAX_DIMS], *last;

	if ((unsigned)dtype >= TENSOR_DTYPE_COUNT || !dtype)
		return tensor_fail_null(EINVAL, "view: unknown dtype %d", (int)dtype);
	to = dtype_sizes[dtype];
	memcpy(sizes, self->sizes, self->ndim * sizeof(*sizes));
	if (from == to)
		return view_of_dtype(self, dtype, sizes, self->strides, self->ndim, self->offset);
	if (!self->ndim)
		return tensor_fail_null(EINVAL,
					"view: a 0-d tensor of %s cannot be viewed as %s, "
					"whose elements have another size",
					tensor_dtype_name(self->dtype), tensor_dtype_name(dtype));
	last = &sizes[self->ndim - 1];
	if (self->strides[self->ndim - 1] != 1 && *last > 1)
		return tensor_fail_null(
			EINVAL, "view: the last dimension must have stride 1 to be viewed as %s",
			tensor_dtype_name(dtype));
	if (from > to) {
		*last *= from / to;
		return rescaled("view", self, dtype, sizes, self->ndim, -(from / to));
	}
	if (*last % (to / from))
		return tensor_fail_null(EINVAL,
					"view: %lld elements of %s are not a whole number of %s",
					(long long)*last, tensor_dtype_name(self->dtype),
					tensor_dtype_name(dtype));
	*last /= to / from;
	return rescaled("view", self, dtype, sizes, self->ndim, to / from);
}

/* ---- complex numbers ---- */

tensor *view_view_as_real(tensor *self)
{
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS];
	int n = self->ndim;

	if (!dtype_is_complex(self->dtype) || n == TENSOR_MAX_DIMS)
		return tensor_fail_null(EINVAL,
					"view_as_real: a complex tensor of at most %d "
					"dimensions, got %s %s",
					TENSOR_MAX_DIMS - 1, tensor_dtype_name(self->dtype),
					SHAPE_STR(self));
	for (int i = 0; i < n; i++) {
		sizes[i] = self->sizes[i];
		strides[i] = 2 * self->strides[i];
	}
	sizes[n] = 2;
	strides[n] = 1;
	return view_of_dtype(self, dtype_real(self->dtype), sizes, strides, n + 1,
			     2 * self->offset);
}

tensor *view_view_as_complex(tensor *self)
{
	int64_t strides[TENSOR_MAX_DIMS];
	int n = self->ndim - 1;

	if ((self->dtype != TENSOR_F32 && self->dtype != TENSOR_F64) || n < 0 ||
	    self->sizes[n] != 2 || (self->strides[n] != 1 && self->numel))
		return tensor_fail_null(EINVAL,
					"view_as_complex: f32 or f64 with a last dimension "
					"of size 2 and stride 1, got %s %s",
					tensor_dtype_name(self->dtype), SHAPE_STR(self));
	for (int i = 0; i < n; i++) {
		if (self->strides[i] % 2 && self->sizes[i] > 1)
			return tensor_fail_null(EINVAL,
						"view_as_complex: stride %lld of dimension "
						"%d is odd",
						(long long)self->strides[i], i);
		strides[i] = self->strides[i] / 2;
	}
	if (self->offset % 2)
		return tensor_fail_null(EINVAL, "view_as_complex: the storage offset %lld is odd",
					(long long)self->offset);
	return view_of_dtype(self, self->dtype == TENSOR_F32 ? TENSOR_C64 : TENSOR_C128,
			     self->sizes, strides, n, self->offset / 2);
}

static tensor *part(tensor *self, int64_t which)
{
	tensor *pairs = call_view_as_real(self);
	tensor *t = pairs ? call_select_int(pairs, -1, which) : NULL;

	tensor_put(pairs);
	return t;
}

tensor *composite_real(tensor *self)
{
	return dtype_is_complex(self->dtype) ? part(self, 0) : tensor_get(self);
}

tensor *composite_imag(tensor *self)
{
	if (!dtype_is_complex(self->dtype))
		return tensor_fail_null(EINVAL, "imag: a complex tensor, got %s",
					tensor_dtype_name(self->dtype));
	return part(self, 1);
}

/* Copy with the imaginary parts negated; self if it is real. Owned. */
static tensor *conjugate(tensor *self)
{
	return dtype_is_complex(self->dtype) ? call_conj_physical(self) : tensor_get(self);
}

tensor *composite_mH(tensor *self)
{
	tensor *conj, *t;

	if (self->ndim < 2)
		return tensor_fail_null(EINVAL, "adjoint: at least 2 dimensions, got shape %s",
					SHAPE_STR(self));
	conj = conjugate(self);
	t = conj ? call_transpose_int(conj, -2, -1) : NULL;
	tensor_put(conj);
	return t;
}

tensor *composite_matrix_H(tensor *self)
{
	if (self->ndim != 2 && self->ndim)
		return tensor_fail_null(EINVAL, "matrix_H: a matrix, got shape %s",
					SHAPE_STR(self));
	return self->ndim ? composite_mH(self) : conjugate(self);
}

/* ---- windows ---- */

tensor *view_unfold(tensor *self, int64_t dimension, int64_t size, int64_t step)
{
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS], all;
	int d = wrap_dim("unfold", dimension, self->ndim), n = self->ndim;

	if (d < 0)
		return NULL;
	if (n == TENSOR_MAX_DIMS)
		return tensor_fail_null(EINVAL, "unfold: at most %d dimensions",
					TENSOR_MAX_DIMS - 1);
	all = n ? self->sizes[d] : 1;
	if (size < 0 || size > all || step < 1)
		return tensor_fail_null(EINVAL,
					"unfold: windows of %lld positions in steps of %lld "
					"do not fit dimension %d of size %lld",
					(long long)size, (long long)step, d, (long long)all);
	memcpy(sizes, self->sizes, n * sizeof(*sizes));
	memcpy(strides, self->strides, n * sizeof(*strides));
	sizes[n] = size;
	strides[n] = n ? self->strides[d] : 1;
	if (n) {
		sizes[d] = (all - size) / step + 1;
		if (__builtin_mul_overflow(strides[d], step, &strides[d]))
			strides[d] = self->strides[d];
	}
	return tensor_new_view(self, sizes, strides, n + 1, self->offset);
}

tensor *view_squeeze_dims(tensor *self, tensor_ints dim)
{
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS];
	uint32_t mask = 0;
	int n = 0;

	for (int64_t i = 0; i < dim.len; i++) {
		int d = wrap_dim("squeeze", dim.data[i], self->ndim);

		if (d < 0)
			return NULL;
		if (mask >> d & 1)
			return tensor_fail_null(EINVAL, "squeeze: dimension %d occurs twice", d);
		mask |= 1u << d;
	}
	for (int i = 0; i < self->ndim; i++) {
		if (mask >> i & 1 && self->sizes[i] == 1)
			continue;
		sizes[n] = self->sizes[i];
		strides[n++] = self->strides[i];
	}
	return tensor_new_view(self, sizes, strides, n, self->offset);
}

/* ---- resize_ ---- */

/* A vector of the first n elements of a storage, described in `header`. */
static const tensor *elements(tensor *header, const tensor *like, struct tensor_storage *storage,
			      int64_t n)
{
	*header = *like;
	header->storage = storage;
	header->data = storage->data;
	header->offset = 0;
	header->ndim = 1;
	header->numel = header->sizes[0] = n;
	header->strides[0] = 1;
	header->contiguous = true;
	return header;
}

/* Existing elements stay as far as they fit; new ones are uninitialized. */
int op_resize(const struct tensor_op *op, tensor **out, tensor *self, tensor_ints size)
{
	struct tensor_storage *before = self->storage, *now;
	int64_t n = (int64_t)(before->used / itemsize(self));
	tensor to, from;
	int err;

	storage_get(before);
	err = tensor_resize(self, size.data, (int)size.len);
	now = self->storage;
	if (!err && now != before && n) {
		n = n < self->numel ? n : self->numel;
		elements(&to, self, now, n);
		err = operand_copy(&to, elements(&from, self, before, n));
	}
	storage_put(before);
	*out = self;
	return err;
}
