// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Retained gradients, with hooks of the same tensors: sums, threads, many outputs of one node. */
#include "autograd.h"

#include <tensor/function.h>

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static void retained_gradients_add_up_and_end_with_the_tensor(void **state)
{
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *z, *y = ok(tensor_mul_scalar(x, S(3)));

		assert_null(tensor_grad(y));
		assert_done(tensor_retain_grad(y));
		assert_done(tensor_retain_grad(y));
		z = ok(tensor_sum(tensor_mul(y, y)));
		assert_done(tensor_backward_ex(TENSOR_LIST(z), NULL, (tensor_list){ 0 }, NULL,
					       TENSOR_RETAIN_GRAPH));
		assert_values(tensor_grad(y), 0, 6, 12);
		assert_done(tensor_backward_ex(TENSOR_LIST(z), NULL, (tensor_list){ 0 }, NULL,
					       TENSOR_RETAIN_GRAPH));
		assert_values(tensor_grad(y), 0, 12, 24);
		assert_values(tensor_grad(x), 0, 36, 72);
	}
	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2)), *z, *part[2];

		tensor_scope {
			assert_done(tensor_chunk(x, 2, 0, part, 2));
			assert_done(tensor_retain_grad(part[0]));
			assert_done(tensor_retain_grad(part[1]));
			z = tensor_keep(
				ok(tensor_sum(tensor_cat(TENSOR_LIST(part[0], part[1]), 0))));
		}
		z = tensor_scope_add(z);
		assert_done(tensor_backward(z));
		assert_values(tensor_grad(x), 0, 1, 1);
	}
}

static tensor *retained, *retained_sum;

static void *hundred_backwards(void *arg)
{
	for (int i = 0; i < 100; i++)
		assert_done(tensor_backward_ex(TENSOR_LIST(retained_sum), NULL, (tensor_list){ 0 },
					       NULL, TENSOR_RETAIN_GRAPH));
	return arg;
}

static void threads_add_to_one_retained_gradient(void **state)
{
	pthread_t thread[3];

	tensor_scope {
		tensor *x = leaf_iota(1, TENSOR_INTS(2));

		retained = ok(tensor_mul_scalar(x, S(2)));
		assert_done(tensor_retain_grad(retained));
		retained_sum = ok(tensor_sum(retained));
		for (int i = 0; i < 3; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, hundred_backwards, NULL),
					 0);
		for (int i = 0; i < 3; i++)
			pthread_join(thread[i], NULL);
		assert_values(tensor_grad(retained), 0, 300, 300);
		assert_values(tensor_grad(x), 0, 600, 600);
	}
}

enum { THREADS = 4, ROUNDS = 200 };
static struct {
	tensor *leaf;
	_Atomic int gradient, accumulated;
} shared;

static tensor *count_gradient(tensor *grad, void *ctx)
{
	(void)ctx;
	shared.gradient++;
	return grad;
}

static int count_accumulated(tensor *leaf, void *ctx)
{
	(void)ctx;
	shared.accumulated += leaf == shared.leaf;
	return 0;
}

static void *train(void *arg)
{
	for (int i = 0; i < ROUNDS; i++)
		tensor_scope {
			tensor_hook *h;
			tensor *y = ok(tensor_mul_scalar(shared.leaf, S(2)));

			assert_done(
				tensor_register_hook(shared.leaf, count_gradient, NULL, NULL, &h));
			assert_done(tensor_register_hook(y, count_gradient, NULL, NULL, NULL));
			assert_done(tensor_retain_grad(y));
			assert_done(tensor_backward(tensor_sum(y)));
			assert_non_null(tensor_grad(y));
			tensor_hook_remove(h);
		}
	return arg;
}

