// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Operator functions of attention as one kernel, and of its gradients. */
#include "ops/nn/attention.h"

#include "kernels/abi/attention.h"

#include "family/attention.h"

/* The operands as a kernel reads them: with all batch dimensions. */
struct operands {
	struct attention_sizes s;
	struct attention_inputs in;
	tensor query, key, value, mask;
};

/* t expanded to [batch, rows, columns], or [batch, rows] for columns -1. */
static const tensor *expand(tensor *header, const tensor *t, const struct attention_sizes *s,
			    int64_t rows, int64_t columns)
{
	int ndim = s->batch + (columns < 0 ? 1 : 2);

	*header = *t;
	header->ndim = (uint8_t)ndim;
	memcpy(header->sizes, s->sizes, s->batch * sizeof(*s->sizes));
	header->sizes[s->batch] = rows;
	if (columns >= 0)
		header->sizes[s->batch + 1] = columns;
	for (int d = 0; d < ndim; d++) {
		int from = d - (ndim - t->ndim);

		header->strides[d] = from < 0 || t->sizes[from] == 1 ? 0 : t->strides[from];
	}
	return header;
}

/*
 * A new tensor [batch, rows, columns] with contiguous rows, whose other dimensions are ordered in memory as those of
 * `like`: heads of one projection are made side by side, and so are results that become one again.
 */
static tensor *new_like(const tensor *like, const struct attention_sizes *s, int64_t rows,
			int64_t columns)
{
	int order[TENSOR_MAX_DIMS], n = s->batch + 1; /* from the innermost dimension */
	int64_t sizes[TENSOR_MAX_DIMS], strides[TENSOR_MAX_DIMS], stride = columns ? columns : 1;

	memcpy(sizes, s->sizes, s->batch * sizeof(*sizes));
	sizes[n - 1] = rows;
	sizes[n] = columns;
	strides[n] = 1;
	for (int i = 0; i < n; i++) {
		int d = n - 1 - i, at = i;

		/* A broadcast dimension has no place in memory, and keeps its own. */
		for (;
		     at > 0 && like->strides[d] && like->strides[order[at - 1]] > like->strides[d];
		     at--)
			order[at] = order[at - 1];
		order[at] = d;
	}
	if (sizes_numel("attention", sizes, n + 1) < 0)
		return NULL;
	for (int i = 0; i < n; i++) {
		strides[order[i]] = stride;
		stride *= sizes[order[i]] ? sizes[order[i]] : 1;
	}
	return tensor_new_strided(TENSOR_OPTIONS(.dtype = like->dtype, .device = like->device),
				  sizes, strides, n + 1);
}

static int check_devices(const char *op, const tensor *query, const tensor *const *others, int n)
{
	for (int i = 0; i < n; i++)
		if (others[i] && operand_check_device(op, query, others[i]) < 0)
			return error_code();
	return 0;
}

static int begin(struct operands *o, const char *op, const tensor *query, const tensor *key,
		 const tensor *value, const tensor *mask, bool is_causal, double scale)
{
	struct attention_sizes *s = &o->s;

	if (attention_check(op, query, key, value, mask, is_causal) < 0 ||
	    check_devices(op, query, (const tensor *const[]){ key, value, mask }, 3) < 0)
		return error_code();
	if (!dtype_is_float(query->dtype) || dtype_is_f8(query->dtype))
		return tensor_fail(EINVAL, "%s: a floating dtype is needed, got %s", op,
				   tensor_dtype_name(query->dtype));
	if (!attention_sizes_of(s, query, key, value, mask))
		return tensor_fail(EINVAL,
				   "%s: query %s, key %s, value %s and attn_mask %s do not fit", op,
				   SHAPE_STR(query), SHAPE_STR(key), SHAPE_STR(value),
				   mask ? SHAPE_STR(mask) : "none");
	if (s->features >= ATTENTION_FEATURES || s->values >= ATTENTION_FEATURES - s->features)
		return tensor_fail(EINVAL, "%s: query %s and value %s have too many features", op,
				   SHAPE_STR(query), SHAPE_STR(value));
	o->in = (struct attention_inputs){
		.query = expand(&o->query, query, s, s->queries, s->features),
		.key = expand(&o->key, key, s, s->keys, s->features),
		.value = expand(&o->value, value, s, s->keys, s->values),
		.mask = mask ? expand(&o->mask, mask, s, s->queries, s->keys) : NULL,
		.causal = is_causal,
		/* Without features the default is infinite. */
		.scale = s->features ? attention_scale(query, scale) : 1,
	};
	return 0;
}

