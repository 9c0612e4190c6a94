/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* This process's open /dev/tensor, and functions shared by the files of the device provider. */
#ifndef TENSOR_DEVICE_FILE_H
#define TENSOR_DEVICE_FILE_H

#include "storage/provider/provider.h"

#include <linux/tensor.h>
#include <sys/ioctl.h>

/*
 * The fd of the device, opened if necessary, and the number of the open; or -errno. Valid until
 * fork().
 */
int device_file(uint32_t *serial);
/* The fd of the open that a handle belongs to; -ESTALE if that was the parent's. */
int device_file_of(uint32_t serial);
/* ioctl(), repeated after signals. 0 or -errno. */
int device_call(int fd, unsigned long request, void *arg);
/* INFO of a handle, or of a buffer fd with handle 0. */
int device_info(int fd, uint32_t handle, struct tensor_info *info);
/* A new close-on-exec fd of a handle; flags: TENSOR_EXPORT_*. */
int device_export_handle(int fd, uint32_t handle, unsigned rights, unsigned flags);
void device_close_handle(int fd, uint32_t handle);
/* SYNC with the timeout of tensor_buffer_sync(). -EINTR after a signal. */
int device_sync_handle(int fd, uint32_t handle, unsigned flags, int64_t timeout_ns);
/* st_dev of all buffers; 0 before the first buffer. */
uint64_t device_number(void);
/* Sets the error that the device is not open, for public functions. */
int device_file_fail(const char *function, int err);

/* The fd for ioctls of a buffer: the device with *handle, or the buffer fd with 0. */
int device_target(const struct tensor_buffer *b, uint32_t *handle);
/* The fd of the open that b->handle belongs to; -EACCES if b has no handle. */
int device_holder(const struct tensor_buffer *b);

/* Functions of the provider in other files than device.c. */
int device_seal(struct tensor_buffer *b);
int device_revoke(struct tensor_buffer *b);
int device_purgeable(struct tensor_buffer *b, bool purgeable);
int device_sync(struct tensor_buffer *b, unsigned flags, int64_t timeout_ns);
int device_wrote(struct tensor_buffer *b);
int device_generation(const struct tensor_buffer *b, uint64_t *n);
int device_buffer_info(const struct tensor_buffer *b, struct tensor_buffer_info *info);

#endif
