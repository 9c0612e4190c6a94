/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /proc/PID/fdinfo.
 */
#ifndef TENSOR_FDINFO_H
#define TENSOR_FDINFO_H

struct file;
struct seq_file;

void tensor_fdinfo_client(struct seq_file *m, struct file *file);
void tensor_fdinfo_buf(struct seq_file *m, struct file *file);

#endif /* TENSOR_FDINFO_H */
