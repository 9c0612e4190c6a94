// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Graphs: captured work, replayed. On the emulation (make test-cuda) or a GPU, else skipped. */
#include "cuda_results.h"

#include <dlfcn.h>
#include <pthread.h>

/* Of the emulation, which the plugin has loaded; NULL: a GPU, or no device. */
static void *emulation(void)
{
	return tensor_cuda_is_available() ? dlopen("libcuda_host.so", RTLD_NOW | RTLD_NOLOAD) :
					    NULL;
}

static tensor *on_gpu(tensor *t)
{
	return ok(tensor_to(ok(t), CUDA));
}

static tensor_cuda_graph *new_graph(void)
{
	tensor_cuda_graph *g = tensor_cuda_graph_new(0);

	assert_non_null(g);
	return g;
}

#define assert_same_bits(a, b) check_bits((a), (b), __LINE__)
static void check_bits(tensor *a, tensor *b, int line)
{
	tensor *x = tensor_contiguous(ok(tensor_to(ok(a), CPU)));
	tensor *y = tensor_contiguous(ok(tensor_to(ok(b), CPU)));

	size_t size = (size_t)tensor_numel(x) * tensor_itemsize(tensor_dtype(x));

	assert_int_equal(tensor_numel(x), tensor_numel(y));
	assert_int_equal(tensor_dtype(x), tensor_dtype(y));
	if (memcmp(tensor_data(x), tensor_data(y), size))
		fail_msg("line %d: the bits differ", line);
}

static double value_of(tensor *t)
{
	double v = -1;

	assert_done(tensor_item(ok(t), &v));
	return v;
}

static double element(tensor *t, int64_t i)
{
	double v = -1;

	tensor_scope {
		v = value_of(tensor_select(t, 0, i));
	}
	return v;
}

static struct tensor_cuda_usage usage(void)
{
	struct tensor_cuda_usage u;

	assert_done(tensor_cuda_memory(0, &u));
	return u;
}

/* ---- replay ---- */

static void a_replay_runs_what_was_captured(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor_cuda_graph *g = new_graph();
		tensor *x = ok(tensor_full(TENSOR_SHAPE(300), S(1.0), CUDA));
		tensor *sum = ok(tensor_zeros(TENSOR_SHAPE(300), CUDA)), *y;

		assert_false(tensor_cuda_is_capturing(0));
		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		assert_true(tensor_cuda_is_capturing(0));
		y = ok(tensor_mul_scalar(ok(tensor_add(x, x)), S(3.0)));
		ok(tensor_add_(sum, y));
		assert_done(tensor_cuda_graph_capture_end(g));
		assert_false(tensor_cuda_is_capturing(0));
		/* Nothing has run. */
		assert_true(value_of(tensor_sum(sum)) == 0);
		for (int i = 1; i <= 3; i++) {
			ok(tensor_fill_(x, S((double)i)));
			assert_done(tensor_cuda_graph_replay(g));
			assert_true(value_of(tensor_select(y, 0, 299)) == 6 * i);
		}
		assert_true(value_of(tensor_select(sum, 0, 0)) == 6 * (1 + 2 + 3));
		assert_done(tensor_cuda_graph_wait(g));
		assert_done(tensor_cuda_graph_release(g));
	}
}

/* ---- a step of training ---- */

struct net {
	tensor *w1, *b1, *w2, *b2, *x, *target;
	tensor_optim *optim;
};

static tensor *parameter(tensor_ints shape, double seed)
{
	tensor *t = iota(0, shape);
	float *p = tensor_mutable_data(t);

	for (int64_t i = 0; i < tensor_numel(t); i++)
		p[i] = (float)(0.3 * sin(seed + 1.3 * (double)i));
	t = on_gpu(t);
	assert_done(tensor_set_requires_grad(t, true));
	return t;
}

static void make_net(struct net *n, tensor_optim_options options)
{
	int64_t classes[4];
	tensor *params[4];

	for (int i = 0; i < 4; i++)
		classes[i] = i * 5 % 3;
	n->w1 = params[0] = parameter(TENSOR_SHAPE(5, 6), 1);
	n->b1 = params[1] = parameter(TENSOR_SHAPE(6), 2);
	n->w2 = params[2] = parameter(TENSOR_SHAPE(6, 3), 3);
	n->b2 = params[3] = parameter(TENSOR_SHAPE(3), 4);
	n->x = ok(tensor_zeros(TENSOR_SHAPE(4, 5), CUDA));
	n->target = on_gpu(tensor_from_data(classes, TENSOR_SHAPE(4), I64));
	n->optim =
		tensor_optim_new(TENSOR_LIST(params[0], params[1], params[2], params[3]), options);
	assert_non_null(n->optim);
}

