// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Writing: into a new file beside the one that is meant, which then takes its name. Until that
 * moment, and whatever fails, the old one is there.
 */
#include "../file_limit.h"
#include "../ops/front.h"
#include "file.h"

#include "family/copy.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER	  ((size_t)1 << 16)
#define NAME_KEPT 200 /* bytes of a file's name in that of its temporary */

static int fail(struct file_out *f, int code)
{
	if (!f->err)
		f->err = tensor_fail(code, "%s: %s: %s", f->op, f->path, strerror(code));
	return f->err;
}

/* The file behind a link is replaced, not the link. */
static int find_target(struct file_out *f, mode_t *mode, bool *there)
{
	struct stat st;

	*there = !lstat(f->path, &st);
	if (*there && S_ISLNK(st.st_mode)) {
		f->target = realpath(f->path, NULL);
		if (!f->target || stat(f->target, &st) < 0)
			return fail(f, errno);
	} else {
		f->target = strdup(f->path);
		if (!f->target)
			return fail(f, ENOMEM);
	}
	if (*there && !S_ISREG(st.st_mode))
		return f->err = tensor_fail(EINVAL, "%s: %s: not a regular file", f->op, f->path);
	*mode = *there ? st.st_mode & 0777 : 0666;
	return 0;
}

/* Beside the target, of whose name it has the begin: a name has 255 bytes at most. */
static int name_temporary(struct file_out *f, uint64_t number)
{
	const char *slash = strrchr(f->target, '/'), *base = slash ? slash + 1 : f->target;
	size_t n = strnlen(base, NAME_KEPT);

	while (n && ((unsigned char)base[n] & 0xc0) == 0x80) /* inside a character */
		n--;
	free(f->temporary);
	if (asprintf(&f->temporary, "%.*s%.*s.%016llx", (int)(base - f->target), f->target, (int)n,
		     base, (unsigned long long)number) < 0) {
		f->temporary = NULL;
		return fail(f, ENOMEM);
	}
	return 0;
}

/* Never readable for more than the file that it will be. */
static int open_temporary(struct file_out *f, mode_t mode)
{
	uint64_t number;

	for (int tries = 0; tries < 100; tries++) {
		if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
			number = (uint64_t)getpid() << 8 | (uint64_t)tries;
		if (name_temporary(f, number) < 0)
			return f->err;
		f->fd = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (f->fd >= 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	return fail(f, errno);
}

int file_create(struct file_out *f, const char *op, const char *path)
{
	bool there = false;
	mode_t mode = 0;

	memset(f, 0, sizeof(*f));
	f->fd = -1;
	f->op = op;
	f->path = path;
	if (!path)
		return f->err = tensor_fail(EINVAL, "%s: the path is NULL", op);
	f->buffer = malloc(BUFFER);
	if (!f->buffer)
		return fail(f, ENOMEM);
	if (find_target(f, &mode, &there) < 0 || open_temporary(f, mode) < 0)
		return f->err;
	if (there && fchmod(f->fd, mode) < 0)
		return fail(f, errno);
	return 0;
}

static ssize_t write_quietly(int fd, const char *p, size_t n, off_t offset)
{
	struct file_limit before = file_limit_begin();
	ssize_t done = pwrite(fd, p, n, offset);

	file_limit_end(&before, done < 0);
	return done;
}

static void write_at(struct file_out *f, const char *p, uint64_t n, uint64_t offset)
{
	while (n && !f->err) {
		size_t some = n < 1 << 30 ? (size_t)n : 1 << 30;
		ssize_t done = write_quietly(f->fd, p, some, (off_t)offset);

		if (done < 0 && errno != EINTR)
			fail(f, errno);
		if (done <= 0)
			continue;
		p += done;
		offset += (uint64_t)done;
		n -= (uint64_t)done;
	}
}

static void flush(struct file_out *f)
{
	write_at(f, f->buffer, f->used, f->offset - f->used);
	f->used = 0;
}

void file_write(struct file_out *f, const void *data, uint64_t n)
{
	if (f->used + n > BUFFER)
		flush(f);
	f->offset += n;
	if (n > BUFFER) {
		write_at(f, data, n, f->offset - n);
		return;
	}
	if (n)
		memcpy(f->buffer + f->used, data, n);
	f->used += n;
}

void file_rewrite(struct file_out *f, const void *data, uint64_t n, uint64_t offset)
{
	flush(f);
	write_at(f, data, n, offset);
}

int file_finish(struct file_out *f, int err)
{
	if (!err && !f->err)
		flush(f);
	if (f->fd >= 0 && close(f->fd) < 0)
		fail(f, errno);
	if (!err && !f->err && rename(f->temporary, f->target) < 0)
		fail(f, errno);
	if ((err || f->err) && f->fd >= 0)
		unlink(f->temporary);
	free(f->temporary);
	free(f->target);
	free(f->buffer);
	return err ? err : f->err;
}

/* ---- what is written ------------------------------------------------------------------------- */

static bool is_fortran(const tensor *t)
{
	int64_t stride = 1;

	for (int i = 0; i < t->ndim; i++) {
		if (t->sizes[i] != 1 && t->strides[i] != stride)
			return false;
		stride *= t->sizes[i];
	}
	return t->numel > 0;
}

tensor *file_contiguous(tensor *t, bool *fortran)
{
	tensor *plain, *host, *result;

	if (t->layout != TENSOR_STRIDED)
		return tensor_fail_null(EOPNOTSUPP, "save: no file format has the layout %s",
					tensor_layout_name(t->layout));
	plain = tensor_new_detached(t);
	if (!plain)
		return NULL;
	host = call_to(plain, TENSOR_OPTIONS(.device = TENSOR_DEVICE_CPU), false, false);
	tensor_put(plain);
	if (!host || (fortran && !host->contiguous && (*fortran = is_fortran(host))))
		return host;
	result = call_contiguous(host);
	tensor_put(host);
	return result;
}
