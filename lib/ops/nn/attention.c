// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Scaled dot product attention: softmax(query @ key.T * scale + mask) @ value. One kernel computes it on the CPU; otherwise it is
 * composed of matmul and softmax, which differentiate it.
 */
#include "ops/nn/attention.h"
#include "kernels/abi/attention.h"

#include "family/attention.h"
#include "family/compare.h"
#include "family/copy.h"
#include "family/factory.h"
#include "family/mm.h"
#include "family/loss.h"
#include "family/move.h"
#include "family/pointwise.h"
#include "family/matmul.h"
#include "family/random.h"
#include "family/reduce.h"
#include "family/softmax.h"
#include "family/stat.h"
#include "family/ternary.h"
#include "family/view.h"

#include <math.h>

#define OP "scaled_dot_product_attention"

/* Grouped queries: repeat each head of keys or values for the query heads that share it. */
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
		return tensor_fail(EINVAL,
				   OP ": the heads of key %s and value %s must divide the %lld "
				      "of query",
				   SHAPE_STR(*key), SHAPE_STR(*value), (long long)heads);
	*key = for_each_query(*key, query);
	*value = *key ? for_each_query(*value, query) : NULL;
	return *value ? 0 : error_code();
}

/* Mask as an addend of the scores. A bool mask becomes 0 where true and -inf where false. */
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
	tensor *all =
		tensor_ones(TENSOR_INTS(query->sizes[query->ndim - 2], key->sizes[key->ndim - 2]),
			    TENSOR_OPTIONS(.dtype = TENSOR_BOOL, .device = query->device));

	return tensor_tril(all, 0);
}

/* A row of -inf, which is a query without permitted keys, gives zeros instead of NaN. */
tensor *explicit_safe_softmax(tensor *self, int64_t dim, enum tensor_dtype dtype)
{
	struct tensor_scope_guard guard = tensor_scope_enter();
	tensor *nothing = tensor_eq_scalar(tensor_detach(self), tensor_scalar_float(-INFINITY));

	return scope_leave_with(&guard, tensor_masked_fill(tensor_softmax_opt(self, dim, dtype),
							   tensor_all_dim(nothing, dim, true),
							   tensor_scalar_int(0)));
}

/*
 * Scores are computed in f32 for reduced float dtypes, of which a score that is rounded may change its weight by a large
 * factor. Query and key are scaled by the root: the unscaled product could overflow.
 */
static tensor *masked_scores(tensor *query, tensor *key, tensor *mask, double scale)
{
	tensor_options wide = TENSOR_OPTIONS(.dtype = dtype_wide(query->dtype));
	double root = sqrt(fabs(scale));
	tensor *scores;

	if (query->dtype != wide.dtype) {
		query = tensor_to(query, wide);
		key = tensor_to(key, wide);
	}
	query = tensor_mul_scalar(query, tensor_scalar_float(scale < 0 ? -root : root));
	key = tensor_mul_scalar(key, tensor_scalar_float(root));
	scores = tensor_matmul(query, key ? tensor_transpose(key, -2, -1) : NULL);
	return mask && scores ? tensor_add(scores, bias_of(mask, query)) : scores;
}

/*
 * Scores before the mask and before softmax are freed here: a graph does not keep them. With is_causal each query has
 * a permitted key.
 */
static tensor *weights_of(tensor *query, tensor *key, tensor *mask, bool is_causal, double scale)
{
	struct tensor_scope_guard outer = tensor_scope_enter(), inner = tensor_scope_enter();
	tensor *scores, *weights;

	if (is_causal)
		mask = causal(query, key);
	scores = is_causal && !mask ? NULL : masked_scores(query, key, mask, scale);
	scores = scope_leave_with(&inner, scores);
	scope_own(thread(), scores);
	weights = mask && !is_causal ? tensor_safe_softmax(scores, -1, TENSOR_DTYPE_NONE) :
				       tensor_softmax(scores, -1);
	if (weights && weights->dtype != query->dtype)
		weights = tensor_to(weights, TENSOR_OPTIONS(.dtype = query->dtype));
	return scope_leave_with(&outer, weights);
}

/* ---- one kernel ---- */