/* Returns the loss. */
static tensor *train(struct net *n, bool dropout)
{
	tensor *h, *loss;

	tensor_optim_zero_grad(n->optim);
	h = ok(tensor_relu(ok(tensor_add(ok(tensor_mm(n->x, n->w1)), n->b1))));
	if (dropout)
		h = ok(tensor_dropout(h, 0.25, true));
	h = ok(tensor_add(ok(tensor_mm(h, n->w2)), n->b2));
	loss = ok(tensor_cross_entropy(h, n->target));
	assert_done(tensor_backward(loss));
	assert_done(tensor_optim_step(n->optim));
	return loss;
}

static void set_input(struct net *n, int step)
{
	tensor *x = iota(0, TENSOR_SHAPE(4, 5));
	float *p = tensor_mutable_data(x);

	for (int64_t i = 0; i < tensor_numel(x); i++)
		p[i] = (float)cos((double)step + 0.7 * (double)i);
	ok(tensor_copy_(n->x, x));
}

/* One step as usual, then `replays`. */
static void check_training(tensor_optim_options options, bool dropout, int replays)
{
	tensor_scope {
		struct net eager, graphed;
		tensor_cuda_graph *g = new_graph();
		struct tensor_generator_state here, there;
		tensor *loss = NULL, *losses[12];

		make_net(&eager, options);
		make_net(&graphed, options);
		tensor_manual_seed(7);
		for (int i = 0; i <= replays; i++) {
			set_input(&eager, i);
			losses[i] = ok(tensor_to(train(&eager, dropout), CPU));
		}
		tensor_generator_get_state(NULL, &here);
		tensor_manual_seed(7);
		set_input(&graphed, 0);
		assert_same_bits(train(&graphed, dropout), losses[0]);
		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		loss = train(&graphed, dropout);
		assert_done(tensor_cuda_graph_capture_end(g));
		for (int i = 1; i <= replays; i++) {
			set_input(&graphed, i);
			assert_done(tensor_cuda_graph_replay(g));
			assert_same_bits(loss, losses[i]);
		}
		assert_same_bits(eager.w1, graphed.w1);
		assert_same_bits(eager.b1, graphed.b1);
		assert_same_bits(eager.w2, graphed.w2);
		assert_same_bits(eager.b2, graphed.b2);
		tensor_generator_get_state(NULL, &there);
		assert_int_equal(here.offset, there.offset);
		/* One more step without the graph: the steps of the replays are counted. */
		set_input(&eager, 12);
		set_input(&graphed, 12);
		tensor_manual_seed(8);
		train(&eager, dropout);
		tensor_manual_seed(8);
		train(&graphed, dropout);
		assert_same_bits(eager.w1, graphed.w1);
		assert_done(tensor_cuda_graph_wait(g));
		assert_done(tensor_cuda_graph_release(g));
		tensor_optim_free(eager.optim);
		tensor_optim_free(graphed.optim);
	}
}

static void a_captured_step_of_sgd_equals_eager_steps(void **state)
{
	NEED_DEVICE();
	check_training(
		(tensor_optim_options){ .method = TENSOR_OPTIM_SGD, .lr = 0.1, .momentum = 0.9 },
		false, 3);
}

static void ten_replays_of_adam_with_dropout_equal_eager_steps(void **state)
{
	NEED_DEVICE();
	check_training((tensor_optim_options){ .method = TENSOR_OPTIM_ADAM, .lr = 0.01 }, true, 10);
}

static void a_captured_step_of_adagrad_equals_eager_steps(void **state)
{
	NEED_DEVICE();
	check_training((tensor_optim_options){ .method = TENSOR_OPTIM_ADAGRAD,
					       .lr = 0.1,
					       .lr_decay = 0.1 },
		       false, 2);
}

/* Each has a rate of its own. */
static void two_captured_steps_equal_eager_steps(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		const tensor_optim_options o = { .method = TENSOR_OPTIM_ADAM, .lr = 0.01 };
		tensor_cuda_graph *g = new_graph();
		struct net eager, graphed;

		make_net(&eager, o);
		make_net(&graphed, o);
		set_input(&eager, 1);
		set_input(&graphed, 1);
		for (int i = 0; i < 5; i++)
			train(&eager, false);
		train(&graphed, false);
		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		train(&graphed, false);
		train(&graphed, false);
		assert_done(tensor_cuda_graph_capture_end(g));
		for (int i = 0; i < 2; i++)
			assert_done(tensor_cuda_graph_replay(g));
		assert_same_bits(eager.w1, graphed.w1);
		assert_same_bits(eager.b2, graphed.b2);
		train(&eager, false);
		train(&graphed, false);
		assert_same_bits(eager.w1, graphed.w1);
		assert_done(tensor_cuda_graph_release(g));
		tensor_optim_free(eager.optim);
		tensor_optim_free(graphed.optim);
	}
}

/* ---- random numbers ---- */

