// SPDX-License-Identifier: LGPL-2.1-only OR MIT
#include "fail.h"

#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static __thread long left; /* allocations until one fails; 0: none fails */
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

void fail_without_caches(char **argv)
{
	if (getenv("TENSOR_DEBUG"))
		return;
	setenv("TENSOR_DEBUG", "1", 1);
	execv("/proc/self/exe", argv);
}

#if defined(__SANITIZE_THREAD__)

const bool fail_possible = false;

void fail_spare_others(void)
{
}

#else

const bool fail_possible = true;

/*
 * The names of the real functions where the program defines malloc(): the sanitizer's or glibc's.
 */
#if defined(__SANITIZE_ADDRESS__)
#define real_malloc   __interceptor_malloc
#define real_calloc   __interceptor_calloc
#define real_realloc  __interceptor_realloc
#define real_memalign __interceptor_memalign
#else
#define real_malloc   __libc_malloc
#define real_calloc   __libc_calloc
#define real_realloc  __libc_realloc
#define real_memalign __libc_memalign
#endif
void *real_malloc(size_t size);
void *real_calloc(size_t n, size_t size);
void *real_realloc(void *p, size_t size);
void *real_memalign(size_t align, size_t size);

/* Libraries that do not check the result of malloc(). */
static const char *const foreign_names[] = {
	"libdnnl", "libgomp", "libstdc++", "liblapack", "libblas", "libopenblas", "libgfortran",
};

static struct {
	uintptr_t from, to;
} foreign[16];
static int foreign_count;

static int note_foreign(struct dl_phdr_info *info, size_t size, void *unused)
{
	for (size_t i = 0; i < sizeof(foreign_names) / sizeof(*foreign_names); i++) {
		if (!strstr(info->dlpi_name, foreign_names[i]))
			continue;
		for (int k = 0; k < info->dlpi_phnum && foreign_count < 16; k++) {
			const ElfW(Phdr) *p = &info->dlpi_phdr[k];

			if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
				continue;
			foreign[foreign_count].from = info->dlpi_addr + p->p_vaddr;
			foreign[foreign_count++].to = info->dlpi_addr + p->p_vaddr + p->p_memsz;
		}
	}
	return 0;
}

void fail_spare_others(void)
{
	foreign_count = 0;
	dl_iterate_phdr(note_foreign, NULL);
}

static bool is_foreign(const void *caller)
{
	for (int i = 0; i < foreign_count; i++)
		if ((uintptr_t)caller >= foreign[i].from && (uintptr_t)caller < foreign[i].to)
			return true;
	return false;
}

static bool out_of_memory(const void *caller)
{
	if (!left || is_foreign(caller) || --left)
		return false;
	failed = true;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return out_of_memory(__builtin_return_address(0)) ? NULL : real_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return out_of_memory(__builtin_return_address(0)) ? NULL : real_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return out_of_memory(__builtin_return_address(0)) ? NULL : real_realloc(p, size);
}

void *aligned_alloc(size_t align, size_t size)
{
	return out_of_memory(__builtin_return_address(0)) ? NULL : real_memalign(align, size);
}

int posix_memalign(void **p, size_t align, size_t size)
{
	*p = out_of_memory(__builtin_return_address(0)) ? NULL : real_memalign(align, size);
	return *p ? 0 : ENOMEM;
}

#if defined(__SANITIZE_ADDRESS__)
/*
 * Allocations of the dynamic linker for libraries that stay open. LeakSanitizer finds them by their
 * caller, which is the malloc() above.
 */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_options(void);

const char *__lsan_default_options(void)
{
	return "print_suppressions=0";
}

const char *__lsan_default_suppressions(void)
{
	return "leak:ld-linux-x86-64.so\n";
}
#endif

#endif
