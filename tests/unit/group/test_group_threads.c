// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Several threads of a rank in calls of one group that wait, the peers of their messages, and limits. */
#include "ranks.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/un.h>

#define MS INT64_C(1000000)

enum { MANY = 4, LONG = 1000000 }; /* a message of LONG elements goes in several pieces */

struct message {
	tensor_group *group;
	tensor *t;
	int peer;
	bool sends;
	int err;
	pthread_t thread;
};

/* That of all its elements; -1 if they differ, or on failure. */
static double value_of(tensor *t)
{
	double least = 0, greatest = 0;

	tensor_scope {
		if (tensor_item(tensor_min(t), &least) < 0 ||
		    tensor_item(tensor_max(t), &greatest) < 0)
			return -1;
	}
	return least == greatest ? least : -1;
}

static void *call(void *arg)
{
	struct message *m = arg;

	m->err = m->sends ? tensor_group_send(m->group, m->t, m->peer, NULL) :
			    tensor_group_recv(m->group, m->t, m->peer, NULL);
	return NULL;
}

static void begin(struct message *m, tensor_group *g, int peer, bool sends, double value)
{
	*m = (struct message){ .group = g, .peer = peer, .sends = sends };
	m->t = tensor_full(TENSOR_INTS(LONG), S(value), F32);
	NEED(!pthread_create(&m->thread, NULL, call, m));
	usleep(20000); /* the call waits now */
}

/* Returns the value of the elements. */
static double end(struct message *m, tensor_group *g)
{
	double value;

	pthread_join(m->thread, NULL);
	NEED(!m->err);
	value = value_of(m->t);
	NEED(value >= 0);
	tensor_release(m->t);
	return value;
}

static void collective_while_a_thread_receives(tensor_group *g, void *arg)
{
	struct message m;

	if (tensor_group_rank(g)) {
		begin(&m, g, 0, false, 0);
		NEED(!tensor_group_barrier(g, NULL));
		NEED(end(&m, g) == 7);
	} else {
		NEED(!tensor_group_barrier(g, NULL));
		begin(&m, g, 1, true, 7);
		NEED(end(&m, g) == 7);
	}
}

static void collective_does_not_wait_for_a_receive_that_waits(void **state)
{
	run_ranks_for(2, 10000 * MS, collective_while_a_thread_receives, NULL);
}

/* Rank arg's messages are of several threads, in any order, the other one's of one. */
static void in_threads(tensor_group *g, void *arg)
{
	bool sends = !tensor_group_rank(g), has_threads = tensor_group_rank(g) == *(int *)arg;
	struct message m[MANY];
	unsigned seen = 0;

	if (!has_threads)
		usleep(30000 * MANY);
	for (int i = 0; i < MANY; i++) {
		begin(&m[i], g, sends, sends, sends ? i + 1 : 0);
		if (!has_threads)
			seen |= 1u << (int)end(&m[i], g);
	}
	for (int i = 0; i < MANY && has_threads; i++)
		seen |= 1u << (int)end(&m[i], g);
	NEED(seen == (2u << MANY) - 2);
}

static void messages_of_several_threads_are_not_mixed(void **state)
{
	for (int rank = 0; rank < 2; rank++)
		run_ranks_for(2, 20000 * MS, in_threads, &rank);
}

static void two_of_three(tensor_group *g, void *arg)
{
	struct message m;
	int rank = tensor_group_rank(g);

	if (rank == 2)
		return;
	begin(&m, g, !rank, !rank, 7); /* the send begins after rank 2 has closed the group */
	NEED(end(&m, g) == 7);
}

static void message_does_not_need_a_third_rank(void **state)
{
	run_ranks_for(3, 10000 * MS, two_of_three, NULL);
}

/* ---- sockets ---- */

static void after_a_stranger(tensor_group *g, void *arg)
{
	struct message m;
	int *go = arg;

	if (tensor_group_rank(g)) {
		NEED(write(go[1], "", 1) == 1);
		begin(&m, g, 0, false, 0);
	} else {
		usleep(500000);
		begin(&m, g, 1, true, 7);
	}
	NEED(end(&m, g) == 7);
}

/* Connects to the socket of rank 1 for messages, and says that it is rank 0. The number of sockets. */
static int impersonate(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const int32_t rank = 0;
	FILE *f = fopen("/proc/net/unix", "r");
	char line[256];
	int n = 0;

	while (f && fgets(line, sizeof(line), f)) {
		char *name = strstr(line, "@tensor-group/0/#");
		size_t length = name ? strcspn(name, "\n") : 0;
		int fd;

		if (!name || name[length - 1] != '1' || name[length - 2] != '/')
			continue;
		fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		memcpy(to.sun_path + 1, name + 1, length - 1);
		n += !connect(fd, (struct sockaddr *)&to, sizeof(sa_family_t) + (unsigned)length) &&
		     send(fd, &rank, sizeof(rank), MSG_NOSIGNAL) == sizeof(rank);
	}
	return n;
}

