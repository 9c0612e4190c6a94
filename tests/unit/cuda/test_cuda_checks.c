// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Checks of values on a device: late ones, whose error is that of a later wait, and those for which the call waits. */
#include "cuda_results.h"

static tensor *indices(tensor_ints shape, const int64_t *values)
{
	return on_cuda(integers(shape, values));
}

static void expect_late(const char *text, int code)
{
	assert_fails(tensor_cuda_synchronize(0), code, text);
	assert_contains(tensor_last_error()->text, "reported late, by cuda_synchronize");
	assert_contains(tensor_last_error()->text, "TENSOR_CUDA_CHECKS=wait");
	assert_null(strstr(tensor_last_error()->text, "more"));
	assert_done(tensor_cuda_synchronize(0)); /* once */
}

static int setup(void **state)
{
	return tensor_cuda_is_available() && tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_LATE) < 0;
}

/* ---- operators that read ---- */

static void indices_out_of_range_read_as_zero(void **state)
{
	NEED_DEVICE();
	for (int64_t width = 1; width < 80; width = 3 * width + 1)
		tensor_scope {
			tensor *a = pseudo_random(TENSOR_SHAPE(4, width), TENSOR_F32),
			       *g = on_cuda(a);
			tensor *past = indices(TENSOR_SHAPE(4), (int64_t[]){ 1, 4, 7, 2 });
			tensor *near = integers(TENSOR_SHAPE(4), (int64_t[]){ 1, 0, 0, 2 });
			tensor *kept = integers(TENSOR_SHAPE(4, 1), (int64_t[]){ 1, 0, 0, 1 });
			tensor *want =
				tensor_mul(tensor_index_select(a, 0, near), tensor_to(kept, F32));
			tensor *got = ok(tensor_index_select(g, 0, past));

			expect_late(
				"index_select: index 4 is out of range for a dimension of size 4",
				ERANGE);
			assert_near(got, want, 0);
			got = ok(tensor_embedding(g, past, -1, false, false));
			expect_late("index 4 is out of range", ERANGE);
			assert_near(got, want, 0);
			got = ok(tensor_index_at(g, tensor_unsqueeze(past, 0), TENSOR_INTS(0)));
			expect_late("index: index 4 is out of range", ERANGE);
			assert_near(got, want, 0);
		}
}

static void gather_reads_zero_out_of_range(void **state)
{
	static const int64_t at[] = { 0, 7, 2, -1, 1, 3, 3, 0 };

	NEED_DEVICE();
	for (int32_t narrow = 0; narrow < 2; narrow++)
		tensor_scope {
			tensor *g = on_cuda(iota(1, TENSOR_SHAPE(1, 4))),
			       *i = indices(TENSOR_SHAPE(1, 8), at);
			tensor *got;

			if (narrow)
				i = ok(tensor_to(i, CUDA_OF(TENSOR_I32)));
			got = ok(tensor_gather(g, 1, i));
			expect_late("gather: index 7 is out of range for a dimension of size 4",
				    ERANGE);
			assert_values(got, 0, 1, 0, 3, 0, 2, 4, 4, 1);
		}
}

static void other_operators_report_late(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *x = on_cuda(pseudo_random(TENSOR_SHAPE(3, 4), TENSOR_F32)), *y[4];
		tensor *classes = indices(TENSOR_SHAPE(3), (int64_t[]){ 0, 4, -1 });
		tensor *at = indices(TENSOR_SHAPE(3), (int64_t[]){ 1, 3, 0 });
		tensor *good = indices(TENSOR_SHAPE(3), (int64_t[]){ 0, 2, 2 });
		tensor *down = indices(TENSOR_SHAPE(3), (int64_t[]){ 0, 2, 1 });
		tensor *p = on_cuda(ok(tensor_full(TENSOR_SHAPE(8), S(1.5), F32)));
		tensor *w = on_cuda(ok(tensor_neg(ok(tensor_ones(TENSOR_SHAPE(8), F32)))));

		assert_done(
			tensor_nll_loss_forward(x, classes, tensor_none, 1, -100, &y[0], &y[1]));
		expect_late("nll_loss: target of row 1 is class 4, expected 0 to 3", EINVAL);
		ok(tensor_nll_loss_backward(ok(tensor_ones(TENSOR_SHAPE(), CUDA)), x, classes,
					    tensor_none, 1, -100, y[1]));
		expect_late("target of row 1 is class 4", EINVAL);
		assert_done(tensor_embedding_bag_parts(x, at, good, false, 0, false, tensor_none,
						       false, -1, &y[0], &y[1], &y[2], &y[3]));
		expect_late("embedding_bag: index 3 is out of range for 3 rows", ERANGE);
		assert_done(tensor_embedding_bag_parts(x, good, down, false, 0, false, tensor_none,
						       false, -1, &y[0], &y[1], &y[2], &y[3]));
		expect_late("offsets must ascend from 0 to at most 3, got 1 at 2", EINVAL);
		ok(tensor_bernoulli(p));
		expect_late("bernoulli: probabilities must be within [0, 1]", EINVAL);
		ok(tensor_multinomial(w, 2, true));
		expect_late("multinomial: weights must be finite", EINVAL);
		ok(tensor_multinomial(ok(tensor_zeros(TENSOR_SHAPE(8), CUDA)), 2, false));
		expect_late("a finite sum", EINVAL);
	}
}

