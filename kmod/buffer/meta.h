/* SPDX-License-Identifier: GPL-2.0-only */
/* Descriptors: the dtype and shape of a buffer's content. */
#ifndef TENSOR_META_H
#define TENSOR_META_H

#include "buf.h"

void tensor_desc_get_part(const struct tensor_hold *hold, struct tensor_desc *desc);
int tensor_desc_set(struct tensor_buf *buf, const struct tensor_desc *desc);

#endif /* TENSOR_META_H */
