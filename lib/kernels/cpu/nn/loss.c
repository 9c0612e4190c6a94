// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * nll_loss and its gradient: the loss of a row is the negated log probability of its target class
 * times the weight of the class. Only one element of each row is read, so the kernel runs on the
 * calling thread. Sums are in f64.
 */
#include "kernels/cpu/simd/cpu.h"

/* Targets and weights, for the loss and for its gradient; strides in elements. */
struct classes {
	const int64_t *target;
	const char *weight; /* NULL: 1 */
	int64_t rows, classes, target_stride, weight_stride, ignore_index;
};

static struct classes classes_of(const tensor *self, const tensor *target, const tensor *weight,
				 int64_t ignore_index)
{
	return (struct classes){
		.target = target->data,
		.weight = weight ? weight->data : NULL,
		.rows = target->numel,
		.classes = self->sizes[self->ndim - 1],
		.target_stride = target->ndim ? target->strides[0] : 0,
		.weight_stride = weight ? weight->strides[0] : 0,
		.ignore_index = ignore_index,
	};
}

static int fail_target(const struct classes *c, int64_t row)
{
	return tensor_fail(EINVAL, "nll_loss: target of row %lld is class %lld, expected 0 to %lld",
			   (long long)row, (long long)c->target[row * c->target_stride],
			   (long long)c->classes - 1);
}

/* The class of a row, IGNORED or OUT_OF_RANGE. */
enum { IGNORED = -1, OUT_OF_RANGE = -2 };
static int64_t class_of(const struct classes *c, int64_t row)
{
	/* One read: another process may write to a shared target at any time. */
	int64_t t = *(const volatile int64_t *)&c->target[row * c->target_stride];

	return t == c->ignore_index ? IGNORED : t < 0 || t >= c->classes ? OUT_OF_RANGE : t;
}

#define LOOPS_FILE "kernels/cpu/nn/loss_loops.h"
#include "kernels/cpu/simd/each_float.h"

static int cpu_nll_loss(tensor *output, tensor *total_weight, const tensor *self,
			const tensor *target, const tensor *weight, enum loss_reduction reduction,
			int64_t ignore_index)
{
	const struct classes c = classes_of(self, target, weight, ignore_index);
	int64_t stride = output->ndim ? output->strides[0] : 0;

	switch (self->dtype) {
	case TENSOR_F32:
		return nll_f32(output->data, stride, total_weight->data, self, &c, reduction);
	case TENSOR_F64:
		return nll_f64(output->data, stride, total_weight->data, self, &c, reduction);
	default:
		return tensor_kernel_no_dtype("nll_loss", self->dtype, "cpu");
	}
}

static int cpu_nll_loss_backward(tensor *out, const tensor *grad_output, const tensor *target,
				 const tensor *weight, enum loss_reduction reduction,
				 int64_t ignore_index, const tensor *total_weight)
{
	const struct classes c = classes_of(out, target, weight, ignore_index);
	int64_t stride = grad_output->ndim ? grad_output->strides[0] : 0;

	switch (out->dtype) {
	case TENSOR_F32:
		return nll_backward_f32(out, grad_output->data, stride, &c, reduction,
					*(const float *)total_weight->data);
	case TENSOR_F64:
		return nll_backward_f64(out, grad_output->data, stride, &c, reduction,
					*(const double *)total_weight->data);
	default:
		return tensor_kernel_no_dtype("nll_loss_backward", out->dtype, "cpu");
	}
}

CPU_KERNELS(KERNEL(nll_loss), KERNEL(nll_loss_backward))
