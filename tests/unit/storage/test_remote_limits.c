// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* What peers of channels between machines can take of this process: memory, descriptors, and time. */
#include "remote_hostile.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* ---- memory and descriptors ---- */

static void peers_that_were_not_accepted_get_no_memory(void **state)
{
	tensor_channel_listener *l = far_listen(TENSOR_REMOTE_OPTIONS(.max_bytes = 1 << 20));
	struct frame_tensor t = floats_of(1 << 18);
	struct hostile h[3];
	int granted = 0;

	for (int i = 0; i < 3; i++) {
		connect_to(&h[i], l);
		greet(&h[i]);
		assert_non_null(await(&h[i], FRAME_HELLO));
		send_frame(&h[i], frame(FRAME_MESSAGE, 1, 0, 1, t.bytes), &t, sizeof(t));
	}
	for (int i = 0; i < 3; i++)
		granted += await_for(&h[i], FRAME_GRANT, 100) != NULL;
	assert_int_equal(granted, 0);
	h[0].victim = tensor_channel_accept(l, LONG_NS);
	assert_non_null(h[0].victim);
	/* The first that has connected. */
	assert_non_null(await(&h[0], FRAME_GRANT));
	assert_null(await_for(&h[1], FRAME_GRANT, 20));
	for (int i = 0; i < 3; i++)
		h[i].transport->close(h[i].c, 0);
	tensor_channel_close(h[0].victim);
	tensor_channel_listener_close(l);
}

/* Sends n messages of 64 tensors, each of so many floats, and lets them arrive. */
static void send_messages(struct hostile *h, int n, int64_t floats)
{
	struct frame_tensor t[64];
	uint64_t total = 64 * 4 * (uint64_t)floats, with = total <= FRAME_SHORT ? total : 0;
	char *data = calloc(1, sizeof(t) + with);

	for (int i = 0; i < 64; i++)
		t[i] = floats_of(floats);
	memcpy(data, t, sizeof(t));
	for (int i = 1; i <= n; i++)
		send_frame(h, frame(FRAME_MESSAGE, (uint64_t)i, (uint64_t)i, 64, total), data,
			   sizeof(t) + with);
	free(data);
	await_for(h, FRAME_BYE, 100);
}

static void short_messages_that_wait_have_no_descriptors(void **state)
{
	tensor *list[64];
	struct hostile h;
	uint64_t tag;
	int fds;

	begin(&h, NULL);
	fds = count_fds();
	send_messages(&h, 20, 16);
	assert_int_equal(count_fds(), fds);
	for (uint64_t i = 1; i <= 20; i++)
		tensor_scope {
			assert_int_equal(tensor_recv_many(h.victim, list, 64, &tag, LONG_NS), 64);
			assert_int_equal(tag, i);
		}
	end(&h);
}

static bool receives_list(tensor_channel *ch)
{
	tensor *list[64];
	bool done = false;

	tensor_scope
		done = tensor_recv_many(ch, list, 64, NULL, LONG_NS) == 64;
	return done;
}

/* It has no descriptors when it receives, and some later. */
static int starve(tensor_channel *ch)
{
	struct pollfd p = { .fd = tensor_channel_fd(ch), .events = POLLIN };
	int spare[70];

	if (poll(&p, 1, 5000) != 1)
		return 1;
	for (int i = 0; i < 70; i++)
		spare[i] = dup(0);
	if (setrlimit(RLIMIT_NOFILE,
		      &(struct rlimit){ (rlim_t)spare[69] + 1, (rlim_t)spare[69] + 1 }))
		return 2;
	if (receives_list(ch) || tensor_last_error()->code != EMFILE)
		return 3;
	for (int i = 0; i < 70; i++)
		close(spare[i]);
	return receives_list(ch) && receives_list(ch) ? 0 : 4;
}

static void message_without_descriptors_is_received_later(void **state)
{
	struct far_peer p = far_start("starve", NULL);

	tensor_scope {
		tensor *t[64];

		for (int i = 0; i < 64; i++)
			t[i] = far_bytes(100);
		for (int i = 0; i < 2; i++)
			assert_done(tensor_send_many(p.ch, t, 64, 0, 0, LONG_NS));
		assert_fails(tensor_recv(p.ch), EPIPE, "gone");
	}
	assert_int_equal(far_end(&p), 0);
}

