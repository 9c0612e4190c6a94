// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Modules in files, alone and with an optimizer. */
#include "train/net.h"
#include "files.h"

static const char path[] = "module.safetensors";

static tensor_module *trained(int seed)
{
	tensor_module *m = tensor_module_new(F64);

	tensor_manual_seed(seed);
	tensor_scope
		ok(net(m, input()));
	return m;
}

static void assert_equal_state(tensor_module *a, tensor_module *b)
{
	const struct tensor_named *x, *y;
	int64_t n = tensor_module_named(a, 3, &x);

	assert_int_equal(tensor_module_named(b, 3, &y), n);
	for (int64_t i = 0; i < n; i++) {
		assert_string_equal(x[i].name, y[i].name);
		assert_same(x[i].t, y[i].t);
	}
}

static void a_file_restores_the_state_before_or_after_the_first_call(void **state)
{
	tensor_module *m = trained(1), *after = trained(2), *first = tensor_module_new(F64);
	const struct tensor_named *names;
	tensor *weight = tensor_module_get(after, "out.weight");

	(void)state;
	assert_done(tensor_module_save(m, path));
	assert_done(tensor_module_load(after, path, TENSOR_LOAD_STRICT));
	assert_ptr_equal(tensor_module_get(after, "out.weight"), weight);
	assert_equal_state(m, after);
	assert_done(tensor_module_check_loaded(after));

	assert_done(tensor_module_load(first, path, 0));
	assert_int_equal(tensor_module_unexpected(first, &names), 9);
	assert_fails(tensor_module_check_loaded(first), ENOENT,
		     "9 names of the file were not used");
	tensor_module_train(first, false);
	tensor_scope
		ok(net(first, input()));
	assert_done(tensor_module_check_loaded(first));
	assert_equal_state(m, first);
	tensor_module_free(m);
	tensor_module_free(after);
	tensor_module_free(first);
}

static void names_without_a_counterpart_are_reported(void **state)
{
	tensor_module *m = trained(1), *other = tensor_module_new(F64);
	const struct tensor_named *names;

	(void)state;
	tensor_scope {
		ok(tensor_module_linear(other, "out", filled(TENSOR_INTS(1, 5), 0), 2));
		ok(tensor_module_parameter(other, "extra", TENSOR_INTS(1), NULL, NULL));
	}
	assert_done(tensor_module_save(m, path));
	assert_fails(tensor_module_load(other, path, TENSOR_LOAD_STRICT), ENOENT, "has no");
	assert_fails(tensor_module_check_loaded(other), ENOENT,
		     "3 names were not in it (extra, ...)");
	assert_done(tensor_module_load(other, path, 0));
	assert_int_equal(tensor_module_missing(other, &names), 1);
	assert_string_equal(names[0].name, "extra");
	assert_int_equal(tensor_module_unexpected(other, &names), 7);
	assert_same(tensor_module_get(other, "out.weight"), tensor_module_get(m, "out.weight"));
	tensor_module_free(m);
	tensor_module_free(other);
}

static int save_named(const char *name, tensor *t)
{
	return tensor_save_safetensors(path, &(struct tensor_named){ name, t }, 1, NULL, 0);
}

/* The end of an error text is not cut off by a long path. */
static void long_paths_leave_room_in_error_texts(void **state)
{
	tensor_module *m = tensor_module_new(F64);
	char name[TENSOR_MODULE_PATH + 1];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	ok(tensor_module_parameter(m, name, TENSOR_INTS(2), NULL, NULL));
	assert_fails(tensor_module_parameter(m, name, TENSOR_INTS(3), NULL, NULL), EINVAL,
		     "must be [3], the module has [2]");
	tensor_module_free(m);
}

