// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The memfd provider: shared memory without the module. Each buffer is a memfd of fixed size,
 * sealed against shrinking and growing. Its pages are reserved at allocation, so lack of memory is
 * ENOMEM at allocation and never SIGBUS at an access.
 *
 * The last page of the file holds the descriptor (descriptor.h).
 */
#include "storage/provider/provider.h"

#include "base/file_limit.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PAGE	 ((size_t)DESCRIPTOR_PAGE)
#define HUGE	 ((size_t)2 << 20)
#define ASK_FROM ((size_t)64 << 20)
#define SEALS	 (F_SEAL_SHRINK | F_SEAL_GROW)
/* A holder of a memfd can always seal it and pass it on. */
#define RIGHTS_RO (TENSOR_BUFFER_READ | TENSOR_BUFFER_EXPORT)
#define RIGHTS	  (RIGHTS_RO | TENSOR_BUFFER_WRITE)

static int memfd_probe(void)
{
	return 0;
}

static int identify(int fd, struct tensor_buffer *b, off_t *size)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	b->id = (struct tensor_identity){ st.st_dev, st.st_ino };
	*size = st.st_size;
	return 0;
}

/*
 * Populates our own buffers, so that they cause no page faults. Not the holes of other files: this
 * process would pay for as many pages as the file claims to have.
 */
static int populate(const struct tensor_buffer *b)
{
	struct stat st;
	bool sparse = fstat(b->fd, &st) < 0 || (uint64_t)st.st_blocks < b->map_size / 512;

	return sparse ? 0 : MAP_POPULATE;
}

