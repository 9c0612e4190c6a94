// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Versions: a process sees that another one changed a tensor in place. */
#include "pools.h"

/* Adds to the tensor in place as often as the message says, and answers. */
static int writer(tensor_channel *ch)
{
	tensor *t = tensor_recv(ch), *go;

	while (t && (go = tensor_recv(ch))) {
		tensor_scope
			for (int64_t i = 0; i < tensor_numel(go); i++)
				if (!tensor_add_scalar_(t, S(1)))
					return 1;
		if (tensor_send(ch, go, 0))
			return 1;
		tensor_release(go);
	}
	tensor_release(t);
	return 0;
}

static const struct peer_role roles[] = { { "writer", writer }, { 0 } };

/* Lets the peer change the tensor n times. */
static void write_by(struct peer *p, int64_t n)
{
	tensor_scope {
		assert_done(tensor_send(p->ch, ok(tensor_zeros(TENSOR_SHAPE(n), F32)), 0));
		ok(tensor_recv(p->ch));
	}
}

static void change_by_another_process_is_seen(void **state)
{
	struct peer p = peer_start("writer", SOCK_STREAM);
	tensor *t = ok(tensor_zeros(TENSOR_INTS(8), SHAREABLE(TENSOR_F32)));
	uint32_t before;

	ok(tensor_add_scalar_(t, S(1)));
	assert_int_equal(tensor_version(t), 1);
	assert_done(tensor_send(p.ch, t, 0));
	before = tensor_version(t);
	write_by(&p, 3);
	assert_int_equal(tensor_version(t), before + 3);
	ok(tensor_add_scalar_(t, S(1)));
	assert_int_equal(tensor_version(t), before + 4);
	write_by(&p, 0);
	assert_int_equal(tensor_version(t), before + 4);
	/* A store by the program is not counted. */
	*(float *)tensor_data(t) = 7;
	assert_int_equal(tensor_version(t), before + 4);
	tensor_release(t);
	assert_int_equal(peer_end(&p), 0);
}

/* A receiver sees the count of the buffer from its first message on, by views, and on a second channel, too. */
static void receiver_has_the_version_of_the_buffer(void **state)
{
	for (int kind = 0; kind < 4; kind++) {
		struct pair p = pair_of(kind), q = pair_of(kind);

		tensor_scope {
			tensor *t = ok(tensor_zeros(TENSOR_INTS(4, 4), F32)), *got, *view, *other;
			uint32_t before;

			/* Private, then moved into a buffer by the send: the count goes on. */
			ok(tensor_add_scalar_(t, S(1)));
			ok(tensor_add_scalar_(t, S(1)));
			got = pass(&p, t);
			assert_int_equal(tensor_version(t), 2);
			before = tensor_version(got);
			view = pass(&p, ok(tensor_select(t, 0, 1)));
			other = pass(&q, t);
			ok(tensor_add_scalar_(t, S(1)));
			assert_int_equal(tensor_version(got), before + 1);
			assert_int_equal(tensor_version(view), before + 1);
			ok(tensor_fill_(view, S(5)));
			assert_int_equal(tensor_version(t), 4);
			assert_int_equal(tensor_version(other), before + 2);
		}
		pair_close(&p);
		pair_close(&q);
	}
}

static void readonly_receiver_sees_changes(void **state)
{
	struct pair p = pair_open(SOCK_STREAM);
	tensor *t = ok(tensor_zeros(TENSOR_INTS(4), SHAREABLE(TENSOR_F32))), *got;
	uint32_t before;

	assert_done(tensor_send(p.out, t, TENSOR_SEND_READONLY));
	got = ok(tensor_recv(p.in));
	before = tensor_version(got);
	assert_fails(tensor_fill_(got, S(1)), EACCES, "read-only");
	assert_int_equal(tensor_version(got), before);
	ok(tensor_fill_(t, S(2)));
	assert_int_equal(tensor_version(got), before + 1);
	tensor_release(t);
	tensor_release(got);
	pair_close(&p);
}

/* A loan and its received tensor: the count belongs to the buffer of the pool, which is lent many times. */
static void leased_tensor_has_the_version(void **state)
{
	struct pair p = pair_of(2);
	tensor_pool *pool = POOL(.n = 1);

	for (int round = 0; round < 3; round++)
		tensor_scope {
			tensor *t = ok(tensor_pool_loan(pool, 1000 * MS)), *got;
			uint32_t before = tensor_version(t);

			assert_done(tensor_send_many(p.out, &t, 1, 0, 0, 0));
			assert_int_equal(tensor_recv_many(p.in, &got, 1, NULL, 0), 1);
			before = tensor_version(got);
			fill(t, round);
			fill(t, round);
			assert_int_equal(tensor_version(got), before + 2);
		}
	tensor_pool_close(pool);
	pair_close(&p);
}

