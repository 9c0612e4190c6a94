/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Lists of the nodes of a module. */
#ifndef TRAIN_MODULE_LIST_H
#define TRAIN_MODULE_LIST_H

#include "train/module/tree.h"

/* The node after `node` (NULL: the first) of all nodes below top that are no modules; NULL at the end.
 * In the order of PyTorch's state dict: parameters, then others, then those of the children. */
struct module_node *module_next_node(const tensor_module *top, const struct module_node *node);

/* A list of m, an enum module_list or TENSOR_MODULE_*, which m owns until the next call: its length or
 * -ENOMEM with an error of `op`. named and tensors may be NULL. */
int64_t module_list(tensor_module *m, const char *op, unsigned list,
		    const struct tensor_named **named, tensor *const **tensors);

#endif
