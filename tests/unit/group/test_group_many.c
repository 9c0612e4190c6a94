// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Many requests and parameters: time is linear in their number. */
#include "ranks.h"

#include <stdlib.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_do_not_look_at_all_others),
		cmocka_unit_test(parameters_are_shared_out_in_linear_time),
		cmocka_unit_test(ranks_own_about_as_many_elements),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
