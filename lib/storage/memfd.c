// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The memfd provider: shared memory without the module. Each buffer is a memfd of fixed size
 * (sealed against shrinking and growing), its pages reserved at birth, so that full memory is
 * ENOMEM for the maker and never SIGBUS for a reader.
 *
 * The last page of the file is not for data: it holds the descriptor (descriptor.h).
 */
#include "provider.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PAGE	     ((size_t)DESCRIPTOR_PAGE)
#define HUGE	     ((size_t)2 << 20)
#define ASK_FROM     ((size_t)64 << 20)
#define SEALS	     (F_SEAL_SHRINK | F_SEAL_GROW)

static int memfd_probe(void)
{
	return 0;
}

static int identify(int fd, struct tensor_buffer *b, off_t *size)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	b->id = (struct tensor_identity){st.st_dev, st.st_ino};
	*size = st.st_size;
	return 0;
}

static int map(struct tensor_buffer *b, int prot)
{
	void *p = mmap(NULL, b->map_size, prot, MAP_SHARED | MAP_POPULATE, b->fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	b->map = p;
	return 0;
}

/*
 * fallocate() does not refuse what there is no memory for: it takes what there is until the
 * kernel kills somebody. So a large one is asked for only if it can be had.
 */
static bool affordable(size_t size)
{
	char text[256] = "", *line;
	unsigned long long kib;
	int fd;

	if (size < ASK_FROM)
		return true;
	fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	line = strstr(text, "MemAvailable:");
	return !line || sscanf(line, "MemAvailable: %llu", &kib) != 1 || size / 1024 < kib;
}

static int memfd_alloc(size_t size, struct tensor_buffer *b)
{
	off_t file_size;
	int err;

	if (!affordable(size))
		return -ENOMEM;
	*b = (struct tensor_buffer){.provider = &memfd_provider};
	b->size = (size + PAGE - 1) & ~(PAGE - 1);
	b->map_size = b->size + PAGE;
	b->fd = memfd_create("tensor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (b->fd < 0)
		return -errno;
	if (fallocate(b->fd, 0, 0, b->map_size) < 0 || fcntl(b->fd, F_ADD_SEALS, SEALS) < 0) {
		err = errno == ENOSPC ? -ENOMEM : -errno;
		goto close_fd;
	}
	err = map(b, PROT_READ | PROT_WRITE);
	if (err < 0)
		goto close_fd;
	if (b->size >= HUGE)
		madvise(b->map, b->size, MADV_HUGEPAGE);
	err = identify(b->fd, b, &file_size);
	if (err < 0)
		goto unmap;
	memcpy((char *)b->map + b->size, DESCRIPTOR_MAGIC, sizeof(DESCRIPTOR_MAGIC) - 1);
	return 0;
unmap:
	munmap(b->map, b->map_size);
close_fd:
	close(b->fd);
	return err;
}

static int memfd_seal(struct tensor_buffer *b)
{
	return fcntl(b->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) < 0 ? -errno : 0;
}

static int memfd_export(struct tensor_buffer *b, bool readonly)
{
	/* The only read-only that a peer cannot undo here: nobody maps it writable any more,
	 * while the maker's own mapping stays. */
	int err = readonly && !b->readonly ? memfd_seal(b) : 0;
	int fd;

	if (err < 0)
		return err;
	fd = fcntl(b->fd, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : fd;
}

/* The seals of a memfd that cannot change its size, or -EBADMSG. */
static int checked_seals(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;

	/* Without these the sender could shrink the file under our mapping: SIGBUS. The same for
	 * huge pages of hugetlbfs, which a hole gives back to a pool that may be empty then. */
	if (seals < 0 || (seals & SEALS) != SEALS || fstatfs(fd, &fs) < 0 ||
	    fs.f_type != TMPFS_MAGIC)
		return -EBADMSG;
	return seals;
}

static bool only_readable(int fd, int seals)
{
	return seals & (F_SEAL_FUTURE_WRITE | F_SEAL_WRITE) ||
	       (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
}

static int memfd_recognise(int fd)
{
	int seals = checked_seals(fd);

	if (seals < 0)
		return 0;
	return only_readable(fd, seals) ? PROT_READ : PROT_READ | PROT_WRITE;
}

static int memfd_import(int fd, struct tensor_buffer *b)
{
	off_t file_size;
	int err, seals = checked_seals(fd);

	*b = (struct tensor_buffer){.provider = &memfd_provider, .shared = true};
	if (seals < 0)
		return seals;
	err = identify(fd, b, &file_size);
	if (err < 0)
		return err;
	if (file_size < (off_t)(2 * PAGE) || file_size % PAGE)
		return -EBADMSG;
	b->map_size = file_size;
	b->size = file_size - PAGE;
	b->readonly = only_readable(fd, seals);
	b->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (b->fd < 0)
		return -errno;
	err = map(b, b->readonly ? PROT_READ : PROT_READ | PROT_WRITE);
	if (err < 0)
		close(b->fd);
	return err;
}

static int memfd_describe(struct tensor_buffer *b, const struct tensor_descriptor *d)
{
	struct descriptor_page *page = (void *)((char *)b->map + b->size);

	if (b->readonly)
		return -EACCES;
	page->d = *d;
	return 0;
}

static void memfd_close(struct tensor_buffer *b)
{
	munmap(b->map, b->map_size);
	close(b->fd);
}

const struct tensor_provider memfd_provider = {
	.name = "memfd",
	.probe = memfd_probe,
	.alloc = memfd_alloc,
	.export = memfd_export,
	.recognise = memfd_recognise,
	.import = memfd_import,
	.seal = memfd_seal,
	.describe = memfd_describe,
	.close = memfd_close,
};
