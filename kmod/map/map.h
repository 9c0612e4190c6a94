/* SPDX-License-Identifier: GPL-2.0-only */
/* Mappings of a buffer by processes. */
#ifndef TENSOR_MAP_H
#define TENSOR_MAP_H

#include "../buffer/buf.h"

int tensor_map_check(const struct tensor_hold *hold, struct vm_area_struct *vma);
int tensor_map(const struct tensor_hold *hold, struct vm_area_struct *vma);
int tensor_map_through(const struct tensor_hold *hold, struct vm_area_struct *vma, u64 client);

#endif /* TENSOR_MAP_H */
