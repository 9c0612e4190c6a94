// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Channels with rings: agreement and refusal, the order of both ways, waiting, timeouts, threads, forks. */
#include "rings.h"

#include "lib/sharing/wire.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET };

#define RINGS	      TENSOR_CHANNEL_OPTIONS(.ring = true)
#define F32_SHARED(n) ok(tensor_zeros(TENSOR_INTS(n), SHAREABLE(TENSOR_F32)))

static double value_of(tensor *t)
{
	double value = -1;

	assert_done(tensor_at(t, TENSOR_INTS(0), &value));
	return value;
}

static void set_value(tensor *t, float value)
{
	((float *)tensor_mutable_data(t))[0] = value;
}

/* Bytes that wait in the socket. */
static int pending(int socket)
{
	char bytes[65536];
	ssize_t n = recv(socket, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);

	return n < 0 ? 0 : (int)n;
}

/* ---- agreement ---- */

static void both_directions_get_a_ring(void **state)
{
	for (int k = 0; k < 2; k++) {
		struct pair p = ring_pair_open(types[k], RINGS), plain = pair_open(types[k]);

		tensor_scope {
			tensor *t = F32_SHARED(4);
			int before;

			/* With what t and its import in this process need: with memfds a descriptor each. */
			pass(&plain, t);
			before = count_fds();
			assert_false(tensor_channel_has_ring(p.out));
			ring_pair_agree(&p, t);
			assert_int_equal(ring_mappings(NULL, NULL), 4);
			/* Only the bell of a receiver that waits is on the socket. */
			for (int i = 0; i < 10; i++) {
				set_value(t, i);
				assert_done(tensor_send(p.out, t, 0));
				assert_true(pending(p.ends[1]) <= (int)sizeof(struct wire_message));
				assert_true(value_of(tensor_recv(p.in)) == i);
			}
			assert_int_equal(count_fds(), before); /* rings keep none */
		}
		pair_close(&p);
		pair_close(&plain);
		assert_int_equal(ring_mappings(NULL, NULL), 0);
	}
}

/* The peer has the functions of an older version: it knows no rings. */
static void peer_without_rings_keeps_the_socket(void **state)
{
	for (int k = 0; k < 4; k++) {
		struct pair p;

		assert_int_equal(socketpair(AF_UNIX, types[k / 2] | SOCK_CLOEXEC, 0, p.ends), 0);
		p.out = tensor_channel_open_with(p.ends[0], k % 2 ? RINGS : NULL);
		p.in = tensor_channel_open_with(p.ends[1], k % 2 ? NULL : RINGS);
		tensor_scope {
			tensor *t = F32_SHARED(4);

			for (int i = 0; i < 20; i++) {
				set_value(t, i);
				assert_true(value_of(pass(&p, t)) == i);
				assert_done(tensor_send(p.in, t, 0));
				assert_true(value_of(tensor_recv(p.out)) == i);
			}
			assert_false(tensor_channel_has_ring(p.out));
			assert_false(tensor_channel_has_ring(p.in));
			assert_int_equal(ring_mappings(NULL, NULL), 0);
		}
		pair_close(&p);
	}
}

/* Offers a memfd that is no ring, as a peer with the mark. */
static void invalid_offer_keeps_the_socket(void **state)
{
	for (int k = 0; k < 3; k++) {
		struct wire_message m = { .magic = WIRE_MAGIC,
					  .version = WIRE_VERSION,
					  .size = sizeof(m),
					  .flags = WIRE_CONTROL | WIRE_FD,
					  .forget = WIRE_MARK,
					  .dtype = WIRE_OFFER };
		int ends[2], fd = memfd_create("test", MFD_ALLOW_SEALING);
		tensor_channel *ch;

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
		ch = tensor_channel_open_with(ends[0], RINGS);
		assert_int_equal(
			ftruncate(fd, k == 2 ? 4096 + 3 * RING_RECORD : 4096 + 4 * RING_RECORD), 0);
		if (k) /* without the first time: the peer could truncate it */
			fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
		tensor_scope {
			tensor *t = F32_SHARED(4);

			assert_done(tensor_send(ch, t, 0));
			assert_int_equal(wire_test_send(ends[1], &m, fd), sizeof(m));
			assert_done(tensor_send(ch, t, 0));
			assert_int_equal(tensor_channel_has_ring(ch), k == 1);
			assert_done(tensor_send(ch, t, 0));
		}
		tensor_channel_close(ch);
		close(ends[0]);
		close(ends[1]);
		close(fd);
	}
}

