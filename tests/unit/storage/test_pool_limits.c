// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Pools: waiting and threads, limits, forks and death. */
#include "pools.h"

#include <pthread.h>
#include <sys/resource.h>

/* ---- waiting ---- */

static void *release_later(void *t)
{
	usleep(300000);
	tensor_release(t);
	return NULL;
}

static double process_seconds(void)
{
	return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

/* A loan that waits uses no processor time and ends with the release, by the receiver or by a thread of its own. */
static void release_wakes_a_loan_that_waits(void **state)
{
	struct pair p = pair_of(2);
	tensor_pool *pool = POOL(.n = 1);

	for (int own = 0; own < 2; own++) {
		double begin = seconds_of(CLOCK_MONOTONIC), used = process_seconds();
		pthread_t thread;
		tensor *t = ok(tensor_pool_loan(pool, 0)), *loan = t;

		if (!own) {
			assert_done(tensor_send(p.out, loan, 0));
			t = ok(tensor_recv(p.in));
			tensor_release(loan);
		}
		assert_int_equal(pthread_create(&thread, NULL, release_later, t), 0);
		tensor_release(ok(tensor_pool_loan(pool, 10000 * MS)));
		pthread_join(thread, NULL);
		begin = seconds_of(CLOCK_MONOTONIC) - begin;
		assert_true(begin >= 0.3 && begin < 5);
		assert_true(process_seconds() - used < 0.1);
	}
	tensor_pool_close(pool);
	pair_close(&p);
}

struct worker {
	struct pair p;
	tensor_pool *pool;
	int n;
	double sum;
};

static void *send_many_loans(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < w->n; i++)
		send_loan(w->p.out, w->pool, 1);
	return NULL;
}

static void *receive_many(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < w->n; i++)
		tensor_scope {
			tensor *t = ok(tensor_recv_timeout(w->p.in, 10000 * MS));

			w->sum += mean(t);
		}
	return NULL;
}

/* Two senders of one pool and two receivers: each message once, and all waits end. */
static void threads_share_a_pool(void **state)
{
	tensor_pool *pool = POOL(.n = 3);
	struct worker w[2] = { { pair_of(2), pool, 2000, 0 }, { pair_of(1), pool, 2000, 0 } };
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL,
						i & 1 ? receive_many : send_many_loans, &w[i / 2]),
				 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 2; i++) {
		assert_true(w[i].sum == w[i].n);
		pair_close(&w[i].p);
	}
	assert_int_equal(tensor_pool_available(pool), 3);
	tensor_pool_close(pool);
}

static void *loan_once(void *pool)
{
	return tensor_pool_loan(pool, 2000 * MS);
}

/* Two threads wait, and two buffers come back with one byte on the socket: neither waits on. */
static void both_waiting_threads_get_a_buffer(void **state)
{
	struct pair p = pair_of(2);
	tensor_pool *pool = POOL(.n = 2);

	for (int round = 0; round < 300; round++) {
		pthread_t threads[2];
		tensor *t[2];
		void *loans[2];

		for (int i = 0; i < 2; i++)
			send_loan(p.out, pool, i);
		for (int i = 0; i < 2; i++)
			t[i] = ok(tensor_recv(p.in));
		for (int i = 0; i < 2; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, loan_once, pool), 0);
		usleep(200);
		for (int i = 0; i < 2; i++)
			tensor_release(t[i]);
		for (int i = 0; i < 2; i++) {
			pthread_join(threads[i], &loans[i]);
			assert_non_null(loans[i]);
		}
		for (int i = 0; i < 2; i++)
			tensor_release(loans[i]);
	}
	tensor_pool_close(pool);
	pair_close(&p);
}

/* ---- limits ---- */

static void ten_thousand_leases_at_a_time(void **state)
{
	struct pair p = pair_open(SOCK_STREAM);
	tensor_pool *pool = POOL(.n = 1);
	tensor *loan = ok(tensor_pool_loan(pool, 0)), **got = calloc(10000, sizeof(*got));

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 10000; i++) {
			assert_done(tensor_send(p.out, loan, 0));
			got[i] = ok(tensor_recv(p.in));
		}
		if (round)
			tensor_release(loan);
		for (int i = 0; i < 10000; i++) {
			assert_int_equal(tensor_pool_available(pool), 0);
			tensor_release(got[i * 7 % 10000]);
		}
	}
	assert_int_equal(tensor_pool_available(pool), 1);
	free(got);
	tensor_pool_close(pool);
	pair_close(&p);
}

static void lease_beyond_the_table_is_an_error(void **state)
{
	struct pair p = pair_open(SOCK_SEQPACKET);
	tensor_pool *pool = POOL(.n = 1);
	tensor *loan = ok(tensor_pool_loan(pool, 0)), **got = calloc(20000, sizeof(*got));
	int n = 0;

	/* Leases that are over are no burden. */
	for (int i = 0; i < 40000; i++) {
		assert_done(tensor_send(p.out, loan, 0));
		tensor_release(ok(tensor_recv(p.in)));
	}
	while (!tensor_send(p.out, loan, 0))
		got[n++] = ok(tensor_recv(p.in));
	assert_int_equal(tensor_last_error()->code, ENOBUFS);
	assert_true(n > 10000 && n <= 16384);
	tensor_release(loan);
	assert_int_equal(tensor_pool_available(pool), 0);
	while (n)
		tensor_release(got[--n]);
	send_loan(p.out, pool, 3);
	tensor_release(ok(tensor_recv(p.in)));
	assert_int_equal(tensor_pool_available(pool), 1);
	free(got);
	tensor_pool_close(pool);
	pair_close(&p);
}

