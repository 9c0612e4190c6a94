// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The scale of gradients in half precision. The rules are those of _amp_update_scale_; the scale is an f32, as there.
 * The steps of all optimizers between two updates are a round, whose number is unique in the process: an optimizer
 * keeps that of its last round.
 */
#include "core/scope.h"
#include "dispatch/dispatch.h"
#include "train/optim/optim.h"

#include "family/factory.h"
#include "family/pointwise.h"
#include "family/training.h"

#include <math.h>
#include <stdlib.h>

static _Atomic uint64_t rounds;

/* Check the scaler, and fill in its defaults. */
static int begin(const char *caller, tensor_grad_scaler *s)
{
	if (!s)
		return tensor_fail(EINVAL, "%s: the scaler is NULL", caller);
	s->growth = s->growth != 0 ? s->growth : 2;
	s->backoff = s->backoff != 0 ? s->backoff : 0.5;
	s->interval = s->interval ? s->interval : 2000;
	s->scale = s->scale != 0 ? s->scale : 65536;
	if (!(s->growth > 1) || isinf(s->growth) || !(s->backoff > 0 && s->backoff < 1) ||
	    s->interval < 1 || !(s->scale > 0) || isinf((float)s->scale) || s->finite_steps < 0)
		return tensor_fail(EINVAL, "%s: a field of the scaler is out of range", caller);
	return 0;
}

TENSOR_EXPORT tensor *tensor_grad_scaler_scale(tensor_grad_scaler *s, tensor *loss)
{
	tensor *scale, *result;

	if (tensor_absent("grad_scaler_scale", loss) || begin("grad_scaler_scale", s) < 0)
		return NULL;
	/* A tensor, so that the product with an f16 without dimensions is an f32. */
	scale = call_full(TENSOR_SCALAR_SHAPE, tensor_scalar_float(s->scale),
			  TENSOR_OPTIONS(.dtype = TENSOR_F32));
	if (!scale)
		return NULL;
	result = call_mul_Tensor(loss, scale);
	tensor_put(scale);
	return scope_own(thread(), result);
}

/* All gradients of the optimizer in one list, so that one pass finds what is not finite. */
static int all_grads(const tensor_optim *o, tensor_list *grads)
{
	int64_t n = 0, all = 0;
	tensor **list;

	for (int k = 0; k < o->ngroups; k++)
		all += o->groups[k].n;
	list = malloc(((size_t)all + 1) * sizeof(*list));
	if (!list)
		return tensor_fail(ENOMEM, "grad_scaler_unscale: no memory");
	for (int k = 0; k < o->ngroups; k++)
		for (int64_t i = 0; i < o->groups[k].n; i++) {
			list[n] = tensor_grad(o->groups[k].params[i].t);
			n += list[n] != NULL;
		}
	*grads = (tensor_list){ list, n };
	return 0;
}

static int unscale(const tensor_grad_scaler *s, tensor_list grads, bool *found_inf)
{
	tensor *found = call_zeros(TENSOR_SCALAR_SHAPE, TENSOR_OPTIONS(.dtype = TENSOR_F32));
	tensor *scale = call_full(TENSOR_SCALAR_SHAPE, tensor_scalar_float(1 / s->scale),
				  TENSOR_OPTIONS(.dtype = TENSOR_F32));
	int err = found && scale ? 0 : -thread()->error.code;

	if (!err && call__amp_foreach_non_finite_check_and_unscale_(grads, found, scale) < 0)
		err = -thread()->error.code;
	if (!err)
		*found_inf = *(const float *)found->data != 0;
	tensor_put(found);
	tensor_put(scale);
	return err;
}

TENSOR_EXPORT int tensor_grad_scaler_unscale(tensor_grad_scaler *s, tensor_optim *o)
{
	struct tensor_grad_guard guard;
	tensor_list grads = { NULL, 0 };
	bool found_inf = false;
	int err;

	if (begin("grad_scaler_unscale", s) < 0)
		return -EINVAL;
	if (optim_absent("grad_scaler_unscale", o))
		return -EINVAL;
	if (s->round && o->unscaled == s->round)
		return tensor_fail(EALREADY,
				   "grad_scaler_unscale: the gradients are unscaled; call "
				   "tensor_grad_scaler_update() after the step");
	err = all_grads(o, &grads);
	if (err)
		return err;
	guard = tensor_grad_enter(false);
	if (grads.len)
		err = unscale(s, grads, &found_inf);
	tensor_grad_leave(&guard);
	free((void *)grads.data);
	if (err) {
		error_in("grad_scaler_unscale");
		return err;
	}
	s->round = s->round ? s->round : ++rounds;
	o->unscaled = s->round;
	o->found_inf = found_inf;
	s->found_inf |= found_inf;
	return 0;
}

TENSOR_EXPORT int tensor_grad_scaler_step(tensor_grad_scaler *s, tensor_optim *o)
{
	int err = begin("grad_scaler_step", s);

	if (!err && optim_absent("grad_scaler_step", o))
		err = -EINVAL;
	if (!err && s->round && o->stepped == s->round)
		err = tensor_fail(EALREADY, "grad_scaler_step: the optimizer has stepped; call "
					    "tensor_grad_scaler_update() before the next backward");
	if (!err && (!s->round || o->unscaled != s->round))
		err = tensor_grad_scaler_unscale(s, o);
	if (!err && !o->found_inf)
		err = tensor_optim_step(o);
	if (err)
		return err;
	o->stepped = s->round;
	return !o->found_inf;
}

TENSOR_EXPORT int tensor_grad_scaler_update(tensor_grad_scaler *s)
{
	if (begin("grad_scaler_update", s) < 0)
		return -EINVAL;
	if (s->found_inf) {
		s->scale = (float)(s->scale * s->backoff);
		s->finite_steps = 0;
	} else if ((int64_t)s->finite_steps + 1 >= s->interval) {
		s->scale = isfinite((float)(s->scale * s->growth)) ? (float)(s->scale * s->growth) :
								     s->scale;
		s->finite_steps = 0;
	} else {
		s->finite_steps++;
	}
	s->found_inf = false;
	s->round = 0;
	return 0;
}
