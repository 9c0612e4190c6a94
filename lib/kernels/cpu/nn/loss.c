// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * nll_loss: of each row of log probabilities the one at the row's class, negated and weighted.
 * One element a row is read, so this stays on the calling thread. Sums are taken in f64.
 */
#include "kernels/cpu/simd/cpu.h"

/* What both directions read; strides in elements. */
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

static int no_class(const struct classes *c, int64_t row)
{
	return tensor_fail(EINVAL, "nll_loss: target of row %lld is class %lld, expected 0 to %lld",
			   (long long)row, (long long)c->target[row * c->target_stride],
			   (long long)c->classes - 1);
}

/* The row's class, -1 for one to ignore, -2 for one that does not exist. */
static int64_t class_of(const struct classes *c, int64_t row)
{
	/* Once: another process that shares it may write at any time. */
	int64_t t = *(const volatile int64_t *)&c->target[row * c->target_stride];

	return t == c->ignore_index ? -1 : t < 0 || t >= c->classes ? -2 : t;
}

#define NLL(d, T, D)                                                                               \
	static T weight_##d(const struct classes *c, int64_t k)                                    \
	{                                                                                          \
		return c->weight ? ((const T *)c->weight)[k * c->weight_stride] : 1;               \
	}                                                                                          \
                                                                                                   \
	static int nll_##d(T *out, int64_t out_stride, T *total, const tensor *self,               \
			   const struct classes *c, enum loss_reduction reduction)                 \
	{                                                                                          \
		int64_t row_stride = self->ndim > 1 ? self->strides[0] : 0;                        \
		int64_t class_stride = self->strides[self->ndim - 1];                              \
		bool each = reduction == LOSS_NONE && self->ndim > 1;                              \
		double sum = 0, weights = 0;                                                       \
                                                                                                   \
		for (int64_t i = 0; i < c->rows; i++) {                                            \
			int64_t k = class_of(c, i);                                                \
			T w = k >= 0 ? weight_##d(c, k) : 0, loss = 0;                             \
                                                                                                   \
			if (k == -2)                                                               \
				return no_class(c, i);                                             \
			if (k >= 0)                                                                \
				loss = -w *                                                        \
				       ((const T *)self->data)[i * row_stride + k * class_stride]; \
			if (each)                                                                  \
				out[i * out_stride] = loss;                                        \
			sum += loss;                                                               \
			weights += w;                                                              \
		}                                                                                  \
		if (!each)                                                                         \
			*out = (T)(reduction == LOSS_MEAN ? sum / weights : sum);                  \
		*total = each ? 0 : (T)weights;                                                    \
		return 0;                                                                          \
	}                                                                                          \
                                                                                                   \
	static int nll_backward_##d(tensor *out, const T *grad, int64_t grad_stride,               \
				    const struct classes *c, enum loss_reduction reduction,        \
				    T total)                                                       \
	{                                                                                          \
		int64_t row_stride = out->ndim > 1 ? out->strides[0] : 0;                          \
		int64_t class_stride = out->strides[out->ndim - 1];                                \
                                                                                                   \
		for (int64_t i = 0; i < c->rows; i++) {                                            \
			T *row = (T *)out->data + i * row_stride;                                  \
			T g = grad[i * grad_stride];                                               \
			int64_t k = class_of(c, i);                                                \
                                                                                                   \
			if (k == -2)                                                               \
				return no_class(c, i);                                             \
			for (int64_t j = 0; j < c->classes; j++)                                   \
				row[j * class_stride] = 0;                                         \
			if (k >= 0)                                                                \
				row[k * class_stride] = -weight_##d(c, k) *                        \
							(reduction == LOSS_MEAN ? g / total : g);  \
		}                                                                                  \
		return 0;                                                                          \
	}
DTYPES_FLOAT(NLL)

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
		return kernel_no_dtype("nll_loss", self->dtype, "cpu");
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
		return kernel_no_dtype("nll_loss_backward", out->dtype, "cpu");
	}
}

CPU_KERNELS(K(nll_loss), K(nll_loss_backward))
