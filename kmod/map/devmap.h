/* SPDX-License-Identifier: GPL-2.0-only */
/* Mappings of a buffer by devices and by the kernel. */
#ifndef TENSOR_DEVMAP_H
#define TENSOR_DEVMAP_H

#include <linux/dma-direction.h>

#include "../buffer/buf.h"

struct device;
struct sg_table;

int tensor_span_pin(const struct tensor_hold *hold, struct tensor_span *span);
void tensor_span_unpin(struct tensor_buf *buf, struct tensor_span *span, bool dirty);

struct sg_table *tensor_devmap_new(const struct tensor_hold *hold, struct device *dev,
				   enum dma_data_direction dir);
void tensor_devmap_free(struct sg_table *sgt);
bool tensor_devmap_any(const struct tensor_hold *hold);
void tensor_devmap_sync(const struct tensor_hold *hold, bool for_cpu);

#endif /* TENSOR_DEVMAP_H */
