// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * batch_norm: statistics of each channel over the batch and the inner elements, normalization, and
 * the gradients. Sums are parallel over channels, all else over rows of one channel.
 */
#include "kernels/cpu/simd/cpu.h"
#include "kernels/cpu/simd/vec.h"
#include "kernels/cpu/nn/norm_dtype.h"

#include "kernels/abi/batch_norm.h"
#include "iter/parallel.h"

struct batch {
	const void *x, *grad, *weight, *bias; /* the last two may be NULL */
	void *out, *mean, *var, *invstd;
	void *sum_grad, *sum_product; /* [channels] */
	double *sums;		      /* two for each channel */
	int64_t n, channels, inner;
	bool train;
};

#define LOOPS_FILE "kernels/cpu/nn/batch_norm_loops.h"
#include "kernels/cpu/nn/norm_each.h"

static int set_input(const char *name, struct batch *t, const tensor *x)
{
	t->x = x->data;
	t->n = x->sizes[0];
	t->channels = x->sizes[1];
	t->inner = x->sizes[2];
	return norm_has_dtype(x) ? 0 : tensor_kernel_no_dtype(name, x->dtype, "cpu");
}

/* Channels in a chunk of parallel sums. */
static int64_t channel_grain(const struct batch *t)
{
	int64_t each = t->n * t->inner + 1,
		grain = ITER_GRAIN / (each < ITER_GRAIN ? each : ITER_GRAIN);

	return t->inner == 1 && grain < 64 ? 64 : grain;
}

static int64_t row_grain(int64_t length)
{
	return length >= ITER_GRAIN ? 1 : ITER_GRAIN / (length ? length : 1);
}

static int cpu_batch_stats(tensor *mean, tensor *var, const tensor *x)
{
	struct batch t = { .mean = mean->data, .var = var->data };
	struct tensor_storage *s;

	if (set_input("batch_norm", &t, x) < 0)
		return -thread()->error.code;
	s = storage_alloc(TENSOR_DEVICE_CPU, 2 * t.channels * sizeof(double), false);
	if (!s)
		return -thread()->error.code;
	t.sums = s->data;
	parallel_for(0, t.channels, channel_grain(&t), NORM_BY_DTYPE(x, batch_stats), &t);
	storage_put(s);
	return 0;
}

static int cpu_batch_apply(tensor *out, const tensor *x, const tensor *mean, const tensor *invstd,
			   const tensor *weight, const tensor *bias)
{
	struct batch t = { .out = out->data,
			   .mean = mean->data,
			   .invstd = invstd->data,
			   .weight = weight ? weight->data : NULL,
			   .bias = bias ? bias->data : NULL };
	int64_t rows, length;

	if (set_input("batch_norm", &t, x) < 0)
		return -thread()->error.code;
	rows = t.inner == 1 ? t.n : t.n * t.channels;
	length = t.inner == 1 ? t.channels : t.inner;
	parallel_for(0, rows, row_grain(length), NORM_BY_DTYPE(x, batch_apply), &t);
	return 0;
}

static int cpu_batch_norm_backward(tensor *dx, tensor *dweight, tensor *dbias, const tensor *grad,
				   const tensor *x, const tensor *mean, const tensor *invstd,
				   const tensor *weight, bool train)
{
	struct batch t = { .grad = grad->data,
			   .out = dx ? dx->data : NULL,
			   .mean = mean->data,
			   .invstd = invstd->data,
			   .weight = weight ? weight->data : NULL,
			   .train = train };
	int64_t line;
	struct tensor_storage *s;

	if (set_input("batch_norm_backward", &t, x) < 0)
		return -thread()->error.code;
	line = t.channels * (int64_t)itemsize(mean);
	s = storage_alloc(TENSOR_DEVICE_CPU, 2 * t.channels * sizeof(double) + 2 * line, false);
	if (!s)
		return -thread()->error.code;
	t.sums = s->data;
	t.sum_grad = t.sums + 2 * t.channels;
	t.sum_product = (char *)t.sum_grad + line;
	if (dweight || dbias || train)
		parallel_for(0, t.channels, channel_grain(&t), NORM_BY_DTYPE(x, batch_grad_sums),
			     &t);
	if (dx)
		parallel_for(0, t.n * t.channels, row_grain(t.inner), NORM_BY_DTYPE(x, batch_dx),
			     &t);
	if (dweight)
		memcpy(dweight->data, t.sum_product, line);
	if (dbias)
		memcpy(dbias->data, t.sum_grad, line);
	storage_put(s);
	return 0;
}

CPU_KERNELS(KERNEL(batch_stats), KERNEL(batch_apply), KERNEL(batch_norm_backward))
