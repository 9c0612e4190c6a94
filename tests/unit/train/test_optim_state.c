// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The state of optimizers: enumeration, replacement, files. */
#include "files.h"
#include "optim.h"

#include <sys/wait.h>

static void state_is_enumerated_and_replaced(void **state)
{
	tensor_scope {
		tensor *p[PARAMS], *q[PARAMS];
		struct tensor_named list[12];
		char names[12][64];
		tensor_optim *o, *again;

		make_params(p, TENSOR_F32);
		make_params(q, TENSOR_F32);
		o = optimizer(p, TENSOR_ADAM());
		again = optimizer(q, TENSOR_ADAM());
		assert_int_equal(tensor_optim_state_count(o), 0);
		train(o, p, 0, 2);
		assert_int_equal(tensor_optim_state_count(o), 9);
		for (int i = 0; i < 9; i++) {
			assert_done(tensor_optim_state_at(o, i, &list[i]));
			strcpy(names[i], list[i].name);
			list[i].name = names[i];
		}
		assert_string_equal(names[3], "0.1.exp_avg");
		assert_values(tensor_optim_state(o, 0, 2, "step"), 0, 2);
		assert_fails(tensor_optim_state_at(o, 9, &list[9]), ERANGE, "no state tensor 9");
		assert_done(tensor_optim_load_state(again, list, 9));
		for (int i = 0; i < 9; i++) {
			struct tensor_named got;

			assert_done(tensor_optim_state_at(again, i, &got));
			assert_string_equal(got.name, names[i]);
			assert_same(got.t, list[i].t);
			assert_false(tensor_shares_storage(got.t, list[i].t));
		}
		assert_fails(tensor_optim_load_state(again, list, 8), EINVAL, "is missing");
		list[9] = list[0];
		assert_fails(tensor_optim_load_state(again, list, 10), EINVAL, "twice");
		list[0].t = list[3].t;
		assert_fails(tensor_optim_load_state(again, list, 9), EINVAL, "does not fit");
		for (const char *const *bad =
			     (const char *[]){ "", "0.0.x", "0.00.exp_avg", "1.0.exp_avg",
					       "0.3.exp_avg", "-1.0.exp_avg", "0.0exp_avg",
					       "99999999999999999999.0.exp_avg",
					       "0.0.max_exp_avg_sq", NULL };
		     *bad; bad++) {
			list[0].name = *bad;
			assert_fails(tensor_optim_load_state(again, list, 9), EINVAL, "no state");
		}
		assert_int_equal(tensor_optim_state_count(again), 9);
		assert_done(tensor_optim_load_state(again, NULL, 0));
		assert_int_equal(tensor_optim_state_count(again), 0);
		tensor_optim_free(o);
		tensor_optim_free(again);
	}
}

/* 90,000 state tensors: enumerating, saving and loading take time that is linear in their number. */
static void many_parameters_are_saved_and_loaded(void **state)
{
	enum { MANY = 30000 };
	tensor **p = malloc(MANY * sizeof(*p));

	tensor_scope {
		tensor *grad = ok(tensor_ones(TENSOR_SHAPE(1), F32));
		struct tensor_named last;
		tensor_optim *o;

		for (int i = 0; i < MANY; i++) {
			p[i] = leaf(ok(tensor_ones(TENSOR_SHAPE(1), F32)));
			assert_done(tensor_set_grad(p[i], grad));
		}
		o = tensor_optim_new((tensor_list){ p, MANY }, TENSOR_ADAM());
		assert_done(tensor_optim_step(o));
		assert_int_equal(tensor_optim_state_count(o), 3 * MANY);
		assert_done(tensor_optim_save(o, "many.safetensors"));
		assert_done(tensor_optim_load(o, "many.safetensors"));
		assert_done(tensor_optim_state_at(o, 3 * MANY - 1, &last));
		assert_string_equal(last.name, "0.29999.step");
		assert_done(tensor_optim_state_at(o, 0, &last));
		assert_string_equal(last.name, "0.0.exp_avg");
		assert_fails(tensor_optim_state_at(o, 3 * MANY, &last), ERANGE, "no state");
		assert_fails(tensor_optim_state_at(o, -1, &last), ERANGE, "no state");
		tensor_optim_free(o);
	}
	free(p);
}

static void no_parameters_are_no_error(void **state)
{
	tensor_optim *o = tensor_optim_new((tensor_list){ NULL, 0 }, TENSOR_ADAM());
	tensor_ema *e = tensor_ema_new((tensor_list){ NULL, 0 }, 0.9);

	assert_non_null(o);
	assert_non_null(e);
	assert_done(tensor_optim_step(o));
	assert_done(tensor_optim_zero_grad(o));
	assert_done(tensor_optim_save(o, "none.safetensors"));
	assert_done(tensor_optim_load(o, "none.safetensors"));
	assert_done(tensor_ema_update(e));
	assert_done(tensor_ema_swap(e));
	assert_done(tensor_clip_grad_value_((tensor_list){ NULL, 0 }, 1));
	tensor_optim_free(o);
	tensor_ema_free(e);
}

