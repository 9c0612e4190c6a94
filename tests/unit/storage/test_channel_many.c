// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Messages of several tensors. */
#include "pools.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_has_its_tensors_and_its_tag),
		cmocka_unit_test(wrong_number_keeps_the_message),
		cmocka_unit_test(invalid_arguments_are_refused),
		cmocka_unit_test(message_that_times_out_is_not_received),
	};

	alarm(240);
	return cmocka_run_group_tests_name("channel_many", tests, NULL, NULL);
}
