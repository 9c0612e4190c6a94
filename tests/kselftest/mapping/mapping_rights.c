// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A mapping keeps the rights and the range of its fd or handle, whatever is done to the mapping
 * afterwards: read-only memory is never written to, memory outside the range is never reached, and
 * permitted accesses still work. Each test is one way to change a mapping, tried on every kind of
 * mapping.
 */
#include "../include/dmabuf.h"
#include "../include/klog.h"
#include "mapping_rights.h"

#include "kselftest_harness.h"

FIXTURE(rights)
{
	int log;
};

FIXTURE_SETUP(rights)
{
	self->log = klog_begin();
}

FIXTURE_TEARDOWN(rights)
{
	EXPECT_TRUE(klog_clean(self->log));
}

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static void do_nothing(struct attempt *a)
{
	(void)a;
}

TEST_F_TIMEOUT(rights, every_kind_has_its_rights_and_no_others, 120)
{
	static const struct attack attack = { "nothing", do_nothing, .keeps = true };

	EXPECT_EQ(0, attack_all(&attack));
}

/* Remaps all of the mapping, then each page of it, to the file offset of this page. */
static void remap_to(struct attempt *a, uint64_t page)
{
	uint64_t n;

	if (remap_file_pages(a->at, a->bytes, 0, page, 0))
		remap_file_pages(a->at, PAGE, 0, page, 0);
	for (n = 0; n < 8; n++)
		remap_file_pages(a->at + n * PAGE, PAGE, 0, page + n, 0);
}

static void do_remap_begin(struct attempt *a)
{
	remap_to(a, 0);
}

static void do_remap_behind(struct attempt *a)
{
	remap_to(a, a->o->first + a->o->count);
}

static void do_remap_last(struct attempt *a)
{
	remap_to(a, a->o->pages - 8);
}

static void do_remap_inside(struct attempt *a)
{
	remap_to(a, a->o->first + 1);
}

