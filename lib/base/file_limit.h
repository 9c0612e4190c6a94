/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A write beyond RLIMIT_FSIZE fails with EFBIG and raises SIGXFSZ, one to a pipe without a reader
 * fails with EPIPE and raises SIGPIPE. Their default action ends the process. Between
 * file_limit_begin() and file_limit_end() the calling thread blocks both signals and discards the one
 * that the write raised; a signal that was pending before stays pending.
 */
#ifndef TENSOR_FILE_LIMIT_H
#define TENSOR_FILE_LIMIT_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct file_limit {
	sigset_t mask, pending;
};

static inline void file_limit_set(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGXFSZ);
	sigaddset(set, SIGPIPE);
}

static inline struct file_limit file_limit_begin(void)
{
	struct file_limit before;
	sigset_t signals;

	file_limit_set(&signals);
	pthread_sigmask(SIG_BLOCK, &signals, &before.mask);
	sigpending(&before.pending);
	return before;
}

/* failed: whether the call failed. Preserves errno. */
static inline void file_limit_end(const struct file_limit *before, bool failed)
{
	static const struct timespec at_once;
	int err = errno, raised = err == EFBIG ? SIGXFSZ : err == EPIPE ? SIGPIPE : 0;
	sigset_t signal;

	if (failed && raised && !sigismember(&before->pending, raised)) {
		sigemptyset(&signal);
		sigaddset(&signal, raised);
		sigtimedwait(&signal, NULL, &at_once);
	}
	pthread_sigmask(SIG_SETMASK, &before->mask, NULL);
	errno = err;
}

#endif
