// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Views: other sizes, strides and offsets on the same storage. No data is copied. */
#include "iter/iter.h"
#include "ops/each.h"
#include "ops/op.h"

#include "family/copy.h"
#include "family/factory.h"
#include "family/view.h"

tensor *view_alias(tensor *self)
{
	return tensor_new_view(self, self->sizes, self->strides, self->ndim, self->offset);
}

tensor *view_detach(tensor *self)
{
	return tensor_new_detached(self);
}

tensor *view_as_strided(tensor *self, tensor_ints size, tensor_ints stride, int64_t storage_offset)
{
	int64_t offset = storage_offset == TENSOR_NONE ? self->offset : storage_offset;
	int64_t numel, low = offset, high = offset, reach;
	int64_t room = (int64_t)(self->storage->used / itemsize(self));

	if (size.len != stride.len || size.len > TENSOR_MAX_DIMS || size.len < 0)
		return tensor_fail_null(EINVAL,
					"as_strided: %lld sizes and %lld strides, at most "
					"%d of each",
					(long long)size.len, (long long)stride.len,
					TENSOR_MAX_DIMS);
	numel = sizes_numel("as_strided", size.data, (int)size.len);
	if (numel < 0)
		return NULL;
	for (int64_t i = 0; numel && i < size.len; i++) {
		bool overflow = __builtin_mul_overflow(size.data[i] - 1, stride.data[i], &reach);

		overflow |= __builtin_add_overflow(reach < 0 ? low : high, reach,
						   reach < 0 ? &low : &high);
		if (overflow)
			return tensor_fail_null(EOVERFLOW, "as_strided: the extent overflows");
	}
	/* A view without elements may have any offset, as parts of an empty tensor do. */
	if (offset < 0 || low < 0 || (numel ? high >= room : offset > INT64_MAX / 64))
		return tensor_fail_null(EINVAL,
					"as_strided: elements %lld to %lld of a storage of "
					"%lld",
					(long long)low, (long long)high, (long long)room);
	return tensor_new_view(self, size.data, stride.data, (int)size.len, offset);
}

/* Copy self's sizes and strides without dimension `dim`. */
static void without_dim(const tensor *self, int dim, int64_t *sizes, int64_t *strides)
{
	for (int i = 0, k = 0; i < self->ndim; i++) {
		if (i == dim)
			continue;
		sizes[k] = self->sizes[i];
		strides[k++] = self->strides[i];
	}
}

tensor *view_select(tensor *self, int64_t dim, int64_t index)
{
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS], at = index;
	int d;

	if (!self->ndim)
		return tensor_fail_null(ERANGE, "select: a 0-d tensor has no dimensions");
	d = wrap_dim("select", dim, self->ndim);
	if (d < 0)
		return NULL;
	if (at < 0)
		at += self->sizes[d];
	if (at < 0 || at >= self->sizes[d])
		return tensor_fail_null(ERANGE,
					"select: index %lld is out of range for dimension "
					"%d of size %lld",
					(long long)index, d, (long long)self->sizes[d]);
	without_dim(self, d, sizes, strides);
	return tensor_new_view(self, sizes, strides, self->ndim - 1,
			       self->offset + at * self->strides[d]);
}

static int64_t clamp(int64_t i, int64_t low, int64_t high)
{
	return i < low ? low : i > high ? high : i;
}

tensor *view_slice(tensor *self, int64_t dim, int64_t start, int64_t end, int64_t step)
{
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS], n;
	int d;

	if (!self->ndim)
		return tensor_fail_null(ERANGE, "slice: a 0-d tensor has no dimensions");
	d = wrap_dim("slice", dim, self->ndim);
	if (d < 0)
		return NULL;
	if (step < 1)
		return tensor_fail_null(EINVAL, "slice: step must be at least 1, got %lld",
					(long long)step);
	n = self->sizes[d];
	start = start == TENSOR_NONE ? 0 : clamp(start < 0 ? start + n : start, 0, n);
	end = end == TENSOR_NONE ? n : clamp(end < 0 ? end + n : end, start, n);
	memcpy(sizes, self->sizes, self->ndim * sizeof(*sizes));
	memcpy(strides, self->strides, self->ndim * sizeof(*strides));
	sizes[d] = (end - start) / step + ((end - start) % step != 0);
	/* With at most one element a large step must not overflow the stride. */
	if (__builtin_mul_overflow(strides[d], step, &strides[d]))
		strides[d] = self->strides[d];
	return tensor_new_view(self, sizes, strides, self->ndim,
			       self->offset + start * self->strides[d]);
}

