// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* dropout and bernoulli with one probability: the same numbers as on the CPU. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/launch_random.h"

/* As coin_of() of the CPU: p * 2^32, rounded, of the 2^32 numbers are true. */
static struct cuda_random describe(int64_t n, const struct random_params *p)
{
	const uint64_t numbers = (uint64_t)(p->a * 0x1p32 + 0.5);

	return (struct cuda_random){ .n = n,
				     .seed = p->at.seed,
				     .offset = p->at.offset,
				     .last = (uint32_t)(numbers - 1),
				     .never = !numbers };
}

int cuda_bernoulli(tensor *out, const struct random_params *p)
{
	struct cuda_random r = describe(out->numel, p);
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	err = cuda_begin_with(&c, "bernoulli", out->device.index, out);
	if (err)
		return err;
	err = cuda_random_at(&c, &r.seed, &r.at);
	if (!err)
		err = cuda_launched(&c, cuda_launch_bernoulli(&r, out->data, out->dtype, c.stream),
				    out->dtype);
	return cuda_end(&c, err);
}

int cuda_native_dropout(tensor *out, tensor *mask, const tensor *input,
			const struct random_params *p)
{
	struct cuda_random r = describe(out->numel, p);
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	err = cuda_begin_with(&c, "native_dropout", out->device.index, out, mask, input);
	if (err)
		return err;
	err = cuda_random_at(&c, &r.seed, &r.at);
	if (!err)
		err = cuda_launched(&c,
				    cuda_launch_dropout(&r, out->data, mask->data, input->data,
							p->b, out->dtype, c.stream),
				    out->dtype);
	return cuda_end(&c, err);
}
