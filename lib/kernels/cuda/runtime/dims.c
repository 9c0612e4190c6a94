// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Dimensions of a kernel: merged where strides allow, and the width of its indices. */
#include "kernels/cuda/cuda.h"

void cuda_dims_init(struct cuda_dims *d)
{
	d->ndim = 0;
	d->numel = 1;
	d->wide = false;
}

void cuda_dims_add(struct cuda_dims *d, int n, int64_t size, const int64_t *stride)
{
	int last = d->ndim - 1;
	bool merge = last >= 0;

	d->numel *= size;
	if (size == 1)
		return;
	for (int i = 0; merge && i < n; i++)
		merge = d->size[last] * d->stride[i][last] == stride[i];
	if (merge) {
		d->size[last] *= size;
		return;
	}
	d->size[d->ndim] = size;
	for (int i = 0; i < n; i++)
		d->stride[i][d->ndim] = stride[i];
	d->ndim++;
}

/* The largest offset of operand i, of both directions together: an upper bound is enough. */
static int64_t reach(const struct cuda_dims *d, int i)
{
	int64_t sum = 0;

	for (int k = 0; k < d->ndim; k++) {
		int64_t s = d->stride[i][k] < 0 ? -d->stride[i][k] : d->stride[i][k];

		sum += (d->size[k] - 1) * s;
	}
	return sum;
}

void cuda_dims_done(struct cuda_dims *d, int n)
{
	d->wide = d->numel > CUDA_NARROW_MAX;
	for (int i = 0; i < n; i++)
		d->wide |= reach(d, i) > CUDA_NARROW_MAX;
}

void cuda_dims_done_together(struct cuda_dims *a, struct cuda_dims *b, int n)
{
	cuda_dims_done(a, n);
	cuda_dims_done(b, n);
	for (int i = 0; i < n; i++)
		a->wide |= reach(a, i) + reach(b, i) > CUDA_NARROW_MAX;
	a->wide |= b->wide;
	b->wide = a->wide;
}
