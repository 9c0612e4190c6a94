// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Shared by the files of the optimizers: the names of state tensors, and checks of arguments. */
#include "train/optim/optim.h"

void optim_keys(const tensor_optim_options *options, const char *keys[OPTIM_KEYS])
{
	memset(keys, 0, OPTIM_KEYS * sizeof(*keys));
	switch (options->method) {
	case TENSOR_OPTIM_ADAM:
	case TENSOR_OPTIM_ADAMW:
		keys[0] = "exp_avg";
		keys[1] = "exp_avg_sq";
		keys[2] = options->amsgrad ? "max_exp_avg_sq" : NULL;
		keys[3] = "step";
		break;
	case TENSOR_OPTIM_ADAGRAD:
		keys[0] = "sum";
		keys[3] = "step";
		break;
	case TENSOR_OPTIM_RMSPROP:
		keys[0] = "square_avg";
		keys[1] = options->centered ? "grad_avg" : NULL;
		keys[2] = options->momentum != 0 ? "momentum_buffer" : NULL;
		break;
	default:
		keys[0] = options->momentum != 0 ? "momentum_buffer" : NULL;
	}
}

bool optim_is_step(const char *key)
{
	return !strcmp(key, "step");
}

bool optim_absent(const char *caller, const tensor_optim *o)
{
	if (o)
		return false;
	null_argument_code(caller);
	return true;
}

struct optim_group *optim_group(const char *caller, const tensor_optim *o, int group)
{
	if (optim_absent(caller, o))
		return NULL;
	if (group >= 0 && group < o->ngroups)
		return &o->groups[group];
	tensor_fail(EINVAL, "%s: there is no group %d, the optimizer has %d", caller, group,
		    o->ngroups);
	return NULL;
}