tensor *composite_narrow(tensor *self, int64_t dim, int64_t start, int64_t length)
{
	int d = wrap_dim("narrow", dim, self->ndim);
	int64_t n;

	if (d < 0)
		return NULL;
	if (!self->ndim)
		return tensor_fail_null(ERANGE, "narrow: a 0-d tensor has no dimensions");
	n = self->sizes[d];
	if (start < -n || start > n || length < 0 || (start < 0 ? start + n : start) > n - length)
		return tensor_fail_null(EINVAL,
					"narrow: %lld positions from %lld exceed dimension "
					"%d of size %lld",
					(long long)length, (long long)start, d, (long long)n);
	if (start < 0)
		start += n;
	return call_slice_Tensor(self, d, start, start + length, 1);
}

tensor *view_transpose(tensor *self, int64_t dim0, int64_t dim1)
{
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS];
	int a = wrap_dim("transpose", dim0, self->ndim), b;

	if (a < 0)
		return NULL;
	b = wrap_dim("transpose", dim1, self->ndim);
	if (b < 0)
		return NULL;
	for (int i = 0; i < self->ndim; i++) {
		int from = i == a ? b : i == b ? a : i;

		sizes[i] = self->sizes[from];
		strides[i] = self->strides[from];
	}
	return tensor_new_view(self, sizes, strides, self->ndim, self->offset);
}

tensor *view_t(tensor *self)
{
	if (self->ndim > 2)
		return tensor_fail_null(EINVAL, "t: at most 2 dimensions, got shape %s",
					SHAPE_STR(self));
	return self->ndim < 2 ? view_alias(self) : view_transpose(self, 0, 1);
}

tensor *view_permute(tensor *self, tensor_ints dims)
{
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS];
	uint32_t seen = 0;

	if (dims.len != self->ndim)
		return tensor_fail_null(EINVAL, "permute: %d dimensions are needed, got %lld",
					self->ndim, (long long)dims.len);
	for (int i = 0; i < self->ndim; i++) {
		int d = wrap_dim("permute", dims.data[i], self->ndim);

		if (d < 0)
			return NULL;
		if (seen & 1u << d)
			return tensor_fail_null(EINVAL, "permute: dimension %d occurs twice", d);
		seen |= 1u << d;
		sizes[i] = self->sizes[d];
		strides[i] = self->strides[d];
	}
	return tensor_new_view(self, sizes, strides, self->ndim, self->offset);
}

tensor *view_expand(tensor *self, tensor_ints size)
{
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS];
	int64_t lead = size.len - self->ndim;
	char text[SHAPE_TEXT];

	if (size.len > TENSOR_MAX_DIMS || lead < 0)
		goto mismatch;
	for (int i = 0; i < size.len; i++) {
		int64_t own = i >= lead ? self->sizes[i - lead] : 1;
		int64_t want = size.data[i];

		if (want == -1 && i >= lead)
			want = own;
		if (want < 0 || (own != 1 && own != want))
			goto mismatch;
		sizes[i] = want;
		strides[i] = own == want && i >= lead ? self->strides[i - lead] : 0;
	}
	if (sizes_numel("expand", sizes, (int)size.len) < 0)
		return NULL;
	return tensor_new_view(self, sizes, strides, (int)size.len, self->offset);
mismatch:
	return tensor_fail_null(EINVAL, "expand: shape %s does not expand to %s", SHAPE_STR(self),
				format_sizes(size.data,
					     (int)clamp(size.len, 0, TENSOR_MAX_DIMS + 1), text,
					     sizeof(text)));
}

