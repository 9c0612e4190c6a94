// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Graphs: captured work, replayed. On the emulation (make test-cuda) or a GPU, else skipped. */
#include "cuda_graph.h"

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
	int (*create)(void **stream, unsigned flags) = emulation("cudaStreamCreateWithFlags");
	int (*destroy)(void *stream) = emulation("cudaStreamDestroy");
	void *stream[2];

	if (!create || !destroy)
		skip();
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
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_replay_runs_what_was_captured),
		cmocka_unit_test(replays_draw_the_numbers_that_eager_calls_would_draw),
		cmocka_unit_test(a_replay_copies_pinned_memory_that_the_graph_holds),
		cmocka_unit_test(memory_of_a_capture_is_not_used_by_others),
		cmocka_unit_test(a_graph_holds_the_memory_that_it_uses),
		cmocka_unit_test(two_graphs_share_a_pool),
		cmocka_unit_test(many_captures_leave_no_memory),
		cmocka_unit_test(replays_in_two_streams_follow_each_other),
	};

	return cmocka_run_group_tests_name("cuda_graph", tests, NULL, NULL);
}
