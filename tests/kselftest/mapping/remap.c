// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * System calls on a mapping that consists of PMDs: splitting, moving, inheriting, protecting,
 * advising. The content is unchanged, the rest of the mapping stays usable, and nothing leaks.
 */
#include <setjmp.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "../include/fixture.h"
#include "../include/touch.h"
#include "kselftest_harness.h"

#define BYTES (2 * HUGE)

FIXTURE(remap)
{
	int dev;
	uint64_t used;
	struct tensor_alloc buf;
	unsigned char *at;
};

/* Byte i of page n is n + 1. */
static int value(uint64_t page)
{
	return (page + 1) & 0xff;
}

FIXTURE_SETUP(remap)
{
	uint64_t page;

	self->at = setup_mapped_buf(&self->dev, &self->used, &self->buf, BYTES);
	ASSERT_NE(MAP_FAILED, self->at);
	for (page = 0; page < BYTES / PAGE; page++)
		memset(self->at + page * PAGE, value(page), PAGE);
}

FIXTURE_TEARDOWN(remap)
{
	struct tensor_info info;

	munmap(self->at, BYTES);
	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &info));
	EXPECT_EQ(0, info.mappings);
	EXPECT_TRUE(teardown_buf(self->dev, self->used, self->buf.handle));
}

static uint32_t mappings(FIXTURE_DATA(remap) * self)
{
	struct tensor_info info;

	return buf_info(self->dev, self->buf.handle, &info) ? UINT32_MAX : info.mappings;
}

static bool pages_hold(const unsigned char *at, uint64_t first, uint64_t count)
{
	uint64_t page;

	for (page = first; page < first + count; page++) {
		if (!all_bytes(at + (page - first) * PAGE, value(page), PAGE))
			return false;
	}
	return true;
}

static sigjmp_buf back;

static void on_fault(int sig)
{
	siglongjmp(back, sig);
}

/* The signal that touching a byte raises, 0 for none. */
static int touch(volatile unsigned char *at, bool write)
{
	struct sigaction act = { .sa_handler = on_fault }, segv, bus;
	int sig;

	sigaction(SIGSEGV, &act, &segv);
	sigaction(SIGBUS, &act, &bus);
	sig = sigsetjmp(back, 1);
	if (!sig) {
		if (write)
			*at = *at;
		else
			(void)*at;
	}
	sigaction(SIGSEGV, &segv, NULL);
	sigaction(SIGBUS, &bus, NULL);
	return sig;
}

TEST_F(remap, partial_munmap_leaves_the_rest)
{
	ASSERT_EQ(0, munmap(self->at + 100 * PAGE, 3 * PAGE));
	EXPECT_EQ(2, mappings(self));
	EXPECT_TRUE(pages_hold(self->at, 0, 100));
	EXPECT_TRUE(pages_hold(self->at + 103 * PAGE, 103, BYTES / PAGE - 103));
	EXPECT_EQ(SIGSEGV, touch(self->at + 101 * PAGE, false));
	EXPECT_EQ(0, touch(self->at + 103 * PAGE, true));
	ASSERT_EQ(0, munmap(self->at, PAGE));
	ASSERT_EQ(0, munmap(self->at + BYTES - PAGE, PAGE));
	EXPECT_TRUE(pages_hold(self->at + PAGE, 1, 99));
}

TEST_F(remap, hole_can_be_mapped_again)
{
	void *at;

	ASSERT_EQ(0, munmap(self->at + 7 * PAGE, PAGE));
	at = mmap(self->at + 7 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		  self->dev, self->buf.mmap_offset + 7 * PAGE);
	ASSERT_EQ(self->at + 7 * PAGE, at);
	EXPECT_TRUE(pages_hold(self->at, 0, BYTES / PAGE));
}

TEST_F(remap, mremap_moves)
{
	unsigned char *room, *to;

	room = mmap(NULL, BYTES + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, room);
	to = mremap(self->at, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, room + PAGE);
	ASSERT_EQ(room + PAGE, to);
	EXPECT_TRUE(pages_hold(to, 0, BYTES / PAGE));
	EXPECT_EQ(1, mappings(self));
	EXPECT_EQ(0, touch(to + HUGE + 3, true));
	munmap(room, BYTES + HUGE);
}

/*
 * Before 6.12 mremap() mistakes the entry of a huge page that is being removed for an empty page
 * table, so the module leaves it no entry to move. See
 * revoke_race.with_mremap_of_a_huge_page.
 */
