// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Groups: one send to all receivers, or to the next; slow ones, late ones, ones that die. */
#include "pools.h"

#include <pthread.h>

#define GROUP(...) tensor_channel_group_open(TENSOR_CHANNEL_GROUP_OPTIONS(__VA_ARGS__))
#define N	   3

struct set {
	tensor_channel_group *g;
	struct pair p[N];
};

static struct set set_of(tensor_channel_group *g, int kind, int members)
{
	struct set s = { .g = g };

	assert_non_null(g);
	for (int i = 0; i < N; i++) {
		s.p[i] = pair_of(kind);
		if (i < members)
			assert_done(tensor_channel_group_add(g, s.p[i].out));
	}
	return s;
}

static void set_end(struct set *s)
{
	tensor_channel_group_close(s->g);
	for (int i = 0; i < N; i++)
		pair_close(&s->p[i]);
}

/* Sends a tensor with this value and number. */
static int send_value(tensor_channel_group *g, int value, int64_t timeout_ns)
{
	int n;

	tensor_scope {
		tensor *t = ok(tensor_full(TENSOR_INTS(4), S(value), F32));

		n = tensor_channel_group_send(g, &t, 1, (uint64_t)value, 0, timeout_ns);
	}
	return n;
}

/* Receives a message, which must have its number as its value; -1: there is none. */
static int recv_value(tensor_channel *ch)
{
	tensor *t;
	uint64_t tag;

	if (tensor_recv_many(ch, &t, 1, &tag, 0) != 1)
		return -1;
	assert_true(mean(t) == (double)tag);
	tensor_release(t);
	return (int)tag;
}

static struct tensor_channel_group_stats stats_of(struct set *s, int i)
{
	struct tensor_channel_group_stats stats;

	assert_done(tensor_channel_group_stats(s->g, s->p[i].out, &stats));
	return stats;
}

static void all_get_each_message(void **state)
{
	for (int kind = 0; kind < 4; kind++) {
		struct set s = set_of(GROUP(.window = 4), kind, 2);

		assert_int_equal(tensor_channel_group_count(s.g), 2);
		for (int i = 0; i < 40; i++) {
			assert_int_equal(send_value(s.g, i, 1000 * MS), i < 20 ? 2 : 3);
			for (int k = 0; k < N; k++)
				assert_int_equal(recv_value(s.p[k].in), k == 2 && i < 20 ? -1 : i);
			if (i == 19) /* joins late */
				assert_done(tensor_channel_group_add(s.g, s.p[2].out));
		}
		assert_done(tensor_channel_group_remove(s.g, s.p[0].out));
		assert_int_equal(send_value(s.g, 40, 0), 2);
		assert_int_equal(recv_value(s.p[0].in), -1);
		set_end(&s);
	}
}

static void next_spreads_by_load(void **state)
{
	for (int kind = 0; kind < 4; kind++) {
		struct set s =
			set_of(GROUP(.kind = TENSOR_CHANNEL_GROUP_NEXT, .window = 2), kind, N);
		int got[N] = { 0 };

		for (int i = 0; i < 2 * N; i++)
			assert_int_equal(send_value(s.g, i, 0), 1);
		assert_int_equal(send_value(s.g, 6, 0), -ETIMEDOUT);
		/* The first takes and releases: it gets the next ones. */
		for (int i = 6; i < 20; i++) {
			assert_true(recv_value(s.p[0].in) >= 0);
			assert_int_equal(send_value(s.g, i, 1000 * MS), 1);
		}
		for (int k = 0; k < N; k++)
			while (recv_value(s.p[k].in) >= 0)
				got[k]++;
		assert_int_equal(got[0], 2);
		assert_int_equal(got[1] + got[2], 4);
		assert_int_equal(stats_of(&s, 0).sent, 16);
		assert_int_equal(stats_of(&s, 1).sent, 2);
		set_end(&s);
	}
}

