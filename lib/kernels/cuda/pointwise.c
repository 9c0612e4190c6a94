// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Elementwise kernels: from the iterator, which the operator function has built, to a launch. */
#include "kernels/cuda/cuda.h"

/* Whether every operand is a scalar or contiguous: element i is at data + i * itemsize. */
static bool is_flat(const struct tensor_iter *it, const struct cuda_pointwise *p)
{
	if (it->ndim > 1)
		return false;
	for (int i = 0; it->ndim && i < it->nops; i++) {
		int64_t size = (int64_t)(it->op[i] ? tensor_itemsize(it->op[i]->dtype) : 0);

		if (p->data[i] && it->shape[0] != 1 && it->strides[i][0] != size)
			return false;
	}
	return true;
}

/* Whether operand i is a scalar argument or a 0-d tensor on the host, whose value is passed as an
 * argument of the launch. */
static bool is_scalar(const struct tensor_iter *it, int i)
{
	return i > 0 && (!it->op[i] || it->op[i]->device.type == TENSOR_CPU);
}

static void prepare(const struct cuda_call *c, const struct tensor_iter *it,
		    struct cuda_pointwise *p, const struct pointwise_params *params)
{
	size_t size = tensor_itemsize(it->dtype);

	memset(p->scalar, 0, sizeof(p->scalar));
	for (int i = 0; i < it->nops; i++) {
		p->data[i] = is_scalar(it, i) ? NULL : it->data[i];
		if (is_scalar(it, i))
			memcpy(&p->scalar[i], it->data[i], size);
		else
			cuda_use(c, it->op[i]);
	}
	if (params)
		p->alpha = params->a;
	p->dims.ndim = it->ndim;
	p->dims.numel = it->numel;
	for (int k = 0; k < it->ndim; k++) {
		p->dims.size[k] = it->shape[k];
		for (int i = 0; i < it->nops; i++)
			p->dims.stride[i][k] = it->strides[i][k];
	}
	cuda_dims_done(&p->dims, it->nops);
	p->flat = is_flat(it, p);
}

static int binary(const char *op, enum cuda_binary which, const struct tensor_iter *it,
		  const struct pointwise_params *params)
{
	struct cuda_pointwise p;
	struct cuda_call c;
	int err;

	if (!it->numel)
		return 0;
	err = cuda_begin(&c, op, it->op[0]->device.index);
	if (err)
		return err;
	prepare(&c, it, &p, params);
	err = cuda_launch_binary(which, &p, it->dtype, c.stream);
	return cuda_end(&c, cuda_launched(&c, err, it->dtype));
}

int cuda_add(struct tensor_iter *it, const struct pointwise_params *params)
{
	return binary("add", CUDA_ADD, it, params);
}

int cuda_add_alpha(struct tensor_iter *it, const struct pointwise_params *params)
{
	return binary("add", CUDA_ADD_ALPHA, it, params);
}

/* x - y has the same bits as x + -1 * y, so it needs no kernel of its own. */
int cuda_sub(struct tensor_iter *it, const struct pointwise_params *params)
{
	const struct pointwise_params minus = { .a = tensor_scalar_int(-1) };

	return binary("sub", CUDA_ADD_ALPHA, it, &minus);
}

int cuda_mul(struct tensor_iter *it, const struct pointwise_params *params)
{
	return binary("mul", CUDA_MUL, it, params);
}

int cuda_div(struct tensor_iter *it, const struct pointwise_params *params)
{
	return binary("div", CUDA_DIV, it, params);
}

int cuda_relu_backward(struct tensor_iter *it, const struct pointwise_params *params)
{
	return binary("relu_backward", CUDA_RELU_BACKWARD, it, params);
}

static int unary(const char *op, enum cuda_unary which, const struct tensor_iter *it)
{
	struct cuda_pointwise p;
	struct cuda_call c;
	int err;

	if (!it->numel)
		return 0;
	err = cuda_begin(&c, op, it->op[0]->device.index);
	if (err)
		return err;
	prepare(&c, it, &p, NULL);
	err = cuda_launch_unary(which, &p, it->dtype, c.stream);
	return cuda_end(&c, cuda_launched(&c, err, it->dtype));
}

int cuda_relu(struct tensor_iter *it, const struct pointwise_params *params)
{
	return unary("relu", CUDA_RELU, it);
}

int cuda_conj_physical(struct tensor_iter *it, const struct pointwise_params *params)
{
	return unary("conj_physical", CUDA_CONJ, it);
}

/* The iterator may have a source operand: it is replaced by the scalar. */
int cuda_fill(struct tensor_iter *it, const struct pointwise_params *params)
{
	struct cuda_pointwise p;
	struct cuda_call c;
	struct cuda_element value = { 0 };
	int err;

	if (tensor_element_store(&value, it->dtype, params->a) < 0)
		return tensor_kernel_no_dtype("fill", it->dtype, "cuda");
	if (!it->numel)
		return 0;
	err = cuda_begin(&c, "fill", it->op[0]->device.index);
	if (err)
		return err;
	prepare(&c, it, &p, params);
	p.data[1] = NULL;
	p.scalar[1] = value;
	memset(p.dims.stride[1], 0, sizeof(p.dims.stride[1]));
	err = cuda_launch_fill(&p, (int)tensor_itemsize(it->dtype), c.stream);
	return cuda_end(&c, cuda_launched(&c, err, it->dtype));
}

int cuda_copy_within(const struct cuda_call *c, struct cuda_pointwise *p, enum tensor_dtype to,
		     enum tensor_dtype from)
{
	int64_t sizes[] = { (int64_t)tensor_itemsize(to), (int64_t)tensor_itemsize(from) };
	int err;

	cuda_dims_done(&p->dims, 2);
	p->flat = p->dims.ndim <= 1;
	for (int i = 0; p->flat && p->dims.ndim && i < 2; i++)
		p->flat = p->dims.size[0] == 1 || p->dims.stride[i][0] == sizes[i];
	err = cuda_launch_copy(p, to, from, (int)sizes[0], c->stream);
	return cuda_launched(c, err, from);
}
