// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Write a temporary file beside the target and rename it. Until the rename, and after any failure,
 * the target is unchanged. */
#include "base/file_limit.h"
#include "ops/op.h"
#include "io/file.h"

#include "family/copy.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER	  ((size_t)1 << 16)
#define LINKS_MAX 40 /* as in the kernel */

static int fail(struct file_out *f, int code)
{
	if (!f->err)
		f->err =
			tensor_fail(code, "%s: %s: %s", f->op, SHORT_PATH(f->path), strerror(code));
	return f->err;
}

/*
 * Open the directory of a path relative to f->folder and make the last component the target. Later
 * calls use names relative to that directory, so that a path of PATH_MAX bytes leaves space for the
 * temporary name.
 */
static int enter_folder(struct file_out *f, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *target = strdup(slash ? slash + 1 : path);
	char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) :
			       strdup(".");
	int fd = target && folder ? openat(f->folder, folder, O_PATH | O_DIRECTORY | O_CLOEXEC) :
				    -1;
	int err = target && folder ? errno : ENOMEM;

	free(folder);
	free(f->target);
	f->target = target;
	if (f->folder >= 0)
		close(f->folder);
	f->folder = fd;
	return fd < 0 ? fail(f, err) : 0;
}

/* Resolve symbolic links: the file behind a link is replaced, not the link. */
static int follow_links(struct file_out *f)
{
	char to[PATH_MAX];
	ssize_t n;

	for (int links = 0; links <= LINKS_MAX; links++) {
		n = readlinkat(f->folder, f->target, to, sizeof(to) - 1);
		if (n < 0)
			return errno == EINVAL || errno == ENOENT ? 0 : fail(f, errno);
		to[n] = '\0';
		if (enter_folder(f, to) < 0)
			return f->err;
	}
	return fail(f, ELOOP);
}

static int find_target(struct file_out *f, mode_t *mode, bool *there)
{
	struct stat st, end;

	/* stat() first: the kernel decides whether the links may be followed. */
	*there = !stat(f->path, &st);
	if (!*there && (errno != ENOENT || !*f->path))
		return fail(f, errno);
	if (*there && !S_ISREG(st.st_mode))
		return f->err = tensor_fail(EINVAL, "%s: %s: not a regular file", f->op,
					    SHORT_PATH(f->path));
	if (enter_folder(f, f->path) < 0 || follow_links(f) < 0)
		return f->err;
	if (!*f->target)
		return fail(f, EISDIR);
	/* A link in /proc to an unlinked file resolves to another file. */
	if (*there && (fstatat(f->folder, f->target, &end, AT_SYMLINK_NOFOLLOW) < 0 ||
		       end.st_ino != st.st_ino || end.st_dev != st.st_dev))
		return fail(f, ENOENT);
	*mode = *there ? st.st_mode & 0777 : 0666;
	return 0;
}

/* Build the temporary name from the start of the target's name: a name has at most 255 bytes. */
static void name_temporary(struct file_out *f, uint64_t number)
{
	size_t n = strnlen(f->target, FILE_NAME_KEPT);

	while (n && ((unsigned char)f->target[n] & 0xc0) == 0x80) /* inside a UTF-8 character */
		n--;
	snprintf(f->temporary, sizeof(f->temporary), "%.*s.%016llx", (int)n, f->target,
		 (unsigned long long)number);
}

/* The temporary file's permissions never exceed those of the final file. */
static int open_temporary(struct file_out *f, mode_t mode)
{
	uint64_t number;

	for (int tries = 0; tries < 100; tries++) {
		if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
			number = (uint64_t)getpid() << 8 | (uint64_t)tries;
		name_temporary(f, number);
		f->fd = openat(f->folder, f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
			       mode);
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
	f->folder = AT_FDCWD;
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

		/* A write of 0 bytes is an error: a file system that repeats it would loop forever.
		 */
		if (!done || (done < 0 && errno != EINTR))
			fail(f, done ? errno : EIO);
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
	if (!err && !f->err && renameat(f->folder, f->temporary, f->folder, f->target) < 0)
		fail(f, errno);
	if ((err || f->err) && f->fd >= 0)
		unlinkat(f->folder, f->temporary, 0);
	if (f->folder >= 0)
		close(f->folder);
	free(f->target);
	free(f->buffer);
	return err ? err : f->err;
}

/* ---- conversion of tensors ---- */

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
	result = call_contiguous(host, TENSOR_CONTIGUOUS_FORMAT);
	tensor_put(host);
	return result;
}