/* Features of key and value up to which a pass over the scores costs more than a part of a product. */
enum { SMALL_HEAD = 160 };

/* Bytes of scores from which their passes are slower than the kernel's product: with a mask, without, and with large heads. */
enum { MASKED_BYTES = 1 << 23, SCORE_BYTES = 1 << 25, LARGE_HEAD_BYTES = 1 << 28 };

static bool is_plain(const tensor *t)
{
	const uint32_t plain = KEY_BIT(TENSOR_KEY_CPU) | KEY_BIT(TENSOR_KEY_CUDA) | AUTOGRAD_BIT;

	return !(t->keys & ~plain) && !t->ext;
}

static bool takes_bf16(const tensor *query)
{
	attention_takes_bf16_kernel fn =
		(attention_takes_bf16_kernel)kernels_attention_takes_bf16.fn[backend_key(query)];

	return fn && fn();
}

bool attention_has_kernel(const tensor *query, const tensor *key, const tensor *value,
			  const tensor *mask)
{
	const bool pairs = query->dtype == TENSOR_BF16 && takes_bf16(query);
	struct attention_sizes s;

	return is_plain(query) && is_plain(key) && is_plain(value) &&
	       kernels_attention.fn[backend_key(query)] && dtype_is_float(query->dtype) &&
	       !dtype_is_f8(query->dtype) &&
	       (!mask || (is_plain(mask) && !operand_is_recorded(mask))) &&
	       attention_sizes_of(&s, query, key, value, mask) &&
	       (pairs || s.queries >= ATTENTION_FEW_QUERIES) &&
	       s.features + s.values <= ATTENTION_FEW_FEATURES;
}

static double score_bytes(const tensor *query, const tensor *key, const tensor *value)
{
	struct attention_sizes s;
	double n = (double)itemsize(query);

	if (!attention_sizes_of(&s, query, key, value, NULL))
		return 0;
	n *= (double)s.queries * (double)s.keys;
	for (int d = 0; d < s.batch; d++)
		n *= (double)s.sizes[d];
	return n;
}

/*
 * Whether the kernel is faster. Its backward has one product more than the composition, so that it has to skip the scores
 * of later keys, or to keep many scores out of memory. Depends on shapes and the processor alone: a call that is recorded
 * has the bits of one that is not.
 */
static bool is_fused(const tensor *query, const tensor *key, const tensor *value,
		     const tensor *mask, bool is_causal)
{
	bool small;

	if (!attention_has_kernel(query, key, value, mask))
		return false;
	if (is_causal || itemsize(query) == 2)
		return true;
	small = query->sizes[query->ndim - 1] + value->sizes[value->ndim - 1] <= SMALL_HEAD;
	return score_bytes(query, key, value) >= (!small ? LARGE_HEAD_BYTES :
						  mask	 ? MASKED_BYTES :
							   SCORE_BYTES);
}

static tensor *fused(tensor *query, tensor *key, tensor *value, tensor *mask, bool is_causal,
		     double scale)
{
	tensor *output, *sums;

	return tensor__attention(mask ? mask : tensor_none, TENSOR_LIST(query, key, value),
				 is_causal, scale, &output, &sums) < 0 ?
		       NULL :
		       output;
}

static tensor *attend(tensor *query, tensor *key, tensor *value, tensor *mask, double dropout_p,
		      bool is_causal, double scale)
{
	tensor *weights;

	scale = attention_scale(query, scale);
	if (!(dropout_p > 0) && is_fused(query, key, value, mask, is_causal))
		return fused(query, key, value, mask, is_causal, scale);
	weights = scope_own(thread(), weights_of(query, key, mask, is_causal, scale));
	if (dropout_p > 0)
		weights = tensor_dropout(weights, dropout_p, true);
	return tensor_matmul(weights, value);
}

tensor *composite_scaled_dot_product_attention(tensor *query, tensor *key, tensor *value,
					       tensor *attn_mask, double dropout_p, bool is_causal,
					       double scale, bool enable_gqa)
{
	struct tensor_scope_guard guard;

	if (attention_check(OP, query, key, value, attn_mask, is_causal) < 0)
		return NULL;
	guard = tensor_scope_enter();
	if (enable_gqa && group_heads(query, &key, &value) < 0)
		return scope_leave_with(&guard, NULL);
	return scope_leave_with(&guard,
				attend(query, key, value, attn_mask, dropout_p, is_causal, scale));
}

