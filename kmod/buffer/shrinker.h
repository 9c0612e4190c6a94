/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The shrinker of purgeable buffers.
 */
#ifndef TENSOR_SHRINKER_H
#define TENSOR_SHRINKER_H

#include <linux/init.h>

int __init tensor_shrinker_init(void);
void tensor_shrinker_exit(void);

#endif /* TENSOR_SHRINKER_H */
