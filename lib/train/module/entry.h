/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Parameters and buffers for layers. */
#ifndef TRAIN_MODULE_ENTRY_H
#define TRAIN_MODULE_ENTRY_H

#include "train/module/tree.h"

/* A parameter or buffer as its first use makes it. */
struct new_entry {
	enum node_kind kind;
	tensor_ints sizes;
	enum tensor_dtype dtype; /* 0: the tree's */
	tensor_init_fn init;	 /* NULL: zeros */
	void *ctx;
};

/* The tensor at a path, borrowed; NULL with an error of `op`. */
tensor *module_entry(tensor_module *m, const char *op, const char *path, const struct new_entry *e);

/* -EINVAL with "OP: 'PATH' is SIZES, but WHICH has ..." unless t has these sizes. */
int entry_check_sizes(const char *op, const struct module_node *node, const tensor *t,
		      tensor_ints sizes, const char *which);

#endif
