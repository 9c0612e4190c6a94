// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Interpolation: sizes, and memory for the tables of positions and weights. */
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/nn/windows.h"

_Static_assert((int)CUDA_UPSAMPLE_NEAREST == UPSAMPLE_NEAREST &&
		       (int)CUDA_UPSAMPLE_NEAREST_EXACT == UPSAMPLE_NEAREST_EXACT &&
		       (int)CUDA_UPSAMPLE_LINEAR == UPSAMPLE_LINEAR &&
		       (int)CUDA_UPSAMPLE_CUBIC == UPSAMPLE_CUBIC,
	       "the modes of the launcher are those of the kernel's type");

typedef int (*upsample_launcher)(const struct cuda_upsample *u, void *out, const void *in,
				 int dtype, cudaStream_t stream);

/* in and out are those of the forward. */
static int interpolate(const char *op, upsample_launcher launch, tensor *to, const tensor *from,
		       const tensor *in, const tensor *out, const struct upsample_params *p)
{
	struct cuda_upsample u = { .planes = in->sizes[0] * in->sizes[1],
				   .mode = (enum cuda_upsample_mode)p->mode,
				   .align = p->align_corners };
	struct cuda_call c;
	int err;

	if (!to->numel || !from->numel)
		return 0;
	err = cuda_windows_of(&u.w, op, in, out, p->spatial, NULL, NULL, NULL, NULL, u.planes);
	if (!err)
		err = cuda_begin_with(&c, op, to->device.index, to, from);
	if (err)
		return err;
	u.taps = p->mode == UPSAMPLE_CUBIC ? 4 : p->mode == UPSAMPLE_LINEAR ? 2 : 1;
	for (int d = 0; d < 3; d++) {
		u.entries += (int64_t)u.w.out[d] * u.taps;
		u.scale[d] = p->scale[d];
	}
	err = cuda_scratch(&c, (size_t)u.entries * (sizeof(double) + sizeof(int)), &u.scratch);
	if (!err)
		err = cuda_launched(&c, launch(&u, to->data, from->data, to->dtype, c.stream),
				    to->dtype);
	cuda_scratch_free(&c, u.scratch);
	return cuda_end(&c, err);
}

int cuda_upsample(tensor *out, const tensor *in, const struct upsample_params *params)
{
	return interpolate("upsample", cuda_launch_upsample, out, in, in, out, params);
}

int cuda_upsample_backward(tensor *out, const tensor *grad, const struct upsample_params *params)
{
	return interpolate("upsample_backward", cuda_launch_upsample_backward, out, grad, out, grad,
			   params);
}
