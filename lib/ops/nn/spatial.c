// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* List arguments for spatial dimensions. See spatial.h. */
#include "ops/nn/spatial.h"

int spatial_list(const struct tensor_op *op, const char *name, tensor_ints list, int n,
		 int64_t missing, int64_t least, int64_t *to)
{
	if (list.len != 1 && list.len != n)
		return tensor_fail(EINVAL, "%s: %s must have one number or %d, got %lld",
				   op->schema.name, name, n, (long long)list.len);
	for (int d = 0; d < SPATIAL; d++) {
		int i = d - (SPATIAL - n);

		to[d] = i < 0 ? missing : list.data[list.len == 1 ? 0 : i];
		if (to[d] < least)
			return tensor_fail(EINVAL, "%s: %s must be at least %lld, got %lld",
					   op->schema.name, name, (long long)least,
					   (long long)to[d]);
		if (to[d] > INT32_MAX)
			return tensor_fail(EINVAL, "%s: %s must be below 2^31, got %lld",
					   op->schema.name, name, (long long)to[d]);
	}
	return 0;
}

void spatial_batch(tensor *t, int ndim)
{
	if (t->ndim == ndim)
		return;
	memmove(t->sizes + 1, t->sizes, t->ndim * sizeof(*t->sizes));
	t->sizes[0] = 1;
	t->ndim++;
	contiguous_strides(t->sizes, t->ndim, t->strides);
}
