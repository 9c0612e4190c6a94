/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Helpers of the kernel selftests: one short function per ioctl.
 *
 * Every function that can fail returns -errno, so that a test can compare it with the error that it
 * expects.
 */
#ifndef TENSOR_KSELFTEST_DEVICE_H
#define TENSOR_KSELFTEST_DEVICE_H

#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <linux/tensor.h>

#include "machine.h"

/* dtype tags. The kernel does not interpret them; the values are those of the library. */
enum {
	TAG_U8 = 2,
	TAG_I64 = 6,
	TAG_F32 = 9,
	TAG_F64 = 10,
	TAG_C128 = 12,
};

/* The struct of any ioctl. */
union ioctl_arg {
	uint32_t size;
	struct tensor_query query;
	struct tensor_alloc alloc;
	struct tensor_info info;
	struct tensor_meta meta;
	struct tensor_export export;
	struct tensor_import import;
	struct tensor_close close;
	struct tensor_seal seal;
	struct tensor_revoke revoke;
	struct tensor_advise advise;
	struct tensor_sync sync;
	struct tensor_pin pin;
	unsigned char bytes[1024];
};

HELPER int dev_open(void)
{
	int fd = open("/dev/tensor", O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/*
 * Adds the device to one epoll set many times, so that each event wakes as many waiters: the set,
 * or -errno.
 */
HELPER int dev_watch_often(int dev, int times)
{
	struct epoll_event event = { .events = EPOLLIN };
	int set = epoll_create1(EPOLL_CLOEXEC), first = 1000, fd;

	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ first + times, first + times });
	for (fd = first; fd < first + times; fd++)
		/* an entry is a file with an fd number, and stays when the fd is closed */
		if (dup2(dev, fd) < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) || close(fd))
			return -errno;
	return set;
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
		.size = sizeof(struct tensor_alloc),
		.bytes = bytes,
		.node = TENSOR_NODE_ANY,
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

/* @fd is /dev/tensor with a handle, or a buffer fd with 0. */
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

/* Returns the fd or -errno. */
HELPER int export_call(int dev, struct tensor_export *arg)
{
	int err = dev_call(dev, TENSOR_IOC_EXPORT, arg);

	return err ? err : arg->fd;
}

HELPER int buf_export_rights(int dev, uint32_t handle, uint32_t rights, uint32_t flags)
{
	struct tensor_export arg = {
		.size = sizeof(arg), .flags = flags, .handle = handle, .rights = rights
	};

	return export_call(dev, &arg);
}

/* Exports a part of the range of the handle. */
HELPER int buf_export_range_rights(int dev, uint32_t handle, uint32_t rights, uint32_t flags,
				   uint64_t offset, uint64_t bytes)
{
	struct tensor_export arg = { .size = sizeof(arg),
				     .flags = flags | TENSOR_EXPORT_RANGE,
				     .handle = handle,
				     .offset = offset,
				     .bytes = bytes,
				     .rights = rights };

	return export_call(dev, &arg);
}

/* For a handle that INFO refuses this returns valid rights, so that EXPORT reports the error. */
HELPER uint32_t buf_rights(int dev, uint32_t handle)
{
	struct tensor_info info;

	return buf_info(dev, handle, &info) ? TENSOR_RIGHTS_RW : info.rights;
}

/* Exports with all rights of the handle. */
HELPER int buf_export(int dev, uint32_t handle, uint32_t flags)
{
	return buf_export_rights(dev, handle, buf_rights(dev, handle), flags);
}

HELPER int buf_export_range(int dev, uint32_t handle, uint32_t flags, uint64_t offset,
			    uint64_t bytes)
{
	return buf_export_range_rights(dev, handle, buf_rights(dev, handle), flags, offset, bytes);
}

HELPER int buf_export_ro(int dev, uint32_t handle)
{
	return buf_export_rights(dev, handle, TENSOR_RIGHTS_RO, 0);
}

HELPER int buf_export_rw(int dev, uint32_t handle)
{
	return buf_export_rights(dev, handle, TENSOR_RIGHTS_RW, 0);
}

HELPER int buf_export_dmabuf(int dev, uint32_t handle)
{
	return buf_export(dev, handle, TENSOR_EXPORT_DMABUF);
}

/* Kinds of exports, for tests with a table of them; the flags may be combined. */
#define SHARE_RO     (1U << 0)
#define SHARE_DMABUF (1U << 1)

HELPER struct tensor_export export_args(uint32_t handle, unsigned int share)
{
	return (struct tensor_export){
		.size = sizeof(struct tensor_export),
		.handle = handle,
		.flags = share & SHARE_DMABUF ? TENSOR_EXPORT_DMABUF : 0,
		.rights = share & SHARE_RO ? TENSOR_RIGHTS_RO : TENSOR_RIGHTS_RW,
	};
}

