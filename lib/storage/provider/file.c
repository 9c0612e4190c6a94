// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Mapped files as buffers, for channels whose receiver trusts its peer. Anyone who may write to the file can truncate
 * it, after which an access raises SIGBUS. Such a buffer is read-only and is never allocated; only a channel uses it.
 */
#include "storage/provider/provider.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int file_open_fd(int fd, bool foreign, struct tensor_buffer *b)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat st;

	*b = (struct tensor_buffer){ .provider = &file_provider,
				     .rights = TENSOR_BUFFER_READ,
				     .readonly = true,
				     .shared = true,
				     .described = true };
	/* A descriptor with the right to write would give the receiver more than the tensor. */
	if (flags < 0 || flags & O_PATH || (flags & O_ACCMODE) != O_RDONLY || fstat(fd, &st) < 0 ||
	    !S_ISREG(st.st_mode) || st.st_size <= 0)
		return -EBADMSG;
	b->id = (struct tensor_identity){ st.st_dev, st.st_ino };
	b->size = b->map_size = (size_t)st.st_size;
	b->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return b->fd < 0 ? -errno : 0;
}

static int file_map(struct tensor_buffer *b)
{
	void *p = mmap(NULL, b->map_size, PROT_READ, MAP_SHARED, b->fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	b->map = p;
	return 0;
}

static int file_export(struct tensor_buffer *b, unsigned rights)
{
	int fd = fcntl(b->fd, F_DUPFD_CLOEXEC, 3);

	return fd < 0 ? -errno : fd;
}

static void file_close(struct tensor_buffer *b)
{
	if (b->map)
		munmap(b->map, b->map_size);
	close(b->fd);
}

const struct tensor_provider file_provider = {
	.name = "file",
	.export = file_export,
	.open = file_open_fd,
	.map = file_map,
	.close = file_close,
};
