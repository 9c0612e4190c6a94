// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Checkpoints (tensor_checkpoint()): the operators of a function save the number of a tensor instead of the
 * tensor. The first number that backward unpacks runs the function again, which gives all of them.
 */
#include "autograd/engine/engine.h"
#include "autograd/graph/callback.h"
#include "autograd/graph/dual.h"
#include "autograd/graph/meta.h"
#include "autograd/graph/saved.h"
#include "core/batched.h"

#include "core/scope.h"
#include "storage/devices.h"

#include <tensor/random.h>

#include <stdlib.h>

struct input {
	struct saved saved;
	bool given, requires_grad;
};

/* A tensor that the second run saved; owned, NULL after it was discarded. */
struct value {
	tensor *t;
	uint32_t version;
};

struct checkpoint {
	atomic_int refs;
	node_lock lock; /* held while the function runs again */
	tensor_graph_fn fn;
	void *ctx;
	void (*destroy)(void *ctx);
	struct tensor_generator_state random; /* of the default generator before the function */
	struct device_random captured;	      /* the same in a capture of the thread */
	uint8_t autocast_dtype;
	atomic_uint count;    /* tensors that the function saved */
	atomic_bool complete; /* it ended: no more will come */
	struct value *values; /* the same tensors of the second run */
	uint32_t nvalues, cap;
	int ninputs, noutputs;
	struct input inputs[];
};

/* ---- memory ---- */

static void drop_values(struct checkpoint *c)
{
	for (uint32_t i = 0; i < c->nvalues; i++)
		tensor_put(c->values[i].t);
	free(c->values);
	c->values = NULL;
	c->nvalues = c->cap = 0;
}

static void checkpoint_put(void *ctx)
{
	struct checkpoint *c = ctx;

	if (!ref_put(&c->refs))
		return;
	drop_values(c);
	for (int i = 0; i < c->ninputs; i++)
		saved_drop(&c->inputs[i].saved);
	if (c->destroy)
		c->destroy(c->ctx);
	free(c);
}

static int keep_input(struct input *in, tensor *t)
{
	in->given = t != tensor_none;
	if (!in->given)
		return 0;
	in->requires_grad = needs_grad(t);
	return saved_set(&in->saved, t, SAVED_CONSTANT) < 0 ? -thread()->error.code : 0;
}

static struct checkpoint *checkpoint_new(tensor_graph_fn fn, void *ctx, void (*destroy)(void *),
					 tensor_list inputs, int noutputs)
{
	struct checkpoint *c = calloc(1, sizeof(*c) + inputs.len * sizeof(c->inputs[0]));

	if (!c) {
		tensor_fail(ENOMEM, "checkpoint: no memory");
		return NULL;
	}
	c->refs = 1;
	c->fn = fn;
	c->ctx = ctx;
	c->noutputs = noutputs;
	tensor_generator_get_state(tensor_default_generator(), &c->random);
	device_random_position(tensor_default_generator(), &c->captured);
	c->autocast_dtype = thread()->modes.autocast_dtype;
	for (int64_t i = 0; i < inputs.len; i++, c->ninputs++)
		if (keep_input(&c->inputs[i], inputs.data[i]) < 0) {
			c->ninputs++;
			checkpoint_put(c);
			return NULL;
		}
	c->destroy = destroy;
	return c;
}

/* ---- the second run ---- */

static void *collect(tensor *t, void *ctx)
{
	struct checkpoint *c = ctx;

	if (c->nvalues == c->cap) {
		uint32_t cap = c->cap ? 2 * c->cap : 16;
		struct value *values = realloc(c->values, cap * sizeof(*values));

		if (!values) {
			tensor_fail(ENOMEM, "checkpoint: no memory");
			return NULL;
		}
		c->values = values;
		c->cap = cap;
	}
	c->values[c->nvalues++] = (struct value){ tensor_get(t), tensor_version(t) };
	return tensor_get(t);
}

static tensor *collected(void *packed, void *ctx)
{
	(void)ctx;
	return tensor_retain(packed);
}

static void collected_discard(void *packed, void *ctx)
{
	(void)ctx;
	tensor_put(packed);
}

/* The input for the second run, in the open scope: a leaf if it required a gradient. NULL with the error
 * set. */
static tensor *restore_input(const struct input *in)
{
	const struct saved *s = &in->saved;
	tensor *t;

	if (!in->given)
		return tensor_none;
	if (!s->is_packed && tensor_version(s->t) != s->version)
		return tensor_fail_null(
			EINVAL, "backward of a checkpoint: its input %s was changed in place",
			SHAPE_STR(s->t));
	t = s->is_packed ? packed_unpack(s->packed, "a checkpoint") : s->t;
	t = t ? scope_own(thread(), tensor_new_detached(t)) : NULL;
	if (t && in->requires_grad && tensor_set_requires_grad(t, true) < 0)
		return NULL;
	return t;
}

