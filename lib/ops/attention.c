// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Attention: softmax of scaled products of queries and keys, which weighs the values. Made of
 * matmul and softmax, and differentiated through them.
 */
#include "front.h"

#include "family/attention.h"
#include "family/compare.h"
#include "family/copy.h"
#include "family/factory.h"
#include "family/linear.h"
#include "family/loss.h"
#include "family/move.h"
#include "family/pointwise.h"
#include "family/product.h"
#include "family/random.h"
#include "family/reduce.h"
#include "family/softmax.h"
#include "family/ternary.h"
#include "family/view.h"

#include <math.h>

#define OP "scaled_dot_product_attention"

static int check(const tensor *query, const tensor *key, const tensor *value, const tensor *mask,
		 bool is_causal)
{
	if (query->ndim < 2 || key->ndim < 2 || value->ndim < 2)
		return tensor_fail(EINVAL, OP ": query, key and value must have 2 dimensions or more, "
					   "got shapes %s, %s and %s", SHAPE_STR(query), SHAPE_STR(key),
				   SHAPE_STR(value));
	if (query->dtype != key->dtype || query->dtype != value->dtype)
		return tensor_fail(EINVAL, OP ": query, key and value must have one dtype, got %s, %s "
					   "and %s", tensor_dtype_name(query->dtype),
				   tensor_dtype_name(key->dtype), tensor_dtype_name(value->dtype));
	if (mask && is_causal)
		return tensor_fail(EINVAL, OP ": attn_mask must be none when is_causal is true");
	if (mask && mask->dtype != TENSOR_BOOL && mask->dtype != query->dtype &&
	    mask->dtype != TENSOR_F32)
		return tensor_fail(EINVAL, OP ": attn_mask must be bool or %s, got %s",
				   tensor_dtype_name(query->dtype), tensor_dtype_name(mask->dtype));
	return 0;
}

/* Heads of keys and values that several queries share, repeated for each. */
static tensor *for_each_query(tensor *t, const tensor *query)
{
	int64_t heads = query->sizes[query->ndim - 3], have = t->sizes[t->ndim - 3];

	if (have == heads)
		return t;
	return tensor_repeat_interleave(t, heads / have, t->ndim - 3);
}

static int group_heads(tensor *query, tensor **key, tensor **value)
{
	int64_t heads;

	if (query->ndim < 3 || (*key)->ndim < 3 || (*value)->ndim < 3)
		return tensor_fail(EINVAL, OP ": enable_gqa needs a dimension of heads");
	heads = query->sizes[query->ndim - 3];
	if (!(*key)->sizes[(*key)->ndim - 3] || heads % (*key)->sizes[(*key)->ndim - 3] ||
	    !(*value)->sizes[(*value)->ndim - 3] || heads % (*value)->sizes[(*value)->ndim - 3])
		return tensor_fail(EINVAL, OP ": the heads of key %s and value %s must divide the %lld "
					   "of query", SHAPE_STR(*key), SHAPE_STR(*value),
				   (long long)heads);
	*key = for_each_query(*key, query);
	*value = *key ? for_each_query(*value, query) : NULL;
	return *value ? 0 : error_code();
}

/* What is added to the scores; true in a mask lets through. */
static tensor *bias_of(tensor *mask, const tensor *query)
{
	tensor_options same = TENSOR_OPTIONS(.dtype = query->dtype, .device = query->device);
	tensor *zero = tensor_zeros(TENSOR_SCALAR_SHAPE, same);

	if (mask->dtype != TENSOR_BOOL)
		return tensor_to(mask, TENSOR_OPTIONS(.dtype = query->dtype));
	return tensor_where(mask, zero,
			    tensor_full(TENSOR_SCALAR_SHAPE, tensor_scalar_float(-INFINITY), same));
}

static tensor *causal(const tensor *query, const tensor *key)
{
	tensor *all = tensor_ones(TENSOR_INTS(query->sizes[query->ndim - 2], key->sizes[key->ndim - 2]),
				  TENSOR_OPTIONS(.dtype = TENSOR_BOOL, .device = query->device));

	return tensor_tril(all, 0);
}

/* A query that may look at nothing gets zeros, not NaN. */
tensor *kernel_safe_softmax(tensor *self, int64_t dim, enum tensor_dtype dtype)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *nothing = tensor_eq_scalar(tensor_detach(self), tensor_scalar_float(-INFINITY));

	return scope_leave_with(&guard,
				tensor_masked_fill(tensor_softmax_opt(self, dim, dtype),
						   tensor_all_dim(nothing, dim, true),
						   tensor_scalar_int(0)));
}

static tensor *attend(tensor *query, tensor *key, tensor *value, tensor *mask, double dropout_p,
		      double scale)
{
	double root;
	tensor *scores;

	if (scale != scale)
		scale = 1 / sqrt((double)query->sizes[query->ndim - 1]);
	/* Half of it on either side: a product of halves would overflow first. */
	root = sqrt(fabs(scale));
	query = tensor_mul_scalar(query, tensor_scalar_float(scale < 0 ? -root : root));
	key = tensor_mul_scalar(key, tensor_scalar_float(root));
	scores = tensor_matmul(query, key ? tensor_transpose(key, -2, -1) : NULL);
	if (mask)
		scores = tensor_add(scores, bias_of(mask, query));
	scores = mask ? tensor_safe_softmax(scores, -1, TENSOR_DTYPE_NONE) : tensor_softmax(scores, -1);
	if (dropout_p > 0)
		scores = tensor_dropout(scores, dropout_p, true);
	return tensor_matmul(scores, value);
}

tensor *composite_scaled_dot_product_attention(tensor *query, tensor *key, tensor *value,
					       tensor *attn_mask, double dropout_p, bool is_causal,
					       double scale, bool enable_gqa)
{
	struct tensor_scope_guard guard;

	if (check(query, key, value, attn_mask, is_causal) < 0)
		return NULL;
	guard = tensor_scope_enter();
	if (enable_gqa && group_heads(query, &key, &value) < 0)
		return scope_leave_with(&guard, NULL);
	if (is_causal)
		attn_mask = causal(query, key);
	return scope_leave_with(&guard, is_causal && !attn_mask ?
						NULL :
						attend(query, key, value, attn_mask, dropout_p, scale));
}
