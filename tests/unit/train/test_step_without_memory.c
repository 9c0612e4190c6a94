// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A training step whose n-th allocation fails, for each n: with layers, dropout and statistics of batches, autocast, a
 * gradient scaler, hooks, a checkpoint, clipping, an optimizer, an average, files, a loader and a profiler. The part of the
 * step that fails gives ENOMEM and loses nothing. It is called again, and the step ends with the bits that it has without
 * failures.
 */
#include "autograd.h"

#include "tests/fuzz/calls/fail.c" /* replaces malloc() in this program */

#include <tensor/data.h>
#include <tensor/layers.h>
#include <tensor/loss.h>
#include <tensor/profiler.h>

#include <unistd.h>

enum { MOST = 4000, SIZE = 12 };

static char model_path[] = "/tmp/tensor-step-model-XXXXXX",
	    optim_path[] = "/tmp/tensor-step-optim-XXXXXX",
	    trace_path[] = "/tmp/tensor-step-trace-XXXXXX";
static tensor *inputs, *targets; /* made before allocations fail */

/* A program in the middle of its training. */
struct program {
	tensor_module *m;
	tensor_optim *optim;
	tensor_ema *ema;
	tensor_grad_scaler scaler;
	tensor_loader *loader;
	tensor *batch[2]; /* owned */
	double norm;
	int hooked;
};

static int get(void *ctx, int64_t index, tensor **outputs, int n)
{
	(void)ctx, (void)n;
	outputs[0] = tensor_select(inputs, 0, index);
	outputs[0] = tensor_add(outputs[0],
				tensor_mul_scalar(tensor_rand_like(outputs[0], F32), S(0.125)));
	outputs[1] = tensor_select(targets, 0, index);
	return outputs[0] && outputs[1] ? 0 : -1;
}

/* ---- parts of a step: each returns 0, or -errno ---- */

static int load_batch(struct program *p)
{
	int err = 0;

	tensor_scope {
		tensor *batch[2] = { NULL, NULL };

		err = tensor_loader_next(p->loader, batch, 2);
		for (int i = 0; i < 2 && err == 1; i++)
			p->batch[i] = tensor_retain(batch[i]);
	}
	return err == 1 ? 0 : err < 0 ? err : -ENODATA;
}

static int block(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	tensor *x = tensor_module_linear(ctx, "hidden", in[0], 8);

	(void)nin, (void)nout;
	x = tensor_module_dropout(ctx, tensor_relu(x), 0.25);
	out[0] = tensor_module_layer_norm(ctx, "norm", x);
	return out[0] ? 0 : -1;
}

static tensor *net(struct program *p, tensor *x)
{
	tensor *y = NULL;

	x = tensor_relu(tensor_module_conv2d(p->m, "conv", x, 4, 3, .padding = 1));
	x = tensor_module_batch_norm(p->m, "bn", x);
	x = tensor_flatten(tensor_relu(x), 1, -1);
	if (tensor_checkpoint(block, p->m, NULL, TENSOR_LIST(x), &y, 1) < 0)
		return NULL;
	return tensor_module_linear(p->m, "out", y, 3);
}

static tensor *count_hook(tensor *grad, void *ctx)
{
	++*(int *)ctx;
	return tensor_mul_scalar(grad, S(1));
}

static int forward_and_backward(struct program *p)
{
	int err = -ENOMEM;

	tensor_scope {
		tensor *y = NULL, *loss = NULL;

		tensor_autocast(TENSOR_BF16)
		{
			y = net(p, p->batch[0]);
			loss = tensor_loss_cross_entropy(y, p->batch[1]);
		}
		if (y && tensor_register_hook(y, count_hook, &p->hooked, NULL, NULL) == 0) {
			loss = tensor_grad_scaler_scale(&p->scaler, loss);
			err = loss ? tensor_backward(loss) : -ENOMEM;
		}
	}
	return err;
}

static int unscale(struct program *p)
{
	return tensor_grad_scaler_unscale(&p->scaler, p->optim);
}

static int clip(struct program *p)
{
	tensor_list params = tensor_module_parameters(p->m);

	if (!params.len)
		return -ENOMEM;
	return tensor_clip_grad_norm_(params, 0.5, 2, true, &p->norm);
}

static int step(struct program *p)
{
	int err = tensor_grad_scaler_step(&p->scaler, p->optim);

	return err < 0 ? err : 0;
}

static int update_scale(struct program *p)
{
	return tensor_grad_scaler_update(&p->scaler);
}

static int average(struct program *p)
{
	return tensor_ema_update(p->ema);
}

/* Evaluation with the averages; twice exchanged is unchanged. */
static int evaluate(struct program *p)
{
	int err = tensor_ema_is_swapped(p->ema) ? 0 : tensor_ema_swap(p->ema);

	if (err)
		return err;
	tensor_module_train(p->m, false);
	tensor_scope
		tensor_inference_mode err = net(p, p->batch[0]) ? 0 : -ENOMEM;
	tensor_module_train(p->m, true);
	return err ?: tensor_ema_swap(p->ema);
}

