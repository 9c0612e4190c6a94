/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Attention as one kernel (attention_fused.c) and as a composition of operators (attention.c). */
#ifndef TENSOR_OPS_ATTENTION_H
#define TENSOR_OPS_ATTENTION_H

#include "ops/op.h"

#define ATTENTION_FEW_FEATURES 1024 /* of key and value together */

/* Sizes of attention; batch dimensions are those of query, key and value, broadcast. */
struct attention_sizes {
	int batch; /* their number */
	int64_t sizes[TENSOR_MAX_DIMS];
	int64_t queries, keys, features, values;
};

/* Checks numbers of dimensions and dtypes. mask may be NULL. */
int attention_check(const char *op, const tensor *query, const tensor *key, const tensor *value,
		    const tensor *mask, bool is_causal);
/* False if the shapes do not fit each other, or mask does not broadcast to the scores. */
bool attention_sizes_of(struct attention_sizes *s, const tensor *query, const tensor *key,
			const tensor *value, const tensor *mask);
/*
 * Whether op _attention computes this about as fast as the composition: plain CPU tensors of a floating dtype that fit each
 * other, enough queries, not too many features, and a mask (or NULL) without a gradient.
 */
bool attention_has_kernel(const tensor *query, const tensor *key, const tensor *value,
			  const tensor *mask);
/* The default scale is 1 / sqrt(size of the last dimension of query). */
double attention_scale(const tensor *query, double scale);

/*
 * out[0] = the output and, with `sums`, out[1] = logsumexp, composed of differentiable operators. mask may be NULL. 0, or
 * -1 with the error set.
 */
int attention_composed(tensor *query, tensor *key, tensor *value, tensor *mask, bool is_causal,
		       double scale, bool sums, tensor **out);

#endif