int op_attention(const struct tensor_op *op, tensor **output, tensor **logsumexp, tensor *attn_mask,
		 tensor_list inputs, bool is_causal, double scale)
{
	struct operands o;
	attention_kernel fn;
	tensor *out, *sums;
	int err;

	if (inputs.len != 3)
		return tensor_fail(EINVAL, "%s: 3 inputs are needed, got %lld", op->schema.name,
				   (long long)inputs.len);
	fn = (attention_kernel)op_kernel(op, op->kernels, inputs.data[0]);
	if (!fn || begin(&o, op->schema.name, inputs.data[0], inputs.data[1], inputs.data[2],
			 attn_mask, is_causal, scale) < 0)
		return error_code();
	o.s.sizes[o.s.batch] = o.s.queries;
	out = new_like(&o.query, &o.s, o.s.queries, o.s.values);
	sums = tensor_new(o.query.device, dtype_wide(o.query.dtype), o.s.sizes, o.s.batch + 1);
	err = out && sums ? fn(out, sums, &o.in) : error_code();
	if (err < 0) {
		tensor_put(out);
		tensor_put(sums);
		return err;
	}
	*output = out;
	*logsumexp = sums;
	return 0;
}

static bool has_shape(const tensor *t, const struct attention_sizes *s, int64_t columns)
{
	int ndim = s->batch + (columns < 0 ? 1 : 2);

	if (t->ndim != ndim || memcmp(t->sizes, s->sizes, s->batch * sizeof(*s->sizes)) ||
	    t->sizes[s->batch] != s->queries)
		return false;
	return columns < 0 || t->sizes[ndim - 1] == columns;
}

static int check_saved(const char *op, const struct operands *o, const tensor *grad,
		       const tensor *output, const tensor *logsumexp)
{
	enum tensor_dtype dtype = o->query.dtype;

	if (!has_shape(grad, &o->s, o->s.values) || !has_shape(output, &o->s, o->s.values) ||
	    !has_shape(logsumexp, &o->s, -1))
		return tensor_fail(EINVAL,
				   "%s: grad %s, output %s and logsumexp %s do not fit query %s",
				   op, SHAPE_STR(grad), SHAPE_STR(output), SHAPE_STR(logsumexp),
				   SHAPE_STR(&o->query));
	if (grad->dtype != dtype || output->dtype != dtype || logsumexp->dtype != dtype_wide(dtype))
		return tensor_fail(EINVAL,
				   "%s: grad and output must be %s and logsumexp %s, got %s, %s "
				   "and %s",
				   op, tensor_dtype_name(dtype),
				   tensor_dtype_name(dtype_wide(dtype)),
				   tensor_dtype_name(grad->dtype), tensor_dtype_name(output->dtype),
				   tensor_dtype_name(logsumexp->dtype));
	return check_devices(op, &o->query, (const tensor *const[]){ grad, output, logsumexp }, 3);
}

int op_attention_backward(const struct tensor_op *op, tensor **grad_query, tensor **grad_key,
			  tensor **grad_value, tensor *grad, tensor *query, tensor *key,
			  tensor *value, tensor *attn_mask, tensor *output, tensor *logsumexp,
			  bool is_causal, double scale)
{
	attention_backward_kernel fn = (attention_backward_kernel)op_kernel(op, op->kernels, query);
	const char *name = op->schema.name;
	struct operands o;
	tensor *made[3];
	int err;

	if (!fn || begin(&o, name, query, key, value, attn_mask, is_causal, scale) < 0 ||
	    check_saved(name, &o, grad, output, logsumexp) < 0)
		return error_code();
	made[0] = new_like(&o.query, &o.s, o.s.queries, o.s.features);
	made[1] = new_like(&o.key, &o.s, o.s.keys, o.s.features);
	made[2] = new_like(&o.value, &o.s, o.s.keys, o.s.values);
	err = made[0] && made[1] && made[2] ?
		      fn(made[0], made[1], made[2], grad, output, logsumexp, &o.in) :
		      error_code();
	for (int i = 0; i < 3 && err < 0; i++)
		tensor_put(made[i]);
	if (err < 0)
		return err;
	*grad_query = made[0];
	*grad_key = made[1];
	*grad_value = made[2];
	return 0;
}