/* ---- attention that also returns the logsumexp of the scores ---- */

#define FLASH "_scaled_dot_product_flash_attention_for_cpu"

static int check_flash(const tensor *query, const tensor *key, const tensor *value,
		       const tensor *mask, double dropout_p)
{
	if (attention_check(FLASH, query, key, value, mask, false) < 0)
		return error_code();
	if (query->ndim != 4 || key->ndim != 4 || value->ndim != 4)
		return tensor_fail(
			EINVAL,
			FLASH ": query, key and value must have 4 dimensions, got shapes %s, %s "
			      "and %s",
			SHAPE_STR(query), SHAPE_STR(key), SHAPE_STR(value));
	if (query->sizes[3] != key->sizes[3] || query->sizes[3] != value->sizes[3])
		return tensor_fail(
			EINVAL,
			FLASH ": query, key and value must have one size of heads, got shapes %s, "
			      "%s and %s",
			SHAPE_STR(query), SHAPE_STR(key), SHAPE_STR(value));
	if (mask && (mask->dtype == TENSOR_BOOL || (mask->ndim != 2 && mask->ndim != 4)))
		return tensor_fail(
			EINVAL,
			FLASH ": attn_mask must be %s and have 2 or 4 dimensions, got %s of shape "
			      "%s",
			tensor_dtype_name(query->dtype), tensor_dtype_name(mask->dtype),
			SHAPE_STR(mask));
	if (dropout_p != 0)
		return tensor_fail(EINVAL, FLASH ": dropout_p must be 0, got %g", dropout_p);
	if (!dtype_is_float(query->dtype))
		return tensor_fail(EINVAL, FLASH ": a floating dtype is needed, got %s",
				   tensor_dtype_name(query->dtype));
	return 0;
}

/* Scaled scores plus the mask, computed in f32 for reduced float dtypes. */
static tensor *flash_scores(tensor *query, tensor *key, tensor *mask, bool is_causal, double scale)
{
	tensor_options wide = TENSOR_OPTIONS(.dtype = dtype_wide(query->dtype));
	tensor *scores =
		tensor_matmul(tensor_mul_scalar(tensor_to(query, wide), tensor_scalar_float(scale)),
			      tensor_transpose(tensor_to(key, wide), -2, -1));

	if (is_causal && scores) {
		tensor *allowed = causal(query, key);

		scores = allowed ? tensor_add(scores, bias_of(allowed, scores)) : NULL;
	}
	return mask && scores ? tensor_add(scores, bias_of(mask, scores)) : scores;
}

int composite_flash_attention(tensor *query, tensor *key, tensor *value, double dropout_p,
			      bool is_causal, tensor *attn_mask, double scale, tensor **output,
			      tensor **logsumexp)
{
	struct tensor_scope_guard guard;
	tensor *scores, *sums, *out;

	*output = *logsumexp = NULL;
	if (check_flash(query, key, value, attn_mask, dropout_p) < 0)
		return error_code();
	guard = tensor_scope_enter();
	scores = flash_scores(query, key, attn_mask, is_causal, attention_scale(query, scale));
	sums = scores ? tensor_logsumexp(scores, TENSOR_INTS(-1), false) : NULL;
	/* A query without permitted keys gets 0, so that its weights in the backward are 0 too. */
	if (sums)
		sums = tensor_masked_fill(sums,
					  tensor_eq_scalar(sums, tensor_scalar_float(-INFINITY)),
					  tensor_scalar_int(0));
	out = sums ? tensor_matmul(tensor_safe_softmax(scores, -1, TENSOR_DTYPE_NONE),
				   tensor_to(value, TENSOR_OPTIONS(.dtype = scores->dtype))) :
		     NULL;
	out = tensor_to(out, TENSOR_OPTIONS(.dtype = query->dtype));
	return results_leave(&guard, (struct op_result[]){ { output, out }, { logsumexp, sums } },
			     2, 0);
}

