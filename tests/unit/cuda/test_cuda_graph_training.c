// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Graphs of steps of training. On the emulation (make test-cuda) or a GPU, else skipped. */
#include "cuda_graph.h"

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
	t = on_cuda(t);
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
	n->target = on_cuda(tensor_from_data(classes, TENSOR_SHAPE(4), I64));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_captured_step_of_sgd_equals_eager_steps),
		cmocka_unit_test(ten_replays_of_adam_with_dropout_equal_eager_steps),
		cmocka_unit_test(a_captured_step_of_adagrad_equals_eager_steps),
		cmocka_unit_test(two_captured_steps_equal_eager_steps),
		cmocka_unit_test(a_checkpoint_in_a_capture_draws_its_numbers_again),
		cmocka_unit_test(the_first_step_of_an_optimizer_is_refused),
		cmocka_unit_test(a_captured_forward_has_an_eager_backward),
	};

	return cmocka_run_group_tests_name("cuda_graph_training", tests, NULL, NULL);
}
