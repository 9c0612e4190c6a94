// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Arguments and results of rules. */
#include "batch/batch.h"

#include "family/factory.h"
#include "family/pointwise.h"
#include "family/shape.h"
#include "family/view.h"

int batch_arg(const struct batch_call *c, const char *name)
{
	for (int i = 0; i < c->op->schema.nargs; i++)
		if (!strcmp(c->op->schema.args[i].name, name))
			return i;
	return -1;
}

int64_t *batch_list(struct batch_call *c)
{
	if (c->nlists < BATCH_LISTS)
		return c->lists[c->nlists++];
	tensor_fail(ENOMEM, "%s: too many lists", c->op->schema.name);
	return NULL;
}

/* The sizes of t with others in front, without the first `skip` of t. */
static tensor_ints sizes_with(int64_t *to, const int64_t *front, int n, const tensor *t, int skip)
{
	int64_t len = n + t->ndim - skip;

	if (len > TENSOR_MAX_DIMS)
		return (tensor_ints){ NULL, -1 };
	for (int i = 0; i < n; i++)
		to[i] = front[i];
	for (int i = skip; i < t->ndim; i++)
		to[n + i - skip] = t->sizes[i];
	return (tensor_ints){ to, len };
}

static tensor *too_many(void)
{
	return tensor_fail_null(EINVAL, "vmap: a physical tensor has at most %d dimensions",
				TENSOR_MAX_DIMS);
}

tensor *batch_expand(const struct batch_call *c, tensor *t)
{
	int64_t sizes[TENSOR_MAX_DIMS];
	tensor_ints s = sizes_with(sizes, &c->size, 1, t, 0);

	return s.len < 0 ? too_many() : tensor_expand(t, s);
}

tensor *batch_full(const struct batch_call *c, int i)
{
	tensor *t = arg_physical(c, i);

	return !t || arg_batched(c, i) ? t : batch_expand(c, t);
}

tensor *batch_pad(tensor *t, int n)
{
	int64_t sizes[TENSOR_MAX_DIMS], front[TENSOR_MAX_DIMS] = { t->sizes[0] };
	tensor_ints s;

	if (!n)
		return t;
	if (n >= TENSOR_MAX_DIMS)
		return too_many();
	for (int i = 1; i <= n; i++)
		front[i] = 1;
	s = sizes_with(sizes, front, n + 1, t, 1);
	return s.len < 0 ? too_many() : tensor_view(t, s);
}

tensor *batch_fold(tensor *t)
{
	int64_t sizes[TENSOR_MAX_DIMS], n;

	if (!t)
		return NULL;
	n = t->sizes[0] * t->sizes[1];
	return tensor_reshape(t, sizes_with(sizes, &n, 1, t, 2));
}

tensor *batch_unfold(const struct batch_call *c, tensor *t)
{
	int64_t sizes[TENSOR_MAX_DIMS], front[2];
	tensor_ints s;

	if (!t)
		return NULL;
	front[0] = c->size;
	front[1] = t->sizes[0] / c->size;
	s = sizes_with(sizes, front, 2, t, 1);
	return s.len < 0 ? too_many() : tensor_reshape(t, s);
}

tensor *batch_flatten(const struct batch_call *c, tensor *t)
{
	return t ? tensor_reshape(t, TENSOR_INTS(c->size, t->numel / c->size)) : NULL;
}

tensor *batch_numbers(const struct batch_call *c, const tensor *like, int n, int64_t step)
{
	int64_t sizes[TENSOR_MAX_DIMS] = { c->size };
	tensor *t = tensor_arange(tensor_scalar_int(c->size),
				  TENSOR_OPTIONS(.dtype = TENSOR_I64, .device = like->device));

	for (int i = 1; i < n; i++)
		sizes[i] = 1;
	return tensor_view(tensor_mul_scalar(t, tensor_scalar_int(step)),
			   (tensor_ints){ sizes, n });
}

int batch_return(struct batch_call *c, int i, tensor *t)
{
	if (!t)
		return batch_failed();
	c->rets[i] = value_tensor(t);
	return 0;
}

int batch_call_physical(struct batch_call *c)
{
	return tensor_op_call(c->op, c->phys, c->nargs, c->rets, c->nrets);
}

int batch_call_op(struct batch_call *c, const char *name, const tensor_value *args, int nargs)
{
	return tensor_call(name, args, nargs, c->rets, c->nrets);
}
