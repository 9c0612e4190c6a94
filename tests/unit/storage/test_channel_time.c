// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Time limits of channels, against peers that stop, flood or die, signals without SA_RESTART, and extreme numbers. */
#include "pools.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>

static double now(void)
{
	return seconds_of(CLOCK_MONOTONIC);
}

/* Heads without parts, and messages that were taken back, are no message: they end no wait and extend none. */
struct flood {
	int raw;
	atomic_bool stop;
};

static void *send_heads(void *arg)
{
	struct flood *f = arg;
	struct wire_message m = { .magic = WIRE_MAGIC,
				  .version = WIRE_VERSION,
				  .size = sizeof(m),
				  .flags = WIRE_NOTE,
				  .dtype = WIRE_NOTE_HEAD,
				  .slot = 3,
				  .offset = -1 };

	while (!atomic_load(&f->stop))
		send(f->raw, &m, sizeof(m), MSG_NOSIGNAL);
	return NULL;
}

struct receiver {
	tensor_channel *ch;
	double seconds;
};

static void *receive_once(void *arg)
{
	struct receiver *r = arg;
	double begin = now();

	tensor_release(tensor_recv_timeout(r->ch, 20 * MS));
	r->seconds = now() - begin;
	return NULL;
}

static void heads_without_parts_extend_no_receive(void **state)
{
	for (int kind = 0; kind < 4; kind++) {
		struct flood f = { .stop = false };
		pthread_t senders[12], thread;
		struct receiver r;
		int ends[2];

		assert_int_equal(
			socketpair(AF_UNIX, kind & 1 ? SOCK_STREAM : SOCK_SEQPACKET, 0, ends), 0);
		f.raw = ends[0];
		r.ch = tensor_channel_open_with(ends[1], kind & 2 ? RINGS : NULL);
		for (int i = 0; i < 12; i++)
			assert_int_equal(pthread_create(&senders[i], NULL, send_heads, &f), 0);
		usleep(5000);
		assert_int_equal(pthread_create(&thread, NULL, receive_once, &r), 0);
		usleep(1000000);
		atomic_store(&f.stop, true);
		shutdown(ends[0], SHUT_WR);
		pthread_join(thread, NULL);
		for (int i = 0; i < 12; i++)
			pthread_join(senders[i], NULL);
		assert_true(r.seconds < 0.8); /* 20 ms, and what a busy machine adds */
		tensor_channel_close(r.ch);
		close(ends[0]);
		close(ends[1]);
	}
}

/* As long as a program wants to spin, its timeouts hold, and the death of its peer ends the wait. */
static void spinning_keeps_the_timeouts(void **state)
{
	const int64_t spins[] = { 3000 * MS, INT64_MAX };
	tensor *t = ok(tensor_ones(TENSOR_INTS(4), SHAREABLE(TENSOR_F32)));

	for (int i = 0; i < 2; i++) {
		struct pair p = ring_pair_open(SOCK_STREAM,
					       TENSOR_CHANNEL_OPTIONS(.ring = true, .records = 2,
								      .spin_ns = spins[i]));
		double begin;

		ring_pair_agree(&p, t);
		begin = now();
		assert_fails(tensor_recv_timeout(p.in, 10 * MS), ETIMEDOUT, "in time");
		assert_true(now() - begin < 1);
		begin = now();
		while (!tensor_send_timeout(p.out, t, 0, 10 * MS))
			;
		assert_int_equal(tensor_last_error()->code, ETIMEDOUT);
		assert_true(now() - begin < 1);
		tensor_channel_close(p.in);
		close(p.ends[1]);
		begin = now();
		assert_int_equal(tensor_send_timeout(p.out, t, 0, 5000 * MS), -EPIPE);
		assert_true(now() - begin < 1);
		begin = now();
		assert_fails(tensor_recv_timeout(p.out, 5000 * MS), EPIPE, "gone");
		assert_true(now() - begin < 1);
		tensor_channel_close(p.out);
		close(p.ends[0]);
	}
	tensor_release(t);
}