static void replays_draw_the_numbers_that_eager_calls_would_draw(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor_cuda_graph *g = new_graph();
		tensor *a[4], *b[4], *x, *y;
		tensor_generator *own = tensor_generator_new(3);

		tensor_manual_seed(5);
		for (int i = 0; i < 4; i++) {
			a[i] = ok(tensor_rand(TENSOR_SHAPE(100), CUDA));
			b[i] = ok(tensor_normal_opt_(ok(tensor_empty(TENSOR_SHAPE(70), CUDA)), 0, 1,
						     own));
		}
		tensor_manual_seed(5);
		tensor_generator_manual_seed(own, 3);
		assert_done(tensor_cuda_graph_register_generator(g, own));
		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		x = ok(tensor_rand(TENSOR_SHAPE(100), CUDA));
		y = ok(tensor_normal_opt_(ok(tensor_empty(TENSOR_SHAPE(70), CUDA)), 0, 1, own));
		assert_done(tensor_cuda_graph_capture_end(g));
		for (int i = 0; i < 4; i++) {
			assert_done(tensor_cuda_graph_replay(g));
			assert_same_bits(x, a[i]);
			assert_same_bits(y, b[i]);
		}
		assert_done(tensor_cuda_graph_release(g));
		tensor_generator_release(own);
	}
}

/* y = dropout(x) ^ 2 */
static int dropped_squares(tensor *const *inputs, int ninputs, tensor **outputs, int noutputs,
			   void *ctx)
{
	tensor *y = tensor_dropout(inputs[0], 0.5, true);

	outputs[0] = y ? tensor_mul(y, y) : NULL;
	return outputs[0] ? 0 : -tensor_last_error()->code;
}

static tensor *checkpointed(tensor *x)
{
	tensor *y = NULL;

	assert_done(tensor_checkpoint(dropped_squares, NULL, NULL, TENSOR_LIST(x), &y, 1));
	return tensor_sum(ok(y));
}

static tensor *gradient_of(tensor *y, tensor *x)
{
	tensor *grad = NULL;

	return tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(x), &grad, 0) < 0 ? NULL : grad;
}

/* The derivative of the square of y = 2 x mask is 4 y mask: twice the value, where x is 1. */
static void a_checkpoint_in_a_capture_draws_its_numbers_again(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor_cuda_graph *g = new_graph();
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(200), CUDA)), *y, *z, *grad, *more;

		tensor_set_requires_grad(x, true);
		y = ok(checkpointed(x));
		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		/* Numbers that were drawn before cannot be drawn in a replay. */
		assert_true(tensor_backward(y) < 0);
		assert_int_equal(tensor_last_error()->code, EOPNOTSUPP);
		assert_int_equal(tensor_cuda_graph_capture_end(g), -ECANCELED);
		assert_done(tensor_cuda_graph_reset(g));

		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		y = ok(checkpointed(x));
		z = ok(checkpointed(x));
		grad = ok(gradient_of(y, x));
		more = ok(tensor_rand(TENSOR_SHAPE(4), CUDA));
		assert_done(tensor_cuda_graph_capture_end(g));
		for (int i = 0; i < 3; i++) {
			assert_done(tensor_cuda_graph_replay(g));
			assert_true(value_of(tensor_sum(grad)) == 2 * value_of(y));
			assert_true(value_of(y) > 0 && element(more, 0) != element(more, 3));
		}
		assert_null(gradient_of(z, x));
		assert_int_equal(tensor_last_error()->code, EOPNOTSUPP);
		assert_done(tensor_cuda_graph_release(g));
	}
}

/* ---- pinned memory ---- */

static void a_replay_copies_pinned_memory_that_the_graph_holds(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor_cuda_graph *g = new_graph();
		tensor *x = ok(tensor_zeros(TENSOR_SHAPE(64), CUDA)), *in, *out;
		tensor *y = ok(tensor_zeros(TENSOR_SHAPE(64), CUDA));

		in = ok(tensor_full(TENSOR_SHAPE(64), S(2.0), F32));
		out = ok(tensor_zeros(TENSOR_SHAPE(64), F32));
		assert_done(tensor_share_memory(in));
		assert_done(tensor_share_memory(out));
		tensor_scope {
			tensor *three = ok(tensor_full(TENSOR_SHAPE(64), S(3.0), F32));

			assert_done(tensor_share_memory(three));
			assert_done(tensor_cuda_graph_capture_begin(g, NULL));
			ok(tensor_copy_(x, in));
			ok(tensor_mul_(x, x));
			ok(tensor_copy_(y, three));
			ok(tensor_copy_(out, ok(tensor_mul(x, y))));
			assert_done(tensor_cuda_graph_capture_end(g));
		}
		/* Would get the memory of `three`. */
		assert_done(tensor_share_memory(ok(tensor_full(TENSOR_SHAPE(64), S(9.0), F32))));
		for (int i = 2; i < 5; i++) {
			ok(tensor_fill_(in, S((double)i)));
			assert_done(tensor_cuda_graph_replay(g));
			assert_done(tensor_cuda_graph_wait(g));
			assert_true(element(out, 63) == 3 * i * i);
		}
		assert_done(tensor_cuda_graph_release(g));
	}
}

