/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Ranks of process groups for tests: children of the test program that open a group and run a function. With
 * TEST_GROUP=mpi in the environment the program itself is a rank, started by mpirun, and each function runs once, whatever
 * numbers of ranks the test asks for. Rank 0 alone prints results; a rank that fails ends all. With TEST_GROUP=nccl the
 * groups are of "nccl", and ranks_device is the device of the rank; there are at most RANKS_NCCL of them.
 */
#ifndef TESTS_RANKS_H
#define TESTS_RANKS_H

#include "peer.h"

#include <tensor/group.h>
#include <time.h>

#define RANKS_MAX  40
#define RANKS_NCCL 4

/* Of the rank's group. */
static tensor_device ranks_device;

/* Within a rank: asserts would jump to the program that forked. */
#define NEED(condition)                                                                         \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "# rank %d of %d: %s:%d: %s; last error: %s\n",         \
				tensor_group_rank(g), tensor_group_size(g), __FILE__, __LINE__, \
				#condition, tensor_last_error()->text);                         \
			_exit(1);                                                               \
		}                                                                               \
	} while (0)

/* The call fails with this error and a text that contains the words. */
#define NEED_ERROR(call, code_, words)                                    \
	do {                                                              \
		NEED((call) == -(code_));                                 \
		NEED(strstr(tensor_last_error()->text, (words)) != NULL); \
	} while (0)

typedef void (*rank_fn)(tensor_group *g, void *arg);

static inline bool ranks_are_of(const char *engine)
{
	const char *value = getenv("TEST_GROUP");

	return value && !strcmp(value, engine);
}

static inline bool ranks_are_mpi(void)
{
	return ranks_are_of("mpi");
}

static inline bool ranks_are_nccl(void)
{
	return ranks_are_of("nccl");
}

/* Elements of a large tensor: the emulation of a device is slow. */
static inline int64_t ranks_most(int64_t n)
{
	return ranks_are_nccl() && n > 600 ? 600 : n;
}

__attribute__((constructor)) static void ranks_print_once(void)
{
	const char *open_mpi = getenv("OMPI_COMM_WORLD_RANK"), *mpich = getenv("PMI_RANK");
	const char *rank = open_mpi ? open_mpi : mpich;

	if (ranks_are_mpi() && rank && strcmp(rank, "0") != 0 && !freopen("/dev/null", "w", stdout))
		_exit(1);
}

static inline void ranks_run_here(int64_t timeout_ns, rank_fn fn, void *arg)
{
	static rank_fn last;
	static void *last_arg;
	tensor_group *g;

	if (fn == last && arg == last_arg)
		return;
	last = fn;
	last_arg = arg;
	alarm(120);
	g = tensor_group_open("mpi", TENSOR_GROUP_OPTIONS(.timeout_ns = timeout_ns));
	NEED(g);
	fn(g, arg);
	tensor_group_close(g);
	alarm(0);
}

static inline const char *ranks_address(void)
{
	static char text[64];
	static int n;

	snprintf(text, sizeof(text), "test-%d-%d", getpid(), n++);
	return text;
}

/* A rank of a group; what it does without the group is its own. */
static inline pid_t rank_start(const char *address, int rank, int size, int64_t timeout_ns,
			       rank_fn fn, void *arg)
{
	pid_t pid = fork();
	tensor_group *g;

	assert_true(pid >= 0);
	if (pid)
		return pid;
	alarm(120);
	g = tensor_group_open(ranks_are_nccl() ? "nccl" : "local",
			      TENSOR_GROUP_OPTIONS(.rank = rank, .size = size, .address = address,
						   .timeout_ns = timeout_ns));
	NEED(g);
	ranks_device = tensor_group_device(g);
	fn(g, arg);
	tensor_group_close(g);
	_exit(0);
}

/* The exit status of a process, or -signal. */
static inline int rank_end(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline void run_ranks_for(int size, int64_t timeout_ns, rank_fn fn, void *arg)
{
	const char *address = ranks_address();
	pid_t pids[RANKS_MAX];

	if (ranks_are_mpi()) {
		ranks_run_here(timeout_ns, fn, arg);
		return;
	}
	/* Each rank of an emulated device has threads and memory of its own. */
	if (ranks_are_nccl() && size > RANKS_NCCL)
		size = RANKS_NCCL;
	for (int i = 0; i < size; i++)
		pids[i] = rank_start(address, i, size, timeout_ns, fn, arg);
	for (int i = 0; i < size; i++)
		assert_int_equal(rank_end(pids[i]), 0);
}

#define run_ranks(size, fn, arg) run_ranks_for(size, INT64_C(60000000000), fn, arg)

#endif
