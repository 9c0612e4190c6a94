// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Channels: what each end keeps and for how long, threads, peers that exit or are late. */
#include "peer.h"

#include "lib/sharing/wire.h"

#include <pthread.h>

static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET };

/* ---- cached buffers ---- */

static void buffer_is_mapped_once(void **state)
{
	struct pair p = pair_open(SOCK_STREAM), q = pair_open(SOCK_SEQPACKET);

	tensor_scope {
		tensor *t = ok(tensor_zeros(TENSOR_INTS(64), SHAREABLE(TENSOR_F32)));
		tensor *a = pass(&p, t), *b = pass(&p, t), *c = pass(&q, t);

		assert_true(tensor_shares_storage(a, b));
		assert_ptr_equal(tensor_data(a), tensor_data(c));
	}
	pair_close(&p);
	pair_close(&q);
}

static void both_ends_drop_buffers_that_the_sender_freed(void **state)
{
	struct pair p = pair_open(SOCK_STREAM);
	int before = count_buffers();
	tensor *t, *got;

	for (int i = 0; i < 20; i++) {
		t = ok(tensor_full(TENSOR_INTS(1 << 18), TENSOR_SCALAR(i), F32));
		got = pass(&p, t);
		assert_true(((const float *)tensor_data(got))[5] == i);
		tensor_release(t);
		tensor_release(got);
	}
	/* The receiver keeps the last buffer until the next message; earlier ones are unmapped. */
	assert_true(count_buffers() <= before + 1);
	pair_close(&p);
	assert_int_equal(count_buffers(), before);
}

static void received_tensor_outlives_channel_and_sender(void **state)
{
	struct pair p = pair_open(SOCK_STREAM);
	tensor *t = ok(tensor_full(TENSOR_INTS(1 << 18), TENSOR_SCALAR(5), F32));
	tensor *got = pass(&p, t);

	tensor_release(t);
	pair_close(&p);
	assert_true(((const float *)tensor_data(got))[1 << 17] == 5);
	tensor_release(got);
}

static void more_buffers_than_slots_arrive(void **state)
{
	enum { N = 2 * WIRE_SLOTS + 50 };
	struct pair p = pair_open(SOCK_STREAM);
	tensor *t[N], *got[N];
	double value;

	for (int i = 0; i < N; i++)
		t[i] = ok(tensor_full(TENSOR_INTS(4), TENSOR_SCALAR(i), SHAREABLE(TENSOR_F32)));
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < N; i++)
			got[i] = pass(&p, t[i]);
		for (int i = 0; i < N; i++) {
			assert_done(tensor_at(got[i], TENSOR_INTS(3), &value));
			assert_true(value == i);
			tensor_release(got[i]);
		}
	}
	for (int i = 0; i < N; i++)
		tensor_release(t[i]);
	pair_close(&p);
}

static void no_fd_is_left_behind(void **state)
{
	int before = count_fds();

	for (int round = 0; round < 3; round++) {
		struct pair p = pair_open(types[round % 2]);

		tensor_scope {
			tensor *t = ok(tensor_zeros(TENSOR_INTS(4), SHAREABLE(TENSOR_F32)));

			for (int i = 0; i < 5; i++) {
				pass(&p, t);
				pass(&p, tensor_neg(t));
			}
			assert_done(tensor_send(p.out, t, TENSOR_SEND_READONLY));
			/* Sent, but never received. */
			assert_done(tensor_send(p.out, tensor_neg(t), 0));
		}
		pair_close(&p);
	}
	assert_int_equal(count_fds(), before);
}

#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76 /* Linux 6.5 */
#endif

/* Socket options of the program add control messages to each message, some with descriptors. */
static void control_messages_of_the_sender_leak_no_fd(void **state)
{
	static const int wanted[] = { SO_PASSCRED, SO_PASSSEC, SO_PASSPIDFD };
	struct pair p = pair_open(SOCK_STREAM);
	const int on = 1;
	int before;

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		setsockopt(p.ends[1], SOL_SOCKET, wanted[i], &on,
			   sizeof(on)); /* the kernel's default may be on */
	before = count_fds();
	for (int i = 0; i < 20; i++)
		tensor_scope
			pass(&p, tensor_zeros(TENSOR_INTS(4), SHAREABLE(TENSOR_F32)));
	pair_close(&p);
	assert_int_equal(count_fds(), before - 2);
}

/* ---- threads ---- */

enum { SENDS = 500 };

struct sender {
	tensor_channel *ch;
	_Atomic int failed;
};

