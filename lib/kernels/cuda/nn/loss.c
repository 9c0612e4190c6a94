// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* nll_loss and its gradient. A target that is no class is an error, and counts as one that is ignored until it is reported. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/launch_nn.h"

enum { ROWS = 256, MOST_BLOCKS = 512 }; /* rows of a block; blocks of the first sum */

static struct cuda_nll describe(const tensor *self, const tensor *target, const tensor *weight,
				enum loss_reduction reduction, int64_t ignore_index)
{
	const int d = self->ndim;

	return (struct cuda_nll){ .target = target->data,
				  .weight = cuda_data(weight),
				  .rows = target->numel,
				  .classes = self->sizes[d - 1],
				  .ignore_index = ignore_index,
				  .target_stride = target->ndim ? target->strides[0] : 0,
				  .weight_stride = weight ? weight->strides[0] : 0,
				  .row_stride = d > 1 ? self->strides[0] : 0,
				  .class_stride = self->strides[d - 1],
				  .mean = reduction == LOSS_MEAN,
				  .each = reduction == LOSS_NONE && d > 1 };
}

static int forward(const struct cuda_call *c, struct cuda_nll *l, tensor *output,
		   tensor *total_weight, const tensor *self)
{
	int64_t blocks = (l->rows + ROWS - 1) / ROWS;
	struct cuda_check k;
	void *sums;
	int err;

	blocks = blocks < 1 ? 1 : blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS;
	err = cuda_scratch(c, 2 * (size_t)blocks * sizeof(double), &sums);
	if (err)
		return err;
	err = cuda_check_open(c, &k, false);
	if (!err) {
		l->bad = k.report;
		err = cuda_launch_nll(l, output->data, total_weight->data, self->data, sums,
				      (int)blocks, self->dtype, c->stream);
		err = cuda_check_end(c, &k, cuda_launched(c, err, self->dtype));
	}
	cuda_scratch_free(c, sums);
	return err;
}

int cuda_nll_loss(tensor *output, tensor *total_weight, const tensor *self, const tensor *target,
		  const tensor *weight, enum loss_reduction reduction, int64_t ignore_index)
{
	struct cuda_nll l = describe(self, target, weight, reduction, ignore_index);
	struct cuda_call c;
	int err = cuda_begin_with(&c, "nll_loss", self->device.index, output, total_weight, self,
				  target, weight);

	if (err)
		return err;
	l.out_stride = output->ndim ? output->strides[0] : 0;
	return cuda_end(&c, forward(&c, &l, output, total_weight, self));
}

/* out = 0, for any strides. */
static int clear(const struct cuda_call *c, const tensor *out)
{
	const int64_t size = (int64_t)tensor_itemsize(out->dtype);
	struct cuda_pointwise p = { .data = { out->data, NULL },
				    .itemsize = { (size_t)size, (size_t)size } };
	int64_t stride[CUDA_OPERANDS] = { 0 };

	cuda_dims_init(&p.dims);
	for (int d = out->ndim - 1; d >= 0; d--) {
		stride[0] = out->strides[d] * size;
		cuda_dims_add(&p.dims, 2, out->sizes[d], stride);
	}
	cuda_dims_done(&p.dims, 2);
	p.flat = p.dims.ndim <= 1 && (!p.dims.ndim || p.dims.stride[0][0] == size);
	return cuda_launched(c, cuda_launch_parts(cuda_launch_bits, &p, 2, (int)size, c->stream),
			     out->dtype);
}

static int backward(const struct cuda_call *c, struct cuda_nll *l, tensor *out, const tensor *grad,
		    const tensor *total_weight)
{
	struct cuda_check k;
	int err = clear(c, out);

	if (!err)
		err = cuda_check_open(c, &k, false);
	if (err)
		return err;
	l->bad = k.report;
	err = cuda_launch_nll_backward(l, out->data, grad->data, total_weight->data, out->dtype,
				       c->stream);
	return cuda_check_end(c, &k, cuda_launched(c, err, out->dtype));
}

int cuda_nll_loss_backward(tensor *out, const tensor *grad_output, const tensor *target,
			   const tensor *weight, enum loss_reduction reduction,
			   int64_t ignore_index, const tensor *total_weight)
{
	struct cuda_nll l = describe(out, target, weight, reduction, ignore_index);
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	err = cuda_begin_with(&c, "nll_loss_backward", out->device.index, out, grad_output, target,
			      total_weight, weight);
	if (err)
		return err;
	l.out_stride = grad_output->ndim ? grad_output->strides[0] : 0;
	return cuda_end(&c, backward(&c, &l, out, grad_output, total_weight));
}
