// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Messages of several tensors, leases and pools: two processes, order of closing, policies, forks, threads, limits. */
#include "rings.h"

#include <pthread.h>
#include <sys/resource.h>
#include <tensor/autograd.h>

#define RINGS	  TENSOR_CHANNEL_OPTIONS(.ring = true)
#define POOL(...) tensor_pool_open(TENSOR_SHAPE(4), TENSOR_POOL_OPTIONS(__VA_ARGS__))

static void fill(tensor *t, double value)
{
	ok(tensor_fill_(t, TENSOR_SCALAR(value)));
}

static double mean(tensor *t)
{
	double value = -1;

	tensor_scope
		assert_done(tensor_item(tensor_mean(t), &value));
	return value;
}

/* With and without a ring, over both types of sockets. */
static struct pair pair_of(int kind)
{
	return ring_pair_open(kind & 1 ? SOCK_STREAM : SOCK_SEQPACKET, kind & 2 ? RINGS : NULL);
}

/* Sends a loan with this value. */
static void send_loan(tensor_channel *ch, tensor_pool *pool, double value)
{
	tensor_scope {
		tensor *t = ok(tensor_pool_loan(pool, 10000 * MS));

		fill(t, value);
		assert_done(tensor_send_many(ch, &t, 1, (uint64_t)value, 0, 10000 * MS));
	}
}

/* ---- the two processes of a loader and a trainer ---- */

/* Reuses two buffers as fast as the pool gives them. */
static void load(int socket, int kind, int n)
{
	tensor_channel *ch = tensor_channel_open_with(socket, kind & 2 ? RINGS : NULL);
	tensor_pool *pool = tensor_pool_open(TENSOR_SHAPE(1000), TENSOR_POOL_OPTIONS(.n = 2));

	for (int i = 1; i <= n; i++)
		send_loan(ch, pool, i);
	tensor_channel_close(ch);
	tensor_pool_close(pool);
	_exit(0);
}

