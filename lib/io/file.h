/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Read or map a file into storages; write a new file that replaces another atomically. */
#ifndef TENSOR_IO_FILE_H
#define TENSOR_IO_FILE_H

#include "core/tensor_impl.h"

#include <tensor/io.h>

#include <pthread.h>

/* A mapping of the file, shared by all tensors on it. */
struct file_map;

struct file {
	int fd;
	uint64_t size;	/* when it was opened */
	const char *op; /* prefix of error messages: "load_npy" */
	char *path;
	struct tensor_load_options options;
	struct file_map *map; /* made at first use, under the lock */
	pthread_mutex_t lock;
};

#define file_fail(f, code, fmt, ...) \
	tensor_fail(code, "%s: %s: " fmt, (f)->op, (f)->path, ##__VA_ARGS__)

/* Open a regular file; EINVAL for another type. Do not close a file that failed to open. */
int file_open(struct file *f, const char *op, const char *path,
	      const struct tensor_load_options *options);
void file_close(struct file *f);
/* Read exactly n bytes. EBADMSG if the file is shorter. */
int file_read(struct file *f, void *to, uint64_t n, uint64_t offset);

/* Position of a tensor's elements in the file. */
struct file_span {
	uint64_t offset, nbytes;
	enum tensor_dtype dtype;
	bool swap; /* the byte order is not the host's */
};
/* Storage with a tensor's bytes, read or mapped as the options say, within the limit of the
 * options. NULL with the error set. */
struct tensor_storage *file_storage(struct file *f, const struct file_span *span);
/* The two halves of reading into a new storage: allocate it, then fix up byte order and bool
 * elements after the caller has read into it. */
struct tensor_storage *file_storage_new(struct file *f, uint64_t nbytes);
void file_storage_finish(struct tensor_storage *s, const struct file_span *span);

/* ---- writing ---- */

#define FILE_NAME_KEPT 200 /* bytes of the target's name used in that of the temporary file */

struct file_out {
	int fd, err;	 /* the first error; later writes do nothing */
	uint64_t offset; /* bytes written so far */
	const char *op;
	const char *path;			      /* as passed by the caller */
	int folder;				      /* directory of the target, or AT_FDCWD */
	char *target, temporary[FILE_NAME_KEPT + 18]; /* names in that directory */
	char *buffer;				      /* data not yet written */
	size_t used;
};

int file_create(struct file_out *f, const char *op, const char *path);
void file_write(struct file_out *f, const void *data, uint64_t n);
/* Overwrite bytes written before. */
void file_rewrite(struct file_out *f, const void *data, uint64_t n, uint64_t offset);
/* Rename the new file to the target or, after an error, remove it. err: the caller's own error, or
 * 0. */
int file_finish(struct file_out *f, int err);

/* Detached alias or copy of t on the CPU in row-major order. A column-major t keeps its order if
 * `fortran` is not NULL; *fortran is then set. Owned. NULL with the error set. */
tensor *file_contiguous(tensor *t, bool *fortran);

/* ---- little-endian integers ---- */

static inline uint16_t file_get16(const unsigned char *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t file_get32(const unsigned char *p)
{
	return file_get16(p) | (uint32_t)file_get16(p + 2) << 16;
}

static inline uint64_t file_get64(const unsigned char *p)
{
	return file_get32(p) | (uint64_t)file_get32(p + 4) << 32;
}

static inline unsigned char *file_put(unsigned char *p, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		*p++ = (unsigned char)(v >> 8 * i);
	return p;
}

#endif