/* Replace a size of -1. 0, or -1 with the error set. */
static inline int infer_size(const char *op, const tensor *self, tensor_ints size, int64_t *sizes)
{
	int64_t known = 1, free_dim = -1;
	char text[SHAPE_TEXT];

	if (unlikely(size.len < 0 || size.len > TENSOR_MAX_DIMS))
		return tensor_fail(EINVAL, "%s: 0 to %d sizes, got %lld", op, TENSOR_MAX_DIMS,
				   (long long)size.len);
	for (int i = 0; i < size.len; i++) {
		sizes[i] = size.data[i];
		if (sizes[i] == -1 && free_dim < 0)
			free_dim = i;
		else if (sizes[i] < 0 || __builtin_mul_overflow(known, sizes[i], &known))
			goto mismatch;
	}
	if (free_dim >= 0) {
		if (!known || self->numel % known)
			goto mismatch;
		sizes[free_dim] = self->numel / known;
	} else if (known != self->numel) {
		goto mismatch;
	}
	return 0;
mismatch:
	return tensor_fail(EINVAL, "%s: shape %s (%lld elements) does not fit %s", op,
			   format_sizes(size.data, (int)size.len, text, sizeof(text)),
			   (long long)self->numel, SHAPE_STR(self));
}

int view_reshape_sizes(const char *op, const tensor *self, tensor_ints shape, int64_t *sizes)
{
	return infer_size(op, self, shape, sizes);
}

/* Compute strides for the new sizes on self's memory. Dimensions of self that are evenly spaced
 * together may be divided in any way; returns false if a new dimension would span a gap. */
static inline bool view_strides(const tensor *self, const int64_t *sizes, int ndim,
				int64_t *strides)
{
	int64_t run = 1, taken = 1, step;
	int v = ndim - 1;

	if (self->contiguous || !self->numel) {
		contiguous_strides(sizes, ndim, strides);
		return true;
	}
	step = self->strides[self->ndim - 1];
	for (int d = self->ndim - 1; d >= 0; d--) {
		run *= self->sizes[d];
		if (d > 0 && (self->sizes[d - 1] == 1 || self->strides[d - 1] == run * step))
			continue;
		while (v >= 0 && (taken < run || sizes[v] == 1)) {
			strides[v] = taken * step;
			taken *= sizes[v--];
		}
		if (taken != run)
			return false;
		if (d > 0) {
			step = self->strides[d - 1];
			run = taken = 1;
		}
	}
	return v == -1;
}

tensor *view_view(tensor *self, tensor_ints size)
{
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS];

	if (infer_size("view", self, size, sizes) < 0)
		return NULL;
	if (!view_strides(self, sizes, (int)size.len, strides))
		return tensor_fail_null(EINVAL,
					"view: shape %s with these strides needs a copy; "
					"use reshape",
					SHAPE_STR(self));
	return tensor_new_view(self, sizes, strides, (int)size.len, self->offset);
}

tensor *composite_reshape(tensor *self, tensor_ints shape)
{
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS];
	tensor_ints full = { sizes, shape.len };
	tensor *copy, *result;

	if (infer_size("reshape", self, shape, sizes) < 0)
		return NULL;
	if (view_strides(self, sizes, (int)shape.len, strides))
		return call_view(self, full);
	copy = operand_contiguous_copy(self, (tensor_options){ 0 });
	result = copy ? call_view(copy, full) : NULL;
	tensor_put(copy);
	return result;
}

tensor *view_squeeze(tensor *self)
{
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS];
	int n = 0;

	for (int i = 0; i < self->ndim; i++) {
		if (self->sizes[i] == 1)
			continue;
		sizes[n] = self->sizes[i];
		strides[n++] = self->strides[i];
	}
	return tensor_new_view(self, sizes, strides, n, self->offset);
}

tensor *view_squeeze_dim(tensor *self, int64_t dim)
{
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS];
	int d = wrap_dim("squeeze", dim, self->ndim);

	if (d < 0)
		return NULL;
	if (!self->ndim || self->sizes[d] != 1)
		return view_alias(self);
	without_dim(self, d, sizes, strides);
	return tensor_new_view(self, sizes, strides, self->ndim - 1, self->offset);
}

tensor *view_unsqueeze(tensor *self, int64_t dim)
{
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS];
	int d = wrap_dim("unsqueeze", dim, self->ndim + 1);

	if (d < 0)
		return NULL;
	if (self->ndim == TENSOR_MAX_DIMS)
		return tensor_fail_null(EINVAL, "unsqueeze: at most %d dimensions",
					TENSOR_MAX_DIMS);
	for (int i = 0; i <= self->ndim; i++) {
		int from = i < d ? i : i - 1;

		sizes[i] = i == d ? 1 : self->sizes[from];
		strides[i] = i == d ? (d < self->ndim ? self->sizes[d] * self->strides[d] : 1) :
				      self->strides[from];
	}
	return tensor_new_view(self, sizes, strides, self->ndim + 1, self->offset);
}

