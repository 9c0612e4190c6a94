// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Modules: modes, conversion, ties and shared memory of all tensors of a tree. */
#include "train/net.h"
#include "files.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static tensor *ones(tensor *t, void *ctx)
{
	(void)ctx;
	return tensor_fill_(t, 1);
}

/* ---- modes ---- */

static tensor *enlarge(tensor *t, void *ctx)
{
	(void)ctx;
	return tensor_resize_(t, TENSOR_INTS(7));
}

static void an_initialiser_cannot_change_the_sizes(void **state)
{
	tensor_module *m = tensor_module_new(F64);

	(void)state;
	tensor_scope {
		assert_fails(tensor_module_parameter(m, "w", TENSOR_INTS(2), enlarge, NULL), EINVAL,
			     "changed the sizes to [7]");
		ok(tensor_module_parameter(m, "w", TENSOR_INTS(2), NULL, NULL));
	}
	tensor_module_free(m);
}

static void one_value_of_a_channel_is_no_statistic(void **state)
{
	tensor_module *m = tensor_module_new(F64);

	(void)state;
	tensor_scope {
		tensor *one = ok(tensor_ones(TENSOR_SHAPE(1, 3), F64)), *line;
		tensor *empty = ok(tensor_ones(TENSOR_SHAPE(0, 3), F64));

		line = ok(tensor_reshape(one, TENSOR_INTS(1, 3, 1)));
		assert_fails(tensor_module_batch_norm(m, "b", one), EINVAL, "more than one value");
		assert_fails(tensor_module_batch_norm(m, "b", line), EINVAL, "more than one value");
		assert_fails(tensor_module_instance_norm(m, "i", line, .stats = true), EINVAL,
			     "of a sample");
		assert_values(tensor_module_get(m, "b.num_batches_tracked"), 0, 0);
		/* A batch without samples changes no statistics. */
		ok(tensor_module_batch_norm(m, "b", empty));
		assert_values(tensor_module_get(m, "b.running_mean"), 0, 0, 0, 0);
		assert_values(tensor_module_get(m, "b.running_var"), 0, 1, 1, 1);
		tensor_module_train(m, false);
		ok(tensor_module_batch_norm(m, "b", one));
		ok(tensor_module_instance_norm(m, "i", line, .stats = true));
	}
	tensor_module_free(m);
}

static int linear_sample(tensor *const *in, int nin, tensor **out, int nout, void *ctx)
{
	(void)nin, (void)nout;
	out[0] = tensor_module_linear(ctx, "l", in[0], 5);
	return out[0] ? 0 : -1;
}

static tensor *products(tensor *t, void *ctx)
{
	(void)ctx;
	return tensor_copy_(t, tensor_mm(tensor_full(TENSOR_SHAPE(2, 2), S(1.001), F32),
					 tensor_full(TENSOR_SHAPE(2, 2), S(1.001), F32)));
}

static void the_first_call_makes_the_same_in_every_mode(void **state)
{
	tensor_module *plain = tensor_module_new(F32), *inside = tensor_module_new(F32);

	(void)state;
	tensor_scope {
		tensor *x = ok(tensor_ones(TENSOR_SHAPE(3, 4), F32)), *y;

		tensor_manual_seed(3);
		ok(tensor_module_linear(plain, "l", x, 5));
		tensor_manual_seed(3);
		assert_done(tensor_vmap(linear_sample, inside, TENSOR_LIST(x), NULL, &y, 1, NULL,
					NULL));
		assert_same(tensor_module_get(plain, "l.weight"),
			    tensor_module_get(inside, "l.weight"));
		assert_false(tensor_is_batched(tensor_module_get(inside, "l.weight")));
		ok(tensor_module_parameter(plain, "p", TENSOR_INTS(2, 2), products, NULL));
		tensor_autocast(TENSOR_BF16)
			ok(tensor_module_parameter(inside, "p", TENSOR_INTS(2, 2), products, NULL));
		assert_same(tensor_module_get(plain, "p"), tensor_module_get(inside, "p"));
	}
	tensor_module_free(plain);
	tensor_module_free(inside);
}

static void modes_apply_to_all_below_and_later(void **state)
{
	tensor_module *m = tensor_module_new(F64), *child = tensor_module_child(m, "layer1.0");

	(void)state;
	tensor_scope {
		tensor *y = ok(net(m, input()));

		assert_done(tensor_backward(tensor_sum(y)));
		assert_non_null(tensor_grad(tensor_module_get(m, "out.weight")));
		assert_done(tensor_module_zero_grad(m));
		assert_null(tensor_grad(tensor_module_get(m, "out.weight")));
		assert_done(tensor_module_set_requires_grad(child, false));
		assert_false(tensor_requires_grad(tensor_module_get(m, "layer1.0.fc.weight")));
		assert_true(tensor_requires_grad(tensor_module_get(m, "out.weight")));
		assert_false(tensor_requires_grad(
			ok(tensor_module_parameter(child, "new.w", TENSOR_INTS(1), NULL, NULL))));
		assert_true(tensor_module_is_training(child));
		assert_done(tensor_module_train(m, false));
		assert_false(tensor_module_is_training(child));
		assert_false(tensor_module_is_training(tensor_module_child(child, "later")));
		assert_false(tensor_module_is_training(NULL));
	}
	assert_fails(tensor_module_train(NULL, true), EINVAL, "NULL");
	assert_fails(tensor_module_zero_grad(NULL), EINVAL, "NULL");
	assert_fails(tensor_module_set_requires_grad(NULL, true), EINVAL, "NULL");
	tensor_module_free(m);
}