static void receiver_reads_what_was_sent_while_the_loader_goes_on(void **state)
{
	for (int kind = 0; kind < 4; kind++) {
		int ends[2], type = kind & 1 ? SOCK_STREAM : SOCK_SEQPACKET, status;
		tensor_channel *ch;
		pid_t pid;

		assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends), 0);
		pid = fork();
		if (!pid) {
			close(ends[0]);
			load(ends[1], kind, 30);
		}
		close(ends[1]);
		ch = tensor_channel_open_with(ends[0], kind & 2 ? RINGS : NULL);
		for (int i = 1; i <= 30; i++)
			tensor_scope {
				uint64_t tag;
				tensor *t;

				assert_int_equal(tensor_recv_many(ch, &t, 1, &tag, 10000 * MS), 1);
				assert_int_equal(tag, i);
				if (i % 8 == 0)
					usleep(20000); /* the loader would overwrite it by now */
				assert_true(mean(t) == i);
				assert_int_equal(tensor_numel(t), 1000);
			}
		assert_fails(tensor_recv_timeout(ch, 10000 * MS), EPIPE, "gone");
		tensor_channel_close(ch);
		close(ends[0]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

/* ---- several tensors ---- */

static void message_has_its_tensors_and_its_tag(void **state)
{
	for (int kind = 0; kind < 4; kind++) {
		struct pair p = pair_of(kind);

		for (int round = 0; round < 20; round++)
			tensor_scope {
				tensor *sent[TENSOR_MESSAGE_MAX], *got[TENSOR_MESSAGE_MAX], *one;
				int n = round < 19 ? round : TENSOR_MESSAGE_MAX;
				uint64_t tag = 0;

				for (int i = 0; i < n; i++)
					sent[i] = ok(tensor_full(TENSOR_INTS(i % 3, 2), S(round),
								 SHAREABLE(i % 2 ? TENSOR_F32 :
										   TENSOR_I64)));
				if (n > 1)
					sent[1] = ok(tensor_t(sent[n - 1])); /* a view */
				assert_done(
					tensor_send_many(p.out, sent, n, UINT64_MAX - round, 0, 0));
				one = ok(tensor_ones(TENSOR_INTS(7), SHAREABLE(TENSOR_F32)));
				assert_done(tensor_send(p.out, one, 0));
				assert_int_equal(tensor_recv_many(p.in, got, 64, &tag, 0), n);
				assert_true(tag == UINT64_MAX - round);
				for (int i = 0; i < n; i++)
					assert_same(got[i], sent[i]);
				if (n > 1)
					assert_true(tensor_shares_storage(got[1], got[n - 1]));
				assert_int_equal(tensor_recv_many(p.in, got, 64, &tag, 0), 1);
				assert_true(tag == 0);
				assert_same(got[0], one);
				assert_done(tensor_send(p.in, one, 0));
				ok(tensor_recv(p.out));
			}
		pair_close(&p);
	}
}

static void wrong_number_keeps_the_message(void **state)
{
	for (int kind = 0; kind < 4; kind++) {
		struct pair p = pair_of(kind);

		tensor_scope {
			tensor *t[2] = { ok(tensor_zeros(TENSOR_INTS(4), F32)),
					 ok(tensor_ones(TENSOR_INTS(4), F32)) };
			tensor *got[2];

			assert_done(tensor_send_many(p.out, t, 2, 5, 0, 0));
			assert_fails(tensor_recv(p.in), EMSGSIZE, "2 tensors");
			assert_int_equal(tensor_recv_many(p.in, got, 1, NULL, 0), -EMSGSIZE);
			/* It is ready for a wait, too. */
			assert_int_equal(tensor_channel_wait(&p.in, 1, 0), 0);
			assert_int_equal(tensor_recv_many(p.in, got, 2, NULL, 0), 2);
			assert_same(got[1], t[1]);
			assert_done(tensor_send_many(p.out, t, 0, 6, 0, 0));
			assert_fails(tensor_recv(p.in), EMSGSIZE, "0 tensors");
			assert_int_equal(tensor_recv_many(p.in, NULL, 0, NULL, 0), 0);
			assert_int_equal(tensor_recv_many(p.in, got, 2, NULL, 0), -ETIMEDOUT);
		}
		pair_close(&p);
	}
}

static void invalid_arguments_are_refused(void **state)
{
	struct pair p = pair_of(2);
	tensor *t = ok(tensor_zeros(TENSOR_INTS(4), F32)), *none = NULL, *got;
	tensor *same[2] = { t, t };

	assert_int_equal(tensor_send_many(NULL, &t, 1, 0, 0, 0), -EINVAL);
	assert_int_equal(tensor_send_many(p.out, &t, -1, 0, 0, 0), -EINVAL);
	assert_int_equal(tensor_send_many(p.out, &t, 65, 0, 0, 0), -EINVAL);
	assert_int_equal(tensor_send_many(p.out, NULL, 1, 0, 0, 0), -EINVAL);
	assert_int_equal(tensor_send_many(p.out, &t, 1, 0, 2, 0), -EINVAL);
	assert_true(tensor_send_many(p.out, &none, 1, 0, 0, 0) < 0);
	assert_int_equal(tensor_recv_many(NULL, &got, 1, NULL, 0), -EINVAL);
	assert_int_equal(tensor_recv_many(p.in, NULL, 1, NULL, 0), -EINVAL);
	assert_int_equal(tensor_recv_many(p.in, &got, -1, NULL, 0), -EINVAL);
	assert_null(POOL(.n = -1));
	assert_null(POOL(.n = 4097));
	assert_null(POOL(.full = 3));
	assert_null(POOL(.dtype = TENSOR_DTYPE_COUNT));
	assert_null(POOL(.tensors = &t, .n = 1));
	assert_null(tensor_pool_open(TENSOR_NO_INTS, NULL));
	assert_null(tensor_pool_open(TENSOR_SHAPE(-1), NULL));
	assert_null(tensor_pool_open(TENSOR_NO_INTS, TENSOR_POOL_OPTIONS(.n = 2, .tensors = same)));
	assert_contains(tensor_last_error()->text, "same storage");
	assert_null(
		tensor_pool_open(TENSOR_NO_INTS, TENSOR_POOL_OPTIONS(.n = 1, .tensors = &none)));
	assert_fails(tensor_pool_loan(NULL, 0), EINVAL, "NULL");
	assert_int_equal(tensor_pool_available(NULL), -EINVAL);
	tensor_pool_close(NULL);
	tensor_release(t);
	pair_close(&p);
}

/* A sender that gives up in the middle of a message: the receiver gets none of it, and what comes after. */
static void message_that_times_out_is_not_received(void **state)
{
	for (int type = 0; type < 2; type++) {
		struct pair p = pair_open(type ? SOCK_STREAM : SOCK_SEQPACKET);
		tensor *t = ok(tensor_ones(TENSOR_INTS(4), SHAREABLE(TENSOR_F32))), *all[5],
		       *got[5];
		tensor_pool *pool = POOL(.n = 1);
		int small = 1, sent = 0, received = 0, n;
		uint64_t tag;

		for (int i = 0; i < 5; i++)
			all[i] = t;
		setsockopt(p.ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
		all[3] = ok(tensor_pool_loan(pool, 0));
		while (!tensor_send_many(p.out, all, 5, (uint64_t)sent, 0, 0))
			sent++;
		assert_int_equal(tensor_last_error()->code, ETIMEDOUT);
		for (; (n = tensor_recv_many(p.in, got, 5, &tag, 0)) == 5; received++) {
			assert_int_equal(tag, received);
			for (int i = 0; i < 5; i++)
				tensor_release(got[i]);
		}
		assert_int_equal(n, -ETIMEDOUT);
		assert_int_equal(received, sent);
		assert_done(tensor_send_many(p.out, &t, 1, 77, 0, 0));
		assert_int_equal(tensor_recv_many(p.in, got, 5, &tag, 0), 1);
		assert_int_equal(tag, 77);
		tensor_release(got[0]);
		assert_int_equal(tensor_pool_available(pool), 0);
		tensor_release(all[3]);
		assert_int_equal(tensor_pool_available(pool), 1);
		tensor_release(t);
		tensor_pool_close(pool);
		pair_close(&p);
	}
}

/* ---- leases ---- */

static void loan_comes_back_with_the_last_reference(void **state)
{
	for (int kind = 0; kind < 4; kind++) {
		struct pair p = pair_of(kind);
		tensor_pool *pool = POOL(.n = 1);
		tensor *t, *view, *again;

		for (int round = 0; round < 3; round++) {
			send_loan(p.out, pool, 3);
			assert_fails(tensor_pool_loan(pool, 0), ETIMEDOUT, "1 buffers");
			t = ok(tensor_recv(p.in));
			view = ok(tensor_select(t, 0, 1));
			tensor_release(t);
			assert_fails(tensor_pool_loan(pool, MS), ETIMEDOUT, "1 buffers");
			again = ok(tensor_alias(view));
			tensor_release(view);
			assert_int_equal(tensor_pool_available(pool), 0);
			tensor_release(again);
			assert_int_equal(tensor_pool_available(pool), 1);
		}
		tensor_pool_close(pool);
		pair_close(&p);
	}
}

static void autograd_keeps_the_lease(void **state)
{
	struct pair p = pair_of(2);
	tensor_pool *pool = POOL(.n = 1);
	tensor *w = ok(tensor_full(TENSOR_INTS(4), S(2), F32)), *loss, *t;

	assert_done(tensor_set_requires_grad(w, true));
	send_loan(p.out, pool, 5);
	t = ok(tensor_recv(p.in));
	tensor_scope
		loss = tensor_retain(ok(tensor_sum(tensor_mul(w, t))));
	tensor_release(t);
	assert_int_equal(tensor_pool_available(pool), 0);
	assert_done(tensor_backward(loss));
	assert_int_equal(tensor_pool_available(pool), 1);
	assert_true(mean(tensor_grad(w)) == 5);
	tensor_release(loss);
	tensor_release(w);
	tensor_pool_close(pool);
	pair_close(&p);
}

static void message_of_two_loans_returns_both_at_its_end(void **state)
{
	struct pair p = pair_of(2);
	tensor_pool *pool = POOL(.n = 2);
	tensor *got[3];

	tensor_scope {
		tensor *a = ok(tensor_pool_loan(pool, 0)), *b = ok(tensor_pool_loan(pool, 0));
		tensor *all[3] = { a, b, ok(tensor_select(a, 0, 2)) };

		assert_fails(tensor_pool_loan(pool, 0), ETIMEDOUT, "2 buffers");
		assert_done(tensor_send_many(p.out, all, 3, 0, 0, 0));
	}
	assert_int_equal(tensor_recv_many(p.in, got, 3, NULL, 0), 3);
	assert_true(tensor_shares_storage(got[0], got[2]));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(tensor_pool_available(pool), 0);
		tensor_release(got[i]);
	}
	assert_int_equal(tensor_pool_available(pool), 2);
	tensor_pool_close(pool);
	pair_close(&p);
}

static void loan_to_several_receivers_returns_after_the_last(void **state)
{
	struct pair p[3] = { pair_of(0), pair_of(2), pair_of(3) };
	tensor_pool *pool = POOL(.n = 1);
	tensor *got[3];

	tensor_scope {
		tensor *t = ok(tensor_pool_loan(pool, 0));

		for (int i = 0; i < 3; i++)
			assert_done(tensor_send(p[i].out, t, 0));
	}
	for (int i = 0; i < 3; i++)
		got[i] = ok(tensor_recv(p[i].in));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(tensor_pool_available(pool), 0);
		tensor_release(got[i]);
	}
	assert_int_equal(tensor_pool_available(pool), 1);
	tensor_pool_close(pool);
	for (int i = 0; i < 3; i++)
		pair_close(&p[i]);
}

