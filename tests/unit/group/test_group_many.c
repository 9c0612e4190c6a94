// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Many requests and parameters: time is linear in their number. Waits of ranks with a processor each. */
#include "ranks.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <tensor/parallel.h>

/* Of processor time, so that other work of the machine does not count. */
static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- messages ---- */

/* The time from the first of n receives, which all wait at the same time, to the end of the last. */
static double messages(tensor_group *g, int n)
{
	tensor_request **r = calloc((size_t)n, sizeof(*r));
	tensor *t = tensor_zeros(TENSOR_INTS(2), F32);
	bool receives = tensor_group_rank(g);
	double begin;

	NEED(r && t);
	NEED(!tensor_group_barrier(g, NULL));
	begin = seconds();
	for (int i = 0; i < n; i++)
		NEED(!(receives ? tensor_group_recv(g, t, 0, &r[i]) :
				  tensor_group_send(g, t, 1, &r[i])));
	for (int i = 0; i < n; i++)
		NEED(!tensor_request_wait(r[i], -1));
	tensor_release(t);
	free(r);
	return seconds() - begin;
}

/* Eight times as many: 64 times as long if each looked at all others. Waits make a time longer by chance. */
static void count_messages(tensor_group *g, void *arg)
{
	double least = 100;

	messages(g, 100);
	for (int i = 0; i < 2; i++) {
		double few = messages(g, 2000), many = messages(g, 16000);

		least = many / few < least ? many / few : least;
	}
	if (tensor_group_rank(g))
		NEED(least < 24);
}

static void messages_do_not_look_at_all_others(void **state)
{
	run_ranks(2, count_messages, NULL);
}

/* ---- parameters ---- */

static double prepare(tensor_group *g, int n)
{
	tensor **leaves = calloc((size_t)n, sizeof(*leaves));
	tensor_data_parallel *dp;
	double begin;

	for (int i = 0; i < n; i++) {
		leaves[i] = tensor_ones(TENSOR_INTS(1 + i % 7), F32);
		tensor_set_requires_grad(leaves[i], true);
	}
	begin = seconds();
	dp = tensor_data_parallel_new_of((tensor_list){ leaves, n }, (tensor_list){ NULL, 0 }, g,
					 NULL);
	begin = seconds() - begin;
	NEED(dp);
	NEED(tensor_data_parallel_owned(dp).len == n);
	tensor_data_parallel_free(dp);
	for (int i = 0; i < n; i++)
		tensor_release(leaves[i]);
	free(leaves);
	return begin;
}

static void count_parameters(tensor_group *g, void *arg)
{
	double few, many;

	prepare(g, 100);
	few = prepare(g, 4000);
	many = prepare(g, 32000);
	NEED(many < 30 * few);
}

static void parameters_are_shared_out_in_linear_time(void **state)
{
	run_ranks(1, count_parameters, NULL);
}

/* The largest first, to the rank with the fewest elements, the first of those: 9; 8; 5; 4 to that of 5; 3 to that of 8. */
static void owners(tensor_group *g, void *arg)
{
	static const int sizes[] = { 4, 9, 3, 8, 5 }, owner[] = { 2, 0, 1, 1, 2 };
	tensor *leaves[5];
	tensor_data_parallel *dp;
	tensor_list mine;
	int64_t n = 0;

	for (int i = 0; i < 5; i++) {
		leaves[i] = tensor_ones(TENSOR_INTS(sizes[i]), F32);
		tensor_set_requires_grad(leaves[i], true);
	}
	dp = tensor_data_parallel_new_of((tensor_list){ leaves, 5 }, (tensor_list){ NULL, 0 }, g,
					 NULL);
	NEED(dp);
	mine = tensor_data_parallel_owned(dp);
	for (int i = 0; i < 5; i++)
		if (owner[i] == tensor_group_rank(g))
			NEED(n < mine.len && mine.data[n++] == leaves[i]);
	NEED(n == mine.len);
	tensor_data_parallel_free(dp);
	for (int i = 0; i < 5; i++)
		tensor_release(leaves[i]);
}

static void ranks_own_about_as_many_elements(void **state)
{
	run_ranks(3, owners, NULL);
}

/* ---- waits ---- */

/* Each rank on a processor of its own: of some batches of barriers, one in which few waits slept. */
static void bound(tensor_group *g, void *arg)
{
	int least = INT_MAX;
	cpu_set_t set;

	NEED(!sched_getaffinity(0, sizeof(set), &set));
	for (int i = 0; i < 50; i++) {
		struct rusage before, after;

		getrusage(RUSAGE_THREAD, &before);
		for (int k = 0; k < 40; k++)
			NEED(!tensor_group_barrier(g, NULL));
		getrusage(RUSAGE_THREAD, &after);
		if (after.ru_nvcsw - before.ru_nvcsw < least)
			least = (int)(after.ru_nvcsw - before.ru_nvcsw);
	}
	NEED(CPU_COUNT(&set) == 1);
	NEED(least < 10);
}

static void bind_to(cpu_set_t all, int number)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && !number--)
			CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

static void ranks_that_are_bound_to_processors_spin(void **state)
{
	const char *address = ranks_address();
	pid_t pids[2];
	cpu_set_t all;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	if (CPU_COUNT(&all) < 2 || ranks_are_of("mpi") || ranks_are_nccl())
		skip();
	for (int i = 0; i < 2; i++) {
		bind_to(all, i);
		pids[i] = rank_start(address, i, 2, INT64_C(60000000000), bound, NULL);
	}
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(rank_end(pids[i]), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_do_not_look_at_all_others),
		cmocka_unit_test(parameters_are_shared_out_in_linear_time),
		cmocka_unit_test(ranks_own_about_as_many_elements),
		cmocka_unit_test(ranks_that_are_bound_to_processors_spin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