static void messages_by_both_ways_keep_their_order(void **state)
{
	for (int k = 0; k < 2; k++) {
		struct pair p = ring_pair_open(types[k], RINGS);

		tensor_scope {
			tensor *t = F32_SHARED(4), *sent[30];

			ring_pair_agree(&p, t);
			/* New buffers go by the socket, t by the ring. */
			for (int round = 0; round < 20; round++) {
				for (int i = 0; i < 30; i++) {
					sent[i] = (i * 7 + round) % 3 ? t : F32_SHARED(i + 1);
					assert_done(tensor_send(p.out, sent[i], 0));
				}
				for (int i = 0; i < 30; i++)
					assert_int_equal(tensor_numel(ok(tensor_recv(p.in))),
							 tensor_numel(sent[i]));
			}
		}
		pair_close(&p);
	}
}

/* Bells that the receiver has not read are before the message in the socket. */
static void message_behind_many_bells_arrives(void **state)
{
	struct pair p = ring_pair_open(SOCK_STREAM, RINGS);
	struct wire_message bell = { .magic = WIRE_MAGIC,
				     .version = WIRE_VERSION,
				     .size = sizeof(bell),
				     .flags = WIRE_CONTROL,
				     .dtype = WIRE_BELL };

	tensor_scope {
		tensor *t = F32_SHARED(4);

		ring_pair_agree(&p, t);
		for (int i = 0; i < 150; i++)
			assert_int_equal(send(p.ends[0], &bell, sizeof(bell), 0), sizeof(bell));
		assert_done(tensor_send(p.out, F32_SHARED(9), 0));
		assert_done(tensor_send(p.out, t, 0));
		assert_int_equal(tensor_numel(ok(tensor_recv(p.in))), 9);
		assert_int_equal(tensor_numel(ok(tensor_recv(p.in))), 4);
	}
	pair_close(&p);
}

static void without_memory_for_a_ring_the_channel_keeps_the_socket(void **state)
{
	struct pair p = ring_pair_open(SOCK_STREAM, RINGS);
	struct rlimit before, small;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 8192;
	tensor_scope {
		tensor *t = F32_SHARED(4);

		assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
		for (int i = 0; i < 10; i++) {
			pass(&p, t);
			assert_done(tensor_send(p.in, t, 0));
			ok(tensor_recv(p.out));
		}
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
		assert_false(tensor_channel_has_ring(p.out));
		assert_int_equal(ring_mappings(NULL, NULL), 0);
	}
	pair_close(&p);
}

/* ---- waiting ---- */

static void receive_and_send_time_out(void **state)
{
	for (int k = 0; k < 2; k++)
		for (int rings = 0; rings < 2; rings++) {
			struct pair p =
				ring_pair_open(types[k], TENSOR_CHANNEL_OPTIONS(.ring = rings));
			double start = seconds_of(CLOCK_MONOTONIC);
			int n = 0;

			tensor_scope {
				tensor *t = F32_SHARED(4);

				if (rings)
					ring_pair_agree(&p, t);
				assert_fails(tensor_recv_timeout(p.in, 20 * MS), ETIMEDOUT,
					     "in time");
				assert_true(seconds_of(CLOCK_MONOTONIC) - start >= 0.02);
				assert_fails(tensor_recv_timeout(p.in, 0), ETIMEDOUT, "in time");
				while (tensor_send_timeout(p.out, t, 0, 5 * MS) == 0)
					n++;
				assert_int_equal(tensor_last_error()->code, ETIMEDOUT);
				assert_true(rings ? n == RING_DEFAULT : n > 10);
				for (int i = 0; i < n; i++)
					ok(tensor_recv_timeout(p.in, 0));
				assert_fails(tensor_recv_timeout(p.in, 0), ETIMEDOUT, "in time");
				pass(&p, t);
			}
			pair_close(&p);
			assert_true(seconds_of(CLOCK_MONOTONIC) - start < 5);
		}
}