static void wrong_files_change_nothing(void **state)
{
	tensor_module *m = trained(1), *copy = trained(1), *fresh = tensor_module_new(F64);
	const struct tensor_named *names;

	(void)state;
	tensor_scope {
		tensor *t = tensor_ones(TENSOR_INTS(2, 6), F64);

		assert_done(save_named("out.weight", t));
		assert_fails(tensor_module_load(m, path, 0), EINVAL,
			     "'out.weight' is [2, 5], the file has [2, 6]");
		assert_done(save_named("out.weight", tensor_ones(TENSOR_INTS(2, 5), F32)));
		assert_fails(tensor_module_load(m, path, 0), EINVAL, "is f64, the file has f32");
		assert_done(save_named("out", t));
		assert_fails(tensor_module_load(m, path, 0), EINVAL, "'out' is a child");
		assert_done(save_named("out.weight.x", t));
		assert_fails(tensor_module_load(m, path, 0), EEXIST, "'out.weight' is a parameter");
		assert_done(save_named("a..b", t));
		assert_fails(tensor_module_load(m, path, 0), EINVAL, "empty name");
		assert_fails(tensor_module_load(m, "/nonexistent/x", 0), ENOENT, "");
		assert_fails(tensor_module_load(m, NULL, 0), EINVAL, "");
		assert_fails(tensor_module_load(m, path, 8), EINVAL, "0x8");
		assert_fails(tensor_module_load(NULL, path, 0), EINVAL, "NULL");
		assert_fails(tensor_module_save(NULL, path), EINVAL, "NULL");
		assert_fails(tensor_module_save(m, "/nonexistent/x"), ENOENT, "");
		/* "a" and "a.b" cannot both be names of one tree. */
		assert_done(tensor_save_safetensors(
			path, (struct tensor_named[]){ { "a", t }, { "a.b", t } }, 2, NULL, 0));
		assert_fails(tensor_module_load(fresh, path, 0), EINVAL, "'a' is a child");
		assert_equal_state(m, copy);
		ok(tensor_module_parameter(fresh, "a", TENSOR_INTS(1), NULL, NULL));
		/* Nor are names of a file that does not fit. */
		assert_done(tensor_save_safetensors(
			path,
			(struct tensor_named[]){
				{ "new.child.x", t }, { "n", t }, { "n-", t }, { "a", t } },
			4, NULL, 0));
		assert_fails(tensor_module_load(fresh, path, 0), EINVAL, "'a' is [1]");
		ok(tensor_module_parameter(fresh, "new", TENSOR_INTS(1), NULL, NULL));
		assert_int_equal(tensor_module_unexpected(fresh, &names), 0);
		assert_done(tensor_save_safetensors(
			path, (struct tensor_named[]){ { "n", t }, { "n-", t }, { "n.b", t } }, 3,
			NULL, 0));
		assert_fails(tensor_module_load(fresh, path, 0), EINVAL, "'n' is a child");
		ok(tensor_module_parameter(fresh, "n", TENSOR_INTS(1), NULL, NULL));
		/* Before the first call: found at the first call. */
		assert_done(save_named("l.weight", t));
		assert_done(tensor_module_load(fresh, path, 0));
		assert_fails(tensor_module_linear(fresh, "l", t, 3), EINVAL,
			     "'l.weight' must be [3, 6], the file has [2, 6]");
		ok(tensor_module_linear(fresh, "l", t, 2));
	}
	tensor_module_free(m);
	tensor_module_free(copy);
	tensor_module_free(fresh);
}

static void a_file_may_be_loaded_in_inference_mode(void **state)
{
	tensor_module *m = tensor_module_new(F64);

	(void)state;
	tensor_scope {
		assert_done(save_named("l.weight", tensor_ones(TENSOR_INTS(2, 4), F64)));
		tensor_inference_mode
		{
			assert_done(tensor_module_load(m, path, 0));
			ok(tensor_module_linear(m, "l", input(), 2, .no_bias = true));
			assert_done(tensor_module_to(m, F32));
		}
		assert_true(tensor_requires_grad(tensor_module_get(m, "l.weight")));
		assert_done(tensor_backward(tensor_sum(ok(tensor_module_linear(
			m, "l", tensor_to(input(), F32), 2, .no_bias = true)))));
	}
	tensor_module_free(m);
}

