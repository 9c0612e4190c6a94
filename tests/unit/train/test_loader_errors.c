// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Data loaders: errors of the data set and of the program. */
#include "loader.h"

/* ---- errors ---- */

static void error_of_a_sample_names_its_index_and_reason(void **state)
{
	struct data d = plain;

	d.fail_at = 29;
	for (int workers = 0; workers <= 2; workers++) {
		struct tensor_loader_options o = options_of(&d, workers);
		struct tensor_loader_state s;
		tensor_loader *l;
		tensor *batch[2];
		int64_t n = 0;

		o.shuffle = false;
		l = loader_of(&o);
		for (int i = 0; i < 3; i++)
			tensor_scope
				assert_int_equal(tensor_loader_next(l, batch, 2), 1);
		for (int i = 0; i < 3; i++) {
			assert_fails(tensor_loader_next(l, batch, 2), EINVAL,
				     "sample 29: index_select");
			assert_done(tensor_loader_get_state(l, &s));
			assert_int_equal(s.position, 24);
		}
		s.position = 32; /* without the bad batch */
		assert_done(tensor_loader_set_state(l, &s));
		read_epoch(l, &n);
		assert_int_equal(n, SIZE - 32);
		tensor_loader_free(l);
	}
}

static int get_without_reason(void *ctx, int64_t index, tensor **outputs, int n)
{
	(void)ctx;
	(void)n;
	outputs[0] = NULL;
	return index == 1 ? -ENOENT : 0;
}

static void missing_output_and_missing_reason_are_errors(void **state)
{
	for (int workers = 0; workers < 2; workers++) {
		struct tensor_loader_options o = {
			.size = 4, .outputs = 1, .get = get_without_reason, .workers = workers
		};
		struct tensor_loader_state s;
		tensor_loader *l = loader_of(&o);
		tensor *batch;

		assert_fails(tensor_loader_next(l, &batch, 1), EINVAL,
			     "sample 0: output 0 was not set");
		assert_done(tensor_loader_get_state(l, &s));
		s.position = 1;
		assert_done(tensor_loader_set_state(l, &s));
		assert_fails(tensor_loader_next(l, &batch, 1), ENOENT,
			     "sample 1: get failed: No such");
		tensor_loader_free(l);
	}
}

static void hostile_options_are_refused(void **state)
{
	struct tensor_loader_options o;
	struct tensor_sample_type type = { TENSOR_F32, TENSOR_INTS(2, -1) };
	struct tensor_loader_state s = { 7, 0, 0, SIZE };
	tensor_loader *l;
	tensor *batch[2];

#define REFUSED(words, ...)                                         \
	do {                                                        \
		o = options_of(&plain, 1);                          \
		__VA_ARGS__;                                        \
		assert_fails(tensor_loader_new(&o), EINVAL, words); \
	} while (0)
	assert_fails(tensor_loader_new(NULL), EINVAL, "options is NULL");
	REFUSED("get is NULL", o.get = NULL);
	REFUSED("size", o.size = -1);
	REFUSED("size", o.size = INT64_MAX);
	REFUSED("outputs", o.outputs = 0);
	REFUSED("outputs", o.outputs = 17);
	REFUSED("batch_size", o.batch_size = INT64_MIN);
	REFUSED("workers", o.workers = 257);
	REFUSED("workers", o.workers = -1);
	REFUSED("prefetch", o.prefetch = 1 << 20);
	REFUSED("timeout", o.timeout_ms = -1);
	REFUSED("length", o.length = -4);
	REFUSED("length", o.length = INT64_MAX);
	REFUSED("length", (o.size = 0, o.length = 4));
	REFUSED("collate", o.batch_outputs = 3);
	REFUSED("reserved", o.reserved[2] = 1);
	REFUSED("shards", o.shards = -1);
	REFUSED("shard is", o.shard = -1);
	REFUSED("shard is", o.shard = 1);
	REFUSED("shard is", (o.shards = 4, o.shard = 4));
	REFUSED("size", (o.types = &type, o.outputs = 1, o.batch_outputs = 0));
	o = options_of(&plain, 0);
	l = loader_of(&o);
	assert_fails(tensor_loader_next(NULL, batch, 2), EINVAL, "NULL");
	assert_fails(tensor_loader_next(l, NULL, 2), EINVAL, "0 tensors");
	assert_fails(tensor_loader_next(l, batch, 3), EINVAL, "3 tensors");
	assert_fails(tensor_loader_get_state(l, NULL), EINVAL, "NULL");
	assert_fails(tensor_loader_set_state(l, NULL), EINVAL, "NULL");
	s.position = SIZE + 1;
	assert_fails(tensor_loader_set_state(l, &s), EINVAL, "position 104");
	s = (struct tensor_loader_state){ 7, INT64_MAX, 0, SIZE };
	assert_fails(tensor_loader_set_state(l, &s), EINVAL, "epoch");
	s = (struct tensor_loader_state){ 7, 0, 0, SIZE + 1 };
	assert_fails(tensor_loader_set_state(l, &s), EINVAL, "103 samples");
	assert_fails(tensor_loader_start_epoch(l, -1), EINVAL, "-1");
	tensor_loader_free(l);
	tensor_loader_free(NULL);
	assert_int_equal(tensor_loader_length(NULL), 0);
	assert_int_equal(tensor_loader_worker(), -1);
}

