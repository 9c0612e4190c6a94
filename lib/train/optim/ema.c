// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Exponential moving averages of parameters. */
#include "dispatch/dispatch.h"
#include "ops/op.h"

#include "family/copy.h"
#include "family/training.h"

#include <tensor/optim.h>

#include <stdlib.h>

struct tensor_ema {
	double decay;
	int64_t n;
	bool swapped;
	tensor *t[]; /* owned: n parameters, n averages */
};

static int check_params(tensor_list params)
{
	if (!list_complete(params))
		return params.len > 0 && params.data ? null_argument_code("ema_new") :
						       wrong_list_code("ema_new", "params");
	for (int64_t i = 0; i < params.len; i++) {
		const tensor *t = params.data[i];

		if (tensor_absent("ema_new", t))
			return -thread()->error.code;
		if (t->ext || !(dtype_is_float(t->dtype) || dtype_is_complex(t->dtype)) ||
		    t->storage->readonly)
			return tensor_fail(EINVAL, "ema_new: parameter %lld is %s %s%s",
					   (long long)i, tensor_layout_name(t->layout),
					   tensor_dtype_name(t->dtype),
					   t->storage->readonly ? " in read-only memory" : "");
	}
	return 0;
}

TENSOR_EXPORT tensor_ema *tensor_ema_new(tensor_list params, double decay)
{
	struct thread_modes before;
	tensor_ema *e;

	if (!(decay >= 0 && decay < 1)) {
		tensor_fail(EINVAL, "ema_new: decay is %g, it must be from 0 to less than 1",
			    decay);
		return NULL;
	}
	if (check_params(params) < 0)
		return NULL;
	e = calloc(1, sizeof(*e) + 2 * (size_t)params.len * sizeof(*e->t));
	if (!e) {
		tensor_fail(ENOMEM, "ema_new: no memory");
		return NULL;
	}
	e->decay = decay;
	e->n = params.len;
	before = thread_enter_plain();
	for (int64_t i = 0; i < e->n; i++) {
		e->t[i] = tensor_get(params.data[i]);
		e->t[e->n + i] = call_clone(params.data[i], TENSOR_PRESERVE_FORMAT);
		if (!e->t[e->n + i]) {
			tensor_ema_free(e);
			e = NULL;
			break;
		}
	}
	thread()->modes = before;
	return e;
}

TENSOR_EXPORT void tensor_ema_free(tensor_ema *e)
{
	for (int64_t i = 0; e && i < 2 * e->n; i++)
		tensor_put(e->t[i]);
	free(e);
}

TENSOR_EXPORT int tensor_ema_update(tensor_ema *e)
{
	struct thread_modes before;
	int err;

	if (!e)
		return null_argument_code("ema_update");
	if (e->swapped)
		return tensor_fail(EBUSY,
				   "ema_update: the parameters have the values of the averages");
	if (!e->n)
		return 0;
	before = thread_enter_plain();
	err = call__list_lerp_((tensor_list){ e->t + e->n, e->n }, (tensor_list){ e->t, e->n },
			       1 - e->decay);
	thread()->modes = before;
	if (err < 0) {
		error_in("ema_update");
		return -thread()->error.code;
	}
	return 0;
}

/* All copies are made first, so that a failure changes nothing. */
static int swap(tensor_ema *e, tensor **before)
{
	int err = 0;

	for (int64_t i = 0; i < e->n; i++) {
		if (!sizes_equal(e->t[i], e->t[e->n + i]))
			return tensor_fail(EINVAL, "ema_swap: parameter %lld is %s, its average %s",
					   (long long)i, SHAPE_STR(e->t[i]),
					   SHAPE_STR(e->t[e->n + i]));
		before[i] = call_clone(e->t[i], TENSOR_PRESERVE_FORMAT);
		if (!before[i])
			return -thread()->error.code;
		if (check_writable(&entry__list_lerp_, e->t[i]) < 0)
			return -thread()->error.code;
	}
	for (int64_t i = 0; i < e->n && !err; i++) {
		err = operand_copy(e->t[i], e->t[e->n + i]);
		if (!err)
			err = operand_copy(e->t[e->n + i], before[i]);
		tensor_bump_version(e->t[i]);
		tensor_bump_version(e->t[e->n + i]);
	}
	return err;
}

TENSOR_EXPORT int tensor_ema_swap(tensor_ema *e)
{
	struct thread_modes modes;
	tensor **before;
	int err;

	if (!e)
		return null_argument_code("ema_swap");
	before = calloc((size_t)e->n + 1, sizeof(*before));
	if (!before)
		return tensor_fail(ENOMEM, "ema_swap: no memory");
	modes = thread_enter_plain();
	err = swap(e, before);
	thread()->modes = modes;
	for (int64_t i = 0; i < e->n; i++)
		tensor_put(before[i]);
	free(before);
	e->swapped ^= !err;
	return err;
}

TENSOR_EXPORT bool tensor_ema_is_swapped(const tensor_ema *e)
{
	return e && e->swapped;
}

TENSOR_EXPORT tensor *tensor_ema_average(const tensor_ema *e, int64_t i)
{
	return e && i >= 0 && i < e->n ? e->t[e->n + i] : NULL;
}
