// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Learning-rate schedules against PyTorch's over 200 steps; torch_optim.py prints the numbers. */
#include "check.h"

#define STEPS 200

static const int places[7] = { 0, 1, 7, 59, 60, 121, 199 };
static const int64_t milestones[] = { 10, 60, 60, 150 };

static const struct {
	const char *name;
	tensor_schedule schedule;
	double total, lr[7]; /* the sum of lr * (1 + sin(step)), and the rates at some steps */
} rows[] = {
	{ "step",
	  { .kind = TENSOR_SCHEDULE_STEP, .steps = 30 },
	  13.86280232304818,
	  { 0.4, 0.4, 0.4, 0.04000000000000001, 0.004000000000000001, 4.000000000000002e-05,
	    4.000000000000002e-07 } },
	{ "step half",
	  { .kind = TENSOR_SCHEDULE_STEP, .steps = 7, .gamma = 0.9 },
	  26.964446608433764,
	  { 0.4, 0.4, 0.36000000000000004, 0.1721868840000001, 0.1721868840000001,
	    0.06670872679866632, 0.020933905321094445 } },
	{ "multi",
	  { .kind = TENSOR_SCHEDULE_MULTI_STEP, .milestones = { milestones, 4 }, .gamma = 0.5 },
	  20.47041014334808,
	  { 0.4, 0.4, 0.4, 0.2, 0.05, 0.05, 0.025 } },
	{ "exp",
	  { .kind = TENSOR_SCHEDULE_EXPONENTIAL, .gamma = 0.98 },
	  20.014247447447048,
	  { 0.4, 0.392, 0.347250213298688, 0.12145026232331445, 0.11902125707684816,
	    0.034706846108575294, 0.007178753716621015 } },
	{ "linear",
	  { .kind = TENSOR_SCHEDULE_LINEAR, .steps = 60 },
	  71.9835269460048,
	  { 0.13333333333333333, 0.13777777777777778, 0.16444444444444437, 0.39555555555555505,
	    0.3999999999999995, 0.3999999999999995, 0.3999999999999995 } },
	{ "linear down",
	  { .kind = TENSOR_SCHEDULE_LINEAR, .steps = 120, .start_factor = 1, .end_factor = 0.1 },
	  30.143833126733522,
	  { 0.4, 0.397, 0.379, 0.22299999999999995, 0.21999999999999995, 0.03999999999999995,
	    0.03999999999999995 } },
	{ "cosine",
	  { .kind = TENSOR_SCHEDULE_COSINE, .steps = 200, .min_lr = 0.01 },
	  41.56107632511791,
	  { 0.4, 0.39997594333392383, 0.39882238631376005, 0.3220819439385472, 0.3196181241970321,
	    0.1418361034513608, 0.010024056666076185 } },
	{ "cosine again",
	  { .kind = TENSOR_SCHEDULE_COSINE, .steps = 60, .min_lr = 0.01 },
	  38.27905982162869,
	  { 0.4, 0.3997327592771419, 0.3870481831669544, 0.010267240722858104, 0.01,
	    0.39973275927714297, 0.09879538817206988 } },
	{ "warm cosine",
	  { .kind = TENSOR_SCHEDULE_COSINE, .warmup = 20, .warmup_factor = 0.1, .steps = 180 },
	  40.47453778638019,
	  { 0.04000000000000001, 0.05800000000000001, 0.16600000000000004, 0.3554291922913941,
	    0.3532088886237955, 0.16183820092469095, 3.046096872174608e-05 } },
	{ "warm const",
	  { .warmup = 50 },
	  73.31681174887773,
	  { 0.13333333333333333, 0.13866666666666666, 0.17066666666666674, 0.3999999999999998,
	    0.3999999999999998, 0.3999999999999998, 0.3999999999999998 } },
	{ "onecycle",
	  { .kind = TENSOR_SCHEDULE_ONE_CYCLE, .steps = 200 },
	  40.29450762693897,
	  { 0.016000000000000014, 0.016272122430061764, 0.029183453929151004, 0.4,
	    0.3999496471899134, 0.23571203611421152, 1.6e-06 } },
	{ "onecycle linear",
	  { .kind = TENSOR_SCHEDULE_ONE_CYCLE,
	    .linear = true,
	    .steps = 200,
	    .pct_start = 0.25,
	    .div_factor = 10,
	    .final_div_factor = 100 },
	  40.85897607588644,
	  { 0.04, 0.0473469387755102, 0.09142857142857144, 0.37336, 0.370696, 0.20819200000000002,
	    0.00040000000000001146 } },
	{ "onecycle three",
	  { .kind = TENSOR_SCHEDULE_ONE_CYCLE, .three_phase = true, .steps = 200 },
	  25.214265419845987,
	  { 0.016000000000000014, 0.016272122430061764, 0.029183453929151004, 0.4,
	    0.3997278775699383, 0.015945912271249352, 1.6e-06 } },
};

