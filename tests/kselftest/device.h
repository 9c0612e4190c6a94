/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * What the kernel selftests share: one short function an ioctl, and looks at the machine.
 *
 * Every function that can fail returns -errno, so that a test compares with the error it expects.
 */
#ifndef TENSOR_KSELFTEST_DEVICE_H
#define TENSOR_KSELFTEST_DEVICE_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/tensor.h>

#define KIB		1024ULL
#define MIB		(1024 * KIB)
#define PAGE		4096ULL
#define HUGE		(2 * MIB)
#define PARAM(name)	"/sys/module/tensor/parameters/" name
#define LIMIT_FILE	PARAM("limit_bytes")

#define HELPER		static inline __attribute__((unused))

HELPER int dev_open(void)
{
	int fd = open("/dev/tensor", O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

HELPER int dev_call(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) < 0 ? -errno : 0;
}

HELPER int dev_query(int dev, struct tensor_query *query)
{
	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	return dev_call(dev, TENSOR_IOC_QUERY, query);
}

HELPER uint64_t dev_used(int dev)
{
	struct tensor_query query;

	return dev_query(dev, &query) ? UINT64_MAX : query.used_bytes;
}

HELPER struct tensor_alloc alloc_args(uint64_t bytes)
{
	return (struct tensor_alloc){
		.size = sizeof(struct tensor_alloc), .bytes = bytes, .node = TENSOR_NODE_ANY,
	};
}

HELPER int dev_alloc(int dev, uint64_t bytes, struct tensor_alloc *alloc)
{
	*alloc = alloc_args(bytes);
	return dev_call(dev, TENSOR_IOC_ALLOC, alloc);
}

HELPER int dev_close(int dev, uint32_t handle)
{
	struct tensor_close arg = { .size = sizeof(arg), .handle = handle };

	return dev_call(dev, TENSOR_IOC_CLOSE, &arg);
}

/* fd is /dev/tensor with a handle, or a buffer fd with 0. */
HELPER int buf_info(int fd, uint32_t handle, struct tensor_info *info)
{
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	info->handle = handle;
	return dev_call(fd, TENSOR_IOC_INFO, info);
}

HELPER int buf_meta(int fd, uint32_t handle, uint32_t flags, struct tensor_desc *desc)
{
	struct tensor_meta meta = { .size = sizeof(meta), .flags = flags, .handle = handle };
	int err;

	if (flags & TENSOR_META_SET)
		meta.desc = *desc;
	err = dev_call(fd, TENSOR_IOC_META, &meta);
	if (!err && !(flags & TENSOR_META_SET))
		*desc = meta.desc;
	return err;
}

HELPER int buf_export(int dev, uint32_t handle, uint32_t flags)
{
	struct tensor_export arg = { .size = sizeof(arg), .flags = flags, .handle = handle };
	int err = dev_call(dev, TENSOR_IOC_EXPORT, &arg);

	return err ? err : arg.fd;
}

HELPER int buf_import(int dev, int fd, struct tensor_import *import)
{
	*import = (struct tensor_import){ .size = sizeof(*import), .fd = fd };
	return dev_call(dev, TENSOR_IOC_IMPORT, import);
}

/* A part of what the handle reaches. */
HELPER int buf_export_range(int dev, uint32_t handle, uint32_t flags, uint64_t offset,
			    uint64_t bytes)
{
	struct tensor_export arg = { .size = sizeof(arg), .flags = flags | TENSOR_EXPORT_RANGE,
				     .handle = handle, .offset = offset, .bytes = bytes };
	int err = dev_call(dev, TENSOR_IOC_EXPORT, &arg);

	return err ? err : arg.fd;
}

/* All seals that are set then, or -errno. fd is /dev/tensor with a handle, or a buffer fd with 0. */
HELPER int buf_seal(int fd, uint32_t handle, uint32_t seals)
{
	struct tensor_seal arg = { .size = sizeof(arg), .handle = handle, .seals = seals };
	int err = dev_call(fd, TENSOR_IOC_SEAL, &arg);

	return err ? err : (int)arg.seals;
}

HELPER int buf_revoke(int dev, uint32_t handle)
{
	struct tensor_revoke arg = { .size = sizeof(arg), .handle = handle };

	return dev_call(dev, TENSOR_IOC_REVOKE, &arg);
}

/* Whether it was purged, or -errno. */
HELPER int buf_advise(int dev, uint32_t handle, uint32_t advice)
{
	struct tensor_advise arg = { .size = sizeof(arg), .handle = handle, .advice = advice };
	int err = dev_call(dev, TENSOR_IOC_ADVISE, &arg);

	return err ? err : (int)arg.purged;
}

/* SYNC: 0 or -errno. fd is /dev/tensor with a handle, or a buffer fd with 0. */
HELPER int buf_sync(int fd, uint32_t handle, uint32_t flags, uint64_t deadline_ns)
{
	struct tensor_sync arg = { .size = sizeof(arg), .flags = flags, .handle = handle,
				   .deadline_ns = deadline_ns };

	return dev_call(fd, TENSOR_IOC_SYNC, &arg);
}

/* The handle, or -errno. */
HELPER int64_t buf_pin(int dev, const void *at, uint64_t bytes, uint32_t flags)
{
	struct tensor_pin arg = { .size = sizeof(arg), .flags = flags, .addr = (uintptr_t)at,
				  .bytes = bytes };
	int err = dev_call(dev, TENSOR_IOC_PIN, &arg);

	return err ? err : (int64_t)arg.handle;
}

/* A buffer as fd alone: no handle, no open device. */
HELPER int buf_new_fd(uint64_t bytes)
{
	struct tensor_alloc alloc;
	int dev = dev_open(), fd;

	if (dev < 0)
		return dev;
	fd = dev_alloc(dev, bytes, &alloc);
	if (!fd)
		fd = buf_export(dev, alloc.handle, TENSOR_EXPORT_CLOEXEC);
	close(dev);
	return fd;
}

HELPER void *map_shared(int fd, uint64_t bytes, int prot, uint64_t offset)
{
	return mmap(NULL, bytes, prot, MAP_SHARED, fd, offset);
}

HELPER bool all_bytes(const void *at, int value, uint64_t bytes)
{
	const unsigned char *p = at;

	return !bytes || (p[0] == value && !memcmp(p, p + 1, bytes - 1));
}

/*
 * Makes buffers of that size, which stay with the open device, and writes all over them: whoever
 * gets pages that somebody else still has, spoils them. 0, -EBADMSG for one that is not zeroed, or
 * -errno.
 */
HELPER int spoil_fresh(int dev, uint64_t bytes, int count)
{
	struct tensor_alloc alloc;
	void *at;
	int err;

	while (count--) {
		err = dev_alloc(dev, bytes, &alloc);
		if (err)
			return err;
		at = map_shared(dev, bytes, PROT_READ | PROT_WRITE, alloc.cookie);
		if (at == MAP_FAILED)
			return -errno;
		if (!all_bytes(at, 0, bytes))
			return -EBADMSG;
		memset(at, 0xee, bytes);
		munmap(at, bytes);
	}
	return 0;
}

/* mmap() for its error alone: 0 or -errno. */
HELPER int map_errno(int fd, uint64_t bytes, int prot, int flags, uint64_t offset)
{
	void *at = mmap(NULL, bytes, prot, flags, fd, offset);

	if (at == MAP_FAILED)
		return -errno;
	munmap(at, bytes);
	return 0;
}

/* The text of a small file, or "". */
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

/* The number behind "key" in a file of "key ... number" lines; -1 if there is none. */
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

/* A field of /proc/self/smaps for the mapping that holds an address, in bytes; -1 if none. */
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

/* The frame number of a present page of this process (root only), 0 if it is not present. */
HELPER uint64_t page_frame(const void *at)
{
	uint64_t entry = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	if (pread(fd, &entry, sizeof(entry), (unsigned long)at / PAGE * sizeof(entry)) < 0)
		entry = 0;
	close(fd);
	return entry >> 63 ? entry & ((1ULL << 55) - 1) : 0;
}

HELPER void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* Waits until all buffers of the machine have that many bytes; what a dead process held and a
 * message in flight are given back a moment after.
 */
HELPER bool used_becomes(int dev, uint64_t bytes)
{
	int tries;

	for (tries = 0; dev_used(dev) != bytes; tries++) {
		if (tries == 200)
			return false;
		sleep_ms(50);
	}
	return true;
}

/* Free memory in KiB as it is now, that in the lists of the CPUs included. */
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

/* The same without what the kernel keeps for later, the module's pool included. */
HELPER int64_t memory_free(void)
{
	write_text("/proc/sys/vm/drop_caches", "3");
	return memory_free_now();
}

/* Whether all but @slack KiB of what was free is free again, now or soon. */
HELPER bool memory_comes_back(int64_t free_before, int64_t slack)
{
	int tries;

	for (tries = 0; memory_free() < free_before - slack; tries++) {
		if (tries == 20)
			return false;
		sleep_ms(250);
	}
	return true;
}

HELPER int count_fds(void)
{
	int n = 0, fd;

	for (fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

HELPER int send_fd(int sock, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 'f';
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(sock, &msg, 0) < 0 ? -errno : 0;
}

HELPER int recv_fd(int sock)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	int fd;

	if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) < 1)
		return -EPIPE;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_type != SCM_RIGHTS)
		return -ENOMSG;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* How a child ended: its exit status, or -signal. */
HELPER int reap(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return -1000;
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

#endif /* TENSOR_KSELFTEST_DEVICE_H */
