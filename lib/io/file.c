// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Read or map a file into a storage without a second copy. */
#include "io/file.h"

#include "base/init.h"
#include "core/external.h"
#include "sharing/sharing.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* O_NONBLOCK: opening a FIFO without a writer would block. */
int file_open(struct file *f, const char *op, const char *path,
	      const struct tensor_load_options *options)
{
	struct stat st;
	int err;

	if (!path)
		return tensor_fail(EINVAL, "%s: the path is NULL", op);
	memset(f, 0, sizeof(*f));
	f->op = op;
	if (options)
		f->options = *options;
	if (f->options.map > TENSOR_MAP_PRIVATE)
		return tensor_fail(EINVAL, "%s: unknown map mode %d", op, f->options.map);
	f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (f->fd < 0 || fstat(f->fd, &st) < 0) {
		err = tensor_fail(errno, "%s: %s: %s", op, SHORT_PATH(path), strerror(errno));
		goto failed;
	}
	if (!S_ISREG(st.st_mode)) {
		err = tensor_fail(EINVAL, "%s: %s: not a regular file", op, SHORT_PATH(path));
		goto failed;
	}
	f->size = (uint64_t)st.st_size;
	f->path = strdup(path);
	if (!f->path) {
		err = tensor_fail(ENOMEM, "%s: no memory", op);
		goto failed;
	}
	pthread_mutex_init(&f->lock, NULL);
	return 0;
failed:
	if (f->fd >= 0)
		close(f->fd);
	return err;
}

