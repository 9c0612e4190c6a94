// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Training functions whose n-th allocation fails, for each n: they fail with ENOMEM, leave no tensor and change no
 * parameter, and succeed when memory is available. */
#include "autograd.h"

#include "tests/fuzz/calls/fail.c" /* replaces malloc() in this program */

#include <unistd.h>

enum { MOST = 2000, PARAMS = 3 };

static tensor *p[PARAMS];
static char path[] = "/tmp/tensor-train-XXXXXX";

static void make_params(void)
{
	for (int i = 0; i < PARAMS; i++) {
		tensor *t = tensor_rand(TENSOR_INTS(4, 5 + i), F32);

		/* One of them transposed, which the operators copy. */
		p[i] = leaf(i == 1 ? ok(tensor_detach(tensor_t(ok(t)))) : ok(t));
		assert_done(tensor_set_grad(p[i], ok(tensor_rand(tensor_shape(p[i]), F32))));
	}
}

static bool steps(tensor_optim_options options)
{
	tensor_optim *o = tensor_optim_new((tensor_list){ p, 1 }, options);
	bool done = o &&
		    tensor_optim_add_group(o, (tensor_list){ p + 1, PARAMS - 1 }, options) == 1 &&
		    tensor_optim_step(o) == 0 && tensor_optim_step(o) == 0;

	tensor_optim_free(o);
	return done;
}

static bool sgd(void)
{
	return steps(TENSOR_SGD(.lr = 1e-9, .momentum = 0.9));
}

static bool adam(void)
{
	return steps(TENSOR_ADAM(.amsgrad = true, .lr = 1e-9));
}

static bool rmsprop(void)
{
	return steps(TENSOR_RMSPROP(.centered = true, .lr = 1e-9, .momentum = 0.9));
}

static bool file(void)
{
	tensor_optim *o = tensor_optim_new((tensor_list){ p, PARAMS }, TENSOR_ADAGRAD(.lr = 1e-9));
	bool done = o && tensor_optim_step(o) == 0 && tensor_optim_save(o, path) == 0 &&
		    tensor_optim_load(o, path) == 0 && tensor_optim_state_count(o) == 2 * PARAMS;

	tensor_optim_free(o);
	return done;
}

static bool clip(void)
{
	double norm;

	return tensor_clip_grad_norm_((tensor_list){ p, PARAMS }, 1, 2, true, &norm) == 0 &&
	       tensor_clip_grad_value_((tensor_list){ p, PARAMS }, 1) == 0;
}

static bool average(void)
{
	tensor_ema *e = tensor_ema_new((tensor_list){ p, PARAMS }, 0.9);
	bool done = e && tensor_ema_update(e) == 0 && tensor_ema_swap(e) == 0 &&
		    tensor_ema_swap(e) == 0;

	tensor_ema_free(e);
	return done;
}

static bool scaler(void)
{
	tensor_optim *o = tensor_optim_new((tensor_list){ p, PARAMS }, TENSOR_SGD(.lr = 1e-9));
	tensor_grad_scaler s = { .scale = 2 };
	bool done = o && tensor_grad_scaler_step(&s, o) >= 0 && tensor_grad_scaler_update(&s) == 0;

	tensor_optim_free(o);
	return done;
}

static bool autocast(void)
{
	bool done = false;

	tensor_autocast(TENSOR_BF16)
	{
		tensor *y = tensor_matmul(p[0], tensor_cat(TENSOR_LIST(p[0], p[0]), 0));

		done = !y; /* shapes do not fit */
		y = tensor_matmul(tensor_t(p[0]), tensor_cat(TENSOR_LIST(p[0]), 0));
		done = y && tensor_backward(tensor_sum(y)) == 0;
	}
	return done;
}

static void fails_with_enomem_and_loses_nothing(void **state)
{
	bool (*call)(void) = *state;
	struct tensor_live_counts before, after;
	bool again = false;
	long n = 0;

	if (!fail_possible)
		skip();
	tensor_scope {
		make_params();
		tensor_scope {
			assert_true(call());
		}
		for (int i = 0; i < PARAMS; i++)
			tensor_set_grad(p[i], ok(tensor_rand(tensor_shape(p[i]), F32)));
		fail_spare_others();
		tensor_live_counts(&before);
		do {
			bool done;

			tensor_clear_error();
			tensor_scope {
				fail_at(++n);
				done = call();
				again = fail_end();
				if (!done)
					assert_int_equal(tensor_last_error()->code, ENOMEM);
			}
			tensor_live_counts(&after);
			assert_int_equal(after.tensors, before.tensors);
			assert_int_equal(after.storages, before.storages);
		} while (again && n < MOST);
		assert_in_range(n, 2, MOST - 1);
	}
}

#define ROW(name)                                                                              \
	{                                                                                      \
#name "_without_memory", fails_with_enomem_and_loses_nothing, NULL, NULL, name \
	}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		ROW(sgd),  ROW(adam),	 ROW(rmsprop), ROW(file),
		ROW(clip), ROW(average), ROW(scaler),  ROW(autocast),
	};
	int fd, err;

	(void)argc;
	fail_without_caches(argv);
	fd = mkstemp(path);
	close(fd);
	err = cmocka_run_group_tests_name("train_without_memory", tests, NULL, NULL);
	unlink(path);
	return err;
}
