/* SPDX-License-Identifier: GPL-2.0-only */
/* Dma-bufs of a buffer. */
#ifndef TENSOR_DMABUF_H
#define TENSOR_DMABUF_H

#include "../buffer/buf.h"

struct dma_buf;

struct file *tensor_dmabuf_file(const struct tensor_hold *hold);
struct dma_buf *tensor_dmabuf_of(struct file *file, int fd);
void tensor_dmabuf_count(const struct dma_buf *dmabuf);
bool tensor_dmabuf_hold(const struct dma_buf *dmabuf, struct tensor_hold *hold);

#endif /* TENSOR_DMABUF_H */
