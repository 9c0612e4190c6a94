// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Data loaders: workers that die at any moment, forks and threads. */
#include "loader.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* ---- workers that die ---- */

static void worker_that_dies_is_reported_with_its_sample(void **state)
{
	static const int signals[] = { SIGKILL, SIGTERM, SIGABRT };
	struct data d = plain;

	d.kill_at = 29;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		struct tensor_loader_options o = options_of(&d, 2);
		struct tensor_loader_state s;
		tensor_loader *l;
		tensor *batch[2];
		int64_t n = 0;

		d.signal = signals[i];
		o.shuffle = false;
		l = loader_of(&o);
		for (int k = 0; k < 3; k++)
			tensor_scope
				assert_int_equal(tensor_loader_next(l, batch, 2), 1);
		for (int k = 0; k < 2; k++) {
			assert_fails(tensor_loader_next(l, batch, 2), EPIPE,
				     "while it loaded sample 29");
			assert_contains(tensor_last_error()->text, "loader_next: worker ");
			assert_contains(tensor_last_error()->text, "was killed by signal");
		}
		assert_done(tensor_loader_get_state(l, &s));
		s.position = 32;
		assert_done(tensor_loader_set_state(l, &s));
		read_epoch(l, &n);
		assert_int_equal(n, SIZE - 32);
		tensor_loader_free(l);
	}
}

/* Kills a worker after a random time, many times: every batch comes nevertheless, with the same bits. */
static void random_kills_lose_and_change_nothing(void **state)
{
	enum { KILLS = 300 };
	struct data slow = plain;
	struct tensor_loader_options o = options_of(&slow, 2);
	uint64_t want, got = 14695981039346656037u;
	int err, fds, killed = 0, reported = 0;
	tensor *batch[2] = { NULL };
	tensor_loader *l;
	int64_t n = 0;

	slow.delay_us = 30;
	o.workers = 0;
	l = loader_of(&o);
	want = read_epoch(l, &n);
	tensor_loader_free(l);
	o.workers = 2;
	l = loader_of(&o);
	fds = count_fds();
	while (killed < KILLS) {
		pid_t pid = 0;

		got = 14695981039346656037u;
		assert_done(tensor_loader_start_epoch(l, 0));
		do {
			count_children(&pid);
			if (rand() % 2 && pid > 0) {
				usleep((useconds_t)(rand() % 300));
				kill(pid, SIGKILL);
				killed++;
			}
			tensor_scope {
				err = tensor_loader_next(l, batch, 2);
				for (int i = 0; i < 2 && err == 1; i++) {
					const unsigned char *p = tensor_data(batch[i]);
					size_t bytes = (size_t)tensor_numel(batch[i]) *
						       tensor_itemsize(tensor_dtype(batch[i]));

					for (size_t k = 0; k < bytes; k++)
						got = (got ^ p[k]) * 1099511628211u;
				}
			}
			if (err < 0) {
				assert_int_equal(err, -EPIPE);
				assert_contains(tensor_last_error()->text,
						"was killed by signal 9 (SIGKILL)");
				reported++;
			}
		} while (err);
		assert_true(got == want);
		assert_in_range(count_children(NULL), 0, 2);
	}
	assert_in_range(reported, 1, killed);
	do
		tensor_scope
			err = tensor_loader_next(l, batch, 2);
	while (err);
	/* A new descriptor for each buffer in use with memfds; none is left of the dead. */
	assert_in_range(count_fds(), 1, fds + 2 * 2 * 5);
	tensor_loader_free(l);
	assert_int_equal(count_children(NULL), 0);
}