/* ---- calls that fail (on the emulation) ---- */

static void (*inject)(const char *function, unsigned long nth, int error);
static unsigned long (*calls)(void);

/* 0, or the first error. */
static int capture_and_replay(tensor_cuda_graph *g, tensor *x, tensor *index)
{
	int err = tensor_cuda_graph_capture_begin(g, NULL), end;

	if (err)
		return err;
	tensor_scope {
		tensor *y = tensor_dropout(x, 0.5, true);

		y = y ? tensor_index_select(y, 0, index) : NULL;
		y = y ? tensor_mm(y, y) : NULL;
		err = y ? 0 : -tensor_last_error()->code;
	}
	end = tensor_cuda_graph_capture_end(g);
	err = err ? err : end;
	err = err ? err : tensor_cuda_graph_replay(g);
	return err ? err : tensor_cuda_graph_wait(g);
}

static void each_failing_call_is_an_error_and_leaves_nothing(void **state)
{
	static const int64_t order[] = { 2, 0, 1 };
	void *library = emulation();
	unsigned long n = 0, failures = 0;
	bool failed = true;

	if (!library)
		skip();
	inject = (__typeof__(inject))dlsym(library, "cuda_host_fail");
	calls = (__typeof__(calls))dlsym(library, "cuda_host_calls");
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(3, 3), CUDA));
		tensor *i = on_gpu(tensor_from_data(order, TENSOR_SHAPE(3), I64));
		tensor_cuda_graph *g = new_graph();
		uint64_t allocated;
		int err;

		assert_done(capture_and_replay(g, x, i));
		assert_done(tensor_cuda_graph_reset(g));
		allocated = usage().allocated;
		while (failed) {
			inject(NULL, ++n, 719 /* cudaErrorLaunchFailure */);
			err = capture_and_replay(g, x, i);
			failed = calls() >= n;
			inject(NULL, 0, 0);
			failures += err != 0;
			assert_false(tensor_cuda_is_capturing(0));
			assert_done(tensor_cuda_graph_reset(g));
			assert_int_equal(usage().allocated, allocated);
		}
		assert_true(failures > 10);
		assert_done(capture_and_replay(g, x, i));
		assert_done(tensor_cuda_graph_release(g));
	}
	dlclose(library);
}

/* ---- what cannot be captured ---- */

static tensor_generator *foreign;

static tensor *item_of(tensor *x)
{
	double v;

	return tensor_item(tensor_select(x, 0, 0), &v) < 0 ? NULL : x;
}
static tensor *to_host(tensor *x)
{
	return tensor_to(x, CPU);
}
static tensor *from_host(tensor *x)
{
	tensor *host = tensor_ones(TENSOR_SHAPE(8), F32);

	return tensor_copy_(x, host);
}
static tensor *positions(tensor *x)
{
	return tensor_nonzero(x);
}
static tensor *permutation(tensor *x)
{
	return tensor_randperm(8, TENSOR_OPTIONS(.dtype = TENSOR_I64,
						 .device = TENSOR_DEVICE_CUDA(0)));
}
static tensor *other_generator(tensor *x)
{
	return tensor_normal_opt_(x, 0, 1, foreign);
}
static tensor *synchronised(tensor *x)
{
	return tensor_cuda_synchronize(0) < 0 ? NULL : x;
}
static tensor *trimmed(tensor *x)
{
	return tensor_cuda_memory_trim(0) < 0 ? NULL : x;
}
static tensor *integer_division(tensor *x)
{
	tensor *i = tensor_ones(TENSOR_SHAPE(4), TENSOR_OPTIONS(.dtype = TENSOR_I64,
								.device = TENSOR_DEVICE_CUDA(0)));

	return i ? tensor_remainder(i, i) : NULL;
}
/* Has no kernel. */
static tensor *of_the_cpu(tensor *x)
{
	return tensor_linalg_eigvals(
		tensor_reshape(tensor_slice(x, 0, 0, 4, 1), TENSOR_SHAPE(2, 2)));
}
static tensor *without_memory(tensor *x)
{
	return tensor_empty(TENSOR_SHAPE((int64_t)1 << 40), CUDA);
}

static void check_refused(tensor *(*op)(tensor *x), int code)
{
	tensor_scope {
		tensor_cuda_graph *g = new_graph();
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(8), CUDA)), *y;

		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		ok(tensor_add_(x, x));
		tensor_clear_error();
		assert_null(op(x));
		assert_int_equal(tensor_last_error()->code, code);
		if (tensor_cuda_is_capturing(0))
			fail_msg("the capture goes on after: %s", tensor_last_error()->text);
		/* The library works, and nothing of the capture has run. */
		y = ok(tensor_add(x, x));
		assert_true(value_of(tensor_sum(y)) == 16);
		assert_int_equal(tensor_cuda_graph_capture_end(g), -ECANCELED);
		assert_int_equal(tensor_cuda_graph_replay(g), -ECANCELED);
		assert_int_equal(tensor_cuda_graph_capture_begin(g, NULL), -EBUSY);
		assert_done(tensor_cuda_graph_reset(g));
		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		ok(tensor_add_(x, x));
		assert_done(tensor_cuda_graph_capture_end(g));
		assert_done(tensor_cuda_graph_replay(g));
		assert_true(value_of(tensor_sum(x)) == 16);
		assert_done(tensor_cuda_graph_release(g));
	}
}