static void empty_data_set_has_no_batch(void **state)
{
	for (int workers = 0; workers < 2; workers++) {
		struct tensor_loader_options o = options_of(&plain, workers);
		tensor_loader *l;
		tensor *batch[2];

		o.size = 0;
		l = loader_of(&o);
		assert_int_equal(tensor_loader_next(l, batch, 2), 0);
		assert_int_equal(tensor_loader_next(l, batch, 2), 0);
		tensor_loader_free(l);
	}
}

static int init_fails(void *ctx, int worker)
{
	(void)ctx;
	return worker == 1 ? -EACCES : 0;
}

static void failure_of_worker_init_is_an_error(void **state)
{
	struct tensor_loader_options o = options_of(&plain, 2);
	tensor_loader *l;
	tensor *batch[2];
	int err;

	o.worker_init = init_fails;
	l = loader_of(&o);
	do
		tensor_scope
			err = tensor_loader_next(l, batch, 2);
	while (err == 1);
	assert_int_equal(err, -EACCES);
	assert_contains(tensor_last_error()->text, "worker_init failed: Permission denied");
	tensor_loader_free(l);
}

static tensor_loader *nested;

static int get_nested(void *ctx, int64_t index, tensor **outputs, int n)
{
	tensor *batch;

	(void)ctx;
	(void)index;
	(void)n;
	(void)outputs;
	return tensor_loader_next(nested, &batch, 1);
}

static void loader_called_by_its_own_function_fails(void **state)
{
	struct tensor_loader_options o = { .size = 4, .outputs = 1, .get = get_nested };
	tensor *batch;

	nested = loader_of(&o);
	assert_fails(tensor_loader_next(nested, &batch, 1), EBUSY, "a function of the same loader");
	tensor_loader_free(nested);
}

static int get_freeing(void *ctx, int64_t index, tensor **outputs, int n)
{
	(void)ctx;
	(void)n;
	tensor_clear_error();
	tensor_loader_free(nested);
	outputs[0] = tensor_full(TENSOR_SCALAR_SHAPE, S(tensor_last_error()->code), I64);
	return index < 0 ? -EIO : 0;
}

static void loader_freed_by_its_own_function_stays(void **state)
{
	struct tensor_loader_options o = { .size = 4, .outputs = 1, .get = get_freeing };
	tensor *batch;

	nested = loader_of(&o);
	for (int i = 0; i < 4; i++) {
		tensor_scope {
			assert_int_equal(tensor_loader_next(nested, &batch, 1), 1);
			assert_values(batch, 0, EBUSY);
		}
	}
	tensor_loader_free(nested);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(error_of_a_sample_names_its_index_and_reason),
		cmocka_unit_test(missing_output_and_missing_reason_are_errors),
		cmocka_unit_test(hostile_options_are_refused),
		cmocka_unit_test(empty_data_set_has_no_batch),
		cmocka_unit_test(failure_of_worker_init_is_an_error),
		cmocka_unit_test(loader_called_by_its_own_function_fails),
		cmocka_unit_test(loader_freed_by_its_own_function_stays),
	};

	return cmocka_run_group_tests_name("loader_errors", tests, NULL, NULL);
}
