// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* searchsorted, and mode: the longest run of each line, which is sorted first. */
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch_search.h"

int cuda_searchsorted(tensor *out, const tensor *sequence, const tensor *values,
		      const tensor *sorter, int64_t m, bool right)
{
	const struct cuda_search s = { .numel = values->numel,
				       .m = m,
				       .n = sequence->sizes[sequence->ndim - 1],
				       .shared = sequence->ndim == 1,
				       .right = right,
				       .sequence = sequence->data,
				       .values = values->data,
				       .sorter = cuda_data(sorter),
				       .out = out->data };
	struct cuda_call c;
	int err;

	if (!s.numel)
		return 0;
	err = cuda_begin_with(&c, "searchsorted", out->device.index, out, sequence, values, sorter);
	if (err)
		return err;
	err = cuda_launch_searchsorted(&s, values->dtype, c.stream);
	return cuda_end(&c, cuda_launched(&c, err, values->dtype));
}

/* A header for scratch memory with self's shape, in which lines along dim are contiguous. */
static tensor lines_of(const tensor *self, int dim, enum tensor_dtype dtype, void *data)
{
	tensor t = *self;
	int64_t stride = self->sizes[dim];

	t.dtype = (uint8_t)dtype;
	t.data = data;
	t.strides[dim] = 1;
	for (int d = self->ndim - 1; d >= 0; d--)
		if (d != dim) {
			t.strides[d] = stride;
			stride *= self->sizes[d];
		}
	return t;
}

/* data: the values of all lines in order, then their positions. */
static int longest_runs(tensor *values, tensor *indices, const tensor *self, int dim, char *data)
{
	const size_t bytes = ((size_t)self->numel * tensor_itemsize(self->dtype) + 15) / 16 * 16;
	tensor sorted = lines_of(self, dim, self->dtype, data);
	tensor order = lines_of(self, dim, TENSOR_I64, data + bytes);
	struct cuda_mode m = { .n = self->sizes[dim],
			       .sorted = sorted.data,
			       .positions = order.data,
			       .values = values->data,
			       .indices = indices->data };
	struct cuda_call c;
	int err = cuda_sort(&sorted, &order, self, dim, false);

	if (!err)
		err = cuda_begin_with(&c, "mode", self->device.index, values, indices);
	if (err)
		return err;
	cuda_dims_init(&m.lines);
	for (int d = self->ndim - 1; d >= 0; d--)
		if (d != dim)
			cuda_dims_add(&m.lines, 2, self->sizes[d],
				      (const int64_t[]){ values->strides[d], indices->strides[d] });
	cuda_dims_done(&m.lines, 2);
	err = cuda_launch_mode(&m, self->dtype, c.stream);
	return cuda_end(&c, cuda_launched(&c, err, self->dtype));
}

int cuda_mode(tensor *values, tensor *indices, const tensor *self, int dim, int64_t k)
{
	const size_t n = (size_t)self->numel;
	struct cuda_call c;
	void *data = NULL;
	int err;

	if (!n)
		return 0;
	err = cuda_begin_with(&c, "mode", self->device.index, self);
	if (err)
		return err;
	err = cuda_scratch(&c, n * (tensor_itemsize(self->dtype) + sizeof(int64_t)) + 16, &data);
	if (cuda_end(&c, err))
		return err;
	err = longest_runs(values, indices, self, dim, data);
	cuda_scratch_free(&c, data);
	return err;
}
