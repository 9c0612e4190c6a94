// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Pooling. The gradient of maxima is a sum by index, in the order of the outputs (put.c). */
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/nn/windows.h"

/* `in` and `out` are those of the forward; params has no dilation for means, no windows for
 * adaptive pooling. */
static int begin(struct cuda_pool *p, struct cuda_call *c, const char *op, const tensor *in,
		 const tensor *out, const struct pool_params *params, bool windows, bool dilated)
{
	int err;

	*p = (struct cuda_pool){ .planes = 1,
				 .divisor = params->divisor,
				 .count_include_pad = params->count_include_pad };
	for (int i = 0; i < in->ndim - params->spatial; i++)
		p->planes *= in->sizes[i];
	err = cuda_windows_of(&p->w, op, in, out, params->spatial, windows ? params->kernel : NULL,
			      windows ? params->stride : NULL, windows ? params->padding : NULL,
			      dilated ? params->dilation : NULL, p->planes);
	if (!err)
		err = cuda_begin_with(c, op, in->device.index, in, out);
	return err;
}

int cuda_max_pool(tensor *out, tensor *indices, const tensor *self,
		  const struct pool_params *params)
{
	struct cuda_pool p;
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	err = begin(&p, &c, "max_pool", self, out, params, true, true);
	if (err)
		return err;
	cuda_use(&c, indices);
	err = cuda_launch_max_pool(&p, out->data, indices->data, self->data, self->dtype, c.stream);
	return cuda_end(&c, cuda_launched(&c, err, self->dtype));
}

int cuda_adaptive_max_pool(tensor *out, tensor *indices, const tensor *self,
			   const struct pool_params *params)
{
	struct cuda_pool p;
	struct cuda_call c;
	int err;

	if (!out->numel || !self->numel)
		return 0;
	err = begin(&p, &c, "adaptive_max_pool", self, out, params, false, false);
	if (err)
		return err;
	cuda_use(&c, indices);
	err = cuda_launch_adaptive_max_pool(&p, out->data, indices->data, self->data, self->dtype,
					    c.stream);
	return cuda_end(&c, cuda_launched(&c, err, self->dtype));
}

typedef int (*pool_launcher)(const struct cuda_pool *p, void *out, const void *in, int dtype,
			     cudaStream_t stream);

/* backward: out is the gradient of the forward's input. */
static int means(const char *op, pool_launcher launch, tensor *out, const tensor *in,
		 const struct pool_params *params, bool windows, bool backward)
{
	struct cuda_pool p;
	struct cuda_call c;
	int err;

	if (!out->numel || (!windows && !in->numel))
		return 0;
	err = begin(&p, &c, op, backward ? out : in, backward ? in : out, params, windows, false);
	if (err)
		return err;
	err = launch(&p, out->data, in->data, out->dtype, c.stream);
	return cuda_end(&c, cuda_launched(&c, err, out->dtype));
}

int cuda_avg_pool(tensor *out, const tensor *in, const struct pool_params *params)
{
	return means("avg_pool", cuda_launch_avg_pool, out, in, params, true, false);
}

int cuda_avg_pool_backward(tensor *out, const tensor *grad, const struct pool_params *params)
{
	return means("avg_pool_backward", cuda_launch_avg_pool_backward, out, grad, params, true,
		     true);
}

int cuda_adaptive_avg_pool(tensor *out, const tensor *in, const struct pool_params *params)
{
	return means("adaptive_avg_pool", cuda_launch_adaptive_avg_pool, out, in, params, false,
		     false);
}

int cuda_adaptive_avg_pool_backward(tensor *out, const tensor *grad,
				    const struct pool_params *params)
{
	return means("adaptive_avg_pool_backward", cuda_launch_adaptive_avg_pool_backward, out,
		     grad, params, false, true);
}

/* t as [planes, plane], borrowed. */
static tensor planes_of(const tensor *t, int spatial)
{
	tensor r = *t;
	int64_t plane = 1;

	for (int d = t->ndim - spatial; d < t->ndim; d++)
		plane *= t->sizes[d];
	r.ndim = 2;
	r.sizes[0] = t->numel / plane;
	r.sizes[1] = plane;
	r.strides[0] = plane;
	r.strides[1] = 1;
	return r;
}

int cuda_max_pool_backward(tensor *out, const tensor *grad, const tensor *indices,
			   const struct pool_params *params)
{
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	err = cuda_begin_with(&c, "max_pool_backward", out->device.index, out);
	if (err)
		return err;
	err = cuda_check(c.op, cudaMemsetAsync(out->data, 0,
					       out->numel * tensor_itemsize(out->dtype), c.stream));
	err = cuda_end(&c, err);
	if (!err && grad->numel) {
		tensor to = planes_of(out, params->spatial),
		       from = planes_of(grad, params->spatial);
		const tensor index = planes_of(indices, params->spatial);

		err = cuda_scatter_add("max_pool_backward", &to, 1, &index, &from);
	}
	return err;
}
