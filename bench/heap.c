// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A library that is preloaded into a benchmark. It counts the bytes of the program's blocks of 4 KiB and more; smaller ones are
 * mostly objects of an interpreter. glibc only.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

int64_t heap_bytes(int64_t *peak);

enum { LEAST = 4096 };

extern void *__libc_malloc(size_t n), *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n), *__libc_memalign(size_t align, size_t n);
extern void __libc_free(void *p);

static atomic_long live, most;

static void count(long n)
{
	long now = atomic_fetch_add(&live, n) + n, seen = atomic_load(&most);

	while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now))
		;
}

static size_t size_of(void *p)
{
	size_t n = p ? malloc_usable_size(p) : 0;

	return n < LEAST ? 0 : n;
}

static void *made(void *p)
{
	count((long)size_of(p));
	return p;
}

void *malloc(size_t n)
{
	return made(__libc_malloc(n));
}

void *calloc(size_t n, size_t size)
{
	return made(__libc_calloc(n, size));
}

void *memalign(size_t align, size_t n)
{
	return made(__libc_memalign(align, n));
}

void *aligned_alloc(size_t align, size_t n)
{
	return made(__libc_memalign(align, n));
}

int posix_memalign(void **out, size_t align, size_t n)
{
	void *p;

	if (align % sizeof(void *) || align & (align - 1))
		return EINVAL;
	p = made(__libc_memalign(align, n));
	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}

void *valloc(size_t n)
{
	return made(__libc_memalign((size_t)getpagesize(), n));
}

void *pvalloc(size_t n)
{
	size_t page = (size_t)getpagesize();

	return made(__libc_memalign(page, (n + page - 1) / page * page));
}

void *realloc(void *p, size_t n)
{
	size_t old = size_of(p);
	void *q = __libc_realloc(p, n);

	if (q || !n)
		count((long)size_of(q) - (long)old);
	return q;
}

void free(void *p)
{
	count(-(long)size_of(p));
	__libc_free(p);
}

/* Bytes now; the largest number since the last call is written to *peak. */
int64_t heap_bytes(int64_t *peak)
{
	long now = atomic_load(&live);

	*peak = atomic_exchange(&most, now);
	return now;
}