/* The values that backward needs were overwritten by the sender. */
static void saved_tensor_changed_by_the_sender_is_an_error(void **state)
{
	struct peer p = peer_start("writer", SOCK_STREAM);
	tensor *t = ok(tensor_ones(TENSOR_INTS(4), SHAREABLE(TENSOR_F32)));

	assert_done(tensor_send(p.ch, t, 0));
	for (int changed = 0; changed < 2; changed++)
		tensor_scope {
			tensor *w = ok(tensor_ones(TENSOR_INTS(4), F32)), *loss;

			assert_done(tensor_set_requires_grad(w, true));
			loss = ok(tensor_sum(ok(tensor_mul(w, t))));
			write_by(&p, changed);
			if (changed) {
				assert_int_equal(tensor_backward(loss), -EINVAL);
				assert_contains(tensor_last_error()->text, "changed in place");
			} else {
				assert_done(tensor_backward(loss));
			}
		}
	tensor_release(t);
	assert_int_equal(peer_end(&p), 0);
}

/* Shared parameters that others update while this process has them saved (Hogwild). */
static void process_can_count_its_own_writes(void **state)
{
	struct peer p = peer_start("writer", SOCK_STREAM);
	tensor *t = ok(tensor_ones(TENSOR_INTS(4), SHAREABLE(TENSOR_F32)));
	uint32_t before;

	assert_done(tensor_count_own_writes(t));
	assert_done(tensor_count_own_writes(t));
	assert_done(tensor_send(p.ch, t, 0));
	tensor_scope {
		tensor *w = ok(tensor_ones(TENSOR_INTS(4), F32)), *loss;

		assert_done(tensor_set_requires_grad(w, true));
		loss = ok(tensor_sum(ok(tensor_mul(w, t))));
		before = tensor_version(t);
		write_by(&p, 5);
		assert_int_equal(tensor_version(t), before);
		assert_done(tensor_backward(loss));
		ok(tensor_fill_(t, S(1)));
		assert_int_equal(tensor_version(t), before + 1);
	}
	assert_int_equal(tensor_count_own_writes(NULL), -EINVAL);
	tensor_release(t);
	assert_int_equal(peer_end(&p), 0);
}

/* A buffer that is used again begins at 0, as private memory does. */
static void new_tensors_begin_at_zero(void **state)
{
	for (int i = 0; i < 4; i++)
		tensor_scope {
			tensor *t = ok(tensor_zeros(TENSOR_INTS(64, 64), SHAREABLE(TENSOR_F32)));

			assert_int_equal(tensor_version(t), 0);
			if (i == 1)
				assert_done(tensor_count_own_writes(t));
			ok(tensor_fill_(t, S(i)));
			assert_int_equal(tensor_version(t), 1);
		}
}

/* The word in shared memory may have any value at any time. */
static void hostile_count_is_only_a_number(void **state)
{
	struct pair p = pair_open(SOCK_STREAM);
	tensor *t = ok(tensor_ones(TENSOR_INTS(1024), SHAREABLE(TENSOR_F32))), *got;
	uint32_t *page;

	assert_done(tensor_send(p.out, t, 0));
	got = ok(tensor_recv(p.in));
	if (!strcmp(tensor_provider_name(), "memfd")) {
		page = (uint32_t *)((char *)tensor_data(t) + 4096);
		for (uint32_t value = 0; value < 3; value++)
			tensor_scope {
				tensor *w = ok(tensor_ones(TENSOR_INTS(1024), F32)), *loss;

				assert_done(tensor_set_requires_grad(w, true));
				loss = ok(tensor_sum(ok(tensor_mul(w, got))));
				for (int i = 2; i < 1024; i++)
					page[i] = value - 1;
				tensor_version(got);
				tensor_backward(loss);
				ok(tensor_fill_(got, S(value)));
			}
	}
	tensor_release(t);
	tensor_release(got);
	pair_close(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(change_by_another_process_is_seen),
		cmocka_unit_test(receiver_has_the_version_of_the_buffer),
		cmocka_unit_test(readonly_receiver_sees_changes),
		cmocka_unit_test(leased_tensor_has_the_version),
		cmocka_unit_test(saved_tensor_changed_by_the_sender_is_an_error),
		cmocka_unit_test(process_can_count_its_own_writes),
		cmocka_unit_test(new_tensors_begin_at_zero),
		cmocka_unit_test(hostile_count_is_only_a_number),
	};

	peer_main(argc, argv, roles);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
