// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* layer_norm and its gradients. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/launch_nn.h"

/* Rows and their lengths fit the indices of the kernels. */
static int check_size(const struct cuda_call *c, const struct cuda_layer *l)
{
	if (l->n <= INT32_MAX && l->rows <= INT32_MAX)
		return 0;
	return tensor_fail(EOPNOTSUPP, "%s: cuda: %lld rows of %lld elements, at most 2^31 - 1",
			   c->op, (long long)l->rows, (long long)l->n);
}

int cuda_layer_norm(tensor *out, tensor *mean, tensor *rstd, const tensor *x, const tensor *weight,
		    const tensor *bias, double eps)
{
	struct cuda_layer l = { .rows = x->sizes[0],
				.n = x->sizes[1],
				.x = x->data,
				.weight = cuda_data(weight),
				.bias = cuda_data(bias),
				.out = out->data,
				.mean = mean->data,
				.rstd = rstd->data,
				.eps = eps };
	struct cuda_call c;
	int err;

	if (!l.rows)
		return 0;
	err = cuda_begin_with(&c, "layer_norm", x->device.index, out, mean, rstd, x, weight, bias);
	if (err)
		return err;
	err = check_size(&c, &l);
	if (!err)
		err = cuda_launched(&c, cuda_launch_layer_norm(&l, x->dtype, c.stream), x->dtype);
	return cuda_end(&c, err);
}

/* Chunks of rows whose sums are added at the end: enough to fill the device. */
static int chunks_of(const struct cuda_layer *l)
{
	const int64_t blocks = 2048, columns = (l->n + 31) / 32;
	int64_t n = blocks / (columns ? columns : 1), most = l->rows / 64;

	n = n < most ? n : most;
	return (int)(n < 1 ? 1 : n);
}

static int dweight_of(const struct cuda_call *c, const struct cuda_layer *l, tensor *dweight,
		      tensor *dbias, enum tensor_dtype dtype)
{
	const int chunks = chunks_of(l);
	void *partial;
	int err = cuda_scratch(
		c, 2 * (size_t)chunks * (size_t)l->n * tensor_itemsize(dtype_wide(dtype)),
		&partial);

	if (err)
		return err;
	err = cuda_launch_layer_norm_dweight(l, cuda_data(dweight), cuda_data(dbias), partial,
					     chunks, dtype, c->stream);
	cuda_scratch_free(c, partial);
	return cuda_launched(c, err, dtype);
}

int cuda_layer_norm_backward(tensor *dx, tensor *dweight, tensor *dbias, const tensor *grad,
			     const tensor *x, const tensor *mean, const tensor *rstd,
			     const tensor *weight)
{
	struct cuda_layer l = { .rows = x->sizes[0],
				.n = x->sizes[1],
				.x = x->data,
				.grad = grad->data,
				.weight = cuda_data(weight),
				.out = cuda_data(dx),
				.mean = mean->data,
				.rstd = rstd->data };
	struct cuda_call c;
	int err = cuda_begin_with(&c, "layer_norm_backward", x->device.index, dx, dweight, dbias,
				  grad, x, mean, rstd, weight);

	if (err)
		return err;
	err = check_size(&c, &l);
	if (!err && dx && x->numel)
		err = cuda_launched(&c, cuda_launch_layer_norm_dx(&l, x->dtype, c.stream),
				    x->dtype);
	if (!err && (dweight || dbias) && l.n)
		err = dweight_of(&c, &l, dweight, dbias, x->dtype);
	return cuda_end(&c, err);
}
