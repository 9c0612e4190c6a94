// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * PIN: private memory pinned for devices. The region holds the storage, and a buffer that was
 * pinned is not reused, because a dma-buf may outlive both.
 */
#include "sharing/sharing.h"
#include "storage/provider/device_file.h"

#include <stdlib.h>
#include <unistd.h>

struct tensor_dma_region {
	struct tensor_storage *storage;
	int64_t offset; /* offset of the tensor's first element */
	uint32_t handle;
	uint32_t open_serial; /* number of the open that the handle belongs to */
};

/* Whether the storage shares its first or last page with other memory. */
static bool has_whole_pages(const struct tensor_storage *s)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return !((uintptr_t)s->data % page) && !(s->nbytes % page) && s->nbytes;
}

static int check_memory(const char *function, const tensor *t, unsigned rights)
{
	const struct tensor_buffer *b;

	if (!tensor_given(t))
		return null_argument_code(function);
	if (t->ext || !t->data || !tensor_data(t))
		return tensor_fail(
			ENOTSUP,
			"%s: a strided tensor of plain numbers in host memory is needed, "
			"got a %s one %s of another kind or on another device",
			function, tensor_layout_name(t->layout), SHAPE_STR(t));
	if (rights != TENSOR_BUFFER_READ && rights != (TENSOR_BUFFER_READ | TENSOR_BUFFER_WRITE))
		return tensor_fail(EINVAL,
				   "%s: rights are TENSOR_BUFFER_READ, or READ | WRITE, got "
				   "0x%x",
				   function, rights);
	if (rights & TENSOR_BUFFER_WRITE && t->storage->readonly)
		return tensor_fail(EACCES, "%s: the tensor %s is read-only", function,
				   SHAPE_STR(t));
	b = tensor_storage_buffer(t->storage);
	if (b && b->provider == &device_provider)
		return tensor_fail(EINVAL,
				   "%s: the tensor %s has a buffer of /dev/tensor: "
				   "tensor_buffer_dmabuf() makes its dma-buf",
				   function, SHAPE_STR(t));
	/*
	 * Private memory is moved into a buffer first: a dma-buf may outlive the tensor, and
	 * private memory is reused.
	 */
	if (storage_is_private(t->storage))
		return tensor_fail(EINVAL,
				   "%s: the tensor %s has no buffer to itself: "
				   "tensor_share_memory() gives it one",
				   function, SHAPE_STR(t));
	if (!has_whole_pages(t->storage))
		return tensor_fail(EINVAL,
				   "%s: the tensor %s shares pages with other memory, which "
				   "a device would reach too",
				   function, SHAPE_STR(t));
	return 0;
}

static int pin_fail(const char *function, const tensor *t, int err)
{
	switch (-err) {
	case ENOMEM:
		return tensor_fail(ENOMEM,
				   "%s: no memory, or RLIMIT_MEMLOCK is reached with %zu bytes",
				   function, t->storage->nbytes);
	case EDQUOT:
		return tensor_fail(EDQUOT,
				   "%s: the limit of the tensor module is reached with %zu "
				   "bytes",
				   function, t->storage->nbytes);
	case EOPNOTSUPP:
		return tensor_fail(ENOTSUP,
				   "%s: the memory of the tensor %s cannot be pinned for long",
				   function, SHAPE_STR(t));
	default:
		return tensor_fail(-err, "%s: the memory of the tensor %s: %s", function,
				   SHAPE_STR(t), strerror(-err));
	}
}

static int pin(const char *function, tensor *t, unsigned rights, struct tensor_dma_region *r)
{
	struct tensor_storage *s = t->storage;
	struct tensor_pin arg = {
		.size = sizeof(arg),
		.flags = rights & TENSOR_BUFFER_WRITE ? 0 : TENSOR_PIN_RDONLY,
		.addr = (uintptr_t)s->data,
		.bytes = s->nbytes,
	};
	int err, fd = device_file(&r->open_serial);

	if (fd < 0)
		return device_file_fail(function, fd);
	if (tensor_storage_buffer(s))
		share_mark(tensor_storage_buffer(s));
	err = device_call(fd, TENSOR_IOC_PIN, &arg);
	if (err < 0)
		return pin_fail(function, t, err);
	r->handle = arg.handle;
	return 0;
}

TENSOR_EXPORT tensor_dma_region *tensor_dma_region_open(tensor *t, unsigned rights)
{
	static const char function[] = "tensor_dma_region_open";
	struct tensor_dma_region *r;

	if (check_memory(function, t, rights) < 0)
		return NULL;
	r = malloc(sizeof(*r));
	if (!r) {
		tensor_fail(ENOMEM, "%s: no memory", function);
		return NULL;
	}
	if (pin(function, t, rights, r) < 0) {
		free(r);
		return NULL;
	}
	r->storage = t->storage;
	storage_get(r->storage);
	r->offset = (char *)t->data - (char *)r->storage->data;
	return r;
}

/* The fd of the device that the region belongs to, or -errno with the error set. */
static int device_of_region(const char *function, const struct tensor_dma_region *r)
{
	int fd;

	if (!r)
		return tensor_fail(EINVAL, "%s: the region is NULL", function);
	fd = device_file_of(r->open_serial);
	return fd < 0 ?
		       tensor_fail(-fd, "%s: the region was the parent's before fork()", function) :
		       fd;
}

TENSOR_EXPORT int tensor_dma_region_dmabuf(tensor_dma_region *r, unsigned rights)
{
	static const char function[] = "tensor_dma_region_dmabuf";
	int fd = device_of_region(function, r);

	if (fd < 0)
		return fd;
	if (!rights || rights & ~TENSOR_BUFFER_ALL)
		return tensor_fail(EINVAL,
				   "%s: rights are one or more of TENSOR_BUFFER_*, got 0x%x",
				   function, rights);
	fd = device_export_handle(fd, r->handle, rights, TENSOR_EXPORT_DMABUF);
	if (fd == -EACCES)
		return tensor_fail(EACCES, "%s: rights 0x%x are more than the region has", function,
				   rights);
	return fd < 0 ? tensor_fail(-fd, "%s: %s", function, strerror(-fd)) : fd;
}

TENSOR_EXPORT int64_t tensor_dma_region_offset(const tensor_dma_region *r)
{
	return r ? r->offset : tensor_fail(EINVAL, "tensor_dma_region_offset: the region is NULL");
}

TENSOR_EXPORT int tensor_dma_region_sync(tensor_dma_region *r, unsigned flags, int64_t timeout_ns)
{
	static const char function[] = "tensor_dma_region_sync";
	int fd = device_of_region(function, r), err;

	if (fd < 0)
		return fd;
	err = sync_check(function, flags);
	if (err < 0)
		return err;
	err = device_sync_handle(fd, r->handle, flags, timeout_ns);
	return err < 0 ? tensor_fail(-err, "%s: %s", function, strerror(-err)) : 0;
}

TENSOR_EXPORT void tensor_dma_region_close(tensor_dma_region *r)
{
	int fd;

	if (!r)
		return;
	fd = device_file_of(r->open_serial);
	if (fd >= 0)
		device_close_handle(fd, r->handle);
	storage_put(r->storage);
	free(r);
}
