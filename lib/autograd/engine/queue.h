/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A ready queue for each device other than the CPU, and the thread that runs its nodes. Both are shared by all backwards
 * of the process. The thread starts with the first backward that needs it, and sleeps between them. A child of fork()
 * has none and starts its own.
 */
#ifndef TENSOR_AUTOGRAD_QUEUE_H
#define TENSOR_AUTOGRAD_QUEUE_H

#include "autograd/engine/task.h"

struct device_queue;

/* Runs a node on the thread of its device. */
typedef void (*queue_run)(struct task *k, uint32_t index);

/* The queue of a device, with a thread. NULL with the error set: EAGAIN if the thread cannot be started. */
struct device_queue *queue_start(tensor_device device, queue_run run);
/* The queue of a device for which queue_start() succeeded. */
struct device_queue *queue_of(tensor_device device);
/* Adds a node, in the order of heap.h. 0, or -errno. */
int queue_push(struct device_queue *q, struct task *k, uint32_t index);
/* Removes the nodes of a task from all queues. Returns their number. */
uint32_t queue_drop(const struct task *k);

/*
 * The thread of the device, which is the caller, is about to wait for another device: another thread serves the queue
 * until queue_return(). 0, or -errno with the error set if it cannot be started.
 */
int queue_lend(struct device_queue *q);
void queue_return(struct device_queue *q);

#endif
