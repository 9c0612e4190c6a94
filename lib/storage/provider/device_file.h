/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* This process's open /dev/tensor, and what the files of the device provider share. */
#ifndef TENSOR_DEVICE_FILE_H
#define TENSOR_DEVICE_FILE_H

#include "storage/provider/provider.h"

#include <linux/tensor.h>
#include <sys/ioctl.h>

/* This process's open device, opened if it is not, and which one it is; or -errno. The fd is valid
 * until fork(). */
int device_file(uint32_t *serial);
/* The open device in which a handle is a number; -ESTALE when it was a parent's. */
int device_file_of(uint32_t serial);
/* ioctl(); 0 or -errno. Repeats a call that a signal interrupted. */
int device_call(int fd, unsigned long request, void *arg);
/* INFO of a handle, or of a buffer fd with handle 0. */
int device_info(int fd, uint32_t handle, struct tensor_info *info);
/* A new close-on-exec fd of a handle; `flags` are TENSOR_EXPORT_*. */
int device_export_handle(int fd, uint32_t handle, unsigned rights, unsigned flags);
void device_close_handle(int fd, uint32_t handle);
/* SYNC, with a timeout as tensor_buffer_sync() has it. -EINTR: a signal. */
int device_sync_handle(int fd, uint32_t handle, unsigned flags, int64_t timeout_ns);
/* st_dev of all buffers; 0 before the first is known. */
uint64_t device_number(void);
/* Records, at a public edge, why the open device is not there. */
int device_file_fail(const char *function, int err);

/* Where to call for a buffer: the device with *handle, or its own fd with 0. */
int device_target(const struct tensor_buffer *b, uint32_t *handle);
/* The device in which b->handle is a number; -EACCES: it has none. */
int device_holder(const struct tensor_buffer *b);

/* The provider's functions that are not in device.c. */
int device_seal(struct tensor_buffer *b);
int device_revoke(struct tensor_buffer *b);
int device_purgeable(struct tensor_buffer *b, bool purgeable);
int device_sync(struct tensor_buffer *b, unsigned flags, int64_t timeout_ns);
int device_buffer_info(const struct tensor_buffer *b, struct tensor_buffer_info *info);

#endif
