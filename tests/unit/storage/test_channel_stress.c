// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Eight loaders and four trainers, each loader with a channel to each trainer, a pool and a group. One of both is killed in
 * between. At the end nothing is left: buffers are back in their pools, descriptors and mappings are those of the start.
 * STRESS_SECONDS: how long.
 */
#include "pools.h"

enum { LOADERS = 8, TRAINERS = 4, BUFFERS = 6, HELD = 5 };

#define PATIENCE (20000 * MS)

static int sockets[LOADERS][TRAINERS][2]; /* 0: of the loader */
static double stop_at;

static void close_others(int loader, int trainer)
{
	for (int l = 0; l < LOADERS; l++)
		for (int t = 0; t < TRAINERS; t++) {
			if (l != loader)
				close(sockets[l][t][0]);
			if (t != trainer)
				close(sockets[l][t][1]);
		}
}

/* ---- loaders ---- */

/* Sends a batch: two loans and a tensor of its own, all with the value that the number of the message says. */
static int send_batch(tensor_channel_group *g, tensor_pool *pool, uint64_t number)
{
	int n = -ETIMEDOUT;

	tensor_scope {
		tensor *batch[3] = { tensor_pool_loan(pool, PATIENCE),
				     tensor_pool_loan(pool, PATIENCE),
				     tensor_zeros(TENSOR_INTS(4), F32) };
		int used = number % 3 + 1;

		for (int i = 0; i < used; i++)
			fill(batch[i], (double)(number % 1000));
		if (number % 7 == 0)
			batch[0] = ok(tensor_narrow(batch[0], 0, 1, 2)); /* a view */
		n = tensor_channel_group_send(g, batch, used, number,
					      number % 2 ? TENSOR_SEND_READONLY : 0, PATIENCE);
	}
	return n;
}

static int wait_for_all(tensor_pool *pool)
{
	for (int i = 0; i < 20000 && tensor_pool_available(pool) < BUFFERS; i++)
		usleep(1000);
	return tensor_pool_available(pool) == BUFFERS ? 0 : 3;
}

static int work_as_loader(int loader)
{
	tensor_channel_group *g = tensor_channel_group_open(
		TENSOR_CHANNEL_GROUP_OPTIONS(.kind = TENSOR_CHANNEL_GROUP_NEXT, .window = 2));
	tensor_pool *pool = POOL(.n = BUFFERS);
	tensor_channel *ch[TRAINERS];
	uint64_t number = 0, lost;
	int res = 0;

	for (int t = 0; t < TRAINERS; t++) {
		ch[t] = tensor_channel_open_with(sockets[loader][t][0], loader % 2 ? RINGS : NULL);
		assert_done(tensor_channel_group_add(g, ch[t]));
	}
	for (; !res && seconds_of(CLOCK_MONOTONIC) < stop_at; number++)
		res = send_batch(g, pool, number) == 1 ? 0 : 1;
	while (!res && tensor_channel_group_lost(g, &lost) == 1)
		res = send_batch(g, pool, lost) == 1 ? 0 : 2;
	if (!res)
		res = wait_for_all(pool);
	for (int t = 0; t < TRAINERS; t++) {
		tensor_channel_group_remove(g, ch[t]);
		tensor_channel_close(ch[t]);
		close(sockets[loader][t][0]);
	}
	tensor_channel_group_close(g);
	tensor_pool_close(pool);
	tensor_cache_trim();
	fprintf(stderr, "# loader %d: %llu batches\n", loader, (unsigned long long)number);
	return res ? res : count_buffers() ? 4 : 0;
}

/* ---- trainers ---- */

struct trainer {
	tensor *held[HELD][3];
	double values[HELD];
	int n[HELD], at;
};

static int check_and_release(struct trainer *k)
{
	int res = 0;

	for (int i = 0; i < k->n[k->at]; i++) {
		res |= mean(k->held[k->at][i]) != k->values[k->at];
		tensor_release(k->held[k->at][i]);
	}
	k->n[k->at] = 0;
	return res;
}

