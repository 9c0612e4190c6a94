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
	size_t size = tensor_itemsize(dtype_wide(it->dtype));

	memset(p->scalar, 0, sizeof(p->scalar));
	p->bad = (struct cuda_report){ 0 };
	p->refused = NULL;
	for (int i = 0; i < it->nops; i++) {
		p->data[i] = is_scalar(it, i) ? NULL : it->data[i];
		p->itemsize[i] = it->op[i] ? tensor_itemsize(it->op[i]->dtype) : size;
		if (is_scalar(it, i))
			memcpy(&p->scalar[i], it->data[i], p->itemsize[i]);
		else
			cuda_use(c, it->op[i]);
	}
	if (params) {
		p->a = params->a;
		p->b = params->b;
		p->c = params->c;
	}
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

int cuda_launch_parts(cuda_launcher launch, const struct cuda_pointwise *p, int nops, int dtype,
		      cudaStream_t stream)
{
	int err = launch(p, dtype, stream), k = p->dims.ndim - 1;
	struct cuda_pointwise part;
	int64_t half;

	if (likely(err != CUDA_TOO_WIDE))
		return err;
	part = *p;
	while (p->dims.size[k] == 1)
		k--;
	half = p->dims.size[k] / 2;
	for (int second = 0; second < 2; second++) {
		part.dims.size[k] = second ? p->dims.size[k] - half : half;
		part.dims.numel = p->dims.numel / p->dims.size[k] * part.dims.size[k];
		for (int i = 0; second && i < nops; i++)
			if (p->data[i])
				part.data[i] = p->data[i] + half * p->dims.stride[i][k];
		err = cuda_launch_parts(launch, &part, nops, dtype, stream);
		if (err)
			return err;
	}
	return 0;
}

int cuda_formula(const char *op, cuda_launcher launch, const struct tensor_iter *it,
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
	err = cuda_launch_parts(launch, &p, it->nops, it->dtype, c.stream);
	return cuda_end(&c, cuda_launched(&c, err, it->dtype));
}

/* Launches a check of the divisors alone. */
static int check_divisors(const struct cuda_call *c, const struct cuda_pointwise *p, int dtype)
{
	struct cuda_pointwise q = { .data = { NULL, p->data[2] },
				    .itemsize = { 0, p->itemsize[2] },
				    .bad = p->bad };

	cuda_dims_init(&q.dims);
	for (int k = 0; k < p->dims.ndim; k++)
		if (p->dims.stride[2][k])
			cuda_dims_add(&q.dims, 2, p->dims.size[k],
				      (const int64_t[]){ 0, p->dims.stride[2][k] });
	return cuda_launched(c, cuda_launch_parts(cuda_launch_divisors, &q, 2, dtype, c->stream),
			     dtype);
}

/*
 * A division that writes one of its operands checks the divisors first, and does nothing if one is zero. Others write 0 there,
 * and check what they read.
 */
static int divide_by(const struct cuda_call *c, cuda_launcher launch, const struct tensor_iter *it,
		     struct cuda_pointwise *p)
{
	const bool in_place = p->data[0] == p->data[1] || p->data[0] == p->data[2];
	struct cuda_check k;
	int err = cuda_check_open(c, &k, in_place);

	if (err)
		return err;
	p->bad = k.report;
	if (in_place) {
		err = check_divisors(c, p, it->dtype);
		p->refused = k.report.flag;
		p->bad = (struct cuda_report){ 0 };
	}
	if (!err)
		err = cuda_launched(c, cuda_launch_parts(launch, p, it->nops, it->dtype, c->stream),
				    it->dtype);
	return cuda_check_end(c, &k, err);
}

/* The value of a scalar is known: a division by it needs no check. */
static int divide_by_scalar(const struct cuda_call *c, cuda_launcher launch,
			    const struct tensor_iter *it, struct cuda_pointwise *p)
{
	static const struct cuda_element zero;

	if (!memcmp(&p->scalar[2], &zero, p->itemsize[2]))
		return tensor_fail(EDOM, "%s: integer division by zero", c->op);
	return cuda_launched(c, cuda_launch_parts(launch, p, it->nops, it->dtype, c->stream),
			     it->dtype);
}

int cuda_formula_division(const char *op, cuda_launcher launch, const struct tensor_iter *it)
{
	struct cuda_pointwise p;
	struct cuda_call c;
	int err;

	if (!it->numel || !dtype_is_integral(it->dtype))
		return cuda_formula(op, launch, it, NULL);
	err = cuda_begin(&c, op, it->op[0]->device.index);
	if (err)
		return err;
	prepare(&c, it, &p, NULL);
	return cuda_end(&c, p.data[2] ? divide_by(&c, launch, it, &p) :
					divide_by_scalar(&c, launch, it, &p));
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
	p.itemsize[1] = p.itemsize[0];
	memset(p.dims.stride[1], 0, sizeof(p.dims.stride[1]));
	err = cuda_launch_parts(cuda_launch_bits, &p, 2, (int)p.itemsize[0], c.stream);
	return cuda_end(&c, cuda_launched(&c, err, it->dtype));
}

int cuda_copy_within(const struct cuda_call *c, struct cuda_pointwise *p, enum tensor_dtype to,
		     enum tensor_dtype from)
{
	int64_t sizes[] = { (int64_t)tensor_itemsize(to), (int64_t)tensor_itemsize(from) };
	int err;

	for (int i = 0; i < 2; i++)
		p->itemsize[i] = (size_t)sizes[i];
	cuda_dims_done(&p->dims, 2);
	p->flat = p->dims.ndim <= 1;
	for (int i = 0; p->flat && p->dims.ndim && i < 2; i++)
		p->flat = p->dims.size[0] == 1 || p->dims.stride[i][0] == sizes[i];
	if (to == from)
		err = cuda_launch_parts(cuda_launch_bits, p, 2, (int)sizes[0], c->stream);
	else
		err = cuda_launch_convert(p, to, from, c->stream);
	return cuda_launched(c, err, from);
}