/* Without the cache of a scope, whose conversions are not those of the first run. */
static void restore_autocast(const struct checkpoint *c)
{
	struct thread_modes *m = &thread()->modes;

	m->include = c->autocast_dtype ? m->include | AUTOCAST_BIT : m->include & ~AUTOCAST_BIT;
	m->autocast_dtype = c->autocast_dtype;
	m->autocast_depth = 0;
}

/*
 * The second run draws the numbers of the first one. Those of a capture are drawn by its replays: neither a call outside
 * of it nor another capture can draw them again.
 */
static int run_with_random(struct checkpoint *c, tensor **inputs, tensor **outputs)
{
	tensor_generator *g = tensor_default_generator();
	struct tensor_generator_state random, after;
	struct device_random now, then;
	bool same;
	int err;

	tensor_generator_get_state(g, &random);
	device_random_position(g, &now);
	same = now.capture == c->captured.capture && now.capture != UINT64_MAX;
	tensor_generator_set_state(g, &c->random);
	if (same)
		device_random_set(g, &c->captured);
	err = c->fn(inputs, c->ninputs, outputs, c->noutputs, c->ctx);
	tensor_generator_get_state(g, &after);
	device_random_position(g, &then);
	tensor_generator_set_state(g, &random);
	if (same)
		device_random_set(g, &now);
	if (err || same)
		return err;
	if (now.capture && now.capture == then.capture && now.used != then.used)
		return device_refuse_captures("checkpoint",
					      "draws numbers again that were not drawn in this "
					      "capture alone");
	if (!now.capture && after.offset != c->random.offset)
		return tensor_fail(
			EOPNOTSUPP,
			"backward of a checkpoint: the function drew random numbers in a "
			"capture, and cannot draw them again outside of it");
	return 0;
}

static int run_function(struct checkpoint *c, tensor **inputs, tensor **outputs)
{
	struct tensor_saved_hooks hooks = {
		.pack = collect, .unpack = collected, .discard = collected_discard, .ctx = c
	};
	struct tensor_saved_hooks_guard guard = tensor_saved_hooks_enter(&hooks);
	struct callback before;
	int err;

	if (!guard.scope)
		return -thread()->error.code;
	before = callback_begin();
	restore_autocast(c);
	err = run_with_random(c, inputs, outputs);
	err = callback_end(&before, err, "checkpoint: the function failed");
	tensor_saved_hooks_leave(&guard);
	if (err)
		return err;
	/* A backward inside of the function may need values before it ends. */
	if (atomic_load(&c->complete) && c->nvalues != atomic_load(&c->count))
		return tensor_fail(
			EINVAL,
			"backward of a checkpoint: the function saved %u tensors, %u when it "
			"ran again",
			atomic_load(&c->count), c->nvalues);
	return 0;
}

/* Runs the function again to get the values. The caller holds the lock. 0, or -errno. */
static int run_again(struct checkpoint *c)
{
	tensor **tensors = calloc(c->ninputs + c->noutputs + 1, sizeof(*tensors));
	struct tensor_scope_guard scope;
	struct tensor_grad_guard grad;
	int err = 0;

	if (!tensors)
		return tensor_fail(ENOMEM, "checkpoint: no memory");
	drop_values(c);
	scope = tensor_scope_enter();
	for (int i = 0; !err && i < c->ninputs; i++) {
		tensors[i] = restore_input(&c->inputs[i]);
		err = tensors[i] ? 0 : -thread()->error.code;
	}
	grad = tensor_grad_enter(true);
	if (!err)
		err = run_function(c, tensors, tensors + c->ninputs);
	tensor_grad_leave(&grad);
	scope_leave(&scope);
	if (err)
		drop_values(c);
	free(tensors);
	return err;
}

/* ---- packing ---- */

static void *number(tensor *t, void *ctx)
{
	struct checkpoint *c = ctx;

	(void)t;
	return (void *)(uintptr_t)(atomic_fetch_add(&c->count, 1) + 1);
}

/* At the end of a backward, which may leave values that it did not need. */
static void forget_values(void *ctx)
{
	struct checkpoint *c = ctx;

	node_lock_take(&c->lock);
	drop_values(c);
	node_lock_drop(&c->lock);
	checkpoint_put(c);
}

static bool has_value(const struct checkpoint *c, uint32_t i)
{
	return i < c->nvalues && c->values[i].t;
}

static int get_values(struct checkpoint *c)
{
	struct autograd_thread *at = autograd_thread(thread());
	const struct running here = { c, at ? at->running : NULL };
	int err;

	if (!at)
		return -ENOMEM;
	at->running = &here;
	err = run_again(c);
	at->running = here.outer;
	if (err)
		return err;
	ref_get(&c->refs);
	if (!engine_at_end(forget_values, c))
		checkpoint_put(
			c); /* outside of a backward, the next call or the end of the graph drops them */
	return 0;
}