tensor *view_diagonal(tensor *self, int64_t offset, int64_t dim1, int64_t dim2)
{
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS], length, first = self->offset;
	int a, b, n = 0;

	if (self->ndim < 2)
		return tensor_fail_null(EINVAL, "diagonal: at least 2 dimensions, got shape %s",
					SHAPE_STR(self));
	a = wrap_dim("diagonal", dim1, self->ndim);
	b = a < 0 ? -1 : wrap_dim("diagonal", dim2, self->ndim);
	if (b < 0)
		return NULL;
	if (a == b)
		return tensor_fail_null(EINVAL, "diagonal: dim1 and dim2 are both %d", a);
	for (int i = 0; i < self->ndim; i++) {
		if (i == a || i == b)
			continue;
		sizes[n] = self->sizes[i];
		strides[n++] = self->strides[i];
	}
	if (offset >= 0) {
		int64_t rest = self->sizes[b] > offset ? self->sizes[b] - offset : 0;

		length = self->sizes[a] < rest ? self->sizes[a] : rest;
	} else {
		int64_t rest = offset > -self->sizes[a] ? self->sizes[a] + offset : 0;

		length = self->sizes[b] < rest ? self->sizes[b] : rest;
	}
	if (length)
		first += offset >= 0 ? offset * self->strides[b] : -offset * self->strides[a];
	sizes[n] = length;
	strides[n++] = self->strides[a] + self->strides[b];
	return tensor_new_view(self, sizes, strides, n, first);
}

/* ---- operators that return no view ---- */

tensor *composite_lift_fresh(tensor *self)
{
	return tensor_get(self);
}

/* Copy grad to `part`, a view of `whole`, and release part. Returns whole, or NULL. */
static tensor *copy_to_part(const char *op, tensor *whole, tensor *part, tensor *grad)
{
	int err = part ? 0 : error_code();

	if (part && !iter_broadcasts_to(grad, part->sizes, part->ndim))
		err = tensor_fail(EINVAL, "%s: grad_output must have shape %s, got %s", op,
				  SHAPE_STR(part), SHAPE_STR(grad));
	if (err < 0 || operand_copy(part, grad) < 0) {
		tensor_put(whole);
		whole = NULL;
	}
	tensor_put(part);
	return whole;
}

tensor *explicit_select_backward(tensor *grad_output, tensor_ints input_sizes, int64_t dim,
				 int64_t index)
{
	tensor *whole = call_zeros(input_sizes, TENSOR_OPTIONS(.dtype = grad_output->dtype,
							       .device = grad_output->device));

	return whole ? copy_to_part("select_backward", whole, view_select(whole, dim, index),
				    grad_output) :
		       NULL;
}

tensor *explicit_slice_backward(tensor *grad_output, tensor_ints input_sizes, int64_t dim,
				int64_t start, int64_t end, int64_t step)
{
	tensor *whole = call_zeros(input_sizes, TENSOR_OPTIONS(.dtype = grad_output->dtype,
							       .device = grad_output->device));

	return whole ? copy_to_part("slice_backward", whole,
				    view_slice(whole, dim, start, end, step), grad_output) :
		       NULL;
}

int composite_broadcast_tensors(tensor_list tensors, tensor **results, int64_t room)
{
	tensor shape = { .numel = 1 };

	if (results_fit("broadcast_tensors", tensors.len, room) < 0)
		return error_code();
	for (int64_t i = 0; i < tensors.len; i++) {
		shape.ndim = (uint8_t)iter_broadcast_sizes("broadcast_tensors", &shape,
							   tensors.data[i], shape.sizes);
		if (shape.ndim > TENSOR_MAX_DIMS)
			return error_code();
	}
	for (int64_t i = 0; i < tensors.len; i++) {
		results[i] = call_expand(tensors.data[i], (tensor_ints){ shape.sizes, shape.ndim });
		if (!results[i])
			return each_failed(results, i);
	}
	return (int)tensors.len;
}
