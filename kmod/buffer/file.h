/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Open files on buffers.
 */
#ifndef TENSOR_FILE_H
#define TENSOR_FILE_H

#include "buf.h"
#include "registry.h"

/**
 * struct tensor_file - an open file on a buffer
 * @hold: its range and rights; borrows the reference of the file
 * @count: counter in the buffer that includes it, or NULL
 * @client: id of the client that gets no event when it is released; 0: none
 * @exported: its entry in the list of exports, if EXPORT made it
 */
struct tensor_file {
	struct tensor_hold hold;
	atomic_t *count;
	u64 client;
	struct tensor_exported exported;
};

void tensor_file_init(const struct file_operations *fops);
struct file *tensor_file_open(const struct tensor_hold *hold);
int tensor_file_list(struct file *file);
void tensor_file_count(struct file *file, atomic_t *count, u64 client);
void tensor_file_uncount(struct file *file);
void tensor_file_release(struct file *file);
bool tensor_file_hold(struct file *file, struct tensor_hold *hold);

#endif /* TENSOR_FILE_H */
