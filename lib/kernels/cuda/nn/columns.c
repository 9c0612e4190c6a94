// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* im2col and col2im as operators: the columns of an image are adjacent. */
#include "kernels/cuda/nn/windows.h"

#include "kernels/cuda/kernels.h"

/* image: [batch, channels, h, w], columns: [batch, channels * taps, places]. */
static int describe(struct cuda_columns *c, const char *op, const tensor *image,
		    const struct columns_params *p)
{
	const int64_t kernel[] = { 1, p->kernel[0], p->kernel[1] };
	const int64_t stride[] = { 1, p->stride[0], p->stride[1] };
	const int64_t padding[] = { 0, p->padding[0], p->padding[1] };
	const int64_t dilation[] = { 1, p->dilation[0], p->dilation[1] };
	tensor places = *image;
	int err;

	for (int d = 0; d < 2; d++)
		places.sizes[2 + d] = (image->sizes[2 + d] + 2 * p->padding[d] -
				       p->dilation[d] * (p->kernel[d] - 1) - 1) /
					      p->stride[d] +
				      1;
	err = cuda_windows_of(&c->w, op, image, &places, 2, kernel, stride, padding, dilation,
			      image->sizes[0] * image->sizes[1]);
	c->images = image->sizes[0];
	c->planes = image->sizes[1];
	c->planes_step = c->planes * c->w.in_plane;
	c->row_step = c->w.out_plane;
	c->image_step = c->planes * c->w.taps * c->w.out_plane;
	return err;
}

int cuda_im2col(tensor *out, const tensor *self, const struct columns_params *params)
{
	struct cuda_columns d;
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	err = describe(&d, "im2col", self, params);
	if (!err)
		err = cuda_begin_with(&c, "im2col", out->device.index, out, self);
	if (err)
		return err;
	err = cuda_launch_im2col(&d, out->data, self->data, (int)tensor_itemsize(out->dtype),
				 c.stream);
	return cuda_end(&c, cuda_launched(&c, err, out->dtype));
}

int cuda_col2im(tensor *out, const tensor *self, const struct columns_params *params)
{
	struct cuda_columns d;
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	err = describe(&d, "col2im", out, params);
	if (!err)
		err = cuda_begin_with(&c, "col2im", out->device.index, out, self);
	if (err)
		return err;
	err = cuda_launch_col2im(&d, out->data, self->data, NULL, out->dtype, c.stream);
	return cuda_end(&c, cuda_launched(&c, err, out->dtype));
}
