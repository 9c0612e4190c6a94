// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Losses of pairs of elements (mse, l1, smooth_l1, huber), their sums and derivatives, in one pass.
 * Parts of the elements are summed in blocks; the parts depend on the number of elements alone.
 */
#include "kernels/cpu/simd/vec.h"
#include "kernels/cpu/simd/cpu.h"

#include "iter/parallel.h"
#include "kernels/abi/pair_loss.h"

#define PARTS 128 /* at most, each with a sum */
#define BLOCK 512 /* elements summed in their own type */

struct pair_job {
	void *out; /* NULL: only sums */
	const void *self, *target;
	const struct pair_loss *loss;
	int64_t n, part;
	double sum[PARTS];
	const void *grad; /* of the derivatives; one element unless `each` */
	double factor;
	bool each;
};

#define LOOPS_FILE "kernels/cpu/nn/pair_loss_loops.h"
#include "kernels/cpu/simd/each_float.h"

static int cpu_pair_loss(tensor *out, const tensor *self, const tensor *target,
			 const struct pair_loss *loss, enum loss_reduction reduction)
{
	struct pair_job j = { .self = self->data, .target = target->data, .loss = loss };
	int64_t parts;
	double sum = 0;

	if (self->dtype != TENSOR_F32 && self->dtype != TENSOR_F64)
		return tensor_kernel_no_dtype("pair_loss", self->dtype, "cpu");
	j.out = reduction == LOSS_NONE ? out->data : NULL;
	j.n = self->numel;
	j.part = j.n / PARTS + 1 < ITER_GRAIN ? ITER_GRAIN : j.n / PARTS + 1;
	parts = (j.n + j.part - 1) / j.part;
	parallel_for(0, parts, 1, self->dtype == TENSOR_F32 ? losses_f32 : losses_f64, &j);
	if (j.out)
		return 0;
	for (int64_t i = 0; i < parts; i++)
		sum += j.sum[i];
	if (reduction == LOSS_MEAN)
		sum /= (double)j.n;
	if (self->dtype == TENSOR_F32)
		*(float *)out->data = (float)sum;
	else
		*(double *)out->data = sum;
	return 0;
}

static int cpu_pair_loss_backward(tensor *out, const tensor *grad, const tensor *self,
				  const tensor *target, const struct pair_loss *loss, double factor)
{
	struct pair_job j = { .out = out->data,
			      .self = self->data,
			      .target = target->data,
			      .loss = loss,
			      .grad = grad->data,
			      .factor = factor,
			      .each = grad->numel != 1 };

	if (self->dtype != TENSOR_F32 && self->dtype != TENSOR_F64)
		return tensor_kernel_no_dtype("pair_loss_backward", self->dtype, "cpu");
	parallel_for(0, self->numel, ITER_GRAIN,
		     self->dtype == TENSOR_F32 ? derivatives_f32 : derivatives_f64, &j);
	return 0;
}

CPU_KERNELS(KERNEL(pair_loss), KERNEL(pair_loss_backward))