static const struct {
	const char *name;
	tensor_plateau plateau;
	double total, lr[7];
} plateaus[] = {
	{ "plateau",
	  { .factor = 0 },
	  6.203834588592711,
	  { 0.4, 0.4, 0.4, 4.0000000000000015e-06, 4.0000000000000015e-06, 4.000000000000002e-09,
	    4.000000000000002e-09 } },
	{ "plateau max",
	  { .factor = 0.5,
	    .threshold = 0.01,
	    .min_lr = 0.001,
	    .patience = -1,
	    .cooldown = 3,
	    .maximize = true,
	    .absolute = true },
	  2.874347082738903,
	  { 0.4, 0.4, 0.1, 0.001, 0.001, 0.001, 0.001 } },
};

static void check(const char *name, const double *lr, double total, const double *want)
{
	double sum = 0;

	for (int i = 0; i < STEPS; i++)
		sum += lr[i] * (1 + sin(i));
	for (int i = 0; i < 7; i++)
		if (fabs(lr[places[i]] - want[i]) > 1e-13)
			fail_msg("%s: step %d has %.17g, PyTorch %.17g", name, places[i],
				 lr[places[i]], want[i]);
	if (fabs(sum - total) > 1e-11)
		fail_msg("%s: the sum is %.17g, PyTorch's %.17g", name, sum, total);
}

static tensor_optim *optimizer(double lr)
{
	tensor *p = ok(tensor_ones(TENSOR_SHAPE(1), F64));
	tensor_optim *o = tensor_optim_new(TENSOR_LIST(p), TENSOR_SGD(.lr = lr));

	assert_non_null(o);
	return o;
}

static void schedules_equal_pytorch(void **state)
{
	tensor_scope {
		for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
			tensor_optim *o = optimizer(0.4);
			double lr[STEPS];

			for (int i = 0; i < STEPS; i++) {
				assert_done(tensor_schedule_apply(&rows[k].schedule, o, i));
				lr[i] = tensor_optim_lr(o, 0);
				assert_true(lr[i] == tensor_schedule_lr(&rows[k].schedule, 0.4, i));
			}
			check(rows[k].name, lr, rows[k].total, rows[k].lr);
			tensor_optim_free(o);
		}
	}
}

static void plateau_equals_pytorch(void **state)
{
	tensor_scope {
		for (size_t k = 0; k < ARRAY_SIZE(plateaus); k++) {
			tensor_optim *o = optimizer(0.4);
			tensor_plateau p = plateaus[k].plateau;
			double lr[STEPS];

			for (int i = 0; i < STEPS; i++) {
				double before = tensor_optim_lr(o, 0);
				int lowered = tensor_plateau_step(
					&p, o, cos(i * 0.7) / (1 + i * 0.05) + (i % 3 ? 0.5 : 0));

				assert_done(lowered);
				lr[i] = tensor_optim_lr(o, 0);
				assert_true(lowered || lr[i] == before);
			}
			check(plateaus[k].name, lr, plateaus[k].total, plateaus[k].lr);
			tensor_optim_free(o);
		}
	}
}

static void groups_keep_their_own_rates(void **state)
{
	const tensor_schedule s = { .kind = TENSOR_SCHEDULE_STEP, .steps = 2, .gamma = 0.5 };

	tensor_scope {
		tensor *a = ok(tensor_ones(TENSOR_SHAPE(1), F64));
		tensor_optim *o = optimizer(1);

		assert_int_equal(tensor_optim_add_group(o, TENSOR_LIST(a), TENSOR_SGD(.lr = 0.1)),
				 1);
		assert_done(tensor_schedule_apply(&s, o, 5));
		assert_true(tensor_optim_lr(o, 0) == 0.25 && tensor_optim_lr(o, 1) == 0.1 * 0.25);
		tensor_optim_free(o);
	}
}

static double rate(tensor_schedule s, int64_t step)
{
	return tensor_schedule_lr(&s, 0.1, step);
}