TEST_F_TIMEOUT(rights, remap_file_pages_reaches_nothing_else, 300)
{
	static const struct attack attacks[] = {
		{ "remap_file_pages() to the begin", do_remap_begin, false, false },
		{ "remap_file_pages() to what is behind", do_remap_behind, false, false },
		{ "remap_file_pages() to the end", do_remap_last, false, false },
		{ "remap_file_pages() within", do_remap_inside, false, false },
	};
	unsigned int i;

	for (i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
		EXPECT_EQ(0, attack_all(&attacks[i]));
}

static void do_grow(struct attempt *a)
{
	attempt_area(a, mremap(a->at, a->bytes, a->bytes + 16 * PAGE, MREMAP_MAYMOVE),
		     a->bytes + 16 * PAGE);
}

/* An old length of 0 makes a second mapping of shared memory, of any length. */
static void do_duplicate(struct attempt *a)
{
	attempt_area(a, mremap(a->at, 0, 4 * a->bytes, MREMAP_MAYMOVE), 4 * a->bytes);
	attempt_area(a, mremap(a->at + PAGE, 0, a->bytes, MREMAP_MAYMOVE), a->bytes);
}

static void do_dontunmap(struct attempt *a)
{
	attempt_area(a, mremap(a->at, a->bytes, a->bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0),
		     a->bytes);
}

/* Moves the mapping to an address that is free and an odd number of pages away. */
static void do_move(struct attempt *a)
{
	unsigned char *room =
		mmap(NULL, a->bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mremap(a->at, a->bytes, a->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, room + PAGE) ==
	    MAP_FAILED)
		return;
	a->area[0].at = a->at = room + PAGE;
}

static void do_move_and_remap(struct attempt *a)
{
	do_move(a);
	remap_to(a, 0);
	do_grow(a);
}

TEST_F_TIMEOUT(rights, mremap_reaches_nothing_else, 300)
{
	static const struct attack attacks[] = {
		{ "mremap() to grow", do_grow, true, false },
		{ "mremap() of length 0", do_duplicate, true, false },
		{ "mremap() that leaves the old one", do_dontunmap, true, false },
		{ "mremap() to another place", do_move, true, false },
		{ "mremap() then remap_file_pages()", do_move_and_remap, false, false },
	};
	unsigned int i;

	for (i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
		EXPECT_EQ(0, attack_all(&attacks[i]));
}

static void do_protect(struct attempt *a)
{
	static const int prots[] = { PROT_NONE,	     PROT_WRITE, RW, PROT_READ | PROT_EXEC,
				     RW | PROT_EXEC, PROT_READ };
	unsigned int i;

	for (i = 0; i < sizeof(prots) / sizeof(prots[0]); i++) {
		mprotect(a->at, a->bytes, prots[i]);
		touch_read(a->at + PAGE);
		mprotect(a->at + PAGE, PAGE, prots[i]);
	}
	mprotect(a->at, a->bytes, a->o->write ? RW : PROT_READ);
}

static void do_fork(struct attempt *a)
{
	int status;
	pid_t pid = fork();

	(void)a;
	if (pid) {
		status = reap(pid);
		if (status < 0)
			raise(-status);
		_exit(status);
	}
	alarm(HANG_SECONDS);
}

/* The kernel writes for a debugger even where the process cannot. */
static void do_proc_mem(struct attempt *a)
{
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	char byte = WRITTEN;
	uint64_t n;

	for (n = 0; n < a->bytes / PAGE; n++)
		if (pwrite(mem, &byte, 1, (off_t)(uintptr_t)(a->at + n * PAGE + WRITTEN_AT)) == 1 &&
		    !a->o->write)
			_exit(WROTE);
	close(mem);
}

static void do_private(struct attempt *a)
{
	unsigned char *at = mmap(NULL, a->bytes, PROT_READ, MAP_PRIVATE, a->fd, a->offset);

	if (at == MAP_FAILED)
		return;
	/* a copy of a page would no longer belong to the buffer */
	if (!mprotect(at, PAGE, RW))
		_exit(WROTE);
	munmap(at, a->bytes);
}

/* Offsets and lengths outside the range. */
static void do_map_outside(struct attempt *a)
{
	static const int64_t offsets[] = { 0, 1, -1, 8, 24, 31, 32, 1023, 1024, 1LL << 24 };
	uint64_t pages = a->bytes / PAGE;
	unsigned char *at;
	unsigned int i;

	for (i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		at = map_shared(a->fd, pages * PAGE, PROT_READ, a->offset + offsets[i] * PAGE);
		if (i)
			attempt_area(a, at, pages * PAGE);
	}
	attempt_area(a, map_shared(a->fd, 2 * a->bytes, PROT_READ, a->offset), 2 * a->bytes);
}

TEST_F_TIMEOUT(rights, protection_and_inheritance_add_no_right, 300)
{
	static const struct attack attacks[] = {
		{ "mprotect()", do_protect, true, false },
		{ "fork()", do_fork, true, false },
		{ "/proc/self/mem", do_proc_mem, true, false },
		{ "private mapping", do_private, true, false },
		{ "mmap() past the end", do_map_outside, true, false },
	};
	unsigned int i;

	for (i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
		EXPECT_EQ(0, attack_all(&attacks[i]));
}

/* Opens the file behind a mapping again, with all privileges of root. */
static void do_map_files(struct attempt *a)
{
	char path[96];
	int fd;

	/*
	 * this opens the memfd's own inode, which takes CAP_CHECKPOINT_RESTORE, a privilege over
	 * all memory
	 */
	if (a->o->kind->source == MEMFD)
		return;
	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)a->at,
		 (unsigned long)a->at + a->bytes);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	attempt_area(a, map_shared(fd, a->o->pages * PAGE, RW, 0), a->o->pages * PAGE);
	attempt_area(a, map_shared(fd, a->o->pages * PAGE, PROT_READ, 0), a->o->pages * PAGE);
}

TEST_F_TIMEOUT(rights, file_of_a_mapping_opened_again_adds_no_right, 120)
{
	static const struct attack attack = { "map_files", do_map_files, true, false };

	EXPECT_EQ(0, attack_all(&attack));
}

/*
 * All advice values except those that remove memory from all holders: 100 and 101 make pages fail,
 * 9 (REMOVE) empties pages of a memfd, which its writers may do.
 */
static void advise(struct attempt *a, int first, int last)
{
	int advice;

	for (advice = first; advice <= last; advice++) {
		if (advice == MADV_REMOVE || advice == MADV_DONTFORK || advice == MADV_WIPEONFORK)
			continue;
		touch_read(a->at);
		madvise(a->at, a->bytes, advice);
		madvise(a->at + 3 * PAGE, PAGE, advice);
	}
}

static void do_advise(struct attempt *a)
{
	advise(a, 0, 25);
}

static void do_remove(struct attempt *a)
{
	madvise(a->at, a->bytes, MADV_REMOVE);
	madvise(a->at + PAGE, PAGE, MADV_REMOVE);
}

/* Newer kernels: page table entries that make accesses fail, and their removal. */
static void do_guard(struct attempt *a)
{
	madvise(a->at, a->bytes, 102);
	touch_read(a->at + PAGE);
	touch_write(a->at + PAGE + WRITTEN_AT, WRITTEN);
	madvise(a->at, a->bytes, 103);
}

TEST_F_TIMEOUT(rights, advice_adds_no_right_and_takes_no_memory, 300)
{
	static const struct attack attacks[] = {
		{ "madvise()", do_advise, true, false },
		{ "MADV_REMOVE", do_remove, true, true },
		{ "guard pages", do_guard, true, false },
	};
	unsigned int i;

	for (i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
		EXPECT_EQ(0, attack_all(&attacks[i]));
}

/* Memory of PIN cannot be mapped through its handle, so there is nothing to change. */
TEST_F(rights, pinned_memory_is_not_mapped)
{
	char *at = mmap(NULL, 4 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int dev = dev_open(), other = dev_open(), fd;
	struct tensor_import import;
	int64_t handle = buf_pin(dev, at, 4 * PAGE, 0);

	ASSERT_LT(0, handle);
	fd = buf_export_rw(dev, handle);
	ASSERT_EQ(0, buf_import(other, fd, &import));
	EXPECT_EQ(-EOPNOTSUPP, map_errno(fd, PAGE, PROT_READ, MAP_SHARED, 0));
	EXPECT_EQ(-EOPNOTSUPP, map_errno(other, PAGE, PROT_READ, MAP_SHARED, import.mmap_offset));
	EXPECT_EQ(-EOPNOTSUPP, map_errno(dev, PAGE, PROT_READ, MAP_SHARED, (uint64_t)handle << 40));
	close(fd);
	close(other);
	close(dev);
	munmap(at, 4 * PAGE);
}

TEST_HARNESS_MAIN
