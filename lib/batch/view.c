// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Views and operators that take sizes: the batch is one more size in front. */
#include "batch/batch.h"

#include "family/cat.h"
#include "family/copy.h"
#include "family/factory.h"
#include "family/move.h"
#include "family/ranges.h"
#include "family/reinterpret.h"
#include "family/shape.h"
#include "family/view.h"

/* The list of argument i with n values in front; data NULL with the error set. */
static tensor_ints with_front(struct batch_call *c, int i, const int64_t *front, int n)
{
	tensor_ints list = c->args[i].ints;
	int64_t *to = batch_list(c);

	if (!to || list.len + n > TENSOR_MAX_DIMS) {
		tensor_fail(EINVAL, "%s: a physical tensor has at most %d dimensions",
			    c->op->schema.name, TENSOR_MAX_DIMS);
		return (tensor_ints){ NULL, -1 };
	}
	for (int k = 0; k < n; k++)
		to[k] = front[k];
	for (int64_t k = 0; k < list.len; k++)
		to[n + k] = list.data[k];
	return (tensor_ints){ to, list.len + n };
}

int batch_rule_view(struct batch_call *c)
{
	tensor_ints size = with_front(c, 1, &c->size, 1);

	return size.data ? batch_return(c, 0, tensor_view(c->phys[0].t, size)) : batch_failed();
}

int batch_rule_expand(struct batch_call *c)
{
	tensor_ints size = with_front(c, 1, &c->size, 1);
	int64_t missing = c->args[1].ints.len - arg_ndim(c, 0);
	tensor *t;

	if (!size.data)
		return batch_failed();
	if (missing < 0)
		return batch_rule_loop(c); /* which has the error */
	t = batch_pad(c->phys[0].t, (int)missing);
	return t ? batch_return(c, 0, tensor_expand(t, size)) : batch_failed();
}

int batch_rule_repeat(struct batch_call *c)
{
	int64_t one = 1, missing = c->args[1].ints.len - arg_ndim(c, 0);
	tensor_ints repeats = with_front(c, 1, &one, 1);
	tensor *t;

	if (!repeats.data)
		return batch_failed();
	if (missing < 0)
		return batch_rule_loop(c);
	t = batch_pad(c->phys[0].t, (int)missing);
	return t ? batch_return(c, 0, tensor_repeat(t, repeats)) : batch_failed();
}

int batch_rule_as_strided(struct batch_call *c)
{
	tensor_ints size = with_front(c, 1, &c->size, 1), stride;

	if (!size.data)
		return batch_failed();
	stride = with_front(c, 2, &c->phys[0].t->strides[0], 1);
	if (!stride.data)
		return batch_failed();
	return batch_return(c, 0, tensor_as_strided(c->phys[0].t, size, stride, arg_int(c, 3)));
}

int batch_rule_permute(struct batch_call *c)
{
	tensor_ints dims = with_front(c, 1, &(int64_t){ 0 }, 1);
	int64_t *to = (int64_t *)dims.data;

	if (!to)
		return batch_failed();
	for (int64_t i = 1; i < dims.len; i++) {
		int d = wrap_dim(c->op->schema.name, to[i], arg_ndim(c, 0));

		if (d < 0)
			return batch_failed();
		to[i] = d + 1;
	}
	return batch_return(c, 0, tensor_permute(c->phys[0].t, dims));
}

int batch_rule_t(struct batch_call *c)
{
	if (arg_ndim(c, 0) > 2)
		return batch_rule_loop(c);
	if (arg_ndim(c, 0) < 2)
		return batch_return(c, 0, tensor_alias(c->phys[0].t));
	return batch_return(c, 0, tensor_transpose(c->phys[0].t, 1, 2));
}

int batch_rule_squeeze(struct batch_call *c)
{
	const tensor *self = c->args[0].t;
	int64_t dims[TENSOR_MAX_DIMS];
	int n = 0;

	for (int i = 0; i < self->ndim; i++)
		if (self->sizes[i] == 1)
			dims[n++] = i + 1;
	return batch_return(c, 0, tensor_squeeze_dims(c->phys[0].t, (tensor_ints){ dims, n }));
}

/* select_backward, slice_backward: input_sizes and a dimension of these. */
static int backward_of_view(struct batch_call *c)
{
	tensor_ints sizes = with_front(c, 1, &c->size, 1);
	int dim = wrap_dim(c->op->schema.name, arg_int(c, 2), (int)c->args[1].ints.len);

	if (!sizes.data || dim < 0)
		return batch_failed();
	c->phys[1].ints = sizes;
	c->phys[2].i = dim + 1;
	return batch_call_physical(c);
}

int batch_rule_select_backward(struct batch_call *c)
{
	return backward_of_view(c);
}