/* ---- operators that write ---- */

static void refused_writes_change_nothing(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(4, 8), TENSOR_F32), *g = on_cuda(a);
		tensor *s = on_cuda(pseudo_random(TENSOR_SHAPE(3, 8), TENSOR_F32));
		tensor *past = indices(TENSOR_SHAPE(3), (int64_t[]){ 0, 4, 7 });
		tensor *wide = indices(TENSOR_SHAPE(1, 8), (int64_t[]){ 0, 1, 2, 3, 4, 5, 6, -9 });
		tensor *pair = indices(TENSOR_SHAPE(2, 3), (int64_t[]){ 0, 1, -4, 7, 8, -8 });

		ok(tensor_index_add_(g, 0, past, s));
		expect_late("index 4 is out of range for a dimension of size 4", ERANGE);
		ok(tensor_index_copy_(g, 0, past, s));
		expect_late("index_copy_: index 4 is out of range", ERANGE);
		ok(tensor_scatter_(g, 0, wide, s));
		expect_late("scatter_.src: index 4 is out of range", ERANGE);
		ok(tensor_scatter_add_(g, 0, wide, s));
		expect_late("index 4 is out of range", ERANGE);
		ok(tensor_index_put_at_(g, pair, TENSOR_INTS(0, 1), tensor_select(s, 1, 0), true));
		expect_late("index 8 is out of range for a dimension of size 8", ERANGE);
		ok(tensor_index_put_at_(g, pair, TENSOR_INTS(0, 1), tensor_select(s, 1, 0), false));
		expect_late("index 8", ERANGE);
		ok(tensor_scatter_reduce_opt_(g, 0, wide, s, "mean", false));
		assert_fails(tensor_cuda_synchronize(0), ERANGE, "scatter_reduce_.two: index 4");
		ok(tensor_embedding_dense_backward(s, past, 4, -1, false));
		expect_late("index 4 is out of range", ERANGE);
		assert_near(g, a, 0);
		/* Everything works after it. */
		ok(tensor_index_add_(g, 0, indices(TENSOR_SHAPE(1), (int64_t[]){ 2 }),
				     tensor_slice(s, 0, 0, 1, 1)));
		assert_done(tensor_cuda_synchronize(0));
	}
}

static tensor *floor_divide_(tensor *x, tensor *y)
{
	return tensor_div_mode_(x, y, "floor");
}

/* With strides, broadcast divisors and lengths of packs and of single elements. */
static void divisions_by_zero_in_place_change_nothing(void **state)
{
	static tensor *(*const in_place[])(tensor *, tensor *) = { tensor_remainder_, tensor_fmod_,
								   floor_divide_ };
	static tensor *(*const functions[])(tensor *, tensor *) = { tensor_remainder, tensor_fmod,
								    tensor_floor_divide };
	static const enum tensor_dtype dtypes[] = { TENSOR_U8, TENSOR_I16, TENSOR_I32, TENSOR_I64 };

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(dtypes) * ARRAY_SIZE(in_place); i++)
		tensor_scope {
			const enum tensor_dtype d = dtypes[i / ARRAY_SIZE(in_place)];
			tensor *(*const divide_)(tensor *, tensor *) =
				in_place[i % ARRAY_SIZE(in_place)];
			tensor *a = ok(tensor_to(iota(1, TENSOR_SHAPE(6, 33)), OF(d))),
			       *g = on_cuda(a);
			tensor *y = ok(tensor_to(iota(0, TENSOR_SHAPE(33)), OF(d))),
			       *gy = on_cuda(y);
			tensor *good = ok(tensor_add_scalar(gy, S(1)));

			ok(divide_(g, gy));
			expect_late("integer division by zero", EDOM);
			ok(divide_(tensor_slice(g, 1, 0, 33, 2), tensor_slice(gy, 0, 0, 33, 2)));
			expect_late("integer division by zero", EDOM);
			assert_near(g, a, 0);
			ok(functions[i % ARRAY_SIZE(in_place)](g, gy));
			expect_late("integer division by zero", EDOM);
			assert_fails(divide_(g, ok(tensor_zeros(TENSOR_SHAPE(), OF(d)))), EDOM,
				     "by zero");
			ok(divide_(g, good));
			assert_done(tensor_cuda_synchronize(0));
			assert_near(g, divide_(a, tensor_to(good, CPU)), 0);
		}
}

