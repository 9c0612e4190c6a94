// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Buffers that came from other processes. A table by identity makes sure that a process maps each
 * of them once: what comes again, by whichever channel, is another storage on the same mapping. A
 * buffer that came writable and read-only has a mapping of each kind.
 */
#include "provider.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct import {
	struct tensor_buffer buf;
	struct import *next;
	unsigned storages;
};

static struct {
	pthread_mutex_t lock;
	struct import *chain[256];
} imports = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void lock_imports(void)
{
	pthread_mutex_lock(&imports.lock);
}

static void unlock_imports(void)
{
	pthread_mutex_unlock(&imports.lock);
}

__attribute__((constructor(102))) static void watch_forks(void)
{
	pthread_atfork(lock_imports, unlock_imports, unlock_imports);
}

static struct import **chain_of(struct tensor_identity id)
{
	return &imports.chain[id.ino % ARRAY_SIZE(imports.chain)];
}

static struct import *find(struct tensor_identity id, bool readonly)
{
	struct import *i = *chain_of(id);

	while (i && !(identity_equal(i->buf.id, id) && i->buf.readonly == readonly))
		i = i->next;
	return i;
}

static void import_put(struct import *i)
{
	struct import **p;

	lock_imports();
	if (--i->storages) {
		unlock_imports();
		return;
	}
	for (p = chain_of(i->buf.id); *p != i; p = &(*p)->next)
		;
	*p = i->next;
	unlock_imports();
	buffer_close(&i->buf);
	free(i);
}

static void import_free(struct tensor_storage *s)
{
	import_put(s->owner);
}

static const struct storage_ops import_ops = {.free = import_free};

struct tensor_buffer *import_buffer(struct tensor_storage *s)
{
	return s->ops == &import_ops ? &((struct import *)s->owner)->buf : NULL;
}

/* With the lock: maps it. */
static struct import *new_import(const struct tensor_provider *p, int fd)
{
	struct import *i = calloc(1, sizeof(*i));
	struct import **chain;
	int err;

	if (!i) {
		tensor_fail(ENOMEM, "recv: no memory for an imported buffer's description");
		return NULL;
	}
	err = p->import(fd, &i->buf);
	if (err < 0) {
		free(i);
		tensor_fail(-err, "recv: the buffer cannot be mapped: %s", strerror(-err));
		return NULL;
	}
	chain = chain_of(i->buf.id);
	i->next = *chain;
	*chain = i;
	return i;
}

static struct import *import_get(int fd, struct tensor_identity id)
{
	const struct tensor_provider *p = tensor_provider_of_fd(fd);
	struct import *i;
	struct stat st;

	if (!p || fstat(fd, &st) < 0) {
		tensor_fail(EBADMSG, "recv: the fd that came is no tensor buffer");
		return NULL;
	}
	if (!identity_equal(id, (struct tensor_identity){st.st_dev, st.st_ino})) {
		tensor_fail(EBADMSG, "recv: another buffer came than the message names");
		return NULL;
	}
	lock_imports();
	i = find(id, !(p->recognise(fd) & PROT_WRITE));
	if (!i)
		i = new_import(p, fd);
	if (i)
		i->storages++;
	unlock_imports();
	return i;
}

struct tensor_storage *import_storage(int fd, struct tensor_identity id)
{
	struct import *i = import_get(fd, id);
	struct tensor_storage *s;

	if (!i)
		return NULL;
	s = storage_alloc_struct();
	if (!s) {
		import_put(i);
		return NULL;
	}
	s->ops = &import_ops;
	s->owner = i;
	s->device = TENSOR_DEVICE_CPU;
	s->data = i->buf.map;
	s->nbytes = i->buf.size;
	s->readonly = i->buf.readonly;
	return s;
}