/* A window counts what the receiver has not released, received or not. */
static void window_is_full_until_a_release(void **state)
{
	struct set s = set_of(GROUP(.window = 2, .full = TENSOR_POOL_REFUSE), 2, 2);
	tensor *held;

	assert_int_equal(send_value(s.g, 0, 0), 2);
	assert_int_equal(send_value(s.g, 1, 0), 2);
	assert_int_equal(send_value(s.g, 2, -1), -EAGAIN);
	assert_int_equal(recv_value(s.p[1].in), 0);
	assert_int_equal(tensor_recv_many(s.p[0].in, &held, 1, NULL, 0), 1);
	assert_int_equal(stats_of(&s, 0).in_flight, 2);
	assert_int_equal(stats_of(&s, 1).in_flight, 1);
	assert_int_equal(send_value(s.g, 2, -1), -EAGAIN);
	tensor_release(held);
	assert_int_equal(send_value(s.g, 2, -1), 2);
	assert_int_equal(recv_value(s.p[0].in), 1);
	assert_int_equal(recv_value(s.p[0].in), 2);
	set_end(&s);
}

static void slow_receiver_loses_the_oldest(void **state)
{
	for (int kind = 0; kind < 4; kind++) {
		struct set s = set_of(GROUP(.window = 3, .full = TENSOR_POOL_DROP), kind, 2);
		tensor *held[3];

		for (int i = 0; i < 20; i++) {
			assert_int_equal(send_value(s.g, i, -1), 2);
			assert_int_equal(recv_value(s.p[0].in), i);
		}
		assert_int_equal(stats_of(&s, 1).dropped, 17);
		assert_int_equal(stats_of(&s, 0).dropped, 0);
		/* It has the newest, and holds them: then nothing can be taken back. */
		for (int i = 0; i < 3; i++) {
			uint64_t tag;

			assert_int_equal(tensor_recv_many(s.p[1].in, &held[i], 1, &tag, 0), 1);
			assert_int_equal(tag, 17 + i);
		}
		assert_int_equal(send_value(s.g, 20, -1), 1);
		assert_int_equal(recv_value(s.p[0].in), 20);
		assert_int_equal(recv_value(s.p[1].in), -1);
		assert_int_equal(stats_of(&s, 1).dropped, 18);
		for (int i = 0; i < 3; i++)
			tensor_release(held[i]);
		assert_int_equal(send_value(s.g, 21, -1), 2);
		set_end(&s);
	}
}

static void next_drops_the_oldest_of_all(void **state)
{
	struct set s = set_of(GROUP(.kind = TENSOR_CHANNEL_GROUP_NEXT, .window = 2,
				    .full = TENSOR_POOL_DROP),
			      2, 2);
	int seen = 0, n = 0, tag;

	for (int i = 0; i < 10; i++)
		assert_int_equal(send_value(s.g, i, -1), 1);
	for (int k = 0; k < 2; k++)
		for (; (tag = recv_value(s.p[k].in)) >= 0; n++)
			seen |= 1 << tag;
	assert_int_equal(n, 4);
	assert_int_equal(seen, 0xf << 6);
	set_end(&s);
}

/* ---- other processes ---- */

static int slow_consumer(tensor_channel *ch)
{
	tensor *t;
	uint64_t tag, expected = 0;

	while (tensor_recv_many(ch, &t, 1, &tag, -1) == 1) {
		if (tag < expected || mean(t) != (double)tag)
			return 1;
		expected = tag + 1;
		usleep(tag % 16 * 100);
		tensor_release(t);
	}
	return tensor_last_error()->code != EPIPE;
}

static int takes_two_and_dies(tensor_channel *ch)
{
	tensor *t;

	tensor_recv_many(ch, &t, 1, NULL, -1);
	tensor_release(t);
	tensor_recv_many(ch, &t, 1, NULL, -1);
	raise(SIGKILL);
	return 0;
}

static const struct peer_role roles[] = { { "consumer", slow_consumer },
					  { "dies", takes_two_and_dies },
					  { 0 } };

static void waits_for_processes_of_different_speed(void **state)
{
	for (int kind = 0; kind < 2; kind++) {
		tensor_channel_group *g =
			GROUP(.kind = (enum tensor_channel_group_kind)kind, .window = 4);
		struct peer p[N];

		for (int i = 0; i < N; i++) {
			p[i] = peer_start("consumer", SOCK_STREAM);
			assert_done(tensor_channel_group_add(g, p[i].ch));
		}
		for (int i = 0; i < 300; i++)
			assert_int_equal(send_value(g, i, 20000 * MS), kind ? 1 : N);
		tensor_channel_group_close(g);
		for (int i = 0; i < N; i++)
			assert_int_equal(peer_end(&p[i]), 0);
	}
}

