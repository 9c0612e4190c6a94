// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* sort, topk, kthvalue with the medians, and the order of rows: which of the kernels, and scratch memory. */
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/launch_sort.h"

_Static_assert((int)CUDA_RANK_MEDIAN == SELECT_MEDIAN &&
		       (int)CUDA_RANK_NANMEDIAN == SELECT_NANMEDIAN,
	       "the ranks of the launcher are those of the kernel's type");

static struct cuda_keys keys_of(enum tensor_dtype dtype, bool descending)
{
	struct cuda_keys k = { .bits = 8 * (int)tensor_itemsize(dtype) };

	k.is_signed = dtype == TENSOR_I8 || dtype == TENSOR_I16 || dtype == TENSOR_I32 ||
		      dtype == TENSOR_I64;
	k.infinity = dtype == TENSOR_F16  ? 0xf800 :
		     dtype == TENSOR_BF16 ? 0xff00 :
		     dtype == TENSOR_F32  ? 0xff000000 :
		     dtype == TENSOR_F64  ? 0xffe0000000000000 :
					    0;
	k.flip = descending ? UINT64_MAX : 0;
	return k;
}

/* Starts the call; fails for dtypes without an order, and if the kernels' numbers do not suffice. */
static int begin(struct cuda_call *c, struct cuda_sort *s, const char *op, const tensor *values,
		 const tensor *indices, const tensor *self, int dim, bool descending)
{
	const tensor *t[] = { values, self, indices };

	if (dtype_is_complex(self->dtype) || dtype_is_f8(self->dtype))
		return tensor_kernel_no_dtype(op, (enum tensor_dtype)self->dtype, "cuda");
	if (self->numel > INT32_MAX)
		return tensor_fail(EOPNOTSUPP, "%s: cuda: %lld elements, at most 2^31 - 1", op,
				   (long long)self->numel);
	*s = (struct cuda_sort){ .keys = keys_of((enum tensor_dtype)self->dtype, descending),
				 .n = self->sizes[dim],
				 .count = values->sizes[dim],
				 .data = { values->data, self->data, indices->data } };
	cuda_dims_init(&s->lines);
	for (int d = self->ndim - 1; d >= 0; d--)
		if (d != dim)
			cuda_dims_add(&s->lines, 3, self->sizes[d],
				      (const int64_t[]){ values->strides[d], self->strides[d],
							 indices->strides[d] });
	for (int i = 0; i < 3; i++)
		s->step[i] = t[i]->strides[dim];
	return cuda_begin_all(c, op, self->device.index, t, 3);
}

/* Scratch memory for all elements, which the radix sort reads and writes. */
static int sort_long(const struct cuda_call *c, const struct cuda_sort *s)
{
	const size_t all = ((size_t)(s->n * s->lines.numel) + 63) / 64 * 64;
	struct cuda_sort_scratch m = { 0 };
	void *data = NULL;
	int err = cuda_check(c->op, cuda_launch_sort_long(s, &m, c->stream));

	if (!err)
		err = cuda_scratch(c, 24 * all + m.nbytes, &data);
	if (err)
		return err;
	m.key = data;
	m.sorted = m.key + all;
	m.number = (uint32_t *)(m.sorted + all);
	m.order = m.number + all;
	m.temporary = m.order + all;
	err = cuda_check(c->op, cuda_launch_sort_long(s, &m, c->stream));
	cuda_scratch_free(c, data);
	return err;
}

static int sort_lines(const struct cuda_call *c, const struct cuda_sort *s)
{
	return s->n <= CUDA_SORT_SHORT ? cuda_check(c->op, cuda_launch_sort_short(s, c->stream)) :
					 sort_long(c, s);
}

int cuda_sort(tensor *values, tensor *indices, const tensor *self, int dim, bool descending)
{
	struct cuda_sort s;
	struct cuda_call c;
	int err;

	if (!self->numel)
		return 0;
	err = begin(&c, &s, "sort", values, indices, self, dim, descending);
	return err ? err : cuda_end(&c, sort_lines(&c, &s));
}

int cuda_topk(tensor *values, tensor *indices, const tensor *self, int dim, int64_t k, bool largest,
	      bool sorted)
{
	struct cuda_sort s;
	struct cuda_call c;
	int err;

	if (!self->numel || !k)
		return 0;
	err = begin(&c, &s, "topk", values, indices, self, dim, largest);
	if (err)
		return err;
	s.count = k;
	if (s.n <= CUDA_SORT_SHORT || k > CUDA_TOPK_MOST)
		err = sort_lines(&c, &s);
	else
		err = cuda_check(c.op, cuda_launch_topk(&s, c.stream));
	return cuda_end(&c, err);
}

int cuda_kthvalue(tensor *values, tensor *indices, const tensor *self, int dim, int64_t k)
{
	struct cuda_sort s;
	struct cuda_call c;
	int err;

	if (!self->numel)
		return 0;
	err = begin(&c, &s, "kthvalue", values, indices, self, dim, false);
	if (err)
		return err;
	return cuda_end(&c, cuda_check(c.op, cuda_launch_kth(&s, k, c.stream)));
}

int cuda_sort_rows(tensor *order, const tensor *rows)
{
	struct cuda_sort_rows s = { .keys = keys_of((enum tensor_dtype)rows->dtype, false),
				    .n = rows->sizes[0],
				    .k = rows->sizes[1],
				    .rows = rows->data,
				    .order = order->data };
	struct cuda_call c;
	int err;

	if (!s.n)
		return 0;
	err = cuda_begin_with(&c, "unique_dim", order->device.index, order, rows);
	if (err)
		return err;
	err = cuda_check(c.op, cuda_launch_sort_rows(&s, c.stream));
	if (!err)
		err = cuda_scratch(&c, s.nbytes, &s.temporary);
	if (!err)
		err = cuda_check(c.op, cuda_launch_sort_rows(&s, c.stream));
	cuda_scratch_free(&c, s.temporary);
	return cuda_end(&c, err);
}
