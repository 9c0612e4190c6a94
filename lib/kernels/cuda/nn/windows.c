// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Windows of images: sizes of 32 bits, so that kernels divide quickly. */
#include "kernels/cuda/nn/windows.h"

static int too_large(const char *op)
{
	return tensor_fail(EOPNOTSUPP, "%s: cuda: offsets in an image must be below 2^31", op);
}

static int64_t size_of(const tensor *t, int d, int spatial)
{
	return d < 3 - spatial ? 1 : t->sizes[t->ndim - 3 + d];
}

/* Whether all offsets along dimension d fit. */
static bool fits(const struct cuda_windows *w, int d, const int64_t (*p)[3])
{
	const int64_t limit = INT32_MAX / 4;
	const int64_t *kernel = p[0], *stride = p[1], *padding = p[2], *dilation = p[3];
	int64_t reach, last;

	if (kernel[d] > limit || stride[d] > limit || padding[d] > limit || dilation[d] > limit)
		return false;
	reach = (kernel[d] - 1) * dilation[d];
	last = (int64_t)w->out[d] * stride[d];
	return reach <= limit && last <= limit && w->in[d] <= limit;
}

int cuda_windows_of(struct cuda_windows *w, const char *op, const tensor *in, const tensor *out,
		    int spatial, const int64_t *kernel, const int64_t *stride,
		    const int64_t *padding, const int64_t *dilation, int64_t images)
{
	int64_t p[4][3];

	*w = (struct cuda_windows){ .in_plane = 1, .out_plane = 1, .taps = 1 };
	for (int d = 0; d < 3; d++) {
		const int64_t sizes[] = { size_of(in, d, spatial), size_of(out, d, spatial) };

		p[0][d] = kernel ? kernel[d] : 1;
		p[1][d] = stride ? stride[d] : 1;
		p[2][d] = padding ? padding[d] : 0;
		p[3][d] = dilation ? dilation[d] : 1;
		if (sizes[0] > INT32_MAX || sizes[1] > INT32_MAX)
			return too_large(op);
		w->in[d] = (int)sizes[0];
		w->out[d] = (int)sizes[1];
		if (!fits(w, d, p))
			return too_large(op);
		w->kernel[d] = (int)p[0][d];
		w->stride[d] = (int)p[1][d];
		w->padding[d] = (int)p[2][d];
		w->dilation[d] = (int)p[3][d];
		w->in_plane *= sizes[0];
		w->out_plane *= sizes[1];
		w->taps *= p[0][d];
		if (w->in_plane > INT32_MAX || w->out_plane > INT32_MAX || w->taps > INT32_MAX)
			return too_large(op);
	}
	w->wide = images * w->in_plane > CUDA_NARROW_MAX || images * w->out_plane > CUDA_NARROW_MAX;
	return 0;
}
