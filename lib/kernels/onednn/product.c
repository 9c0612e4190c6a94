// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Convolution and linear layers, and weights in the format that their primitives prefer. Weights in
 * another format are reordered at each call; a linear layer reads row-major weights directly.
 */
#include "kernels/onednn/onednn.h"

#define DIMS_MAX (TENSOR_MAX_DIMS + 1)

/* ---- shared by both ---- */

/* Operands and result of a call. */
struct product {
	struct operand src, weights, bias, dst;
	tensor *result;
};

static void put_product(struct product *x)
{
	operand_put(&x->src);
	operand_put(&x->weights);
	operand_put(&x->bias);
	operand_put(&x->dst);
}

/* Allocates the result: blocked if `like` is, else dense. md describes its elements in the
 * dimensions of the primitive. A dense result in another format is written to x->dst.own first. */
static int get_result(const char *op, struct product *x, const dnnl_memory_desc_t *md,
		      const tensor *like, const int64_t *sizes, int ndim)
{
	dnnl_memory_desc_t seen = *md;
	int64_t bytes = (int64_t)dnnl_memory_desc_get_size(md);
	int err;

	x->dst.md = *md;
	if (is_blocked(like)) {
		err = md->ndims == ndim ? 0 : md_plain(op, &seen, like->dtype, sizes, ndim);
		x->result = err ? NULL : blocked_new(op, &seen, like->dtype, sizes, ndim, like);
		x->dst.data = x->result ? bytes_of(x->result) : NULL;
		return x->result ? 0 : -tensor_last_error()->code;
	}
	x->result = tensor_plugin_new(like->dtype, sizes, ndim);
	if (!x->result)
		return -tensor_last_error()->code;
	err = md_plain(op, &seen, like->dtype, md->dims, md->ndims);
	x->dst.data = x->result->data;
	if (err || dnnl_memory_desc_equal(&seen, md))
		return err;
	x->dst.own = tensor_plugin_new(TENSOR_U8, &bytes, 1);
	x->dst.data = x->dst.own ? x->dst.own->data : NULL;
	return x->dst.own ? 0 : -tensor_last_error()->code;
}

/* Executes p, then reorders a dense result that p wrote in another format. */
static int run_product(const char *op, const struct primitive *p, struct product *x, bool bias)
{
	const struct primitive_arg args[] = {
		{ DNNL_ARG_SRC, &x->src.md, x->src.data },
		{ DNNL_ARG_WEIGHTS, &x->weights.md, x->weights.data },
		{ DNNL_ARG_DST, &x->dst.md, x->dst.data },
		{ DNNL_ARG_BIAS, &x->bias.md, x->bias.data },
	};
	const dnnl_memory_desc_t *md = &x->dst.md;
	dnnl_memory_desc_t plain;
	int err = primitive_run(op, p, args, bias ? 4 : 3);

	if (err || !x->dst.own)
		return err;
	err = md_plain(op, &plain, x->result->dtype, md->dims, md->ndims);
	return err ? err : onednn_reorder(op, md, x->dst.data, &plain, x->result->data);
}

/* Releases everything but the result; returns that, or NULL after an error. */
static tensor *finish(struct product *x, struct primitive *p, int err)
{
	put_product(x);
	primitive_put(p);
	if (!err)
		return x->result;
	tensor_plugin_put(x->result);
	return NULL;
}

/* x->src and x->weights are set. The result is blocked if input is, and has these sizes. */
static int multiply(const char *op, const struct primitive *p, struct product *x,
		    const tensor *bias, const tensor *input, const int64_t *sizes)
{
	int err = operand_as(op, &x->weights, &p->weights);

	if (!err && bias)
		err = operand_get(op, &x->bias, bias, bias->sizes, 1);
	if (!err)
		err = get_result(op, x, &p->dst, input, sizes, input->ndim);
	return err ? err : run_product(op, p, x, bias);
}

/* ---- convolution ---- */