static void what_waits_for_the_device_ends_the_capture(void **state)
{
	static tensor *(*const ops[])(tensor * x) = {
		item_of,      to_host, from_host,	 positions,  permutation,
		synchronised, trimmed, integer_division, of_the_cpu,
	};

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		check_refused(ops[i], EOPNOTSUPP);
	foreign = tensor_generator_new(1);
	check_refused(other_generator, EINVAL);
	tensor_generator_release(foreign);
	check_refused(without_memory, ENOMEM);
}

static void the_first_step_of_an_optimizer_is_refused(void **state)
{
	static const uint8_t methods[] = { TENSOR_OPTIM_SGD, TENSOR_OPTIM_ADAM };

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		tensor_scope {
			tensor_cuda_graph *g = new_graph();
			tensor *w = parameter(TENSOR_SHAPE(4), 1);
			tensor_optim_options o = { .method = methods[i],
						   .momentum = 0.5,
						   .lr = 0.1 };
			tensor_optim *optim;

			if (methods[i] == TENSOR_OPTIM_ADAM)
				o.momentum = 0;
			optim = tensor_optim_new(TENSOR_LIST(w), o);
			assert_non_null(optim);
			assert_done(tensor_backward(ok(tensor_sum(ok(tensor_mul(w, w))))));
			assert_done(tensor_cuda_graph_capture_begin(g, NULL));
			assert_int_equal(tensor_optim_step(optim), -EOPNOTSUPP);
			assert_non_null(strstr(tensor_last_error()->text, "step once before"));
			assert_int_equal(tensor_cuda_graph_capture_end(g), -ECANCELED);
			assert_done(tensor_cuda_graph_release(g));
			tensor_optim_free(optim);
		}
}

static void an_index_out_of_range_in_a_replay_is_reported_by_a_wait(void **state)
{
	static const int64_t good[] = { 0, 1, 2 }, bad[] = { 0, 9, 2 };

	NEED_DEVICE();
	tensor_scope {
		tensor_cuda_graph *g = new_graph();
		tensor *x = on_gpu(parameter(TENSOR_SHAPE(4), 1)), *y;
		tensor *i = on_gpu(tensor_from_data(good, TENSOR_SHAPE(3), I64));

		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		y = ok(tensor_index_select(x, 0, i));
		assert_done(tensor_cuda_graph_capture_end(g));
		assert_done(tensor_cuda_graph_replay(g));
		assert_done(tensor_cuda_graph_wait(g));
		assert_same_bits(y, tensor_slice(x, 0, 0, 3, 1));
		ok(tensor_copy_(i, ok(tensor_from_data(bad, TENSOR_SHAPE(3), I64))));
		assert_done(tensor_cuda_graph_replay(g));
		assert_int_equal(tensor_cuda_graph_wait(g), -ERANGE);
		ok(tensor_copy_(i, ok(tensor_from_data(good, TENSOR_SHAPE(3), I64))));
		assert_done(tensor_cuda_graph_replay(g));
		assert_done(tensor_cuda_graph_wait(g));
		assert_same_bits(y, tensor_slice(x, 0, 0, 3, 1));
		assert_done(tensor_cuda_graph_release(g));
	}
}

/* ---- memory ---- */

static void memory_of_a_capture_is_not_used_by_others(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor_cuda_graph *g = new_graph();
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(5000), CUDA)), *y;
		tensor *others[20];
		uint64_t reserved, before;

		assert_done(tensor_cuda_memory_trim(0));
		before = usage().reserved;
		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		tensor_scope {
			tensor *twice = ok(tensor_add(x, x));

			y = tensor_retain(ok(tensor_mul(twice, twice)));
		}
		assert_done(tensor_cuda_graph_capture_end(g));
		for (int i = 0; i < 20; i++)
			others[i] = ok(tensor_full(TENSOR_SHAPE(5000), S(7.0), CUDA));
		assert_done(tensor_cuda_graph_replay(g));
		assert_true(element(y, 4999) == 4);
		for (int i = 0; i < 20; i++)
			assert_true(value_of(tensor_sum(others[i])) == 7 * 5000);
		/* Trimming leaves the pool alone; the release of the graph gives it back. */
		assert_done(tensor_cuda_memory_trim(0));
		assert_done(tensor_cuda_graph_replay(g));
		assert_true(element(y, 0) == 4);
		reserved = usage().reserved;
		tensor_release(y);
		assert_done(tensor_cuda_graph_release(g));
		assert_true(usage().reserved < reserved);
		assert_true(usage().reserved >= before);
	}
}

