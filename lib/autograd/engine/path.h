/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Weights of paths: the order in which several threads run the nodes of a task. */
#ifndef TENSOR_AUTOGRAD_PATH_H
#define TENSOR_AUTOGRAD_PATH_H

#include "autograd/engine/task.h"

/*
 * After task_plan(): for each state the weight of the heaviest path that begins with its node, over nodes that the task
 * needs. Allocated; NULL with the error set.
 */
double *heaviest_paths(const struct task *k);

#endif
