// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Random numbers: the same as on the CPU. randperm is computed there: each swap needs the former. */
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch_random.h"

#include <stdlib.h>

typedef int (*fill_launcher)(const struct cuda_fill *f, void *out, int dtype, cudaStream_t stream);

static struct cuda_fill describe(int64_t n, const struct random_params *p)
{
	return (struct cuda_fill){ .n = n,
				   .seed = p->at.seed,
				   .offset = p->at.offset,
				   .a = p->a,
				   .b = p->b,
				   .limit = p->limit,
				   .from = p->from,
				   .range = p->range,
				   .wide = p->wide };
}

/* A complex element is two numbers. */
static int fill(const char *op, fill_launcher launch, tensor *out, const struct random_params *p)
{
	const bool is_complex = dtype_is_complex(out->dtype);
	struct cuda_fill f = describe(out->numel * (is_complex ? 2 : 1), p);
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	err = cuda_begin_with(&c, op, out->device.index, out);
	if (err)
		return err;
	err = cuda_random_at(&c, &f.seed, &f.at);
	if (!err)
		err = cuda_launched(&c,
				    launch(&f, out->data,
					   is_complex ? dtype_real(out->dtype) : out->dtype,
					   c.stream),
				    out->dtype);
	return cuda_end(&c, err);
}

int cuda_uniform(tensor *out, const struct random_params *p)
{
	return fill("uniform", cuda_launch_uniform, out, p);
}

int cuda_normal(tensor *out, const struct random_params *p)
{
	return fill("normal", cuda_launch_normal, out, p);
}

int cuda_exponential(tensor *out, const struct random_params *p)
{
	return fill("exponential", cuda_launch_exponential, out, p);
}

int cuda_randint(tensor *out, const struct random_params *p)
{
	return fill("randint", cuda_launch_randint, out, p);
}

static int bernoulli_each(const struct cuda_call *c, tensor *out, const tensor *p,
			  const struct random_params *params)
{
	struct cuda_fill f = describe(out->numel, params);
	struct cuda_check k;
	int err = cuda_random_at(c, &f.seed, &f.at);

	if (!err)
		err = cuda_check_open(c, &k, false);
	if (err)
		return err;
	err = cuda_launch_bernoulli_each(&f, out->data, p->data, &k.report, p->dtype, c->stream);
	return cuda_check_end(c, &k, cuda_launched(c, err, p->dtype));
}

int cuda_bernoulli_each(tensor *out, const tensor *p, const struct random_params *params)
{
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	err = cuda_begin_with(&c, "bernoulli", out->device.index, out, p);
	return err ? err : cuda_end(&c, bernoulli_each(&c, out, p, params));
}

int cuda_randperm(tensor *out, const struct random_params *params)
{
	const random_kernel of_cpu =
		(random_kernel)tensor_kernel_table_get("randperm", TENSOR_KEY_CPU);
	const size_t nbytes = (size_t)out->numel * sizeof(int64_t);
	tensor host = *out;
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	err = cuda_begin(&c, "randperm", out->device.index);
	if (!err && cuda_capturing(&c))
		err = cuda_refuse(&c, "is computed on the CPU");
	if (err || cuda_end(&c, 0))
		return err;
	host.data = malloc(nbytes);
	if (!host.data)
		return tensor_fail(ENOMEM, "randperm: no memory for %lld numbers",
				   (long long)out->numel);
	err = of_cpu(&host, params);
	if (!err)
		err = cuda_begin_with(&c, "randperm", out->device.index, out);
	if (!err) {
		err = cuda_check(c.op, cudaMemcpyAsync(out->data, host.data, nbytes,
						       cudaMemcpyHostToDevice, c.stream));
		if (!err)
			err = cuda_drain(&c);
		err = cuda_end(&c, err);
	}
	free(host.data);
	return err;
}

/* ---- ranges ---- */

int cuda_arange(struct tensor_iter *it, const struct pointwise_params *params)
{
	struct cuda_call c;
	int err;

	if (!it->numel)
		return 0;
	err = cuda_begin_with(&c, "arange", it->op[0]->device.index, it->op[0]);
	if (err)
		return err;
	err = cuda_launch_arange(
		it->data[0], it->numel,
		it->ndim ? it->strides[0][0] / (int64_t)tensor_itemsize(it->dtype) : 0, params->a,
		params->b, it->dtype, c.stream);
	return cuda_end(&c, cuda_launched(&c, err, it->dtype));
}

int cuda_linspace(struct tensor_iter *it, const struct pointwise_params *params)
{
	struct cuda_call c;
	int err;

	if (!it->numel)
		return 0;
	err = cuda_begin_with(&c, "linspace", it->op[0]->device.index, it->op[0]);
	if (err)
		return err;
	err = cuda_launch_linspace(it->data[0], it->numel, params->a, params->b, it->dtype,
				   c.stream);
	return cuda_end(&c, cuda_launched(&c, err, it->dtype));
}
