// SPDX-License-Identifier: LGPL-2.1-only OR MIT
#include "fail.h"

#include <errno.h>
#include <stdlib.h>

static __thread long left; /* allocations until one fails; 0: off */
static __thread bool failed;

void fail_at(long n)
{
	failed = false;
	left = n;
}

bool fail_end(void)
{
	left = 0;
	return failed;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

const bool fail_possible = false;

#else

const bool fail_possible = true;

/* glibc's own, by the names that stay when a program has a malloc. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);

static bool out_of_memory(void)
{
	if (!left || --left)
		return false;
	failed = true;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return out_of_memory() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return out_of_memory() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return out_of_memory() ? NULL : __libc_realloc(p, size);
}

void *aligned_alloc(size_t align, size_t size)
{
	return out_of_memory() ? NULL : __libc_memalign(align, size);
}

int posix_memalign(void **p, size_t align, size_t size)
{
	*p = out_of_memory() ? NULL : __libc_memalign(align, size);
	return *p ? 0 : ENOMEM;
}

#endif