/* In place, but computed apart: in another dtype, or of a divisor that shares memory. */
static void divisions_computed_apart_change_nothing(void **state)
{
	static tensor *(*const in_place[])(tensor *, tensor *) = { tensor_remainder_, tensor_fmod_,
								   floor_divide_ };

	NEED_DEVICE();
	for (size_t i = 0; i < ARRAY_SIZE(in_place); i++)
		tensor_scope {
			tensor *a = ok(tensor_to(iota(1, TENSOR_SHAPE(9, 9)), OF(TENSOR_I16))),
			       *g = on_cuda(a);
			tensor *y = on_cuda(ok(tensor_to(iota(0, TENSOR_SHAPE(9)), I64)));
			tensor *b = ok(tensor_to(iota(0, TENSOR_SHAPE(9, 9)), I64)),
			       *h = on_cuda(b);
			tensor *good = ok(tensor_add_scalar(y, S(1)));

			ok(in_place[i](g, y));
			expect_late("integer division by zero", EDOM);
			ok(in_place[i](tensor_transpose(g, 0, 1), y));
			expect_late("integer division by zero", EDOM);
			assert_near(g, a, 0);
			ok(in_place[i](h, tensor_transpose(h, 0, 1)));
			expect_late("integer division by zero", EDOM);
			ok(in_place[i](h, tensor_select(h, 0, 0)));
			expect_late("integer division by zero", EDOM);
			assert_near(h, b, 0);
			ok(in_place[i](tensor_transpose(g, 0, 1), good));
			ok(in_place[i](h, tensor_select(h, 0, 1)));
			assert_done(tensor_cuda_synchronize(0));
			ok(in_place[i](tensor_transpose(a, 0, 1), tensor_to(good, CPU)));
			ok(in_place[i](b, tensor_select(b, 0, 1)));
			assert_near(g, a, 0);
			assert_near(h, b, 0);
		}
}

/* ---- which call reports ---- */

static void refuse(tensor *g)
{
	ok(tensor_index_select(g, 0, indices(TENSOR_SHAPE(2), (int64_t[]){ 1, 9 })));
}

static void calls_that_wait_report(void **state)
{
	static const char text[] = "index 9 is out of range for a dimension of size 4";

	NEED_DEVICE();
	tensor_scope {
		tensor *g = on_cuda(iota(0, TENSOR_SHAPE(4))),
		       *host = ok(tensor_zeros(TENSOR_SHAPE(4), F32));
		tensor_cuda_event *e = tensor_cuda_event_new(0, 0);
		double v;

		refuse(g);
		assert_fails(tensor_item(tensor_select(g, 0, 1), &v), ERANGE, text);
		assert_done(tensor_item(tensor_select(g, 0, 1), &v));
		refuse(g);
		assert_fails(tensor_to(g, CPU), ERANGE, text);
		refuse(g);
		assert_fails(tensor_copy_(host, g), ERANGE, text);
		refuse(g);
		ok(tensor_copy_(g, host)); /* a copy to the device gives no value to the program */
		assert_fails(tensor_nonzero(g), ERANGE, text);
		ok(tensor_nonzero(g));
		refuse(g);
		assert_fails(tensor_cuda_stream_synchronize(0, tensor_cuda_current_stream(0)),
			     ERANGE, text);
		refuse(g);
		assert_done(tensor_cuda_event_record(e, tensor_cuda_current_stream(0)));
		assert_fails(tensor_cuda_event_synchronize(e), ERANGE, text);
		tensor_cuda_event_release(e);
		assert_done(tensor_cuda_synchronize(0));
	}
}

