/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The devices besides the CPU: who gives them memory, and plugins that bring them. */
#ifndef TENSOR_DEVICES_H
#define TENSOR_DEVICES_H

#include "../internal.h"

/* The device's allocator; loads its plugin at first use. NULL with the error set. */
const struct tensor_allocator *device_allocator(tensor_device device);
const char *device_name(tensor_device device, char *buf, size_t size); /* "cuda:0" */

#endif
