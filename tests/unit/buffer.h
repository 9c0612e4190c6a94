/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Helpers of the tests of <tensor/buffer.h>: a buffer descriptor in another process. */
#ifndef TESTS_BUFFER_H
#define TESTS_BUFFER_H

#include "peer.h"

#define RO (TENSOR_BUFFER_READ | TENSOR_BUFFER_EXPORT)
#define RW (RO | TENSOR_BUFFER_WRITE)

static inline bool on_device(void)
{
	return !strcmp(tensor_provider_name(), "device");
}

static inline struct tensor_buffer_info info_of(const tensor *t)
{
	struct tensor_buffer_info info = { .size = sizeof(info) };

	assert_done(tensor_buffer_info(t, &info));
	return info;
}

/* Also for read-only memory, where a write must fault. */
static inline float *floats(const tensor *t)
{
	return (float *)tensor_data(t);
}

/* Writes to the first element with the default signal handlers: sanitizers install their own. */
static inline void touch(const tensor *t)
{
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	*(volatile float *)tensor_data(t) = 1;
}

/* A shareable tensor with the elements 0, 1, 2, ... */
static inline tensor *counted(tensor_ints shape)
{
	tensor *t = ok(tensor_empty(shape, SHAREABLE(TENSOR_F32)));

	for (int64_t i = 0; i < tensor_numel(t); i++)
		floats(t)[i] = (float)i;
	return t;
}

static inline tensor *tensor_of_fd(int fd)
{
	return tensor_from_buffer_fd(fd, TENSOR_DTYPE_NONE, TENSOR_NO_INTS, 0);
}

/* Starts a peer in this role that inherits fd and receives its number. */
static inline struct peer peer_with(const char *role, int fd)
{
	struct peer p;

	assert_int_equal(fcntl(fd, F_SETFD, 0), 0);
	p = peer_start(role, SOCK_STREAM);
	tensor_scope {
		tensor *number = tensor_full(TENSOR_SCALAR_SHAPE, TENSOR_SCALAR(fd), I64);

		assert_done(tensor_send(p.ch, ok(number), 0));
	}
	return p;
}

static inline int run_with(const char *role, int fd)
{
	struct peer p = peer_with(role, fd);

	return peer_end(&p);
}

/* Called in the peer: the descriptor that it inherited, or -1. */
static inline int inherited(tensor_channel *ch)
{
	tensor *number = tensor_recv(ch);
	int64_t fd = -1;

	tensor_item_int(number, &fd);
	tensor_release(number);
	return (int)fd;
}

/* The errno of a failed call, 0 if the call succeeded. */
static inline int code_of(int err)
{
	return err < 0 ? tensor_last_error()->code : 0;
}

#endif
