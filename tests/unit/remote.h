/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Channels between machines, for tests: two ends in this process, or one in another process that executes the test program
 * again with a role. They use TCP over the loopback device.
 */
#ifndef TESTS_REMOTE_H
#define TESTS_REMOTE_H

#include "peer.h"

#include <tensor/remote.h>

#ifdef __SANITIZE_ADDRESS__
/* UCX does not free all that it had for a connection that failed. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libucs.so\nleak:libuct.so\nleak:libucp.so\n";
}
#endif

#define MS	INT64_C(1000000)
#define LONG_NS (20000 * MS) /* a test that waits so long has failed */

struct far_role {
	const char *name;
	int (*run)(tensor_channel *ch); /* returns the exit status */
};

struct far_peer {
	pid_t pid;
	tensor_channel *ch;
};

/* Two ends in this process; one thread of the library serves both. */
struct far_pair {
	tensor_channel *a, *b;
};

/* Runs the role of `program --far ROLE ADDRESS`, and does not return then. Without a channel the status is the errno. */
static inline void far_main(int argc, char **argv, const struct far_role *roles)
{
	setenv("UCX_TLS", "tcp", 1);
	setenv("UCX_NET_DEVICES", "lo", 1);
#ifdef __SANITIZE_THREAD__
	/* UCX replaces madvise(), which libc calls in a thread that has ended for ThreadSanitizer. */
	setenv("UCX_MEM_MMAP_HOOK_MODE", "none", 1);
#endif
	if (argc != 4 || strcmp(argv[1], "--far"))
		return;
	for (; roles->name; roles++)
		if (!strcmp(roles->name, argv[2])) {
			tensor_channel *ch = tensor_channel_connect(argv[3], NULL, LONG_NS);
			int status = ch ? roles->run(ch) : tensor_last_error()->code;

			tensor_channel_close(ch);
			exit(status);
		}
	exit(126);
}

/* Skips the test where the plugin was not built. */
static inline tensor_channel_listener *far_listen(const struct tensor_remote_options *o)
{
	tensor_channel_listener *l = tensor_channel_listen("ucx://127.0.0.1:0", o);

	if (!l && tensor_last_error()->code == ENOTSUP) {
		print_message("skipped: %s\n", tensor_last_error()->text);
		skip();
	}
	assert_true(check_done_(l ? 0 : -1));
	return l;
}

static inline pid_t far_exec(const char *role, const char *address)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	execl("/proc/self/exe", "peer", "--far", role, address, (char *)NULL);
	_exit(127);
}

/* A peer in a process of its own, whose options are the defaults. */
static inline struct far_peer far_start(const char *role, const struct tensor_remote_options *o)
{
	tensor_channel_listener *l = far_listen(o);
	struct far_peer p = { .pid = far_exec(role, tensor_channel_listener_address(l)) };

	p.ch = tensor_channel_accept(l, LONG_NS);
	assert_true(check_done_(p.ch ? 0 : -1));
	tensor_channel_listener_close(l);
	return p;
}

/* The exit status of the peer, or -signal. */
static inline int far_wait(struct far_peer *p)
{
	int status;

	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline int far_end(struct far_peer *p)
{
	tensor_channel_close(p->ch);
	return far_wait(p);
}

static inline struct far_pair far_pair_open(const struct tensor_remote_options *a,
					    const struct tensor_remote_options *b)
{
	tensor_channel_listener *l = far_listen(b);
	struct far_pair p;

	p.a = tensor_channel_connect(tensor_channel_listener_address(l), a, LONG_NS);
	assert_true(check_done_(p.a ? 0 : -1));
	p.b = tensor_channel_accept(l, LONG_NS);
	assert_true(check_done_(p.b ? 0 : -1));
	tensor_channel_listener_close(l);
	return p;
}

static inline void far_pair_close(struct far_pair *p)
{
	tensor_channel_close(p->a);
	tensor_channel_close(p->b);
}

static inline tensor *far_recv(tensor_channel *ch)
{
	return ok(tensor_recv_timeout(ch, LONG_NS));
}

/* What b receives of t. */
static inline tensor *far_pass(const struct far_pair *p, tensor *t)
{
	assert_done(tensor_send_timeout(p->a, ok(t), 0, LONG_NS));
	return far_recv(p->b);
}

/* Numbers that differ from each other, as bytes of u8. */
static inline tensor *far_bytes(int64_t n)
{
	tensor *t = ok(tensor_empty(TENSOR_INTS(n), TENSOR_OPTIONS(.dtype = TENSOR_U8)));
	unsigned char *p = tensor_mutable_data(t);

	for (int64_t i = 0; i < n; i++)
		p[i] = (unsigned char)(i * 7 + (i >> 8) * 13 + (i >> 16));
	return t;
}

/* The time since an earlier one, in ms. */
static inline double far_ms_since(double begin)
{
	return (seconds_of(CLOCK_MONOTONIC) - begin) * 1e3;
}

#endif
