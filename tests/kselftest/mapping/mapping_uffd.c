// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * userfaultfd on every kind of mapping: it adds no right, loses no memory, and no fault repeats
 * endlessly. Kernels accept it for few kinds of memory only. Write protection without a reader of
 * events (UFFD_FEATURE_WP_ASYNC, from 6.7) is accepted for all, and puts markers into page tables
 * that a fault handler meets; newer releases refuse it for mappings with VM_DONTEXPAND or
 * VM_MIXEDMAP. Each test prints the number of mappings for which it was accepted.
 */
#include <linux/userfaultfd.h>
#include <sys/syscall.h>

#include "../include/dmabuf.h"
#include "../include/klog.h"
#include "mapping_rights.h"

#include "kselftest_harness.h"

/*
 * Shared with the children: the number of mappings for which userfaultfd was accepted, and the last
 * error.
 */
static struct {
	int taken, refused, error;
} * registered;

/* Registers that memory with a new userfaultfd: its fd or -errno. */
static int uffd_of(void *at, uint64_t bytes, uint64_t features, uint64_t mode)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	struct uffdio_register reg = { .range = { (uintptr_t)at, bytes }, .mode = mode };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK), err;

	if (fd < 0)
		return -errno;
	if (!ioctl(fd, UFFDIO_API, &api) && !ioctl(fd, UFFDIO_REGISTER, &reg))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

FIXTURE(uffd)
{
	int log;
};

/*
 * Every kernel accepts private memory of the process, so a refusal for other memory is due to its
 * kind.
 */
FIXTURE_SETUP(uffd)
{
	int fd;

	self->log = klog_begin();
	registered = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, registered);
	fd = uffd_of(registered, PAGE, 0, UFFDIO_REGISTER_MODE_MISSING);
	if (fd < 0)
		SKIP_SETUP("no userfaultfd");
	close(fd);
}

FIXTURE_TEARDOWN(uffd)
{
	EXPECT_TRUE(klog_clean(self->log));
}

/* Not in the headers that the tests are built with. */
#define FEATURE_WP_UNPOPULATED (1 << 13)
#define FEATURE_WP_ASYNC       (1 << 15)

