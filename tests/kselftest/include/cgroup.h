/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * A memory cgroup for a test: version 2, mounted at /sys/fs/cgroup with the memory controller
 * enabled.
 *
 * The core runs the OOM killer when a page fault, an open() or a fork() cannot be charged. A test
 * that fills its cgroup therefore faults in all of its pages before (fault_in_process()), and does
 * nothing in the cgroup except what it tests.
 */
#ifndef TENSOR_KSELFTEST_CGROUP_H
#define TENSOR_KSELFTEST_CGROUP_H

#include <sys/mman.h>

#include "device.h"

#define CGROUP	    "/sys/fs/cgroup/tensor-test"
#define CGROUP_ROOT "/sys/fs/cgroup"
#define STACK	    (256 * KIB)

/* Retries, because its processes may still be exiting. */
HELPER void cgroup_remove(void)
{
	int tries;

	for (tries = 0; rmdir(CGROUP) && errno == EBUSY && tries < 100; tries++)
		sleep_ms(50);
}

/*
 * @max: limit in bytes, or NULL for none. Removes a cgroup that a failed test has left. Returns 0
 * or -errno.
 */
HELPER int cgroup_make(const char *max)
{
	cgroup_remove();
	if (mkdir(CGROUP, 0755))
		return -errno;
	return max ? write_text(CGROUP "/memory.max", max) : 0;
}

/* Moves the calling process into the cgroup. */
HELPER int cgroup_enter(void)
{
	return write_text(CGROUP "/cgroup.procs", "0");
}

/*
 * An fd to leave the cgroup with: write "0" to it. Opened before entering, since an open() in a
 * full cgroup may kill the process.
 */
HELPER int cgroup_leave_open(void)
{
	return open(CGROUP_ROOT "/cgroup.procs", O_WRONLY | O_CLOEXEC);
}

HELPER int64_t cgroup_bytes(void)
{
	char text[64];

	return atoll(read_text(CGROUP "/memory.current", text, sizeof(text)));
}

/* Number of processes in the cgroup that the OOM killer has killed. */
HELPER int64_t cgroup_kills(void)
{
	return read_number(CGROUP "/memory.events", "oom_kill");
}

/* Faults in every page of this process, and the stack that it may need. */
HELPER int fault_in_process(void)
{
	volatile char stack[STACK];
	uint64_t i;

	for (i = 0; i < STACK; i += PAGE) {
		stack[i] = 1;
		(void)stack[i];
	}
	return mlockall(MCL_CURRENT) ? -errno : 0;
}

/*
 * Runs @work in a child in a cgroup of its own. Returns the result of @work, -signal if the child
 * was killed, or less than -1000 if the cgroup could not be made. @kills: NULL, or see
 * cgroup_kills().
 */
HELPER int in_cgroup_kills(const char *max, int (*work)(const void *arg), const void *arg,
			   int64_t *kills)
{
	int status;
	pid_t pid;

	if (cgroup_make(max)) {
		cgroup_remove();
		return -1001;
	}
	pid = fork();
	if (!pid)
		_exit(fault_in_process() || cgroup_enter() ? 99 : work(arg));
	status = reap(pid);
	if (kills)
		*kills = cgroup_kills();
	cgroup_remove();
	return status;
}

HELPER int in_cgroup(const char *max, int (*work)(const void *arg))
{
	return in_cgroup_kills(max, work, NULL, NULL);
}

#endif /* TENSOR_KSELFTEST_CGROUP_H */
