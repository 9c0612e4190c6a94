/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Devices other than the CPU: their allocators and plugins. */
#ifndef TENSOR_DEVICES_H
#define TENSOR_DEVICES_H

#include "base/compiler.h"

#include <tensor/dispatch.h>

/* The device's allocator; loads its plugin at first use. NULL with the error set. */
const struct tensor_allocator *device_allocator(tensor_device device);
/* The device's streams; NULL if it has none. Loads no plugin. */
const struct tensor_streams *device_streams(tensor_device device);
const char *device_name(tensor_device device, char *buf, size_t size); /* "cuda:0" */

struct tensor_cuda_usage;

/* Functions of libtensor_cuda.so besides its kernels; they implement <tensor/cuda.h>. */
struct cuda_plugin {
	const struct tensor_allocator *allocator;
	bool (*usable)(void);
	int (*device_count)(void);
	int (*set_stream)(int device, void *stream);
	void *(*current_stream)(int device);
	int (*synchronize)(int device);
	bool (*set_nonblocking)(bool nonblocking);
	int (*memory)(int device, struct tensor_cuda_usage *memory);
	int (*memory_trim)(int device);
	const struct tensor_streams *streams;
};

const struct tensor_allocator *cuda_allocator(void);
const struct tensor_streams *cuda_streams(void);
/* For the plugin's constructor: its table, or NULL and the reason. */
int tensor_register_cuda(const struct cuda_plugin *plugin, const char *error);

#endif
