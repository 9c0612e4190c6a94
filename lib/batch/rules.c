// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Rules that serve many operators. */
#include "batch/batch.h"

#include "family/copy.h"
#include "family/shape.h"
#include "family/view.h"

/* ---- pointwise ---- */

/* The dtype in which the samples are computed: a tensor without dimensions ranks below others. */
static enum tensor_dtype common_dtype(const struct batch_call *c, bool *lower)
{
	enum tensor_dtype high = TENSOR_DTYPE_NONE, low = TENSOR_DTYPE_NONE;

	for (int i = 0; i < c->nargs; i++) {
		const tensor *t = arg_sample(c, i);
		enum tensor_dtype *to = t && t->ndim ? &high : &low;

		if (t)
			*to = *to ? tensor_promote_types(*to, t->dtype) : t->dtype;
	}
	*lower = low != TENSOR_DTYPE_NONE;
	return high && low ? promote_lower_rank(high, low) : (high ?: low);
}

/* Converts arguments whose rank in promotion the batch dimension would change. */
static int convert_dtypes(struct batch_call *c)
{
	bool lower;
	enum tensor_dtype common = common_dtype(c, &lower);

	if (!lower || c->op->rule == RULE_SAME)
		return 0;
	for (int i = c->inplace ? 1 : 0; i < c->nargs; i++) {
		tensor_value *v = &c->phys[i];

		if (!arg_tensor(c, i) || v->t->dtype == common ||
		    !strcmp(c->op->schema.args[i].name, "condition"))
			continue;
		v->t = tensor_to(v->t, TENSOR_OPTIONS(.dtype = common));
		if (!v->t)
			return batch_failed();
	}
	return 0;
}

/* Inserts dimensions after the batch, so that samples broadcast among each other. */
static int align(struct batch_call *c)
{
	int most = 0;

	for (int i = 0; i < c->nargs; i++)
		if (arg_tensor(c, i) && arg_ndim(c, i) > most)
			most = arg_ndim(c, i);
	for (int i = 0; i < c->nargs; i++) {
		if (!arg_tensor(c, i) || !arg_batched(c, i) || arg_ndim(c, i) == most)
			continue;
		c->phys[i].t = batch_pad(c->phys[i].t, most - arg_ndim(c, i));
		if (!c->phys[i].t)
			return batch_failed();
	}
	return 0;
}

int batch_rule_pointwise(struct batch_call *c)
{
	int err = convert_dtypes(c);

	if (!err)
		err = align(c);
	return err ?: batch_call_physical(c);
}

/* src broadcasts to self, whose dtype the result has. */
int batch_rule_copy(struct batch_call *c)
{
	int err;

	if (arg_ndim(c, 1) > arg_ndim(c, 0))
		return batch_rule_loop(c); /* which has the error */
	err = align(c);
	if (!err)
		c->phys[0].t = batch_full(c, 0);
	return err || !c->phys[0].t ? batch_failed() : batch_call_physical(c);
}

/* ---- arguments that all have the batch in front ---- */

static int expand_all(struct batch_call *c)
{
	for (int i = 0; i < c->nargs; i++) {
		if (!arg_tensor(c, i))
			continue;
		c->phys[i].t = batch_full(c, i);
		if (!c->phys[i].t)
			return batch_failed();
	}
	return 0;
}

/* The samples have one number of dimensions; bit i of fewer: argument i has one fewer. */
static bool one_rank(const struct batch_call *c, int fewer)
{
	int ndim = -1;

	for (int i = 0; i < c->nargs; i++) {
		int less = fewer >> i & 1;

		if (!arg_tensor(c, i))
			continue;
		if (ndim >= 0 && arg_ndim(c, i) + less != ndim)
			return false;
		ndim = arg_ndim(c, i) + less;
	}
	return true;
}

/* The number in the entry is fewer of one_rank(). */
int batch_rule_all(struct batch_call *c)
{
	if (!one_rank(c, c->op->batch->rank))
		return batch_rule_loop(c);
	return expand_all(c) ?: batch_call_physical(c);
}

/* ---- dimensions ---- */

static int shift_dim(const struct batch_call *c, int64_t *dim, int ndim)
{
	int d = wrap_dim(c->op->schema.name, *dim, ndim);

	if (d < 0)
		return batch_failed();
	*dim = d + 1;
	return 0;
}