/* A receiver that sends on what it has: the third process gets a copy, which no lease covers. */
static void leased_tensor_is_sent_on_as_a_copy(void **state)
{
	struct pair p = pair_of(2), q = pair_of(2);
	tensor_pool *pool = POOL(.n = 1);
	tensor *t, *copy;

	send_loan(p.out, pool, 1);
	t = ok(tensor_recv(p.in));
	assert_done(tensor_send(q.out, t, 0));
	tensor_release(t);
	send_loan(p.out, pool, 2);
	copy = ok(tensor_recv(q.in));
	assert_true(mean(copy) == 1);
	tensor_release(copy);
	tensor_pool_close(pool);
	pair_close(&p);
	pair_close(&q);
}

/* ---- order of closing ---- */

enum { LOAN, TENSOR, POOL_, OUT, IN, THINGS };

/* Ends all things in the order of a permutation; whatever the order, nothing is left and the values stay. */
static void end_in_order(int kind, const int *order)
{
	struct pair p = pair_of(kind);
	tensor_pool *pool = POOL(.n = 2);
	tensor *loan = ok(tensor_pool_loan(pool, 0)), *t;

	fill(loan, 9);
	assert_done(tensor_send(p.out, loan, 0));
	t = ok(tensor_recv(p.in));
	send_loan(p.out, pool, 8); /* is not received */
	for (int i = 0; i < THINGS; i++) {
		if (order[i] == LOAN)
			tensor_release(loan);
		if (order[i] == TENSOR) {
			assert_true(mean(t) == 9);
			tensor_release(t);
		}
		if (order[i] == POOL_)
			tensor_pool_close(pool);
		if (order[i] == OUT)
			tensor_channel_close(p.out);
		if (order[i] == IN)
			tensor_channel_close(p.in);
	}
	close(p.ends[0]);
	close(p.ends[1]);
}