/* Sizes of a weight for oneDNN: groups are a dimension of their own. Returns their number. */
static int grouped_sizes(const tensor *weight, int64_t groups, int64_t *sizes)
{
	if (groups == 1) {
		memcpy(sizes, weight->sizes, weight->ndim * sizeof(*sizes));
		return weight->ndim;
	}
	sizes[0] = groups;
	sizes[1] = weight->sizes[0] / groups;
	memcpy(sizes + 2, weight->sizes + 1, (weight->ndim - 1) * sizeof(*sizes));
	return weight->ndim + 1;
}

static dnnl_status_t make_convolution(const struct primitive_key *key, dnnl_primitive_attr_t attr,
				      dnnl_primitive_desc_t *pd)
{
	unsigned dtype = (unsigned)key->n[0];
	bool bias = key->n[1];
	int n = (int)key->n[2], m = (int)key->n[3], spatial = n - 2;
	const int64_t *src = key->n + 4, *dst = src + n, *w = dst + n;
	const int64_t *stride = w + m, *padding = stride + spatial, *dilation = padding + spatial;
	int64_t channels = dst[1];
	dnnl_memory_desc_t s, k, b, d;
	dnnl_convolution_desc_t desc;
	dnnl_status_t status = md_any(&s, dtype, src, n);

	if (status == dnnl_success)
		status = md_any(&d, dtype, dst, n);
	if (status == dnnl_success)
		status = md_any(&k, dtype, w, m);
	if (status == dnnl_success)
		status = md_any(&b, dtype, &channels, 1);
	if (status == dnnl_success)
		status = dnnl_dilated_convolution_forward_desc_init(&desc, dnnl_forward_inference,
								    dnnl_convolution_direct, &s, &k,
								    bias ? &b : NULL, &d, stride,
								    dilation, padding, padding);
	return status != dnnl_success ?
		       status :
		       dnnl_primitive_desc_create(pd, &desc, attr, onednn_engine, NULL);
}

static struct primitive_key convolution_key(const tensor *weight, bool bias,
					    const int64_t *input_sizes, const int64_t *sizes,
					    const struct conv_params *p)
{
	struct primitive_key key = primitive_key(make_convolution);
	int64_t w[DIMS_MAX];
	int n = weight->ndim, first = 3 - (n - 2), m = grouped_sizes(weight, p->groups, w);

	key_number(&key, weight->dtype);
	key_number(&key, bias);
	key_number(&key, n);
	key_number(&key, m);
	key_numbers(&key, input_sizes, n);
	key_numbers(&key, sizes, n);
	key_numbers(&key, w, m);
	key_numbers(&key, p->stride + first, n - 2);
	key_numbers(&key, p->padding + first, n - 2);
	for (int d = first; d < 3; d++)
		key_number(&key, p->dilation[d] - 1);
	return key;
}

tensor *onednn_convolution(const char *op, const tensor *input, const tensor *weight,
			   const tensor *bias, const int64_t *sizes, const struct conv_params *p)
{
	struct primitive_key key = convolution_key(weight, bias, input->sizes, sizes, p);
	struct primitive *prim = primitive_get(op, &key);
	int64_t w[DIMS_MAX];
	int m = grouped_sizes(weight, p->groups, w), err;
	struct product x = { .result = NULL };

	if (!prim)
		return NULL;
	err = operand_get(op, &x.src, input, input->sizes, input->ndim);
	if (!err)
		err = operand_as(op, &x.src, &prim->src);
	if (!err)
		err = operand_get(op, &x.weights, weight, w, m);
	if (!err)
		err = multiply(op, prim, &x, bias, input, sizes);
	return finish(&x, prim, err);
}

/* A copy of weight, viewed as `sizes`, in the format that p prefers. Releases p. */
static tensor *reordered(const char *op, const tensor *weight, const int64_t *sizes, int ndim,
			 struct primitive *p)
{
	struct operand o = { .own = NULL };
	tensor *t = NULL;

