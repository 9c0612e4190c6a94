// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Storage by device: host memory comes from the cache over a provider, other memory from the
 * allocator that the device's backend registered.
 */
#include "storage/provider/provider.h"

#include "storage/devices.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- the provider ---- */

static const struct tensor_provider *const providers[] = { &device_provider, &memfd_provider };
static const struct tensor_provider *chosen;
static pthread_once_t choose_once = PTHREAD_ONCE_INIT;

_Atomic uint32_t fork_generation;

static void count_fork(void)
{
	atomic_fetch_add(&fork_generation, 1);
}

static void choose(void)
{
	const char *want = secure_getenv("TENSOR_PROVIDER");

	pthread_atfork(count_fork, NULL, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(providers) && !chosen; i++) {
		const struct tensor_provider *p = providers[i];

		if (want && *want ? !strcmp(want, p->name) : p->probe() == 0)
			chosen = p;
	}
	/* An unknown name: the first buffer's failure would say nothing useful. */
	if (!chosen)
		chosen = &memfd_provider;
}

const struct tensor_provider *tensor_provider(void)
{
	pthread_once(&choose_once, choose);
	return chosen;
}

int provider_open_fd(int fd, bool foreign, struct tensor_buffer *b)
{
	int err = -EBADMSG;

	for (size_t i = 0; i < ARRAY_SIZE(providers) && err == -EBADMSG; i++)
		err = providers[i]->open(fd, foreign, b);
	return err;
}

unsigned long long fd_limit(void)
{
	struct rlimit r;

	return getrlimit(RLIMIT_NOFILE, &r) < 0 ? 0 : r.rlim_cur;
}

bool fd_limit_raise(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur >= r.rlim_max)
		return false;
	r.rlim_cur = r.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &r) == 0;
}

TENSOR_EXPORT const char *tensor_provider_name(void)
{
	return tensor_provider()->name;
}

/* ---- storage structs ---- */

struct tensor_storage *storage_alloc_struct(void)
{
	struct tensor_storage *s = block_take(CLASS_STORAGE);

	if (unlikely(!s)) {
		tensor_fail(ENOMEM, "no memory for a storage's description");
		return NULL;
	}
	s->refs = 1;
	s->version = 0;
	s->readonly = false;
	s->used = 0;
	s->previous = NULL;
	return s;
}

void storage_free_struct(struct tensor_storage *s)
{
	atomic_store_explicit(&s->refs, 0, memory_order_relaxed); /* see tensor_live_counts() */
	block_give(CLASS_STORAGE, s);
}

TENSOR_EXPORT void storage_free(struct tensor_storage *s)
{
	struct tensor_storage *previous = s->previous;

	s->ops->free(s);
	storage_free_struct(s);
	if (unlikely(previous))
		storage_put(previous);
}

/* ---- memory of other devices ---- */

static void device_free(struct tensor_storage *s)
{
	const struct tensor_allocator *a = s->owner;

	a->free(a, s->device, s->data, s->nbytes);
}

static const struct storage_ops device_storage_ops = { .free = device_free };

static struct tensor_storage *device_alloc(tensor_device device, size_t nbytes)
{
	const struct tensor_allocator *a = device_allocator(device);
	struct tensor_error *e = &thread()->error;
	int err, before = e->code;
	struct tensor_storage *s;

	if (!a)
		return NULL;
	s = storage_alloc_struct();
	if (!s)
		return NULL;
	s->ops = &device_storage_ops;
	s->owner = (void *)a;
	s->device = device;
	s->nbytes = nbytes ? nbytes : 1;
	/* An allocator of the library's own has said more than its errno. */
	e->code = 0;
	err = a->alloc(a, device, s->nbytes, &s->data);
	if (err < 0) {
		storage_free_struct(s);
		if (!e->code)
			tensor_fail(-err, "%s: no memory for %zu bytes on device %d", a->name,
				    nbytes, device.index);
		return NULL;
	}
	e->code = before;
	return s;
}

struct tensor_storage *storage_alloc(tensor_device device, size_t nbytes, bool shareable)
{
	if (likely(device.type == TENSOR_CPU))
		return cache_alloc(nbytes, shareable);
	return device_alloc(device, nbytes);
}
