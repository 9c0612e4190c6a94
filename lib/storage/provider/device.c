// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The device provider: buffers of /dev/tensor. A process holds a buffer by a handle of its open
 * device, or by the received fd if it cannot open the device.
 */
#include "storage/provider/device_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

_Static_assert(TENSOR_BUFFER_READ == TENSOR_RIGHT_READ &&
		       TENSOR_BUFFER_WRITE == TENSOR_RIGHT_WRITE &&
		       TENSOR_BUFFER_ATTACH == TENSOR_RIGHT_ATTACH &&
		       TENSOR_BUFFER_SEAL == TENSOR_RIGHT_SEAL &&
		       TENSOR_BUFFER_REVOKE == TENSOR_RIGHT_REVOKE &&
		       TENSOR_BUFFER_EXPORT == TENSOR_RIGHT_EXPORT &&
		       TENSOR_BUFFER_ALL == TENSOR_RIGHTS_ALL && SHARE_RO == TENSOR_RIGHTS_RO &&
		       SHARE_RW == TENSOR_RIGHTS_RW,
	       "the rights of the library are the kernel's");
_Static_assert((int)TENSOR_BUFFER_KIND_ALLOC == (int)TENSOR_KIND_ALLOC &&
		       (int)TENSOR_BUFFER_KIND_PIN == (int)TENSOR_KIND_PIN &&
		       (int)TENSOR_BUFFER_KIND_DMABUF == (int)TENSOR_KIND_DMABUF &&
		       (int)TENSOR_BUFFER_KIND_MEMFD == (int)TENSOR_KIND_MEMFD,
	       "the kinds of the library are the kernel's");

static int device_probe(void)
{
	struct tensor_query query = { .size = sizeof(query) };
	uint32_t serial;
	int fd = device_file(&serial);

	return fd < 0 ? fd : device_call(fd, TENSOR_IOC_QUERY, &query);
}

/* ---- hold and map ---- */

/* Populates the mapping, so that a reused tensor causes no page faults. */
static int device_map(struct tensor_buffer *b)
{
	int prot = b->readonly ? PROT_READ : PROT_READ | PROT_WRITE;
	int fd = b->fd >= 0 ? b->fd : device_file_of(b->open_serial);
	void *p;

	if (fd < 0)
		return fd;
	p = mmap(NULL, b->map_size, prot, MAP_SHARED | MAP_POPULATE, fd, (off_t)b->mmap_offset);
	if (p == MAP_FAILED)
		return -errno;
	b->map = p;
	return 0;
}

static void fill_in(struct tensor_buffer *b, const struct tensor_info *info)
{
	b->size = b->map_size = info->bytes;
	b->id = (struct tensor_identity){ info->dev, info->ino };
	b->offset = info->offset;
	b->rights = info->rights;
	b->kind = info->kind;
	b->described = info->state & TENSOR_STATE_META;
	b->readonly = !(info->rights & TENSOR_RIGHT_WRITE) || info->seals & TENSOR_SEAL_WRITE;
}

static int device_alloc(size_t size, struct tensor_buffer *b)
{
	struct tensor_alloc alloc = { .size = sizeof(alloc),
				      .bytes = size,
				      .node = TENSOR_NODE_ANY };
	struct tensor_info info;
	int err, fd;

	*b = (struct tensor_buffer){ .provider = &device_provider, .fd = -1 };
	fd = device_file(&b->open_serial);
	if (fd < 0)
		return fd;
	err = device_call(fd, TENSOR_IOC_ALLOC, &alloc);
	if (err < 0)
		return err == -EINVAL ? -ENOMEM : err; /* EINVAL: larger than the module allows */
	b->handle = alloc.handle;
	b->mmap_offset = alloc.mmap_offset;
	err = device_info(fd, b->handle, &info);
	if (err < 0)
		goto close_handle;
	fill_in(b, &info);
	err = device_map(b);
	if (err < 0)
		goto close_handle;
	return 0;
close_handle:
	device_close_handle(fd, b->handle);
	return err;
}

