/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A write beyond RLIMIT_FSIZE fails with EFBIG and raises SIGXFSZ, whose default action ends the
 * process. Between file_limit_begin() and file_limit_end() the calling thread blocks the signal and
 * discards the one that the write raised; a signal that was pending before stays pending.
 */
#ifndef TENSOR_FILE_LIMIT_H
#define TENSOR_FILE_LIMIT_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct file_limit {
	sigset_t mask;
	bool pending;
};

static inline void file_limit_set(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGXFSZ);
}

static inline struct file_limit file_limit_begin(void)
{
	struct file_limit before;
	sigset_t signal, pending;

	file_limit_set(&signal);
	pthread_sigmask(SIG_BLOCK, &signal, &before.mask);
	sigpending(&pending);
	before.pending = sigismember(&pending, SIGXFSZ) == 1;
	return before;
}

/* failed: whether the call failed. Preserves errno. */
static inline void file_limit_end(const struct file_limit *before, bool failed)
{
	static const struct timespec at_once;
	int err = errno;
	sigset_t signal;

	file_limit_set(&signal);
	if (failed && err == EFBIG && !before->pending)
		sigtimedwait(&signal, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &before->mask, NULL);
	errno = err;
}

#endif
