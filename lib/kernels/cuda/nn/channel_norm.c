// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* batch_norm and group_norm: scratch memory for sums and factors, and the order of the launches. */
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch_nn.h"

static struct cuda_channels channels_of(const tensor *x, int64_t batch, int64_t channels,
					int64_t inner, int64_t group)
{
	return (struct cuda_channels){ .batch = batch,
				       .channels = channels,
				       .inner = inner,
				       .group = group,
				       .wide = x->numel > CUDA_NARROW_MAX,
				       .x = x->data,
				       .dtype = x->dtype };
}

static int check_channels(const struct cuda_call *c, int64_t channels)
{
	return channels <= INT32_MAX ?
		       0 :
		       tensor_fail(EOPNOTSUPP, "%s: cuda: %lld channels, at most 2^31 - 1", c->op,
				   (long long)channels);
}

static size_t factors_size(const struct cuda_channels *n)
{
	return (size_t)n->channels * CUDA_CHANNEL_FACTORS *
	       tensor_itemsize(dtype_wide((enum tensor_dtype)n->dtype));
}

static int launched(const struct cuda_call *c, const struct cuda_channels *n, int err)
{
	return cuda_launched(c, err, (enum tensor_dtype)n->dtype);
}

/* Mean, and variance or rstd, of each channel. */
static int statistics(const struct cuda_call *c, const struct cuda_channels *n, void *mean,
		      void *var, bool rstd, double eps)
{
	const int split = cuda_channel_split(n);
	void *partial = NULL;
	int err = cuda_scratch(c, (size_t)n->channels * (size_t)split * CUDA_CHANNEL_PARTIAL,
			       &partial);

	if (!err)
		err = launched(c, n, cuda_launch_channel_stats(n, partial, split, c->stream));
	if (!err)
		err = launched(c, n,
			       cuda_launch_channel_stats_end(n, mean, var, rstd, eps, partial,
							     split, c->stream));
	cuda_scratch_free(c, partial);
	return err;
}

static int affine(const struct cuda_call *c, const struct cuda_channels *n,
		  const struct cuda_channel_factors *f, tensor *out)
{
	void *factors = NULL;
	int err = out->numel ? cuda_scratch(c, factors_size(n), &factors) : 0;

	if (!err && out->numel)
		err = launched(c, n,
			       cuda_launch_channel_affine(n, f, factors, out->data, c->stream));
	cuda_scratch_free(c, factors);
	return err;
}

/* ---- batch_norm: x is [n, channels, inner] ---- */

int cuda_batch_stats(tensor *mean, tensor *var, const tensor *x)
{
	const struct cuda_channels n = channels_of(x, x->sizes[0], x->sizes[1], x->sizes[2], 1);
	struct cuda_call c;
	int err;

	if (!n.channels)
		return 0;
	err = cuda_begin_with(&c, "batch_norm", x->device.index, mean, var, x);
	if (err)
		return err;
	err = check_channels(&c, n.channels);
	if (!err)
		err = statistics(&c, &n, mean->data, var->data, false, 0);
	return cuda_end(&c, err);
}

int cuda_batch_apply(tensor *out, const tensor *x, const tensor *mean, const tensor *invstd,
		     const tensor *weight, const tensor *bias)
{
	const struct cuda_channels n = channels_of(x, x->sizes[0], x->sizes[1], x->sizes[2], 1);
	const struct cuda_channel_factors f = { .mean = mean->data,
						.rstd = invstd->data,
						.weight = cuda_data(weight),
						.bias = cuda_data(bias),
						.groups = n.channels };
	struct cuda_call c;
	int err = cuda_begin_with(&c, "batch_norm", x->device.index, out, x, mean, invstd, weight,
				  bias);

	if (err)
		return err;
	err = check_channels(&c, n.channels);
	return cuda_end(&c, err ? err : affine(&c, &n, &f, out));
}

/* The end of a backward: from sums of each channel to the gradients. */
typedef int (*sums_end)(const struct cuda_channels *c, const struct cuda_channel_factors *f,
			const void *partial, int split, void *factors, cudaStream_t stream);

