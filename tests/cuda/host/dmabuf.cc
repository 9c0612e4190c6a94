// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Dma-bufs for the driver's memory. /dev/udmabuf makes them of a part of a memfd. A kernel without it may have vgem, a DRM
 * device whose memory is that of a dma-buf from the start.
 */
#include "host.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { CARDS = 8, PAGE_BYTES = 4096 };

static const char udmabuf_path[] = "/dev/udmabuf";

/* The calls of DRM devices that are needed; libdrm's headers are in a package that nothing else here needs. */
struct drm_version {
	int major, minor, patch;
	size_t name_len;
	char *name;
	size_t date_len;
	char *date;
	size_t desc_len;
	char *desc;
};

struct drm_dumb {
	uint32_t height, width, bpp, flags;
	uint32_t handle, pitch;
	uint64_t size;
};

struct drm_prime {
	uint32_t handle, flags;
	int32_t fd;
};

struct drm_close {
	uint32_t handle, pad;
};

#define DRM_VERSION	       _IOWR('d', 0x00, struct drm_version)
#define DRM_CREATE_DUMB	       _IOWR('d', 0xb2, struct drm_dumb)
#define DRM_PRIME_HANDLE_TO_FD _IOWR('d', 0x2d, struct drm_prime)
#define DRM_GEM_CLOSE	       _IOW('d', 0x09, struct drm_close)

int host_udmabuf(int memory, size_t offset, size_t size)
{
	int device = open(udmabuf_path, O_RDWR | O_CLOEXEC), fd;
	struct udmabuf_create create = { (uint32_t)memory, UDMABUF_FLAGS_CLOEXEC, offset, size };

	if (device < 0)
		return -1;
	fd = ioctl(device, UDMABUF_CREATE, &create);
	close(device);
	return fd < 0 ? -2 : fd;
}

static int open_vgem(void)
{
	for (int i = 0; i < CARDS; i++) {
		char path[32], name[8] = "";
		struct drm_version version = {};
		int fd;

		snprintf(path, sizeof(path), "/dev/dri/card%d", i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		version.name = name;
		version.name_len = sizeof(name) - 1;
		if (!ioctl(fd, DRM_VERSION, &version) && !strcmp(name, "vgem"))
			return fd;
		close(fd);
	}
	return -1;
}

int host_vgem(size_t size, const char *name)
{
	struct drm_dumb dumb = {};
	struct drm_prime prime = {};
	struct drm_close end = {};
	int vgem, fd = -1;

	if (!access(udmabuf_path, R_OK | W_OK))
		return -1;
	vgem = open_vgem();
	if (vgem < 0)
		return -1;
	dumb.height = (uint32_t)(size / PAGE_BYTES);
	dumb.width = PAGE_BYTES;
	dumb.bpp = 8;
	if (!ioctl(vgem, DRM_CREATE_DUMB, &dumb)) {
		prime.handle = end.handle = dumb.handle;
		prime.flags = O_CLOEXEC | O_RDWR;
		if (!ioctl(vgem, DRM_PRIME_HANDLE_TO_FD, &prime))
			fd = prime.fd;
		ioctl(vgem, DRM_GEM_CLOSE, &end);
	}
	close(vgem);
	if (fd >= 0 && ioctl(fd, DMA_BUF_SET_NAME, name)) {
		close(fd);
		fd = -1;
	}
	return fd;
}
