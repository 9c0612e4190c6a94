// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Data loaders: the memory of batches that workers load. */
#include "loader.h"

#include <stdatomic.h>

static void batch_that_the_program_keeps_is_not_written_again(void **state)
{
	struct tensor_loader_options o = options_of(&plain, 2);
	tensor_loader *l = loader_of(&o);
	tensor *kept[13], *batch[2], *sum = NULL;
	float before[13][BATCH * 4];

	tensor_scope {
		for (int i = 0; i < 13; i++) {
			assert_int_equal(tensor_loader_next(l, batch, 2), 1);
			/* A view, or what a view of the detached tensor holds. */
			kept[i] =
				tensor_retain(i % 2 ? batch[0] : tensor_t(tensor_detach(batch[0])));
			assert_done(tensor_copy_to(batch[0], before[i],
						   (size_t)tensor_numel(batch[0]) * 4));
		}
	}
	for (int epoch = 0; epoch < 5; epoch++) {
		int64_t n = 0;

		if (epoch)
			read_epoch(l, &n);
		else
			assert_int_equal(tensor_loader_next(l, batch, 2), 0);
	}
	for (int i = 0; i < 13; i++) {
		float now[BATCH * 4];

		tensor_scope {
			sum = i % 2 ? kept[i] : tensor_t(kept[i]);
			assert_done(tensor_copy_to(sum, now, (size_t)tensor_numel(sum) * 4));
			assert_memory_equal(now, before[i], (size_t)tensor_numel(sum) * 4);
		}
	}
	tensor_loader_free(l);
	for (int i = 0; i < 13; i++)
		tensor_release(kept[i]);
}

/* Different addresses of the first outputs of `calls` calls, added to those in seen. */
static int count_buffers_of_batches(tensor_loader *l, int calls, const void **seen, int n)
{
	for (int i = 0; i < calls; i++)
		tensor_scope {
			tensor *batch[2];
			int err = tensor_loader_next(l, batch, 2), k = 0;

			assert_done(err);
			if (err) {
				while (k < n && seen[k] != tensor_data(batch[0]))
					k++;
				if (k == n)
					seen[n++] = tensor_data(batch[0]);
			}
		}
	return n;
}

/*
 * The most that two workers have: the loader gives the next batch to the worker that has fewer, so that one whose peer is
 * slow, or does not run, loads all of the batches that are ready or loading, two for each worker, besides the one that the
 * program has.
 */
enum { MOST_BUFFERS = 2 * (2 * 2 + 1) };

static void buffers_are_used_again_after_the_program_released_them(void **state)
{
	struct tensor_loader_options o = options_of(&plain, 2);
	tensor_loader *l = loader_of(&o);
	const void *seen[64];
	int n = count_buffers_of_batches(l, 60, seen, 0);

	tensor_loader_free(l);
	assert_in_range(n, 2, MOST_BUFFERS);
}

static _Atomic int *slow_worker; /* in memory of all processes */

static int get_slowly(void *ctx, int64_t index, tensor **outputs, int n)
{
	if (tensor_loader_worker() == *slow_worker)
		usleep(1500);
	return get_random(ctx, index, outputs, n);
}

/* Each worker does the other's work for a while. */
static void a_slow_worker_does_not_make_buffers_grow(void **state)
{
	struct tensor_loader_options o = options_of(&plain, 2);
	const void *seen[128];
	tensor_loader *l;
	int n = 0;

	slow_worker = mmap(NULL, sizeof(*slow_worker), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(slow_worker != MAP_FAILED);
	o.get = get_slowly;
	l = loader_of(&o);
	for (int turn = 0; turn < 4; turn++) {
		*slow_worker = turn % 2;
		n = count_buffers_of_batches(l, 30, seen, n);
	}
	tensor_loader_free(l);
	munmap(slow_worker, sizeof(*slow_worker));
	assert_in_range(n, 2, MOST_BUFFERS);
}

static void batch_that_another_process_got_is_not_written_again(void **state)
{
	struct tensor_loader_options o = options_of(&plain, 1);
	struct pair p = pair_open(SOCK_STREAM);
	tensor_loader *l = loader_of(&o);
	tensor *batch[2], *got;
	float before[BATCH * 4], now[BATCH * 4];
	int64_t n = 0;

	tensor_scope {
		assert_int_equal(tensor_loader_next(l, batch, 2), 1);
		got = tensor_retain(pass(&p, batch[0]));
		assert_done(tensor_copy_to(got, before, sizeof(before)));
	}
	read_epoch(l, &n);
	read_epoch(l, &n);
	assert_done(tensor_copy_to(got, now, sizeof(now)));
	assert_memory_equal(now, before, sizeof(now));
	tensor_release(got);
	pair_close(&p);
	tensor_loader_free(l);
}

static void batches_of_workers_can_be_shared(void **state)
{
	struct tensor_loader_options o = options_of(&plain, 1);

	for (int workers = 0; workers < 2; workers++)
		tensor_scope {
			struct tensor_buffer_info info = { .size = sizeof(info) };
			tensor_loader *l;
			tensor *batch[2];

			o.workers = workers;
			o.shareable = true;
			l = loader_of(&o);
			assert_int_equal(tensor_loader_next(l, batch, 2), 1);
			assert_done(tensor_buffer_info(batch[0], &info));
			assert_true(tensor_is_writable(batch[0]));
			tensor_loader_free(l);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batch_that_the_program_keeps_is_not_written_again),
		cmocka_unit_test(buffers_are_used_again_after_the_program_released_them),
		cmocka_unit_test(a_slow_worker_does_not_make_buffers_grow),
		cmocka_unit_test(batch_that_another_process_got_is_not_written_again),
		cmocka_unit_test(batches_of_workers_can_be_shared),
	};

	return cmocka_run_group_tests_name("loader_buffers", tests, NULL, NULL);
}
