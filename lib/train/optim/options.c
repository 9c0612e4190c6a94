// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Options of optimizers: defaults, ranges, reading and replacing them. */
#include "train/optim/optim.h"

#include "base/numeric_locale.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(tensor_optim_options, field)

/* A number among the options: its default for each method, and the range that it must be in. */
static const struct {
	const char *name;
	size_t at;
	double standard[TENSOR_OPTIM_COUNT]; /* none, SGD, Adam, AdamW, Adagrad, RMSprop */
	double below;			     /* 0: no limit */
} numbers[] = {
	{ "lr", AT(lr), { 0, 1e-3, 1e-3, 1e-3, 1e-2, 1e-2 }, 0 },
	{ "weight_decay", AT(weight_decay), { 0, 0, 0, 1e-2, 0, 0 }, 0 },
	{ "momentum", AT(momentum), { 0 }, 0 },
	{ "dampening", AT(dampening), { 0 }, 0 },
	{ "beta1", AT(beta1), { 0, 0.9, 0.9, 0.9, 0.9, 0.9 }, 1 },
	{ "beta2", AT(beta2), { 0, 0.999, 0.999, 0.999, 0.999, 0.999 }, 1 },
	{ "eps", AT(eps), { 0, 1e-8, 1e-8, 1e-8, 1e-10, 1e-8 }, 0 },
	{ "alpha", AT(alpha), { 0, 0.99, 0.99, 0.99, 0.99, 0.99 }, 0 },
	{ "lr_decay", AT(lr_decay), { 0 }, 0 },
	{ "initial_accumulator", AT(initial_accumulator), { 0 }, 0 },
};

static double *number(tensor_optim_options *options, size_t at)
{
	return (double *)((char *)options + at);
}

int optim_check(const char *caller, const tensor_optim_options *options)
{
	for (size_t k = 0; k < ARRAY_SIZE(numbers); k++) {
		double v = *number((tensor_optim_options *)options, numbers[k].at);
		bool negative = numbers[k].at == AT(dampening); /* is allowed */

		if (!isfinite(v) || (v < 0 && !negative) ||
		    (numbers[k].below != 0 && v >= numbers[k].below))
			return tensor_fail(EINVAL, "%s: %s is %g, which is out of range", caller,
					   numbers[k].name, v);
	}
	if (options->method == TENSOR_OPTIM_SGD && options->nesterov &&
	    (options->momentum == 0 || options->dampening != 0))
		return tensor_fail(EINVAL, "%s: nesterov needs momentum and no dampening", caller);
	return 0;
}

int optim_complete(const char *caller, tensor_optim_options *options)
{
	if (options->method == TENSOR_OPTIM_NONE || options->method >= TENSOR_OPTIM_COUNT)
		return tensor_fail(EINVAL, "%s: there is no method %d", caller, options->method);
	for (size_t k = 0; k < ARRAY_SIZE(numbers); k++) {
		double *v = number(options, numbers[k].at);
		double standard = numbers[k].standard[options->method];

		if (*v == 0)
			*v = standard;
		else if (*v == TENSOR_OPTIM_ZERO && numbers[k].at != AT(dampening))
			*v = 0;
	}
	return optim_check(caller, options);
}

TENSOR_EXPORT double tensor_optim_lr(const tensor_optim *o, int group)
{
	struct optim_group *g = optim_group("optim_lr", o, group);

	return g ? g->options.lr : NAN;
}

TENSOR_EXPORT int tensor_optim_set_lr(tensor_optim *o, int group, double lr)
{
	struct optim_group *g;

	if (!(lr >= 0) || isinf(lr))
		return tensor_fail(EINVAL, "optim_set_lr: the learning rate is %g", lr);
	if (group == -1) {
		if (optim_absent("optim_set_lr", o))
			return -EINVAL;
		for (int i = 0; i < o->ngroups; i++)
			o->groups[i].options.lr = lr;
		return 0;
	}
	g = optim_group("optim_set_lr", o, group);
	if (!g)
		return -EINVAL;
	g->options.lr = lr;
	return 0;
}

