// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * index_select, gather and indexing by tensors. The elements' kernel checks the indices that it reads, and writes zeros for
 * those that are out of range.
 */
#include "kernels/cuda/cuda.h"

#include "iter/indexed.h"

static int take(const struct cuda_call *c, struct cuda_take *t, const tensor *out,
		const tensor *self, const tensor *index)
{
	struct cuda_check k;
	int err = cuda_check_open(c, &k, false);

	if (err)
		return err;
	cuda_dims_done(&t->dims, 3);
	t->data[0] = out->data;
	t->data[1] = self->data;
	t->data[2] = index->data;
	t->bad = k.report;
	err = cuda_launch_take(t, (int)tensor_itemsize(self->dtype), c->stream);
	return cuda_check_end(c, &k, cuda_launched(c, err, self->dtype));
}

static int begin(struct cuda_call *c, const char *op, const tensor *out, const tensor *self,
		 const tensor *index)
{
	return cuda_begin_with(c, op, out->device.index, out, self, index);
}

/* select: the index is a vector, else it has the shape of out. */
static int take_dim(const char *op, tensor *out, const tensor *self, int dim, const tensor *index,
		    bool select)
{
	struct cuda_take t = { 0 };
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	err = begin(&c, op, out, self, index);
	if (err)
		return err;
	err = cuda_index_of(&c, &t.index, index, cuda_size(self, dim), cuda_stride(self, dim));
	cuda_dims_init(&t.dims);
	for (int d = out->ndim - 1; d >= 0; d--) {
		int64_t along = !select ? index->strides[d] : d == dim ? cuda_stride(index, 0) : 0;

		cuda_dims_add(&t.dims, 3, out->sizes[d],
			      (const int64_t[]){ out->strides[d], d == dim ? 0 : self->strides[d],
						 along });
	}
	if (!err)
		err = take(&c, &t, out, self, index);
	return cuda_end(&c, err);
}

int cuda_index_select(tensor *out, const tensor *self, int dim, const tensor *index)
{
	return take_dim("index_select", out, self, dim, index, true);
}

int cuda_gather(tensor *out, const tensor *self, int dim, const tensor *index)
{
	return take_dim("gather", out, self, dim, index, false);
}

int cuda_index_take(tensor *out, const tensor *self, const tensor *at, const int *dims, int n)
{
	struct cuda_take t = { 0 };
	struct indexed r;
	struct cuda_call c;
	int err;

	if (!out->numel)
		return 0;
	err = indexed_build(&r, "index", self, at, dims, n);
	if (!err)
		err = begin(&c, "index", out, self, at);
	if (err)
		return err;
	err = cuda_indices_of(&c, &t.index, self, at, dims, n);
	cuda_dims_init(&t.dims);
	for (int d = r.ndim - 1; d >= 0; d--) {
		int from = r.from[d];

		cuda_dims_add(&t.dims, 3, r.sizes[d],
			      (const int64_t[]){ out->strides[d],
						 from < 0 ? 0 : self->strides[from],
						 from < 0 ? at->strides[d - r.first + 1] : 0 });
	}
	if (!err)
		err = take(&c, &t, out, self, at);
	return cuda_end(&c, err);
}