	if (!p)
		return NULL;
	if (operand_get(op, &o, weight, sizes, ndim) == 0)
		t = blocked_new(op, &p->weights, weight->dtype, weight->sizes, weight->ndim, NULL);
	if (t && onednn_reorder(op, &o.md, o.data, &p->weights, bytes_of(t)) < 0) {
		tensor_plugin_put(t);
		t = NULL;
	}
	operand_put(&o);
	primitive_put(p);
	return t;
}

tensor *onednn_convolution_weight(const char *op, const tensor *weight, const int64_t *input_sizes,
				  const int64_t *sizes, const struct conv_params *p)
{
	struct primitive_key key = convolution_key(weight, true, input_sizes, sizes, p);
	int64_t w[DIMS_MAX];
	int m = grouped_sizes(weight, p->groups, w);

	return reordered(op, weight, w, m, primitive_get(op, &key));
}

/* ---- linear ---- */

static dnnl_status_t make_linear(const struct primitive_key *key, dnnl_primitive_attr_t attr,
				 dnnl_primitive_desc_t *pd)
{
	unsigned dtype = (unsigned)key->n[0];
	int64_t rows = key->n[1], n = key->n[2], k = key->n[3];
	bool bias = key->n[4], any = key->n[5];
	dnnl_memory_desc_t s, w, b, d;
	dnnl_inner_product_desc_t desc;
	dnnl_status_t status;

	if (md_plain("linear", &s, dtype, (int64_t[]){ rows, k }, 2) < 0 ||
	    md_plain("linear", &w, dtype, (int64_t[]){ n, k }, 2) < 0 ||
	    md_plain("linear", &d, dtype, (int64_t[]){ rows, n }, 2) < 0 ||
	    md_plain("linear", &b, dtype, &n, 1) < 0)
		return dnnl_invalid_arguments;
	status = any ? md_any(&w, dtype, (int64_t[]){ n, k }, 2) : dnnl_success;
	if (status == dnnl_success)
		status = dnnl_inner_product_forward_desc_init(&desc, dnnl_forward_inference, &s, &w,
							      bias ? &b : NULL, &d);
	return status != dnnl_success ?
		       status :
		       dnnl_primitive_desc_create(pd, &desc, attr, onednn_engine, NULL);
}

static struct primitive_key linear_key(const tensor *weight, int64_t rows, bool bias, bool any)
{
	struct primitive_key key = primitive_key(make_linear);

	key_number(&key, weight->dtype);
	key_number(&key, rows);
	key_number(&key, weight->sizes[0]);
	key_number(&key, weight->sizes[1]);
	key_number(&key, bias);
	key_number(&key, any);
	return key;
}

static bool in_rows(const tensor *weight)
{
	return !is_blocked(weight) || onednn_is_plain(weight);
}

tensor *onednn_linear(const char *op, const tensor *input, const tensor *weight, const tensor *bias)
{
	int64_t n = weight->sizes[0], k = weight->sizes[1], rows = input->numel / k;
	struct primitive_key key = linear_key(weight, rows, bias, !in_rows(weight));
	struct primitive *prim = primitive_get(op, &key);
	int64_t sizes[TENSOR_MAX_DIMS];
	struct product x = { .result = NULL };
	dnnl_memory_desc_t plain;
	int err;

	if (!prim)
		return NULL;
	memcpy(sizes, input->sizes, input->ndim * sizeof(*sizes));
	sizes[input->ndim - 1] = n;
	err = operand_get(op, &x.src, input, (int64_t[]){ rows, k }, 2);
	if (!err) /* src may be blocked along one of the two dimensions */
		err = md_plain(op, &plain, input->dtype, (int64_t[]){ rows, k }, 2);
	if (!err)
		err = operand_as(op, &x.src, &plain);
	if (!err)
		err = operand_get(op, &x.weights, weight, weight->sizes, 2);
	if (!err)
		err = multiply(op, prim, &x, bias, input, sizes);
	return finish(&x, prim, err);
}

tensor *onednn_linear_weight(const char *op, const tensor *weight, int64_t rows)
{
	struct primitive_key key = linear_key(weight, rows, true, true);

	return reordered(op, weight, weight->sizes, 2, primitive_get(op, &key));
}
