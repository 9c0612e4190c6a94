// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Calls on dma-bufs: imports dma-bufs of other drivers, and passes those of the module to other
 * drivers.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>

#include "fuzz.h"

/* Two ioctls of every DRM device; libdrm's header is in a package that this does not need. */
struct prime {
	uint32_t handle, flags;
	int32_t fd;
};

#define PRIME_HANDLE_TO_FD _IOWR('d', 0x2d, struct prime)
#define PRIME_FD_TO_HANDLE _IOWR('d', 0x2e, struct prime)

static long keep(struct machine *m, uint64_t slot, int fd)
{
	if (fd < 0)
		return -errno;
	machine_set_fd(m, slot, fd);
	return 0;
}

static int heap_fd(uint64_t pages)
{
	struct dma_heap_allocation_data alloc = {
		.len = pages * PAGE,
		.fd_flags = O_RDWR | O_CLOEXEC,
	};
	int heap = open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC), err;

	if (heap < 0)
		return -1;
	err = ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &alloc);
	close(heap);
	return err ? -1 : (int)alloc.fd;
}

static int udmabuf_fd(int memfd, uint64_t pages)
{
	struct udmabuf_create make = { .memfd = memfd, .size = pages * PAGE };
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), fd;

	if (dev < 0)
		return -1;
	fd = ioctl(dev, UDMABUF_CREATE, &make);
	close(dev);
	return fd;
}

/* args: out, kind, pages, memfd. Makes a descriptor of another driver. */
long run_foreign(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	static const char *const names[] = {
		"/dev/null", "/dev/zero", "/proc/self/maps", "/dev/dri/card0", "/dev/udmabuf",
	};

	switch (arg[1] % 4) {
	case 0:
		return keep(m, arg[0], heap_fd(arg[2] & 1023));
	case 1:
		return keep(m, arg[0], udmabuf_fd(m->fd[arg[3] % FDS], arg[2] & 1023));
	case 2:
		return keep(m, arg[0], open("/dev/dri/card0", O_RDWR | O_CLOEXEC));
	default:
		return keep(m, arg[0], open(names[arg[2] % 5], O_RDWR | O_CLOEXEC));
	}
}

/* args: fd, op, flags, other. @other: a DRM device that imports @fd, or a slot for a fence. */
long run_dma(struct machine *m, const struct call_type *type, const uint64_t *arg)
{
	struct dma_buf_sync sync = { .flags = arg[2] };
	struct dma_buf_export_sync_file get = { .flags = arg[2] & 3, .fd = -1 };
	struct dma_buf_import_sync_file put = { .flags = arg[2] & 3 };
	struct prime prime = { .fd = m->fd[arg[0] % FDS] };
	int fd = m->fd[arg[0] % FDS], other = m->fd[arg[3] % FDS];

	switch (arg[1] % 6) {
	case 0:
		return ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync) ? -errno : 0;
	case 1:
		return ioctl(other, PRIME_FD_TO_HANDLE, &prime) ? -errno : 0;
	case 2:
		prime.handle = 1;
		prime.flags = O_RDWR | O_CLOEXEC;
		if (ioctl(other, PRIME_HANDLE_TO_FD, &prime))
			return -errno;
		return keep(m, arg[0], prime.fd);
	case 3:
		if (ioctl(fd, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &get))
			return -errno;
		return keep(m, arg[3], get.fd);
	case 4:
		put.fd = other;
		return ioctl(fd, DMA_BUF_IOCTL_IMPORT_SYNC_FILE, &put) ? -errno : 0;
	default:
		return lseek(fd, 0, SEEK_END) < 0 ? -errno : 0;
	}
}
