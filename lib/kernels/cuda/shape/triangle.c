// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* tril and triu. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/launch_nn.h"

int cuda_triangle(tensor *out, const tensor *self, int64_t k, bool upper)
{
	const int last = out->ndim - 1;
	struct cuda_triangle t = { .height = out->sizes[last - 1],
				   .width = out->sizes[last],
				   .step = { out->strides[last], self->strides[last] },
				   .upper = upper,
				   .data = { out->data, self->data } };
	const int64_t limit = t.height + t.width;
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	t.k = k < -limit ? -limit : k > limit ? limit : k;
	cuda_dims_init(&t.rows);
	for (int d = last - 1; d >= 0; d--)
		cuda_dims_add(&t.rows, 2, out->sizes[d],
			      (const int64_t[]){ out->strides[d], self->strides[d] });
	err = cuda_begin_with(&c, upper ? "triu" : "tril", out->device.index, out, self);
	if (err)
		return err;
	err = cuda_launch_triangle(&t, (int)tensor_itemsize(out->dtype), c.stream);
	return cuda_end(&c, cuda_launched(&c, err, out->dtype));
}