static void every_order_of_closing_leaves_nothing(void **state)
{
	int fds = count_fds(), buffers = count_buffers();
	struct tensor_live_counts before, after;

	tensor_live_counts(&before);
	for (int code = 0; code < 120; code++) {
		int order[THINGS] = { 0, 1, 2, 3, 4 }, c = code;

		for (int i = THINGS; i > 1; c /= i, i--) {
			int k = c % i, x = order[i - 1];

			order[i - 1] = order[k];
			order[k] = x;
		}
		end_in_order(code % 4, order);
	}
	tensor_live_counts(&after);
	assert_int_equal(after.tensors, before.tensors);
	assert_int_equal(after.storages, before.storages);
	tensor_cache_trim();
	assert_fds(fds);
	assert_int_equal(count_buffers(), buffers);
	assert_int_equal(ring_mappings(NULL, NULL), 0);
	assert_int_equal(lease_mappings(NULL, NULL), 0);
}

static void receiver_that_closes_returns_what_it_has_not(void **state)
{
	for (int kind = 0; kind < 4; kind++) {
		struct pair p = pair_of(kind);
		tensor_pool *pool = POOL(.n = 3);
		tensor *t;

		for (int i = 0; i < 3; i++)
			send_loan(p.out, pool, i);
		t = ok(tensor_recv(p.in));
		assert_int_equal(tensor_pool_available(pool), 0);
		tensor_channel_close(p.in);
		/* The one that was received stays with its receiver. */
		assert_int_equal(tensor_pool_available(pool), 2);
		assert_true(mean(t) == 0);
		tensor_release(t);
		assert_int_equal(tensor_pool_available(pool), 3);
		tensor_channel_close(p.out);
		tensor_pool_close(pool);
		close(p.ends[0]);
		close(p.ends[1]);
	}
}

