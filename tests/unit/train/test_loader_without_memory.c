// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* A loader whose n-th allocation fails, for each n: ENOMEM, nothing is left, and the next loader reads the same. */
#include "check.h"

#include "tests/fuzz/calls/fail.c" /* replaces malloc() in this program */

#include <tensor/data.h>

#include <unistd.h>

enum { MOST = 4000, SIZE = 12 };

static tensor *inputs, *targets; /* made before allocations fail */

static int get(void *ctx, int64_t index, tensor **outputs, int n)
{
	(void)ctx, (void)n;
	outputs[0] = tensor_select(inputs, 0, index);
	outputs[0] = tensor_add(outputs[0],
				tensor_mul_scalar(tensor_rand_like(outputs[0], F32), S(0.125)));
	outputs[1] = tensor_select(targets, 0, index);
	return outputs[0] && outputs[1] ? 0 : -1;
}

/* A loader that is made, read and freed. 0, or -errno. */
static int read_loader(int workers, uint64_t *hash)
{
	const struct tensor_loader_options options = { .size = SIZE,
						       .outputs = 2,
						       .get = get,
						       .batch_size = 4,
						       .shuffle = true,
						       .seed = 3,
						       .workers = workers };
	tensor_loader *loader = tensor_loader_new(&options);
	int err = loader ? 1 : -tensor_last_error()->code;

	*hash = 1;
	while (err == 1)
		tensor_scope {
			tensor *batch[2] = { NULL, NULL };

			err = tensor_loader_next(loader, batch, 2);
			for (int i = 0; i < 2 && err == 1; i++)
				*hash = hash_bytes(*hash, tensor_data(batch[i]),
						   (size_t)tensor_numel(batch[i]) *
							   tensor_itemsize(tensor_dtype(batch[i])));
		}
	tensor_loader_free(loader);
	return err;
}

/* Allocations of the calling process fail, and with workers those of a worker with the same number. */
static void loader_without_memory(int workers)
{
	struct tensor_live_counts before, after;
	uint64_t want, got;
	bool again = true;

	assert_done(read_loader(workers, &want));
	for (long n = 1; again; n++) {
		int err;

		tensor_live_counts(&before);
		tensor_clear_error();
		fail_at(n);
		err = read_loader(workers, &got);
		again = fail_end();
		if (err) {
			assert_true(again || workers);
			assert_int_equal(err, -ENOMEM);
			assert_int_equal(tensor_last_error()->code, ENOMEM);
			assert_done(read_loader(workers, &got));
			again = true;
		}
		assert_int_equal(got, want);
		tensor_live_counts(&after);
		assert_int_equal(after.tensors, before.tensors);
		assert_int_equal(after.storages, before.storages);
		assert_true(n < MOST);
	}
}

static void loader_without_memory_fails(void **state)
{
	(void)state;
	if (!fail_possible)
		skip();
	loader_without_memory(0);
}

static void loader_with_workers_without_memory_fails(void **state)
{
	(void)state;
	if (!fail_possible)
		skip();
	loader_without_memory(2);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loader_without_memory_fails),
		cmocka_unit_test(loader_with_workers_without_memory_fails),
	};

	(void)argc;
	fail_without_caches(argv);
	inputs = tensor_rand(TENSOR_INTS(SIZE, 4), F32);
	targets = tensor_arange(S(SIZE), I64);
	fail_spare_others();
	return cmocka_run_group_tests_name("loader_without_memory", tests, NULL, NULL);
}