/* It has a few descriptors left: UCX ends a program that runs out of them in the middle of a connection. */
static int connect_with_few(tensor_channel *ch)
{
	tensor_channel_listener *l = far_listen(NULL);
	tensor_channel *other;
	int spare[60];
	rlim_t n;

	for (int i = 0; i < 60; i++)
		spare[i] = dup(0);
	n = (rlim_t)spare[59] + 1;
	for (int i = 0; i < 20; i++)
		close(spare[i]);
	if (setrlimit(RLIMIT_NOFILE, &(struct rlimit){ n, n }))
		return 1;
	other = tensor_channel_connect(tensor_channel_listener_address(l), NULL, LONG_NS);
	if (other || tensor_last_error()->code != EMFILE)
		return 2;
	tensor_channel_listener_close(l);
	return tensor_recv(ch) || tensor_last_error()->code != EPIPE ? 3 : 0;
}

static void connection_needs_descriptors(void **state)
{
	struct far_peer p = far_start("few", NULL);

	assert_int_equal(far_end(&p), 0);
}

static int flood_of_lists(tensor_channel *ch)
{
	tensor *t[64];

	for (int i = 0; i < 64; i++)
		t[i] = far_bytes(1000);
	while (tensor_send_many(ch, t, 64, 0, 0, LONG_NS) == 0)
		;
	return 0;
}

/* As many as the 64 messages that may wait with one tensor each. */
static void long_messages_that_wait_have_few_descriptors(void **state)
{
	struct far_peer p = far_start("lists", NULL);
	tensor *list[64];
	int fds = count_fds();

	usleep(100000);
	assert_true(count_fds() <= fds + 64);
	for (int i = 0; i < 5; i++)
		tensor_scope
			assert_int_equal(tensor_recv_many(p.ch, list, 64, NULL, LONG_NS), 64);
	kill(p.pid, SIGKILL);
	assert_int_equal(far_end(&p), -SIGKILL);
}

/* ---- time ---- */

struct answering {
	struct hostile *h;
	atomic_bool stop;
};

/* It says that it lives, and nothing else. */
static void *ping(void *arg)
{
	struct answering *a = arg;

	while (!atomic_load(&a->stop)) {
		send_frame(a->h, frame(FRAME_PING, 0, 0, 0, 0), NULL, 0);
		for (int i = 0; i < 20; i++) {
			a->h->transport->step(a->h->c);
			usleep(1000);
		}
	}
	return NULL;
}

static void peer_that_answers_no_abort_ends_the_channel(void **state)
{
	struct answering a = { .stop = false };
	struct hostile h;
	double since;
	pthread_t t;

	begin(&h, TENSOR_REMOTE_OPTIONS(.timeout_ns = 200 * MS));
	a.h = &h;
	assert_int_equal(pthread_create(&t, NULL, ping, &a), 0);
	alarm(10);
	since = seconds_of(CLOCK_MONOTONIC);
	tensor_scope
		assert_fails(tensor_send_timeout(h.victim, far_bytes(1 << 20), 0, 50 * MS),
			     ECONNRESET, "the end of a message in 200 ms");
	assert_true(far_ms_since(since) < 250 + 1000);
	alarm(0);
	atomic_store(&a.stop, true);
	pthread_join(t, NULL);
	end(&h);
}

/* The end of a tensor calls a function of the program, which may use channels as any other. */
static void use_channels(void *data, void *context)
{
	tensor_channel_listener_close(context);
	free(data);
}

/* Its tensor is released when the network is done with it, after the send. */
static void *send_blob(void *arg)
{
	struct hostile *h = arg;
	bool sent = false;

	tensor_scope {
		tensor *t = tensor_from_blob(calloc(1, 1 << 20), TENSOR_INTS(1 << 20),
					     TENSOR_NO_INTS, TENSOR_OPTIONS(.dtype = TENSOR_U8),
					     use_channels, far_listen(NULL));

		sent = tensor_send_timeout(h->victim, t, 0, LONG_NS) == 0;
	}
	return sent ? h : NULL;
}

