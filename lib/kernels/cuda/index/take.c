// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * index_select, gather and indexing by tensors. An index that is small beside the result is checked
 * by a kernel before; then the host waits for the check only. Otherwise the elements' kernel checks
 * what it reads. An index out of range is an error of this call (docs/decisions/0004-cuda-
 * plugin.md).
 */
#include "kernels/cuda/cuda.h"

#include "iter/indexed.h"

/* Bytes of a result for each byte of an index, from which a separate check costs little. */
#define SMALL_INDEX 8

/* The dimensions of an index alone, for a check of it: at[.., shape] from dimension `first` on. */
static void index_dims(struct cuda_dims *d, const tensor *index, int first)
{
	cuda_dims_init(d);
	for (int i = index->ndim - 1; i >= first; i--)
		cuda_dims_add(d, 3, index->sizes[i], (const int64_t[]){ 0, 0, index->strides[i] });
	cuda_dims_done(d, 3);
}

static int queue(const struct cuda_call *c, struct cuda_check *k, struct cuda_take *t,
		 struct cuda_take *check, enum tensor_dtype dtype, bool separate)
{
	int err = 0;

	t->bad = separate ? NULL : k->flag;
	check->bad = k->flag;
	if (separate) {
		err = cuda_launched(c, cuda_launch_check_index(check, c->stream), TENSOR_I64);
		if (!err)
			err = cuda_check_send(c, k);
	}
	if (!err)
		err = cuda_launched(c, cuda_launch_take(t, (int)tensor_itemsize(dtype), c->stream),
				    dtype);
	if (!err && !separate)
		err = cuda_check_send(c, k);
	return err;
}

/* `first`: the first dimension of `index` that belongs to the shape of an index tensor. */
static int take(const struct cuda_call *c, struct cuda_take *t, const tensor *out,
		const tensor *self, const tensor *index, int first)
{
	struct cuda_take check = { .index = t->index, .data = { NULL, NULL, index->data } };
	const bool separate = out->numel * (int64_t)tensor_itemsize(out->dtype) >=
			      SMALL_INDEX * index->numel * (int64_t)tensor_itemsize(index->dtype);
	struct cuda_check k;
	uint64_t bad = 0;
	int err;

	cuda_dims_done(&t->dims, 3);
	t->data[0] = out->data;
	t->data[1] = self->data;
	t->data[2] = index->data;
	index_dims(&check.dims, index, first);
	err = cuda_check_open_unread(c, &k);
	if (err)
		return err;
	err = queue(c, &k, t, &check, self->dtype, separate);
	if (!err)
		err = cuda_check_wait(c, &k, &bad);
	if (!err)
		err = cuda_index_refuse(c, &t->index, separate ? &check.dims : &t->dims,
					index->data, bad);
	cuda_check_close(c, &k);
	return err;
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
		err = take(&c, &t, out, self, index, 0);
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
		err = take(&c, &t, out, self, at, 1);
	return cuda_end(&c, err);
}
