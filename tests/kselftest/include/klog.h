/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Checks of the kernel log. A use after free does not always cause an error that a program sees:
 * the report of KASAN, or of an oops in another task, may be its only sign.
 */
#ifndef TENSOR_KSELFTEST_KLOG_H
#define TENSOR_KSELFTEST_KLOG_H

#include "device.h"

/* The current end of the log, for klog_clean(). */
HELPER int klog_begin(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		lseek(fd, 0, SEEK_END);
	return fd;
}

/* Whether no record since klog_begin() reports a fault; prints the first record that does. */
HELPER bool klog_clean(int fd)
{
	static const char *const bad[] = {
		"BUG:",
		"WARNING:",
		"Oops",
		"general protection",
		"KASAN",
		"Bad page",
		"Busy inodes",
		"refcount_t",
		"list_del corruption",
		"list_add corruption",
	};
	char record[8192];
	unsigned int i;
	ssize_t n;

	while ((n = read(fd, record, sizeof(record) - 1)) > 0 || errno == EPIPE) {
		record[n > 0 ? n : 0] = 0;
		for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			if (!strstr(record, bad[i]))
				continue;
			fprintf(stderr, "# %s",
				strchr(record, ';') ? strchr(record, ';') + 1 : record);
			return false;
		}
	}
	return true;
}

#endif /* TENSOR_KSELFTEST_KLOG_H */
