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
 * struct buf_world - a buffer, in memory that all processes share
 * @bytes: size
 * @ino: inode number
 * @stamp: value of the words on its pages
 * @handles: number of different handles in each process
 * @want: the expected counts of INFO
 */
struct buf_world {
	uint64_t bytes, ino, stamp;
	uint32_t handles[PROCS];
	struct counts want;
};

/**
 * struct world - memory shared by the walk and its processes
 * @buf: the buffers
 * @stamps: the last stamp that was used
 * @name: name of the sequence; becomes that of the process, so that the kernel log contains it
 * @wrong: description of the last failure
 */
struct world {
	struct buf_world buf[BUFS];
	uint64_t stamps;
	char name[16];
	char wrong[128];
};

/**
 * struct worker - a process
 * @pid: process ID
 * @sock: socket for orders and answers
 */
struct worker {
	pid_t pid;
	int sock;
};

int worker_start(struct worker *w, struct world *world, unsigned int proc, const int peer[2]);
void worker_kill(struct worker *w);
int worker_order(struct worker *w, const struct step *steps, int n);

#endif
