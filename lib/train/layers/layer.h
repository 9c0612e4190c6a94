/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Functions that all layers use. */
#ifndef TRAIN_LAYER_H
#define TRAIN_LAYER_H

#include "train/module/entry.h"

#include <tensor/layers.h>
#include <tensor/ops.h>

/*
 * The module of a layer. NULL with the error set if it is another layer already, or was made
 * with other options. layer_made() records the key when all parameters exist, so that a call that
 * failed does not determine the options.
 */
tensor_module *layer_module(tensor_module *m, const char *name, const struct layer_key *key);
int layer_made(tensor_module *layer, const struct layer_key *key);

/* A parameter of the layer, borrowed; NULL with the error set. */
tensor *layer_parameter(tensor_module *layer, const struct layer_key *key, const char *name,
			tensor_ints sizes, tensor_init_fn init, void *ctx);
/* A buffer with this value; dtype 0 is the tree's. */
tensor *layer_buffer(tensor_module *layer, const struct layer_key *key, const char *name,
		     tensor_ints sizes, enum tensor_dtype dtype, double value);

/* Initialisers: uniform in +-*(double *)ctx, and the value *(double *)ctx. */
tensor *layer_init_uniform(tensor *t, void *ctx);
tensor *layer_init_value(tensor *t, void *ctx);
/* 1 / sqrt(n), 0 for n = 0. */
double layer_bound(double n);

/* tensor_module_linear() and an activation of linear_activation or NULL, in the scope of a public function. */
tensor *layer_linear(tensor_module *m, const char *name, tensor *x, int64_t out, bool no_bias,
		     const char *activation);

/* True with the error set if m is NULL or x is absent. */
bool layer_absent(const char *op, const tensor_module *m, const tensor *x);
/* -EINVAL unless from <= value. */
int layer_at_least(const char *op, const char *option, int64_t value, int64_t from);

/* Leaves the scope of a public function, which returns the result as an operator does. */
static inline tensor *layer_leave(struct tensor_scope_guard *scope, tensor *result)
{
	return scope_own(thread(), scope_leave_with(scope, result));
}

#endif
