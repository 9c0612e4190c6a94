// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Clipping of the gradients of a list of parameters: a pass for the norm, and one to scale. */
#include "core/scope.h"
#include "dispatch/dispatch.h"
#include "train/optim/grads.h"

#include "family/training.h"

#include <math.h>
#include <stdlib.h>

int train_grads(const char *caller, tensor_list params, tensor_list *grads)
{
	tensor **list;
	int64_t n = 0;

	*grads = (tensor_list){ NULL, 0 };
	if (!list_complete(params))
		return params.len > 0 && params.data ? null_argument_code(caller) :
						       wrong_list_code(caller, "params");
	for (int64_t i = 0; i < params.len; i++)
		if (tensor_absent(caller, params.data[i]))
			return -thread()->error.code;
	list = malloc(((size_t)params.len + 1) * sizeof(*list));
	if (!list)
		return tensor_fail(ENOMEM, "%s: no memory", caller);
	for (int64_t i = 0; i < params.len; i++) {
		list[n] = tensor_grad(params.data[i]);
		n += list[n] != NULL;
	}
	*grads = (tensor_list){ list, n };
	return 0;
}

void train_grads_free(tensor_list *grads)
{
	free((void *)grads->data);
}

static int norm_of(tensor_list grads, double ord, double *norm)
{
	tensor *t = call__list_norm(grads, ord);
	int err = t ? tensor_item(t, norm) : -thread()->error.code;

	tensor_put(t);
	return err;
}

TENSOR_EXPORT int tensor_clip_grad_norm_(tensor_list params, double max_norm, double norm_type,
					 bool error_if_nonfinite, double *norm)
{
	struct tensor_grad_guard guard;
	double total = 0, factor;
	tensor_list grads;
	int err;

	if (!(max_norm >= 0) || !(norm_type > 0))
		return tensor_fail(EINVAL, "clip_grad_norm_: max_norm is %g, norm_type %g",
				   max_norm, norm_type);
	err = train_grads("clip_grad_norm_", params, &grads);
	if (err)
		return err;
	guard = tensor_grad_enter(false);
	if (grads.len)
		err = norm_of(grads, norm_type, &total);
	if (!err && error_if_nonfinite && !isfinite(total))
		err = tensor_fail(EDOM, "clip_grad_norm_: the norm of order %g is %g", norm_type,
				  total);
	factor = max_norm / (total + 1e-6);
	if (!err && grads.len && !(factor >= 1))
		err = call__list_scale_(grads, factor) < 0 ? -thread()->error.code : 0;
	tensor_grad_leave(&guard);
	train_grads_free(&grads);
	if (err)
		error_in("clip_grad_norm_");
	else if (norm)
		*norm = total;
	return err;
}

TENSOR_EXPORT int tensor_clip_grad_value_(tensor_list params, double limit)
{
	struct tensor_grad_guard guard;
	tensor_list grads;
	int err;

	if (!(limit >= 0))
		return tensor_fail(EINVAL, "clip_grad_value_: the limit is %g", limit);
	err = train_grads("clip_grad_value_", params, &grads);
	if (err)
		return err;
	guard = tensor_grad_enter(false);
	if (grads.len)
		err = call__list_clamp_(grads, limit) < 0 ? -thread()->error.code : 0;
	tensor_grad_leave(&guard);
	train_grads_free(&grads);
	if (err)
		error_in("clip_grad_value_");
	return err;
}
