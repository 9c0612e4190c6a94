// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Padding by reflection and replication, and its gradient. */
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch_spatial.h"

/* Describes the last dimensions, and the others as planes. */
static void describe(struct cuda_pad_shape *s, struct cuda_dims *planes, const tensor *wide,
		     const tensor *core, const struct pad_params *params)
{
	const int lead = wide->ndim - params->n, missing = 3 - params->n;

	*s = (struct cuda_pad_shape){ .reflect = params->reflect };
	for (int i = 0; i < 3; i++) {
		const int d = lead + i - missing;
		const bool there = i >= missing;

		s->wide[i] = there ? wide->sizes[d] : 1;
		s->core[i] = there ? core->sizes[d] : 1;
		s->wide_step[i] = there ? wide->strides[d] : 0;
		s->core_step[i] = there ? core->strides[d] : 0;
		s->before[i] = there ? params->before[i - missing] : 0;
	}
	cuda_dims_init(planes);
	for (int d = lead - 1; d >= 0; d--)
		cuda_dims_add(planes, 2, wide->sizes[d],
			      (const int64_t[]){ wide->strides[d], core->strides[d] });
}

int cuda_pad(tensor *out, const tensor *self, const struct pad_params *params)
{
	struct cuda_pad_shape s;
	struct cuda_dims planes;
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	err = cuda_begin_with(&c, "pad", out->device.index, out, self);
	if (err)
		return err;
	describe(&s, &planes, out, self, params);
	err = cuda_launch_pad(&planes, &s, out->data, self->data, (int)tensor_itemsize(out->dtype),
			      c.stream);
	return cuda_end(&c, cuda_launched(&c, err, out->dtype));
}

int cuda_pad_backward(tensor *out, const tensor *grad, const struct pad_params *params)
{
	struct cuda_pad_shape s;
	struct cuda_dims planes;
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	err = cuda_begin_with(&c, "pad_backward", out->device.index, out, grad);
	if (err)
		return err;
	describe(&s, &planes, grad, out, params);
	err = cuda_launch_pad_backward(&planes, &s, out->data, grad->data, out->dtype, c.stream);
	return cuda_end(&c, cuda_launched(&c, err, out->dtype));
}
