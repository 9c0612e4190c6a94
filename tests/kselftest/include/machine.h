/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/* State of the machine: small files of /proc and /sys, page frames, free memory, time. */
#ifndef TENSOR_KSELFTEST_MACHINE_H
#define TENSOR_KSELFTEST_MACHINE_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KIB		1024ULL
#define MIB		(1024 * KIB)
#define PAGE		4096ULL
#define HUGE		(2 * MIB)
#define PARAM(name)	"/sys/module/tensor/parameters/" name
#define LIMIT_FILE	PARAM("limit_bytes")
#define USER_LIMIT_FILE PARAM("user_limit_bytes")

#define HELPER static inline __attribute__((unused))

/* Reads a small file; "" if it cannot be read. */
HELPER char *read_text(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got;

	while (fd >= 0 && n < room - 1 && (got = read(fd, text + n, room - 1 - n)) > 0)
		n += got;
	text[n] = 0;
	if (fd >= 0)
		close(fd);
	return text;
}

HELPER int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

/* The number after "key" in a file with lines "key ... number"; -1 if there is none. */
HELPER int64_t read_number(const char *path, const char *key)
{
	char line[512];
	int64_t value = -1;
	FILE *f = fopen(path, "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, strlen(key)))
			continue;
		value = strtoll(line + strlen(key) + strspn(line + strlen(key), ": \t"), NULL, 10);
		break;
	}
	if (f)
		fclose(f);
	return value;
}

/* A field of /proc/self/smaps for the mapping that contains an address, in bytes; -1 if none. */
HELPER int64_t smaps_bytes(const void *at, const char *key)
{
	unsigned long first, last, want = (unsigned long)at;
	char line[512];
	bool here = false;
	int64_t value = -1;
	FILE *f = fopen("/proc/self/smaps", "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &first, &last) == 2)
			here = first <= want && want < last;
		else if (here && !strncmp(line, key, strlen(key)))
			value = strtoll(line + strlen(key) + 1, NULL, 10) * 1024;
	}
	if (f)
		fclose(f);
	return value;
}

/*
 * Bytes of a mapping that are mapped by PMDs, after touching all of its pages. Returns the maximum
 * of several tries: 6.1 does not count an entry that NUMA balancing has made inaccessible until it
 * is touched again.
 */
HELPER int64_t pmd_mapped(const volatile void *at, uint64_t bytes)
{
	int64_t most = -1, now;
	uint64_t i;
	int look;

	for (look = 0; look < 5; look++) {
		for (i = 0; i < bytes; i += PAGE)
			(void)((const volatile char *)at)[i];
		now = smaps_bytes((const void *)at, "FilePmdMapped:");
		if (now > most)
			most = now;
	}
	return most;
}

/* The frame number of a page of this process, 0 if it is not present. Needs root. */
HELPER uint64_t page_frame(const void *at)
{
	uint64_t entry = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	if (pread(fd, &entry, sizeof(entry), (unsigned long)at / PAGE * sizeof(entry)) < 0)
		entry = 0;
	close(fd);
	return entry >> 63 ? entry & ((1ULL << 55) - 1) : 0;
}

/* A memfd that IMPORT accepts because it cannot shrink, with further seals: its fd or -errno. */
HELPER int memfd_new(uint64_t bytes, unsigned int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING), err;

	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, bytes) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | seals))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

HELPER uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000ULL + t.tv_nsec / 1000;
}

HELPER void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* Free memory in KiB, including the lists of the CPUs. */
HELPER int64_t memory_free_now(void)
{
	FILE *f = fopen("/proc/zoneinfo", "re");
	long long pages = 0, n;
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, " nr_free_pages %lld", &n) == 1 ||
		    sscanf(line, " count: %lld", &n) == 1)
			pages += n;
	}
	if (f)
		fclose(f);
	return pages * (PAGE / KIB);
}

/* The same after dropping caches and the module's pool. */
HELPER int64_t memory_free(void)
{
	write_text("/proc/sys/vm/drop_caches", "3");
	return memory_free_now();
}

/* Waits until at least @free_before minus @slack KiB are free: whether that happened. */
HELPER bool memory_is_freed(int64_t free_before, int64_t slack)
{
	int tries;

	for (tries = 0; memory_free() < free_before - slack; tries++) {
		if (tries == 20)
			return false;
		sleep_ms(250);
	}
	return true;
}

/*
 * Free pages without caches and without the module's pool, which is emptied by setting its bound to
 * 0. Waits for memory that is freed after a grace period, and for pages that the pool's thread is
 * zeroing: drop_caches does not free these.
 */
HELPER int64_t pages_free(void)
{
	char bound[32];
	int64_t pages = 0, again;
	int i;

	read_text(PARAM("pool_bytes"), bound, sizeof(bound));
	write_text(PARAM("pool_bytes"), "0");
	for (i = 0; i < 8; i++) {
		sleep_ms(250);
		again = memory_free() / (PAGE / KIB);
		if (again > pages)
			pages = again;
	}
	write_text(PARAM("pool_bytes"), bound);
	return pages;
}

HELPER void show_text(const char *path)
{
	char text[8192], *rest = read_text(path, text, sizeof(text)), *line;

	while ((line = strsep(&rest, "\n")))
		printf("# %s\n", line);
}

/*
 * The tolerance without a leak: the allocators keep half-filled slabs and per-CPU lists. A debug
 * kernel stores each new call stack permanently and keeps freed memory in quarantine, up to 1/32 of
 * memory; there kmemleak is exact. A page lost in every tenth round exceeds the tolerance.
 */
HELPER bool pages_agree(int64_t before, int64_t after, unsigned long times)
{
	int64_t slack = 512;

	if (!access("/sys/kernel/debug/kmemleak", F_OK))
		slack = 2048 + sysconf(_SC_PHYS_PAGES) / 32;
	if (slack < (int64_t)times / 10)
		slack = times / 10;

	printf("# pages free before %lld, after %lld: %lld missing, %lld may be\n",
	       (long long)before, (long long)after, (long long)(before - after), (long long)slack);
	if (after >= before - slack)
		return true;
	show_text("/proc/meminfo");
	return false;
}

/* Keeps this thread on one CPU, and so on one NUMA node: 0 or -errno. */
HELPER int stay_on_cpu(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one) ? -errno : 0;
}

HELPER int count_fds(void)
{
	int n = 0, fd;

	for (fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Pages of the largest block of the buddy allocator: /proc/buddyinfo has a column per order. */
HELPER uint64_t largest_block(void)
{
	char text[4096], *line = strstr(read_text("/proc/buddyinfo", text, sizeof(text)), "zone");
	uint64_t n = 0;

	line = strtok(line, "\n");
	for (line = strtok(line, " "); line; line = strtok(NULL, " "))
		n++;
	/* the word "zone" and its name are columns as well */
	return 1ULL << (n - 3);
}

#endif /* TENSOR_KSELFTEST_MACHINE_H */
