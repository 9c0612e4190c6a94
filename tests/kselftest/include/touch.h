/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* Access to memory that may not be accessible, in any thread: returns the signal that it raises. */
#ifndef TENSOR_KSELFTEST_TOUCH_H
#define TENSOR_KSELFTEST_TOUCH_H

#include <setjmp.h>

#include "device.h"

static __thread sigjmp_buf touch_back;

HELPER void touch_caught(int sig)
{
	siglongjmp(touch_back, sig);
}

HELPER void touch_begin(void)
{
	struct sigaction action = { .sa_handler = touch_caught, .sa_flags = SA_NODEFER };

	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
}

/* Reads a byte: 0 or the signal. */
HELPER int touch_read(const volatile void *at)
{
	int sig = sigsetjmp(touch_back, 0);

	if (!sig)
		(void)*(const volatile char *)at;
	return sig;
}

/* Writes a byte: 0 or the signal. */
HELPER int touch_write(volatile void *at, char value)
{
	int sig = sigsetjmp(touch_back, 0);

	if (!sig)
		*(volatile char *)at = value;
	return sig;
}

/* Number of pages in the range that raise SIGBUS. */
HELPER uint64_t pages_raising_sigbus(const volatile void *at, uint64_t bytes)
{
	uint64_t lost = 0, i;

	for (i = 0; i < bytes; i += PAGE)
		lost += touch_read((const volatile char *)at + i) == SIGBUS;
	return lost;
}

/* Number of pages in the range that have an entry in this process's page table. */
HELPER uint64_t pages_present(const void *at, uint64_t bytes)
{
	uint64_t entry, n = 0, i;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	for (i = 0; i < bytes / PAGE; i++) {
		off_t where = ((unsigned long)at / PAGE + i) * sizeof(entry);

		n += pread(fd, &entry, sizeof(entry), where) == sizeof(entry) && entry >> 63;
	}
	close(fd);
	return n;
}

#endif /* TENSOR_KSELFTEST_TOUCH_H */
