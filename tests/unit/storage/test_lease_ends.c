// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Ends of leases that are not a release: messages that the receiver could not take, and copies of it after fork(). */
#include "pools.h"

#include <sys/resource.h>

#include "tests/fuzz/calls/fail.c" /* replaces malloc() in this program */

/* "The other one closes it": a child that closes its copy of a channel ends nothing that the parent will receive. */
static void child_that_closes_its_copy_ends_no_lease(void **state)
{
	for (int kind = 0; kind < 4; kind++)
		for (int parent = 0; parent < 2; parent++) {
			struct pair p = pair_of(kind);
			tensor_pool *pool = POOL(.n = 2);
			int res;

			send_loan(p.out, pool, 1);
			tensor_release(ok(tensor_recv(p.in)));
			send_loan(p.out, pool, 2);
			if (parent) { /* goes on, and the child closes */
				res = IN_CHILD(tensor_channel_close(p.in));
				assert_int_equal(res, 0);
				assert_int_equal(tensor_pool_available(pool), 1);
				tensor_release(ok(tensor_recv(p.in)));
			} else { /* closes, and the child goes on */
				pid_t pid = fork();

				if (!pid) {
					tensor *t;

					usleep(100000);
					t = tensor_recv(p.in);
					_exit(t && mean(t) == 2 ? 0 : 1);
				}
				tensor_channel_close(p.in);
				close(p.ends[1]);
				assert_int_equal(tensor_pool_available(pool), 1);
				assert_int_equal(waitpid(pid, &res, 0), pid);
				assert_int_equal(res, 0);
				p.in = NULL;
			}
			assert_int_equal(tensor_pool_available(pool), 2);
			tensor_pool_close(pool);
			pair_close(&p);
		}
}

/* A receiver without memory for a message: the message is lost with an error, and its buffers come back. */
static void message_that_fails_at_the_receiver_ends_its_lease(void **state)
{
	if (!fail_possible)
		skip();
	fail_spare_others();
	for (int kind = 0; kind < 4; kind++)
		for (int parts = 1; parts < 4; parts++)
			for (long n = 1, again = 1; again; n++) {
				struct pair p = pair_of(kind);
				tensor_pool *pool = POOL(.n = 3);
				tensor *t[3], *got[3];
				int res;

				tensor_scope {
					for (int i = 0; i < parts; i++)
						t[i] = ok(tensor_pool_loan(pool, 0));
					assert_done(tensor_send_many(p.out, t, parts, 9, 0, 0));
				}
				fail_at(n);
				res = tensor_recv_many(p.in, got, 3, NULL, 0);
				again = fail_end();
				/* An error for the message, and before it one for the table of leases. */
				assert_true(res == parts || res == -ENOMEM);
				if (res < 0)
					res = tensor_recv_many(p.in, got, 3, NULL, 0);
				if (res == -EBADMSG)
					res = tensor_recv_many(p.in, got, 3, NULL, 0);
				assert_true(res == parts || res == -ETIMEDOUT);
				for (int i = 0; i < res; i++)
					tensor_release(got[i]);
				/* A thread closes the socket of a table that was refused. */
				for (int i = 0; i < 1000 && tensor_pool_available(pool) < 3; i++)
					usleep(1000);
				assert_int_equal(tensor_pool_available(pool), 3);
				tensor_pool_close(pool);
				pair_close(&p);
			}
}

/* Address space for so many bytes more: too few for the stack of another thread. */
static void limit_memory(rlim_t more)
{
	FILE *f = fopen("/proc/self/statm", "r");
	struct rlimit limit = { 0, RLIM_INFINITY };
	unsigned long pages;

	assert_int_equal(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	limit.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + more;
	setrlimit(RLIMIT_AS, &limit);
}

/* The table is lost, and no thread can be started that closes its socket: the sender sees the end all the same. */
static int without_memory_for_the_table(void)
{
	struct pair p = pair_of(0);
	tensor_pool *pool = POOL(.n = 1);
	tensor *got;
	int res = 0;

	send_loan(p.out, pool, 1);
	limit_memory(1 << 20);
	for (long n = 1; n < 20 && res != -ENOMEM; n++) {
		fail_at(n);
		res = tensor_recv_many(p.in, &got, 1, NULL, 0);
		fail_end();
		if (res >= 0)
			return 1;
	}
	for (int i = 0; i < 1000 && !tensor_pool_available(pool); i++)
		usleep(1000);
	return tensor_pool_available(pool) == 1 ? 0 : 2;
}

static void table_that_is_lost_ends_its_leases(void **state)
{
#ifdef __SANITIZE_ADDRESS__
	skip();
#endif
	if (!fail_possible)
		skip();
	assert_int_equal(IN_CHILD(_exit(without_memory_for_the_table())), 0);
}

/* A receiver without a descriptor for the buffer of one part. */
static int without_files(void)
{
	struct pair p = pair_of(0);
	tensor_pool *pool = POOL(.n = 2);
	tensor *t[2], *got[2];
	struct rlimit limit = { 64, 64 };
	int files[64], n = 0;

	send_loan(p.out, pool, 1); /* the table is there */
	tensor_release(ok(tensor_recv(p.in)));
	tensor_scope {
		for (int i = 0; i < 2; i++)
			t[i] = ok(tensor_pool_loan(pool, 0));
		assert_done(tensor_send_many(p.out, t, 2, 0, 0, 0));
	}
	setrlimit(RLIMIT_NOFILE, &limit);
	while (n < 64 && (files[n] = open("/dev/null", O_RDONLY)) >= 0)
		n++;
	if (tensor_recv_many(p.in, got, 2, NULL, 0) != -EMFILE)
		return 1;
	while (n)
		close(files[--n]);
	if (tensor_recv_many(p.in, got, 2, NULL, 0) != -ETIMEDOUT)
		return 2;
	return tensor_pool_available(pool) == 2 ? 0 : 3;
}

static void message_that_lost_a_buffer_ends_its_lease(void **state)
{
	assert_int_equal(IN_CHILD(_exit(without_files())), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_that_is_lost_ends_its_leases), /* before any thread */
		cmocka_unit_test(child_that_closes_its_copy_ends_no_lease),
		cmocka_unit_test(message_that_fails_at_the_receiver_ends_its_lease),
		cmocka_unit_test(message_that_lost_a_buffer_ends_its_lease),
	};

	alarm(240);
	fail_without_caches(argv);
	return cmocka_run_group_tests_name("lease_ends", tests, NULL, NULL);
}