static int memfd_map(struct tensor_buffer *b)
{
	int prot = b->readonly ? PROT_READ : PROT_READ | PROT_WRITE;
	void *p = mmap(NULL, b->map_size, prot, MAP_SHARED | populate(b), b->fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	b->map = p;
	if (b->size < b->map_size) {
		b->page = (char *)p + b->size;
		b->writes = &((struct descriptor_page *)b->page)->writes;
	}
	return 0;
}

/*
 * fallocate() does not fail if memory is short: it allocates until the OOM killer runs. So a large
 * buffer is allocated only if enough memory is available.
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

static int reserve(int fd, size_t size)
{
	struct file_limit before = file_limit_begin();
	int err = fallocate(fd, 0, 0, (off_t)size);

	file_limit_end(&before, err < 0);
	return err;
}

static int memfd_alloc(size_t size, struct tensor_buffer *b)
{
	off_t file_size;
	int err;

	if (!affordable(size))
		return -ENOMEM;
	*b = (struct tensor_buffer){ .provider = &memfd_provider,
				     .rights = RIGHTS,
				     .kind = TENSOR_BUFFER_KIND_MEMFD };
	b->size = (size + PAGE - 1) & ~(PAGE - 1);
	b->map_size = b->size + PAGE;
	b->fd = memfd_create("tensor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (b->fd < 0)
		return -errno;
	if (reserve(b->fd, b->map_size) < 0 || fcntl(b->fd, F_ADD_SEALS, SEALS) < 0) {
		err = errno == ENOSPC ? -ENOMEM : -errno;
		goto close_fd;
	}
	err = memfd_map(b);
	if (err < 0)
		goto close_fd;
	if (b->size >= HUGE)
		madvise(b->map, b->size, MADV_HUGEPAGE);
	err = identify(b->fd, b, &file_size);
	if (err < 0)
		goto unmap;
	memcpy(b->page, DESCRIPTOR_MAGIC, sizeof(DESCRIPTOR_MAGIC) - 1);
	return 0;
unmap:
	munmap(b->map, b->map_size);
close_fd:
	close(b->fd);
	return err;
}

/*
 * Replaces our mapping atomically (MAP_FIXED). A private mapping does not count as a writer of the
 * file.
 */
static int remap_part(struct tensor_buffer *b, void *at, size_t size, off_t offset, bool readonly)
{
	int prot = readonly ? PROT_READ : PROT_READ | PROT_WRITE;
	int flags = MAP_FIXED | populate(b) | (readonly ? MAP_PRIVATE : MAP_SHARED);

	return mmap(at, size, prot, flags, b->fd, offset) == MAP_FAILED ? -errno : 0;
}

static int remap(struct tensor_buffer *b, bool readonly)
{
	int err = remap_part(b, b->map, b->size, 0, readonly);

	if (!err && b->page)
		err = remap_part(b, b->page, PAGE, (off_t)b->size, readonly);
	return err;
}

static bool memfd_sealed(const struct tensor_buffer *b)
{
	int seals = fcntl(b->fd, F_GET_SEALS);

	return seals >= 0 && seals & F_SEAL_WRITE;
}

/* F_SEAL_WRITE fails while a writable mapping exists, so our own mapping becomes read-only. */
static int memfd_seal(struct tensor_buffer *b)
{
	int err;

	if (memfd_sealed(b))
		return 0;
	if (!(b->rights & TENSOR_BUFFER_WRITE))
		return -EACCES;
	err = b->readonly ? 0 : remap(b, true);
	if (err < 0)
		return err;
	err = fcntl(b->fd, F_ADD_SEALS, F_SEAL_WRITE) < 0 ? -errno : 0;
	b->readonly = err == 0 || remap(b, false) < 0;
	return err;
}

static int memfd_export(struct tensor_buffer *b, unsigned rights)
{
	int fd;

	if (rights & ~RIGHTS || !(rights & TENSOR_BUFFER_READ))
		return -EOPNOTSUPP;
	if (rights & TENSOR_BUFFER_WRITE && b->readonly)
		return memfd_sealed(b) ? -EPERM : -EACCES;
	/*
	 * The only protection that a peer cannot undo: later mappings cannot be writable, and our
	 * own mapping stays writable.
	 */
	if (!(rights & TENSOR_BUFFER_WRITE) && !b->readonly &&
	    fcntl(b->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) < 0)
		return -errno;
	fd = fcntl(b->fd, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : fd;
}

/* The seals of a memfd that cannot change its size, or -EBADMSG. */
static int checked_seals(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;

	/*
	 * Without these seals the sender could shrink the file under our mapping, and an access
	 * would raise SIGBUS. The same holds for hugetlbfs: punching a hole returns huge pages to a
	 * pool that may be empty at the next fault.
	 */
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

/* Whether the last page has a descriptor. Read once: other processes may write to it. */
static bool has_descriptor_page(int fd, off_t file_size, bool *described)
{
	struct {
		char magic[sizeof(DESCRIPTOR_MAGIC) - 1];
		uint32_t dtype;
	} head;

	if (file_size < (off_t)(2 * PAGE) ||
	    pread(fd, &head, sizeof(head), file_size - (off_t)PAGE) != sizeof(head))
		return false;
	*described = head.dtype;
	return !memcmp(head.magic, DESCRIPTOR_MAGIC, sizeof(head.magic));
}

static int memfd_open(int fd, bool foreign, struct tensor_buffer *b)
{
	off_t file_size;
	int err, seals = checked_seals(fd);
	bool page;

	*b = (struct tensor_buffer){ .provider = &memfd_provider,
				     .kind = TENSOR_BUFFER_KIND_MEMFD,
				     .shared = true };
	if (seals < 0)
		return seals;
	err = identify(fd, b, &file_size);
	if (err < 0)
		return err;
	page = has_descriptor_page(fd, file_size, &b->described);
	if (file_size % (off_t)PAGE || !file_size || (!page && !foreign))
		return -EBADMSG;
	b->map_size = file_size;
	b->size = page ? file_size - PAGE : (size_t)file_size;
	b->readonly = only_readable(fd, seals);
	b->rights = b->readonly ? RIGHTS_RO : RIGHTS;
	b->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return b->fd < 0 ? -errno : 0;
}

static struct descriptor_page *descriptor_page(const struct tensor_buffer *b)
{
	return b->page;
}

static int memfd_describe(struct tensor_buffer *b, const struct tensor_descriptor *d)
{
	struct descriptor_page *page = descriptor_page(b);

	if (b->readonly)
		return -EACCES;
	if (!page)
		return -EOPNOTSUPP;
	page->d = *d;
	return 0;
}

static int memfd_descriptor(const struct tensor_buffer *b, struct tensor_descriptor *d)
{
	const volatile struct descriptor_page *page = descriptor_page(b);

	/* Copied once: another process may write to it concurrently. */
	if (page)
		for (size_t i = 0; i < sizeof(*d); i++)
			((char *)d)[i] = ((const volatile char *)&page->d)[i];
	else
		*d = (struct tensor_descriptor){ 0 };
	if (d->dtype > TENSOR_DTYPE_COUNT)
		d->dtype = TENSOR_DTYPE_COUNT;
	return 0;
}

static int memfd_info(const struct tensor_buffer *b, struct tensor_buffer_info *info)
{
	const struct descriptor_page *page = descriptor_page(b);
	int seals = fcntl(b->fd, F_GET_SEALS);

	if (seals < 0)
		return -errno;
	*info = (struct tensor_buffer_info){
		.kind = b->kind,
		.state = (b->rights & TENSOR_BUFFER_WRITE ? 0 : TENSOR_BUFFER_STATE_RDONLY) |
			 (page && page->d.dtype ? TENSOR_BUFFER_STATE_META : 0),
		.seals = (seals & F_SEAL_WRITE ? TENSOR_BUFFER_SEALED_WRITE : 0) |
			 (seals & F_SEAL_SEAL ? TENSOR_BUFFER_SEALED_SEAL : 0),
		.rights = b->rights,
		.node = -1,
		.bytes = b->size,
		.dev = b->id.dev,
		.ino = b->id.ino,
	};
	return 0;
}

static void memfd_close(struct tensor_buffer *b)
{
	if (b->map)
		munmap(b->map, b->size);
	if (b->page)
		munmap(b->page, PAGE);
	close(b->fd);
}

const struct tensor_provider memfd_provider = {
	.name = "memfd",
	.probe = memfd_probe,
	.alloc = memfd_alloc,
	.export = memfd_export,
	.open = memfd_open,
	.map = memfd_map,
	.seal = memfd_seal,
	.describe = memfd_describe,
	.descriptor = memfd_descriptor,
	.info = memfd_info,
	.close = memfd_close,
};
