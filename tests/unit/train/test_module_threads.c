// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Several threads call layers of one module: each name is made once, and all get the same results. */
#include "train/filled.h"
#include <pthread.h>
#include <unistd.h>

enum { THREADS = 8, LAYERS = 40, ROUNDS = 20 };

static tensor_module *model;

static tensor *net(tensor *x)
{
	char name[32];

	for (int i = 0; i < LAYERS; i++) {
		snprintf(name, sizeof(name), "block%d.fc", i);
		x = tensor_tanh(tensor_module_linear(model, name, x, 4));
	}
	return x;
}

static void *worker(void *result)
{
	for (int i = 0; i < ROUNDS; i++)
		tensor_scope {
			tensor *x = tensor_ones(TENSOR_INTS(2, 4), F32), *y = net(x);
			double sum;

			if (!y || tensor_item(tensor_sum(y), &sum) < 0)
				return NULL;
			if (i && sum != *(double *)result)
				return NULL;
			*(double *)result = sum;
		}
	return result;
}

static void threads_make_each_name_once(void **state)
{
	double results[THREADS];
	pthread_t thread[THREADS];
	void *done;

	(void)state;
	model = tensor_module_new(F32);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, worker, &results[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &done);
		assert_non_null(done);
		assert_true(results[i] == results[0]);
	}
	assert_int_equal(tensor_module_parameters(model).len, 2 * LAYERS);
	tensor_module_free(model);
}

/* All threads initialise the same parameter at the same time; one of the tensors is kept. */
static pthread_barrier_t all_initialise;

static tensor *wait_for_all(tensor *t, void *ctx)
{
	(void)ctx;
	pthread_barrier_wait(&all_initialise);
	return tensor_fill_(t, 1);
}

static void *make(void *unused)
{
	(void)unused;
	return tensor_module_parameter(model, "w", TENSOR_INTS(3), wait_for_all, NULL);
}

static void one_of_several_initial_values_is_kept(void **state)
{
	struct tensor_live_counts before, after;
	pthread_t thread[THREADS];
	void *t;

	(void)state;
	model = tensor_module_new(F32);
	pthread_barrier_init(&all_initialise, NULL, THREADS);
	tensor_live_counts(&before);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, make, NULL), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &t);
		assert_non_null(t);
		assert_ptr_equal(t, tensor_module_get(model, "w"));
	}
	tensor_live_counts(&after);
	assert_int_equal(after.tensors, before.tensors + 1);
	pthread_barrier_destroy(&all_initialise);
	tensor_module_free(model);
}

/* A file's tensor is used once, whichever thread is first, and becomes a parameter once. */
static void *first_use(void *arg)
{
	pthread_barrier_wait(&all_initialise);
	return tensor_module_parameter(model, arg, TENSOR_INTS(3), NULL, NULL);
}

static void threads_use_a_loaded_tensor_once(void **state)
{
	char path[] = "/tmp/tensor-module-XXXXXX";
	pthread_t thread[THREADS];
	void *t;

	(void)state;
	assert_true(close(mkstemp(path)) == 0);
	pthread_barrier_init(&all_initialise, NULL, THREADS);
	for (int round = 0; round < ROUNDS; round++) {
		model = tensor_module_new(F32);
		tensor_scope {
			struct tensor_named a = { "a.w", tensor_ones(TENSOR_INTS(3), F32) };

			assert_done(tensor_save_safetensors(path, &a, 1, NULL, 0));
		}
		assert_done(tensor_module_load(model, path, 0));
		for (int i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, first_use, "a.w"), 0);
		for (int i = 0; i < THREADS; i++) {
			pthread_join(thread[i], &t);
			assert_ptr_equal(t, tensor_module_get(model, "a.w"));
		}
		assert_values(tensor_module_get(model, "a.w"), 0, 1, 1, 1);
		assert_true(tensor_requires_grad(tensor_module_get(model, "a.w")));
		assert_done(tensor_module_check_loaded(model));
		tensor_module_free(model);
	}
	pthread_barrier_destroy(&all_initialise);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_make_each_name_once),
		cmocka_unit_test(one_of_several_initial_values_is_kept),
		cmocka_unit_test(threads_use_a_loaded_tensor_once),
	};

	return cmocka_run_group_tests_name("module_threads", tests, NULL, NULL);
}