static void worker_that_hangs_is_reported_and_ended(void **state)
{
	struct data d = plain;
	struct tensor_loader_options o = options_of(&d, 2);
	struct timespec a, b;
	tensor_loader *l;
	tensor *batch[2];

	d.hang_at = 3;
	o.shuffle = false;
	o.timeout_ms = 100;
	l = loader_of(&o);
	assert_fails(tensor_loader_next(l, batch, 2), ETIMEDOUT, "is loading sample 3");
	assert_fails(tensor_loader_next(l, batch, 2), ETIMEDOUT, "is loading sample 3");
	clock_gettime(CLOCK_MONOTONIC, &a);
	tensor_loader_free(l);
	clock_gettime(CLOCK_MONOTONIC, &b);
	assert_in_range(b.tv_sec - a.tv_sec, 0, 3);
	assert_int_equal(count_children(NULL), 0);
}

/* Waits for a process that became a child of this one when its parent ended. */
static bool ends(pid_t pid)
{
	for (int k = 0; k < 2000; k++) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return true;
		usleep(1000);
	}
	return false;
}

static void workers_end_when_the_trainer_is_killed(void **state)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int stopped = 0; stopped < 2; stopped++) {
		int fds[2];
		pid_t workers[3] = { 0 }, trainer;

		assert_int_equal(pipe(fds), 0);
		trainer = fork();
		if (!trainer) {
			struct data d = plain;
			struct tensor_loader_options o = options_of(&d, 2);
			pid_t pid;
			FILE *f;
			char path[64];
			int n = 0, w[2] = { 0 };

			d.hang_at = 3; /* one of them is inside of a function of the program */
			o.shuffle = false;
			o.timeout_ms = 30;
			if (tensor_loader_next(loader_of(&o), (tensor *[2]){ NULL }, 2) !=
			    -ETIMEDOUT)
				_exit(1);
			/* A child that lives on and inherits everything. */
			pid = fork();
			if (!pid) {
				close(fds[1]);
				sleep(5);
				_exit(0);
			}
			snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
			f = fopen(path, "r");
			n = fscanf(f, "%d %d", &w[0], &w[1]);
			workers[0] = n > 0 ? w[0] : 0;
			workers[1] = n > 1 ? w[1] : 0;
			workers[2] = pid;
			if (stopped)
				kill(workers[0], SIGSTOP);
			if (write(fds[1], workers, sizeof(workers)) != sizeof(workers))
				_exit(1);
			pause();
			_exit(0);
		}
		close(fds[1]);
		assert_int_equal(read(fds[0], workers, sizeof(workers)), sizeof(workers));
		close(fds[0]);
		assert_true(workers[0] > 0 && workers[1] > 0);
		usleep(20000);
		kill(trainer, SIGKILL);
		waitpid(trainer, NULL, 0);
		for (int i = 0; i < 2; i++) {
			assert_true(ends(workers[i]));
		}
		kill(workers[2], SIGKILL);
		assert_true(ends(workers[2]));
	}
}

/* ---- processes and threads ---- */

static void child_of_the_program_frees_its_copy_only(void **state)
{
	struct tensor_loader_options o = options_of(&plain, 2);
	tensor_loader *l = loader_of(&o);
	tensor *batch[2];
	int64_t n = 0;
	int status;

	tensor_scope
		assert_int_equal(tensor_loader_next(l, batch, 2), 1);
	status = IN_CHILD({
		if (tensor_loader_next(l, batch, 2) != -ESTALE)
			_exit(1);
		tensor_loader_free(l);
	});
	assert_int_equal(status, 0);
	read_epoch(l, &n);
	assert_int_equal(n, SIZE - BATCH);
	assert_int_equal(count_children(NULL), 2);
	tensor_loader_free(l);
}

