// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Reductions and softmax: divides the dimensions into kept and reduced ones, then launches. */
#include "kernels/cuda/cuda.h"

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

/* Dimensions of self whose bit is set in `dims` go to `reduced`; t[0] may have size 1 there. */
static void sort_dims(struct cuda_rows *r, const tensor *const *t, int n, uint32_t dims)
{
	const tensor *self = t[n - 1];
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

int cuda_sum(tensor *out, const tensor *self, uint32_t dims)
{
	const tensor *t[] = { out, self };
	struct cuda_rows r;
	struct cuda_call c;
	int err;

	sort_dims(&r, t, 2, dims);
	if (!r.kept.numel)
		return 0;
	err = cuda_begin(&c, "sum", out->device.index);
	if (err)
		return err;
	cuda_use(&c, out);
	cuda_use(&c, self);
	return cuda_end(&c, sum(&c, &r, out, self));
}

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
	err = cuda_begin(&c, op, out->device.index);
	if (err)
		return err;
	cuda_use(&c, out);
	cuda_use(&c, self);
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
	err = cuda_begin(&c, op, out->device.index);
	if (err)
		return err;
	for (int i = 0; i < 3; i++)
		cuda_use(&c, t[i]);
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