static tensor *value_of(void *packed, void *ctx)
{
	uint32_t i = (uint32_t)(uintptr_t)packed - 1;
	struct checkpoint *c = ctx;
	tensor *t = NULL;
	int err = 0;

	if (is_running(thread()->autograd, c))
		return tensor_fail_null(
			EDEADLK,
			"backward of a checkpoint: the function, run again, goes through the "
			"graph of its first run");
	node_lock_take(&c->lock);
	if (!has_value(c, i))
		err = get_values(c);
	if (!err && has_value(c, i) && tensor_version(c->values[i].t) != c->values[i].version)
		tensor_fail(EINVAL,
			    "backward of a checkpoint: a saved tensor %s was changed in place",
			    SHAPE_STR(c->values[i].t));
	else if (!err && has_value(c, i))
		t = tensor_get(c->values[i].t);
	else if (!err)
		tensor_fail(
			EINVAL,
			"backward of a checkpoint: the function saved fewer tensors when it ran again");
	node_lock_drop(&c->lock);
	return scope_own(thread(), t);
}

/* A node released its saved tensors: this one is not read again. */
static void discard(void *packed, void *ctx)
{
	uint32_t i = (uint32_t)(uintptr_t)packed - 1;
	struct checkpoint *c = ctx;

	/* The function may release a graph of the first run. */
	if (is_running(thread()->autograd, c))
		return;
	/*
	 * Another thread runs the function: the end of its backward drops the value. This thread must not wait, because
	 * it may hold a lock of the program that the function needs.
	 */
	if (!node_lock_try(&c->lock))
		return;
	if (has_value(c, i)) {
		tensor_put(c->values[i].t);
		c->values[i].t = NULL;
	}
	node_lock_drop(&c->lock);
}

/* ---- public function ---- */

static int first_run(struct checkpoint *c, tensor_list inputs, tensor **outputs, int noutputs)
{
	const struct tensor_saved_hooks hooks = { .pack = number,
						  .unpack = value_of,
						  .discard = discard,
						  .ctx = c,
						  .destroy = checkpoint_put };
	struct tensor_saved_hooks_guard guard = tensor_saved_hooks_enter(&hooks);
	struct tensor_scope_guard scope;
	struct callback before;
	int err;

	if (!guard.scope) {
		checkpoint_put(c);
		return -thread()->error.code;
	}
	before = callback_begin();
	scope = tensor_scope_enter();
	err = c->fn(inputs.data, (int)inputs.len, outputs, noutputs, c->ctx);
	err = callback_end(&before, err, "checkpoint: the function failed");
	for (int i = 0; i < noutputs && !err; i++)
		if (!tensor_given(outputs[i]) || outputs[i] == tensor_none)
			err = tensor_fail(EINVAL, "checkpoint: the function did not set output %d",
					  i);
	for (int i = 0; i < noutputs; i++)
		outputs[i] = err ? NULL : tensor_retain(outputs[i]);
	scope_leave(&scope);
	atomic_store(&c->complete, true);
	tensor_saved_hooks_leave(&guard);
	return err ?: scope_own_list(outputs, noutputs);
}

static int check_call(tensor_graph_fn fn, tensor_list inputs, tensor **outputs, int noutputs)
{
	if (!fn || noutputs < 1 || !outputs || inputs.len < 0 || inputs.len > INT16_MAX)
		return tensor_fail(EINVAL, "checkpoint: %s",
				   fn ? "outputs must be given, inputs at most 32767" :
					"the function is NULL");
	for (int i = 0; i < noutputs; i++)
		outputs[i] = NULL;
	for (int64_t i = 0; i < inputs.len; i++)
		if (!tensor_given(inputs.data[i]))
			return null_argument_code("checkpoint");
		else if (tangent_of(inputs.data[i]))
			return tensor_fail(EOPNOTSUPP, "checkpoint: input %lld has a tangent",
					   (long long)i);
		else if (unlikely(is_batched(inputs.data[i])) && thread()->modes.grad_enabled &&
			 batch_has_history(inputs.data[i]))
			return tensor_fail(
				EOPNOTSUPP,
				"checkpoint: input %lld is a sample of a tensor that "
				"requires a gradient outside of tensor_vmap(), where the "
				"function cannot run again",
				(long long)i);
	return 0;
}

TENSOR_EXPORT int tensor_checkpoint(tensor_graph_fn fn, void *ctx, void (*destroy)(void *ctx),
				    tensor_list inputs, tensor **outputs, int noutputs)
{
	struct checkpoint *c = NULL;
	int err = check_call(fn, inputs, outputs, noutputs);

	if (!err) {
		c = checkpoint_new(fn, ctx, destroy, inputs, noutputs);
		err = c ? 0 : -thread()->error.code;
	}
	if (err && destroy)
		destroy(ctx);
	return err ?: first_run(c, inputs, outputs, noutputs);
}
