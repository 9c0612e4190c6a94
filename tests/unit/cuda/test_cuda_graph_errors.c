// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Graphs: calls that fail, and what cannot be captured. On the emulation (make test-cuda) or a GPU, else skipped. */
#include "cuda_graph.h"

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
	unsigned long n = 0, failures = 0;
	bool failed = true;

	inject = emulation("cuda_host_fail");
	calls = emulation("cuda_host_calls");
	if (!inject || !calls)
		skip();
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(3, 3), CUDA));
		tensor *i = on_cuda(tensor_from_data(order, TENSOR_SHAPE(3), I64));
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
static tensor *different_slices(tensor *x)
{
	tensor *values, *inverse, *counts;

	return tensor_unique_dim(tensor_reshape(x, TENSOR_SHAPE(4, 2)), 0, true, true, true,
				 &values, &inverse, &counts) < 0 ?
		       NULL :
		       values;
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
		item_of,      to_host, from_host,  positions,	     permutation,
		synchronised, trimmed, of_the_cpu, different_slices,
	};

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		check_refused(ops[i], EOPNOTSUPP);
	foreign = tensor_generator_new(1);
	check_refused(other_generator, EINVAL);
	tensor_generator_release(foreign);
	check_refused(without_memory, ENOMEM);
}

static void an_index_out_of_range_in_a_replay_is_reported_by_a_wait(void **state)
{
	static const int64_t good[] = { 0, 1, 2 }, bad[] = { 0, 9, 2 };

	NEED_DEVICE();
	tensor_scope {
		tensor_cuda_graph *g = new_graph();
		tensor *x = on_cuda(tensor_linspace(S(-1.0), S(2.0), 4, CPU)), *y;
		tensor *i = on_cuda(tensor_from_data(good, TENSOR_SHAPE(3), I64));

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
		cmocka_unit_test(each_failing_call_is_an_error_and_leaves_nothing),
		cmocka_unit_test(what_waits_for_the_device_ends_the_capture),
		cmocka_unit_test(an_index_out_of_range_in_a_replay_is_reported_by_a_wait),
		cmocka_unit_test(calls_in_a_wrong_state_are_errors),
	};

	return cmocka_run_group_tests_name("cuda_graph_errors", tests, NULL, NULL);
}