static void nothing_is_left_after_free_at_any_time(void **state)
{
	struct tensor_live_counts before, after;
	int fds, buffers;

	tensor_loader_free(loader_of(&(struct tensor_loader_options){
		.size = 1, .outputs = 1, .get = get_random, .ctx = &plain, .workers = 1 }));
	tensor_cache_trim();
	fds = count_fds();
	buffers = count_buffers();
	tensor_live_counts(&before);
	for (int i = 0; i < 20; i++) {
		struct tensor_loader_options o = options_of(&plain, 1 + i % 3);
		tensor_loader *l = loader_of(&o);

		for (int k = 0; k < i; k++)
			tensor_scope {
				tensor *batch[2];

				assert_done(tensor_loader_next(l, batch, 2));
			}
		tensor_loader_free(l);
		assert_int_equal(count_children(NULL), 0);
	}
	tensor_live_counts(&after);
	assert_int_equal(after.tensors, before.tensors);
	assert_int_equal(after.storages, before.storages);
	tensor_cache_trim();
	assert_fds(fds);
	assert_int_equal(count_buffers(), buffers);
}

static atomic_bool stop_threads;

/* Allocates, and forks, while loaders start and end. */
static void *disturb(void *arg)
{
	(void)arg;
	while (!stop_threads) {
		tensor_scope {
			tensor *t = tensor_rand(TENSOR_INTS(1000), F32);

			tensor_release(tensor_retain(tensor_add(t, t)));
		}
		free(malloc(1000));
	}
	return NULL;
}

static void workers_are_forked_while_other_threads_run(void **state)
{
	pthread_t threads[3];

	NOT_UNDER_TSAN(THREADS_AFTER_FORK);
	stop_threads = false;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, disturb, NULL), 0);
	for (int i = 0; i < 10; i++) {
		struct tensor_loader_options o = options_of(&plain, 2);
		tensor_loader *l = loader_of(&o);
		int64_t n = 0;

		read_epoch(l, &n);
		assert_int_equal(n, SIZE);
		tensor_loader_free(l);
	}
	stop_threads = true;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

static tensor_loader *common;
static atomic_long taken;

static void *take(void *arg)
{
	tensor *batch[2];
	int err = 1;

	while (err == 1) {
		tensor_scope {
			err = tensor_loader_next(common, batch, 2);
			if (err == 1)
				taken += tensor_size(batch[0], 0);
		}
	}
	return err < 0 ? arg : NULL;
}

static void threads_take_turns(void **state)
{
	struct tensor_loader_options o = options_of(&plain, 2);
	pthread_t threads[3];
	void *failed;

	o.size = 400;
	common = loader_of(&o);
	taken = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take, &failed), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	/* Each thread leaves at an end of an epoch. */
	assert_int_equal(taken, 3 * 400);
	tensor_loader_free(common);
}

static void no_descriptor_is_an_error(void **state)
{
	struct tensor_loader_options o = options_of(&plain, 4);
	struct rlimit limit, few;
	int fds = count_fds();

	getrlimit(RLIMIT_NOFILE, &limit);
	few = (struct rlimit){ (rlim_t)fds + 4, (rlim_t)fds + 4 };
	/* In a child, because the hard limit cannot be raised again. */
	assert_int_equal(IN_CHILD({
				 setrlimit(RLIMIT_NOFILE, &few);
				 if (tensor_loader_new(&o) || tensor_last_error()->code != EMFILE) {
					 tensor_perror("");
					 _exit(1);
				 }
				 if (waitpid(-1, NULL, 0) >= 0)
					 _exit(2);
			 }),
			 0);
	assert_int_equal(count_fds(), fds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worker_that_dies_is_reported_with_its_sample),
		cmocka_unit_test(random_kills_lose_and_change_nothing),
		cmocka_unit_test(worker_that_hangs_is_reported_and_ended),
		cmocka_unit_test(workers_end_when_the_trainer_is_killed),
		cmocka_unit_test(child_of_the_program_frees_its_copy_only),
		cmocka_unit_test(nothing_is_left_after_free_at_any_time),
		cmocka_unit_test(workers_are_forked_while_other_threads_run),
		cmocka_unit_test(threads_take_turns),
		cmocka_unit_test(no_descriptor_is_an_error),
	};

	return cmocka_run_group_tests_name("loader_workers", tests, NULL, NULL);
}