HELPER struct tensor_export export_range_args(uint32_t handle, unsigned int share, uint64_t offset,
					      uint64_t bytes)
{
	struct tensor_export arg = export_args(handle, share);

	arg.flags |= TENSOR_EXPORT_RANGE;
	arg.offset = offset;
	arg.bytes = bytes;
	return arg;
}

HELPER int buf_share(int dev, uint32_t handle, unsigned int share)
{
	struct tensor_export arg = export_args(handle, share);

	return export_call(dev, &arg);
}

HELPER int buf_share_range(int dev, uint32_t handle, unsigned int share, uint64_t offset,
			   uint64_t bytes)
{
	struct tensor_export arg = export_range_args(handle, share, offset, bytes);

	return export_call(dev, &arg);
}

HELPER int export_fd(int dev, uint32_t handle)
{
	return buf_export(dev, handle, 0);
}

HELPER int export_dmabuf(int dev, uint32_t handle)
{
	return buf_export_dmabuf(dev, handle);
}

HELPER int buf_import(int dev, int fd, struct tensor_import *import)
{
	*import = (struct tensor_import){ .size = sizeof(*import), .fd = fd };
	return dev_call(dev, TENSOR_IOC_IMPORT, import);
}

/*
 * Returns all seals that are set afterwards, or -errno. @fd is /dev/tensor with a handle, or a
 * buffer fd with 0.
 */
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

/* Returns whether the buffer was purged, or -errno. */
HELPER int buf_advise(int dev, uint32_t handle, uint32_t advice)
{
	struct tensor_advise arg = { .size = sizeof(arg), .handle = handle, .advice = advice };
	int err = dev_call(dev, TENSOR_IOC_ADVISE, &arg);

	return err ? err : (int)arg.purged;
}

/* @fd is /dev/tensor with a handle, or a buffer fd with 0. Returns 0 or -errno. */
HELPER int buf_sync(int fd, uint32_t handle, uint32_t flags, uint64_t deadline_ns)
{
	struct tensor_sync arg = {
		.size = sizeof(arg), .flags = flags, .handle = handle, .deadline_ns = deadline_ns
	};

	return dev_call(fd, TENSOR_IOC_SYNC, &arg);
}

/* Returns the handle or -errno. */
HELPER int64_t buf_pin(int dev, const void *at, uint64_t bytes, uint32_t flags)
{
	struct tensor_pin arg = {
		.size = sizeof(arg), .flags = flags, .addr = (uintptr_t)at, .bytes = bytes
	};
	int err = dev_call(dev, TENSOR_IOC_PIN, &arg);

	return err ? err : (int64_t)arg.handle;
}

/* A buffer that only the returned fd holds: no handle, no open device. */
HELPER int buf_new_fd(uint64_t bytes)
{
	struct tensor_alloc alloc;
	int dev = dev_open(), fd;

	if (dev < 0)
		return dev;
	fd = dev_alloc(dev, bytes, &alloc);
	if (!fd)
		fd = buf_export(dev, alloc.handle, 0);
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
 * Makes buffers of that size, which stay with the open device, and overwrites all of them, so that
 * a page that something else still uses is corrupted. Returns 0, -EBADMSG if one is not zeroed, or
 * -errno.
 */
HELPER int overwrite_new_buffers(int dev, uint64_t bytes, int count)
{
	struct tensor_alloc alloc;
	void *at;
	int err;

	while (count--) {
		err = dev_alloc(dev, bytes, &alloc);
		if (err)
			return err;
		at = map_shared(dev, bytes, PROT_READ | PROT_WRITE, alloc.mmap_offset);
		if (at == MAP_FAILED)
			return -errno;
		if (!all_bytes(at, 0, bytes))
			return -EBADMSG;
		memset(at, 0xee, bytes);
		munmap(at, bytes);
	}
	return 0;
}

/* Maps and unmaps: 0 or the -errno of mmap(). */
HELPER int map_errno(int fd, uint64_t bytes, int prot, int flags, uint64_t offset)
{
	void *at = mmap(NULL, bytes, prot, flags, fd, offset);

	if (at == MAP_FAILED)
		return -errno;
	munmap(at, bytes);
	return 0;
}

/*
 * Waits until all buffers of the machine hold that many bytes: the buffers of a dead process and of
 * messages in flight are released after a delay.
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

HELPER int send_fd(int sock, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 'f';
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
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
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
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

/* Waits for a child: its exit status, or -signal. */
HELPER int reap(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return -1000;
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

#endif /* TENSOR_KSELFTEST_DEVICE_H */