static void threads_share_a_leaf_with_hooks(void **state)
{
	pthread_t thread[THREADS];

	shared.leaf = leaf_iota(0, TENSOR_INTS(4));
	assert_done(tensor_register_post_accumulate_grad_hook(shared.leaf, count_accumulated, NULL,
							      NULL, NULL));
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, train, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(shared.accumulated, THREADS * ROUNDS);
	assert_true(shared.gradient >= 2 * THREADS * ROUNDS);
	assert_values(tensor_grad(shared.leaf), 0, 1600, 1600, 1600, 1600);
	tensor_release(shared.leaf);
}

/* ---- many outputs ---- */

enum { MANY = 32000 };

static int fan_out(tensor_function_ctx *ctx, tensor *const *in, int nin, tensor **out, int nout)
{
	for (int i = 0; i < nout; i++)
		out[i] = tensor_mul_scalar(in[0], S(i));
	return 0;
}

static int fan_in(tensor_function_ctx *ctx, tensor *const *grads, int ngrads, tensor **out, int nin)
{
	out[0] = grads[ngrads - 1];
	return 0;
}

static const struct tensor_function fan = { "Fan", fan_out, fan_in, 0 };

static tensor *count(tensor *grad, void *ctx)
{
	++*(int *)ctx;
	return grad;
}

/* Processor seconds of all calls for the n outputs of a node. */
static double time_of_outputs(int n)
{
	tensor **y = calloc(n, sizeof(*y));
	tensor_hook **hook = calloc(n, sizeof(*hook));
	double start, took;
	int called = 0;

	tensor_scope {
		tensor *x = leaf(ok(tensor_ones(TENSOR_SCALAR_SHAPE, F32)));

		assert_done(tensor_function_apply(&fan, NULL, NULL, TENSOR_LIST(x), y, n));
		start = seconds_of(CLOCK_THREAD_CPUTIME_ID);
		for (int i = 0; i < n; i++) {
			assert_done(tensor_retain_grad(y[i]));
			assert_done(tensor_register_hook(y[i], count, &called, NULL, &hook[i]));
		}
		for (int i = 0; i < 2; i++)
			assert_done(tensor_backward_ex((tensor_list){ y, n }, NULL,
						       (tensor_list){ 0 }, NULL,
						       TENSOR_RETAIN_GRAPH));
		assert_int_equal(called, 2 * n);
		for (int i = 0; i < n; i++)
			tensor_hook_remove(hook[i]);
		assert_done(tensor_backward_ex((tensor_list){ y, n }, NULL, (tensor_list){ 0 },
					       NULL, 0));
		assert_int_equal(called, 2 * n);
		for (int i = 0; i < n; i += n / 10)
			assert_values(tensor_grad(y[i]), 0, 3);
		assert_values(tensor_grad(x), 0, 3);
		/* Released below from first to last; a scope releases the last one first. */
		for (int i = 0; i < n; i++)
			tensor_retain(y[i]);
	}
	for (int i = 0; i < n; i++)
		tensor_release(y[i]);
	took = seconds_of(CLOCK_THREAD_CPUTIME_ID) - start;
	free(hook);
	free(y);
	return took;
}

static void duration_is_linear_in_the_number_of_outputs(void **state)
{
	double few = 1e9, many = 1e9, took;

	for (int i = 0; i < 3; i++) {
		took = time_of_outputs(MANY / 16);
		few = took < few ? took : few;
		took = time_of_outputs(MANY);
		many = took < many ? took : many;
	}
	print_message("%d outputs %.1f ms, %d outputs %.1f ms\n", MANY / 16, few * 1e3, MANY,
		      many * 1e3);
	assert_true(many < 64 * few);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(retained_gradients_add_up_and_end_with_the_tensor),
		cmocka_unit_test(threads_add_to_one_retained_gradient),
		cmocka_unit_test(threads_share_a_leaf_with_hooks),
		cmocka_unit_test(duration_is_linear_in_the_number_of_outputs),
	};

	return cmocka_run_group_tests_name("autograd_retained", tests, NULL, NULL);
}