/* The graph holds inputs that the program has released. */
static void a_graph_holds_the_memory_that_it_uses(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor_cuda_graph *g = new_graph();
		tensor *y;

		tensor_scope {
			tensor *x = ok(tensor_full(TENSOR_SHAPE(300), S(2.0), CUDA));

			assert_done(tensor_cuda_graph_capture_begin(g, NULL));
			y = tensor_retain(ok(tensor_add(x, x)));
			assert_done(tensor_cuda_graph_capture_end(g));
		}
		for (int i = 0; i < 8; i++)
			ok(tensor_full(TENSOR_SHAPE(300), S(9.0), CUDA));
		assert_done(tensor_cuda_graph_replay(g));
		assert_true(value_of(tensor_sum(y)) == 1200);
		/* Results outlive the graph. */
		assert_done(tensor_cuda_graph_release(g));
		assert_true(value_of(tensor_sum(y)) == 1200);
		tensor_release(y);
	}
}

static void two_graphs_share_a_pool(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor_cuda_graph *a = new_graph(), *b = new_graph(), *none = new_graph();
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(1 << 14), CUDA)), *y, *z;
		uint64_t reserved;

		assert_int_equal(tensor_cuda_graph_capture_begin(b, none), -EINVAL);
		assert_done(tensor_cuda_graph_capture_begin(a, NULL));
		assert_int_equal(tensor_cuda_graph_capture_begin(b, a), -EBUSY);
		y = ok(tensor_sum(ok(tensor_add(x, x))));
		assert_done(tensor_cuda_graph_capture_end(a));
		reserved = usage().reserved;
		assert_done(tensor_cuda_graph_capture_begin(b, a));
		z = ok(tensor_sum(ok(tensor_mul(x, x))));
		ok(tensor_add_(z, y));
		assert_done(tensor_cuda_graph_capture_end(b));
		assert_int_equal(usage().reserved, reserved);
		for (int i = 1; i < 4; i++) {
			ok(tensor_fill_(x, S((double)i)));
			assert_done(tensor_cuda_graph_replay(a));
			assert_done(tensor_cuda_graph_replay(b));
			assert_true(value_of(z) == (2.0 * i + i * i) * (1 << 14));
		}
		/* The pool lives as long as one of them. */
		assert_done(tensor_cuda_graph_release(a));
		assert_done(tensor_cuda_graph_replay(b));
		assert_true(value_of(z) == (6.0 + 9) * (1 << 14));
		assert_done(tensor_cuda_graph_release(b));
		assert_done(tensor_cuda_graph_release(none));
	}
}

static void many_captures_leave_no_memory(void **state)
{
	uint64_t reserved = 0;

	NEED_DEVICE();
	tensor_scope {
		tensor_cuda_graph *g = new_graph();
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(64), CUDA));

		for (int i = 0; i < 20; i++) {
			tensor_scope {
				assert_done(tensor_cuda_graph_capture_begin(g, NULL));
				ok(tensor_add(x, x));
				assert_done(tensor_cuda_graph_capture_end(g));
				assert_done(tensor_cuda_graph_replay(g));
			}
			assert_done(tensor_cuda_graph_reset(g));
			if (i == 1)
				reserved = usage().reserved;
		}
		assert_int_equal(usage().reserved, reserved);
		assert_done(tensor_cuda_graph_release(g));
	}
}

/* ---- streams ---- */

static void replays_in_two_streams_follow_each_other(void **state)
{
	void *library = emulation(), *stream[2];
	int (*create)(void **stream, unsigned flags), (*destroy)(void *stream);

	if (!library)
		skip();
	create = (__typeof__(create))dlsym(library, "cudaStreamCreateWithFlags");
	destroy = (__typeof__(destroy))dlsym(library, "cudaStreamDestroy");
	for (int i = 0; i < 2; i++)
		assert_int_equal(create(&stream[i], 1 /* cudaStreamNonBlocking */), 0);
	tensor_scope {
		tensor_cuda_graph *g = new_graph();
		tensor *x = ok(tensor_zeros(TENSOR_SHAPE(40), CUDA)), *y;
		double expected = 0;

		assert_done(tensor_cuda_synchronize(0));
		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		y = ok(tensor_mul_scalar(x, S(2.0)));
		ok(tensor_copy_(x, ok(tensor_add(y, ok(tensor_ones(TENSOR_SHAPE(40), CUDA))))));
		assert_done(tensor_cuda_graph_capture_end(g));
		for (int i = 0; i < 10; i++) {
			assert_done(tensor_cuda_set_stream(0, stream[i % 2]));
			assert_done(tensor_cuda_graph_replay(g));
			expected = 2 * expected + 1;
		}
		assert_done(tensor_cuda_set_stream(0, NULL));
		assert_done(tensor_cuda_graph_wait(g));
		assert_true(element(x, 39) == expected);
		assert_done(tensor_cuda_graph_release(g));
	}
	for (int i = 0; i < 2; i++)
		destroy(stream[i]);
	dlclose(library);
}

