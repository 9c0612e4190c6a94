// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Shared functions of _foreach operators, which call another operator for each tensor of a list,
 * and those that take their scalars from a tensor. Their functions are generated
 * (lib/schema/gen/tables.py).
 */
#include "ops/each.h"
#include "ops/op.h"

#include "family/foreach.h"

#include <stdlib.h>

int each_begin(const char *op, tensor_ints lengths)
{
	if (!lengths.data[0])
		return tensor_fail(EINVAL, "%s: the list of tensors is empty", op);
	for (int64_t i = 1; i < lengths.len; i++)
		if (lengths.data[i] != lengths.data[0])
			return tensor_fail(EINVAL,
					   "%s: lists must have one length, got %lld and %lld", op,
					   (long long)lengths.data[0], (long long)lengths.data[i]);
	return 0;
}

int each_scalar(const char *op, const tensor *t)
{
	if (likely(!t->ndim))
		return 0;
	return tensor_fail(EINVAL, "%s: a tensor without dimensions is needed, got shape %s", op,
			   SHAPE_STR(t));
}

int each_failed(tensor **results, int64_t n)
{
	while (n--) {
		tensor_put(results[n]);
		results[n] = NULL;
	}
	return error_code();
}

/* ---- scalars in a tensor ---- */

/* The n scalars in t; the caller frees them. NULL with the error set. */
static tensor_scalar *scalars_of(const char *op, const tensor *t, int64_t n)
{
	tensor_scalar *list;

	if (t->device.type != TENSOR_CPU)
		return (void)tensor_fail(EINVAL, "%s: scalars must be on the cpu", op), NULL;
	if (t->ndim != 1 || t->sizes[0] != n || !t->contiguous) {
		tensor_fail(EINVAL, "%s: scalars must have shape [%lld] and no gaps, got shape %s",
			    op, (long long)n, SHAPE_STR(t));
		return NULL;
	}
	if (t->ext)
		return (void)tensor_fail(
			       EINVAL, "%s: scalars must be a strided tensor of known values", op),
		       NULL;
	list = calloc(n ? n : 1, sizeof(*list));
	if (!list)
		return (void)tensor_fail(ENOMEM, "%s: no memory for %lld scalars", op,
					 (long long)n),
		       NULL;
	for (int64_t i = 0; i < n; i++) {
		if (element_load((const char *)t->data + i * (int64_t)itemsize(t), t->dtype,
				 &list[i]) < 0) {
			tensor_fail(EOPNOTSUPP, "%s: scalars of dtype %s are not supported", op,
				    tensor_dtype_name(t->dtype));
			free(list);
			return NULL;
		}
	}
	return list;
}

/* Define the form that takes a tensor by the one that takes a list of scalars. */
#define FROM_TENSOR(NAME, OP, CALL)                                                                \
	int NAME(tensor_list self, tensor_list tensor1, tensor_list tensor2, tensor *scalars,      \
		 tensor **results, int64_t room)                                                   \
	{                                                                                          \
		tensor_scalar *list = scalars_of(OP, scalars, self.len);                           \
		tensor_scalars values = { list, self.len };                                        \
		int n = list ? CALL(self, tensor1, tensor2, values, results, room) : error_code(); \
                                                                                                   \
		free(list);                                                                        \
		return n;                                                                          \
	}
#define INTO_SELF(NAME, OP, CALL)                                                             \
	int NAME(tensor_list self, tensor_list tensor1, tensor_list tensor2, tensor *scalars) \
	{                                                                                     \
		tensor_scalar *list = scalars_of(OP, scalars, self.len);                      \
		tensor_scalars values = { list, self.len };                                   \
		int err = list ? CALL(self, tensor1, tensor2, values) : error_code();         \
                                                                                              \
		free(list);                                                                   \
		return err;                                                                   \
	}
FROM_TENSOR(composite_foreach_addcmul, "_foreach_addcmul.Tensor", call__foreach_addcmul_ScalarList)
FROM_TENSOR(composite_foreach_addcdiv, "_foreach_addcdiv.Tensor", call__foreach_addcdiv_ScalarList)
INTO_SELF(composite_foreach_addcmul_, "_foreach_addcmul_.Tensor", call__foreach_addcmul__ScalarList)
INTO_SELF(composite_foreach_addcdiv_, "_foreach_addcdiv_.Tensor", call__foreach_addcdiv__ScalarList)