/* A send that waits for a full ring spins once, not at each look whether the receiver lives. */
static void send_that_waits_spins_once(void **state)
{
	struct pair p = ring_pair_open(
		SOCK_STREAM, TENSOR_CHANNEL_OPTIONS(.ring = true, .records = 2, .spin_ns = MS));
	tensor *t = ok(tensor_ones(TENSOR_INTS(4), SHAREABLE(TENSOR_F32)));
	double used;

	ring_pair_agree(&p, t);
	while (!tensor_send_timeout(p.out, t, 0, 0))
		;
	used = seconds_of(CLOCK_THREAD_CPUTIME_ID);
	assert_int_equal(tensor_send_timeout(p.out, t, 0, 600 * MS), -ETIMEDOUT);
	assert_true(seconds_of(CLOCK_THREAD_CPUTIME_ID) - used < 0.02);
	tensor_release(t);
	pair_close(&p);
}

/* ---- signals, numbers ---- */

static atomic_int signals;

static void count(int signal)
{
	atomic_fetch_add(&signals, 1);
}

#define assert_lasts(call, least)                  \
	do {                                       \
		double begin_ = now();             \
		call;                              \
		begin_ = now() - begin_;           \
		assert_true(begin_ >= (least));    \
		assert_true(begin_ < (least) + 1); \
	} while (0)

/* Each wait, with a signal each millisecond and a handler that restarts nothing. */
static void signals_change_no_wait(void **state)
{
	struct sigaction action = { .sa_handler = count };
	struct itimerval each = { { 0, 1000 }, { 0, 1000 } }, never = { 0 };
	tensor *t = ok(tensor_ones(TENSOR_INTS(4), SHAREABLE(TENSOR_F32)));

	sigaction(SIGALRM, &action, NULL);
	for (int kind = 0; kind < 4; kind++) {
		struct pair p = pair_of(kind);
		tensor_pool *pool = POOL(.n = 1);
		tensor *loan;

		if (kind & 2)
			ring_pair_agree(&p, t);
		setitimer(ITIMER_REAL, &each, NULL);
		loan = ok(tensor_pool_loan(pool, 0));
		assert_lasts(assert_null(tensor_recv_timeout(p.in, 50 * MS)), 0.05);
		assert_lasts(assert_int_equal(tensor_channel_wait(&p.in, 1, 50 * MS), -ETIMEDOUT),
			     0.05);
		assert_lasts(assert_null(tensor_pool_loan(pool, 50 * MS)), 0.05);
		for (int i = 0; i < 5000 && !tensor_send_timeout(p.out, t, 0, 0); i++)
			;
		assert_lasts(assert_int_equal(tensor_send_timeout(p.out, t, 0, 50 * MS),
					      -ETIMEDOUT),
			     0.05);
		setitimer(ITIMER_REAL, &never, NULL);
		tensor_release(loan);
		tensor_pool_close(pool);
		pair_close(&p);
	}
	assert_true(signals > 100);
	tensor_release(t);
}

static void extreme_timeouts_have_a_meaning(void **state)
{
	const int64_t ends[] = { 0, 1 }, never[] = { -1, INT64_MIN, INT64_MAX, INT64_MAX - 1 };
	tensor *t = ok(tensor_ones(TENSOR_INTS(4), SHAREABLE(TENSOR_F32)));

	for (int kind = 0; kind < 4; kind++) {
		struct pair p = pair_of(kind);
		tensor_pool *pool = POOL(.n = 1);

		for (int i = 0; i < 2; i++) {
			tensor *loan = ok(tensor_pool_loan(pool, ends[i]));

			assert_null(tensor_pool_loan(pool, ends[i]));
			tensor_release(loan);
			assert_null(tensor_recv_timeout(p.in, ends[i]));
			assert_int_equal(tensor_channel_wait(&p.in, 1, ends[i]), -ETIMEDOUT);
		}
		for (int i = 0; i < 4; i++) {
			tensor *loan = ok(tensor_pool_loan(pool, never[i]));

			assert_done(tensor_send_timeout(p.out, loan, 0, never[i]));
			assert_int_equal(tensor_channel_wait(&p.in, 1, never[i]), 0);
			tensor_release(ok(tensor_recv_timeout(p.in, never[i])));
			tensor_release(loan);
		}
		tensor_pool_close(pool);
		pair_close(&p);
	}
	tensor_release(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads_without_parts_extend_no_receive),
		cmocka_unit_test(spinning_keeps_the_timeouts),
		cmocka_unit_test(send_that_waits_spins_once),
		cmocka_unit_test(signals_change_no_wait),
		cmocka_unit_test(extreme_timeouts_have_a_meaning),
	};

	return cmocka_run_group_tests_name("channel_time", tests, NULL, NULL);
}
