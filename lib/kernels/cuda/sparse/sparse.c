// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Kernels of sparse tensors: their arguments. */
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch_sparse.h"
#include "kernels/cuda/sparse/cusparse.h"

int cuda_spmm(tensor *out, const tensor *crow, const tensor *col, const tensor *values,
	      const tensor *dense, double alpha, double beta)
{
	const struct cuda_spmm s = { .m = out->sizes[0],
				     .n = out->sizes[1],
				     .k = dense->sizes[0],
				     .lda = dense->strides[0],
				     .ldo = out->strides[0],
				     .entries = values->sizes[0],
				     .crow = crow->data,
				     .col = col->data,
				     .values = values->data,
				     .dense = dense->data,
				     .out = out->data,
				     .alpha = alpha,
				     .beta = beta };
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	err = cuda_begin_with(&c, "spmm", out->device.index, out, crow, col, values, dense);
	if (err)
		return err;
	err = cusparse_spmm(&c, &s, (enum tensor_dtype)out->dtype);
	if (!err)
		err = cuda_launched(&c, cuda_launch_spmm(&s, out->dtype, c.stream),
				    (enum tensor_dtype)out->dtype);
	return cuda_end(&c, err < 0 ? err : 0);
}

int cuda_sampled_mm(tensor *out, const tensor *at, const tensor *a, const tensor *b)
{
	const int64_t *row = at->data;
	const struct cuda_sampled_mm s = { .n = out->numel,
					   .k = a->sizes[1],
					   .lda = a->strides[0],
					   .ldb = b->strides[0],
					   .row = row,
					   .col = row + at->sizes[1],
					   .a = a->data,
					   .b = b->data,
					   .out = out->data };
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	err = cuda_begin_with(&c, "sampled_mm", out->device.index, out, at, a, b);
	if (err)
		return err;
	err = cuda_launched(&c, cuda_launch_sampled_mm(&s, out->dtype, c.stream),
			    (enum tensor_dtype)out->dtype);
	return cuda_end(&c, err);
}

int cuda_sum_runs(tensor *out, const tensor *values, const tensor *order, const tensor *starts)
{
	struct cuda_sum_runs s = { .runs = out->sizes[0],
				   .order = order->data,
				   .starts = starts->data,
				   .values = values->data,
				   .out = out->data };
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	s.block = out->numel / s.runs;
	err = cuda_begin_with(&c, "sum_runs", out->device.index, out, values, order, starts);
	if (err)
		return err;
	err = cuda_launched(&c, cuda_launch_sum_runs(&s, out->dtype, c.stream),
			    (enum tensor_dtype)out->dtype);
	return cuda_end(&c, err);
}
