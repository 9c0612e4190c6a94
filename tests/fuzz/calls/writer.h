/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Another writer of the arguments' memory, as a process can be that shares it: a thread that
 * changes an element and restores it repeatedly while operators read.
 */
#ifndef FUZZ_WRITER_H
#define FUZZ_WRITER_H

#include <tensor/tensor.h>

#include <stdbool.h>

/* Set: tensors of arguments are shareable and written to. Clear: the functions below do nothing. */
extern bool writer_runs;

void writer_start(void);
/* Starts writing to the memory of t, until writer_forget(). Call that before t is released. */
void writer_watch(tensor *t);
void writer_forget_all(void);

#endif