/* Gradients of query, key and value from the weights that the backward recomputes from the sums. */
static void flash_gradients(tensor *grad, tensor *query, tensor *key, tensor *value, tensor *out,
			    tensor *weights, double scale, tensor **grads)
{
	tensor_options wide = TENSOR_OPTIONS(.dtype = dtype_wide(query->dtype));
	tensor *same, *scores;

	grad = tensor_to(grad, wide);
	same = tensor_sum_dim(tensor_mul(grad, tensor_to(out, wide)), TENSOR_INTS(-1), true);
	scores = tensor_sub(tensor_matmul(grad, tensor_transpose(tensor_to(value, wide), -2, -1)),
			    same);
	scores = tensor_mul_scalar(tensor_mul(weights, scores), tensor_scalar_float(scale));
	grads[0] = tensor_matmul(scores, tensor_to(key, wide));
	grads[1] = tensor_matmul(tensor_transpose(scores, -2, -1), tensor_to(query, wide));
	grads[2] = tensor_matmul(tensor_transpose(weights, -2, -1), grad);
	for (int i = 0; i < 3; i++)
		grads[i] = tensor_to(grads[i], TENSOR_OPTIONS(.dtype = query->dtype));
}

int composite_flash_attention_backward(tensor *grad_out, tensor *query, tensor *key, tensor *value,
				       tensor *out, tensor *logsumexp, double dropout_p,
				       bool is_causal, tensor *attn_mask, double scale,
				       tensor **grad_query, tensor **grad_key, tensor **grad_value)
{
	struct tensor_scope_guard guard;
	tensor *scores, *weights, *grads[3] = { NULL };

	*grad_query = *grad_key = *grad_value = NULL;
	if (check_flash(query, key, value, attn_mask, dropout_p) < 0)
		return error_code();
	if (!sizes_equal(out, query) || !sizes_equal(grad_out, query) || logsumexp->ndim != 3 ||
	    memcmp(logsumexp->sizes, query->sizes, 3 * sizeof(*query->sizes)))
		return tensor_fail(
			EINVAL,
			FLASH
			"_backward: grad_out and out must have shape %s and logsumexp all but "
			"the last of it",
			SHAPE_STR(query));
	guard = tensor_scope_enter();
	scale = attention_scale(query, scale);
	scores = flash_scores(query, key, attn_mask, is_causal, scale);
	weights = scores ? tensor_exp(tensor_sub(scores, tensor_unsqueeze(logsumexp, -1))) : NULL;
	if (weights)
		flash_gradients(grad_out, query, key, value, out, weights, scale, grads);
	return results_leave(&guard,
			     (struct op_result[]){ { grad_query, grads[0] },
						   { grad_key, grads[1] },
						   { grad_value, grads[2] } },
			     3, 0);
}

/* ---- the composition of the operator that the kernel computes ---- */

static tensor *wide_scores(tensor *query, tensor *key, tensor *mask, bool is_causal, double scale)
{
	tensor_options wide = TENSOR_OPTIONS(.dtype = dtype_wide(query->dtype));

	query = tensor_to(query, wide);
	key = tensor_to(key, wide);
	if (is_causal && query && key)
		mask = causal(query, key);
	return query && key && (mask || !is_causal) ? masked_scores(query, key, mask, scale) : NULL;
}

int attention_composed(tensor *query, tensor *key, tensor *value, tensor *mask, bool is_causal,
		       double scale, bool sums, tensor **out)
{
	tensor *scores = wide_scores(query, key, mask, is_causal, attention_scale(query, scale));
	tensor *weights = !scores ? NULL :
			  mask	  ? tensor_safe_softmax(scores, -1, TENSOR_DTYPE_NONE) :
				    tensor_softmax(scores, -1);

	value = tensor_to(value, TENSOR_OPTIONS(.dtype = dtype_wide(query->dtype)));
	out[0] = tensor_to(tensor_matmul(weights, value), TENSOR_OPTIONS(.dtype = query->dtype));
	if (sums)
		out[1] = tensor_logsumexp(scores, TENSOR_INTS(-1), false);
	return out[0] && (!sums || out[1]) ? 0 : -1;
}