/* Takes a message in place of the one that it has held longest. 1: a value was changed; -errno. */
static int take_batch(struct trainer *k, tensor_channel *ch)
{
	uint64_t number;
	int n, res = check_and_release(k);

	n = tensor_recv_many(ch, k->held[k->at], 3, &number, PATIENCE);
	if (n < 0)
		return n;
	k->n[k->at] = n;
	k->values[k->at] = (double)(number % 1000);
	k->at = (k->at + 1) % HELD;
	return res;
}

static int work_as_trainer(int trainer)
{
	tensor_channel *ch[LOADERS];
	struct trainer k = { 0 };
	int living = LOADERS, res = 0, sockets_of[LOADERS], i;

	for (int l = 0; l < LOADERS; l++) {
		sockets_of[l] = sockets[l][trainer][1];
		ch[l] = tensor_channel_open_with(sockets_of[l], RINGS);
	}
	while (living && !res) {
		i = tensor_channel_wait(ch, living, 1000 * MS);
		/* Loaders wait for their buffers at the end. */
		if (i == -ETIMEDOUT) {
			for (int n = 0; n < HELD; n++, k.at = (k.at + 1) % HELD)
				res |= check_and_release(&k);
			continue;
		}
		res = i < 0 ? 5 : take_batch(&k, ch[i]);
		if (res == -EPIPE) {
			tensor_channel_close(ch[i]);
			close(sockets_of[i]);
			ch[i] = ch[--living];
			sockets_of[i] = sockets_of[living];
			res = 0;
		}
	}
	for (int n = 0; n < HELD; n++, k.at = (k.at + 1) % HELD)
		res |= check_and_release(&k);
	tensor_cache_trim();
	return res ? 10 - res : count_buffers() ? 4 : 0;
}

/* ---- the test ---- */

static pid_t start(int loader, int trainer)
{
	pid_t pid = fork();

	if (!pid) {
		int before = count_fds(), res;

		close_others(loader, trainer);
		res = loader >= 0 ? work_as_loader(loader) : work_as_trainer(trainer);
		/* All sockets are closed. The device provider keeps its device open. */
		before -= 2 * LOADERS * TRAINERS;
		if (!res && count_fds() > before + !strcmp(tensor_provider_name(), "device"))
			res = 6;
		_exit(res);
	}
	return pid;
}

static int files_in(const char *folder)
{
	DIR *dir = opendir(folder);
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

static void nothing_is_lost_or_left(void **state)
{
	double seconds = (double)count_of("STRESS_SECONDS", 2);
	pid_t pids[LOADERS + TRAINERS], killed[2];
	int shm = files_in("/dev/shm"), fds = count_fds(), status;

	stop_at = seconds_of(CLOCK_MONOTONIC) + seconds;
	alarm((unsigned)seconds + 100);
	for (int l = 0; l < LOADERS; l++)
		for (int t = 0; t < TRAINERS; t++)
			assert_int_equal(socketpair(AF_UNIX,
						    (l + t) % 2 ? SOCK_STREAM : SOCK_SEQPACKET, 0,
						    sockets[l][t]),
					 0);
	for (int i = 0; i < LOADERS + TRAINERS; i++)
		pids[i] = start(i < LOADERS ? i : -1, i < LOADERS ? -1 : i - LOADERS);
	close_others(-1, -1);
	usleep((useconds_t)(seconds * 5e5));
	killed[0] = pids[2];
	killed[1] = pids[LOADERS + 1];
	for (int i = 0; i < 2; i++)
		kill(killed[i], SIGKILL);
	for (int i = 0; i < LOADERS + TRAINERS; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		if (pids[i] == killed[0] || pids[i] == killed[1])
			assert_true(WIFSIGNALED(status));
		else
			assert_int_equal(status, 0);
	}
	assert_int_equal(count_fds(), fds);
	assert_int_equal(files_in("/dev/shm"), shm);
	assert_int_equal(count_buffers(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(nothing_is_lost_or_left) };

	return cmocka_run_group_tests_name("channel_stress", tests, NULL, NULL);
}
