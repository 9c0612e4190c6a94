// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Lifetime: a graph keeps what it refers to when tensors are changed or released; threads that read
 * one view; forks.
 */
#include "autograd.h"
#include "peer.h"

#include <pthread.h>

/* ---- tensors that change their role in a graph ---- */

/* The graph of y has v as a leaf; then v becomes a result. */
static void view_that_was_a_leaf_may_become_a_result(void **state)
{
	for (int round = 0; round < 50; round++)
		tensor_scope {
			tensor *x = ok(tensor_zeros(TENSOR_INTS(4), F32)),
			       *w = leaf_iota(1, TENSOR_INTS(2));
			tensor *v = leaf(tensor_slice(x, 0, 0, 2, 1)), *y;

			y = ok(tensor_sum(tensor_mul_scalar(v, S(3))));
			assert_done(tensor_set_requires_grad(v, false));
			ok(tensor_add_(v, w));
			for (int i = 0; i < 100; i++)
				ok(tensor_zeros(TENSOR_INTS(4), F32));
			assert_done(tensor_backward(y));
			assert_done(tensor_backward(tensor_sum(tensor_mul(v, v))));
			assert_values(tensor_grad(w), 0, 2, 4);
		}
}

static void leaf_keeps_its_shape(void **state)
{
	tensor_scope {
		tensor *t = leaf_iota(0, TENSOR_INTS(2)), *y = ok(tensor_sum(t));

		tensor_no_grad
			assert_fails(tensor_resize_(t, TENSOR_INTS(2, 2)), EINVAL,
				     "requires a gradient");
		assert_done(tensor_backward(y));
		assert_values(tensor_grad(t), 0, 1, 1);
		assert_int_equal(tensor_numel(tensor_grad(t)), tensor_numel(t));
	}
}

static void no_grad_view_refuses_in_place_changes(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(0, TENSOR_INTS(4)), *b = ok(tensor_mul_scalar(x, S(2))),
		       *v = NULL;

		tensor_no_grad
			v = ok(tensor_slice(b, 0, 0, 2, 1));
		assert_fails(tensor_add_(v, v), EINVAL, "no_grad");
		assert_done(tensor_set_requires_grad(v, false));
		assert_fails(tensor_add_(v, v), EINVAL, "no_grad");
	}
}

/* ---- threads that read one view ---- */

enum { READERS = 2, ROUNDS = 400, VIEWS = 256 };

static struct {
	pthread_barrier_t begin, end;
	tensor *view[VIEWS];
	_Atomic int without_history;
} shared;

static void *read_view(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&shared.begin);
		for (int k = 0; k < VIEWS; k++)
			tensor_scope
				if (!tensor_requires_grad(tensor_neg(shared.view[k])))
					shared.without_history++;
		pthread_barrier_wait(&shared.end);
	}
	return NULL;
}

/* The base was changed in place, so the first reader regenerates the node of the view. */
static void all_readers_of_a_stale_view_have_a_history(void **state)
{
	pthread_t thread[READERS];

	pthread_barrier_init(&shared.begin, NULL, READERS + 1);
	pthread_barrier_init(&shared.end, NULL, READERS + 1);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, read_view, NULL), 0);
	for (int i = 0; i < ROUNDS; i++)
		tensor_scope {
			tensor *base = ok(tensor_mul_scalar(leaf_iota(0, TENSOR_INTS(4)), S(1)));

			for (int k = 0; k < VIEWS; k++)
				shared.view[k] = ok(tensor_slice(base, 0, 1, 3, 1));
			ok(tensor_mul_scalar_(base, S(2)));
			pthread_barrier_wait(&shared.begin);
			pthread_barrier_wait(&shared.end);
		}
	for (int i = 0; i < READERS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(shared.without_history, 0);
}

/* ---- forks ---- */

static struct {
	tensor *leaf;
	_Atomic bool stop;
} busy;

static void use_every_lock(void)
{
	tensor_scope {
		tensor *base = tensor_mul_scalar(busy.leaf, S(1)),
		       *view = tensor_slice(base, 0, 0, 2, 1);

		tensor_mul_scalar_(base, S(2));
		tensor_backward(tensor_sum(tensor_gelu_opt(tensor_mul(view, view), "tanh")));
	}
}

static void *keep_busy(void *arg)
{
	while (!busy.stop)
		use_every_lock();
	return NULL;
}

static void forked_child_finds_no_lock_taken(void **state)
{
	enum { THREADS = 3 };
	pthread_t thread[THREADS];
	int hung = 0;

	/* In a forked child the locks of AddressSanitizer's allocator stay locked. */
	NOT_WATCHED();
	busy.leaf = leaf_iota(0, TENSOR_INTS(4));
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, keep_busy, NULL), 0);
	for (int i = 0; i < 150 && hung < 3; i++)
		hung += IN_CHILD({
				signal(SIGALRM, SIG_DFL);
				alarm(5);
				for (int k = 0; k < 3; k++)
					use_every_lock();
			}) != 0;
	busy.stop = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	tensor_release(busy.leaf);
	assert_int_equal(hung, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(view_that_was_a_leaf_may_become_a_result),
		cmocka_unit_test(leaf_keeps_its_shape),
		cmocka_unit_test(no_grad_view_refuses_in_place_changes),
		cmocka_unit_test(all_readers_of_a_stale_view_have_a_history),
		cmocka_unit_test(forked_child_finds_no_lock_taken),
	};

	return cmocka_run_group_tests_name("autograd_lifetime", tests, NULL, NULL);
}
