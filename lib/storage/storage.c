// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Storages of all devices: host memory comes from private.c and cache.c, other memory from the
 * allocator of the device.
 */
#include "storage/storage.h"

#include "base/error.h"
#include "base/thread.h"
#include "storage/buffer_cache.h"
#include "storage/devices.h"

/* ---- memory of other devices ---- */

static void device_free(struct tensor_storage *s)
{
	const struct tensor_allocator *a = s->owner;

	a->free(a, s->device, s->data, s->nbytes);
}

static const struct storage_ops device_storage_ops = { .free = device_free };

bool device_storage_is_private(const struct tensor_storage *s)
{
	return storage_ops_of(s) == &device_storage_ops;
}

static struct tensor_storage *device_alloc(tensor_device device, size_t nbytes)
{
	const struct tensor_allocator *a = device_allocator(device);
	struct tensor_error *e = &thread()->error;
	int err, before = e->code;
	struct tensor_storage *s;

	if (!a)
		return NULL;
	s = storage_alloc_struct();
	if (!s)
		return NULL;
	s->ops = &device_storage_ops;
	s->owner = (void *)a;
	s->device = device;
	s->nbytes = nbytes ? nbytes : 1;
	s->used = nbytes;
	/* The library's own allocators have set a more precise error. */
	e->code = 0;
	err = a->alloc(a, device, s->nbytes, &s->data);
	if (err < 0) {
		storage_free_struct(s);
		if (!e->code)
			tensor_fail(-err, "%s: no memory for %zu bytes on device %d", a->name,
				    nbytes, device.index);
		return NULL;
	}
	e->code = before;
	return s;
}

struct tensor_storage *storage_alloc(tensor_device device, size_t nbytes, bool shareable)
{
	if (likely(device.type == TENSOR_CPU))
		return cache_alloc(nbytes, shareable);
	return device_alloc(device, nbytes);
}

TENSOR_EXPORT struct tensor_buffer *tensor_storage_buffer(struct tensor_storage *s)
{
	const struct storage_ops *ops = storage_ops_of(s);

	/* The storage of an element on the stack (tensor_item()) has none. */
	return ops && ops->buffer ? ops->buffer(s) : NULL;
}
