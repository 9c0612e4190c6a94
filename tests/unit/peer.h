/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A second process for the tests of sharing: the test program is executed again with a role and one
 * end of a socket pair. main() calls peer_main(), which runs the role and does not return if the
 * program is a peer.
 */
#ifndef TESTS_PEER_H
#define TESTS_PEER_H

#include "check.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs the body in a child; its exit status, or -signal. */
#define IN_CHILD(body)                                                          \
	({                                                                      \
		pid_t pid_ = fork();                                            \
		int status_;                                                    \
                                                                                \
		if (!pid_) {                                                    \
			body;                                                   \
			_exit(0);                                               \
		}                                                               \
		waitpid(pid_, &status_, 0);                                     \
		WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_); \
	})

struct peer_role {
	const char *name;
	int (*run)(tensor_channel *ch); /* returns the exit status */
};

struct peer {
	pid_t pid;
	int socket;
	tensor_channel *ch;
};

static inline struct peer peer_start(const char *role, int type)
{
	struct peer p;
	char number[16];
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends), 0);
	p.pid = fork();
	assert_true(p.pid >= 0);
	if (!p.pid) {
		fcntl(ends[1], F_SETFD, 0);
		snprintf(number, sizeof(number), "%d", ends[1]);
		execl("/proc/self/exe", "peer", "--peer", role, number, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	p.socket = ends[0];
	p.ch = tensor_channel_open(p.socket);
	assert_non_null(p.ch);
	return p;
}

/* Waits for the peer. Returns its exit status, or -signal. */
static inline int peer_end(struct peer *p)
{
	int status;

	tensor_channel_close(p->ch);
	close(p->socket);
	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline void peer_main(int argc, char **argv, const struct peer_role *roles)
{
	if (argc != 4 || strcmp(argv[1], "--peer"))
		return;
	for (; roles->name; roles++) {
		if (!strcmp(roles->name, argv[2])) {
			tensor_channel *ch = tensor_channel_open(atoi(argv[3]));
			int status = roles->run(ch);

			tensor_channel_close(ch);
			exit(status);
		}
	}
	exit(126);
}

/* The number of open file descriptors of this process. */
static inline int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/*
 * Waits for the number of descriptors: a thread closes the refused ones after tensor_recv()
 * returns.
 */
#define assert_fds(n)                                                   \
	do {                                                            \
		for (int i_ = 0; i_ < 1000 && count_fds() != (n); i_++) \
			usleep(1000);                                   \
		assert_int_equal(count_fds(), n);                       \
	} while (0)

/* The number of mapped buffers in this process. */
static inline int count_buffers(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	while (fgets(line, sizeof(line), f))
		n += strstr(line, "memfd:tensor") || strstr(line, "tensor:") ||
		     strstr(line, "/dev/tensor");
	fclose(f);
	return n;
}

/* Both ends of a socket pair in this process. */
struct pair {
	int ends[2];
	tensor_channel *out, *in;
};

static inline struct pair pair_open(int type)
{
	struct pair p;

	assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, p.ends), 0);
	p.out = tensor_channel_open(p.ends[0]);
	p.in = tensor_channel_open(p.ends[1]);
	assert_true(p.out && p.in);
	return p;
}

static inline void pair_close(struct pair *p)
{
	tensor_channel_close(p->out);
	tensor_channel_close(p->in);
	close(p->ends[0]);
	close(p->ends[1]);
}

static inline tensor *pass(struct pair *p, tensor *t)
{
	assert_done(tensor_send(p->out, ok(t), 0));
	return ok(tensor_recv(p->in));
}

#endif
