/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pseudo file system of the buffers' inodes.
 */
#ifndef TENSOR_FS_H
#define TENSOR_FS_H

#include "buf.h"

int tensor_fs_init(void (*evict)(struct tensor_buf *buf));
void tensor_fs_exit(void);
int tensor_fs_get(void);
void tensor_fs_put(void);
struct tensor_buf *tensor_fs_buf(u64 id, u64 bytes);
struct file *tensor_fs_open(struct tensor_buf *buf, bool write, const struct file_operations *fops);

#endif /* TENSOR_FS_H */
