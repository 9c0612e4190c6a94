// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Pools and leases: two processes, the last reference, order of closing, policies. */
#include "pools.h"

#include <tensor/autograd.h>

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

/* A drop takes nothing from one of two receivers while the other one has the buffer. */
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

/* ---- tensors of the program ---- */

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

/* Two received tensors can be on one buffer, which would be lent twice. */
static void pool_refuses_a_buffer_of_two_storages(void **state)
{
	struct pair p = pair_of(0), q = pair_of(2);
	tensor *t = ok(tensor_ones(TENSOR_INTS(4), SHAREABLE(TENSOR_F32))), *got[2];

	assert_done(tensor_send(p.out, t, 0));
	assert_done(tensor_send(q.out, t, 0));
	got[0] = ok(tensor_recv(p.in));
	got[1] = ok(tensor_recv(q.in));
	assert_false(tensor_shares_storage(got[0], got[1]));
	assert_null(tensor_pool_open(TENSOR_NO_INTS, TENSOR_POOL_OPTIONS(.n = 2, .tensors = got)));
	assert_contains(tensor_last_error()->text, "same buffer");
	tensor_release(got[0]);
	got[0] = t; /* the sender's own mapping */
	assert_null(tensor_pool_open(TENSOR_NO_INTS, TENSOR_POOL_OPTIONS(.n = 2, .tensors = got)));
	assert_contains(tensor_last_error()->text, "same buffer");
	tensor_release(got[1]);
	tensor_release(t);
	pair_close(&p);
	pair_close(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receiver_reads_what_was_sent_while_the_loader_goes_on),
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
		cmocka_unit_test(pool_adopts_tensors),
		cmocka_unit_test(pool_refuses_a_buffer_of_two_storages),
	};

	alarm(240);
	return cmocka_run_group_tests_name("channel_pool", tests, NULL, NULL);
}