static int save(struct program *p)
{
	return tensor_module_save(p->m, model_path) ?: tensor_optim_save(p->optim, optim_path);
}

static int load(struct program *p)
{
	return tensor_module_load(p->m, model_path, TENSOR_LOAD_STRICT) ?:
		       tensor_optim_load(p->optim, optim_path);
}

static int zero_grad(struct program *p)
{
	return tensor_module_zero_grad(p->m) ?: tensor_optim_zero_grad(p->optim);
}

static int (*const parts[])(struct program *p) = {
	load_batch, forward_and_backward,
	unscale,    clip,
	step,	    update_scale,
	average,    evaluate,
	save,	    load,
};

static int profile_it(struct program *p)
{
	tensor_profiler *profiler =
		tensor_profiler_start(TENSOR_PROFILE_EVENTS | TENSOR_PROFILE_SHAPES);
	struct tensor_profile_row row;
	FILE *out = fopen("/dev/null", "w");
	int err = profiler ? zero_grad(p) : -tensor_last_error()->code;

	if (!err)
		err = forward_and_backward(p);
	if (!err)
		err = tensor_profiler_stop(profiler);
	if (!err)
		err = (int)tensor_profiler_rows(profiler, &row, 1);
	if (err > 0)
		err = out ? tensor_profiler_print(profiler, out, 5) : -ENOMEM;
	if (!err)
		err = tensor_profiler_save_trace(profiler, trace_path);
	if (out)
		fclose(out);
	tensor_profiler_free(profiler);
	return err;
}

/* ---- the program ---- */

static void program_end(struct program *p)
{
	for (int i = 0; i < 2; i++)
		tensor_release(p->batch[i]);
	tensor_loader_free(p->loader);
	tensor_ema_free(p->ema);
	tensor_optim_free(p->optim);
	tensor_module_free(p->m);
}

/* One that is about to take its step after `steps` others. */
static void program_begin(struct program *p, int steps)
{
	const struct tensor_loader_options options = {
		.size = SIZE, .outputs = 2, .get = get, .batch_size = 4, .shuffle = true, .seed = 3
	};

	*p = (struct program){ .scaler = { .scale = 128, .interval = 2 } };
	tensor_manual_seed(1);
	p->m = tensor_module_new(TENSOR_OPTIONS(0));
	p->loader = tensor_loader_new(&options);
	assert_true(p->m && p->loader);
	/* Makes the parameters. */
	tensor_scope
		ok(net(p, ok(tensor_narrow(inputs, 0, 0, 2))));
	p->optim = tensor_optim_new(tensor_module_parameters(p->m), TENSOR_ADAMW(.lr = 0.01));
	p->ema = tensor_ema_new(tensor_module_parameters(p->m), 0.75);
	assert_true(p->optim && p->ema);
	for (int s = 0; s < steps; s++) {
		for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
			assert_done(parts[i](p));
		assert_done(zero_grad(p));
		for (int i = 0; i < 2; i++) {
			tensor_release(p->batch[i]);
			p->batch[i] = NULL;
		}
	}
}

/* ---- comparison ---- */

static uint64_t hash_tensor(uint64_t hash, tensor *t)
{
	if (!t)
		return hash * 31;
	tensor_scope {
		tensor *c = ok(tensor_contiguous(ok(tensor_detach(t))));

		hash = hash_bytes(hash, tensor_data(c),
				  (size_t)tensor_numel(c) * tensor_itemsize(tensor_dtype(c)));
	}
	return hash;
}

static uint64_t hash_named(uint64_t hash, tensor_module *m, unsigned which)
{
	const struct tensor_named *named;
	int64_t n = tensor_module_named(m, which, &named);

	assert_true(n > 0);
	for (int64_t i = 0; i < n; i++) {
		hash = hash_tensor(hash, named[i].t);
		hash = hash_tensor(hash, tensor_grad(named[i].t));
	}
	return hash;
}

/* All that a step changes. */
static uint64_t hash_program(struct program *p)
{
	struct tensor_generator_state random;
	struct tensor_loader_state position;
	struct tensor_named state;
	uint64_t hash = hash_named(14695981039346656037u, p->m, TENSOR_MODULE_PARAMETERS);

	hash = hash_named(hash, p->m, TENSOR_MODULE_BUFFERS);
	for (int64_t i = 0; i < tensor_optim_state_count(p->optim); i++) {
		assert_done(tensor_optim_state_at(p->optim, i, &state));
		hash = hash_tensor(hash, state.t);
	}
	for (int64_t i = 0; tensor_ema_average(p->ema, i); i++)
		hash = hash_tensor(hash, tensor_ema_average(p->ema, i));
	tensor_generator_get_state(tensor_default_generator(), &random);
	assert_done(tensor_loader_get_state(p->loader, &position));
	hash = hash_bytes(hash, &random, sizeof(random));
	hash = hash_bytes(hash, &position, sizeof(position));
	hash = hash_bytes(hash, &p->norm, sizeof(p->norm));
	return hash_bytes(hash, &p->scaler, sizeof(p->scaler));
}