static int read_some(int fd, void *to, uint64_t n, uint64_t offset, uint64_t *done)
{
	for (*done = 0; *done < n;) {
		size_t want = n - *done < 1 << 30 ? (size_t)(n - *done) : 1 << 30;
		ssize_t got = pread(fd, (char *)to + *done, want, (off_t)(offset + *done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		*done += (uint64_t)got;
	}
	return 0;
}

int file_read(struct file *f, void *to, uint64_t n, uint64_t offset)
{
	uint64_t done;
	int err;

	if (offset > f->size || n > f->size - offset)
		return file_fail(f, EBADMSG, "truncated: %llu bytes at %llu are beyond its end",
				 (unsigned long long)n, (unsigned long long)offset);
	err = read_some(f->fd, to, n, offset, &done);
	if (err < 0)
		return file_fail(f, -err, "%s", strerror(-err));
	if (done < n)
		return file_fail(f, EBADMSG, "truncated while it was read");
	return 0;
}

/* ---- maps ---- */

struct file_map {
	atomic_int refs;
	char *base;
	size_t size;
	struct tensor_buffer buffer; /* the file, for channels; fd -1: none */
};

static void map_put(struct file_map *m)
{
	if (!m || !ref_put(&m->refs))
		return;
	if (m->buffer.shared && buffer_forget)
		buffer_forget(&m->buffer);
	munmap(m->base, m->size);
	if (m->buffer.fd >= 0)
		close(m->buffer.fd);
	free(m);
}

static void map_free(struct tensor_storage *s)
{
	map_put(s->owner);
}

static const struct storage_ops map_ops = { .free = map_free, .shared = true };

void file_close(struct file *f)
{
	map_put(f->map);
	pthread_mutex_destroy(&f->lock);
	close(f->fd);
	free(f->path);
}

/*
 * Prepares the mapping for channels, which send the file (lib/sharing). A file that has changed its size since, or no
 * free descriptor: they send a copy.
 */
static void describe_file(struct file_map *m, int fd)
{
	if (file_provider.open(fd, false, &m->buffer) < 0)
		m->buffer.fd = -1;
	m->buffer.map = m->base;
	m->buffer.shared = false;
}

static struct tensor_buffer *file_of_storage(struct tensor_storage *s)
{
	struct file_map *m = storage_ops_of(s) == &map_ops ? s->owner : NULL;

	return m && m->buffer.fd >= 0 && m->buffer.size == m->size ? &m->buffer : NULL;
}

INIT(INIT_HOOKS) static void file_init(void)
{
	mapped_file = file_of_storage;
}

static struct file_map *new_map(struct file *f)
{
	bool private = f->options.map == TENSOR_MAP_PRIVATE;
	struct file_map *m = calloc(1, sizeof(*m));
	void *base;

	if (!m) {
		file_fail(f, ENOMEM, "no memory");
		return NULL;
	}
	base = mmap(NULL, f->size, PROT_READ | (private ? PROT_WRITE : 0),
		    private ? MAP_PRIVATE | MAP_NORESERVE : MAP_SHARED, f->fd, 0);
	if (base == MAP_FAILED) {
		file_fail(f, errno, "cannot be mapped: %s", strerror(errno));
		free(m);
		return NULL;
	}
	m->refs = 1;
	m->base = base;
	m->size = f->size;
	m->buffer.fd = -1;
	if (!private)
		describe_file(m, f->fd);
	return m;
}

/* Take a reference to the file's only mapping, made at first use. */
static struct file_map *map_get(struct file *f)
{
	pthread_mutex_lock(&f->lock);
	if (!f->map)
		f->map = new_map(f);
	if (f->map)
		ref_get(&f->map->refs);
	pthread_mutex_unlock(&f->lock);
	return f->map;
}

static struct tensor_storage *map_storage(struct file *f, const struct file_span *span)
{
	size_t align = dtype_sizes[dtype_real(span->dtype)];
	struct tensor_storage *s;
	struct file_map *m;

	if (span->swap || span->offset % align) {
		file_fail(f, EOPNOTSUPP, "cannot be mapped: %s",
			  span->swap ? "its byte order is not the machine's" :
				       "its data is not aligned");
		return NULL;
	}
	m = map_get(f);
	if (!m)
		return NULL;
	if (span->dtype == TENSOR_BOOL &&
	    !bytes_are_bools((uint8_t *)m->base + span->offset, span->nbytes)) {
		file_fail(f, EBADMSG, "a bool is neither 0 nor 1");
		map_put(m);
		return NULL;
	}
	s = storage_alloc_struct();
	if (!s) {
		map_put(m);
		return NULL;
	}
	s->ops = &map_ops;
	s->owner = m;
	s->device = TENSOR_DEVICE_CPU;
	s->data = m->base + span->offset;
	s->nbytes = span->nbytes;
	s->used = span->nbytes;
	s->readonly = f->options.map == TENSOR_MAP_READONLY;
	return s;
}

/* ---- storages ---- */

static int check_span(struct file *f, uint64_t nbytes)
{
	if (f->options.max_bytes && nbytes > f->options.max_bytes)
		return file_fail(f, EFBIG, "a tensor of %llu bytes, the limit is %llu",
				 (unsigned long long)nbytes,
				 (unsigned long long)f->options.max_bytes);
	return 0;
}

struct tensor_storage *file_storage_new(struct file *f, uint64_t nbytes)
{
	if (check_span(f, nbytes) < 0)
		return NULL;
	return storage_alloc(TENSOR_DEVICE_CPU, nbytes, f->options.shareable);
}

static void swap_bytes(void *data, uint64_t nbytes, size_t unit)
{
	uint16_t *h = data;
	uint32_t *w = data;
	uint64_t *q = data;

	for (uint64_t i = 0; unit == 2 && i < nbytes / 2; i++)
		h[i] = __builtin_bswap16(h[i]);
	for (uint64_t i = 0; unit == 4 && i < nbytes / 4; i++)
		w[i] = __builtin_bswap32(w[i]);
	for (uint64_t i = 0; unit == 8 && i < nbytes / 8; i++)
		q[i] = __builtin_bswap64(q[i]);
}

void file_storage_finish(struct tensor_storage *s, const struct file_span *span)
{
	unsigned char *p = s->data;

	if (span->swap)
		swap_bytes(p, span->nbytes, dtype_sizes[dtype_real(span->dtype)]);
	if (span->dtype == TENSOR_BOOL)
		for (uint64_t i = 0; i < span->nbytes; i++)
			p[i] = p[i] != 0;
}

struct tensor_storage *file_storage(struct file *f, const struct file_span *span)
{
	struct tensor_storage *s;

	if (span->offset > f->size || span->nbytes > f->size - span->offset) {
		file_fail(f, EBADMSG,
			  "truncated: %llu bytes of data at %llu, but the file has %llu",
			  (unsigned long long)span->nbytes, (unsigned long long)span->offset,
			  (unsigned long long)f->size);
		return NULL;
	}
	/* mmap() rejects a length of 0. */
	if (f->options.map && span->nbytes)
		return check_span(f, span->nbytes) < 0 ? NULL : map_storage(f, span);
	s = file_storage_new(f, span->nbytes);
	if (s && file_read(f, s->data, span->nbytes, span->offset) < 0) {
		storage_put(s);
		return NULL;
	}
	if (s)
		file_storage_finish(s, span);
	return s;
}
