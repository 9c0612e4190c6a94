/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Helpers of the dma-buf tests: DMA_BUF_IOCTL_SYNC, fences, and vgem, the one importer that needs
 * no hardware.
 */
#ifndef TENSOR_KSELFTEST_DMABUF_H
#define TENSOR_KSELFTEST_DMABUF_H

#include <drm.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <poll.h>
#include <setjmp.h>

#include "device.h"

#define DMABUF TENSOR_EXPORT_DMABUF
#define RW     (PROT_READ | PROT_WRITE)

/*
 * In a fixture's set-up SKIP() alone would still run the test; this exits with the status by which
 * the harness recognises a skipped test.
 */
#define SKIP_SETUP(why) SKIP(_exit(255), why)

/* Dma-bufs of other drivers: the fd or -errno; -ENODEV if the kernel has no such driver. */
HELPER int udmabuf_of(int memfd, uint64_t bytes)
{
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), fd;
	struct udmabuf_create create = { .memfd = memfd,
					 .flags = UDMABUF_FLAGS_CLOEXEC,
					 .size = bytes };

	if (dev < 0)
		return -ENODEV;
	fd = ioctl(dev, UDMABUF_CREATE, &create);
	close(dev);
	return fd < 0 ? -errno : fd;
}

/* The same for a new memfd. */
HELPER int udmabuf_new(uint64_t bytes)
{
	int memfd = memfd_new(bytes, 0), fd = memfd < 0 ? memfd : udmabuf_of(memfd, bytes);

	close(memfd);
	return fd;
}

HELPER int heap_of(uint64_t bytes)
{
	struct dma_heap_allocation_data data = { .len = bytes, .fd_flags = O_RDWR | O_CLOEXEC };
	int dev = open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC), err;

	if (dev < 0)
		return -ENODEV;
	err = dev_call(dev, DMA_HEAP_IOCTL_ALLOC, &data);
	close(dev);
	return err ? err : (int)data.fd;
}

/* DMA_BUF_IOCTL_SYNC: 0 or -errno. */
HELPER int dmabuf_sync(int fd, uint64_t flags)
{
	struct dma_buf_sync arg = { .flags = flags };

	return dev_call(fd, DMA_BUF_IOCTL_SYNC, &arg);
}

/* The events that poll() reports without waiting. */
HELPER int ready(int fd, int events)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, 0) < 0 ? -errno : p.revents;
}

static sigjmp_buf dmabuf_back;

HELPER void touch_fault(int sig)
{
	siglongjmp(dmabuf_back, sig);
}

/* The signal that reading a byte raises, 0 for none. */
HELPER int touch_signal(volatile const char *at)
{
	struct sigaction act = { .sa_handler = touch_fault }, segv, bus;
	int sig;

	sigaction(SIGSEGV, &act, &segv);
	sigaction(SIGBUS, &act, &bus);
	sig = sigsetjmp(dmabuf_back, 1);
	if (!sig)
		(void)*at;
	sigaction(SIGSEGV, &segv, NULL);
	sigaction(SIGBUS, &bus, NULL);
	return sig;
}

/* A deadline for SYNC in that many milliseconds. */
HELPER uint64_t deadline_ms(uint64_t ms)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec + ms * 1000000;
}

HELPER struct tensor_info info_of(int dev, uint32_t handle)
{
	struct tensor_info info;

	if (buf_info(dev, handle, &info))
		memset(&info, 0xff, sizeof(info));
	return info;
}

/* Opens vgem; -ENODEV if there is none. */
HELPER int vgem_open(void)
{
	char path[32], name[8];
	int i, fd;

	for (i = 0; i < 8; i++) {
		struct drm_version version = { .name = name, .name_len = sizeof(name) };

		snprintf(path, sizeof(path), "/dev/dri/card%d", i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (!ioctl(fd, DRM_IOCTL_VERSION, &version) && version.name_len == 4 &&
		    !memcmp(name, "vgem", 4))
			return fd;
		close(fd);
	}
	return -ENODEV;
}

/*
 * Whether vgem maps imported dma-bufs for its device. Kernels with this function only attach, and
 * no other driver in the guests maps imported dma-bufs.
 */
HELPER bool vgem_maps(void)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	bool maps = f != NULL;
	char line[512];

	while (maps && fgets(line, sizeof(line), f))
		maps = !strstr(line, " drm_gem_shmem_prime_import_no_map");
	if (f)
		fclose(f);
	return maps;
}

#define NO_DEVICE_MAPS "vgem only attaches on this kernel, and no other device is there"

HELPER int vgem_import(int vgem, int fd, uint32_t *handle)
{
	struct drm_prime_handle arg = { .fd = fd };
	int err = dev_call(vgem, DRM_IOCTL_PRIME_FD_TO_HANDLE, &arg);

	*handle = arg.handle;
	return err;
}

HELPER int vgem_export(int vgem, uint32_t handle, uint32_t flags)
{
	struct drm_prime_handle arg = { .handle = handle, .flags = flags };
	int err = dev_call(vgem, DRM_IOCTL_PRIME_HANDLE_TO_FD, &arg);

	return err ? err : arg.fd;
}

HELPER int vgem_close(int vgem, uint32_t handle)
{
	struct drm_gem_close arg = { .handle = handle };

	return dev_call(vgem, DRM_IOCTL_GEM_CLOSE, &arg);
}

/* A buffer that vgem allocates. */
HELPER int vgem_create(int vgem, uint64_t bytes, uint32_t *handle)
{
	struct drm_mode_create_dumb arg = { .height = bytes / PAGE, .width = PAGE, .bpp = 8 };
	int err = dev_call(vgem, DRM_IOCTL_MODE_CREATE_DUMB, &arg);

	*handle = arg.handle;
	return err;
}

/* libdrm has no header for these two. */
#define VGEM_WRITES 1

struct vgem_attach {
	uint32_t handle;
	uint32_t flags;
	uint32_t fence;
	uint32_t pad;
};

struct vgem_signal {
	uint32_t fence;
	uint32_t flags;
};

/* Adds a fence for reads or writes by vgem, pending until vgem_signal(): its number or -errno. */
HELPER int vgem_fence(int vgem, uint32_t handle, uint32_t flags)
{
	struct vgem_attach arg = { .handle = handle, .flags = flags };
	int err = dev_call(vgem, DRM_IOWR(DRM_COMMAND_BASE + 1, struct vgem_attach), &arg);

	return err ? err : (int)arg.fence;
}

HELPER int vgem_signal(int vgem, uint32_t fence)
{
	struct vgem_signal arg = { .fence = fence };

	return dev_call(vgem, DRM_IOW(DRM_COMMAND_BASE + 2, struct vgem_signal), &arg);
}

#endif /* TENSOR_KSELFTEST_DMABUF_H */
