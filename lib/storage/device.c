// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The device provider: buffers of /dev/tensor. A process has the device open once; a buffer costs
 * a handle there and a mapping, no file descriptor.
 *
 * A child of fork() shares its parent's open file, and a handle is a number in that file: if the
 * child closed one, the parent would lose it; while the child keeps the file, nothing of a parent
 * that died is freed. So a child lets the inherited file go at once and opens its own when it needs
 * one. Mappings that it inherited hold their buffers by themselves.
 */
#include "provider.h"

#include <fcntl.h>
#include <linux/tensor.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

static struct {
	pthread_mutex_t lock;
	int fd; /* -1: not open */
	pid_t pid; /* who opened it */
	uint32_t serial; /* which open of this process, or its ancestors, it is */
} dev = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* ---- the open device ---------------------------------------------------------------------- */

/* With the lock. */
static void drop_inherited(void)
{
	if (dev.fd >= 0 && dev.pid != getpid()) {
		close(dev.fd);
		dev.fd = -1;
	}
}

static void lock_device(void)
{
	pthread_mutex_lock(&dev.lock);
}

static void unlock_device(void)
{
	pthread_mutex_unlock(&dev.lock);
}

static void after_fork(void)
{
	drop_inherited();
	unlock_device();
}

/* Before others: those who hold their lock and call us get theirs first at a fork, too. */
__attribute__((constructor(101))) static void watch_forks(void)
{
	pthread_atfork(lock_device, unlock_device, after_fork);
}

/* This process's open device, and which one it is; or -errno. */
static int open_device(uint32_t *serial)
{
	int fd;

	lock_device();
	drop_inherited();
	if (dev.fd < 0) {
		fd = open("/dev/tensor", O_RDWR | O_CLOEXEC);
		if (fd < 0) {
			fd = -errno;
			unlock_device();
			return fd;
		}
		dev.fd = fd;
		dev.pid = getpid();
		dev.serial++;
	}
	fd = dev.fd;
	*serial = dev.serial;
	unlock_device();
	return fd;
}

/* The open device that the buffer's handle is a number of; -ESTALE when it was a parent's. */
static int device_of(const struct tensor_buffer *b)
{
	int fd = -ESTALE;

	lock_device();
	drop_inherited();
	if (dev.fd >= 0 && dev.serial == b->open_serial)
		fd = dev.fd;
	unlock_device();
	return fd;
}

static int call(int fd, unsigned long request, void *arg)
{
	int err;

	do {
		err = ioctl(fd, request, arg);
	} while (err < 0 && errno == EINTR);
	return err < 0 ? -errno : 0;
}

static int device_probe(void)
{
	struct tensor_query query = {.size = sizeof(query)};
	uint32_t serial;
	int fd = open_device(&serial);

	return fd < 0 ? fd : call(fd, TENSOR_IOC_QUERY, &query);
}

static void close_handle(int fd, uint32_t handle)
{
	struct tensor_close arg = {.size = sizeof(arg), .handle = handle};

	call(fd, TENSOR_IOC_CLOSE, &arg);
}

/* ---- buffers ------------------------------------------------------------------------------- */

/* Also faults everything in: a tensor that is warm never faults again. */
static int map(struct tensor_buffer *b, int fd, off_t offset)
{
	int prot = b->readonly ? PROT_READ : PROT_READ | PROT_WRITE;
	void *p = mmap(NULL, b->map_size, prot, MAP_SHARED | MAP_POPULATE, fd, offset);

	if (p == MAP_FAILED)
		return -errno;
	b->map = p;
	return 0;
}

static int device_alloc(size_t size, struct tensor_buffer *b)
{
	struct tensor_alloc alloc = {.size = sizeof(alloc), .bytes = size, .node = TENSOR_NODE_ANY};
	struct tensor_info info = {.size = sizeof(info)};
	int err, fd;

	*b = (struct tensor_buffer){.provider = &device_provider, .fd = -1};
	fd = open_device(&b->open_serial);
	if (fd < 0)
		return fd;
	err = call(fd, TENSOR_IOC_ALLOC, &alloc);
	if (err < 0)
		return err == -EINVAL ? -ENOMEM : err; /* EINVAL: above the largest there is */
	b->handle = info.handle = alloc.handle;
	b->size = b->map_size = alloc.bytes;
	err = call(fd, TENSOR_IOC_INFO, &info);
	if (err < 0)
		goto close_handle;
	b->id = (struct tensor_identity){info.dev, info.ino};
	err = map(b, fd, (off_t)alloc.cookie);
	if (err < 0)
		goto close_handle;
	return 0;
close_handle:
	close_handle(fd, b->handle);
	return err;
}

static int export_handle(int fd, uint32_t handle, bool readonly)
{
	struct tensor_export arg = {.size = sizeof(arg), .handle = handle,
				    .flags = TENSOR_EXPORT_CLOEXEC |
					     (readonly ? TENSOR_EXPORT_RDONLY : 0)};
	int err = call(fd, TENSOR_IOC_EXPORT, &arg);

	return err < 0 ? err : arg.fd;
}

