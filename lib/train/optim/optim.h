/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* An optimizer: groups of parameters with options, and the state tensors of each parameter. */
#ifndef TENSOR_TRAIN_OPTIM_H
#define TENSOR_TRAIN_OPTIM_H

#include "core/tensor_impl.h"

#include <tensor/optim.h>

#define OPTIM_KEYS 4 /* state tensors of a parameter */

/* State in a file that has a module, too, begins with this, which no path in a module does. */
#define OPTIM_PREFIX "optim.."
#define OPTIM_NAME   80

struct optim_param {
	tensor *t;		   /* owned */
	tensor *state[OPTIM_KEYS]; /* owned, in the order of optim_keys(); NULL before its first step */
};

struct optim_group {
	/* With defaults filled in: 0 is the number 0. initial_lr: what schedules start from. */
	tensor_optim_options options;
	double initial_lr;
	struct optim_param *params;
	int64_t n;
};

/* State tensor i, so that the next one is found without a search. Invalid after a change of the state. */
struct optim_cursor {
	bool valid;
	int group, slot;
	int64_t i, param;
};

struct tensor_optim {
	struct optim_group *groups;
	int ngroups;
	int64_t most; /* parameters of the largest group */
	/* Space for the lists of one call: parameters, gradients, states; OPTIM_LISTS * most. */
	tensor **lists;
	/* Rounds of a scaler, see tensor_grad_scaler.round: the last in which the gradients were unscaled, and in which
	 * the optimizer stepped or left the step out. */
	uint64_t unscaled, stepped;
	bool found_inf;		    /* in the round `unscaled` */
	struct optim_cursor cursor; /* of tensor_optim_state_at() */
	char name[64];		    /* of tensor_optim_state_at() */
};

#define OPTIM_LISTS (2 + OPTIM_KEYS)

/* The names of the state tensors of a group's parameters; entries that its options do not use are NULL. */
void optim_keys(const tensor_optim_options *options, const char *keys[OPTIM_KEYS]);
/* True for a state tensor that counts steps. */
bool optim_is_step(const char *key);
/* Allocate the state tensors of a parameter that are missing. 0 or -errno. */
int optim_complete_state(const struct optim_group *g, struct optim_param *p,
			 const char *const *keys);
/* Fill in defaults and check. 0 or -EINVAL. */
int optim_complete(const char *caller, tensor_optim_options *options);
/* Check options whose 0 is the number 0. 0 or -EINVAL. */
int optim_check(const char *caller, const tensor_optim_options *options);
/* Replace state and options (of `groups`, of which only options and initial_lr are read): all or nothing. */
int optim_replace(const char *caller, tensor_optim *o, struct optim_group *groups,
		  const struct tensor_named *state, int64_t n);
/* The options as text for a file, and back: exact. The text begins with the number of parameters. */
#define OPTIM_TEXT 640
void optim_options_text(const struct optim_group *g, char *text);
/* -EINVAL if text is not one of these. Sets initial_lr, options and n of g. */
int optim_options_parse(const char *text, struct optim_group *g);
const char *optim_method_name(int method);
/* The group, or NULL with the error set. */
struct optim_group *optim_group(const char *caller, const tensor_optim *o, int group);
/* Where optim_save() writes to, and what besides the optimizer. */
struct optim_file {
	const char *caller, *path;
	bool with_module;
	const struct tensor_named *module;
	int64_t nmodule;
};

int optim_save(tensor_optim *o, const struct optim_file *f);
bool optim_absent(const char *caller, const tensor_optim *o);

#endif