int batch_rule_slice_backward(struct batch_call *c)
{
	return backward_of_view(c);
}

int batch_rule_roll(struct batch_call *c)
{
	tensor_ints size = { c->phys[0].t->sizes, c->phys[0].t->ndim };
	tensor *flat;

	if (c->args[2].ints.len > 0 && arg_ndim(c, 0))
		return batch_rule_dims(c);
	flat = batch_flatten(c, c->phys[0].t);
	if (!flat || c->args[1].ints.len != 1)
		return flat ? batch_rule_loop(c) : batch_failed();
	flat = tensor_roll(flat, c->args[1].ints, TENSOR_INTS(1));
	return batch_return(c, 0, flat ? tensor_view(flat, size) : NULL);
}

/* ---- lists of tensors ---- */

static int list_rank(const struct batch_call *c)
{
	tensor_list list = c->args[0].list;

	for (int64_t i = 1; i < list.len; i++)
		if (list.data[i]->ndim != list.data[0]->ndim)
			return -1;
	return list.data[0]->ndim;
}

int batch_rule_cat(struct batch_call *c)
{
	tensor_list from = c->args[0].list, list = c->phys[0].list;
	tensor **to = (tensor **)list.data;
	int ndim = list_rank(c), dim;

	if (ndim < 1)
		return batch_rule_loop(c); /* empty vectors, which cat skips */
	dim = wrap_dim(c->op->schema.name, arg_int(c, 1), ndim);
	if (dim < 0)
		return batch_failed();
	for (int64_t i = 0; i < list.len; i++) {
		if (!is_batched(from.data[i]) || batched_of(from.data[i])->level != c->level)
			to[i] = batch_expand(c, to[i]);
		if (!to[i])
			return batch_failed();
	}
	return batch_return(c, 0, tensor_cat(list, dim + 1));
}

/* ---- copies and tensors like another ---- */

/* A format of images does not apply to a physical tensor: another order has the same values. */
static enum tensor_memory_format physical_format(enum tensor_memory_format f)
{
	return f > TENSOR_PRESERVE_FORMAT ? TENSOR_CONTIGUOUS_FORMAT : f;
}

static tensor_options like_options(const struct batch_call *c, int first)
{
	const tensor_value *v = c->args + first;

	return (tensor_options){
		.dtype = (enum tensor_dtype)v[0].i,
		.layout = (enum tensor_layout)v[1].i,
		.device = v[2].device,
		.shareable = v[3].b,
		.memory_format = c->nargs > first + 4 ?
					 physical_format((enum tensor_memory_format)v[4].i) :
					 TENSOR_MEMORY_FORMAT_NONE
	};
}

int batch_rule_clone(struct batch_call *c)
{
	enum tensor_memory_format f = physical_format((enum tensor_memory_format)arg_int(c, 1));

	return batch_return(c, 0, tensor_clone_opt(c->phys[0].t, f));
}

int batch_rule_to_copy(struct batch_call *c)
{
	return batch_return(c, 0, tensor_to_copy(c->phys[0].t, like_options(c, 1)));
}

int batch_rule_empty_like(struct batch_call *c)
{
	return batch_return(c, 0, tensor_empty_like(c->phys[0].t, like_options(c, 1)));
}

/* new_empty_strided: as many elements for each sample as these strides reach. */
static int with_strides(struct batch_call *c)
{
	tensor_ints size = c->args[1].ints, stride = c->args[2].ints;
	int64_t reach = 1;

	for (int64_t i = 0; i < size.len && i < stride.len; i++)
		reach += size.data[i] ? (size.data[i] - 1) * stride.data[i] : 0;
	c->phys[1].ints = with_front(c, 1, &c->size, 1);
	c->phys[2].ints = with_front(c, 2, &reach, 1);
	if (!c->phys[1].ints.data || !c->phys[2].ints.data)
		return batch_failed();
	return batch_call_physical(c);
}

int batch_rule_new_sized(struct batch_call *c)
{
	if (c->op->schema.args[2].type == TENSOR_ARG_INTS)
		return with_strides(c);
	c->phys[1].ints = with_front(c, 1, &c->size, 1);
	return c->phys[1].ints.data ? batch_call_physical(c) : batch_failed();
}

/* ---- filling with a tensor ---- */

int batch_rule_fill(struct batch_call *c)
{
	tensor *value = c->phys[1].t;

	if (arg_ndim(c, 1))
		return batch_rule_loop(c); /* which has the error */
	if (arg_batched(c, 1))
		value = batch_pad(value, arg_ndim(c, 0));
	if (!value)
		return batch_failed();
	if (c->inplace)
		return batch_return(c, 0, tensor_copy_(c->phys[0].t, value));
	return batch_return(c, 0, tensor_copy_(tensor_clone(batch_full(c, 0)), value));
}
