// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Reductions and softmax: divides the dimensions into kept and reduced ones, then launches. */
#include "kernels/cuda/kernels.h"

/* Number of pieces into which each row is cut if there are too few rows to fill the device. It
 * depends on the shape alone, so that a sum has the same bits on every device. */
static int pieces(const struct cuda_rows *r)
{
	const int64_t piece = 16384, most = 512, threads = 1 << 17;
	int64_t rows = r->kept.numel, count = r->reduced.numel, n = count / piece;

	if (r->across) { /* enough threads, with 64 elements each or more */
		n = threads / rows;
		n = n < count / 64 ? n : count / 64;
	} else if (rows > 512) {
		n = 1;
	}
	return (int)(n < 1 ? 1 : n < most ? n : most);
}

/* Dimensions of self whose bit is set in `dims` go to `reduced`; other operands may have size 1
 * there. */
static void sort_dims_of(struct cuda_rows *r, const tensor *const *t, int n, const tensor *self,
			 uint32_t dims)
{
	int64_t stride[CUDA_OPERANDS];

	cuda_dims_init(&r->kept);
	cuda_dims_init(&r->reduced);
	for (int d = self->ndim - 1; d >= 0; d--) {
		for (int i = 0; i < n; i++)
			stride[i] = t[i]->strides[d];
		cuda_dims_add(dims & 1u << d ? &r->reduced : &r->kept, n, self->sizes[d], stride);
	}
	cuda_dims_done_together(&r->kept, &r->reduced, n);
	for (int i = 0; i < n; i++)
		r->data[i] = t[i]->data;
}

/* Whether elements are adjacent across rows, not along them. */
static bool is_across(const struct cuda_rows *r)
{
	return r->kept.ndim && r->kept.size[0] >= 32 && r->kept.stride[1][0] == 1 &&
	       r->reduced.ndim && r->reduced.stride[1][0] != 1;
}

/* self is the last operand. */
static void sort_dims(struct cuda_rows *r, const tensor *const *t, int n, uint32_t dims)
{
	sort_dims_of(r, t, n, t[n - 1], dims);
}

static int sum(struct cuda_call *c, struct cuda_rows *r, tensor *out, const tensor *self)
{
	void *partial = NULL;
	int split, err;

	r->across = is_across(r);
	split = pieces(r);

	if (split > 1) {
		err = cuda_scratch(c, r->kept.numel * split * tensor_itemsize(out->dtype),
				   &partial);
		if (err)
			return err;
	}
	err = cuda_launch_sum(r, self->dtype, split, partial, c->stream);
	cuda_scratch_free(c, partial);
	return cuda_launched(c, err, self->dtype);
}

/* ---- other reductions ---- */

/* Whether the results that the kernel gives are elements of out. */
static bool gives(enum cuda_reduction which, const tensor *out, const tensor *self)
{
	const bool integral = self->dtype <= TENSOR_I64;

	switch (which) {
	case CUDA_REDUCE_ANY:
	case CUDA_REDUCE_ALL:
		return out->dtype == TENSOR_BOOL || out->dtype == TENSOR_U8;
	case CUDA_REDUCE_COUNT:
		return out->dtype == TENSOR_I64;
	case CUDA_REDUCE_PROD:
		return out->dtype == (integral ? TENSOR_I64 : self->dtype);
	default:
		return out->dtype == self->dtype;
	}
}

/* p: the correction of a variance, the order of a norm. */
static int reduce(const char *op, enum cuda_reduction which, tensor *out, const tensor *self,
		  uint32_t dims, double p)
{
	const tensor *t[] = { out, self };
	struct cuda_rows r;
	struct cuda_call c;
	void *partial = NULL;
	int split, err;

	if (!gives(which, out, self))
		return tensor_kernel_no_dtype(op, self->dtype, "cuda");
	sort_dims(&r, t, 2, dims);
	if (!r.kept.numel)
		return 0;
	err = cuda_begin_with(&c, op, out->device.index, out, self);
	if (err)
		return err;
	r.across = is_across(&r);
	split = pieces(&r);
	if (split > 1)
		err = cuda_scratch(&c, (size_t)(r.kept.numel * split) * CUDA_REDUCE_PARTIAL,
				   &partial);
	if (!err)
		err = cuda_launched(
			&c, cuda_launch_reduce(which, &r, self->dtype, p, split, partial, c.stream),
			self->dtype);
	cuda_scratch_free(&c, partial);
	return cuda_end(&c, err);
}

int cuda_sum(tensor *out, const tensor *self, uint32_t dims)
{
	const tensor *t[] = { out, self };
	struct cuda_rows r;
	struct cuda_call c;
	int err;

	if (self->dtype == TENSOR_F16 || self->dtype == TENSOR_BF16)
		return reduce("sum", CUDA_REDUCE_SUM, out, self, dims, 0);
	sort_dims(&r, t, 2, dims);
	if (!r.kept.numel)
		return 0;
	err = cuda_begin_with(&c, "sum", out->device.index, out, self);
	if (err)
		return err;
	return cuda_end(&c, sum(&c, &r, out, self));
}

int cuda_mean(tensor *out, const tensor *self, uint32_t dims)
{
	return reduce("mean", CUDA_REDUCE_MEAN, out, self, dims, 0);
}

int cuda_nansum(tensor *out, const tensor *self, uint32_t dims)
{
	if (dtype_is_integral(self->dtype))
		return cuda_sum(out, self, dims);
	return reduce("nansum", CUDA_REDUCE_NANSUM, out, self, dims, 0);
}

