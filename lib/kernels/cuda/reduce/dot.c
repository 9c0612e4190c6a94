// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* dot and bincount. The host waits for the range of bincount, which is the size of a result. */
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch_reduce.h"

int cuda_dot(tensor *out, const tensor *a, const tensor *b, bool conjugate)
{
	const struct cuda_dot d = { .n = a->numel,
				    .a_stride = a->strides[0],
				    .b_stride = b->strides[0],
				    .conjugate = conjugate,
				    .a = a->data,
				    .b = b->data };
	int64_t blocks = (d.n + 4095) / 4096;
	void *partial = NULL;
	struct cuda_call c;
	int err = cuda_begin_with(&c, "dot", out->device.index, out, a, b);

	if (err)
		return err;
	blocks = blocks < 1 ? 1 : blocks < CUDA_DOT_BLOCKS ? blocks : CUDA_DOT_BLOCKS;
	err = cuda_scratch(&c, (size_t)blocks * CUDA_DOT_PARTIAL, &partial);
	if (!err)
		err = cuda_launched(&c,
				    cuda_launch_dot(&d, out->data, partial, (int)blocks, out->dtype,
						    c.stream),
				    out->dtype);
	cuda_scratch_free(&c, partial);
	return cuda_end(&c, err);
}

static int range_of(const struct cuda_call *c, const tensor *self, int64_t *least, int64_t *most)
{
	uint64_t range[2] = { UINT64_MAX, 0 };
	unsigned long long *data;
	void *scratch;
	int err = cuda_scratch(c, sizeof(range), &scratch);

	if (err)
		return err;
	data = scratch;
	err = cuda_check(c->op, cudaMemsetAsync(data, 0xff, sizeof(*data), c->stream));
	if (!err)
		err = cuda_check(c->op, cudaMemsetAsync(data + 1, 0, sizeof(*data), c->stream));
	if (!err)
		err = cuda_launched(c,
				    cuda_launch_count_range(self->data, self->numel, data,
							    self->dtype, c->stream),
				    self->dtype);
	if (!err)
		err = cuda_check(c->op, cudaMemcpyAsync(range, data, sizeof(range),
							cudaMemcpyDeviceToHost, c->stream));
	if (!err)
		err = cuda_wait(c);
	*least = (int64_t)(range[0] ^ 1ull << 63);
	*most = (int64_t)(range[1] ^ 1ull << 63);
	cuda_scratch_free(c, scratch);
	return err;
}

int cuda_bincount(const tensor *self, int64_t *counts, int64_t n, int64_t *least, int64_t *most)
{
	struct cuda_call c;
	int err = cuda_begin_with(&c, "bincount", self->device.index, self);

	if (err)
		return err;
	if (!counts)
		err = range_of(&c, self, least, most);
	else if (n)
		err = cuda_launched(&c,
				    cuda_launch_count(self->data, self->numel,
						      (unsigned long long *)counts, n, self->dtype,
						      c.stream),
				    self->dtype);
	return cuda_end(&c, err);
}
