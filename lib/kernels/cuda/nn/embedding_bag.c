// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * embedding_bag and its gradients. An index that is out of range and an offset that does not ascend are errors; the kernels skip
 * such indices, and bound the ranges of bags.
 */
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch_embedding.h"

_Static_assert((int)CUDA_BAG_SUM == BAG_SUM && (int)CUDA_BAG_MEAN == BAG_MEAN &&
		       (int)CUDA_BAG_MAX == BAG_MAX,
	       "the modes of the launcher are those of the kernel's type");

static struct cuda_bags describe(const struct bags *b, int64_t bags, int64_t rows, int64_t d)
{
	return (struct cuda_bags){ .wide = b->indices->dtype == TENSOR_I64,
				   .mode = (enum cuda_bag_mode)b->mode,
				   .m = b->indices->numel,
				   .bags = bags,
				   .noffsets = b->offsets ? b->offsets->numel : 0,
				   .rows = rows,
				   .d = d,
				   .padding = b->e.padding_idx,
				   .indices = b->indices->data,
				   .offsets = cuda_data(b->offsets),
				   .factors = cuda_data(b->factors),
				   .offset2bag = cuda_data(b->offset2bag),
				   .bag_size = cuda_data(b->bag_size),
				   .maximum = cuda_data(b->maximum) };
}

static int begin(struct cuda_call *c, const char *op, const tensor *out, const tensor *a,
		 const tensor *b, const struct bags *bags)
{
	return cuda_begin_with(c, op, out->device.index, out, a, b, bags->indices, bags->offsets,
			       bags->factors, bags->offset2bag, bags->bag_size, bags->maximum);
}

/* ---- forward ---- */

static int forward(const struct cuda_call *c, struct cuda_bags *g, tensor *out,
		   const tensor *weight)
{
	struct cuda_check k;
	int err = cuda_check_open(c, &k, false);

	if (err)
		return err;
	g->bad = k.report;
	err = cuda_check(c->op, cuda_launch_bags_check(g, c->stream));
	if (!err)
		err = cuda_launched(
			c, cuda_launch_bags(g, out->data, weight->data, weight->dtype, c->stream),
			weight->dtype);
	return cuda_check_end(c, &k, err);
}

int cuda_embedding_bag(tensor *out, const tensor *weight, const struct bags *b)
{
	struct cuda_bags g = describe(b, out->sizes[0], weight->sizes[0], weight->sizes[1]);
	struct cuda_call c;
	int err = begin(&c, "embedding_bag", out, weight, NULL, b);

	if (err)
		return err;
	return cuda_end(&c, g.m || g.noffsets ? forward(&c, &g, out, weight) : 0);
}

/* ---- backward ---- */

/* The gradient from scaled rows: of each index, or for BAG_MAX of each bag. */
static int add_rows(const struct cuda_call *c, tensor *out, const tensor *grad, void *data,
		    const struct bags *b)
{
	tensor rows = *grad;
	int err;

	rows.data = data;
	rows.dtype = out->dtype;
	if (b->mode == BAG_MAX) {
		err = cuda_check(c->op,
				 cudaMemsetAsync(out->data, 0,
						 (size_t)out->numel * tensor_itemsize(out->dtype),
						 c->stream));
		return err ? err :
			     cuda_scatter_add("embedding_bag_backward", out, 0, b->maximum, &rows);
	}
	rows.sizes[0] = b->indices->numel;
	rows.numel = rows.sizes[0] * rows.sizes[1];
	return cuda_embedding_backward(out, &rows, b->indices, &b->e);
}

/* Rows of bags that are none become 0. */
static int scaled_rows(const struct cuda_call *c, struct cuda_bags *g, const tensor *grad,
		       void *data, bool empty)
{
	struct cuda_check k;
	int err = cuda_check_open(c, &k, false);

	if (err)
		return err;
	g->bad = k.report;
	err = cuda_check(c->op, cuda_launch_bags_check_made(g, c->stream));
	if (!err && !empty)
		err = cuda_launched(
			c, cuda_launch_bag_rows(g, data, grad->data, grad->dtype, c->stream),
			grad->dtype);
	return cuda_check_end(c, &k, err);
}

static int backward(const struct cuda_call *c, struct cuda_bags *g, tensor *out, const tensor *grad,
		    const struct bags *b)
{
	const int64_t rows = b->mode == BAG_MAX ? g->bags : g->m;
	void *data;
	int err = cuda_scratch(c, (size_t)(rows * g->d) * tensor_itemsize(out->dtype) + 1, &data);

	if (err)
		return err;
	err = scaled_rows(c, g, grad, data, !rows || !g->d);
	if (!err)
		err = add_rows(c, out, grad, data, b);
	cuda_scratch_free(c, data);
	return err;
}

int cuda_embedding_bag_backward(tensor *out, const tensor *grad, const struct bags *b)
{
	struct cuda_bags g = describe(b, grad->sizes[0], out->sizes[0], out->sizes[1]);
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	err = begin(&c, "embedding_bag_backward", out, grad, NULL, b);
	return err ? err : cuda_end(&c, backward(&c, &g, out, grad, b));
}

static int products(const struct cuda_call *c, struct cuda_bags *g, tensor *out, const tensor *grad,
		    const tensor *weight)
{
	struct cuda_check k;
	int err = cuda_check_open(c, &k, false);

	if (err)
		return err;
	g->bad = k.report;
	err = cuda_check(c->op, cuda_launch_bags_check_made(g, c->stream));
	if (!err)
		err = cuda_launched(c,
				    cuda_launch_bag_products(g, out->data, grad->data, weight->data,
							     weight->dtype, c->stream),
				    weight->dtype);
	return cuda_check_end(c, &k, err);
}

int cuda_embedding_bag_weights_backward(tensor *out, const tensor *grad, const tensor *weight,
					const struct bags *b)
{
	struct cuda_bags g = describe(b, grad->sizes[0], weight->sizes[0], weight->sizes[1]);
	struct cuda_call c;
	int err;

	if (!g.m)
		return 0;
	err = begin(&c, "embedding_bag", out, grad, weight, b);
	return err ? err : cuda_end(&c, products(&c, &g, out, grad, weight));
}
