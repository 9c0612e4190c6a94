// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Scopes that are left by longjmp() or without memory, and reference cycles.
 * tests/unit/core/test_tensor.c has the other tests of scopes.
 */
#include "autograd.h"

#include <pthread.h>

static struct tensor_live_counts before;

static int count(void **state)
{
	tensor_live_counts(&before);
	return 0;
}

static void assert_nothing_left(void)
{
	struct tensor_live_counts now;

	tensor_live_counts(&now);
	assert_int_equal(now.tensors, before.tensors);
	assert_int_equal(now.storages, before.storages);
}

/* ---- longjmp() ---- */

static jmp_buf back;

static void jump_out(int depth)
{
	tensor_scope {
		tensor *t = ok(tensor_ones(TENSOR_INTS(100), F32));

		for (int i = 0; i < 200; i++)
			t = ok(tensor_add(t, t));
		if (depth)
			jump_out(depth - 1);
		longjmp(back, 1);
	}
}

static void jump_out_once(void)
{
	tensor_scope {
		if (!setjmp(back))
			jump_out(4);
		ok(tensor_ones(TENSOR_INTS(3), F32));
	}
}

static void scope_around_a_jump_releases_what_was_made_inside(void **state)
{
	for (int i = 0; i < 3; i++)
		jump_out_once();
	assert_nothing_left();
}

static void *own_a_result_after_a_jump(void *arg)
{
	tensor *mine;

	jump_out_once();
	mine = tensor_ones(TENSOR_INTS(3), F32);
	tensor_release(mine);
	return mine ? NULL : arg;
}

/* Otherwise the end of the thread would release the scope a second time and print a warning. */
static void no_scope_is_open_after_the_one_around_a_jump(void **state)
{
	pthread_t thread;
	void *failed;

	assert_int_equal(pthread_create(&thread, NULL, own_a_result_after_a_jump, back), 0);
	pthread_join(thread, &failed);
	assert_null(failed);
	assert_nothing_left();
}

/* A scope that was opened before setjmp() and ends normally does not end the enclosing ones. */
static void scope_inside_a_jump_ends_alone(void **state)
{
	tensor_scope {
		tensor *t = NULL;

		tensor_scope {
			if (!setjmp(back))
				jump_out(1);
			t = tensor_keep(ok(tensor_ones(TENSOR_INTS(3), F32)));
		}
		tensor_scope_add(t);
		assert_values(t, 0, 1, 1, 1);
	}
	assert_nothing_left();
}

static void *jump_and_end(void *arg)
{
	if (!setjmp(back))
		jump_out(2);
	/* Belongs to the scope that was left. */
	return tensor_ones(TENSOR_INTS(3), F32) ? NULL : arg;
}

static void end_of_the_thread_releases_what_a_jump_left(void **state)
{
	pthread_t thread;
	void *failed;

	assert_int_equal(pthread_create(&thread, NULL, jump_and_end, back), 0);
	pthread_join(thread, &failed);
	assert_null(failed);
	assert_nothing_left();
}

/* ---- without memory ---- */

static bool no_more;

#if !defined(__SANITIZE_THREAD__)
#if defined(__SANITIZE_ADDRESS__)
#define real_realloc __interceptor_realloc
#else
#define real_realloc __libc_realloc
#endif
void *real_realloc(void *p, size_t size);

/* Replaces the C library's realloc(), also for the library. */
void *realloc(void *p, size_t size)
{
	return no_more ? NULL : real_realloc(p, size);
}
#endif

static void fill_scope(tensor *x)
{
	tensor *parts[4], *values = NULL, *indices = NULL;
	int failed = 0;

	no_more = true;
	for (int i = 0; i < 100000 && failed < 4; i++)
		failed += !tensor_neg(x);
	assert_int_equal(failed, 4);
	assert_int_equal(tensor_last_error()->code, ENOMEM);
	assert_int_equal(tensor_split(x, 2, 0, parts, 4), -ENOMEM);
	assert_null(parts[0]);
	assert_int_equal(tensor_max_dim(x, 0, false, &values, &indices), -ENOMEM);
	assert_null(values);
	no_more = false;
	ok(tensor_neg(x));
}

static void result_without_room_in_the_scope_is_released(void **state)
{
	NOT_UNDER_TSAN("its realloc() cannot be replaced");
	tensor_scope {
		fill_scope(ok(tensor_ones(TENSOR_INTS(8), F32)));
	}
	assert_nothing_left();
}

/* ---- gradients with create_graph ---- */

static void gradient_with_a_graph(tensor *x)
{
	tensor_scope
		assert_done(
			tensor_backward_ex(TENSOR_LIST(tensor_sum(tensor_mul(tensor_mul(x, x), x))),
					   NULL, (tensor_list){ 0 }, NULL, TENSOR_CREATE_GRAPH));
	assert_true(tensor_requires_grad(tensor_grad(x)));
}

static tensor *new_leaf(void)
{
	tensor *x = NULL;

	tensor_scope
		x = tensor_retain(leaf_iota(1, TENSOR_INTS(3)));
	return x;
}

/* The graph of the gradient refers to the leaf, which holds the gradient: a cycle. */
static void removed_gradient_releases_its_leaf(void **state)
{
	tensor *x = new_leaf();

	gradient_with_a_graph(x);
	assert_done(tensor_set_grad(x, NULL));
	tensor_release(x);
	assert_nothing_left();
}

static void detached_gradient_releases_its_leaf(void **state)
{
	tensor *x = new_leaf();

	gradient_with_a_graph(x);
	tensor_scope
		assert_done(tensor_set_grad(x, tensor_detach(tensor_grad(x))));
	assert_values(tensor_grad(x), 0, 3, 12, 27);
	tensor_release(x);
	assert_nothing_left();
}

/*
 * PyTorch recommends this as well: tensor_gradients() stores nothing in leaves, so no cycle is
 * made.
 */
static void returned_gradients_make_no_cycle(void **state)
{
	tensor *x = new_leaf(), *g;

	tensor_scope {
		tensor *y = tensor_sum(tensor_mul(tensor_mul(x, x), x));

		assert_done(tensor_backward_ex(TENSOR_LIST(y), NULL, TENSOR_LIST(x), &g,
					       TENSOR_CREATE_GRAPH));
		assert_done(tensor_backward_ex(TENSOR_LIST(tensor_sum(g)), NULL, TENSOR_LIST(x), &g,
					       0));
		assert_values(g, 0, 6, 12, 18);
	}
	tensor_release(x);
	assert_nothing_left();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(scope_around_a_jump_releases_what_was_made_inside, count),
		cmocka_unit_test_setup(no_scope_is_open_after_the_one_around_a_jump, count),
		cmocka_unit_test_setup(scope_inside_a_jump_ends_alone, count),
		cmocka_unit_test_setup(end_of_the_thread_releases_what_a_jump_left, count),
		cmocka_unit_test_setup(result_without_room_in_the_scope_is_released, count),
		cmocka_unit_test_setup(removed_gradient_releases_its_leaf, count),
		cmocka_unit_test_setup(detached_gradient_releases_its_leaf, count),
		cmocka_unit_test_setup(returned_gradients_make_no_cycle, count),
	};

	return cmocka_run_group_tests_name("scope", tests, NULL, NULL);
}