/* Maps a handle of this process's open device. */
static int import_handle(int fd, struct tensor_buffer *b)
{
	struct tensor_import arg = { .size = sizeof(arg), .fd = fd };
	int err, device = device_file(&b->open_serial);

	if (device < 0)
		return device;
	err = device_call(device, TENSOR_IOC_IMPORT, &arg);
	if (err < 0)
		return err;
	b->handle = arg.handle;
	b->mmap_offset = arg.mmap_offset;
	return 0;
}

/* Imports a handle if the process can open the device; otherwise duplicates the fd. */
static int hold_import(int fd, struct tensor_buffer *b)
{
	if (import_handle(fd, b) == 0)
		return 0;
	b->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return b->fd < 0 ? -errno : 0;
}

/*
 * Whether fdinfo of the file has this line. Any call that reaches a file system, also fstat(), may
 * wait for the process that serves a FUSE file, and the sender of the file may be that process.
 * fdinfo of such files has no lines of their own. Without /proc there is no answer.
 */
static bool fdinfo_says(int fd, const char *key)
{
	char name[48], text[4096];
	ssize_t n;
	int info;

	snprintf(name, sizeof(name), "/proc/thread-self/fdinfo/%d", fd);
	info = open(name, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return true;
	n = read(info, text, sizeof(text) - 1);
	close(info);
	if (n < 0)
		return false;
	text[n] = '\0';
	return strstr(text, key);
}

/* Checked before the ioctl: its number may have a meaning for another driver. */
static bool is_of_fs(int fd, unsigned long magic, const char *key)
{
	struct statfs fs;

	return fdinfo_says(fd, key) && fstatfs(fd, &fs) == 0 && (unsigned long)fs.f_type == magic;
}

static int open_buffer(int fd, bool foreign, struct tensor_buffer *b)
{
	struct tensor_info info;
	int err = device_info(fd, 0, &info);

	if (err < 0)
		return err;
	if (info.state & TENSOR_STATE_REVOKED)
		return -EIDRM;
	/* A mapping of another driver may fault. */
	if (!foreign && info.kind != TENSOR_KIND_ALLOC && info.kind != TENSOR_KIND_MEMFD)
		return -EBADMSG;
	fill_in(b, &info);
	return hold_import(fd, b);
}

/* Only an import shows what a dma-buf is. */
static int open_dmabuf(int fd, struct tensor_buffer *b)
{
	struct tensor_info info;
	int err = import_handle(fd, b), device;

	if (err < 0)
		return err == -ENOENT || err == -ENXIO ? -ENOTSUP : err;
	device = device_file_of(b->open_serial);
	err = device < 0 ? device : device_info(device, b->handle, &info);
	if (err < 0)
		device_close_handle(device, b->handle);
	else
		fill_in(b, &info);
	return err;
}

static int device_open(int fd, bool foreign, struct tensor_buffer *b)
{
	*b = (struct tensor_buffer){ .provider = &device_provider, .fd = -1, .shared = true };
	if (is_of_fs(fd, TENSOR_FS_MAGIC, "\ntensor-buffer-id:"))
		return open_buffer(fd, foreign, b);
	if (foreign && is_of_fs(fd, DMA_BUF_MAGIC, "\nexp_name:"))
		return open_dmabuf(fd, b);
	return -EBADMSG;
}

static void device_close(struct tensor_buffer *b)
{
	if (b->map)
		munmap(b->map, b->map_size);
	if (b->fd >= 0) {
		close(b->fd);
	} else {
		int fd = device_file_of(b->open_serial);

		if (fd >= 0)
			device_close_handle(fd, b->handle);
	}
}

/* ---- hand on ---- */

static int device_export(struct tensor_buffer *b, unsigned rights)
{
	/* A sealed buffer cannot be written, also with the right to write. */
	unsigned usable = b->readonly ? b->rights & ~TENSOR_BUFFER_WRITE : b->rights;
	int fd;

	/* A process that cannot open the device passes on the received fd. */
	if (b->fd >= 0) {
		if (rights & b->rights & ~usable)
			return -EPERM;
		if (rights != usable)
			return -EACCES;
		fd = fcntl(b->fd, F_DUPFD_CLOEXEC, 3);
		return fd < 0 ? -errno : fd;
	}
	fd = device_holder(b);
	return fd < 0 ? fd : device_export_handle(fd, b->handle, rights, 0);
}

static int device_dmabuf(struct tensor_buffer *b, unsigned rights)
{
	int fd = device_holder(b);

	return fd < 0 ? fd : device_export_handle(fd, b->handle, rights, TENSOR_EXPORT_DMABUF);
}

static int device_handle(const struct tensor_buffer *b, uint32_t *handle)
{
	int fd = device_holder(b);

	if (fd < 0)
		return fd;
	*handle = b->handle;
	return 0;
}

/* ---- descriptors ---- */

/*
 * The tag is the library's number of the dtype; the kernel stores it and checks the number of bits.
 */
static int device_describe(struct tensor_buffer *b, const struct tensor_descriptor *d)
{
	struct tensor_meta arg = { .size = sizeof(arg), .flags = TENSOR_META_SET };
	int fd = device_target(b, &arg.handle);

	_Static_assert(sizeof(arg.desc.label) == sizeof(d->label), "one size of label");
	_Static_assert(TENSOR_UAPI_MAX_DIMS == TENSOR_MAX_DIMS, "every tensor can be described");
	if (fd < 0)
		return fd;
	arg.desc.bits = 8u * dtype_sizes[d->dtype];
	arg.desc.dtype = d->dtype;
	arg.desc.ndim = d->ndim;
	arg.desc.offset = (uint64_t)d->offset;
	for (uint32_t i = 0; i < d->ndim; i++) {
		arg.desc.sizes[i] = d->sizes[i];
		arg.desc.strides[i] = d->strides[i];
	}
	memcpy(arg.desc.label, d->label, strnlen(d->label, sizeof(d->label) - 1));
	return device_call(fd, TENSOR_IOC_META, &arg);
}

/* dtype 0: no descriptor; TENSOR_DTYPE_COUNT: element type unknown to the library. */
static uint32_t dtype_of(const struct tensor_desc *desc)
{
	if (!desc->bits)
		return 0;
	if (!desc->dtype || desc->dtype >= TENSOR_DTYPE_COUNT ||
	    desc->bits != 8u * dtype_sizes[desc->dtype])
		return TENSOR_DTYPE_COUNT;
	return desc->dtype;
}

static int device_descriptor(const struct tensor_buffer *b, struct tensor_descriptor *d)
{
	struct tensor_meta arg = { .size = sizeof(arg) };
	int err, fd = device_target(b, &arg.handle);

	if (fd < 0)
		return fd;
	err = device_call(fd, TENSOR_IOC_META, &arg);
	if (err < 0)
		return err;
	*d = (struct tensor_descriptor){ .dtype = dtype_of(&arg.desc),
					 .ndim = arg.desc.ndim,
					 .offset = (int64_t)arg.desc.offset };
	for (int i = 0; i < TENSOR_MAX_DIMS; i++) {
		d->sizes[i] = arg.desc.sizes[i];
		d->strides[i] = arg.desc.strides[i];
	}
	memcpy(d->label, arg.desc.label, sizeof(d->label) - 1);
	return 0;
}

const struct tensor_provider device_provider = {
	.name = "device",
	.probe = device_probe,
	.alloc = device_alloc,
	.export = device_export,
	.open = device_open,
	.map = device_map,
	.seal = device_seal,
	.describe = device_describe,
	.descriptor = device_descriptor,
	.wrote = device_wrote,
	.generation = device_generation,
	.info = device_buffer_info,
	.close = device_close,
	.handle = device_handle,
	.dmabuf = device_dmabuf,
	.revoke = device_revoke,
	.purgeable = device_purgeable,
	.sync = device_sync,
};