/* sums: whether they are needed. */
static int backward(const struct cuda_call *c, const struct cuda_channels *n,
		    const struct cuda_channel_factors *f, sums_end end, bool sums, tensor *dx)
{
	const int split = cuda_channel_split(n);
	const size_t size = (size_t)n->channels * (size_t)split * CUDA_CHANNEL_PARTIAL;
	void *partial = NULL, *factors = NULL;
	int err = sums ? cuda_scratch(c, size, &partial) : 0;

	if (!err && dx)
		err = cuda_scratch(c, factors_size(n), &factors);
	if (!err && sums && n->channels)
		err = launched(c, n, cuda_launch_channel_sums(n, partial, split, c->stream));
	if (!err)
		err = launched(c, n, end(n, f, partial, split, factors, c->stream));
	if (!err && dx && dx->numel)
		err = launched(c, n,
			       cuda_launch_channel_dx(n, factors, f->train, dx->data, c->stream));
	cuda_scratch_free(c, factors);
	cuda_scratch_free(c, partial);
	return err;
}

int cuda_batch_norm_backward(tensor *dx, tensor *dweight, tensor *dbias, const tensor *grad,
			     const tensor *x, const tensor *mean, const tensor *invstd,
			     const tensor *weight, bool train)
{
	struct cuda_channels n = channels_of(x, x->sizes[0], x->sizes[1], x->sizes[2], 1);
	const struct cuda_channel_factors f = { .mean = mean->data,
						.rstd = invstd->data,
						.weight = cuda_data(weight),
						.groups = n.channels,
						.train = train,
						.dweight = cuda_data(dweight),
						.dbias = cuda_data(dbias) };
	struct cuda_call c;
	int err;

	if (!n.channels)
		return 0;
	err = cuda_begin_with(&c, "batch_norm_backward", x->device.index, dx, dweight, dbias, grad,
			      x, mean, invstd, weight);
	if (err)
		return err;
	n.grad = grad->data;
	n.mean = mean->data;
	err = check_channels(&c, n.channels);
	if (!err)
		err = backward(&c, &n, &f, cuda_launch_batch_sums_end, dweight || dbias || train,
			       dx);
	return cuda_end(&c, err);
}

/* ---- group_norm: x is [n, groups, channels, inner] ---- */

int cuda_group_norm(tensor *out, tensor *mean, tensor *rstd, const tensor *x, const tensor *weight,
		    const tensor *bias, double eps)
{
	const int64_t rows = x->sizes[0] * x->sizes[1], group = x->sizes[2], inner = x->sizes[3];
	const struct cuda_channels of_rows = channels_of(x, 1, rows, group * inner, 1);
	const struct cuda_channels n = channels_of(x, 1, rows * group, inner, group);
	const struct cuda_channel_factors f = { .mean = mean->data,
						.rstd = rstd->data,
						.weight = cuda_data(weight),
						.bias = cuda_data(bias),
						.groups = x->sizes[1] };
	struct cuda_call c;
	int err;

	if (!rows)
		return 0;
	err = cuda_begin_with(&c, "group_norm", x->device.index, out, mean, rstd, x, weight, bias);
	if (err)
		return err;
	err = check_channels(&c, n.channels);
	if (!err)
		err = statistics(&c, &of_rows, mean->data, rstd->data, true, eps);
	return cuda_end(&c, err ? err : affine(&c, &n, &f, out));
}

int cuda_group_norm_backward(tensor *dx, tensor *dweight, tensor *dbias, const tensor *grad,
			     const tensor *x, const tensor *mean, const tensor *rstd,
			     const tensor *weight)
{
	const int64_t rows = x->sizes[0] * x->sizes[1], group = x->sizes[2];
	struct cuda_channels n = channels_of(x, 1, rows * group, x->sizes[3], group);
	struct cuda_channel_factors f = { .mean = mean->data,
					  .rstd = rstd->data,
					  .weight = cuda_data(weight),
					  .groups = x->sizes[1],
					  .train = true,
					  .dweight = cuda_data(dweight),
					  .dbias = cuda_data(dbias) };
	struct cuda_call c;
	int err;

	if (!x->sizes[1] || !group)
		return 0;
	err = cuda_begin_with(&c, "group_norm_backward", x->device.index, dx, dweight, dbias, grad,
			      x, mean, rstd, weight);
	if (err)
		return err;
	n.grad = grad->data;
	n.mean = mean->data;
	err = check_channels(&c, n.channels);
	if (!err)
		err = cuda_scratch(&c, (size_t)(2 * rows) * sizeof(double), &f.row_sums);
	if (!err)
		err = backward(&c, &n, &f, cuda_launch_group_sums_end, true, dx);
	cuda_scratch_free(&c, f.row_sums);
	return cuda_end(&c, err);
}