/* ---- threads and processes ---- */

static void *work(void *unused)
{
	for (int i = 0; i < 20; i++) {
		tensor_scope {
			tensor *x = tensor_full(TENSOR_SHAPE(200), S((double)i), CUDA);
			tensor *y = tensor_to(tensor_add(x, x), CPU);
			double v;

			if (!y || tensor_item(tensor_sum(y), &v) < 0 || v != 400.0 * i)
				return "a thread that does not capture got another result";
			if (tensor_cuda_is_capturing(0))
				return "another thread's capture is seen";
		}
	}
	if (tensor_cuda_synchronize(0) != -EBUSY)
		return "synchronize must fail during a capture";
	return NULL;
}

static void another_thread_works_during_a_capture(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor_cuda_graph *g = new_graph();
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(200), CUDA)), *y;
		pthread_t thread;
		void *error;

		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		assert_int_equal(pthread_create(&thread, NULL, work, NULL), 0);
		y = ok(tensor_add(x, x));
		for (int i = 0; i < 20; i++)
			y = ok(tensor_mul_scalar(y, S(1.0)));
		pthread_join(thread, &error);
		if (error)
			fail_msg("%s", (char *)error);
		assert_done(tensor_cuda_graph_capture_end(g));
		assert_done(tensor_cuda_graph_replay(g));
		assert_true(value_of(tensor_sum(y)) == 400);
		assert_done(tensor_cuda_synchronize(0));
		assert_done(tensor_cuda_graph_release(g));
	}
}

/* A backward outside of the capture does not use its stream, where a later capture would meet its memory. */
static void a_captured_forward_has_an_eager_backward(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor_cuda_graph *a = new_graph(), *b = new_graph();
		tensor *w = ok(tensor_ones(TENSOR_SHAPE(64), CUDA)), *y, *z;
		tensor *x = ok(tensor_full(TENSOR_SHAPE(64), S(2.0), CUDA));

		tensor_set_requires_grad(w, true);
		assert_done(tensor_cuda_graph_capture_begin(a, NULL));
		y = ok(tensor_sum(ok(tensor_mul(ok(tensor_mul(w, x)), x))));
		assert_done(tensor_cuda_graph_capture_end(a));
		assert_done(tensor_cuda_graph_replay(a));
		tensor_scope {
			tensor *grad = ok(gradient_of(y, w));

			assert_true(value_of(tensor_sum(grad)) == 4 * 64);
			assert_done(tensor_cuda_graph_capture_begin(b, a));
		}
		z = ok(tensor_add(x, x));
		assert_done(tensor_cuda_graph_capture_end(b));
		assert_done(tensor_cuda_graph_replay(b));
		assert_true(value_of(tensor_sum(z)) == 4 * 64);
		assert_done(tensor_cuda_graph_release(b));
		assert_done(tensor_cuda_graph_release(a));
	}
}

/* What waits for one device is no part of a capture on another one. */
static void another_device_works_during_a_capture(void **state)
{
	const tensor_options on_other = TENSOR_OPTIONS(.device = TENSOR_DEVICE_CUDA(1));

	NEED_DEVICE();
	if (tensor_cuda_device_count() < 2)
		skip();
	tensor_scope {
		tensor_cuda_graph *g = new_graph(), *other = tensor_cuda_graph_new(1);
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(200), CUDA)), *y, *a, *b;

		assert_non_null(other);
		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		y = ok(tensor_add(x, x));
		a = ok(tensor_full(TENSOR_SHAPE(3), S(2.0), on_other));
		assert_true(value_of(tensor_sum(ok(tensor_mul(a, a)))) == 12);
		assert_true(value_of(tensor_sum(ok(tensor_nonzero(a)))) == 3);
		assert_done(tensor_cuda_synchronize(1));
		assert_done(tensor_cuda_memory_trim(1));
		assert_done(tensor_cuda_graph_capture_begin(other, NULL));
		b = ok(tensor_add(a, a));
		assert_done(tensor_cuda_graph_capture_end(other));
		assert_done(tensor_cuda_graph_replay(other));
		assert_done(tensor_cuda_graph_wait(other));
		assert_true(value_of(tensor_sum(b)) == 12);
		assert_done(tensor_cuda_graph_release(other));
		y = ok(tensor_add(y, x));
		assert_done(tensor_cuda_graph_capture_end(g));
		assert_done(tensor_cuda_graph_replay(g));
		assert_true(value_of(tensor_sum(y)) == 600);
		assert_done(tensor_cuda_graph_release(g));
	}
}

static void *capture_and_end(void *graph)
{
	return tensor_cuda_graph_capture_begin(graph, NULL) < 0 ? "no capture" : NULL;
}