/* A pool's buffers in the messages return when all receivers have released them. */
static void loans_return_after_the_last_receiver(void **state)
{
	tensor_channel_group *g = GROUP(.window = 4);
	tensor_pool *pool = POOL(.n = 2);
	struct peer p[N];

	for (int i = 0; i < N; i++) {
		p[i] = peer_start("consumer", SOCK_SEQPACKET);
		assert_done(tensor_channel_group_add(g, p[i].ch));
	}
	for (int i = 0; i < 100; i++)
		tensor_scope {
			tensor *t = ok(tensor_pool_loan(pool, 20000 * MS));

			fill(t, i);
			assert_int_equal(tensor_channel_group_send(g, &t, 1, i, 0, 20000 * MS), N);
		}
	tensor_pool_close(pool);
	tensor_channel_group_close(g);
	for (int i = 0; i < N; i++)
		assert_int_equal(peer_end(&p[i]), 0);
}

static void death_gives_the_lost_messages(void **state)
{
	tensor_channel_group *g = GROUP(.kind = TENSOR_CHANNEL_GROUP_NEXT, .window = 4);
	struct peer p = peer_start("dies", SOCK_STREAM);
	struct pair q = pair_of(2);
	uint64_t tag;
	int lost = 0;

	assert_done(tensor_channel_group_add(g, p.ch));
	for (int i = 0; i < 4; i++)
		assert_int_equal(send_value(g, i, 5000 * MS), 1);
	for (int i = 0; i < 5000 && tensor_channel_group_count(g); i++)
		usleep(1000);
	assert_int_equal(tensor_channel_group_count(g), 0);
	for (; tensor_channel_group_lost(g, &tag) == 1; lost++)
		assert_int_equal(tag, lost + 1);
	assert_int_equal(lost, 3);
	assert_int_equal(send_value(g, 9, -1), -ENOTCONN);
	/* Another receiver takes over. */
	assert_done(tensor_channel_group_add(g, q.out));
	assert_int_equal(send_value(g, 10, -1), 1);
	assert_int_equal(recv_value(q.in), 10);
	tensor_channel_group_close(g);
	assert_int_equal(peer_end(&p), -SIGKILL);
	pair_close(&q);
}

static void dead_receiver_holds_up_nobody(void **state)
{
	tensor_channel_group *g = GROUP(.window = 2);
	struct peer p = peer_start("dies", SOCK_STREAM);
	struct pair q = pair_of(2);

	assert_done(tensor_channel_group_add(g, p.ch));
	assert_done(tensor_channel_group_add(g, q.out));
	for (int i = 0; i < 50; i++) {
		assert_true(send_value(g, i, 5000 * MS) >= 1);
		assert_int_equal(recv_value(q.in), i);
	}
	assert_int_equal(tensor_channel_group_count(g), 1);
	assert_int_equal(send_value(g, 50, 0), 1);
	tensor_channel_group_close(g);
	assert_int_equal(peer_end(&p), -SIGKILL);
	pair_close(&q);
}

/* ---- threads ---- */

static void *join_later(void *arg)
{
	struct set *s = arg;

	usleep(50000);
	assert_done(tensor_channel_group_add(s->g, s->p[1].out));
	return NULL;
}

static void late_receiver_ends_a_wait(void **state)
{
	struct set s = set_of(GROUP(.kind = TENSOR_CHANNEL_GROUP_NEXT, .window = 1), 2, 1);
	double start = seconds_of(CLOCK_MONOTONIC);
	pthread_t thread;

	assert_int_equal(send_value(s.g, 0, 0), 1);
	assert_int_equal(pthread_create(&thread, NULL, join_later, &s), 0);
	assert_int_equal(send_value(s.g, 1, 10000 * MS), 1);
	assert_true(seconds_of(CLOCK_MONOTONIC) - start < 5);
	pthread_join(thread, NULL);
	assert_int_equal(recv_value(s.p[1].in), 1);
	set_end(&s);
}

struct blocked {
	struct set *s;
	int res;
};

static void *send_more(void *arg)
{
	struct blocked *b = arg;

	b->res = send_value(b->s->g, 64 * 64, 20000 * MS);
	return NULL;
}

