/* SPDX-License-Identifier: GPL-2.0-only */
/* Import of dma-bufs that other drivers export. */
#ifndef TENSOR_IMPORT_DMABUF_H
#define TENSOR_IMPORT_DMABUF_H

#include "../buffer/buf.h"

struct dma_buf;

int tensor_import_dmabuf(struct tensor_owner *hint, u64 client, struct dma_buf *dmabuf,
			 struct tensor_hold *hold);
struct file *tensor_imported_dmabuf(const struct tensor_hold *hold);

#endif /* TENSOR_IMPORT_DMABUF_H */
