// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Channels last: [n, c, h, w] in the memory order n, h, w, c, and [n, c, d, h, w] in n, d, h, w, c.
 */
#include "core/memory_format.h"

int memory_format_check(unsigned format, int ndim)
{
	int dims = format == TENSOR_CHANNELS_LAST    ? 4 :
		   format == TENSOR_CHANNELS_LAST_3D ? 5 :
						       ndim;

	if (format >= TENSOR_MEMORY_FORMAT_COUNT)
		return tensor_fail(EINVAL, "empty: %u is no memory format", format);
	if (ndim != dims)
		return tensor_fail(EINVAL, "empty: channels last is for %d dimensions, got %d",
				   dims, ndim);
	return 0;
}

/* Dimension i of the channels-last order, counted from the innermost one. */
static int channels_last_dim(int i, int ndim)
{
	return i == 0 ? 1 : i == ndim - 1 ? 0 : ndim - i;
}

bool memory_channels_last(const tensor *t)
{
	int64_t least = 0;

	if ((t->ndim != 4 && t->ndim != 5) || t->layout != TENSOR_STRIDED || t->ext ||
	    !t->strides[1])
		return false;
	for (int i = 0; i < t->ndim; i++) {
		int d = channels_last_dim(i, t->ndim);

		/* [n, 1, 1, 1] and a [n, c, 1, 1] that is row-major */
		if (!t->sizes[d] || t->strides[d] < least || (d == 0 && least == t->strides[1]))
			return false;
		least = t->strides[d] * t->sizes[d];
	}
	return true;
}

void memory_channels_last_strides(const int64_t *sizes, int ndim, int64_t *strides)
{
	int64_t step = 1;

	for (int i = 0; i < ndim; i++) {
		int d = channels_last_dim(i, ndim);

		strides[d] = step;
		step *= sizes[d] ? sizes[d] : 1;
	}
}

/* The elements are contiguous in this order; strides of dimensions of size 1 are ignored. */
static bool has_strides(const tensor *t, const int64_t *strides)
{
	for (int i = 0; i < t->ndim; i++)
		if (t->sizes[i] != 1 && t->strides[i] != strides[i])
			return false;
	return true;
}

TENSOR_EXPORT bool tensor_is_contiguous_as(const tensor *t, enum tensor_memory_format format)
{
	int64_t strides[TENSOR_MAX_DIMS];

	if (!tensor_given(t) || (unsigned)format >= TENSOR_MEMORY_FORMAT_COUNT)
		return false;
	if (format <= TENSOR_PRESERVE_FORMAT)
		return t->contiguous;
	if (t->ndim != (format == TENSOR_CHANNELS_LAST ? 4 : 5) || t->layout != TENSOR_STRIDED ||
	    t->ext)
		return false;
	memory_channels_last_strides(t->sizes, t->ndim, strides);
	return !t->numel || has_strides(t, strides);
}