TEST_F(remap, mremap_of_huge_pages_moves_no_entry_before_6_12)
{
	unsigned int major = 0, minor = 0;
	unsigned char *room, *to, *second;
	struct utsname name;
	pid_t child;
	int status;

	ASSERT_EQ(0, uname(&name));
	ASSERT_EQ(2, sscanf(name.release, "%u.%u", &major, &minor));
	if (major > 6 || (major == 6 && minor >= 12))
		SKIP(return, "mremap() of this kernel looks again");
	room = mmap(NULL, 3 * BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, room);
	room = (unsigned char *)(((uintptr_t)room + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	ASSERT_EQ(BYTES / PAGE, pages_present(self->at, BYTES));
	second = mremap(self->at, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, room);
	ASSERT_EQ(room, second);
	EXPECT_EQ(0, pages_present(second, BYTES));
	EXPECT_TRUE(pages_hold(second, 0, BYTES / PAGE));
	/* to a place without an entry of a huge page, since splitting one would remove it */
	to = mremap(second, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, room + BYTES + PAGE);
	ASSERT_EQ(room + BYTES + PAGE, to);
	EXPECT_EQ(0, pages_present(to, BYTES));
	EXPECT_TRUE(pages_hold(to, 0, BYTES / PAGE));
	/* move a part; then what a fork inherits, and what is split, keeps its entries */
	second = mremap(to + PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room);
	ASSERT_EQ(room, second);
	EXPECT_EQ(0, pages_present(second, PAGE));
	EXPECT_TRUE(pages_hold(second, 1, 1));
	EXPECT_TRUE(pages_hold(to + 2 * PAGE, 2, BYTES / PAGE - 2));
	ASSERT_EQ(0, mprotect(to + 8 * PAGE, PAGE, PROT_READ));
	EXPECT_EQ(8, pages_present(to + 4 * PAGE, 8 * PAGE));
	child = fork();
	if (!child)
		_exit(!pages_hold(to + 2 * PAGE, 2, BYTES / PAGE - 2));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(8, pages_present(to + 4 * PAGE, 8 * PAGE));
	munmap(to, BYTES);
	munmap(second, PAGE);
}

TEST_F(remap, mremap_moves_a_part)
{
	unsigned char *room, *to;

	room = mmap(NULL, 16 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	to = mremap(self->at + 50 * PAGE, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room);
	ASSERT_EQ(room, to);
	EXPECT_TRUE(pages_hold(to, 50, 4));
	EXPECT_TRUE(pages_hold(self->at, 0, 50));
	EXPECT_TRUE(pages_hold(self->at + 54 * PAGE, 54, BYTES / PAGE - 54));
	munmap(room, 16 * PAGE);
}

TEST_F(remap, mremap_cannot_grow)
{
	EXPECT_EQ(MAP_FAILED, mremap(self->at, BYTES, BYTES + PAGE, MREMAP_MAYMOVE));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(MAP_FAILED, mremap(self->at + BYTES - PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_TRUE(pages_hold(self->at, 0, BYTES / PAGE));
}

TEST_F(remap, mremap_shrinks)
{
	ASSERT_EQ(self->at, mremap(self->at, BYTES, HUGE + PAGE, 0));
	EXPECT_TRUE(pages_hold(self->at, 0, HUGE / PAGE + 1));
	EXPECT_EQ(SIGSEGV, touch(self->at + HUGE + PAGE, false));
}

TEST_F(remap, old_size_zero_makes_a_second_mapping)
{
	unsigned char *to = mremap(self->at, 0, BYTES, MREMAP_MAYMOVE);

	if (to == MAP_FAILED)
		return; /* a refusal is also correct */
	EXPECT_EQ(2, mappings(self));
	EXPECT_TRUE(pages_hold(to, 0, BYTES / PAGE));
	munmap(to, BYTES);
}

TEST_F(remap, fork_shares_bytes_both_ways)
{
	pid_t pid = fork();

	if (!pid) {
		bool same = pages_hold(self->at, 0, BYTES / PAGE);

		self->at[5] = 77;
		self->at[HUGE + 5] = 78;
		_exit(same && mappings(self) == 2 ? 0 : 1);
	}
	EXPECT_EQ(0, reap(pid));
	EXPECT_EQ(77, self->at[5]);
	EXPECT_EQ(78, self->at[HUGE + 5]);
	EXPECT_EQ(1, mappings(self));
}

TEST_F(remap, child_that_splits_a_pmd_does_not_affect_the_parent)
{
	pid_t pid = fork();

	if (!pid) {
		munmap(self->at + PAGE, 5 * PAGE);
		self->at[0] = value(0);
		_exit(pages_hold(self->at + 6 * PAGE, 6, BYTES / PAGE - 6) ? 0 : 1);
	}
	EXPECT_EQ(0, reap(pid));
	EXPECT_TRUE(pages_hold(self->at, 0, BYTES / PAGE));
}

TEST_F(remap, no_advice_loses_bytes)
{
	static const int advice[] = {
		MADV_DONTNEED,
		MADV_FREE,
		MADV_REMOVE,
		MADV_COLD,
		MADV_PAGEOUT,
		MADV_WILLNEED,
		MADV_HUGEPAGE,
		MADV_NOHUGEPAGE,
		MADV_DONTFORK,
		MADV_DOFORK,
		MADV_SEQUENTIAL,
		MADV_MERGEABLE,
		22 /* POPULATE_READ */,
		23 /* POPULATE_WRITE */,
		25 /* COLLAPSE */,
	};
	unsigned int i;

	for (i = 0; i < sizeof(advice) / sizeof(advice[0]); i++) {
		madvise(self->at, BYTES, advice[i]);
		EXPECT_TRUE(pages_hold(self->at, 0, BYTES / PAGE)) TH_LOG("advice %d", advice[i]);
		madvise(self->at + 9 * PAGE, 3 * PAGE, advice[i]);
		EXPECT_TRUE(pages_hold(self->at, 0, BYTES / PAGE)) TH_LOG("advice %d", advice[i]);
	}
}

TEST_F(remap, mprotect_of_a_part_counts_for_that_part)
{
	ASSERT_EQ(0, mprotect(self->at + 20 * PAGE, PAGE, PROT_READ));
	ASSERT_EQ(0, mprotect(self->at + HUGE, PAGE, PROT_NONE));
	EXPECT_EQ(0, touch(self->at + 19 * PAGE, true));
	EXPECT_EQ(0, touch(self->at + 20 * PAGE, false));
	EXPECT_EQ(SIGSEGV, touch(self->at + 20 * PAGE, true));
	EXPECT_EQ(0, touch(self->at + 21 * PAGE, true));
	EXPECT_EQ(SIGSEGV, touch(self->at + HUGE, false));
	EXPECT_EQ(0, touch(self->at + HUGE + PAGE, true));
	ASSERT_EQ(0, mprotect(self->at, BYTES, PROT_READ | PROT_WRITE));
	EXPECT_EQ(0, touch(self->at + 20 * PAGE, true));
	EXPECT_TRUE(pages_hold(self->at, 0, BYTES / PAGE));
}

TEST_F(remap, mapping_at_an_odd_address_and_offset_works)
{
	unsigned char *room, *at;

	room = mmap(NULL, BYTES + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	room = (unsigned char *)(((unsigned long)room + HUGE - 1) & ~(HUGE - 1)) + 3 * PAGE;
	at = mmap(room, HUGE + 9 * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, self->dev,
		  self->buf.mmap_offset + 5 * PAGE);
	ASSERT_EQ(room, at);
	EXPECT_TRUE(pages_hold(at, 5, HUGE / PAGE + 9));
	munmap(at, HUGE + 9 * PAGE);
}

TEST_F(remap, locked_and_populated_mappings_work)
{
	void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE | MAP_LOCKED,
			self->dev, self->buf.mmap_offset);

	ASSERT_NE(MAP_FAILED, at);
	EXPECT_TRUE(pages_hold(at, 0, BYTES / PAGE));
	EXPECT_EQ(0, mlock(self->at + PAGE, 3 * PAGE));
	EXPECT_EQ(0, munlock(self->at + PAGE, 3 * PAGE));
	munmap(at, BYTES);
}

TEST_F(remap, core_dump_omits_the_mapping)
{
	char line[512];
	bool here = false, dd = false;
	unsigned long first;
	FILE *f = fopen("/proc/self/smaps", "re");

	ASSERT_NE(NULL, f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-", &first) == 1 && strstr(line, "-"))
			here = first == (unsigned long)self->at;
		if (here && !strncmp(line, "VmFlags:", 8))
			dd = strstr(line, " dd") != NULL;
	}
	fclose(f);
	EXPECT_TRUE(dd);
}

TEST_HARNESS_MAIN