static void tensors_are_released_without_locks(void **state)
{
	struct hostile h;
	pthread_t t;
	void *sent;

	alarm(10);
	begin(&h, TENSOR_REMOTE_OPTIONS(.timeout_ns = 1000 * MS));
	assert_int_equal(pthread_create(&t, NULL, send_blob, &h), 0);
	assert_non_null(await(&h, FRAME_MESSAGE));
	send_frame(&h, frame(FRAME_GRANT, 1, 0, 0, 0), NULL, 0);
	usleep(50000);
	/* It lies, and the network here is not done with the elements. */
	send_frame(&h, frame(FRAME_DONE, 1, 0, 0, 0), NULL, 0);
	pthread_join(t, &sent);
	assert_ptr_equal(sent, &h);
	assert_fails(tensor_recv_timeout(h.victim, LONG_NS), ECONNRESET, "1000 ms");
	usleep(50000);
	end(&h);
	alarm(0);
}

#define PEERS 10

/* Says where it listens, and ends with channels to peers that are silent. */
static int leave_many(tensor_channel *ch)
{
	tensor_channel_listener *l = far_listen(NULL);
	const char *address = tensor_channel_listener_address(l);
	tensor *t = tensor_zeros(TENSOR_INTS(128), TENSOR_OPTIONS(.dtype = TENSOR_U8));

	strcpy(tensor_mutable_data(t), address);
	tensor_send(ch, t, 0);
	for (int i = 0; i < PEERS; i++)
		if (!tensor_channel_accept(l, LONG_NS))
			return 1;
	tensor_release(tensor_recv(ch));
	return 0;
}

/* All its peers together have one time to answer. */
static void program_with_silent_peers_ends_in_time(void **state)
{
	struct far_peer p = far_start("leave", NULL);
	struct hostile h[PEERS];
	double since;

	tensor_scope {
		tensor *t = far_recv(p.ch);

		for (int i = 0; i < PEERS; i++) {
			connect_to_address(&h[i], tensor_data(t));
			greet(&h[i]);
			assert_non_null(await(&h[i], FRAME_HELLO));
		}
		since = seconds_of(CLOCK_MONOTONIC);
		assert_done(tensor_send(p.ch, t, 0));
	}
	assert_int_equal(far_end(&p), 0);
	assert_true(far_ms_since(since) < 200 + 900);
	for (int i = 0; i < PEERS; i++)
		h[i].transport->close(h[i].c, 0);
}

/* ---- forks ---- */

/* The state of UCX is the parent's also if its only use has failed. */
static void child_of_a_use_that_failed_is_refused(void **state)
{
	char address[64];
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0), status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid) {
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		close(fd);
		return;
	}
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)&a, n) || listen(fd, 1) ||
	    getsockname(fd, (struct sockaddr *)&a, &n))
		_exit(2);
	snprintf(address, sizeof(address), "ucx://127.0.0.1:%d", ntohs(a.sin_port));
	if (tensor_channel_listen(address, NULL))
		_exit(3);
	if (tensor_last_error()->code == ENOTSUP)
		_exit(0);
	pid = fork();
	if (!pid) {
		tensor_channel *ch = tensor_channel_connect(address, NULL, 1000 * MS);

		_exit(ch || tensor_last_error()->code != EBUSY ? 4 : 0);
	}
	_exit(waitpid(pid, &status, 0) == pid ? WEXITSTATUS(status) : 5);
}

int main(int argc, char **argv)
{
	static const struct far_role roles[] = { { "lists", flood_of_lists },
						 { "leave", leave_many },
						 { "few", connect_with_few },
						 { "starve", starve },
						 { NULL, NULL } };
	const struct CMUnitTest tests[] = {
		/* First: before this process uses UCX. */
		cmocka_unit_test(child_of_a_use_that_failed_is_refused),
		cmocka_unit_test(peers_that_were_not_accepted_get_no_memory),
		cmocka_unit_test(short_messages_that_wait_have_no_descriptors),
		cmocka_unit_test(connection_needs_descriptors),
		cmocka_unit_test(long_messages_that_wait_have_few_descriptors),
		cmocka_unit_test(message_without_descriptors_is_received_later),
		cmocka_unit_test(peer_that_answers_no_abort_ends_the_channel),
		cmocka_unit_test(tensors_are_released_without_locks),
		cmocka_unit_test(program_with_silent_peers_ends_in_time),
	};

	far_main(argc, argv, roles);
	return cmocka_run_group_tests_name("remote_limits", tests, NULL, NULL);
}
