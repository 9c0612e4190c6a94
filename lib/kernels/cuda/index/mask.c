// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * nonzero, masked_select and masked_scatter. The size of a result is the number of true elements,
 * for which the host waits.
 */
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch_mask.h"

#include <tensor/ops.h>

/* The positions of chunks in the result, and the number of true elements. */
struct counted {
	int64_t *first, total;
};

static int count(const struct cuda_call *c, const tensor *mask, struct counted *n)
{
	const int64_t chunks = (mask->numel + CUDA_MASK_CHUNK - 1) / CUDA_MASK_CHUNK;
	void *data = NULL;
	int err;

	*n = (struct counted){ 0 };
	if (!mask->numel)
		return 0;
	if (chunks > INT32_MAX)
		return tensor_fail(EOPNOTSUPP, "%s: cuda: %lld elements", c->op,
				   (long long)mask->numel);
	err = cuda_scratch(c, (size_t)(chunks + 1) * sizeof(int64_t), &data);
	if (err)
		return err;
	n->first = data;
	err = cuda_check(c->op,
			 cuda_launch_mask_count(mask->data, mask->numel, n->first, c->stream));
	if (!err)
		err = cuda_check(c->op,
				 cudaMemcpyAsync(&n->total, n->first + chunks, sizeof(n->total),
						 cudaMemcpyDeviceToHost, c->stream));
	return err ? err : cuda_wait(c);
}

/* A new tensor, owned; NULL with the error set. */
static tensor *new_strided(const tensor *like, enum tensor_dtype dtype, const int64_t *sizes,
			   const int64_t *strides, int ndim)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *t = tensor_empty_strided((tensor_ints){ sizes, ndim },
					 (tensor_ints){ strides, ndim },
					 TENSOR_OPTIONS(.dtype = dtype, .device = like->device));

	t = t ? tensor_retain(t) : NULL;
	tensor_scope_leave(&guard);
	return t;
}

static tensor *nonzero(const struct cuda_call *c, const tensor *mask, const struct counted *n)
{
	const int64_t sizes[] = { n->total, mask->ndim };
	const int64_t strides[] = { 1, n->total > 1 ? n->total : 1 };
	tensor *out = new_strided(mask, TENSOR_I64, sizes, strides, 2);

	if (!out || !n->total || !mask->ndim)
		return out;
	if (cuda_check(c->op, cuda_launch_nonzero(mask->data, mask->numel, n->first, mask->sizes,
						  mask->ndim, n->total, out->data, c->stream)) <
	    0) {
		tensor_release(out);
		return NULL;
	}
	return out;
}

tensor *cuda_nonzero(const tensor *mask)
{
	struct counted n;
	struct cuda_call c;
	tensor *out = NULL;

	if (cuda_begin_with(&c, "nonzero", mask->device.index, mask) < 0)
		return NULL;
	if (!count(&c, mask, &n))
		out = nonzero(&c, mask, &n);
	cuda_scratch_free(&c, n.first);
	cuda_end(&c, out ? 0 : -tensor_last_error()->code);
	return out;
}

static int masked(const struct cuda_call *c, const tensor *mask, const struct counted *n,
		  bool select, void *to, const void *from, size_t itemsize)
{
	return n->total ? cuda_check(c->op,
				     cuda_launch_masked(mask->data, mask->numel, n->first, select,
							to, from, (int)itemsize, c->stream)) :
			  0;
}

tensor *cuda_masked_select(const tensor *self, const tensor *mask)
{
	const int64_t step = 1;
	struct counted n;
	struct cuda_call c;
	tensor *out = NULL;

	if (cuda_begin_with(&c, "masked_select", mask->device.index, self, mask) < 0)
		return NULL;
	if (!count(&c, mask, &n))
		out = new_strided(self, (enum tensor_dtype)self->dtype, &n.total, &step, 1);
	if (out &&
	    masked(&c, mask, &n, true, out->data, self->data, tensor_itemsize(self->dtype))) {
		tensor_release(out);
		out = NULL;
	}
	cuda_scratch_free(&c, n.first);
	cuda_end(&c, out ? 0 : -tensor_last_error()->code);
	return out;
}

int cuda_masked_scatter(tensor *out, const tensor *mask, const tensor *source)
{
	struct counted n;
	struct cuda_call c;
	int err = cuda_begin_with(&c, "masked_scatter", out->device.index, out, mask, source);

	if (err)
		return err;
	err = count(&c, mask, &n);
	if (!err && n.total > source->numel)
		err = tensor_fail(EINVAL,
				  "masked_scatter: the mask has %lld true elements, source only "
				  "%lld elements",
				  (long long)n.total, (long long)source->numel);
	if (!err)
		err = masked(&c, mask, &n, false, out->data, source->data,
			     tensor_itemsize(out->dtype));
	cuda_scratch_free(&c, n.first);
	return cuda_end(&c, err);
}
