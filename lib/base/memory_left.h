/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* A test before calls of libraries that end the program or never return when memory is missing. */
#ifndef TENSOR_MEMORY_LEFT_H
#define TENSOR_MEMORY_LEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

/* Whether n bytes can be mapped now. Not malloc(): free memory in its heap serves neither generated code nor mmap(). */
static inline bool memory_is_left(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return false;
	munmap(p, n);
	return true;
}

#endif
