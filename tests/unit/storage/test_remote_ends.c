// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The end of channels between machines: peers that are killed, stopped or silent at any moment, closes in every order, the end
 * of the program, forks. KILLS sets another number of kills than that of `make test`, SEED another seed.
 */
#include "remote.h"

#include <poll.h>

#define SHORT_NS (400 * MS) /* after which a silent peer is gone */

/* ---- peers that die ---- */

static int flood(tensor_channel *ch)
{
	tensor *large = far_bytes(3 << 20), *small = far_bytes(100);

	while (tensor_send(ch, large, 0) == 0 && tensor_send(ch, small, 0) == 0)
		;
	return 0;
}

static int drain(tensor_channel *ch)
{
	tensor *t;

	while ((t = tensor_recv(ch)))
		tensor_release(t);
	return 0;
}

/* Works with the peer until it is dead; the code of the error. */
static int use(tensor_channel *ch, bool receives, tensor *large)
{
	for (;;) {
		tensor *t = receives ? tensor_recv_timeout(ch, LONG_NS) : NULL;

		if (receives ? !t : tensor_send_timeout(ch, large, 0, LONG_NS) < 0)
			return tensor_last_error()->code;
		if (t)
			assert_true(tensor_numel(t) == 100 || tensor_numel(t) == 3 << 20);
		tensor_release(t);
	}
}

static void death_at_any_moment_ends_the_channel(void **state)
{
	long kills = getenv("KILLS") ? atol(getenv("KILLS")) : 10;
	tensor *large = far_bytes(2 << 20);
	double worst = 0;
	int fds = 0;

	srandom(getenv("SEED") ? (unsigned)atol(getenv("SEED")) : 1);
	for (long i = 0; i < kills; i++) {
		struct far_peer p = far_start(i % 2 ? "flood" : "drain", NULL);
		double begin;
		int code;
		pid_t killer = fork();

		if (!killer) {
			usleep((useconds_t)(random() % 60000 * (1 + i / 100)));
			kill(p.pid, SIGKILL);
			_exit(0);
		}
		code = use(p.ch, i % 2, large);
		assert_true(code == ECONNRESET || code == EPIPE);
		waitpid(killer, NULL, 0);
		begin = seconds_of(CLOCK_MONOTONIC);
		assert_int_equal(far_end(&p), -SIGKILL);
		worst = fmax(worst, far_ms_since(begin));
		tensor_cache_trim();
		if (i == 3)
			fds = count_fds();
	}
	assert_true(worst < 2000);
	assert_fds(fds);
	tensor_release(large);
}

static void stopped_peer_is_gone_after_the_timeout(void **state)
{
	static const char *const roles[] = { "drain", "flood" };

	for (int i = 0; i < 2; i++) {
		struct far_peer p =
			far_start(roles[i], TENSOR_REMOTE_OPTIONS(.timeout_ns = SHORT_NS));
		tensor *large = far_bytes(2 << 20);
		double begin, ms;

		usleep(20000);
		kill(p.pid, SIGSTOP);
		begin = seconds_of(CLOCK_MONOTONIC);
		assert_int_equal(use(p.ch, i, large), ECONNRESET);
		ms = far_ms_since(begin);
		assert_contains(tensor_last_error()->text, "nothing came from the peer for 400 ms");
		assert_in_range((int)ms, 200, 400 + 100 + 1500); /* and what a busy machine takes */
		assert_fails(tensor_recv(p.ch), ECONNRESET, "400 ms");
		assert_fails(tensor_send(p.ch, large, 0), ECONNRESET, "400 ms");
		tensor_release(large);
		kill(p.pid, SIGKILL);
		assert_int_equal(far_end(&p), -SIGKILL);
	}
}

/* It computes and is in no call of the library. */
static int busy(tensor_channel *ch)
{
	double begin = seconds_of(CLOCK_MONOTONIC);

	while (far_ms_since(begin) < 1300)
		;
	return drain(ch);
}

static void peer_that_computes_is_alive(void **state)
{
	struct far_peer p = far_start("busy", TENSOR_REMOTE_OPTIONS(.timeout_ns = 2 * SHORT_NS));

	tensor_scope {
		assert_fails(tensor_recv_timeout(p.ch, 1000 * MS), ETIMEDOUT, "no message");
		assert_done(tensor_send_timeout(p.ch, far_bytes(1 << 20), 0, LONG_NS));
	}
	assert_int_equal(far_end(&p), 0);
}

static void peer_that_does_not_greet_is_no_channel(void **state)
{
	tensor_channel_listener *l = far_listen(TENSOR_REMOTE_OPTIONS(.timeout_ns = 100 * MS));
	const char *port = strrchr(tensor_channel_listener_address(l), ':') + 1;
	char command[128];
	double begin;

	/* TCP without a word of UCX. */
	snprintf(command, sizeof(command),
		 "exec 3<>/dev/tcp/127.0.0.1/%s; head -c 100000 /dev/urandom >&3; sleep 0.2", port);
	begin = seconds_of(CLOCK_MONOTONIC);
	IN_CHILD(execl("/bin/bash", "bash", "-c", command, (char *)NULL));
	assert_fails(tensor_channel_accept(l, 200 * MS), ETIMEDOUT, "in time");
	assert_true(far_ms_since(begin) < 5000);
	tensor_channel_listener_close(l);
}

/* ---- closes ---- */