/* Sends new buffers, some of which are freed at once, so that slots are reused. */
static void *send_many(void *arg)
{
	struct sender *s = arg;
	tensor *mine = tensor_full(TENSOR_INTS(4), TENSOR_SCALAR(1), SHAREABLE(TENSOR_F32));

	for (int i = 0; i < SENDS; i++) {
		tensor *once = tensor_full(TENSOR_INTS(4), TENSOR_SCALAR(1),
					   TENSOR_OPTIONS(.dtype = TENSOR_F32, .shareable = i & 1));

		s->failed |= tensor_send(s->ch, i % 3 ? once : mine, 0) < 0;
		tensor_release(once);
	}
	tensor_release(mine);
	return NULL;
}

static void threads_share_a_channel(void **state)
{
	struct pair p = pair_open(SOCK_STREAM);
	struct sender s = { .ch = p.out };
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, send_many, &s), 0);
	for (int i = 0; i < 3 * SENDS; i++) {
		tensor *t = ok(tensor_recv(p.in));

		assert_true(((const float *)tensor_data(t))[3] == 1);
		tensor_release(t);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_false(s.failed);
	pair_close(&p);
}

/* ---- peers that exit or are late ---- */

static int receive_once_and_pause(tensor_channel *ch)
{
	tensor_release(tensor_recv(ch));
	pause();
	return 0;
}

static void death_of_the_peer_is_epipe(void **state)
{
	for (size_t k = 0; k < 2; k++) {
		struct peer p = peer_start("fall_silent", types[k]);

		tensor_scope {
			tensor *t = ok(tensor_zeros(TENSOR_INTS(4), SHAREABLE(TENSOR_F32)));

			assert_done(tensor_send(p.ch, t, 0));
			kill(p.pid, SIGKILL);
			assert_fails(tensor_recv(p.ch), EPIPE, "gone");
			assert_fails(tensor_send(p.ch, t, 0), EPIPE, "gone");
			assert_values(t, 0, 0, 0, 0, 0);
		}
		assert_int_equal(peer_end(&p), -SIGKILL);
	}
}

static void nonblocking_socket_gives_eagain(void **state)
{
	struct pair p = pair_open(SOCK_STREAM);
	int sent = 0, got = 0;

	fcntl(p.ends[0], F_SETFL, O_NONBLOCK);
	fcntl(p.ends[1], F_SETFL, O_NONBLOCK);
	tensor_scope {
		tensor *t = ok(tensor_zeros(TENSOR_INTS(4), SHAREABLE(TENSOR_F32)));

		assert_fails(tensor_recv(p.in), EAGAIN, "recv");
		while (tensor_send(p.out, t, 0) == 0)
			sent++;
		assert_int_equal(tensor_last_error()->code, EAGAIN);
		while (tensor_recv(p.in))
			got++;
		assert_int_equal(tensor_last_error()->code, EAGAIN);
		assert_true(sent > 10);
		assert_int_equal(got, sent);
		pass(&p, t);
	}
	pair_close(&p);
}

static void wrong_arguments_are_refused(void **state)
{
	struct pair p = pair_open(SOCK_STREAM);
	int pipes[2];

	assert_int_equal(pipe(pipes), 0);
	tensor_scope {
		tensor *t = ok(tensor_zeros(TENSOR_INTS(4), F32));

		assert_fails(tensor_send(p.out, t, 8), EINVAL, "flags 0x8");
		assert_fails(tensor_send(p.out, NULL, 0), EINVAL, "NULL");
		assert_fails(tensor_send(NULL, t, 0), EINVAL, "channel");
		assert_fails(tensor_recv(NULL), EINVAL, "channel");
	}
	assert_fails(tensor_channel_open(pipes[0]), ENOTSOCK, "socket");
	assert_fails(tensor_channel_open(-1), EBADF, "socket");
	tensor_channel_close(NULL);
	close(pipes[0]);
	close(pipes[1]);
	pair_close(&p);
}

int main(int argc, char **argv)
{
	static const struct peer_role roles[] = { { "fall_silent", receive_once_and_pause },
						  { NULL, NULL } };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buffer_is_mapped_once),
		cmocka_unit_test(both_ends_drop_buffers_that_the_sender_freed),
		cmocka_unit_test(received_tensor_outlives_channel_and_sender),
		cmocka_unit_test(more_buffers_than_slots_arrive),
		cmocka_unit_test(no_fd_is_left_behind),
		cmocka_unit_test(control_messages_of_the_sender_leak_no_fd),
		cmocka_unit_test(threads_share_a_channel),
		cmocka_unit_test(death_of_the_peer_is_epipe),
		cmocka_unit_test(nonblocking_socket_gives_eagain),
		cmocka_unit_test(wrong_arguments_are_refused),
	};

	peer_main(argc, argv, roles);
	return cmocka_run_group_tests_name("channel", tests, NULL, NULL);
}
