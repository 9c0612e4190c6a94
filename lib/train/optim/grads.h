/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* The gradients of a list of parameters. */
#ifndef TENSOR_TRAIN_GRADS_H
#define TENSOR_TRAIN_GRADS_H

#include "core/tensor_impl.h"

#include <tensor/optim.h>

/* Borrowed gradients of the parameters that have one, in a list that train_grads_free() frees. 0, or -errno and an
 * empty list. */
int train_grads(const char *caller, tensor_list params, tensor_list *grads);
void train_grads_free(tensor_list *grads);

#endif