static void process_of_another_user_is_no_rank(void **state)
{
	const char *address = ranks_address();
	int go[2], strangers[2];
	char byte;
	pid_t pids[2], stranger;

	if (getuid() || ranks_are_mpi())
		skip();
	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(strangers), 0);
	for (int i = 0; i < 2; i++)
		pids[i] = rank_start(address, i, 2, 5000 * MS, after_a_stranger, go);
	assert_int_equal(read(go[0], &byte, 1), 1);
	stranger = fork();
	if (!stranger) {
		if (setgid(65534) || setuid(65534) || !impersonate())
			_exit(1);
		alarm(60);
		pause(); /* with open sockets */
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(rank_end(pids[i]), 0);
	kill(stranger, SIGKILL);
	assert_int_equal(rank_end(stranger), -SIGKILL);
}

static void opens_again(tensor_group *g, const char *address, int rank)
{
	for (int i = 0; i < 200; i++) {
		g = tensor_group_open("local", TENSOR_GROUP_OPTIONS(.rank = rank, .size = 3,
								    .address = address,
								    .timeout_ns = 20000 * MS));
		NEED(g);
		tensor_group_close(g);
	}
	_exit(0);
}

static void address_can_be_used_again_at_once(void **state)
{
	const char *address = ranks_address();
	pid_t pids[3];

	for (int i = 0; i < 3; i++) {
		pids[i] = fork();
		if (!pids[i])
			opens_again(NULL, address, i);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(rank_end(pids[i]), 0);
}

/* Every length is one that a socket can have, or an error that says how long it may be. */
static void *join_first(void *address)
{
	return tensor_group_open("local",
				 TENSOR_GROUP_OPTIONS(.rank = 0, .size = 2, .address = address,
						      .timeout_ns = 20000 * MS));
}

/* A child of another thread, forked while this rank waits for the others, lives longer. */
static void fork_during_open(const char *address)
{
	tensor_group *g = NULL;
	pthread_t thread;
	pid_t child = -1;

	alarm(60);
	for (int i = 0; i < 2; i++) {
		pthread_create(&thread, NULL, join_first, (void *)address);
		usleep(100000);
		child = i ? child : fork();
		if (!child) {
			sleep(6);
			_exit(0);
		}
		pthread_join(thread, (void **)&g);
		NEED(g);
		tensor_group_close(g);
	}
	kill(child, SIGKILL);
	_exit(0);
}

static void child_of_an_open_does_not_keep_the_address(void **state)
{
	const char *address = ranks_address();
	pid_t first, second;

	NOT_UNDER_TSAN(THREADS_AFTER_FORK);
	first = fork();
	if (!first)
		fork_during_open(address);
	second = fork();
	if (!second) {
		tensor_group *g = NULL;

		for (int i = 0; i < 2; i++) {
			usleep(300000);
			g = tensor_group_open("local",
					      TENSOR_GROUP_OPTIONS(.rank = 1, .size = 2,
								   .address = address,
								   .timeout_ns = 4000 * MS));
			NEED(g);
			tensor_group_close(g);
		}
		_exit(0);
	}
	assert_int_equal(rank_end(first), 0);
	assert_int_equal(rank_end(second), 0);
}

static void long_address_is_an_error_with_the_limit(void **state)
{
	char address[100] = "";

	for (int n = 1; n < 100; n++) {
		const struct tensor_error *e = tensor_last_error();

		memset(address, 'a', (size_t)n);
		assert_null(tensor_group_open("local",
					      TENSOR_GROUP_OPTIONS(.size = 2, .address = address,
								   .timeout_ns = 1)));
		if (n < 80)
			assert_int_equal(e->code, ETIMEDOUT);
		else
			assert_non_null(strstr(e->text, "more than 79 bytes"));
	}
}

static void few_descriptors_are_an_error_with_their_number(void **state)
{
	const char *address = ranks_address();
	pid_t pids[4];

	for (int i = 0; i < 4; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		alarm(60);
		if (i == 1)
			setrlimit(RLIMIT_NOFILE, &(struct rlimit){ (rlim_t)count_fds(), 1024 });
		tensor_group_open("local",
				  TENSOR_GROUP_OPTIONS(.rank = i, .size = 4, .address = address,
						       .timeout_ns = 5000 * MS));
		_exit(i == 1 && !(tensor_last_error()->code == EMFILE &&
				  strstr(tensor_last_error()->text, "no 5 descriptors")));
	}
	for (int i = 0; i < 4; i++)
		assert_int_equal(rank_end(pids[i]), 0);
}

static void product_that_overflows(tensor_group *g, void *arg)
{
	const int64_t sizes[] = { INT64_C(1) << 62, 0 };

	tensor_scope {
		tensor *part = tensor_zeros((tensor_ints){ sizes, 2 }, F32);

		NEED_ERROR(tensor_group_all_gather(g, tensor_zeros(TENSOR_INTS(0, 0), F32), part,
						   NULL),
			   EINVAL, "times the size");
	}
}

static void sizes_of_empty_tensors_do_not_overflow(void **state)
{
	run_ranks_for(4, 5000 * MS, product_that_overflows, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collective_does_not_wait_for_a_receive_that_waits),
		cmocka_unit_test(messages_of_several_threads_are_not_mixed),
		cmocka_unit_test(message_does_not_need_a_third_rank),
		cmocka_unit_test(process_of_another_user_is_no_rank),
		cmocka_unit_test(address_can_be_used_again_at_once),
		cmocka_unit_test(child_of_an_open_does_not_keep_the_address),
		cmocka_unit_test(long_address_is_an_error_with_the_limit),
		cmocka_unit_test(few_descriptors_are_an_error_with_their_number),
		cmocka_unit_test(sizes_of_empty_tensors_do_not_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
