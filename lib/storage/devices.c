// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Devices other than the CPU. Backends register an allocator; that of CUDA is in a plugin (cuda.c).
 */
#include "storage/devices.h"

#include "base/error.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define PRIVATE_MAX 4

static struct {
	const char *name;
	const struct tensor_allocator *allocator;
	const struct tensor_streams *_Atomic streams;
} private_devices[PRIVATE_MAX];
static _Atomic int private_count; /* number of valid entries */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const struct tensor_allocator *device_allocator(tensor_device d)
{
	if (d.type == TENSOR_CUDA)
		return cuda_allocator();
	if (d.type == TENSOR_PRIVATE && d.index >= 0 && d.index < private_count)
		return private_devices[d.index].allocator;
	tensor_fail(ENODEV, "no backend has registered device %d:%d", d.type, d.index);
	return NULL;
}

TENSOR_EXPORT int tensor_register_backend(const char *name,
					  const struct tensor_allocator *allocator,
					  tensor_device *device)
{
	int i;

	if (!name || !allocator || !allocator->alloc || !allocator->free || !device)
		return tensor_fail(EINVAL, "register_backend: a name, an allocator with both "
					   "functions and a place for the device are needed");
	pthread_mutex_lock(&lock);
	i = private_count;
	if (i < PRIVATE_MAX) {
		private_devices[i].name = name;
		private_devices[i].allocator = allocator;
		private_count++;
	}
	pthread_mutex_unlock(&lock);
	if (i == PRIVATE_MAX)
		return tensor_fail(ENOSPC, "register_backend: all %d private keys are taken",
				   PRIVATE_MAX);
	*device = (tensor_device){ TENSOR_PRIVATE, i };
	return TENSOR_KEY_PRIVATE0 + i;
}

const struct tensor_streams *device_streams(tensor_device d)
{
	if (d.type == TENSOR_CUDA)
		return cuda_streams();
	if (d.type == TENSOR_PRIVATE && d.index >= 0 && d.index < private_count)
		return private_devices[d.index].streams;
	return NULL;
}

TENSOR_EXPORT int tensor_register_streams(tensor_device d, const struct tensor_streams *streams)
{
	const struct tensor_streams *none = NULL;

	if (!streams || !streams->current || !streams->set || !streams->record || !streams->wait ||
	    !streams->release)
		return tensor_fail(EINVAL, "register_streams: all functions must be given");
	if (d.type != TENSOR_PRIVATE || d.index < 0 || d.index >= private_count)
		return tensor_fail(EINVAL,
				   "register_streams: no backend has registered device %d:%d",
				   d.type, d.index);
	if (!atomic_compare_exchange_strong(&private_devices[d.index].streams, &none, streams))
		return tensor_fail(EBUSY, "register_streams: %s has streams",
				   private_devices[d.index].name);
	return 0;
}

const char *device_name(tensor_device d, char *buf, size_t size)
{
	if (d.type == TENSOR_CPU)
		snprintf(buf, size, "cpu");
	else if (d.type == TENSOR_CUDA)
		snprintf(buf, size, "cuda:%d", d.index);
	else if (d.type == TENSOR_PRIVATE && d.index < private_count)
		snprintf(buf, size, "%s", private_devices[d.index].name);
	else
		snprintf(buf, size, "%d:%d", d.type, d.index);
	return buf;
}
