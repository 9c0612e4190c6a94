// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * cat: dense tensors in host memory are joined row by row. Others are copied to their part of the
 * output by the backend's copy kernel, which converts dtypes and accepts any strides. As in
 * PyTorch, an empty 1-d tensor is skipped regardless of the other tensors' rank.
 */
#include "ops/op.h"
#include "ops/memory_format.h"

#include "family/cat.h"
#include "iter/join.h"

#define PIECES_MAX 64

static bool skipped(const tensor *t)
{
	return t->ndim == 1 && t->sizes[0] == 0;
}

static int check_list(const struct tensor_op *op, tensor_list list)
{
	const char *name = op->schema.name;

	if (list.len < 1)
		return tensor_fail(EINVAL, "%s: the list of tensors is empty", name);
	for (int64_t i = 0; i < list.len; i++) {
		if (!list.data[i]->ndim)
			return tensor_fail(EINVAL,
					   "%s: tensor %lld has no dimensions to "
					   "concatenate along",
					   name, (long long)i);
		if (operand_check_device(name, list.data[0], list.data[i]) < 0)
			return error_code();
	}
	return 0;
}

/* Compute the result's sizes from the first tensor that is not skipped. Returns its rank, or < 0.
 */
static int infer(const struct tensor_op *op, tensor_list list, int64_t dim, int *d, int64_t *sizes)
{
	const tensor *first = NULL;
	int64_t at = 0;

	for (int64_t i = 0; i < list.len; i++) {
		const tensor *t = list.data[i];
		bool fits = true;

		if (skipped(t))
			continue;
		if (!first) {
			first = t;
			at = i;
			*d = wrap_dim(op->schema.name, dim, t->ndim);
			if (*d < 0)
				return error_code();
			memcpy(sizes, t->sizes, t->ndim * sizeof(*sizes));
			continue;
		}
		fits = t->ndim == first->ndim;
		for (int k = 0; fits && k < t->ndim; k++)
			fits = k == *d || t->sizes[k] == sizes[k];
		if (!fits)
			return tensor_fail(EINVAL,
					   "%s: tensors %lld %s and %lld %s differ outside "
					   "dimension %d",
					   op->schema.name, (long long)at, SHAPE_STR(first),
					   (long long)i, SHAPE_STR(t), *d);
		if (__builtin_add_overflow(sizes[*d], t->sizes[*d], &sizes[*d]))
			return tensor_fail(EOVERFLOW, "%s: the size of dimension %d overflows",
					   op->schema.name, *d);
	}
	if (first)
		return first->ndim;
	/* All tensors are empty vectors. */
	*d = wrap_dim(op->schema.name, dim, 1);
	sizes[0] = 0;
	return *d < 0 ? error_code() : 1;
}

static int check_out(const struct tensor_op *op, const tensor *out, tensor_list list)
{
	for (int64_t i = 0; i < list.len; i++)
		if (tensor_overlap(out, list.data[i]) != OVERLAP_NONE)
			return tensor_fail(EINVAL, "%s: out shares memory with tensor %lld",
					   op->schema.name, (long long)i);
	return 0;
}

/* Join dense tensors of the result's dtype in host memory; false if not applicable. */
static bool joined(tensor *out, tensor_list list, int d)
{
	struct join_piece piece[PIECES_MAX];
	int64_t rows = 1, inner = (int64_t)itemsize(out);
	int n = 0;

	if (!out->contiguous || out->device.type != TENSOR_CPU || list.len > PIECES_MAX)
		return false;
	for (int k = 0; k < d; k++)
		rows *= out->sizes[k];
	for (int k = d + 1; k < out->ndim; k++)
		inner *= out->sizes[k];
	for (int64_t i = 0; i < list.len; i++) {
		const tensor *t = list.data[i];

		if (!t->numel)
			continue;
		if (!t->contiguous || t->dtype != out->dtype)
			return false;
		piece[n].from = t->data;
		piece[n].bytes = piece[n].step = t->sizes[d] * inner;
		n++;
	}
	if (out->numel)
		join_rows(out->data, rows, piece, n);
	return true;
}

/* `part` is a view of the output that moves along dimension d, one input at a time. */
static int copy_parts(tensor *out, tensor_list list, int d)
{
	struct tensor part = *out;
	int err = 0;

	if (joined(out, list, d))
		return 0;
	for (int64_t i = 0; !err && i < list.len; i++) {
		const tensor *t = list.data[i];

		if (!t->numel)
			continue;
		part.sizes[d] = t->sizes[d];
		part.numel = t->numel;
		part.contiguous = out->contiguous && (d == 0 || t->numel == out->numel);
		err = operand_copy(&part, t);
		part.offset += t->sizes[d] * out->strides[d];
		part.data =
			(char *)part.data + t->sizes[d] * out->strides[d] * (int64_t)itemsize(out);
	}
	return err;
}

static bool channels_last(tensor_list list)
{
	bool all = true;

	for (int64_t i = 0; i < list.len && all; i++)
		all = memory_channels_last(list.data[i]);
	return all;
}

int op_cat(const struct tensor_op *op, tensor **out, tensor_list tensors, int64_t dim)
{
	enum tensor_dtype dtype;
	int64_t sizes[TENSOR_MAX_DIMS];
	const tensor *first;
	struct op_output o;
	int d, ndim;

	if (check_list(op, tensors) < 0 || (*out && check_out(op, *out, tensors) < 0))
		return error_code();
	ndim = infer(op, tensors, dim, &d, sizes);
	if (ndim < 0)
		return error_code();
	first = tensors.data[0];
	dtype = first->dtype;
	for (int64_t i = 1; dtype && i < tensors.len; i++)
		if (tensors.data[i]->dtype != dtype)
			dtype = tensor_promote_types(dtype, tensors.data[i]->dtype);
	if (output_begin_channels(op, &o, *out, dtype, sizes, ndim, channels_last(tensors), &first,
				  1) < 0)
		return error_code();
	return output_end(op, &o, out, copy_parts(o.t, tensors, d));
}