static void a_thread_that_ends_ends_its_capture(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor_cuda_graph *g = new_graph();
		pthread_t thread;
		void *error;

		assert_int_equal(pthread_create(&thread, NULL, capture_and_end, g), 0);
		pthread_join(thread, &error);
		assert_null(error);
		assert_int_equal(tensor_cuda_graph_capture_end(g), -ECANCELED);
		assert_done(tensor_cuda_synchronize(0));
		assert_done(tensor_cuda_graph_release(g));
	}
}

static void a_child_of_a_fork_in_a_capture_cannot_use_the_graph(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor_cuda_graph *g = new_graph(), *ready = new_graph();
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(200), CUDA)), *y;
		int status;
		pid_t child;

		assert_done(tensor_cuda_graph_capture_begin(ready, NULL));
		ok(tensor_add(x, x));
		assert_done(tensor_cuda_graph_capture_end(ready));
		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		y = tensor_retain(ok(tensor_add(x, x)));
		child = fork();
		if (!child)
			_exit(tensor_cuda_graph_replay(ready) != -ENODEV ||
			      tensor_cuda_graph_capture_end(g) != -ENODEV ||
			      tensor_cuda_graph_release(ready) || tensor_cuda_graph_release(g) ||
			      (tensor_release(y), tensor_cuda_is_capturing(0)));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		assert_done(tensor_cuda_graph_capture_end(g));
		assert_done(tensor_cuda_graph_replay(g));
		assert_true(value_of(tensor_sum(y)) == 400);
		tensor_release(y);
		assert_done(tensor_cuda_graph_release(g));
		assert_done(tensor_cuda_graph_release(ready));
	}
}

static void calls_in_a_wrong_state_are_errors(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor_cuda_graph *g = new_graph(), *other = new_graph();

		assert_null(tensor_cuda_graph_new(1000));
		assert_int_equal(tensor_last_error()->code, ENODEV);
		assert_int_equal(tensor_cuda_graph_capture_begin(NULL, NULL), -EINVAL);
		assert_int_equal(tensor_cuda_graph_capture_end(g), -EINVAL);
		assert_int_equal(tensor_cuda_graph_replay(g), -EINVAL);
		assert_int_equal(tensor_cuda_graph_wait(g), -EINVAL);
		assert_done(tensor_cuda_graph_reset(g));
		assert_done(tensor_cuda_graph_capture_begin(g, NULL));
		assert_int_equal(tensor_cuda_graph_capture_begin(other, NULL), -EBUSY);
		assert_int_equal(tensor_cuda_graph_replay(g), -EINVAL);
		assert_int_equal(tensor_cuda_set_stream(0, NULL), -EBUSY);
		assert_done(tensor_cuda_graph_capture_end(g));
		assert_int_equal(tensor_cuda_graph_capture_end(g), -EINVAL);
		assert_int_equal(tensor_cuda_graph_register_generator(g, NULL), -EBUSY);
		assert_done(tensor_cuda_graph_replay(g)); /* of nothing */
		assert_done(tensor_cuda_graph_release(other));
		assert_done(tensor_cuda_graph_release(g));
		assert_done(tensor_cuda_graph_release(NULL));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_replay_runs_what_was_captured),
		cmocka_unit_test(a_captured_step_of_sgd_equals_eager_steps),
		cmocka_unit_test(ten_replays_of_adam_with_dropout_equal_eager_steps),
		cmocka_unit_test(a_captured_step_of_adagrad_equals_eager_steps),
		cmocka_unit_test(two_captured_steps_equal_eager_steps),
		cmocka_unit_test(replays_draw_the_numbers_that_eager_calls_would_draw),
		cmocka_unit_test(a_checkpoint_in_a_capture_draws_its_numbers_again),
		cmocka_unit_test(a_replay_copies_pinned_memory_that_the_graph_holds),
		cmocka_unit_test(each_failing_call_is_an_error_and_leaves_nothing),
		cmocka_unit_test(what_waits_for_the_device_ends_the_capture),
		cmocka_unit_test(the_first_step_of_an_optimizer_is_refused),
		cmocka_unit_test(an_index_out_of_range_in_a_replay_is_reported_by_a_wait),
		cmocka_unit_test(memory_of_a_capture_is_not_used_by_others),
		cmocka_unit_test(a_graph_holds_the_memory_that_it_uses),
		cmocka_unit_test(two_graphs_share_a_pool),
		cmocka_unit_test(many_captures_leave_no_memory),
		cmocka_unit_test(replays_in_two_streams_follow_each_other),
		cmocka_unit_test(another_thread_works_during_a_capture),
		cmocka_unit_test(a_captured_forward_has_an_eager_backward),
		cmocka_unit_test(another_device_works_during_a_capture),
		cmocka_unit_test(a_thread_that_ends_ends_its_capture),
		cmocka_unit_test(a_child_of_a_fork_in_a_capture_cannot_use_the_graph),
		cmocka_unit_test(calls_in_a_wrong_state_are_errors),
	};

	return cmocka_run_group_tests_name("cuda_graph", tests, NULL, NULL);
}