/* A window that is larger than the ring: a send waits for the ring as for the window, and holds up no other call. */
static void full_ring_is_waited_for(void **state)
{
	for (int next = 0; next < 2; next++) {
		struct set s = set_of(GROUP(.kind = next ? TENSOR_CHANNEL_GROUP_NEXT :
							   TENSOR_CHANNEL_GROUP_ALL,
					    .window = 4096),
				      2, 1);
		struct blocked b = { &s, 0 };
		pthread_t thread;
		int n = 0;

		assert_int_equal(send_value(s.g, 0, 0), 1);
		assert_int_equal(recv_value(s.p[0].in), 0);
		while ((b.res = send_value(s.g, n, MS)) == 1 && n < 64 * 64)
			n++;
		assert_int_equal(b.res, -ETIMEDOUT);
		assert_true(n < 64 * 64);
		assert_int_equal(stats_of(&s, 0).dropped, 0);
		pthread_create(&thread, NULL, send_more, &b);
		usleep(20000);
		assert_int_equal(tensor_channel_group_count(s.g), 1);
		assert_int_equal(tensor_channel_group_remove(s.g, s.p[1].out), -ENOENT);
		for (int i = 0; i < n; i++)
			assert_int_equal(recv_value(s.p[0].in), i);
		pthread_join(thread, NULL);
		assert_int_equal(b.res, 1);
		assert_int_equal(recv_value(s.p[0].in), 64 * 64);
		assert_int_equal(stats_of(&s, 0).dropped, 0);
		set_end(&s);
	}
}

static void invalid_arguments_are_refused(void **state)
{
	struct set s = set_of(GROUP(.window = 1), 2, 1);
	struct tensor_channel_group_stats stats;
	tensor *t = ok(tensor_ones(TENSOR_INTS(4), F32)), *none = NULL;
	uint64_t tag;

	assert_null(GROUP(.window = -1));
	assert_null(GROUP(.window = 4097));
	assert_null(GROUP(.full = 3));
	assert_null(GROUP(.kind = 2));
	assert_int_equal(tensor_channel_group_add(NULL, s.p[0].out), -EINVAL);
	assert_int_equal(tensor_channel_group_add(s.g, NULL), -EINVAL);
	assert_int_equal(tensor_channel_group_add(s.g, s.p[0].out), -EEXIST);
	assert_int_equal(tensor_channel_group_remove(s.g, s.p[1].out), -ENOENT);
	assert_int_equal(tensor_channel_group_remove(NULL, s.p[1].out), -EINVAL);
	assert_int_equal(tensor_channel_group_send(NULL, &t, 1, 0, 0, 0), -EINVAL);
	assert_int_equal(tensor_channel_group_send(s.g, NULL, 1, 0, 0, 0), -EINVAL);
	assert_int_equal(tensor_channel_group_send(s.g, &t, 65, 0, 0, 0), -EINVAL);
	assert_int_equal(tensor_channel_group_send(s.g, &t, 1, 0, 2, 0), -EINVAL);
	assert_int_equal(tensor_channel_group_send(s.g, &none, 1, 0, 0, 0), -EINVAL);
	assert_int_equal(tensor_channel_group_count(NULL), -EINVAL);
	assert_int_equal(tensor_channel_group_lost(NULL, &tag), -EINVAL);
	assert_int_equal(tensor_channel_group_lost(s.g, NULL), -EINVAL);
	assert_int_equal(tensor_channel_group_lost(s.g, &tag), 0);
	assert_int_equal(tensor_channel_group_stats(s.g, s.p[1].out, &stats), -ENOENT);
	assert_int_equal(tensor_channel_group_stats(s.g, s.p[0].out, NULL), -EINVAL);
	tensor_channel_group_close(NULL);
	/* A send that failed took no place of the window. */
	assert_int_equal(tensor_channel_group_send(s.g, &t, 1, 0, 0, 0), 1);
	tensor_release(t);
	set_end(&s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_get_each_message),
		cmocka_unit_test(next_spreads_by_load),
		cmocka_unit_test(window_is_full_until_a_release),
		cmocka_unit_test(slow_receiver_loses_the_oldest),
		cmocka_unit_test(next_drops_the_oldest_of_all),
		cmocka_unit_test(waits_for_processes_of_different_speed),
		cmocka_unit_test(loans_return_after_the_last_receiver),
		cmocka_unit_test(death_gives_the_lost_messages),
		cmocka_unit_test(dead_receiver_holds_up_nobody),
		cmocka_unit_test(late_receiver_ends_a_wait),
		cmocka_unit_test(full_ring_is_waited_for),
		cmocka_unit_test(invalid_arguments_are_refused),
	};

	peer_main(argc, argv, roles);
	alarm(120);
	return cmocka_run_group_tests_name("channel_group", tests, NULL, NULL);
}
