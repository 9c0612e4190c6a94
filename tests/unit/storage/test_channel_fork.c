// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Forks of a process while another thread of it uses a channel. */
#include "pools.h"

#include <pthread.h>
#include <stdatomic.h>

struct receiver {
	tensor_channel *ch;
	atomic_int got;
};

/* Receives until the peer is gone. */
static void *receive_all(void *arg)
{
	struct receiver *r = arg;
	tensor *t[TENSOR_MESSAGE_MAX];
	int n;

	while ((n = tensor_recv_many(r->ch, t, TENSOR_MESSAGE_MAX, NULL, -1)) >= 0) {
		for (int i = 0; i < n; i++)
			tensor_release(t[i]);
		atomic_fetch_add(&r->got, 1);
	}
	return NULL;
}

static uint64_t live(void)
{
	struct tensor_live_counts n;

	tensor_live_counts(&n);
	return n.tensors;
}

/* The thread has two parts of a message and waits for more. The child has neither the thread nor its lock. */
static void child_can_close_a_channel_in_a_receive(void **state)
{
	for (int kind = 0; kind < 2; kind++) {
		struct pair p = pair_of(kind);
		struct receiver r = { .ch = p.in };
		int small = 1, sent = 0, before;
		tensor *all[TENSOR_MESSAGE_MAX], *t;
		pthread_t thread;

		t = ok(tensor_ones(TENSOR_INTS(4), SHAREABLE(TENSOR_F32)));
		for (int i = 0; i < TENSOR_MESSAGE_MAX; i++)
			all[i] = t;
		setsockopt(p.ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
		while (!tensor_send_many(p.out, all, TENSOR_MESSAGE_MAX, 0, 0, 0))
			sent++;
		assert_int_equal(sent, 0); /* a part of it is in the socket */
		before = (int)live();
		assert_int_equal(pthread_create(&thread, NULL, receive_all, &r), 0);
		for (int i = 0; i < 1000 && live() == (uint64_t)before; i++)
			usleep(1000);
		usleep(50000);
		assert_true(live() > (uint64_t)before);
		assert_int_equal(IN_CHILD({
					 alarm(10);
					 if (tensor_recv_timeout(p.in, 1000 * MS) ||
					     tensor_last_error()->code != EBUSY)
						 _exit(1);
					 if (tensor_send(p.in, t, 0) != -EBUSY ||
					     tensor_send_many(p.in, &t, 1, 0, 0, 0) != -EBUSY)
						 _exit(2);
					 if (tensor_channel_wait(&p.in, 1, 0) != -EBUSY)
						 _exit(3);
					 tensor_channel_close(p.in);
					 if (live() != (uint64_t)before)
						 _exit(4);
					 /* The other end was idle: it is usable until one of both processes uses it. */
					 tensor_channel_close(p.out);
				 }),
				 0);
		/* The parent goes on. */
		assert_done(tensor_send_many(p.out, all, 3, 0, 0, 10000 * MS));
		shutdown(p.ends[0], SHUT_RDWR);
		pthread_join(thread, NULL);
		assert_int_equal(r.got, 1);
		tensor_release(t);
		pair_close(&p);
	}
}

/* Forks at any moment of many receives: each child can close its copies. */
static void forks_during_receives_leave_whole_state(void **state)
{
	long forks = count_of("FORKS", 100);

	for (int kind = 0; kind < 4; kind += 3) {
		struct pair p = pair_of(kind);
		struct receiver r = { .ch = p.in };
		tensor *all[4];
		pthread_t thread;
		int sent = 0;

		assert_int_equal(pthread_create(&thread, NULL, receive_all, &r), 0);
		for (long i = 0; i < forks; i++) {
			for (int k = 0; k < 20; k++, sent++)
				tensor_scope {
					for (int j = 0; j < 4; j++)
						all[j] = ok(tensor_ones(TENSOR_INTS(4),
									SHAREABLE(TENSOR_F32)));
					assert_done(tensor_send_many(p.out, all, k % 5, 0, 0,
								     10000 * MS));
				}
			assert_int_equal(IN_CHILD({
						 alarm(20);
						 tensor_channel_close(p.in);
						 tensor_channel_close(p.out);
					 }),
					 0);
		}
		while (atomic_load(&r.got) < sent)
			usleep(1000);
		shutdown(p.ends[0], SHUT_RDWR);
		pthread_join(thread, NULL);
		pair_close(&p);
	}
}

static tensor_channel_group *asked;
static atomic_bool asked_enough;

static void *ask_group(void *ctx)
{
	(void)ctx;
	while (!atomic_load(&asked_enough))
		tensor_channel_group_count(asked);
	return NULL;
}

/* Calls in the child fail or are done; none waits for a thread that the child does not have. */
static void child_of_a_thread_in_a_group_does_not_hang(void **state)
{
	pthread_t thread;
	int pair[2], status;
	tensor_channel *ch;

	(void)state;
	assert_done(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	ch = tensor_channel_open(pair[0]);
	asked = tensor_channel_group_open(NULL);
	assert_done(tensor_channel_group_add(asked, ch));
	assert_done(pthread_create(&thread, NULL, ask_group, NULL));
	for (int i = 0; i < 100; i++) {
		pid_t child = fork();

		if (!child) {
			int n;

			alarm(20);
			n = tensor_channel_group_count(asked);
			tensor_channel_group_close(asked);
			_exit(n != 1 && n != -EBUSY);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	atomic_store(&asked_enough, true);
	pthread_join(thread, NULL);
	assert_int_equal(tensor_channel_group_count(asked), 1);
	tensor_channel_group_close(asked);
	tensor_channel_close(ch);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(child_can_close_a_channel_in_a_receive),
		cmocka_unit_test(forks_during_receives_leave_whole_state),
		cmocka_unit_test(child_of_a_thread_in_a_group_does_not_hang),
	};

	alarm(120);
	return cmocka_run_group_tests_name("channel_fork", tests, NULL, NULL);
}
