// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Attention and its gradients: operands by head, and which of the kernels. */
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch_attention.h"

static struct cuda_heads heads_of(const tensor *t, int batch, bool column)
{
	struct cuda_heads h = { 0 };

	if (!t)
		return h;
	h.data = t->data;
	h.row = t->strides[batch];
	h.column = column ? 0 : t->strides[batch + 1];
	for (int d = 0; d < batch; d++)
		h.batch[d] = t->strides[d];
	return h;
}

static int describe(struct cuda_attention *a, const char *op, const struct attention_inputs *in,
		    const tensor *output, const tensor *sums)
{
	const int batch = in->query->ndim - 2;
	int64_t tiles;

	*a = (struct cuda_attention){ .batch = batch,
				      .heads = 1,
				      .queries = in->query->sizes[batch],
				      .keys = in->key->sizes[batch],
				      .features = in->query->sizes[batch + 1],
				      .values = in->value->sizes[batch + 1],
				      .causal = in->causal,
				      .mask_dtype = in->mask ? in->mask->dtype : 0,
				      .scale = in->scale,
				      .query = heads_of(in->query, batch, false),
				      .key = heads_of(in->key, batch, false),
				      .value = heads_of(in->value, batch, false),
				      .mask = heads_of(in->mask, batch, false),
				      .output = heads_of(output, batch, false),
				      .sums = heads_of(sums, batch, true) };
	for (int d = 0; d < batch; d++) {
		a->sizes[d] = in->query->sizes[d];
		a->heads *= a->sizes[d];
	}
	tiles = CUDA_ATTENTION_TILES(a->queries > a->keys ? a->queries : a->keys);
	if (a->heads && tiles > INT32_MAX / a->heads)
		return tensor_fail(EOPNOTSUPP, "%s: cuda: %lld heads of %lld queries and %lld keys",
				   op, (long long)a->heads, (long long)a->queries,
				   (long long)a->keys);
	return 0;
}

int cuda_attention(tensor *output, tensor *logsumexp, const struct attention_inputs *in)
{
	struct cuda_attention a;
	struct cuda_call c;
	int err = describe(&a, "attention", in, output, logsumexp);

	if (err || !logsumexp->numel)
		return err;
	err = cuda_begin_with(&c, "attention", output->device.index, output, logsumexp, in->query,
			      in->key, in->value, in->mask);
	if (err)
		return err;
	err = cuda_launch_attention_mma(&a, in->query->dtype, c.stream);
	if (err == CUDA_NO_DTYPE)
		err = cuda_launch_attention(&a, in->query->dtype, c.stream);
	return cuda_end(&c, cuda_launched(&c, err, in->query->dtype));
}

int cuda_attention_backward(tensor *grad_query, tensor *grad_key, tensor *grad_value,
			    const tensor *grad, const tensor *output, const tensor *logsumexp,
			    const struct attention_inputs *in)
{
	const int batch = in->query->ndim - 2;
	struct cuda_attention a;
	struct cuda_call c;
	int err = describe(&a, "attention_backward", in, output, logsumexp);

	if (err || !a.heads)
		return err;
	a.grad = heads_of(grad, batch, false);
	a.grad_query = heads_of(grad_query, batch, false);
	a.grad_key = heads_of(grad_key, batch, false);
	a.grad_value = heads_of(grad_value, batch, false);
	err = cuda_begin_with(&c, "attention_backward", grad->device.index, grad_query, grad_key,
			      grad_value, grad, output, logsumexp, in->query, in->key, in->value,
			      in->mask);
	if (err)
		return err;
	err = cuda_scratch(&c,
			   3 * (size_t)(a.heads * a.queries) * tensor_itemsize(logsumexp->dtype),
			   &a.saved);
	if (!err)
		err = cuda_launched(&c,
				    cuda_launch_attention_backward(&a, in->query->dtype, c.stream),
				    in->query->dtype);
	cuda_scratch_free(&c, a.saved);
	return cuda_end(&c, err);
}

bool cuda_attention_takes_bf16(void)
{
	return true;
}
