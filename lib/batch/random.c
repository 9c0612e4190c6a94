// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Random operators: other numbers for each sample, or the same for all. */
#include "batch/batch.h"

#include "base/generator.h"

#include "family/factory.h"
#include "family/pointwise.h"
#include "family/random.h"
#include "family/shape.h"
#include "family/view.h"

#include <tensor/random.h>

/* The same numbers for all samples of results that were computed once. */
static int expand_results(struct batch_call *c)
{
	for (int i = 0; i < c->nrets; i++)
		if (batch_return(c, i, batch_expand(c, c->rets[i].t)) < 0)
			return batch_failed();
	return 0;
}

/* More positions than any of these operators uses for a result of n elements. */
static uint64_t positions(const tensor *t)
{
	return 4 * (uint64_t)t->numel + 4096;
}

/*
 * Every sample begins at the same state, that of positions which are reserved in the generator of
 * the call: other threads may draw from it.
 */
static int loop_with_state(struct batch_call *c, int generator)
{
	struct tensor_generator_state state =
		generator_take(c->args[generator].generator, positions(c->args[0].t));
	tensor_generator *own = tensor_generator_new(0);
	int err = own ? 0 : batch_failed();

	c->phys[generator] = (tensor_value){ .kind = TENSOR_VALUE_GENERATOR, .generator = own };
	c->restart = own;
	c->restart_state = state;
	if (!err)
		err = batch_rule_loop(c);
	tensor_generator_release(own);
	return err;
}

/* native_dropout has no generator: the mask of one sample serves all. */
static int one_mask(struct batch_call *c)
{
	const tensor *self = c->args[0].t;
	tensor *ones = tensor_ones((tensor_ints){ self->sizes, self->ndim },
				   TENSOR_OPTIONS(.dtype = self->dtype, .device = self->device));
	tensor_value args[] = { value_tensor(ones), c->args[1], c->args[2] };

	if (!ones || tensor_op_call(c->op, args, 3, c->rets, c->nrets) < 0)
		return batch_failed();
	return batch_return(c, 0, tensor_mul(c->phys[0].t, c->rets[0].t)) ?:
		       batch_return(c, 1, batch_expand(c, c->rets[1].t));
}

static int random_same(struct batch_call *c)
{
	int generator = batch_arg(c, "generator");

	if (generator < 0)
		return one_mask(c);
	return loop_with_state(c, generator);
}

static int random_different(struct batch_call *c)
{
	if (c->inplace && !arg_batched(c, 0))
		return tensor_fail(EINVAL,
				   "%s: self %s is the same for all samples and cannot get other "
				   "numbers for each; use TENSOR_VMAP_RANDOM_SAME",
				   c->op->schema.name, SHAPE_STR(c->args[0].t));
	if (batch_arg(c, "num_samples") >= 0 && arg_ndim(c, 0) != 1)
		return batch_rule_loop(c); /* multinomial takes one or two dimensions */
	return batch_rule_all(c);
}

int batch_rule_random(struct batch_call *c)
{
	if (c->level->randomness == TENSOR_VMAP_RANDOM_DIFFERENT)
		return random_different(c);
	if (c->batched)
		return random_same(c);
	return batch_call_physical(c) ?: (c->inplace ? 0 : expand_results(c));
}

/* A tensor of random numbers for each sample. Called for TENSOR_VMAP_RANDOM_DIFFERENT. */
int batch_rule_random_factory(struct batch_call *c)
{
	int size = batch_arg(c, "size");
	int64_t *to;

	if (size < 0)
		return batch_rule_loop(c);
	to = batch_list(c);
	if (!to || c->args[size].ints.len >= TENSOR_MAX_DIMS)
		return tensor_fail(EINVAL, "%s: too many dimensions", c->op->schema.name);
	to[0] = c->size;
	for (int64_t i = 0; i < c->args[size].ints.len; i++)
		to[i + 1] = c->args[size].ints.data[i];
	c->phys[size] = value_ints(to, c->args[size].ints.len + 1);
	return batch_call_physical(c);
}
