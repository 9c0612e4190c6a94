/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Calls of functions of the program. */
#ifndef TENSOR_AUTOGRAD_CALLBACK_H
#define TENSOR_AUTOGRAD_CALLBACK_H

#include "base/thread.h"

struct pack_hooks;

/* State of the thread that a function of the program must not change for its caller. */
struct callback {
	int code; /* of an earlier error */
	struct thread_modes modes;
	struct pack_hooks *hooks, *paused; /* see pack.h */
};

/*
 * Around the call of a function that returns a negative error number to fail. The code of the error record is 0 until
 * callback_end(), which knows from it whether the function, or the library inside of it, recorded an error, and
 * otherwise records this text. The library may set modes for the function after callback_begin(). Returns 0, or -errno.
 */
struct callback callback_begin(void);
int callback_end(const struct callback *before, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
