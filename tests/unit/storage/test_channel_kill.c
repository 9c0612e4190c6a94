// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A process with a channel is killed at a random moment while it sends, receives or waits. The other one gets what was
 * sent completely and then EPIPE; nothing hangs and nothing is left behind. KILLS sets another number than that of
 * `make test`, SEED another seed. So for a pool: when its receiver is dead, all its buffers are free.
 */
#include "rings.h"

#include <sys/time.h>
#include <time.h>

enum { ECHO, FLOOD, DRAIN, ROLES };

static void kill_self(int signal)
{
	kill(getpid(), SIGKILL);
}

/* The child: works until the signal. */
static void work(tensor_channel *ch, int role)
{
	tensor *mine = tensor_full(TENSOR_INTS(4), TENSOR_SCALAR(7), SHAREABLE(TENSOR_F32)), *t;

	for (unsigned i = 0;; i++) {
		t = role == FLOOD ? NULL : tensor_recv(ch);
		if (role == FLOOD && i % 8 == 0) {
			tensor *fresh = tensor_full(TENSOR_INTS(4), TENSOR_SCALAR(7),
						    SHAREABLE(TENSOR_F32));

			tensor_send(ch, fresh, 0);
			tensor_release(fresh);
		} else if (role != DRAIN) {
			tensor_send(ch, t ? t : mine, 0);
		}
		tensor_release(t);
	}
}

static pid_t start(int ends[2], int role, const struct tensor_channel_options *o, long us)
{
	struct itimerval timer = { .it_value = { .tv_usec = us } };
	pid_t pid = fork();

	if (pid)
		return pid;
	close(ends[0]);
	signal(SIGALRM, kill_self);
	setitimer(ITIMER_REAL, &timer, NULL);
	work(tensor_channel_open_with(ends[1], o), role);
	_exit(1);
}

static void assert_sevens(tensor *t)
{
	const float *v = tensor_data(t);

	for (int i = 0; i < 4; i++)
		assert_true(v[i] == 7);
}

/* Until the child is dead. Returns the code of the error. */
static int use(tensor_channel *ch, int role, tensor *mine, tensor **last)
{
	for (unsigned i = 0;; i++) {
		tensor *t = NULL;
		int err = 0;

		if (role == DRAIN && i % 8 == 0) {
			t = ok(tensor_full(TENSOR_INTS(4), TENSOR_SCALAR(7),
					   SHAREABLE(TENSOR_F32)));
			err = tensor_send_timeout(ch, t, 0, 10000 * MS);
			tensor_release(t);
		} else if (role != FLOOD) {
			err = tensor_send_timeout(ch, mine, 0, 10000 * MS);
		}
		if (err)
			return -err;
		if (role == DRAIN)
			continue;
		t = tensor_recv_timeout(ch, 10000 * MS);
		if (!t)
			return tensor_last_error()->code;
		assert_sevens(t);
		tensor_release(*last);
		*last = t;
	}
}

static void one_kill(unsigned round, tensor *mine, const struct tensor_channel_options *o)
{
	int ends[2], role = (int)(round % ROLES), status;
	tensor *last = NULL;
	tensor_channel *ch;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, round & 1 ? SOCK_STREAM : SOCK_SEQPACKET, 0, ends), 0);
	pid = start(ends, role, o, 1 + random() % 2000);
	assert_true(pid > 0);
	close(ends[1]);
	ch = tensor_channel_open_with(ends[0], o);
	assert_int_equal(use(ch, role, mine, &last), EPIPE);
	assert_true(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
		    WTERMSIG(status) == SIGKILL);
	tensor_channel_close(ch);
	close(ends[0]);
	if (last) /* valid without its sender */
		assert_sevens(last);
	tensor_release(last);
}

static void death_at_any_moment_ends_the_channel(void **state)
{
	long kills = count_of("KILLS", 300);
	tensor *mine = ok(tensor_full(TENSOR_INTS(4), TENSOR_SCALAR(7), SHAREABLE(TENSOR_F32)));
	int fds = 0, buffers = 0;

	for (long i = 0; i < kills; i++) {
		if (i == 12) {
			fds = count_fds();
			buffers = count_buffers();
		}
		/* With and without spinning, and with a ring that is soon full. */
		one_kill((unsigned)i, mine,
			 TENSOR_CHANNEL_OPTIONS(.ring = true, .records = i % 5 ? 4 : 64,
						.spin_ns = i % 4 ? -1 : 20000));
	}
	assert_fds(fds);
	assert_true(count_buffers() <= buffers);
	assert_int_equal(ring_mappings(NULL, NULL), 0);
	tensor_release(mine);
}

/* ---- pools ---- */

