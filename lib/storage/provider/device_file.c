// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * This process's open /dev/tensor. A process opens the device once; a buffer needs a handle and a
 * mapping, no file descriptor.
 *
 * A child of fork() shares its parent's open file, and a handle is a number in that file. A handle
 * that the child closes would be lost for the parent, and as long as the child keeps the file open,
 * the buffers of a dead parent are not freed. So the child closes the inherited file at once and
 * opens the device itself when needed. Inherited mappings hold their buffers.
 */
#include "storage/provider/device_file.h"

#include "base/error.h"
#include "base/init.h"

#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static struct {
	pthread_mutex_t lock;
	int fd;		 /* -1 if not open */
	pid_t pid;	 /* process that opened it */
	uint32_t serial; /* number of the open, counted over this process and its ancestors */
} dev = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static _Atomic uint64_t number;

/* The caller holds the lock. */
static void drop_inherited(void)
{
	if (dev.fd >= 0 && dev.pid != getpid()) {
		close(dev.fd);
		dev.fd = -1;
	}
}

static void lock_device(void)
{
	pthread_mutex_lock(&dev.lock);
}

static void unlock_device(void)
{
	pthread_mutex_unlock(&dev.lock);
}

static void after_fork(void)
{
	drop_inherited();
	unlock_device();
}

/* Registered before others: their locks are taken before this one, also at a fork. */
INIT(INIT_DEVICE_FILE) static void watch_forks(void)
{
	pthread_atfork(lock_device, unlock_device, after_fork);
}

int device_file(uint32_t *serial)
{
	int fd;

	lock_device();
	drop_inherited();
	if (dev.fd < 0) {
		/* Only read() blocks, and the library reads events without blocking. */
		fd = open("/dev/tensor", O_RDWR | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0) {
			fd = -errno;
			unlock_device();
			return fd;
		}
		dev.fd = fd;
		dev.pid = getpid();
		dev.serial++;
	}
	fd = dev.fd;
	*serial = dev.serial;
	unlock_device();
	return fd;
}

int device_file_of(uint32_t serial)
{
	int fd = -ESTALE;

	lock_device();
	drop_inherited();
	if (dev.fd >= 0 && dev.serial == serial)
		fd = dev.fd;
	unlock_device();
	return fd;
}

int device_file_fail(const char *function, int err)
{
	if (err == -ENOENT || err == -ENXIO || err == -ENODEV)
		return tensor_fail(ENOTSUP, "%s: there is no /dev/tensor: load the tensor module",
				   function);
	if (err == -EACCES || err == -EPERM)
		return tensor_fail(EACCES,
				   "%s: /dev/tensor may not be opened: be in the group of "
				   "the device node",
				   function);
	return tensor_fail(-err, "%s: /dev/tensor: %s", function, strerror(-err));
}

/* ---- calls ---- */

int device_call(int fd, unsigned long request, void *arg)
{
	int err;

	do {
		err = ioctl(fd, request, arg);
	} while (err < 0 && errno == EINTR);
	return err < 0 ? -errno : 0;
}

int device_info(int fd, uint32_t handle, struct tensor_info *info)
{
	int err;

	*info = (struct tensor_info){ .size = sizeof(*info), .handle = handle };
	err = device_call(fd, TENSOR_IOC_INFO, info);
	if (!err)
		atomic_store_explicit(&number, info->dev, memory_order_relaxed);
	return err;
}

uint64_t device_number(void)
{
	return atomic_load_explicit(&number, memory_order_relaxed);
}

int device_export_handle(int fd, uint32_t handle, unsigned rights, unsigned flags)
{
	struct tensor_export arg = {
		.size = sizeof(arg), .flags = flags, .handle = handle, .rights = rights
	};
	int err = device_call(fd, TENSOR_IOC_EXPORT, &arg);

	return err < 0 ? err : arg.fd;
}

void device_close_handle(int fd, uint32_t handle)
{
	struct tensor_close arg = { .size = sizeof(arg), .handle = handle };

	device_call(fd, TENSOR_IOC_CLOSE, &arg);
}

static uint64_t deadline_of(int64_t timeout_ns)
{
	struct timespec now;

	if (timeout_ns < 0)
		return TENSOR_SYNC_FOREVER;
	if (!timeout_ns)
		return 0;
	/* The sum of two 63-bit numbers fits into 64 bits. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + (uint64_t)timeout_ns;
}

int device_sync_handle(int fd, uint32_t handle, unsigned flags, int64_t timeout_ns)
{
	struct tensor_sync arg = { .size = sizeof(arg), .flags = flags, .handle = handle };

	if (!(flags & TENSOR_SYNC_END))
		arg.deadline_ns = deadline_of(timeout_ns);
	return ioctl(fd, TENSOR_IOC_SYNC, &arg) < 0 ? -errno : 0;
}

/* ---- files for ioctls of a buffer ---- */

int device_holder(const struct tensor_buffer *b)
{
	return b->handle ? device_file_of(b->open_serial) : -EACCES;
}

int device_target(const struct tensor_buffer *b, uint32_t *handle)
{
	*handle = b->fd >= 0 ? 0 : b->handle;
	return b->fd >= 0 ? b->fd : device_file_of(b->open_serial);
}

/* ---- public ---- */

TENSOR_EXPORT int tensor_device_fd(void)
{
	uint32_t serial;
	int fd = device_file(&serial);

	return fd < 0 ? device_file_fail("tensor_device_fd", fd) : fd;
}
