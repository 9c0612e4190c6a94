// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The rule of operators without another: calls the operator for each sample and stacks the results. */
#include "batch/batch.h"

#include "core/trace.h"

#include "family/move.h"
#include "family/view.h"

#include <stdlib.h>

/* The arguments of one sample, with space for the elements of lists. */
struct sample {
	tensor_value *args;
	tensor **elements;
};

static tensor *part_of(tensor *t, bool batched, int64_t sample)
{
	return batched ? tensor_select(t, 0, sample) : t;
}

static bool is_mine(const struct batch_call *c, const tensor *t)
{
	return t && is_batched(t) && batched_of(t)->level == c->level;
}

/* Sets s->args to those of the sample; 0 or -errno. */
static int take_sample(const struct batch_call *c, struct sample *s, int64_t sample)
{
	tensor **to = s->elements;

	for (int i = 0; i < c->nargs; i++) {
		tensor_value *v = &s->args[i];

		*v = c->phys[i];
		if (!arg_batched(c, i))
			continue;
		if (v->kind == TENSOR_VALUE_TENSOR) {
			v->t = part_of(v->t, true, sample);
			if (!v->t)
				return batch_failed();
			continue;
		}
		for (int64_t k = 0; k < v->list.len; k++) {
			to[k] = part_of(v->list.data[k], is_mine(c, c->args[i].list.data[k]),
					sample);
			if (!to[k])
				return batch_failed();
		}
		v->list.data = to;
		to += v->list.len;
	}
	return 0;
}

static int same_shapes(const struct batch_call *c, tensor *const *list)
{
	for (int64_t i = 1; i < c->size; i++)
		if (list[i] && !sizes_equal(list[0], list[i]))
			return tensor_fail(
				EINVAL,
				"%s: the samples of a batch must have results of one shape, "
				"got %s and %s",
				c->op->schema.name, SHAPE_STR(list[0]), SHAPE_STR(list[i]));
	return 0;
}

/* Stacks result r of all samples; rets has c->nrets values for each. */
static int stack_result(struct batch_call *c, const tensor_value *rets, int r, tensor **list)
{
	for (int64_t i = 0; i < c->size; i++) {
		list[i] = rets[i * c->nrets + r].t;
		if (rets[i * c->nrets + r].kind != TENSOR_VALUE_TENSOR || !list[i])
			return 0; /* a result that a mask excludes */
	}
	if (same_shapes(c, list) < 0)
		return batch_failed();
	return batch_return(c, r, tensor_stack((tensor_list){ list, c->size }, 0));
}

static int call_samples(struct batch_call *c, struct sample *s, tensor_value *rets)
{
	int err = 0;

	for (int64_t i = 0; i < c->size && !err; i++) {
		if (c->restart)
			tensor_generator_set_state(c->restart, &c->restart_state);
		err = take_sample(c, s, i);
		if (!err)
			err = tensor_op_call(c->op, s->args, c->nargs, rets + i * c->nrets,
					     c->nrets);
	}
	return err;
}

static int64_t list_elements(const struct batch_call *c)
{
	int64_t n = 0;

	for (int i = 0; i < c->nargs; i++)
		if (c->args[i].kind == TENSOR_VALUE_TENSOR_LIST)
			n += c->args[i].list.len;
	return n;
}

static int loop(struct batch_call *c)
{
	tensor_value *rets = calloc(c->size * c->nrets + c->nargs + 1, sizeof(*rets));
	tensor **list = calloc(c->size + list_elements(c) + 1, sizeof(*list));
	struct sample s = { rets ? rets + c->size * c->nrets : NULL, list ? list + c->size : NULL };
	int err;

	if (rets && list)
		err = call_samples(c, &s, rets);
	else
		err = tensor_fail(ENOMEM, "%s: no memory for %lld samples", c->op->schema.name,
				  (long long)c->size);
	for (int r = 0; r < c->nrets && !err && !c->inplace; r++)
		err = stack_result(c, rets, r, list);
	free(rets);
	free(list);
	return err;
}

int batch_rule_loop(struct batch_call *c)
{
	struct trace_span span;
	int err;

	atomic_fetch_add_explicit(&((struct tensor_op *)c->op)->batch_loops, 1,
				  memory_order_relaxed);
	if (likely(!trace_on()))
		return loop(c);
	trace_begin(&span, "vmap_loop", c->op->schema.name);
	trace_add(&span, "\"samples\":%lld", (long long)c->size);
	err = loop(c);
	trace_end(&span);
	return err;
}

TENSOR_EXPORT int64_t tensor_vmap_loops(const char *name)
{
	const tensor_op *op = name ? tensor_op_find(name) : NULL;
	int64_t n = 0;

	if (op)
		return (int64_t)atomic_load_explicit(&op->batch_loops, memory_order_relaxed);
	if (name)
		return tensor_fail(ENOENT, "vmap_loops: there is no operator %s", QUOTED(name));
	for (int i = 0; i < tensor_ops_count; i++)
		n += (int64_t)atomic_load_explicit(&tensor_ops[i]->batch_loops,
						   memory_order_relaxed);
	return n;
}