/* Half a message on a stream: a receive with a timeout returns, and a later one gets the whole message. */
static void half_a_message_blocks_no_receive(void **state)
{
	for (int rings = 0; rings < 2; rings++) {
		int ends[2], middle[2], fd;
		struct wire_message m;
		tensor_channel *in, *out;

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, middle), 0);
		in = tensor_channel_open_with(ends[0], TENSOR_CHANNEL_OPTIONS(.ring = rings));
		out = tensor_channel_open(middle[0]);
		tensor_scope {
			tensor *t = F32_SHARED(4);

			set_value(t, 3);
			assert_done(tensor_send(out, t, 0));
			fd = wire_test_recv(middle[1], &m);
			assert_int_equal(wire_test_send_part(ends[1], &m, 100, fd), 100);
			assert_fails(tensor_recv_timeout(in, 5 * MS), ETIMEDOUT, "in time");
			assert_int_equal(send(ends[1], (char *)&m + 100, sizeof(m) - 100, 0),
					 sizeof(m) - 100);
			assert_true(value_of(tensor_recv_timeout(in, 5 * MS)) == 3);
			close(fd);
		}
		tensor_channel_close(in);
		tensor_channel_close(out);
		for (int i = 0; i < 2; i++) {
			close(ends[i]);
			close(middle[i]);
		}
	}
}

/* poll() after a failed receive sees each message, however the threads race. */
static void *send_values(void *arg)
{
	struct pair *p = arg;
	tensor *t = tensor_zeros(TENSOR_INTS(1), SHAREABLE(TENSOR_F32));

	for (int i = 0; i < 3000; i++)
		if (tensor_send_timeout(p->out, t, 0, 10000 * MS) < 0)
			break;
	tensor_release(t);
	return NULL;
}

static void poll_sees_every_message(void **state)
{
	struct pair p =
		ring_pair_open(SOCK_SEQPACKET, TENSOR_CHANNEL_OPTIONS(.ring = true, .records = 4));
	struct pollfd fd = { .fd = tensor_channel_fd(p.in), .events = POLLIN };
	pthread_t thread;

	assert_true(fd.fd == p.ends[1]);
	fcntl(p.ends[1], F_SETFL, O_NONBLOCK);
	assert_int_equal(pthread_create(&thread, NULL, send_values, &p), 0);
	for (int got = 0; got < 3000;) {
		tensor *t = tensor_recv(p.in);

		if (t) {
			got++;
			tensor_release(t);
			continue;
		}
		assert_int_equal(tensor_last_error()->code, EAGAIN);
		assert_int_equal(poll(&fd, 1, 10000), 1);
	}
	pthread_join(thread, NULL);
	pair_close(&p);
}

static void wait_returns_the_channel_with_a_message(void **state)
{
	struct pair p[3] = { ring_pair_open(SOCK_STREAM, RINGS),
			     ring_pair_open(SOCK_SEQPACKET, RINGS), pair_open(SOCK_STREAM) };
	tensor_channel *in[3] = { p[0].in, p[1].in, p[2].in };

	tensor_scope {
		tensor *t = F32_SHARED(4);
		int seen = 0;

		ring_pair_agree(&p[0], t);
		ring_pair_agree(&p[1], t);
		assert_int_equal(tensor_channel_wait(in, 3, 5 * MS), -ETIMEDOUT);
		for (int i = 0; i < 30; i++) {
			assert_done(tensor_send(p[i % 3].out, t, 0));
			assert_int_equal(tensor_channel_wait(in, 3, 1000 * MS), i % 3);
			ok(tensor_recv_timeout(in[i % 3], 0));
		}
		/* All are ready: none of them is returned twice in a row. */
		for (int i = 0; i < 3; i++)
			assert_done(tensor_send(p[i].out, t, 0));
		for (int i = 0; i < 3; i++)
			seen |= 1 << tensor_channel_wait(in, 3, 0);
		assert_int_equal(seen, 7);
		for (int i = 0; i < 3; i++)
			ok(tensor_recv_timeout(in[i], 0));
		assert_int_equal(tensor_channel_wait(in, 3, 0), -ETIMEDOUT);
		assert_int_equal(tensor_channel_wait(in, 0, 0), -EINVAL);
	}
	for (int i = 0; i < 3; i++)
		pair_close(&p[i]);
}

/* ---- threads and forks ---- */

static void threads_share_a_channel(void **state)
{
	struct pair p =
		ring_pair_open(SOCK_STREAM, TENSOR_CHANNEL_OPTIONS(.ring = true, .records = 8));
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, send_values, &p), 0);
	for (int i = 0; i < 9000; i++)
		tensor_release(ok(tensor_recv(p.in)));
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_fails(tensor_recv_timeout(p.in, 0), ETIMEDOUT, "in time");
	pair_close(&p);
}