/* ---- failures ---- */

/* State that a forward which fails may have changed: gradients, statistics of batches, random numbers. A program that goes on
 * removes the gradients; for the same bits the test restores the others. */
struct changed {
	struct tensor_generator_state random;
	tensor *buffer[8];
};

static void note_changed(struct program *p, struct changed *c)
{
	const struct tensor_named *named;
	int64_t n = tensor_module_named(p->m, TENSOR_MODULE_BUFFERS, &named);

	assert_in_range(n, 1, 8);
	*c = (struct changed){ 0 };
	tensor_generator_get_state(tensor_default_generator(), &c->random);
	for (int64_t i = 0; i < n; i++)
		c->buffer[i] = tensor_keep(ok(tensor_clone(named[i].t)));
}

static void restore_changed(struct program *p, struct changed *c)
{
	const struct tensor_named *named;
	int64_t n = tensor_module_named(p->m, TENSOR_MODULE_BUFFERS, &named);

	tensor_generator_set_state(tensor_default_generator(), &c->random);
	tensor_scope
		for (int64_t i = 0; i < n; i++)
			ok(tensor_copy_(named[i].t, c->buffer[i]));
	assert_done(zero_grad(p));
}

static void drop_changed(struct changed *c)
{
	for (int i = 0; i < 8; i++)
		tensor_release(c->buffer[i]);
}

/* The part with its n-th allocation failing, and again if it failed. True if an allocation failed. */
static bool part_fails(struct program *p, int (*part)(struct program *p), long n)
{
	struct changed before;
	bool again;
	int err;

	note_changed(p, &before);
	tensor_clear_error();
	fail_at(n);
	err = part(p);
	again = fail_end();
	if (err) {
		assert_true(again);
		assert_int_equal(err, -ENOMEM);
		if (part == forward_and_backward || part == profile_it)
			restore_changed(p, &before);
		assert_done(part(p));
	}
	drop_changed(&before);
	return again;
}

/* A step in which the n-th allocation of this part fails. */
static bool step_with_failure(int steps, size_t part, long n, uint64_t *hash)
{
	struct tensor_live_counts before, after;
	struct program p;
	bool again = false;

	tensor_live_counts(&before);
	program_begin(&p, steps);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (i == part)
			again = part_fails(&p, parts[i], n);
		else
			assert_done(parts[i](&p));
	*hash = hash_program(&p);
	program_end(&p);
	tensor_live_counts(&after);
	assert_int_equal(after.tensors, before.tensors);
	assert_int_equal(after.storages, before.storages);
	return again;
}

static void failures_of_a_part(int steps, size_t part)
{
	uint64_t want, got;
	long n = 0;
	bool again;

	step_with_failure(steps, part, 0, &want);
	step_with_failure(steps, part, 0, &got);
	assert_int_equal(got, want);
	do {
		again = step_with_failure(steps, part, ++n, &got);
		if (got != want)
			fail_msg(
				"part %zu after %d steps: another result after allocation %ld failed",
				part, steps, n);
	} while (again && n < MOST);
	assert_in_range(n, 1, MOST - 1);
}

static void step_after_a_failure_has_the_same_bits(void **state)
{
	(void)state;
	if (!fail_possible)
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		for (int steps = 0; steps < 2; steps++)
			failures_of_a_part(steps, i);
}

static void profiler_without_memory_fails(void **state)
{
	struct tensor_live_counts before, after;
	bool again = true;

	(void)state;
	if (!fail_possible)
		skip();
	for (long n = 1; again; n++) {
		struct program p;

		tensor_live_counts(&before);
		program_begin(&p, 0);
		assert_done(load_batch(&p));
		again = part_fails(&p, profile_it, n);
		program_end(&p);
		tensor_live_counts(&after);
		assert_int_equal(after.tensors, before.tensors);
		assert_int_equal(after.storages, before.storages);
		assert_true(n < MOST);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(step_after_a_failure_has_the_same_bits),
		cmocka_unit_test(profiler_without_memory_fails),
	};
	char *const paths[] = { model_path, optim_path, trace_path };
	int status;

	(void)argc;
	fail_without_caches(argv);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (close(mkstemp(paths[i])) < 0)
			return 1;
	inputs = tensor_rand(TENSOR_INTS(SIZE, 1, 4, 4), F32);
	targets = tensor_arange(S(SIZE), I64);
	targets = tensor_remainder_scalar(targets, S(3));
	fail_spare_others();
	status = cmocka_run_group_tests_name("step_without_memory", tests, NULL, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		unlink(paths[i]);
	return status;
}