TENSOR_EXPORT int tensor_optim_get_options(const tensor_optim *o, int group,
					   tensor_optim_options *options)
{
	struct optim_group *g = optim_group("optim_get_options", o, group);

	if (!g)
		return -EINVAL;
	if (!options)
		return tensor_fail(EINVAL, "optim_get_options: options is NULL");
	*options = g->options;
	for (size_t k = 0; k < ARRAY_SIZE(numbers); k++) {
		double *v = number(options, numbers[k].at);

		if (*v == 0 && numbers[k].standard[options->method] != 0)
			*v = TENSOR_OPTIM_ZERO;
	}
	return 0;
}

TENSOR_EXPORT int tensor_optim_set_options(tensor_optim *o, int group, tensor_optim_options options)
{
	struct optim_group *g = optim_group("optim_set_options", o, group);
	const char *before[OPTIM_KEYS], *after[OPTIM_KEYS];

	if (!g || optim_complete("optim_set_options", &options) < 0)
		return -EINVAL;
	if (options.method != g->options.method)
		return tensor_fail(EINVAL,
				   "optim_set_options: the method of an optimizer cannot change");
	/* State that is used no more is dropped, new state begins at 0. */
	optim_keys(&g->options, before);
	optim_keys(&options, after);
	for (int64_t i = 0; i < g->n; i++)
		for (int k = 0; k < OPTIM_KEYS; k++)
			if (before[k] && !after[k]) {
				tensor_put(g->params[i].state[k]);
				g->params[i].state[k] = NULL;
			}
	o->cursor.valid = false;
	g->options = options;
	return 0;
}

/* ---- text ---- */

/* Numbers of the text before those of the table. */
enum { OPTIONS_FIRST = 6, OPTIONS_NUMBERS = OPTIONS_FIRST + ARRAY_SIZE(numbers) };

const char *optim_method_name(int method)
{
	static const char *const names[TENSOR_OPTIM_COUNT] = { "none",	"sgd",	   "adam",
							       "adamw", "adagrad", "rmsprop" };

	return names[method];
}

void optim_options_text(const struct optim_group *g, char *text)
{
	const tensor_optim_options *o = &g->options;
	struct numeric_locale numeric = numeric_locale_begin();
	int at = snprintf(
		text, OPTIM_TEXT,
		"params=%lld maximize=%d nesterov=%d amsgrad=%d centered=%d initial_lr=%a",
		(long long)g->n, o->maximize, o->nesterov, o->amsgrad, o->centered, g->initial_lr);

	for (size_t k = 0; k < ARRAY_SIZE(numbers); k++)
		at += snprintf(text + at, (size_t)(OPTIM_TEXT - at), " %s=%a", numbers[k].name,
			       *number((tensor_optim_options *)o, numbers[k].at));
	numeric_locale_end(&numeric);
}

/* Reads OPTIONS_NUMBERS numbers with their names. */
static int parse_numbers(const char *text, double *v)
{
	static const char *const first[] = { "params",	"maximize", "nesterov",
					     "amsgrad", "centered", "initial_lr" };
	_Static_assert(ARRAY_SIZE(first) == OPTIONS_FIRST, "numbers before those of the table");

	for (size_t k = 0; k < OPTIONS_NUMBERS; k++) {
		const char *name = k < ARRAY_SIZE(first) ? first[k] :
							   numbers[k - ARRAY_SIZE(first)].name;
		size_t n = strlen(name);
		char *end;

		if (k && *text++ != ' ')
			return -EINVAL;
		if (strncmp(text, name, n) || text[n] != '=')
			return -EINVAL;
		v[k] = strtod(text + n + 1, &end);
		if (end == text + n + 1)
			return -EINVAL;
		text = end;
	}
	return *text ? -EINVAL : 0;
}

int optim_options_parse(const char *text, struct optim_group *g)
{
	struct numeric_locale numeric = numeric_locale_begin();
	double v[OPTIONS_NUMBERS];
	int err = parse_numbers(text, v);

	numeric_locale_end(&numeric);
	if (err || !(v[0] >= 0 && v[0] < 0x1p62) || !isfinite(v[5]) || v[5] < 0)
		return -EINVAL;
	g->n = (int64_t)v[0];
	g->options.maximize = v[1] != 0;
	g->options.nesterov = v[2] != 0;
	g->options.amsgrad = v[3] != 0;
	g->options.centered = v[4] != 0;
	g->initial_lr = v[5];
	for (size_t k = 0; k < ARRAY_SIZE(numbers); k++)
		*number(&g->options, numbers[k].at) = v[OPTIONS_FIRST + k];
	return 0;
}
