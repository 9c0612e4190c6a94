/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Runs a task that has nodes on other devices than the CPU. */
#ifndef TENSOR_AUTOGRAD_DEVICES_H
#define TENSOR_AUTOGRAD_DEVICES_H

#include "autograd/engine/task.h"

/* After task_plan(): makes task->share if a node is on another device, and starts the threads. 0, or -errno. */
int devices_plan(struct task *k);
/* Runs the task to its end; no thread uses it afterwards. 0, or -errno. */
int devices_run(struct task *k, uint32_t nroots);

#endif