/* One of the two processes goes on with a channel after fork(). */
static void child_goes_on_with_the_channel(void **state)
{
	struct pair p = ring_pair_open(SOCK_STREAM, RINGS);

	tensor_scope {
		tensor *t = F32_SHARED(4), *u;
		int status;
		pid_t pid;

		ring_pair_agree(&p, t);
		pid = fork();
		if (!pid) {
			u = tensor_recv_timeout(p.in, 5000 * MS);
			_exit(!u || tensor_send(p.in, u, 0) < 0);
		}
		assert_done(tensor_send(p.out, t, 0));
		ok(tensor_recv_timeout(p.out, 5000 * MS));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	pair_close(&p);
}

static void options_out_of_range_are_refused(void **state)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_fails(tensor_channel_open_with(ends[0], TENSOR_CHANNEL_OPTIONS(.records = -1)),
		     EINVAL, "records");
	assert_fails(tensor_channel_open_with(ends[0], TENSOR_CHANNEL_OPTIONS(.records = 4097)),
		     EINVAL, "records");
	assert_fails(tensor_channel_open_with(ends[0], TENSOR_CHANNEL_OPTIONS(.spin_ns = -2)),
		     EINVAL, "spin");
	assert_int_equal(tensor_channel_fd(NULL), -EINVAL);
	close(ends[0]);
	close(ends[1]);
}

struct flood {
	tensor_channel *ch;
	tensor *t;
	int n;
	long switches;
};

static void *flood(void *arg)
{
	struct flood *f = arg;
	struct rusage usage;

	for (int i = 0; i < f->n; i++)
		assert_done(tensor_send(f->ch, f->t, 0));
	getrusage(RUSAGE_THREAD, &usage);
	f->switches = usage.ru_nvcsw;
	return NULL;
}

/* A receiver slower than the sender: the sender sleeps until half of the ring is free, not for each record. */
static void full_ring_wakes_its_sender_seldom(void **state)
{
	struct pair p =
		ring_pair_open(SOCK_SEQPACKET, TENSOR_CHANNEL_OPTIONS(.ring = true, .spin_ns = -1));
	struct flood f = { p.out, F32_SHARED(4), 400, 0 };
	void *page = NULL;
	pthread_t thread;
	size_t bytes;

	for (int i = 0; i < 4; i++) {
		assert_done(tensor_send(p.out, f.t, 0));
		tensor_release(ok(tensor_recv(p.in)));
	}
	assert_int_equal(ring_mappings(&page, &bytes), 2); /* of one ring */
	assert_int_equal(pthread_create(&thread, NULL, flood, &f), 0);
	for (int i = 0; i < f.n; i++) {
		if (i < f.n / 2)
			usleep(200);
		else if (i % 64 == 0)
			usleep(20000); /* then takes all of it at once */
		tensor_release(ok(tensor_recv_timeout(p.in, 10000 * MS)));
	}
	pthread_join(thread, NULL);
	assert_true(f.switches < f.n / 3);
	assert_true(atomic_load(&((struct ring_page *)page)->room) > 0); /* the receiver woke it */
	tensor_release(f.t);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_directions_get_a_ring),
		cmocka_unit_test(peer_without_rings_keeps_the_socket),
		cmocka_unit_test(invalid_offer_keeps_the_socket),
		cmocka_unit_test(messages_by_both_ways_keep_their_order),
		cmocka_unit_test(message_behind_many_bells_arrives),
		cmocka_unit_test(without_memory_for_a_ring_the_channel_keeps_the_socket),
		cmocka_unit_test(receive_and_send_time_out),
		cmocka_unit_test(half_a_message_blocks_no_receive),
		cmocka_unit_test(poll_sees_every_message),
		cmocka_unit_test(wait_returns_the_channel_with_a_message),
		cmocka_unit_test(threads_share_a_channel),
		cmocka_unit_test(child_goes_on_with_the_channel),
		cmocka_unit_test(options_out_of_range_are_refused),
		cmocka_unit_test(full_ring_wakes_its_sender_seldom),
	};

	alarm(120);
	return cmocka_run_group_tests_name("channel_ring", tests, NULL, NULL);
}