/* Before the receiver has read anything. */
static void receiver_that_never_receives_returns_all(void **state)
{
	for (int kind = 0; kind < 4; kind++) {
		struct pair p = pair_of(kind);
		tensor_pool *pool = POOL(.n = 1);

		send_loan(p.out, pool, 1);
		tensor_channel_close(p.in);
		close(p.ends[1]);
		tensor_release(ok(tensor_pool_loan(pool, 1000 * MS)));
		tensor_channel_close(p.out);
		tensor_pool_close(pool);
		close(p.ends[0]);
	}
}

/* ---- policies ---- */

static void full_pool_refuses(void **state)
{
	struct pair p = pair_of(2);
	tensor_pool *pool = POOL(.n = 1, .full = TENSOR_POOL_REFUSE);

	send_loan(p.out, pool, 1);
	assert_fails(tensor_pool_loan(pool, -1), EAGAIN, "1 buffers");
	tensor_release(ok(tensor_recv(p.in)));
	send_loan(p.out, pool, 2);
	tensor_pool_close(pool);
	pair_close(&p);
}

static void full_pool_drops_the_oldest_that_was_not_received(void **state)
{
	for (int kind = 0; kind < 4; kind++) {
		struct pair p = pair_of(kind);
		tensor_pool *pool = POOL(.n = 3, .full = TENSOR_POOL_DROP);
		tensor *held[3];

		send_loan(p.out, pool, 1);
		held[0] = ok(tensor_recv(p.in));
		for (int i = 2; i <= 9; i++)
			send_loan(p.out, pool, i);
		/* 2 to 7 were dropped. */
		held[1] = ok(tensor_recv_timeout(p.in, 0));
		held[2] = ok(tensor_recv_timeout(p.in, 0));
		assert_fails(tensor_recv_timeout(p.in, 0), ETIMEDOUT, "in time");
		assert_fails(tensor_pool_loan(pool, MS), ETIMEDOUT, "3 buffers");
		for (int i = 0; i < 3; i++) {
			assert_true(mean(held[i]) == (i ? 7 + i : 1));
			tensor_release(held[i]);
		}
		assert_int_equal(tensor_pool_available(pool), 3);
		tensor_pool_close(pool);
		pair_close(&p);
	}
}

