/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Memory that runs out: the C library's allocation fails once, at a chosen call of this thread. */
#ifndef FUZZ_FAIL_H
#define FUZZ_FAIL_H

#include <stdbool.h>

/* Is it built with a malloc that is ours? A sanitizer has its own. */
extern const bool fail_possible;
/* Call it when all libraries are there: allocations of oneDNN and LAPACK do not fail. */
void fail_spare_others(void);
/* The nth allocation from now on fails; 0: none does. */
void fail_at(long n);
/* Ends it; did one fail? */
bool fail_end(void);

#endif