static void a_cast_is_requested(void **state)
{
	tensor_module *m = trained(1), *fresh = tensor_module_new(F64);

	(void)state;
	tensor_scope {
		assert_done(save_named("out.weight", tensor_ones(TENSOR_INTS(2, 5), F32)));
		assert_done(tensor_module_load(m, path, TENSOR_LOAD_CAST));
		assert_values(tensor_sum(tensor_module_get(m, "out.weight")), 0, 10);
		assert_int_equal(tensor_dtype(tensor_module_get(m, "out.weight")), TENSOR_F64);
		assert_done(tensor_module_load(fresh, path, TENSOR_LOAD_CAST));
		ok(tensor_module_linear(fresh, "out", filled(TENSOR_INTS(1, 5), 0), 2));
		assert_values(tensor_sum(tensor_module_get(fresh, "out.weight")), 0, 10);
		assert_true(tensor_requires_grad(tensor_module_get(fresh, "out.weight")));
	}
	tensor_module_free(m);
	tensor_module_free(fresh);
}

static void parts_of_a_model_may_be_in_several_files(void **state)
{
	tensor_module *m = tensor_module_new(F64);

	(void)state;
	tensor_scope {
		assert_done(save_named("out.weight", tensor_ones(TENSOR_INTS(2, 5), F64)));
		assert_done(tensor_module_load(m, path, 0));
		assert_done(save_named("out.bias", tensor_ones(TENSOR_INTS(2), F64)));
		assert_done(tensor_module_load(m, path, 0));
		assert_values(
			ok(tensor_module_linear(m, "out", tensor_ones(TENSOR_INTS(5), F64), 2)), 0,
			6, 6);
		assert_done(tensor_module_check_loaded(m));
	}
	tensor_module_free(m);
}

/* Either name of a tied parameter is enough. */
static void a_file_may_have_one_name_of_a_tied_parameter(void **state)
{
	tensor_module *m = tensor_module_new(F64);

	(void)state;
	tensor_scope {
		ok(tensor_module_parameter(m, "a", TENSOR_INTS(2), NULL, NULL));
		assert_done(tensor_module_tie(m, "b", "a"));
		assert_done(save_named("b", tensor_ones(TENSOR_INTS(2), F64)));
		assert_done(tensor_module_load(m, path, TENSOR_LOAD_STRICT));
		assert_values(tensor_module_get(m, "a"), 0, 1, 1);
		assert_done(tensor_module_check_loaded(m));
	}
	tensor_module_free(m);
}

/* A file has the counters (i64) of batch_norm before all parameters. */
static tensor *unordered_net(tensor_module *m, tensor *x)
{
	tensor_module *block = tensor_module_child(m, "block");

	x = tensor_module_linear(m, "z", tensor_to(x, F32), 4);
	x = tensor_module_linear(block, "fc", x, 4);
	x = tensor_module_batch_norm(block, "bn", x);
	x = tensor_mul(x, tensor_module_parameter(m, "scale", TENSOR_INTS(4), NULL, NULL));
	return tensor_module_batch_norm(m, "bn", tensor_module_linear(m, "a", x, 2));
}

static void the_order_is_that_of_the_first_use_also_after_loading(void **state)
{
	tensor_module *m = tensor_module_new(F32), *after = tensor_module_new(F32);

	(void)state;
	tensor_scope
		ok(unordered_net(m, input()));
	assert_done(tensor_module_save(m, path));
	assert_done(tensor_module_load(after, path, 0));
	tensor_module_train(after, false);
	tensor_scope
		ok(unordered_net(after, input()));
	assert_equal_state(m, after);
	tensor_module_free(m);
	tensor_module_free(after);
}

