/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* A file that is read or mapped into storages, and one that is written beside another. */
#ifndef TENSOR_IO_FILE_H
#define TENSOR_IO_FILE_H

#include "core/tensor_impl.h"

#include <tensor/io.h>

#include <pthread.h>

/* Pages of a file, held by whoever has a tensor on them. */
struct file_map;

struct file {
	int fd;
	uint64_t size;	/* when it was opened */
	const char *op; /* for messages: "load_npy" */
	char *path;
	struct tensor_load_options options;
	struct file_map *map; /* made at first use, under the lock */
	pthread_mutex_t lock;
};

#define file_fail(f, code, fmt, ...) \
	tensor_fail(code, "%s: %s: " fmt, (f)->op, (f)->path, ##__VA_ARGS__)

/* Opens a regular file: EINVAL for anything else. A failed one must not be closed. */
int file_open(struct file *f, const char *op, const char *path,
	      const struct tensor_load_options *options);
void file_close(struct file *f);
/* Exactly n bytes; EBADMSG when the file ends before. */
int file_read(struct file *f, void *to, uint64_t n, uint64_t offset);

/* Where a tensor's elements are. */
struct file_span {
	uint64_t offset, nbytes;
	enum tensor_dtype dtype;
	bool swap; /* the other byte order */
};
/* A tensor's bytes as the options want them, and no more than they allow. NULL, error set. */
struct tensor_storage *file_storage(struct file *f, const struct file_span *span);
/* Room for a tensor that is read, without content, and what is due when that is there. */
struct tensor_storage *file_storage_new(struct file *f, uint64_t nbytes);
void file_storage_finish(struct tensor_storage *s, const struct file_span *span);

/* ---- writing ---- */

#define FILE_NAME_KEPT 200 /* bytes of a file's name in that of its temporary */

struct file_out {
	int fd, err;	 /* the first error, after which writing does nothing */
	uint64_t offset; /* bytes so far */
	const char *op;
	const char *path;			      /* as the caller said it */
	int folder;				      /* of the target, or AT_FDCWD */
	char *target, temporary[FILE_NAME_KEPT + 18]; /* names in it */
	char *buffer;				      /* what is not written yet */
	size_t used;
};

int file_create(struct file_out *f, const char *op, const char *path);
void file_write(struct file_out *f, const void *data, uint64_t n);
/* Over what has been written before. */
void file_rewrite(struct file_out *f, const void *data, uint64_t n, uint64_t offset);
/* Puts the new file in its place, or after an error takes it away. err: the caller's own. */
int file_finish(struct file_out *f, int err);

/* t without history, on the CPU, in row-major order; or in Fortran's, if it may be and t is so.
 * Owned. */
tensor *file_contiguous(tensor *t, bool *fortran);

/* ---- numbers in little-endian order ---- */

static inline uint16_t get16(const unsigned char *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t get32(const unsigned char *p)
{
	return get16(p) | (uint32_t)get16(p + 2) << 16;
}

static inline uint64_t get64(const unsigned char *p)
{
	return get32(p) | (uint64_t)get32(p + 4) << 32;
}

static inline unsigned char *put(unsigned char *p, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		*p++ = (unsigned char)(v >> 8 * i);
	return p;
}

#endif