static void a_trim_reports(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *g = on_cuda(iota(0, TENSOR_SHAPE(4)));
		int err;

		refuse(g);
		err = tensor_cuda_memory_trim(0); /* waits in some configurations only */
		assert_true(!err || err == -ERANGE);
		assert_true((tensor_cuda_synchronize(0) < 0) == !err);
		assert_done(tensor_cuda_synchronize(0));
	}
}

static void the_first_error_is_reported_with_the_number_of_others(void **state)
{
	NEED_DEVICE();
	for (int n = 2; n < 200; n = 3 * n)
		tensor_scope {
			tensor *a = pseudo_random(TENSOR_SHAPE(4, 2), TENSOR_F32), *g = on_cuda(a);
			tensor *past = indices(TENSOR_SHAPE(1), (int64_t[]){ 5 });
			tensor *good = indices(TENSOR_SHAPE(1), (int64_t[]){ 1 }), *y;
			tensor *row = on_cuda(pseudo_random(TENSOR_SHAPE(1, 2), TENSOR_F32));
			char more[32];

			for (int i = 0; i < n; i++)
				ok(i ? tensor_index_add_(g, 0, past, row) :
				       tensor_index_select(g, 0, past));
			y = ok(tensor_index_select(g, 0, good));
			assert_fails(tensor_cuda_synchronize(0), ERANGE, "index_select: index 5");
			snprintf(more, sizeof(more), ", and %d more;", n - 1);
			assert_contains(tensor_last_error()->text, more);
			assert_done(tensor_cuda_synchronize(0));
			assert_near(y, tensor_slice(a, 0, 1, 2, 1), 0);
			assert_near(g, a, 0);
		}
}

static void the_value_is_that_of_the_lowest_position(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		const int64_t n = 20000;
		tensor *i = ok(tensor_to(iota(0, TENSOR_SHAPE(n)), I64)),
		       *g = on_cuda(iota(0, TENSOR_SHAPE(7)));

		i = on_cuda(i);
		ok(tensor_gather(g, 0, i));
		/* The index is overwritten, and its memory used again, before the report. */
		ok(tensor_fill_(i, S(-77)));
		expect_late("gather: index 7 is out of range for a dimension of size 7", ERANGE);
		ok(tensor_index_select(
			g, 0,
			tensor_flip(on_cuda(ok(tensor_to(iota(0, TENSOR_SHAPE(n)), I64))),
				    TENSOR_INTS(0))));
		expect_late("index_select: index 19999", ERANGE);
	}
}

static void a_backward_reports_late(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *w = on_cuda(pseudo_random(TENSOR_SHAPE(4, 8), TENSOR_F32));
		tensor *i = indices(TENSOR_SHAPE(3), (int64_t[]){ 0, 4, 2 });

		assert_done(tensor_set_requires_grad(w, true));
		assert_done(tensor_backward(tensor_sum(tensor_embedding(w, i, -1, false, false))));
		assert_fails(tensor_cuda_synchronize(0), ERANGE, "index 4 is out of range");
		assert_contains(tensor_last_error()->text, ", and 1 more;");
		assert_done(tensor_cuda_synchronize(0));
		assert_near(tensor_grad(w), tensor_zeros(TENSOR_SHAPE(4, 8), F32), 0);
	}
}

/* ---- the mode ---- */

static void calls_that_wait_for_checks_fail_themselves(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor *a = pseudo_random(TENSOR_SHAPE(4, 8), TENSOR_F32), *g = on_cuda(a);
		tensor *past = indices(TENSOR_SHAPE(2), (int64_t[]){ 0, 4 });

		assert_int_equal(tensor_cuda_checks(), TENSOR_CUDA_CHECKS_LATE);
		assert_fails(tensor_cuda_set_checks(2), EINVAL, "mode 2");
		ok(tensor_index_select(g, 0, past)); /* stays late */
		assert_int_equal(tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_WAIT),
				 TENSOR_CUDA_CHECKS_LATE);
		ok(tensor_index_select(g, 0, indices(TENSOR_SHAPE(1), (int64_t[]){ 3 })));
		assert_fails(tensor_gather(g, 1,
					   tensor_unsqueeze(
						   indices(TENSOR_SHAPE(1), (int64_t[]){ 8 }), 0)),
			     ERANGE, "gather: index 8 is out of range for a dimension of size 8");
		assert_null(strstr(tensor_last_error()->text, "late"));
		assert_fails(tensor_index_add_(g, 0, past, tensor_slice(on_cuda(a), 0, 0, 2, 1)),
			     ERANGE, "index 4");
		assert_int_equal(tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_LATE),
				 TENSOR_CUDA_CHECKS_WAIT);
		expect_late("index_select: index 4", ERANGE);
		assert_near(g, a, 0);
	}
}

