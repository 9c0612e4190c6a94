// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Reductions: the dimensions of a sample are all but that of the batch. */
#include "batch/batch.h"

#include "family/shape.h"
#include "family/view.h"

/* Reductions over all elements, and those that they are over given dimensions. */
static const struct {
	const char *all, *dims;
	bool one; /* takes one dimension, not a list */
} full[] = {
	{ "sum", "sum.dim_IntList", false },
	{ "mean", "mean.dim", false },
	{ "prod", "prod.dim_int", true },
	{ "any", "any.dims", false },
	{ "all", "all.dims", false },
	{ "max", "amax", false },
	{ "min", "amin", false },
	{ "median", "median.dim", true },
	{ "nanmedian", "nanmedian.dim", true },
};

/* One dimension for each sample: [size, 1] if it has none. */
static tensor *with_dims(struct batch_call *c)
{
	return arg_ndim(c, 0) ? c->phys[0].t : batch_pad(c->phys[0].t, 1);
}

static tensor_value all_dims(struct batch_call *c, int ndim)
{
	int64_t *to = batch_list(c);

	for (int i = 0; to && i < ndim; i++)
		to[i] = i + 1;
	return value_ints(to, ndim);
}

/* A reduction to one number, by the operator over dimensions. */
static int reduce_all(struct batch_call *c)
{
	tensor_value args[4] = { 0 }, rets[2] = { 0 };
	int nargs = 3, ndim = arg_ndim(c, 0), dtype = batch_arg(c, "dtype"), err;
	size_t i = 0;
	const tensor_op *op;

	while (i < ARRAY_SIZE(full) && strcmp(full[i].all, c->op->schema.name))
		i++;
	if (i == ARRAY_SIZE(full) || (full[i].one && !c->args[0].t->numel))
		return batch_rule_loop(c);
	args[0] = value_tensor(full[i].one ? batch_flatten(c, c->phys[0].t) : with_dims(c));
	if (!args[0].t)
		return batch_failed();
	args[1] = full[i].one ? value_int(1) : all_dims(c, ndim ?: 1);
	args[2] = (tensor_value){ .kind = TENSOR_VALUE_BOOL, .b = false };
	if (dtype >= 0)
		args[nargs++] = c->phys[dtype];
	op = tensor_op_find(full[i].dims);
	err = tensor_op_call(op, args, nargs, rets, op->schema.nreturns);
	return err ?: batch_return(c, 0, rets[0].t);
}

/* Without dimensions, or with none: all of them. */
static bool no_dims(const tensor_value *v)
{
	return v->kind == TENSOR_VALUE_INT ? v->i == TENSOR_NONE : v->ints.len <= 0;
}

/* An empty list is no dimension for these, and all for others. */
static bool over_no_dims(const struct batch_call *c, int dim)
{
	return !strcmp(c->op->schema.name + 3, ".dims") && !c->args[dim].ints.len;
}

/* keepdim of a reduction of all: [size, 1, 1]. */
static int keep_dims(struct batch_call *c)
{
	int keep = batch_arg(c, "keepdim"), ndim = arg_ndim(c, 0);

	for (int i = 0; i < c->nrets; i++) {
		tensor *t = tensor_reshape(c->rets[i].t, TENSOR_INTS(c->size));

		if (t && keep >= 0 && c->args[keep].b)
			t = batch_pad(t, ndim);
		if (batch_return(c, i, t) < 0)
			return batch_failed();
	}
	return 0;
}

static int reduce_no_dims(struct batch_call *c, int dim)
{
	tensor_value *v = &c->phys[dim];
	int ndim = arg_ndim(c, 0), err;

	if (v->kind == TENSOR_VALUE_INT) {
		c->phys[0].t = batch_flatten(c, c->phys[0].t);
		v->i = 1;
	} else {
		c->phys[0].t = with_dims(c);
		*v = all_dims(c, ndim ?: 1);
	}
	if (!c->phys[0].t)
		return batch_failed();
	err = batch_call_physical(c);
	return err || (v->kind != TENSOR_VALUE_INT && ndim) ? err : keep_dims(c);
}

int batch_rule_reduction(struct batch_call *c)
{
	int dim = batch_arg(c, "dim");

	if (dim < 0)
		return reduce_all(c);
	if (over_no_dims(c, dim))
		return batch_call_physical(c);
	if (no_dims(&c->args[dim]))
		return reduce_no_dims(c, dim);
	return batch_rule_dims(c);
}

int batch_rule_median(struct batch_call *c)
{
	return reduce_all(c);
}