struct scan_arg {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

#define SCAN		   _IOWR('f', 16, struct scan_arg)
#define SCAN_WP_MATCHING   (1 << 0)
#define SCAN_CHECK_WPASYNC (1 << 1)
#define SCAN_IS_WRITTEN	   (1 << 1)

/* A userfaultfd for the whole mapping, or -1: this kernel does not accept it for such memory. */
static int uffd_register(struct attempt *a, uint64_t features, uint64_t mode)
{
	int fd = uffd_of(a->at, a->bytes, features, mode);

	if (fd < 0) {
		registered->refused++;
		registered->error = fd;
		return -1;
	}
	registered->taken++;
	return fd;
}

/* Tries an attack on all kinds of mappings; prints for how many of them it was possible. */
static void attack_registered(struct __test_metadata *_metadata, const struct attack *attack)
{
	memset(registered, 0, sizeof(*registered));
	EXPECT_EQ(0, attack_all(attack));
	TH_LOG("%s: taken for %d mappings, refused for %d, the last with %d", attack->name,
	       registered->taken, registered->refused, registered->error);
}

static int uffd_protect(struct attempt *a, int fd, bool on)
{
	struct uffdio_writeprotect wp = { .range = { (uintptr_t)a->at, a->bytes },
					  .mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0 };

	return ioctl(fd, UFFDIO_WRITEPROTECT, &wp);
}

/* Makes all pages present, and writes to them where that is permitted. */
static void populate(struct attempt *a)
{
	uint64_t n;

	for (n = 0; n < a->bytes / PAGE; n++)
		a->o->write ? touch_write(a->at + n * PAGE + WRITTEN_AT, WRITTEN) :
			      touch_read(a->at + n * PAGE);
}

static void do_missing(struct attempt *a)
{
	static unsigned char page[PAGE] __attribute__((aligned(PAGE)));
	int fd = uffd_register(a, 0, UFFDIO_REGISTER_MODE_MISSING);
	struct uffdio_copy copy = { .src = (uintptr_t)page, .len = PAGE };
	struct uffdio_zeropage zero = { .range.len = PAGE };
	uint64_t n;

	if (fd < 0)
		return;
	memset(page, WRITTEN, PAGE);
	madvise(a->at, a->bytes, MADV_DONTNEED);
	for (n = 0; n < a->bytes / PAGE; n++) {
		copy.dst = zero.range.start = (uintptr_t)a->at + n * PAGE;
		/* all pages exist already, so none can be filled in */
		if (!ioctl(fd, UFFDIO_COPY, &copy) || !ioctl(fd, UFFDIO_ZEROPAGE, &zero))
			_exit(WROTE);
	}
	close(fd);
}

static void do_minor(struct attempt *a)
{
	int fd = uffd_register(a, UFFD_FEATURE_MINOR_SHMEM, UFFDIO_REGISTER_MODE_MINOR);
	struct uffdio_continue cont = { .range.len = PAGE };
	uint64_t n;

	if (fd < 0)
		return;
	madvise(a->at, a->bytes, MADV_DONTNEED);
	for (n = 0; n < a->bytes / PAGE; n++) {
		cont.range.start = (uintptr_t)a->at + n * PAGE;
		ioctl(fd, UFFDIO_CONTINUE, &cont);
	}
	close(fd);
}

TEST_F_TIMEOUT(uffd, userfaultfd_cannot_fill_in_pages, 200)
{
	static const struct attack missing = { "missing", do_missing, true, false };
	static const struct attack minor = { "minor", do_minor, true, false };

	attack_registered(_metadata, &missing);
	attack_registered(_metadata, &minor);
}

/* Protects and releases the mapping, first with an empty page table, then with a full one. */
static void do_protect_release(struct attempt *a)
{
	int fd = uffd_register(a, UFFD_FEATURE_PAGEFAULT_FLAG_WP, UFFDIO_REGISTER_MODE_WP);

	if (fd < 0)
		return;
	uffd_protect(a, fd, true);
	uffd_protect(a, fd, false);
	populate(a);
	uffd_protect(a, fd, true);
	madvise(a->at, a->bytes, MADV_DONTNEED);
	uffd_protect(a, fd, false);
	close(fd);
}

/* Protection may leave markers in the page table after the userfaultfd is closed. */
static void do_protect_close(struct attempt *a)
{
	int fd = uffd_register(a, UFFD_FEATURE_PAGEFAULT_FLAG_WP, UFFDIO_REGISTER_MODE_WP);

	if (fd < 0)
		return;
	uffd_protect(a, fd, true);
	close(fd);
}

TEST_F_TIMEOUT(uffd, write_protection_that_ends_leaves_the_memory_usable, 200)
{
	static const struct attack attacks[] = {
		{ "protected, released", do_protect_release, true, false },
		{ "protected, closed", do_protect_close, true, false },
	};

	attack_registered(_metadata, &attacks[0]);
	attack_registered(_metadata, &attacks[1]);
}

/* -1 if the kernel does not support it. */
static int async(struct attempt *a)
{
	return uffd_register(a, FEATURE_WP_ASYNC | FEATURE_WP_UNPOPULATED, UFFDIO_REGISTER_MODE_WP);
}

static void do_async_unpopulated(struct attempt *a)
{
	int fd = async(a);

	if (fd >= 0)
		uffd_protect(a, fd, true);
}

static void do_async_populated(struct attempt *a)
{
	int fd = async(a);

	if (fd < 0)
		return;
	populate(a);
	uffd_protect(a, fd, true);
}

/* Replaces entries by markers, by dropping the entries of protected pages. */
static void do_async_dropped(struct attempt *a)
{
	int fd = async(a);

	if (fd < 0)
		return;
	populate(a);
	uffd_protect(a, fd, true);
	madvise(a->at, a->bytes, MADV_DONTNEED);
	touch_read(a->at + 2 * PAGE);
}

static void do_async_every_other(struct attempt *a)
{
	int fd = async(a);
	uint64_t n;

	for (n = 0; fd >= 0 && n < a->bytes / PAGE; n += 2) {
		struct uffdio_writeprotect wp = { .range = { (uintptr_t)a->at + n * PAGE, PAGE },
						  .mode = UFFDIO_WRITEPROTECT_MODE_WP };

		ioctl(fd, UFFDIO_WRITEPROTECT, &wp);
	}
}

static void do_scan(struct attempt *a)
{
	struct scan_arg arg = { .size = sizeof(arg),
				.flags = SCAN_WP_MATCHING | SCAN_CHECK_WPASYNC,
				.start = (uintptr_t)a->at,
				.end = (uintptr_t)a->at + a->bytes,
				.category_mask = SCAN_IS_WRITTEN,
				.return_mask = SCAN_IS_WRITTEN };
	struct {
		uint64_t start, end, categories;
	} regions[64];
	int fd = async(a), map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), i;

	arg.vec = (uintptr_t)regions;
	arg.vec_len = 64;
	for (i = 0; fd >= 0 && i < 3; i++) {
		ioctl(map, SCAN, &arg);
		touch_read(a->at + i * PAGE);
		if (i == 1)
			populate(a);
	}
}

TEST_F_TIMEOUT(uffd, write_protection_without_events_does_not_hang, 300)
{
	static const struct attack attacks[] = {
		{ "asynchronous, nothing mapped", do_async_unpopulated, true, false },
		{ "asynchronous, all mapped", do_async_populated, true, false },
		{ "asynchronous, dropped", do_async_dropped, true, false },
		{ "asynchronous, every other page", do_async_every_other, true, false },
		{ "PAGEMAP_SCAN", do_scan, true, false },
	};
	unsigned int i;

	for (i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
		attack_registered(_metadata, &attacks[i]);
}

TEST_HARNESS_MAIN