static double training_step(tensor_module *m, tensor_optim *o)
{
	double loss = NAN;

	tensor_scope {
		tensor *y = ok(tensor_mean(tensor_square(ok(net(m, input())))));

		assert_done(tensor_item(y, &loss));
		assert_done(tensor_optim_zero_grad(o));
		assert_done(tensor_backward(y));
		assert_done(tensor_optim_step(o));
	}
	return loss;
}

static void training_goes_on_from_one_file(void **state)
{
	tensor_module *m = trained(1), *again = tensor_module_new(F64);
	tensor_optim *o = tensor_optim_new(tensor_module_parameters(m), TENSOR_ADAM(.lr = 0.01));
	const struct tensor_named *names;
	tensor_optim *after;

	(void)state;
	training_step(m, o);
	training_step(m, o);
	assert_done(tensor_training_save(m, o, path));
	/* The first call of the model comes between the two. */
	assert_done(tensor_module_load(again, path, 0));
	assert_int_equal(tensor_module_unexpected(again, &names), 9);
	tensor_module_train(again, false);
	tensor_scope
		ok(net(again, input()));
	tensor_module_train(again, true);
	assert_done(tensor_module_check_loaded(again));
	after = tensor_optim_new(tensor_module_parameters(again), TENSOR_ADAM());
	assert_done(tensor_optim_load(after, path));
	assert_true(tensor_optim_lr(after, 0) == 0.01);
	assert_equal_state(m, again);
	for (int i = 0; i < 3; i++)
		assert_true(training_step(m, o) == training_step(again, after));
	assert_equal_state(m, again);
	assert_done(tensor_module_load(again, path, TENSOR_LOAD_STRICT));
	tensor_optim_free(o);
	tensor_optim_free(after);
	tensor_module_free(m);
	tensor_module_free(again);
}

static void the_file_of_a_training_is_refused_for_another(void **state)
{
	tensor_module *m = trained(1), *empty = tensor_module_new(F64);
	tensor_optim *o = tensor_optim_new(tensor_module_parameters(m), TENSOR_ADAM());
	tensor_optim *sgd = tensor_optim_new(tensor_module_parameters(m), TENSOR_SGD(.lr = 1));

	(void)state;
	assert_fails(tensor_training_save(NULL, o, path), EINVAL, "NULL");
	assert_fails(tensor_training_save(m, NULL, path), EINVAL, "NULL");
	assert_fails(tensor_training_save(m, o, NULL), EINVAL, "NULL");
	assert_fails(tensor_training_save(m, o, "/nonexistent/x"), ENOENT, "");
	training_step(m, o);
	assert_done(tensor_training_save(m, o, path));
	assert_fails(tensor_optim_load(sgd, path), EINVAL, "is for");
	/* Without tensors of a module the state of the optimizer is still not the module's. */
	assert_done(tensor_training_save(empty, o, path));
	assert_done(tensor_module_load(empty, path, TENSOR_LOAD_STRICT));
	assert_done(tensor_optim_load(o, path));
	assert_done(tensor_module_save(m, path));
	assert_fails(tensor_optim_load(o, path), EINVAL, "not that of an optimizer");
	tensor_optim_free(o);
	tensor_optim_free(sgd);
	tensor_module_free(m);
	tensor_module_free(empty);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_file_restores_the_state_before_or_after_the_first_call),
		T(names_without_a_counterpart_are_reported),
		T(long_paths_leave_room_in_error_texts),
		T(wrong_files_change_nothing),
		T(a_file_may_be_loaded_in_inference_mode),
		T(a_cast_is_requested),
		T(parts_of_a_model_may_be_in_several_files),
		T(a_file_may_have_one_name_of_a_tied_parameter),
		T(the_order_is_that_of_the_first_use_also_after_loading),
		T(training_goes_on_from_one_file),
		T(the_file_of_a_training_is_refused_for_another),
	};
	return cmocka_run_group_tests_name("module files", tests, make_folder, remove_folder);
}