/* Of a buffer that one of two receivers has, the other one loses nothing. */
static void drop_takes_no_message_in_vain(void **state)
{
	struct pair p = pair_of(2), q = pair_of(0);
	tensor_pool *pool = POOL(.n = 1, .full = TENSOR_POOL_DROP);
	tensor *loan = ok(tensor_pool_loan(pool, 0)), *t;

	assert_done(tensor_send(p.out, loan, 0));
	assert_done(tensor_send(q.out, loan, 0));
	tensor_release(loan);
	t = ok(tensor_recv(q.in));
	assert_fails(tensor_pool_loan(pool, 0), ETIMEDOUT, "1 buffers");
	tensor_release(t);
	tensor_release(ok(tensor_recv_timeout(p.in, 0)));
	tensor_release(ok(tensor_pool_loan(pool, 0)));
	tensor_pool_close(pool);
	pair_close(&p);
	pair_close(&q);
}

/* ---- waiting ---- */

static void *release_later(void *t)
{
	usleep(20000);
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
		assert_true(begin >= 0.02 && begin < 5);
		assert_true(process_seconds() - used < 0.015);
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

static void pool_adopts_tensors(void **state)
{
	struct pair p = pair_of(2);
	tensor *own[2] = { ok(tensor_ones(TENSOR_INTS(3, 2), F32)),
			   ok(tensor_full(TENSOR_INTS(5), S(2), I64)) };
	tensor_pool *pool =
		tensor_pool_open(TENSOR_NO_INTS, TENSOR_POOL_OPTIONS(.n = 2, .tensors = own));
	tensor *t;

	assert_non_null(pool);
	for (int i = 0; i < 2; i++) {
		tensor_scope {
			t = ok(tensor_pool_loan(pool, 0));
			assert_same(t, own[i]);
			assert_done(tensor_send(p.out, t, TENSOR_SEND_READONLY));
		}
		t = ok(tensor_recv(p.in));
		assert_same(t, own[i]);
		assert_false(tensor_is_writable(t));
		tensor_release(t);
	}
	assert_int_equal(tensor_pool_available(pool), 2);
	tensor_pool_close(pool);
	tensor_release(own[0]);
	tensor_release(own[1]);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receiver_reads_what_was_sent_while_the_loader_goes_on),
		cmocka_unit_test(message_has_its_tensors_and_its_tag),
		cmocka_unit_test(wrong_number_keeps_the_message),
		cmocka_unit_test(invalid_arguments_are_refused),
		cmocka_unit_test(message_that_times_out_is_not_received),
		cmocka_unit_test(loan_comes_back_with_the_last_reference),
		cmocka_unit_test(autograd_keeps_the_lease),
		cmocka_unit_test(message_of_two_loans_returns_both_at_its_end),
		cmocka_unit_test(loan_to_several_receivers_returns_after_the_last),
		cmocka_unit_test(leased_tensor_is_sent_on_as_a_copy),
		cmocka_unit_test(every_order_of_closing_leaves_nothing),
		cmocka_unit_test(receiver_that_closes_returns_what_it_has_not),
		cmocka_unit_test(receiver_that_never_receives_returns_all),
		cmocka_unit_test(full_pool_refuses),
		cmocka_unit_test(full_pool_drops_the_oldest_that_was_not_received),
		cmocka_unit_test(drop_takes_no_message_in_vain),
		cmocka_unit_test(release_wakes_a_loan_that_waits),
		cmocka_unit_test(threads_share_a_pool),
		cmocka_unit_test(both_waiting_threads_get_a_buffer),
		cmocka_unit_test(ten_thousand_leases_at_a_time),
		cmocka_unit_test(lease_beyond_the_table_is_an_error),
		cmocka_unit_test(few_files_are_enough),
		cmocka_unit_test(child_of_fork_ends_no_lease),
		cmocka_unit_test(receiver_that_is_killed_returns_all),
		cmocka_unit_test(received_tensor_outlives_its_sender),
		cmocka_unit_test(pool_adopts_tensors),
	};

	alarm(240);
	return cmocka_run_group_tests_name("channel_pool", tests, NULL, NULL);
}
