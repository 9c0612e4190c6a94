// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Buffers received from other processes. A table by identity ensures that a process maps each
 * buffer once: a buffer that is received again, over any channel, gives another storage on the same
 * mapping. A buffer received with other rights, or in parts, has a mapping for each.
 */
#include "base/init.h"
#include "sharing/sharing.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>

struct import {
	struct tensor_buffer buf;
	struct import *next;
	unsigned storages;
};

static struct {
	pthread_mutex_t lock;
	struct import *chain[256];
} imports = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void lock_imports(void)
{
	pthread_mutex_lock(&imports.lock);
}

static void unlock_imports(void)
{
	pthread_mutex_unlock(&imports.lock);
}

INIT(INIT_IMPORT) static void watch_forks(void)
{
	pthread_atfork(lock_imports, unlock_imports, unlock_imports);
}

static struct import **chain_of(struct tensor_identity id)
{
	return &imports.chain[id.ino % ARRAY_SIZE(imports.chain)];
}

static struct import *find(const struct tensor_buffer *b)
{
	struct import *i = *chain_of(b->id);

	while (i && !(identity_equal(i->buf.id, b->id) && i->buf.provider == b->provider &&
		      i->buf.rights == b->rights && i->buf.offset == b->offset &&
		      i->buf.size == b->size))
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

static struct tensor_buffer *buffer_of(struct tensor_storage *s)
{
	return &((struct import *)s->owner)->buf;
}

static const struct storage_ops import_ops = { .free = import_free,
					       .buffer = buffer_of,
					       .shared = true };

/* A file has no buffer for other functions: only a channel sends it on. */
static const struct storage_ops file_ops = { .free = import_free, .shared = true };

struct tensor_buffer *(*mapped_file)(struct tensor_storage *s);

struct tensor_buffer *storage_file(struct tensor_storage *s)
{
	if (storage_ops_of(s) == &file_ops)
		return buffer_of(s);
	return mapped_file ? mapped_file(s) : NULL;
}

struct tensor_buffer *import_buffer(struct tensor_storage *s)
{
	return s->ops == &import_ops ? buffer_of(s) : NULL;
}

/* A new storage on an imported buffer; NULL if it is not in the table. */
static struct import *import_again(const struct tensor_buffer *b)
{
	struct import *i;

	lock_imports();
	i = find(b);
	if (i)
		i->storages++;
	unlock_imports();
	return i;
}

/* Inserts the buffer, or finds the one that another thread inserted first. */
static struct import *import_put_in(struct import *new)
{
	struct import **chain = chain_of(new->buf.id), *i;

	lock_imports();
	i = find(&new->buf);
	if (!i) {
		i = new;
		i->next = *chain;
		*chain = i;
	}
	i->storages++;
	unlock_imports();
	return i;
}

/*
 * Consumes the buffer, which is not mapped yet, or finds it in the table. Maps it without the lock,
 * because mapping a large buffer takes long and every receive needs the lock.
 */
static int import_get(struct tensor_buffer *b, struct import **found)
{
	struct import *new;
	int err = -ENOMEM;

	*found = import_again(b);
	if (*found) {
		b->provider->close(b);
		return 0;
	}
	new = malloc(sizeof(*new));
	if (!new)
		goto close_buffer;
	*new = (struct import){ .buf = *b };
	err = b->provider->map(&new->buf);
	if (err < 0)
		goto free_import;
	*found = import_put_in(new);
	if (*found != new) {
		new->buf.provider->close(&new->buf);
		free(new);
	}
	return 0;
free_import:
	free(new);
close_buffer:
	b->provider->close(b);
	return err;
}

int import_seal(struct tensor_storage *s)
{
	struct import *i = s->owner;
	int err = -EBUSY;

	lock_imports();
	if (i->storages == 1 || i->buf.readonly)
		err = i->buf.provider->seal(&i->buf);
	unlock_imports();
	return err;
}

static int map_error(const char *function, const struct tensor_buffer *b, int err)
{
	if (err == -EOPNOTSUPP && b->kind == TENSOR_BUFFER_KIND_DMABUF)
		return tensor_fail(
			EOPNOTSUPP,
			"%s: the driver of the dma-buf does not map it for the processor: "
			"devices alone can use it, through the dma-buf itself or through a "
			"handle of /dev/tensor (TENSOR_IOC_IMPORT)",
			function);
	if (err == -EOPNOTSUPP && b->kind == TENSOR_BUFFER_KIND_PIN)
		return tensor_fail(EOPNOTSUPP,
				   "%s: the buffer is memory that a program pinned for devices, "
				   "which alone can use it",
				   function);
	return tensor_fail(-err, "%s: the buffer cannot be mapped: %s", function, strerror(-err));
}

static struct tensor_storage *storage_on(const char *function, struct tensor_buffer *b)
{
	struct tensor_storage *s;
	struct import *i;
	int err = import_get(b, &i);

	if (err < 0) {
		map_error(function, b, err);
		return NULL;
	}
	s = storage_alloc_struct();
	if (!s) {
		import_put(i);
		return NULL;
	}
	s->ops = i->buf.provider == &file_provider ? &file_ops : &import_ops;
	s->owner = i;
	s->device = TENSOR_DEVICE_CPU;
	s->data = i->buf.map;
	s->nbytes = i->buf.size;
	s->used = i->buf.size;
	s->readonly = i->buf.readonly;
	if (s->ops == &import_ops)
		storage_version_begin(s);
	return s;
}

/* err: the result of opening the buffer. */
static struct tensor_storage *storage_of(struct tensor_buffer *b, int err,
					 struct tensor_identity id)
{
	if (err == -EBADMSG) {
		tensor_fail(EBADMSG, "recv: the fd that came is no tensor buffer");
		return NULL;
	}
	if (err < 0) {
		tensor_fail(-err, "recv: the buffer cannot be opened: %s", strerror(-err));
		return NULL;
	}
	if (!identity_equal(id, b->id)) {
		b->provider->close(b);
		tensor_fail(EBADMSG, "recv: another buffer came than the message names");
		return NULL;
	}
	return storage_on("recv", b);
}

struct tensor_storage *import_storage(int fd, struct tensor_identity id)
{
	struct tensor_buffer b;
	int err = provider_open_fd(fd, false, &b);

	return storage_of(&b, err, id);
}

struct tensor_storage *import_file(int fd, struct tensor_identity id)
{
	struct tensor_buffer b;
	int err = file_provider.open(fd, false, &b);

	return storage_of(&b, err, id);
}

static int foreign_error(const char *function, int fd, int err)
{
	switch (-err) {
	case EBADMSG:
		return tensor_fail(
			EBADMSG,
			"%s: fd %d is no buffer, no dma-buf, and no memfd of whole pages "
			"that is sealed against shrinking and growing",
			function, fd);
	case ENOTSUP:
		return tensor_fail(ENOTSUP,
				   "%s: fd %d is a dma-buf, which needs /dev/tensor: load "
				   "the tensor module",
				   function, fd);
	case EIDRM:
		return tensor_fail(EIDRM, "%s: the buffer of fd %d was revoked", function, fd);
	default:
		return tensor_fail(-err, "%s: fd %d: %s", function, fd, strerror(-err));
	}
}

struct tensor_storage *import_foreign(const char *function, int fd)
{
	struct tensor_buffer b;
	int err = fcntl(fd, F_GETFD) < 0 ? -errno : provider_open_fd(fd, true, &b);

	if (err < 0) {
		foreign_error(function, fd, err);
		return NULL;
	}
	return storage_on(function, &b);
}