/* Sends three loans in each message, all with its number in their elements. 0 or -errno. */
static int send_three(tensor_channel *ch, tensor_pool *pool, uint64_t number)
{
	int err = 0;

	tensor_scope {
		tensor *t[3];

		for (int i = 0; i < 3; i++)
			t[i] = tensor_fill_(ok(tensor_pool_loan(pool, 10000 * MS)),
					    TENSOR_SCALAR(number));
		err = tensor_send_many(ch, t, 3, number, 0, 10000 * MS);
	}
	return err;
}

/* Receives a message and looks at it and at the one before it. 0 or -errno. */
static int recv_three(tensor_channel *ch, tensor *last[3], uint64_t *number)
{
	tensor *t[3];
	uint64_t before = *number;
	int n = tensor_recv_many(ch, t, 3, number, 10000 * MS);

	if (n < 0)
		return n;
	assert_int_equal(n, 3);
	for (int i = 0; i < 3; i++) {
		assert_true(((float *)tensor_data(t[i]))[99] == *number);
		assert_true(!last[i] || ((float *)tensor_data(last[i]))[99] == before);
		tensor_release(last[i]);
		last[i] = t[i];
	}
	return 0;
}

/* Until the peer is dead, or for ever. */
static void work_with_pool(tensor_channel *ch, bool sends)
{
	tensor_pool *pool = tensor_pool_open(TENSOR_SHAPE(100), TENSOR_POOL_OPTIONS(.n = 7));
	uint64_t number = 0, n = 0;
	tensor *last[3] = { NULL };
	int err = 0;

	while (!err)
		err = sends ? send_three(ch, pool, ++n) : recv_three(ch, last, &number);
	assert_int_equal(err, -EPIPE);
	if (sends) {
		for (int i = 0; i < 10000 && tensor_pool_available(pool) < 7; i++)
			usleep(1000);
		assert_int_equal(tensor_pool_available(pool), 7);
	}
	for (int i = 0; i < 3; i++) {
		assert_true(!last[i] || ((float *)tensor_data(last[i]))[99] == number);
		tensor_release(last[i]);
	}
	tensor_pool_close(pool);
}

static void death_at_any_moment_frees_the_pool(void **state)
{
	long kills = count_of("KILLS", 300) / 2;
	int fds = 0, buffers = 0, status;

	for (long i = 0; i < kills; i++) {
		const struct tensor_channel_options o = { .ring = i & 2,
							  .records = i & 4 ? 2 : 16 };
		struct itimerval timer = { .it_value = { .tv_usec = 1 + random() % 3000 } };
		int ends[2], type = i & 1 ? SOCK_STREAM : SOCK_SEQPACKET;
		tensor_channel *ch;
		pid_t pid;

		if (i == 16) {
			tensor_cache_trim();
			fds = count_fds();
			buffers = count_buffers();
		}
		assert_int_equal(socketpair(AF_UNIX, type, 0, ends), 0);
		pid = fork();
		if (!pid) {
			close(ends[0]);
			signal(SIGALRM, kill_self);
			setitimer(ITIMER_REAL, &timer, NULL);
			work_with_pool(tensor_channel_open_with(ends[1], &o), i & 8);
			_exit(1);
		}
		close(ends[1]);
		ch = tensor_channel_open_with(ends[0], &o);
		work_with_pool(ch, !(i & 8));
		assert_true(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
			    WTERMSIG(status) == SIGKILL);
		tensor_channel_close(ch);
		close(ends[0]);
	}
	tensor_cache_trim();
	assert_fds(fds);
	assert_true(count_buffers() <= buffers);
	assert_int_equal(ring_mappings(NULL, NULL) + lease_mappings(NULL, NULL), 0);
}

/* The time from the death of the peer to the end of a receive that waits. */
static void death_ends_a_wait_at_once(void **state)
{
	for (int i = 0; i < 5; i++) {
		int ends[2];
		tensor_channel *ch;
		double begin;
		pid_t pid;

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
		pid = start(ends, DRAIN, TENSOR_CHANNEL_OPTIONS(.ring = true), 50000);
		close(ends[1]);
		ch = tensor_channel_open_with(ends[0], TENSOR_CHANNEL_OPTIONS(.ring = true));
		begin = seconds_of(CLOCK_MONOTONIC);
		assert_fails(tensor_recv(ch), EPIPE, "gone");
		assert_true(seconds_of(CLOCK_MONOTONIC) - begin < 0.05 + 0.2);
		tensor_channel_close(ch);
		close(ends[0]);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(death_at_any_moment_ends_the_channel),
		cmocka_unit_test(death_at_any_moment_frees_the_pool),
		cmocka_unit_test(death_ends_a_wait_at_once),
	};

	srandom((unsigned)count_of("SEED", 1));
	return cmocka_run_group_tests_name("channel_kill", tests, NULL, NULL);
}