static void files_of_other_optimizers_are_refused(void **state)
{
	const char *path = "other.safetensors";

	tensor_scope {
		tensor *p[PARAMS];
		tensor_optim *adam, *sgd, *two;

		make_params(p, TENSOR_F32);
		adam = optimizer(p, TENSOR_ADAM());
		sgd = optimizer(p, TENSOR_SGD());
		two = tensor_optim_new(TENSOR_LIST(p[0]), TENSOR_ADAM());
		train(adam, p, 0, 1);
		assert_done(tensor_optim_save(adam, path));
		assert_fails(tensor_optim_load(sgd, path), EINVAL, "is for 'adam'");
		assert_fails(tensor_optim_load(two, path), EINVAL,
			     "has 1 parameters, in the file 3");
		assert_int_equal(tensor_optim_add_group(two, TENSOR_LIST(p[1]), TENSOR_ADAM()), 1);
		assert_fails(tensor_optim_load(two, path), EINVAL, "has 1 parameters");
		assert_fails(tensor_optim_load(adam, "/nonexistent/file"), ENOENT, "nonexistent");
		assert_fails(tensor_optim_load(adam, NULL), EINVAL, "");
		assert_fails(tensor_optim_save(adam, NULL), EINVAL, "");
		assert_done(tensor_save_safetensors(path, NULL, 0, NULL, 0));
		assert_fails(tensor_optim_load(adam, path), EINVAL, "not that of an optimizer");
		assert_int_equal(tensor_optim_state_count(adam), 9);
		tensor_optim_free(adam);
		tensor_optim_free(sgd);
		tensor_optim_free(two);
	}
}

/* Steps of a child, with its parameters and its state, are those of this process. */
static void state_is_shared_with_a_child(void **state)
{
	tensor_scope {
		tensor *p[PARAMS], *q[PARAMS];
		struct tensor_named buffer;
		tensor_optim *o, *alone;
		int status;
		pid_t pid;

		make_params(p, TENSOR_F32);
		make_params(q, TENSOR_F32);
		o = optimizer(p, TENSOR_ADAM(.lr = 0.01));
		alone = optimizer(q, TENSOR_ADAM(.lr = 0.01));
		train(alone, q, 0, 4);
		for (int i = 0; i < PARAMS; i++)
			assert_done(tensor_share_memory(p[i]));
		assert_done(tensor_optim_share_memory(o));
		assert_int_equal(tensor_optim_state_count(o), 9);
		pid = fork();
		if (!pid) {
			train(o, p, 0, 2);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		train(o, p, 2, 4);
		for (int i = 0; i < PARAMS; i++)
			assert_same(p[i], q[i]);
		assert_done(tensor_optim_state_at(o, 0, &buffer));
		tensor_optim_free(o);
		tensor_optim_free(alone);

		/* Its first step sets the buffer to the gradient. */
		o = optimizer(q, TENSOR_SGD(.lr = 0.01, .momentum = 0.9, .dampening = 0.5));
		assert_fails(tensor_optim_share_memory(o), EINVAL, "dampening");
		train(o, q, 0, 1);
		assert_done(tensor_optim_share_memory(o));
		tensor_optim_free(o);
		assert_fails(tensor_optim_share_memory(NULL), EINVAL, "NULL");
	}
}

static void state_of_inference_mode_can_be_used_outside(void **state)
{
	const char *path = "inference.safetensors";

	tensor_scope {
		tensor *p[PARAMS];
		tensor_optim *o, *loaded, *shared;
		tensor_ema *e = NULL;

		make_params(p, TENSOR_F32);
		o = optimizer(p, TENSOR_ADAM());
		loaded = optimizer(p, TENSOR_ADAM());
		shared = optimizer(p, TENSOR_ADAM());
		for (int i = 0; i < PARAMS; i++)
			assert_done(tensor_set_grad(p[i], tensor_detach(p[i])));
		tensor_inference_mode
		{
			assert_done(tensor_optim_step(o));
			assert_done(tensor_optim_save(o, path));
			assert_done(tensor_optim_load(loaded, path));
			assert_done(tensor_optim_share_memory(shared));
			e = tensor_ema_new((tensor_list){ p, PARAMS }, 0.5);
		}
		assert_done(tensor_optim_step(o));
		assert_done(tensor_optim_step(loaded));
		assert_done(tensor_optim_step(shared));
		assert_done(tensor_ema_update(e));
		assert_done(tensor_ema_swap(e));
		tensor_ema_free(e);
		tensor_optim_free(o);
		tensor_optim_free(loaded);
		tensor_optim_free(shared);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(state_is_enumerated_and_replaced),
		cmocka_unit_test(many_parameters_are_saved_and_loaded),
		cmocka_unit_test(state_is_shared_with_a_child),
		cmocka_unit_test(no_parameters_are_no_error),
		cmocka_unit_test(files_of_other_optimizers_are_refused),
		cmocka_unit_test(state_of_inference_mode_can_be_used_outside),
	};

	return cmocka_run_group_tests_name("optim_state", tests, make_folder, remove_folder);
}
