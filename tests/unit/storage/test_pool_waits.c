// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Loans that wait: for another pool's message, while receivers die or write what they like, and with time limits. Each
 * wait ends in time, and none of them uses the processor.
 */
#include "pools.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>

struct loan {
	tensor_pool *pool;
	int64_t timeout;
	pthread_t thread;
	tensor *t;
	double seconds, used; /* time, and time of the thread on a processor */
};

static void *take_loan(void *arg)
{
	struct loan *l = arg;
	double begin = seconds_of(CLOCK_MONOTONIC), used = seconds_of(CLOCK_THREAD_CPUTIME_ID);

	l->t = tensor_pool_loan(l->pool, l->timeout);
	l->seconds = seconds_of(CLOCK_MONOTONIC) - begin;
	l->used = seconds_of(CLOCK_THREAD_CPUTIME_ID) - used;
	return NULL;
}

static void loan_begin(struct loan *l, tensor_pool *pool, int64_t timeout)
{
	*l = (struct loan){ .pool = pool, .timeout = timeout };
	assert_int_equal(pthread_create(&l->thread, NULL, take_loan, l), 0);
}

static void one_processor(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/*
 * Two pools whose messages use one channel, and so one socket for releases: a release for one of them wakes its thread,
 * although the thread of the other one reads the byte.
 */
static void release_wakes_the_pool_that_it_is_for(void **state)
{
	struct pair p = pair_of(2);
	tensor_pool *pools[2] = { POOL(.n = 1), POOL(.n = 1) };
	cpu_set_t before;

	sched_getaffinity(0, sizeof(before), &before);
	one_processor();
	for (int round = 0; round < 40; round++) {
		struct loan l[2];
		tensor *t[2];
		int first = round % 2, k = round / 2 % 2;

		for (int i = 0; i < 2; i++)
			send_loan(p.out, pools[i], i);
		for (int i = 0; i < 2; i++)
			t[i] = ok(tensor_recv(p.in));
		loan_begin(&l[first], pools[first], 3000 * MS);
		usleep(2000);
		loan_begin(&l[!first], pools[!first], 3000 * MS);
		usleep(2000);
		for (int i = 0; i < 2; i++, k = !k) {
			tensor_release(t[k]);
			if (round & 4) /* a thread that does not wait can read the byte, too */
				tensor_pool_available(pools[!k]);
			pthread_join(l[k].thread, NULL);
			assert_non_null(l[k].t);
			assert_true(l[k].seconds < 1);
		}
		for (int i = 0; i < 2; i++)
			tensor_release(l[i].t);
	}
	sched_setaffinity(0, sizeof(before), &before);
	tensor_pool_close(pools[0]);
	tensor_pool_close(pools[1]);
	pair_close(&p);
}

/* A message with loans of two pools that one of them takes back: the other one has its buffer, too. */
static void message_that_is_taken_back_wakes_the_other_pool(void **state)
{
	struct pair p = pair_of(2);
	tensor_pool *drops = POOL(.n = 1, .full = TENSOR_POOL_DROP), *waits = POOL(.n = 1);
	struct loan l;

	tensor_scope {
		tensor *both[2] = { ok(tensor_pool_loan(drops, 0)),
				    ok(tensor_pool_loan(waits, 0)) };

		assert_done(tensor_send_many(p.out, both, 2, 0, 0, 0));
	}
	loan_begin(&l, waits, 3000 * MS);
	usleep(20000);
	tensor_release(ok(tensor_pool_loan(drops, 0)));
	pthread_join(l.thread, NULL);
	assert_non_null(l.t);
	assert_true(l.seconds < 5);
	tensor_release(l.t);
	tensor_pool_close(drops);
	tensor_pool_close(waits);
	pair_close(&p);
}

/* The program still has a loan whose receiver is gone: that is no reason to wake again and again. */
static void loan_whose_receiver_died_does_not_spin(void **state)
{
	struct pair p = pair_of(2);
	tensor_pool *pool = POOL(.n = 1);
	tensor *mine = ok(tensor_pool_loan(pool, 0));
	struct loan l;

	assert_done(tensor_send(p.out, mine, 0));
	tensor_release(ok(tensor_recv(p.in)));
	assert_done(tensor_send(p.out, mine, 0));
	tensor_channel_close(p.in);
	close(p.ends[1]);
	loan_begin(&l, pool, 200 * MS);
	usleep(2000000);
	tensor_release(mine); /* so that the thread ends in any case */
	pthread_join(l.thread, NULL);
	assert_null(l.t);
	assert_true(l.seconds >= 0.2 && l.seconds < 1.5);
	assert_true(l.used < 0.05);
	tensor_channel_close(p.out);
	close(p.ends[0]);
	tensor_pool_close(pool);
}

/* The end of a socket pair in this process that a receiver got with a table of leases; it has the highest number. */
static int holder_of(int from)
{
	int found = -1;

	for (int fd = from; fd < 1024; fd++) {
		int type;
		socklen_t length = sizeof(type);

		if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0)
			found = fd;
	}
	return found;
}

