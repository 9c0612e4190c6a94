// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Checks and sizes of attention. */
#include "ops/nn/attention.h"

#include <math.h>

int attention_check(const char *op, const tensor *query, const tensor *key, const tensor *value,
		    const tensor *mask, bool is_causal)
{
	if (query->ndim < 2 || key->ndim < 2 || value->ndim < 2)
		return tensor_fail(EINVAL,
				   "%s: query, key and value must have 2 dimensions or more, "
				   "got shapes %s, %s and %s",
				   op, SHAPE_STR(query), SHAPE_STR(key), SHAPE_STR(value));
	if (query->dtype != key->dtype || query->dtype != value->dtype)
		return tensor_fail(EINVAL,
				   "%s: query, key and value must have one dtype, got %s, %s "
				   "and %s",
				   op, tensor_dtype_name(query->dtype),
				   tensor_dtype_name(key->dtype), tensor_dtype_name(value->dtype));
	if (mask && is_causal)
		return tensor_fail(EINVAL, "%s: attn_mask must be none when is_causal is true", op);
	if (mask && mask->dtype != TENSOR_BOOL && mask->dtype != query->dtype &&
	    mask->dtype != TENSOR_F32)
		return tensor_fail(EINVAL, "%s: attn_mask must be bool or %s, got %s", op,
				   tensor_dtype_name(query->dtype), tensor_dtype_name(mask->dtype));
	return 0;
}

/* Broadcasts the batch dimensions of t into s. */
static bool add_batch(struct attention_sizes *s, const tensor *t)
{
	int batch = t->ndim - 2;

	for (int d = 1; d <= batch; d++) {
		int64_t *size = &s->sizes[s->batch - d];

		if (*size == 1)
			*size = t->sizes[batch - d];
		else if (t->sizes[batch - d] != 1 && t->sizes[batch - d] != *size)
			return false;
	}
	return true;
}

static bool mask_fits(const struct attention_sizes *s, const tensor *mask)
{
	int64_t sizes[TENSOR_MAX_DIMS];
	int ndim = s->batch + 2;

	if (mask->ndim > ndim)
		return false;
	memcpy(sizes, s->sizes, s->batch * sizeof(*sizes));
	sizes[ndim - 2] = s->queries;
	sizes[ndim - 1] = s->keys;
	for (int d = 1; d <= mask->ndim; d++) {
		int64_t size = mask->sizes[mask->ndim - d];

		if (size != 1 && size != sizes[ndim - d])
			return false;
	}
	return true;
}

bool attention_sizes_of(struct attention_sizes *s, const tensor *query, const tensor *key,
			const tensor *value, const tensor *mask)
{
	const tensor *in[] = { query, key, value };

	s->batch = 0;
	for (int i = 0; i < 3; i++)
		s->batch = in[i]->ndim - 2 > s->batch ? in[i]->ndim - 2 : s->batch;
	for (int d = 0; d < s->batch; d++)
		s->sizes[d] = 1;
	for (int i = 0; i < 3; i++)
		if (!add_batch(s, in[i]))
			return false;
	s->queries = query->sizes[query->ndim - 2];
	s->features = query->sizes[query->ndim - 1];
	s->keys = key->sizes[key->ndim - 2];
	s->values = value->sizes[value->ndim - 1];
	return key->sizes[key->ndim - 1] == s->features &&
	       value->sizes[value->ndim - 2] == s->keys && (!mask || mask_fits(s, mask));
}

double attention_scale(const tensor *query, double scale)
{
	return scale == scale ? scale : 1 / sqrt((double)query->sizes[query->ndim - 1]);
}
