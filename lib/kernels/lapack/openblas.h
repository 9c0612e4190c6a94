/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * OpenBLAS as the LAPACK. A call of one of its functions takes a buffer of 128 MiB from a pool that never shrinks.
 * If the pool has none and the memory cannot be had, OpenBLAS tries again without end; a child that was forked while
 * another thread was in a call may wait for a lock that no thread releases; and the variant without threads computes
 * wrong numbers if two threads call it at once. So the buffers are allocated here, for a limited number of threads,
 * and a fork waits for the calls. Any other LAPACK needs none of this: then these functions do nothing.
 */
#ifndef TENSOR_OPENBLAS_H
#define TENSOR_OPENBLAS_H

/* Takes the functions of OpenBLAS if the library has them. Called once. */
void openblas_find(void *library);

/*
 * Around calls of LAPACK, not nested. Waits while as many threads as there are buffers are between begin and end.
 * Returns 0, -ENOMEM if there is memory for no buffer, -EDEADLK in a child that was forked during a call.
 */
int openblas_begin(void);
void openblas_end(void);

#endif