struct flood {
	int fd;
	atomic_bool stop;
};

static void *write_bytes(void *arg)
{
	struct flood *f = arg;
	static const char bytes[4096];

	while (!atomic_load(&f->stop))
		send(f->fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
	return NULL;
}

enum { FLOODS = 4 };

/* A receiver that writes to the socket for releases all the time: a loan waits no longer for it. */
static void bytes_of_the_receiver_extend_no_wait(void **state)
{
	for (int i = 0; i < 6; i++) {
		struct pair p = pair_of(0);
		tensor_pool *pool =
			POOL(.n = 1, .full = i & 1 ? TENSOR_POOL_REFUSE : TENSOR_POOL_WAIT);
		struct flood f = { .stop = false };
		pthread_t threads[FLOODS];
		struct loan l;
		tensor *t;

		send_loan(p.out, pool, 1);
		t = ok(tensor_recv(p.in));
		f.fd = holder_of(p.ends[1]);
		assert_true(f.fd > p.ends[1]);
		for (int k = 0; k < FLOODS; k++)
			assert_int_equal(pthread_create(&threads[k], NULL, write_bytes, &f), 0);
		usleep(10000);
		loan_begin(&l, pool, 20 * MS);
		usleep(1000000);
		atomic_store(&f.stop, true);
		shutdown(f.fd, SHUT_WR);
		pthread_join(l.thread, NULL);
		for (int k = 0; k < FLOODS; k++)
			pthread_join(threads[k], NULL);
		assert_null(l.t);
		assert_true(l.seconds < 0.8); /* 20 ms, and what a busy machine adds */
		tensor_release(t);
		tensor_pool_close(pool);
		pair_close(&p);
	}
}

/* Another thread may send, meanwhile, a message that a waiting loan can take back. */
static void loan_that_drops_sees_messages_that_are_sent_meanwhile(void **state)
{
	struct pair p = pair_of(2);
	tensor_pool *pool = POOL(.n = 1, .full = TENSOR_POOL_DROP);
	tensor *mine = ok(tensor_pool_loan(pool, 0));
	struct loan l;

	loan_begin(&l, pool, 10000 * MS);
	usleep(20000);
	assert_done(tensor_send(p.out, mine, 0));
	tensor_release(mine);
	pthread_join(l.thread, NULL);
	assert_non_null(l.t);
	assert_true(l.seconds < 5);
	assert_fails(tensor_recv_timeout(p.in, 0), ETIMEDOUT, "in time");
	tensor_release(l.t);
	tensor_pool_close(pool);
	pair_close(&p);
}

enum { MANY = 2048 };

/* The processor time of a loan in vain from a full pool of n buffers, at best. */
static double seconds_in_vain(struct pair *p, tensor **pooled, int n)
{
	tensor_pool *pool = tensor_pool_open(TENSOR_NO_INTS,
					     TENSOR_POOL_OPTIONS(.n = n, .full = TENSOR_POOL_DROP,
								 .tensors = pooled));
	tensor *got[MANY];
	double best = 1;

	assert_non_null(pool);
	for (int i = 0; i < n; i++) {
		send_loan(p->out, pool, 1);
		got[i] = ok(tensor_recv(p->in));
	}
	for (int i = 0; i < 20; i++) {
		double t = seconds_of(CLOCK_THREAD_CPUTIME_ID);

		assert_null(tensor_pool_loan(pool, 0));
		t = seconds_of(CLOCK_THREAD_CPUTIME_ID) - t;
		best = t < best ? t : best;
	}
	for (int i = 0; i < n; i++)
		tensor_release(got[i]);
	tensor_pool_close(pool);
	return best;
}

/* The time of a loan in vain grows with the number of buffers, not with its square. */
static void full_pool_of_many_buffers_fails_soon(void **state)
{
	struct rlimit limit;
	struct pair p = pair_of(1);
	tensor *pooled[MANY];

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max < 4 * MANY)
		skip();
	for (int i = 0; i < MANY; i++)
		pooled[i] = ok(tensor_ones(TENSOR_INTS(1), SHAREABLE(TENSOR_F32)));
	assert_true(seconds_in_vain(&p, pooled, MANY) < 8 * seconds_in_vain(&p, pooled, MANY / 4));
	for (int i = 0; i < MANY; i++)
		tensor_release(pooled[i]);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(release_wakes_the_pool_that_it_is_for),
		cmocka_unit_test(message_that_is_taken_back_wakes_the_other_pool),
		cmocka_unit_test(loan_whose_receiver_died_does_not_spin),
		cmocka_unit_test(bytes_of_the_receiver_extend_no_wait),
		cmocka_unit_test(loan_that_drops_sees_messages_that_are_sent_meanwhile),
		cmocka_unit_test(full_pool_of_many_buffers_fails_soon),
	};

	alarm(240);
	return cmocka_run_group_tests_name("pool_waits", tests, NULL, NULL);
}