int cuda_prod(tensor *out, const tensor *self, uint32_t dims)
{
	return reduce("prod", CUDA_REDUCE_PROD, out, self, dims, 0);
}

int cuda_max_all(tensor *out, const tensor *self, uint32_t dims)
{
	return reduce("max", CUDA_REDUCE_MAX, out, self, dims, 0);
}

int cuda_min_all(tensor *out, const tensor *self, uint32_t dims)
{
	return reduce("min", CUDA_REDUCE_MIN, out, self, dims, 0);
}

int cuda_any(tensor *out, const tensor *self, uint32_t dims)
{
	return reduce("any", CUDA_REDUCE_ANY, out, self, dims, 0);
}

int cuda_all(tensor *out, const tensor *self, uint32_t dims)
{
	return reduce("all", CUDA_REDUCE_ALL, out, self, dims, 0);
}

int cuda_count_nonzero(tensor *out, const tensor *self, uint32_t dims)
{
	return reduce("count_nonzero", CUDA_REDUCE_COUNT, out, self, dims, 0);
}

int cuda_var(tensor *out, const tensor *self, uint32_t dims, double correction)
{
	return reduce("var", CUDA_REDUCE_VAR, out, self, dims, correction);
}

int cuda_std(tensor *out, const tensor *self, uint32_t dims, double correction)
{
	return reduce("std", CUDA_REDUCE_STD, out, self, dims, correction);
}

int cuda_norm(tensor *out, const tensor *self, uint32_t dims, double p)
{
	return reduce("norm", CUDA_REDUCE_NORM, out, self, dims, p);
}

int cuda_logsumexp(tensor *out, const tensor *self, uint32_t dims)
{
	return reduce("logsumexp", CUDA_REDUCE_LOGSUMEXP, out, self, dims, 0);
}

/* indices and values (which may be NULL) have the kept dimensions of self. */
static int extreme(const char *op, bool greatest, tensor *values, tensor *indices,
		   const tensor *self, uint32_t dims)
{
	const tensor *t[] = { values ? values : indices, self, indices };
	struct cuda_rows r;
	struct cuda_call c;
	void *partial = NULL;
	int split, err;

	sort_dims_of(&r, t, 3, self, dims);
	if (!r.kept.numel)
		return 0;
	err = cuda_begin_all(&c, op, self->device.index, t, 3);
	if (err)
		return err;
	r.data[0] = values ? values->data : NULL;
	r.across = is_across(&r);
	split = pieces(&r);
	if (split > 1)
		err = cuda_scratch(&c, (size_t)(r.kept.numel * split) * CUDA_REDUCE_PARTIAL,
				   &partial);
	if (!err)
		err = cuda_launched(&c,
				    cuda_launch_extreme(greatest, &r, self->dtype, indices->data,
							split, partial, c.stream),
				    self->dtype);
	cuda_scratch_free(&c, partial);
	return cuda_end(&c, err);
}

int cuda_argmax(tensor *values, tensor *indices, const tensor *self, uint32_t dims)
{
	return extreme("argmax", true, values, indices, self, dims);
}

int cuda_argmin(tensor *values, tensor *indices, const tensor *self, uint32_t dims)
{
	return extreme("argmin", false, values, indices, self, dims);
}

int cuda_max_dim(tensor *values, tensor *indices, const tensor *self, uint32_t dims)
{
	return extreme("max", true, values, indices, self, dims);
}

int cuda_min_dim(tensor *values, tensor *indices, const tensor *self, uint32_t dims)
{
	return extreme("min", false, values, indices, self, dims);
}

/* ---- softmax ---- */

static int softmax(const char *op, tensor *out, const tensor *self, int dim, bool log)
{
	const tensor *t[] = { out, self };
	struct cuda_rows r;
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	sort_dims(&r, t, 2, 1u << dim);
	r.across = is_across(&r);
	err = cuda_begin_with(&c, op, out->device.index, out, self);
	if (err)
		return err;
	err = cuda_launch_softmax(&r, self->dtype, log, c.stream);
	return cuda_end(&c, cuda_launched(&c, err, self->dtype));
}

int cuda_softmax(tensor *out, const tensor *self, int dim)
{
	return softmax("softmax", out, self, dim, false);
}

int cuda_log_softmax(tensor *out, const tensor *self, int dim)
{
	return softmax("log_softmax", out, self, dim, true);
}

static int softmax_backward(const char *op, tensor *out, const tensor *grad, const tensor *output,
			    int dim, bool log)
{
	const tensor *t[] = { out, grad, output };
	struct cuda_rows r;
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	sort_dims(&r, t, 3, 1u << dim);
	r.across = is_across(&r);
	err = cuda_begin_all(&c, op, out->device.index, t, 3);
	if (err)
		return err;
	err = cuda_launch_softmax_backward(&r, output->dtype, log, c.stream);
	return cuda_end(&c, cuda_launched(&c, err, output->dtype));
}

int cuda_softmax_backward(tensor *out, const tensor *grad, const tensor *output, int dim)
{
	return softmax_backward("softmax_backward", out, grad, output, dim, false);
}

int cuda_log_softmax_backward(tensor *out, const tensor *grad, const tensor *output, int dim)
{
	return softmax_backward("log_softmax_backward", out, grad, output, dim, true);
}