static void invalid_schedules_are_refused(void **state)
{
	const int64_t down[] = { 3, 2 };
	tensor_schedule cycle = { .kind = TENSOR_SCHEDULE_ONE_CYCLE, .steps = 10 };
	tensor_plateau p = { .factor = 2 };

	tensor_clear_error();
	assert_true(isnan(tensor_schedule_lr(NULL, 0.1, 0)));
	assert_int_equal(tensor_last_error()->code, EINVAL);
	assert_fails(rate((tensor_schedule){ .kind = 77 }, 0), EINVAL, "no schedule 77");
	assert_fails(rate((tensor_schedule){ .kind = TENSOR_SCHEDULE_STEP }, 0), EINVAL, "steps");
	assert_fails(rate((tensor_schedule){ .kind = TENSOR_SCHEDULE_EXPONENTIAL }, 0), EINVAL,
		     "gamma");
	assert_fails(rate((tensor_schedule){ .warmup = INT64_MIN }, 0), EINVAL, "negative");
	assert_fails(rate((tensor_schedule){ .min_lr = NAN }, 0), EINVAL, "nan");
	assert_fails(rate(cycle, 10), EINVAL, "step 10 of a schedule of 10");
	assert_fails(rate(cycle, -1), EINVAL, "negative");
	assert_fails(rate((tensor_schedule){ .milestones = { down, 2 } }, 0), EINVAL, "ascending");
	assert_fails(rate((tensor_schedule){ .milestones = { NULL, 2 } }, 0), EINVAL, "milestones");
	assert_false(isnan(rate((tensor_schedule){ .warmup = INT64_MAX,
						   .kind = TENSOR_SCHEDULE_COSINE,
						   .steps = INT64_MAX },
				INT64_MAX)));
	assert_fails(tensor_schedule_apply(&cycle, NULL, 0), EINVAL, "schedule_apply");
	assert_fails(tensor_plateau_step(NULL, NULL, 0), EINVAL, "NULL");
	assert_fails(tensor_plateau_step(&p, NULL, 0), EINVAL, "plateau_step");
	tensor_scope {
		tensor_optim *o = optimizer(1);

		assert_fails(tensor_plateau_step(&p, o, 0), EINVAL, "out of range");
		p = (tensor_plateau){ 0 };
		assert_int_equal(tensor_plateau_step(&p, o, NAN), 0);
		assert_false(p.begun);
		tensor_optim_free(o);
	}
}

static void zero_is_given_as_for_other_options(void **state)
{
	tensor_schedule down = { .kind = TENSOR_SCHEDULE_COSINE,
				 .steps = 10,
				 .min_lr = TENSOR_OPTIM_ZERO };
	tensor_plateau p = { .min_lr = TENSOR_OPTIM_ZERO, .factor = 0.5, .patience = -1 };

	assert_true(rate(down, 10) == 0);
	assert_true(rate((tensor_schedule){ .warmup = 10, .warmup_factor = TENSOR_OPTIM_ZERO },
			 0) == 0);
	assert_fails(rate((tensor_schedule){ .warmup = 10, .warmup_factor = -5 }, 0), EINVAL,
		     "factor");
	tensor_scope {
		tensor_optim *o = optimizer(1);

		assert_int_equal(tensor_plateau_step(&p, o, 1), 0);
		assert_int_equal(tensor_plateau_step(&p, o, 1), 1);
		assert_true(tensor_optim_lr(o, 0) == 0.5);
		tensor_optim_free(o);
	}
}

static void a_rate_that_is_not_finite_is_refused(void **state)
{
	tensor_schedule up = { .kind = TENSOR_SCHEDULE_EXPONENTIAL, .gamma = 1e10 };

	assert_fails(rate(up, 100), ERANGE, "inf after 100 steps");
	tensor_scope {
		tensor_optim *o = optimizer(1);

		assert_fails(tensor_schedule_apply(&up, o, 100), ERANGE, "schedule_apply");
		assert_true(tensor_optim_lr(o, 0) == 1);
		tensor_optim_free(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(schedules_equal_pytorch),
		cmocka_unit_test(plateau_equals_pytorch),
		cmocka_unit_test(groups_keep_their_own_rates),
		cmocka_unit_test(invalid_schedules_are_refused),
		cmocka_unit_test(zero_is_given_as_for_other_options),
		cmocka_unit_test(a_rate_that_is_not_finite_is_refused),
	};

	return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
