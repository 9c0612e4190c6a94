// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The check of all indices of a call, and its error message. See indices.h. */
#include "kernels/cpu/index/indices.h"

bool indices_in_range(struct indices *x, const tensor *index)
{
	int64_t pos[TENSOR_MAX_DIMS] = { 0 }, at[INDEX_BLOCK];
	int last = index->ndim - 1;
	int64_t size = (int64_t)itemsize(index);
	int64_t stride = last < 0 ? 0 : index->strides[last] * size;
	int64_t row = last < 0 ? 1 : index->sizes[last];

	if (!index->numel)
		return true;
	if (index->contiguous) {
		last = 0;
		stride = size;
		row = index->numel;
	}
	for (;;) {
		const char *p = index->data;
		int d = last - 1;

		for (int k = 0; k < last; k++)
			p += pos[k] * index->strides[k] * size;
		for (int64_t i = 0, len; i < row; i += len) {
			len = row - i < INDEX_BLOCK ? row - i : INDEX_BLOCK;
			if (!indices_fetch(x, p + i * stride, stride, len, at))
				return false;
		}
		while (d >= 0 && ++pos[d] == index->sizes[d])
			pos[d--] = 0;
		if (d < 0)
			return true;
	}
}

int indices_refuse(const struct indices *x, const tensor *index, const int *dims)
{
	int64_t pos[TENSOR_MAX_DIMS] = { 0 };
	char text[SHAPE_TEXT];

	for (int64_t n = 0; n < index->numel * x->n; n++) {
		int64_t at = 0, i, k = n / index->numel, limit = x->limit[k];
		const char *p;

		for (int d = 0; d < index->ndim; d++)
			at += pos[d] * index->strides[d];
		p = (const char *)index->data + at * (int64_t)itemsize(index) + k * x->slab;
		i = x->narrow ? *(const int32_t *)p : *(const int64_t *)p;
		if (i < (x->wrap ? -limit : 0) || i >= limit)
			return tensor_fail(ERANGE,
					   "%s: index %lld at position %s is out of range "
					   "for dimension %d of size %lld",
					   x->name, (long long)i,
					   format_sizes(pos, index->ndim, text, sizeof(text)),
					   dims[k], (long long)limit);
		for (int d = index->ndim - 1; d >= 0 && ++pos[d] == index->sizes[d]; d--)
			pos[d] = 0;
	}
	return tensor_fail(EINVAL, "%s: index changed while it was read", x->name);
}