/* The log and what was read from it are full of late errors, which ran before the call or wait in its stream. */
static void a_call_that_waits_fails_beside_many_late_errors(void **state)
{
	NEED_DEVICE();
	for (int n = 31; n < 100; n += 1 + n % 33)
		tensor_scope {
			tensor *g = on_cuda(pseudo_random(TENSOR_SHAPE(4, 2), TENSOR_F32));
			tensor *past = indices(TENSOR_SHAPE(1), (int64_t[]){ 5 });
			tensor *own = indices(TENSOR_SHAPE(1), (int64_t[]){ 9 });
			char more[32];

			for (int i = 0; i < n; i++)
				ok(tensor_index_select(g, 0, past));
			tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_WAIT);
			assert_fails(tensor_index_select(g, 0, own), ERANGE, "index 9");
			assert_fails(tensor_index_select(g, 0, own), ERANGE, "index 9");
			ok(tensor_index_select(g, 0, indices(TENSOR_SHAPE(1), (int64_t[]){ 3 })));
			tensor_cuda_set_checks(TENSOR_CUDA_CHECKS_LATE);
			assert_fails(tensor_cuda_synchronize(0), ERANGE, "index 5");
			snprintf(more, sizeof(more), ", and %d more;", n - 1);
			assert_contains(tensor_last_error()->text, more);
			assert_done(tensor_cuda_synchronize(0));
		}
}

/* ---- graphs ---- */

static void replays_of_divisions_are_checked(void **state)
{
	NEED_DEVICE();
	tensor_scope {
		tensor_cuda_graph *graph = tensor_cuda_graph_new(0);
		tensor *x = indices(TENSOR_SHAPE(2), (int64_t[]){ 7, 9 });
		tensor *y = indices(TENSOR_SHAPE(2), (int64_t[]){ 4, 5 });

		assert_done(tensor_cuda_graph_capture_begin(graph, NULL));
		ok(tensor_remainder_(x, y));
		assert_done(tensor_cuda_graph_capture_end(graph));
		assert_done(tensor_cuda_graph_replay(graph));
		assert_done(tensor_cuda_graph_wait(graph));
		assert_values(x, 0, 3, 4);
		ok(tensor_copy_(y, integers(TENSOR_SHAPE(2), (int64_t[]){ 2, 0 })));
		assert_done(tensor_cuda_graph_replay(graph));
		assert_int_equal(tensor_cuda_graph_wait(graph), -ERANGE);
		assert_done(tensor_cuda_synchronize(0));
		assert_values(x, 0, 3, 4);
		ok(tensor_copy_(y, integers(TENSOR_SHAPE(2), (int64_t[]){ 2, 3 })));
		assert_done(tensor_cuda_graph_replay(graph));
		assert_done(tensor_cuda_graph_wait(graph));
		assert_values(x, 0, 1, 1);
		assert_done(tensor_cuda_graph_release(graph));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(indices_out_of_range_read_as_zero),
		cmocka_unit_test(gather_reads_zero_out_of_range),
		cmocka_unit_test(other_operators_report_late),
		cmocka_unit_test(refused_writes_change_nothing),
		cmocka_unit_test(divisions_by_zero_in_place_change_nothing),
		cmocka_unit_test(divisions_computed_apart_change_nothing),
		cmocka_unit_test(calls_that_wait_report),
		cmocka_unit_test(a_trim_reports),
		cmocka_unit_test(the_first_error_is_reported_with_the_number_of_others),
		cmocka_unit_test(the_value_is_that_of_the_lowest_position),
		cmocka_unit_test(a_backward_reports_late),
		cmocka_unit_test(calls_that_wait_for_checks_fail_themselves),
		cmocka_unit_test(a_call_that_waits_fails_beside_many_late_errors),
		cmocka_unit_test(replays_of_divisions_are_checked),
	};

	return cmocka_run_group_tests_name("cuda_checks", tests, setup, NULL);
}
