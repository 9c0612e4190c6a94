/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ioctls.
 */
#ifndef TENSOR_IOCTL_H
#define TENSOR_IOCTL_H

struct file;

long tensor_ioctl_device(struct file *file, unsigned int cmd, unsigned long arg);
long tensor_ioctl_buf(struct file *file, unsigned int cmd, unsigned long arg);

#endif /* TENSOR_IOCTL_H */