/* Makes the dimensions of a sample with ndim dimensions in argument i those of the physical tensor. */
static int shift_arg(struct batch_call *c, int i, int ndim)
{
	tensor_value *v = &c->phys[i];
	int64_t *to;

	if (v->kind == TENSOR_VALUE_INT)
		return v->i == TENSOR_NONE ? 0 : shift_dim(c, &v->i, ndim);
	if (v->kind != TENSOR_VALUE_INTS || v->ints.len <= 0)
		return 0;
	to = batch_list(c);
	if (!to)
		return batch_failed();
	if (v->ints.len > TENSOR_MAX_DIMS)
		return tensor_fail(EINVAL, "%s: too many dimensions", c->op->schema.name);
	for (int64_t k = 0; k < v->ints.len; k++) {
		to[k] = v->ints.data[k];
		if (shift_dim(c, &to[k], ndim) < 0)
			return batch_failed();
	}
	v->ints.data = to;
	return 0;
}

static int shift_dims(struct batch_call *c, int ndim)
{
	int err = 0;

	for (int i = 0; i < c->nargs && !err; i++)
		if (c->op->batch->dims >> i & 1)
			err = shift_arg(c, i, ndim);
	return err;
}

/* A sample without dimensions has dimension 0 for these operators: one of size 1. */
static int pad_scalars(struct batch_call *c)
{
	for (int i = 0; i < c->nargs; i++) {
		if (!arg_tensor(c, i) || arg_ndim(c, i))
			continue;
		c->phys[i].t = batch_pad(c->phys[i].t, 1);
		if (!c->phys[i].t)
			return batch_failed();
	}
	return 0;
}

static int unpad_results(struct batch_call *c)
{
	for (int i = 0; i < c->nrets; i++) {
		tensor *t = c->rets[i].t;

		if (c->rets[i].kind == TENSOR_VALUE_TENSOR && t->ndim == 2 && t->sizes[1] == 1 &&
		    batch_return(c, i, tensor_view(t, TENSOR_INTS(c->size))) < 0)
			return batch_failed();
	}
	return 0;
}

static bool is_view(const struct batch_call *c)
{
	for (const char *const *tag = c->op->schema.tags; *tag; tag++)
		if (!strcmp(*tag, "view"))
			return true;
	return false;
}

int batch_rule_dims(struct batch_call *c)
{
	int ndim = arg_ndim(c, 0), more = c->op->batch->rank, err;
	bool scalars = !ndim && !more;

	if (scalars && is_view(c))
		return batch_rule_loop(c);
	err = expand_all(c);
	if (!err)
		err = shift_dims(c, ndim + more);
	if (!err && scalars)
		err = pad_scalars(c);
	if (!err)
		err = batch_call_physical(c);
	return err || !scalars || c->inplace ? err : unpad_results(c);
}

/* ---- an index that is the same for all samples ---- */

int batch_rule_indexed(struct batch_call *c)
{
	int index = batch_arg(c, "index"), source = batch_arg(c, "source"), err;

	if (arg_batched(c, index) || !arg_ndim(c, 0) || (source >= 0 && !arg_ndim(c, source)))
		return batch_rule_loop(c);
	err = shift_dims(c, arg_ndim(c, 0));
	if (err)
		return err;
	c->phys[0].t = batch_full(c, 0);
	if (source >= 0)
		c->phys[source].t = batch_full(c, source);
	if (!c->phys[0].t || (source >= 0 && !c->phys[source].t))
		return batch_failed();
	return batch_call_physical(c);
}

/* ---- operators on a batch of their own ---- */

/* The list input_size begins with the number of images. */
static int fold_sizes(struct batch_call *c)
{
	int i = batch_arg(c, "input_size");
	int64_t *to;

	if (i < 0)
		return 0;
	to = batch_list(c);
	if (!to)
		return batch_failed();
	if (c->phys[i].ints.len > TENSOR_MAX_DIMS)
		return tensor_fail(EINVAL, "%s: too many sizes", c->op->schema.name);
	for (int64_t k = 0; k < c->phys[i].ints.len; k++)
		to[k] = c->phys[i].ints.data[k] * (k ? 1 : c->size);
	c->phys[i].ints.data = to;
	return 0;
}

int batch_rule_fold(struct batch_call *c)
{
	int rank = c->op->batch->rank, err;

	if (!one_rank(c, 0) || (arg_ndim(c, 0) != rank && arg_ndim(c, 0) != rank - 1))
		return batch_rule_loop(c);
	if (arg_ndim(c, 0) == rank - 1)
		return expand_all(c) ?: batch_call_physical(c);
	err = expand_all(c) ?: fold_sizes(c);
	for (int i = 0; i < c->nargs && !err; i++) {
		if (!arg_tensor(c, i))
			continue;
		c->phys[i].t = batch_fold(c->phys[i].t);
		if (!c->phys[i].t)
			return batch_failed();
	}
	err = err ?: batch_call_physical(c);
	for (int i = 0; i < c->nrets && !err; i++)
		if (c->rets[i].kind == TENSOR_VALUE_TENSOR)
			err = batch_return(c, i, batch_unfold(c, c->rets[i].t));
	return err;
}
