/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Fault injection: one allocation of the C library fails, chosen by its number in this thread. */
#ifndef FUZZ_FAIL_H
#define FUZZ_FAIL_H

#include <stdbool.h>

/* False where the sanitizer's malloc() cannot be replaced. */
extern const bool fail_possible;
/* Call it first in main(): starts the program again with TENSOR_DEBUG=1. Otherwise tensors would use blocks that the thread
 * has cached, without an allocation. */
void fail_without_caches(char **argv);
/* Call it after all libraries are loaded: allocations of oneDNN and LAPACK never fail. */
void fail_spare_others(void);
/* Lets the nth allocation of this thread from now on fail; 0: none. */
void fail_at(long n);
/* Ends fault injection. Returns whether an allocation failed. */
bool fail_end(void);

#endif
