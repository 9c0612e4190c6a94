/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Another writer of the memory that arguments lie in, as a process with which it is shared could be: a
 * thread that changes an element and changes it back, again and again, while operators read.
 */
#ifndef FUZZ_WRITER_H
#define FUZZ_WRITER_H

#include <tensor/tensor.h>

#include <stdbool.h>

/* The tensors of arguments are shareable and written to. Without it the functions below do nothing. */
extern bool writer_runs;

void writer_start(void);
/* t's memory is written to until it is forgotten. Before the release. */
void writer_watch(tensor *t);
void writer_forget_all(void);

#endif