/* In a child, with 256 open files: the table of leases costs each end one descriptor. */
static int with_few_files(void)
{
	struct rlimit limit = { 256, 256 };
	struct pair p[20];
	tensor_pool *pool;
	int before;

	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < 20; i++)
		p[i] = pair_of(i % 4);
	pool = POOL(.n = 2);
	before = count_fds();
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < 20; i++) {
			send_loan(p[i].out, pool, i);
			tensor_release(ok(tensor_recv(p[i].in)));
		}
	if (count_fds() > before + 2 * 20 + 2)
		return 1;
	for (int i = 0; i < 20; i++)
		pair_close(&p[i]);
	/* With no descriptor left the send fails, and the loan comes back. */
	p[0] = pair_of(0);
	while (open("/dev/null", O_RDONLY) >= 0)
		;
	tensor_scope {
		tensor *t = ok(tensor_pool_loan(pool, 0));

		if (tensor_send(p[0].out, t, 0) != -EMFILE)
			return 2;
	}
	return tensor_pool_available(pool) != 2;
}

/* The receiver has no descriptor left for the table: it says so, and the sender loses no buffer. */
static int without_files_for_the_table(void)
{
	struct rlimit limit = { 64, 64 };
	struct pair p = pair_of(0);
	tensor_pool *pool = POOL(.n = 1);
	int first, last = -1;

	setrlimit(RLIMIT_NOFILE, &limit);
	send_loan(p.out, pool, 1);
	first = open("/dev/null", O_RDONLY);
	for (int fd = first; fd >= 0; fd = open("/dev/null", O_RDONLY))
		last = fd;
	assert_fails(tensor_recv_timeout(p.in, 0), EMFILE, "table of leases");
	for (int fd = first; fd <= last; fd++)
		close(fd);
	assert_fails(tensor_recv_timeout(p.in, 0), EBADMSG, "without a table");
	return tensor_pool_available(pool) != 1;
}

static void few_files_are_enough(void **state)
{
	assert_int_equal(IN_CHILD(_exit(without_files_for_the_table())), 0);
	assert_int_equal(IN_CHILD(_exit(with_few_files())), 0);
}

/* ---- fork and death ---- */

/* The child has copies of a loan and of a received tensor; its releases and its end change nothing for the parent. */
static void child_of_fork_ends_no_lease(void **state)
{
	struct pair p = pair_of(2);
	tensor_pool *pool = POOL(.n = 2);
	tensor *loan = ok(tensor_pool_loan(pool, 0)), *t;

	send_loan(p.out, pool, 6);
	t = ok(tensor_recv(p.in));
	assert_int_equal(IN_CHILD({
				 tensor_release(t);
				 tensor_release(loan);
				 tensor_pool_close(pool);
				 pair_close(&p);
			 }),
			 0);
	assert_int_equal(tensor_pool_available(pool), 0);
	fill(loan, 7);
	assert_done(tensor_send(p.out, loan, 0));
	tensor_release(loan);
	loan = ok(tensor_recv(p.in));
	assert_true(mean(t) == 6 && mean(loan) == 7);
	tensor_release(t);
	assert_int_equal(tensor_pool_available(pool), 1);
	tensor_release(loan);
	assert_int_equal(tensor_pool_available(pool), 2);
	tensor_pool_close(pool);
	pair_close(&p);
}

static void receiver_that_is_killed_returns_all(void **state)
{
	for (int kind = 0; kind < 4; kind++) {
		int ends[2], type = kind & 1 ? SOCK_STREAM : SOCK_SEQPACKET;
		tensor_pool *pool = POOL(.n = 3);
		tensor_channel *ch;
		double begin;
		pid_t pid;

		assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends), 0);
		pid = fork();
		if (!pid) {
			tensor_channel *in =
				tensor_channel_open_with(ends[1], kind & 2 ? RINGS : NULL);

			close(ends[0]);
			tensor_recv(in);
			tensor_recv(in);
			usleep(20000);
			kill(getpid(), SIGKILL);
		}
		close(ends[1]);
		ch = tensor_channel_open_with(ends[0], kind & 2 ? RINGS : NULL);
		for (int i = 0; i < 3; i++)
			send_loan(ch, pool, i);
		begin = seconds_of(CLOCK_MONOTONIC);
		tensor_release(ok(tensor_pool_loan(pool, 10000 * MS)));
		assert_true(seconds_of(CLOCK_MONOTONIC) - begin < 5);
		assert_int_equal(tensor_pool_available(pool), 3);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		tensor_channel_close(ch);
		close(ends[0]);
		tensor_pool_close(pool);
	}
}

static void received_tensor_outlives_its_sender(void **state)
{
	int ends[2], status;
	tensor_channel *ch;
	tensor *t;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	pid = fork();
	if (!pid) {
		send_loan(tensor_channel_open(ends[1]), POOL(.n = 1), 4);
		kill(getpid(), SIGKILL);
	}
	close(ends[1]);
	ch = tensor_channel_open(ends[0]);
	t = ok(tensor_recv(ch));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(mean(t) == 4);
	tensor_channel_close(ch);
	assert_true(mean(t) == 4);
	tensor_release(t);
	close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(release_wakes_a_loan_that_waits),
		cmocka_unit_test(threads_share_a_pool),
		cmocka_unit_test(both_waiting_threads_get_a_buffer),
		cmocka_unit_test(ten_thousand_leases_at_a_time),
		cmocka_unit_test(lease_beyond_the_table_is_an_error),
		cmocka_unit_test(few_files_are_enough),
		cmocka_unit_test(child_of_fork_ends_no_lease),
		cmocka_unit_test(receiver_that_is_killed_returns_all),
		cmocka_unit_test(received_tensor_outlives_its_sender),
	};

	alarm(240);
	return cmocka_run_group_tests_name("pool_limits", tests, NULL, NULL);
}