static int device_export(struct tensor_buffer *b, bool readonly)
{
	int fd;

	/* An import of a process that may not open the device passes on the fd that came. */
	if (b->fd >= 0) {
		if (readonly && !b->readonly)
			return -EACCES;
		fd = fcntl(b->fd, F_DUPFD_CLOEXEC, 3);
		return fd < 0 ? -errno : fd;
	}
	fd = device_of(b);
	return fd < 0 ? fd : export_handle(fd, b->handle, readonly || b->readonly);
}

static int buffer_info(int fd, struct tensor_info *info)
{
	struct statfs fs;

	/* The number of the ioctl may mean something to another driver's file. */
	if (fstatfs(fd, &fs) < 0)
		return -errno;
	if (fs.f_type != TENSOR_FS_MAGIC)
		return -EBADMSG;
	*info = (struct tensor_info){.size = sizeof(*info)};
	return call(fd, TENSOR_IOC_INFO, info);
}

static int device_recognise(int fd)
{
	struct tensor_info info;

	if (buffer_info(fd, &info) < 0)
		return 0;
	return info.state & TENSOR_STATE_RDONLY ? PROT_READ : PROT_READ | PROT_WRITE;
}

/* A handle of our own if we may open the device, else a copy of the fd. */
static int hold_import(int fd, struct tensor_buffer *b)
{
	struct tensor_import arg = {.size = sizeof(arg), .fd = fd};
	int device = open_device(&b->open_serial);

	if (device >= 0 && call(device, TENSOR_IOC_IMPORT, &arg) == 0) {
		b->handle = arg.handle;
		return 0;
	}
	b->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return b->fd < 0 ? -errno : 0;
}

static int device_import(int fd, struct tensor_buffer *b)
{
	struct tensor_info info;
	int err = buffer_info(fd, &info);

	if (err < 0)
		return err;
	*b = (struct tensor_buffer){.provider = &device_provider,
				    .fd = -1,
				    .size = info.bytes,
				    .map_size = info.bytes,
				    .id = {info.dev, info.ino},
				    .readonly = info.state & TENSOR_STATE_RDONLY,
				    .shared = true};
	err = map(b, fd, 0);
	if (err < 0)
		return err;
	err = hold_import(fd, b);
	if (err < 0)
		munmap(b->map, b->map_size);
	return err;
}

/* Another mapping of the buffer in the place of ours; it is never not there. */
static int remap(struct tensor_buffer *b, int fd, bool readonly)
{
	/* A private one can never be written through, whatever the fd permits. */
	int prot = readonly ? PROT_READ : PROT_READ | PROT_WRITE;
	int flags = MAP_FIXED | MAP_POPULATE | (readonly ? MAP_PRIVATE : MAP_SHARED);

	return mmap(b->map, b->map_size, prot, flags, fd, 0) == MAP_FAILED ? -errno : 0;
}

/* The module seals only when nobody can write any more, so our own mapping is made read-only. */
static int seal_fd(struct tensor_buffer *b, int fd)
{
	struct tensor_seal arg = {.size = sizeof(arg), .seals = TENSOR_SEAL_WRITE};
	int err = remap(b, fd, true);

	if (err < 0)
		return err;
	err = call(fd, TENSOR_IOC_SEAL, &arg);
	b->readonly = err == 0 || remap(b, fd, false) < 0;
	return err;
}

static int device_seal(struct tensor_buffer *b)
{
	int fd, err;

	if (b->readonly)
		return -EACCES;
	fd = device_export(b, false);
	if (fd < 0)
		return fd;
	err = seal_fd(b, fd);
	close(fd);
	return err;
}

static int device_describe(struct tensor_buffer *b, const struct tensor_descriptor *d)
{
	struct tensor_meta arg = {.size = sizeof(arg), .flags = TENSOR_META_SET};
	int fd = b->fd;

	_Static_assert(sizeof(arg.desc.label) == sizeof(d->label), "one size of label");
	if (fd < 0) {
		fd = device_of(b);
		if (fd < 0)
			return fd;
		arg.handle = b->handle;
	}
	arg.desc.dtype = d->dtype;
	arg.desc.ndim = d->ndim;
	arg.desc.offset = (uint64_t)d->offset;
	for (uint32_t i = 0; i < d->ndim; i++) {
		arg.desc.sizes[i] = d->sizes[i];
		arg.desc.strides[i] = d->strides[i];
	}
	memcpy(arg.desc.label, d->label, strnlen(d->label, sizeof(d->label) - 1));
	return call(fd, TENSOR_IOC_META, &arg);
}

static void device_close(struct tensor_buffer *b)
{
	munmap(b->map, b->map_size);
	if (b->fd >= 0) {
		close(b->fd);
	} else {
		int fd = device_of(b);

		if (fd >= 0)
			close_handle(fd, b->handle);
	}
}

const struct tensor_provider device_provider = {
	.name = "device",
	.probe = device_probe,
	.alloc = device_alloc,
	.export = device_export,
	.recognise = device_recognise,
	.import = device_import,
	.seal = device_seal,
	.describe = device_describe,
	.close = device_close,
};
