// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * SIGKILL of a rank at random moments, also while the ranks join: the others end with an error within the stated time,
 * and nothing is left. KILLS in the environment is their number.
 */
#include "ranks.h"

enum { RANKS = 3, MS_TO_END = 2000 };

/* Operations of all kinds until one fails; 0 if that is the end of another rank. */
static int work(tensor_group *g)
{
	int rank = tensor_group_rank(g), next = (rank + 1) % RANKS,
	    before = (rank + RANKS - 1) % RANKS, err = 0;
	tensor *small = tensor_zeros(TENSOR_INTS(4), F32),
	       *large = tensor_zeros(TENSOR_INTS(RANKS * 300000), F32);
	tensor *shared = tensor_zeros(TENSOR_INTS(300000), SHAREABLE(TENSOR_F32)),
	       *part = tensor_narrow(large, 0, 0, 300000);
	tensor_request *r[3];

	for (int i = 0; !err; i++) {
		int n = 0;

		err = tensor_group_all_reduce(g, small, small, TENSOR_GROUP_MAX,
					      i & 1 ? NULL : &r[n]);
		n += !err && !(i & 1);
		if (!err)
			err = tensor_group_all_gather(g, large, shared, NULL);
		if (!err && i % 4 == 0)
			err = tensor_group_all_reduce(g, shared, shared, TENSOR_GROUP_MAX, NULL);
		if (!err && i % 4 == 2)
			err = tensor_group_reduce(g, rank ? NULL : shared, shared, TENSOR_GROUP_MAX,
						  0, NULL);
		if (!err) {
			err = tensor_group_send(g, i & 2 ? shared : part, next, &r[n]);
			n += !err;
		}
		if (!err) {
			err = tensor_group_recv(g, part, before, &r[n]);
			n += !err;
		}
		while (n) {
			int one = tensor_request_wait(r[--n], -1);

			err = err ? err : one;
		}
	}
	return err == -ECONNRESET || err == -EPIPE ? 0 : 1;
}

static void rank(const char *address, int i)
{
	tensor_group *g;
	int status;

	alarm(60);
	g = tensor_group_open("local",
			      TENSOR_GROUP_OPTIONS(.rank = i, .size = RANKS, .address = address,
						   .timeout_ns = INT64_C(1500000000)));
	/* The rank that was killed may not have joined, or rank 0 with it. */
	if (!g) {
		status = tensor_last_error()->code == ETIMEDOUT ||
					 tensor_last_error()->code == ECONNRESET ?
				 0 :
				 2;
		if (status)
			fprintf(stderr, "# rank %d: %s\n", i, tensor_last_error()->text);
		_exit(status);
	}
	status = work(g);
	if (status)
		fprintf(stderr, "# rank %d: %s\n", i, tensor_last_error()->text);
	tensor_group_close(g);
	_exit(status);
}

static double ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int sockets_of_groups(void)
{
	FILE *f = fopen("/proc/net/unix", "r");
	char line[512], own[64];
	int n = 0;

	snprintf(own, sizeof(own), "test-%d-", getpid());
	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, own) != NULL;
	if (f)
		fclose(f);
	return n;
}

static void killed_ranks_hang_nobody(void **state)
{
	const char *wanted = getenv("KILLS");
	int kills = wanted ? atoi(wanted) : 25, fds = count_fds();
	unsigned seed = (unsigned)getpid();

	print_message("# seed %u\n", seed);
	srand(seed);
	for (int k = 0; k < kills; k++) {
		const char *address = ranks_address();
		int victim = rand() % RANKS;
		pid_t pids[RANKS];
		double start;

		for (int i = 0; i < RANKS; i++) {
			pids[i] = fork();
			assert_true(pids[i] >= 0);
			if (!pids[i])
				rank(address, i);
		}
		usleep((useconds_t)(rand() % 30000));
		kill(pids[victim], SIGKILL);
		start = ms();
		for (int i = 0; i < RANKS; i++)
			assert_int_equal(rank_end(pids[i]), i == victim ? -SIGKILL : 0);
		assert_true(ms() - start < MS_TO_END);
	}
	assert_int_equal(count_fds(), fds);
	assert_int_equal(sockets_of_groups(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(killed_ranks_hang_nobody) };

	return cmocka_run_group_tests_name("group_kill", tests, NULL, NULL);
}
