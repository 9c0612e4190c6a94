// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Kinds of memory that processes share: the device and its peers.
 *
 * CALL() counts each system call of the measured work.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <linux/tensor.h>
#include <linux/udmabuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "module.h"

#define POOL "/sys/module/tensor/parameters/pool_bytes"
#define THP  "/sys/kernel/mm/transparent_hugepage"

unsigned long calls;

#define CALL(call) (calls++, (call))

static int device = -1;
static int heap = -1;
static int udma = -1;
static char pool_default[32];

int memory_device(void)
{
	return device;
}

/* Disables the pool, which empties it, or restores its size. Returns the bytes in the pool. */
uint64_t memory_pool(bool on)
{
	char text[32] = "0";

	if (!pool_default[0])
		return 0;
	setting(POOL, on ? pool_default : "0");
	setting_read(POOL, text, sizeof(text));
	return strtoull(text, NULL, 0);
}

static void tensor_make(struct memory *m, uint64_t bytes)
{
	struct tensor_alloc a = { .size = sizeof(a), .bytes = bytes, .node = TENSOR_NODE_ANY };

	must(!CALL(ioctl(device, TENSOR_IOC_ALLOC, &a)), "ALLOC");
	*m = (struct memory){
		.fd = -1, .handle = a.handle, .mmap_offset = a.mmap_offset, .bytes = a.bytes
	};
}

static int tensor_export_fd(struct memory *m)
{
	struct tensor_export e = { .size = sizeof(e),
				   .handle = m->handle,
				   .rights = TENSOR_RIGHTS_RW };

	must(!CALL(ioctl(device, TENSOR_IOC_EXPORT, &e)), "EXPORT");
	return e.fd;
}

static void tensor_drop(struct memory *m)
{
	struct tensor_close c = { .size = sizeof(c), .handle = m->handle };

	must(!CALL(ioctl(device, TENSOR_IOC_CLOSE, &c)), "CLOSE");
}

static bool tensor_here(void)
{
	return device >= 0;
}

static void memfd_with(struct memory *m, uint64_t bytes, unsigned int flags)
{
	int fd = CALL(memfd_create("bench", MFD_CLOEXEC | flags));

	must(fd >= 0, "memfd_create");
	must(!CALL(ftruncate(fd, (off_t)bytes)), "ftruncate");
	*m = (struct memory){ .fd = fd, .bytes = bytes };
}

static void memfd_make(struct memory *m, uint64_t bytes)
{
	memfd_with(m, bytes, 0);
}

static void fd_drop(struct memory *m)
{
	must(!CALL(close(m->fd)), "close");
}

/* For a kernel with several sizes, all of them, or none. */
static void huge_shmem(bool on)
{
	char path[512];
	struct dirent *d;
	DIR *dir;

	setting(THP "/shmem_enabled", on ? "always" : "never");
	dir = opendir(THP);
	if (!dir)
		return;
	while ((d = readdir(dir))) {
		if (strncmp(d->d_name, "hugepages-", 10))
			continue;
		snprintf(path, sizeof(path), THP "/%s/shmem_enabled", d->d_name);
		setting(path, on ? "inherit" : "never");
	}
	closedir(dir);
}

static void memfd_prepare(void)
{
	huge_shmem(false);
}

static void memfd_huge_prepare(void)
{
	huge_shmem(true);
}

static bool memfd_here(void)
{
	return true;
}

static bool memfd_huge_here(void)
{
	return !access(THP "/shmem_enabled", W_OK);
}

static void hugetlb_make(struct memory *m, uint64_t bytes)
{
	memfd_with(m, (bytes + HUGE - 1) / HUGE * HUGE, MFD_HUGETLB);
}

static bool hugetlb_here(void)
{
	char text[32] = "0";

	setting_read("/proc/sys/vm/nr_hugepages", text, sizeof(text));
	return strtoull(text, NULL, 0) * HUGE >= options.most;
}

static void heap_make(struct memory *m, uint64_t bytes)
{
	struct dma_heap_allocation_data a = { .len = bytes, .fd_flags = O_RDWR | O_CLOEXEC };

	must(!CALL(ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &a)), "DMA_HEAP_IOCTL_ALLOC");
	*m = (struct memory){ .fd = (int)a.fd, .bytes = bytes };
}

static bool heap_here(void)
{
	return heap >= 0;
}

/* The dma-buf holds the memory of the memfd, which is closed. */
static void udmabuf_make(struct memory *m, uint64_t bytes)
{
	struct udmabuf_create c = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = bytes };
	struct memory file;
	int fd;

	memfd_with(&file, bytes, MFD_ALLOW_SEALING);
	must(!CALL(fcntl(file.fd, F_ADD_SEALS, F_SEAL_SHRINK)), "F_ADD_SEALS");
	c.memfd = (unsigned int)file.fd;
	fd = CALL(ioctl(udma, UDMABUF_CREATE, &c));
	must(fd >= 0, "UDMABUF_CREATE");
	fd_drop(&file);
	*m = (struct memory){ .fd = fd, .bytes = bytes };
}

static bool udmabuf_here(void)
{
	return udma >= 0;
}

const struct kind kinds[] = {
	{ "tensor", tensor_make, tensor_export_fd, tensor_drop, memfd_prepare, tensor_here },
	{ "memfd", memfd_make, NULL, fd_drop, memfd_prepare, memfd_here },
	{ "memfd, huge pages", memfd_make, NULL, fd_drop, memfd_huge_prepare, memfd_huge_here },
	{ "MFD_HUGETLB", hugetlb_make, NULL, fd_drop, memfd_prepare, hugetlb_here },
	{ "udmabuf", udmabuf_make, NULL, fd_drop, memfd_prepare, udmabuf_here },
	{ "dma-heap", heap_make, NULL, fd_drop, memfd_prepare, heap_here },
};

const size_t kinds_nr = ARRAY_SIZE(kinds);

void memory_init(void)
{
	device = open("/dev/tensor", O_RDWR | O_CLOEXEC);
	heap = open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC);
	udma = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	setting("/sys/module/udmabuf/parameters/size_limit_mb", "4096");
	setting("/sys/module/udmabuf/parameters/list_limit", "1000000");
	setting_read(POOL, pool_default, sizeof(pool_default));
}

void memory_map(struct memory *m, int flags)
{
	int fd = m->fd < 0 ? device : m->fd;

	m->at = CALL(mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd,
			  (off_t)m->mmap_offset));
	must(m->at != MAP_FAILED, "mmap");
}

void memory_unmap(struct memory *m)
{
	must(!CALL(munmap(m->at, m->bytes)), "munmap");
	m->at = NULL;
}

/* One byte in each base page; with large page table entries most of these take no fault. */
void memory_touch(const struct memory *m)
{
	volatile char *at = m->at;
	uint64_t i;

	for (i = 0; i < m->bytes; i += PAGE)
		at[i] = 1;
}