static void conversion_replaces_all_tensors_or_none(void **state)
{
	tensor_module *m = tensor_module_new(F64);

	(void)state;
	tensor_scope {
		ok(net(m, input()));
		assert_done(tensor_backward(tensor_sum(net(m, input()))));
		tensor *weight = tensor_module_get(m, "out.weight");

		assert_done(tensor_module_to(m, F64));
		assert_ptr_equal(tensor_module_get(m, "out.weight"), weight);
		assert_done(tensor_module_to(m, F32));
		assert_int_equal(tensor_dtype(tensor_module_get(m, "out.weight")), TENSOR_F32);
		assert_int_equal(tensor_dtype(tensor_grad(tensor_module_get(m, "out.weight"))),
				 TENSOR_F32);
		assert_true(tensor_requires_grad(tensor_module_get(m, "out.weight")));
		assert_int_equal(
			tensor_dtype(tensor_module_get(m, "layer1.0.bn.num_batches_tracked")),
			TENSOR_I64);
		ok(net(m, tensor_to(input(), F32)));
		assert_int_equal(tensor_dtype(ok(tensor_module_parameter(m, "new", TENSOR_INTS(1),
									 NULL, NULL))),
				 TENSOR_F32);
		assert_fails(tensor_module_to(m, I64), EINVAL, "floating");
		assert_fails(tensor_module_to(m, OF(99)), EINVAL, "floating");
		assert_fails(tensor_module_to(NULL, F32), EINVAL, "NULL");
		assert_fails(tensor_module_to(m, TENSOR_OPTIONS(.device = { TENSOR_PRIVATE, 77 })),
			     ENODEV, "");
		assert_int_equal(tensor_dtype(tensor_module_get(m, "out.weight")), TENSOR_F32);
	}
	tensor_module_free(m);
}

static uint32_t scope_depth(void)
{
	struct tensor_scope_guard guard = tensor_scope_enter();

	tensor_scope_leave(&guard);
	return guard.depth;
}

static void conversion_to_the_same_dtype_leaves_no_scope_open(void **state)
{
	tensor_module *m = tensor_module_new(F32);

	(void)state;
	ok(tensor_module_parameter(m, "w", TENSOR_INTS(2), NULL, NULL));
	ok(tensor_module_buffer(m, "n", TENSOR_SCALAR_SHAPE, TENSOR_I64, NULL, NULL));
	assert_done(tensor_module_to(m, F32));
	assert_int_equal(scope_depth(), 0);
	assert_done(tensor_module_to(m, F64));
	assert_int_equal(scope_depth(), 0);
	tensor_module_free(m);
}

static void tied_parameters_are_one_tensor(void **state)
{
	tensor_module *m = tensor_module_new(F64);
	const struct tensor_named *named;

	(void)state;
	tensor_scope {
		tensor *ids = tensor_zeros(TENSOR_INTS(3), I64);
		tensor *x = tensor_module_embedding(m, "emb", ids, 7, 4);

		assert_done(tensor_module_tie(m, "head.weight", "emb.weight"));
		assert_done(tensor_module_tie(m, "third", "head.weight"));
		assert_done(tensor_backward(
			tensor_sum(tensor_module_linear(m, "head", x, 7, .no_bias = true))));
		assert_ptr_equal(tensor_module_get(m, "head.weight"),
				 tensor_module_get(m, "emb.weight"));
		assert_ptr_equal(tensor_module_get(m, "third"), tensor_module_get(m, "emb.weight"));
		assert_int_equal(tensor_module_numel(m), 28);
		assert_int_equal(tensor_module_parameters(m).len, 1);
		assert_int_equal(tensor_module_parameters(tensor_module_child(m, "head")).len, 1);
		assert_int_equal(tensor_module_named(m, 1, &named), 3);
		assert_done(tensor_module_to(m, F32));
		assert_int_equal(tensor_dtype(tensor_module_get(m, "head.weight")), TENSOR_F32);
		assert_fails(tensor_module_tie(m, "head.weight", "emb.weight"), EEXIST,
			     "'head.weight' is a parameter");
		assert_fails(tensor_module_tie(m, "a", "nothing"), ENOENT, "nothing");
		assert_fails(tensor_module_tie(m, NULL, "emb.weight"), EINVAL, "");
		assert_fails(tensor_module_tie(m, "a", NULL), ENOENT, "");
		assert_fails(tensor_module_tie(NULL, "a", "b"), EINVAL, "");
	}
	tensor_module_free(m);
}

/* A forked process adds to a shared parameter. */
static void shared_memory_is_that_of_a_child_process(void **state)
{
	tensor_module *m = tensor_module_new(F64);
	int status = 1;
	pid_t pid;

	(void)state;
	tensor_scope
		ok(tensor_module_parameter(m, "w", TENSOR_INTS(2), ones, NULL));
	if (tensor_module_share_memory(m) < 0)
		skip();
	pid = fork();
	if (!pid) {
		tensor *t = tensor_module_get(m, "w");
		double *v = tensor_mutable_data(t);

		v[1] = 5;
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_values(tensor_module_get(m, "w"), 0, 1, 5);
	assert_fails(tensor_module_share_memory(NULL), EINVAL, "NULL");
	tensor_module_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_initialiser_cannot_change_the_sizes),
		T(one_value_of_a_channel_is_no_statistic),
		T(the_first_call_makes_the_same_in_every_mode),
		T(modes_apply_to_all_below_and_later),
		T(conversion_replaces_all_tensors_or_none),
		T(conversion_to_the_same_dtype_leaves_no_scope_open),
		T(tied_parameters_are_one_tensor),
		T(shared_memory_is_that_of_a_child_process),
	};

	return cmocka_run_group_tests_name("module_modes", tests, make_folder, remove_folder);
}