static void what_was_sent_arrives_after_the_close(void **state)
{
	struct far_pair p = far_pair_open(NULL, NULL);
	struct pollfd fd = { .fd = tensor_channel_fd(p.b), .events = POLLIN };

	tensor_scope {
		for (int i = 0; i < 30; i++)
			assert_done(tensor_send(p.a, far_bytes(i), 0));
		assert_done(tensor_send(p.a, far_bytes(2 << 20), 0));
		tensor_channel_close(p.a);
		for (int i = 0; i < 30; i++)
			assert_int_equal(tensor_numel(far_recv(p.b)), i);
		assert_int_equal(tensor_numel(far_recv(p.b)), 2 << 20);
		assert_fails(tensor_recv(p.b), EPIPE, "the peer is gone");
		assert_int_equal(poll(&fd, 1, 0), 1);
		assert_fails(tensor_send(p.b, far_bytes(1), 0), EPIPE, "the peer is gone");
	}
	tensor_channel_close(p.b);
}

static void channels_close_in_every_order(void **state)
{
	for (int order = 0; order < 6; order++) {
		tensor_channel_listener *l = far_listen(NULL);
		tensor_channel *a =
			tensor_channel_connect(tensor_channel_listener_address(l), NULL, LONG_NS);
		tensor_channel *b = order == 5 ? NULL : tensor_channel_accept(l, LONG_NS);
		tensor *got = NULL;

		assert_true(a && (b || order == 5));
		tensor_scope
			assert_done(tensor_send(a, far_bytes(order % 2 ? 9 : 300000), 0));
		if (order == 4)
			got = far_recv(b);
		if (order < 2)
			tensor_channel_listener_close(l);
		tensor_channel_close(order % 2 ? a : b);
		if (order >= 2)
			tensor_channel_listener_close(l);
		tensor_channel_close(order % 2 ? b : a);
		if (got)
			assert_same(got, far_bytes(300000));
		tensor_release(got);
	}
}

static int exits(tensor_channel *ch)
{
	for (int i = 0; i < 20; i++)
		if (tensor_send(ch, far_bytes(1000 + i), 0) < 0)
			return 1;
	exit(7); /* without a close */
}

static void what_was_sent_arrives_after_the_end_of_the_program(void **state)
{
	struct far_peer p = far_start("exits", NULL);

	assert_int_equal(far_wait(&p), 7);
	tensor_scope
		for (int i = 0; i < 20; i++)
			assert_int_equal(tensor_numel(far_recv(p.ch)), 1000 + i);
	assert_fails(tensor_recv(p.ch), EPIPE, "the peer is gone");
	tensor_channel_close(p.ch);
}

static void no_fd_is_left_behind(void **state)
{
	struct far_pair p = far_pair_open(NULL, NULL);
	int before;

	far_pair_close(&p);
	before = count_fds();
	for (int i = 0; i < 3; i++) {
		p = far_pair_open(NULL, NULL);
		tensor_scope
			tensor_numel(far_pass(&p, far_bytes(100000)));
		far_pair_close(&p);
	}
	tensor_cache_trim();
	assert_true(count_fds() <= before);
}

/* ---- forks ---- */

static int in_child(const struct far_pair *p, tensor_channel_listener *l)
{
	tensor *t = far_bytes(10);

	if (tensor_send(p->a, t, 0) != -EBUSY || tensor_recv(p->b) ||
	    tensor_last_error()->code != EBUSY || tensor_channel_accept(l, 0) ||
	    tensor_last_error()->code != EBUSY)
		return 1;
	if (tensor_channel_connect(tensor_channel_listener_address(l), NULL, 0) ||
	    tensor_last_error()->code != EBUSY ||
	    tensor_channel_listen("ucx://127.0.0.1:0", NULL) || tensor_last_error()->code != EBUSY)
		return 2;
	tensor_channel_close(p->a);
	tensor_channel_close(p->b);
	tensor_channel_listener_close(l);
	return 0;
}

static void child_has_no_channel_and_the_parent_goes_on(void **state)
{
	struct far_pair p = far_pair_open(NULL, NULL);
	tensor_channel_listener *l = far_listen(NULL);

	tensor_scope {
		tensor *sent = far_bytes(200000), *got = far_pass(&p, sent);

		assert_int_equal(IN_CHILD(_exit(in_child(&p, l))), 0);
#ifndef __SANITIZE_ADDRESS__ /* which finds leaks of threads that the child does not have */
		/* Also by exit(), with tensors of the channel. */
		assert_int_equal(IN_CHILD({
					 tensor_release(tensor_keep(got));
					 exit(in_child(&p, l));
				 }),
				 0);
#endif
		assert_same(far_pass(&p, sent), got);
	}
	tensor_channel_listener_close(l);
	far_pair_close(&p);
}

int main(int argc, char **argv)
{
	static const struct far_role roles[] = { { "flood", flood },
						 { "drain", drain },
						 { "busy", busy },
						 { "exits", exits },
						 { NULL, NULL } };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(death_at_any_moment_ends_the_channel),
		cmocka_unit_test(stopped_peer_is_gone_after_the_timeout),
		cmocka_unit_test(peer_that_computes_is_alive),
		cmocka_unit_test(peer_that_does_not_greet_is_no_channel),
		cmocka_unit_test(what_was_sent_arrives_after_the_close),
		cmocka_unit_test(channels_close_in_every_order),
		cmocka_unit_test(what_was_sent_arrives_after_the_end_of_the_program),
		cmocka_unit_test(no_fd_is_left_behind),
		cmocka_unit_test(child_has_no_channel_and_the_parent_goes_on),
	};

	far_main(argc, argv, roles);
	return cmocka_run_group_tests_name("remote_ends", tests, NULL, NULL);
}
