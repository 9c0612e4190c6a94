/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* A process of the walk: executes the steps that it receives and checks all that it holds. */
#ifndef TENSOR_LIFETIMES_WORKER_H
#define TENSOR_LIFETIMES_WORKER_H

#include <sys/types.h>

#include "model.h"

/* Orders besides those of enum op. */
#define RECEIVE_FD     OPS
#define RECEIVE_DMABUF (OPS + 1)
#define LOOK	       (OPS + 2)

/**
 * struct buf_world - a buffer as all processes know it
 * @bytes: its size
 * @ino: its number
 * @stamp: what is written on its pages
 * @handles: in each process, those of different number
 * @want: what INFO shall say
 */
struct buf_world {
	uint64_t bytes, ino, stamp;
	uint32_t handles[PROCS];
	struct counts want;
};

/**
 * struct world - memory shared by the walk and its processes
 * @buf: the buffers
 * @stamps: the last stamp
 * @name: of the sequence, for the kernel log: it becomes the name of the process
 * @wrong: what the last order that failed was about
 */
struct world {
	struct buf_world buf[BUFS];
	uint64_t stamps;
	char name[16];
	char wrong[128];
};

/**
 * struct worker - a process
 * @pid: its number
 * @sock: where it gets orders and answers them
 */
struct worker {
	pid_t pid;
	int sock;
};

int worker_start(struct worker *w, struct world *world, unsigned int proc, const int peer[2]);
void worker_kill(struct worker *w);
int worker_order(struct worker *w, const struct step *steps, int n);

#endif
