// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Pinned host memory. If a host tensor owns a provider's buffer, the buffer's mapping is registered
 * with CUDA at its first copy. The registration stays while the buffer is cached and reused; the
 * on_close hook removes it before the mapping is unmapped. CUDA copies other memory through a
 * pinned buffer of its own.
 */
#include "kernels/cuda/cuda.h"

#include "storage/provider/provider.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread bool nonblocking;

static void lock_pins(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_pins(void)
{
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void pin_init(void)
{
	pthread_atfork(lock_pins, unlock_pins, unlock_pins);
}

static void unpin(struct tensor_buffer *b)
{
	enum cudaStreamCaptureMode before;

	if (cuda_forked)
		return;
	before = cuda_relax();
	if (cudaHostUnregister(b->map) != cudaSuccess)
		cudaGetLastError();
	cuda_unrelax(before);
}

/* Marks a buffer that CUDA refused to register: another attempt costs as much as a small copy. */
static void not_pinned(struct tensor_buffer *b)
{
}

bool cuda_pinned(const tensor *t)
{
	struct tensor_buffer *b = tensor_storage_buffer(t->storage);
	unsigned flags = cudaHostRegisterPortable;

	if (!b)
		return false;
	if (b->readonly)
		flags |= cudaHostRegisterReadOnly;
	lock_pins();
	if (!b->on_close) {
		const enum cudaStreamCaptureMode before = cuda_relax();

		b->on_close = unpin;
		if (cudaHostRegister(b->map, b->size, flags) != cudaSuccess) {
			cudaGetLastError();
			b->on_close = not_pinned;
		}
		cuda_unrelax(before);
	}
	unlock_pins();
	return b->on_close == unpin;
}

bool cuda_nonblocking(void)
{
	return nonblocking;
}

bool cuda_set_nonblocking(bool on)
{
	bool before = nonblocking;

	nonblocking = on;
	return before;
}

static void put(void *storage)
{
	storage_put(storage);
}

int cuda_keep(const struct cuda_call *c, const tensor *t)
{
	storage_get(t->storage);
	return cuda_call_later(c, put, t->storage);
}
