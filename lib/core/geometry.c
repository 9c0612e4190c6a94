// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Sizes, strides and dimensions. */
#include "core/tensor_impl.h"

#include <stdio.h>

int64_t sizes_numel(const char *op, const int64_t *sizes, int ndim)
{
	int64_t n = 1;
	bool zero = false;

	for (int i = 0; i < ndim; i++) {
		if (sizes[i] < 0) {
			tensor_fail(EINVAL, "%s: size %lld of dimension %d is negative", op,
				    (long long)sizes[i], i);
			return -1;
		}
		zero |= sizes[i] == 0;
		if (!zero && __builtin_mul_overflow(n, sizes[i], &n)) {
			char text[SHAPE_TEXT];

			tensor_fail(EOVERFLOW, "%s: the number of elements of %s overflows", op,
				    format_sizes(sizes, ndim, text, sizeof(text)));
			return -1;
		}
	}
	return zero ? 0 : n;
}

void contiguous_strides(const int64_t *sizes, int ndim, int64_t *strides)
{
	int64_t step = 1;

	for (int i = ndim - 1; i >= 0; i--) {
		strides[i] = step;
		/* A zero size must not make the strides of the outer dimensions zero; overflow
		 * can only happen where a zero size makes the strides irrelevant. */
		step = (int64_t)((uint64_t)step * (uint64_t)(sizes[i] > 1 ? sizes[i] : 1));
	}
}

int64_t packed_geometry(const tensor *t, int64_t *sizes, int64_t *strides)
{
	int64_t n = 1;

	for (int i = 0; i < t->ndim; i++) {
		sizes[i] = t->strides[i] || !t->sizes[i] ? t->sizes[i] : 1;
		n *= sizes[i];
	}
	contiguous_strides(sizes, t->ndim, strides);
	for (int i = 0; i < t->ndim; i++)
		if (!t->strides[i])
			strides[i] = 0;
	return n;
}

int wrap_dim(const char *op, int64_t dim, int ndim)
{
	int n = ndim ? ndim : 1; /* a 0-d tensor accepts 0 and -1 */

	if (dim < -n || dim >= n)
		return tensor_fail(ERANGE,
				   "%s: dimension out of range: expected %d to %d, got %lld", op,
				   -n, n - 1, (long long)dim),
		       -1;
	return (int)(dim < 0 ? dim + n : dim);
}

const char *format_sizes(const int64_t *sizes, int ndim, char *buf, size_t size)
{
	size_t at = 1;

	snprintf(buf, size, "[");
	for (int i = 0; i < ndim && at < size; i++)
		at += snprintf(buf + at, size - at, "%s%lld", i ? ", " : "", (long long)sizes[i]);
	if (at < size)
		snprintf(buf + at, size - at, "]");
	return buf;
}
