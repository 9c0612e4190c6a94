// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * embedding_bag and its gradients. An index that is out of range and an offset that does not ascend
 * are errors of the call, for which the host waits after it has queued the kernels.
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

/* Element `at` of integers on the device. */
static int fetch(const struct cuda_call *c, const tensor *t, int64_t at, int64_t *value)
{
	const size_t size = tensor_itemsize(t->dtype);
	int32_t narrow = 0;
	void *to = size == sizeof(*value) ? (void *)value : &narrow;
	int err = cuda_check(c->op, cudaMemcpyAsync(to, (const char *)t->data + (size_t)at * size,
						    size, cudaMemcpyDeviceToHost, c->stream));

	if (!err)
		err = cuda_wait(c);
	if (!err && size != sizeof(*value))
		*value = narrow;
	return err;
}

static int refuse_index(const struct cuda_call *c, const struct bags *b, int64_t at, int64_t rows)
{
	int64_t v = 0;
	int err = fetch(c, b->indices, at, &v);

	return err ? err :
		     tensor_fail(ERANGE, "%s: index %lld is out of range for %lld rows", c->op,
				 (long long)v, (long long)rows);
}

/* Waits for the check that was sent to the stream; *bad is UINT64_MAX if it found nothing. */
static int finish(const struct cuda_call *c, struct cuda_check *k, int err, uint64_t *bad)
{
	*bad = UINT64_MAX;
	if (!err)
		err = cuda_check_wait(c, k, bad);
	cuda_check_close(c, k);
	return err;
}

/* ---- forward ---- */

static int forward(const struct cuda_call *c, struct cuda_bags *g, tensor *out,
		   const tensor *weight, const struct bags *b)
{
	struct cuda_check k;
	uint64_t bad;
	int64_t v = 0;
	int err = cuda_check_open(c, &k);

	if (err)
		return err;
	g->bad = k.flag;
	err = cuda_check(c->op, cuda_launch_bags_check(g, c->stream));
	if (!err)
		err = cuda_check_send(c, &k);
	if (!err)
		err = cuda_launched(
			c, cuda_launch_bags(g, out->data, weight->data, weight->dtype, c->stream),
			weight->dtype);
	err = finish(c, &k, err, &bad);
	if (err || bad == UINT64_MAX)
		return err;
	if ((int64_t)bad < g->m)
		return refuse_index(c, b, (int64_t)bad, g->rows);
	bad -= (uint64_t)g->m;
	err = fetch(c, b->offsets, (int64_t)bad, &v);
	return err ? err :
		     tensor_fail(EINVAL,
				 "embedding_bag: offsets must ascend from 0 to at most %lld, got "
				 "%lld at %lld",
				 (long long)g->m, (long long)v, (long long)bad);
}

int cuda_embedding_bag(tensor *out, const tensor *weight, const struct bags *b)
{
	struct cuda_bags g = describe(b, out->sizes[0], weight->sizes[0], weight->sizes[1]);
	struct cuda_call c;
	int err = begin(&c, "embedding_bag", out, weight, NULL, b);

	if (err)
		return err;
	return cuda_end(&c, g.m || g.noffsets ? forward(&c, &g, out, weight, b) : 0);
}

/* ---- backward ---- */

/* Opens k and queues the checks of what the forward has made. */
static int check_made(const struct cuda_call *c, struct cuda_bags *g, struct cuda_check *k)
{
	int err = cuda_check_open(c, k);

	if (err)
		return err;
	g->bad = k->flag;
	err = cuda_check(c->op, cuda_launch_bags_check_made(g, c->stream));
	if (!err)
		err = cuda_check_send(c, k);
	if (err)
		cuda_check_close(c, k);
	return err;
}

static int refuse_made(const struct cuda_call *c, const struct cuda_bags *g, const struct bags *b,
		       uint64_t bad)
{
	int64_t v = 0;
	int err;

	if (bad == UINT64_MAX)
		return 0;
	if (bad >= (uint64_t)g->m)
		return refuse_index(c, b, (int64_t)bad - g->m, g->rows);
	err = fetch(c, b->offset2bag, (int64_t)bad, &v);
	return err ? err :
		     tensor_fail(EINVAL,
				 "embedding_bag: index %lld belongs to bag %lld, there are %lld",
				 (long long)bad, (long long)v, (long long)g->bags);
}

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
			     cuda_put_along("embedding_bag_backward", out, 0, b->maximum, &rows);
	}
	rows.sizes[0] = b->indices->numel;
	rows.numel = rows.sizes[0] * rows.sizes[1];
	return cuda_embedding_backward(out, &rows, b->indices, &b->e);
}

static int backward(const struct cuda_call *c, struct cuda_bags *g, tensor *out, const tensor *grad,
		    const struct bags *b)
{
	const int64_t rows = b->mode == BAG_MAX ? g->bags : g->m;
	struct cuda_check k;
	uint64_t bad;
	void *data;
	int err = check_made(c, g, &k);

	if (err)
		return err;
	err = finish(c, &k, 0, &bad);
	if (!err)
		err = refuse_made(c, g, b, bad);
	if (!err)
		err = cuda_scratch(c, (size_t)(rows * g->d) * tensor_itemsize(out->dtype) + 1,
				   &data);
	if (err)
		return err;
	if (rows && g->d)
		err = cuda_launched(
			c, cuda_launch_bag_rows(g, data, grad->data, grad->dtype, c->stream),
			grad->dtype);
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
		    const tensor *weight, const struct bags *b)
{
	struct cuda_check k;
	uint64_t bad;
	int err = check_made(c, g, &k);

	if (err)
		return err;
	err = cuda_launched(c,
			    cuda_launch_bag_products(g, out->data, grad->data, weight->data,
						     weight->dtype, c->stream),
			    weight->dtype);
	err = finish(c, &k, err, &bad);
	return err ? err : refuse_made(c, g, b, bad);
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
	return err ? err : cuda_end(&c, products(&c, &g, out, grad, weight, b));
}
