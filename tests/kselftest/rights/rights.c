// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Rights: each alone permits what tensor.h says and nothing else, through a buffer fd, through a
 * handle imported from it and through a dma-buf; and no sequence of EXPORT and IMPORT adds one.
 */
#include "../include/dmabuf.h"
#include "kselftest_harness.h"

#define BYTES (4 * PAGE)

/* The accesses that the test tries. */
enum {
	MAP_READ = 1 << 0,
	MAP_WRITE = 1 << 1,
	MAP_UPGRADE = 1 << 2, /* mprotect() of a read-only mapping to writable */
	SYNC_READ = 1 << 3,
	SYNC_WRITE = 1 << 4,
	META_SET = 1 << 5,
	SEAL = 1 << 6,
	REVOKE = 1 << 7,
	EXPORT_FD = 1 << 8,
	EXPORT_DMABUF = 1 << 9,
	PURGE = 1 << 10,
	WRONG = 1 << 11, /* refused with another error than EACCES, or changed although refused */
};

FIXTURE(rights)
{
	int dev;
	int other;
	uint64_t used;
};

FIXTURE_SETUP(rights)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	self->used = dev_used(self->dev);
	self->other = dev_open();
	ASSERT_LE(0, self->other);
}

FIXTURE_TEARDOWN(rights)
{
	close(self->other);
	EXPECT_TRUE(used_becomes(self->dev, self->used));
	close(self->dev);
}

static int judge(int err, int what)
{
	return err == -EACCES ? 0 : err < 0 ? WRONG : what;
}

static int try_map(int fd, uint64_t mmap_offset)
{
	int got = judge(map_errno(fd, PAGE, PROT_READ, MAP_SHARED, mmap_offset), MAP_READ);
	void *at = map_shared(fd, PAGE, PROT_READ, mmap_offset);

	got |= judge(map_errno(fd, PAGE, RW, MAP_SHARED, mmap_offset), MAP_WRITE);
	got |= judge(map_errno(fd, PAGE, PROT_WRITE, MAP_SHARED, mmap_offset), MAP_WRITE);
	if (at == MAP_FAILED)
		return got;
	got |= judge(mprotect(at, PAGE, RW) ? -errno : 0, MAP_UPGRADE);
	munmap(at, PAGE);
	return got;
}

/* Tries SYNC, META and SEAL, on either kind of fd. META and INFO need no right to read. */
static int try_calls(int fd, uint32_t handle)
{
	struct tensor_desc desc = { .bits = 8, .ndim = 1, .sizes = { 8 }, .strides = { 1 } };
	struct tensor_desc seen;
	struct tensor_info info;
	int got;

	got = judge(buf_sync(fd, handle, TENSOR_SYNC_READ, 0), SYNC_READ);
	got |= judge(buf_sync(fd, handle, TENSOR_SYNC_WRITE, 0), SYNC_WRITE);
	got |= judge(buf_sync(fd, handle, TENSOR_SYNC_WRITE | TENSOR_SYNC_END, 0), SYNC_WRITE);
	got |= judge(buf_meta(fd, handle, TENSOR_META_SET, &desc), META_SET);
	if (buf_meta(fd, handle, 0, &seen) || !!seen.bits != !!(got & META_SET) ||
	    buf_info(fd, handle, &info) || !!info.generation != !!(got & SYNC_WRITE))
		got |= WRONG;
	got |= judge(buf_seal(fd, handle, TENSOR_SEAL_META), SEAL);
	if (buf_seal(fd, handle, 0) != (got & SEAL ? (int)TENSOR_SEAL_META : 0))
		got |= WRONG;
	return got;
}

/* Tries the calls that need a handle. REVOKE comes last, because it cannot be undone. */
static int try_handle(int dev, uint32_t handle, uint32_t rights)
{
	int fd = buf_export_rights(dev, handle, rights, 0), dmabuf, got;

	dmabuf = buf_export_rights(dev, handle, rights, TENSOR_EXPORT_DMABUF);
	got = judge(fd, EXPORT_FD) | judge(dmabuf, EXPORT_DMABUF);
	if (fd >= 0)
		close(fd);
	if (dmabuf >= 0)
		close(dmabuf);
	got |= judge(buf_advise(dev, handle, TENSOR_ADVISE_WILLNEED), PURGE);
	return got | judge(buf_revoke(dev, handle), REVOKE);
}

static int try_dmabuf(int fd)
{
	int got = try_map(fd, 0);

	got |= judge(dmabuf_sync(fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ), SYNC_READ);
	got |= judge(dmabuf_sync(fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_WRITE), SYNC_WRITE);
	return got | judge(dmabuf_sync(fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_WRITE), SYNC_WRITE);
}

/* The expected results of a handle or fd with these rights. */
static const struct {
	uint32_t rights;
	int permits;
} alone[] = {
	{ TENSOR_RIGHT_READ, MAP_READ | SYNC_READ },
	{ TENSOR_RIGHT_WRITE, SYNC_WRITE | META_SET | PURGE },
	{ TENSOR_RIGHT_ATTACH, 0 },
	{ TENSOR_RIGHT_SEAL, SEAL },
	{ TENSOR_RIGHT_REVOKE, REVOKE },
	{ TENSOR_RIGHT_EXPORT, EXPORT_FD },
	{ TENSOR_RIGHT_READ | TENSOR_RIGHT_WRITE,
	  MAP_READ | MAP_WRITE | MAP_UPGRADE | SYNC_READ | SYNC_WRITE | META_SET | PURGE },
	{ TENSOR_RIGHT_ATTACH | TENSOR_RIGHT_EXPORT, EXPORT_FD | EXPORT_DMABUF },
	{ TENSOR_RIGHTS_RO, MAP_READ | SYNC_READ | EXPORT_FD | EXPORT_DMABUF },
	{ TENSOR_RIGHTS_RW, MAP_READ | MAP_WRITE | MAP_UPGRADE | SYNC_READ | SYNC_WRITE | META_SET |
				    EXPORT_FD | EXPORT_DMABUF | PURGE },
	{ TENSOR_RIGHTS_ALL, MAP_READ | MAP_WRITE | MAP_UPGRADE | SYNC_READ | SYNC_WRITE |
				     META_SET | SEAL | REVOKE | EXPORT_FD | EXPORT_DMABUF | PURGE },
};

#define ALONE	  (sizeof(alone) / sizeof(alone[0]))
#define OF_FD	  (MAP_READ | MAP_WRITE | MAP_UPGRADE | SYNC_READ | SYNC_WRITE | META_SET | SEAL)
#define OF_DMABUF (MAP_READ | MAP_WRITE | MAP_UPGRADE | SYNC_READ | SYNC_WRITE)

TEST_F(rights, alone_through_a_buffer_fd)
{
	struct tensor_alloc alloc;
	struct tensor_info info;
	unsigned int i;
	int fd;

	for (i = 0; i < ALONE; i++) {
		ASSERT_EQ(0, dev_alloc(self->dev, BYTES, &alloc));
		fd = buf_export_rights(self->dev, alloc.handle, alone[i].rights, 0);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, buf_info(fd, 0, &info));
		EXPECT_EQ(alone[i].rights, info.rights);
		EXPECT_EQ(alone[i].permits & OF_FD, try_map(fd, 0) | try_calls(fd, 0))
		TH_LOG("rights %#x", alone[i].rights);
		close(fd);
		EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
	}
}

/* Tests a row through a handle that @client imports, from an fd or from a dma-buf. */
static void alone_by_handle(struct __test_metadata *_metadata, FIXTURE_DATA(rights) * self,
			    unsigned int i, int client, uint32_t flags, int permits)
{
	struct tensor_import import;
	struct tensor_alloc alloc;
	struct tensor_info info;
	int fd, got;

	ASSERT_EQ(0, dev_alloc(self->dev, BYTES, &alloc));
	fd = buf_export_rights(self->dev, alloc.handle, alone[i].rights, flags);
	ASSERT_EQ(0, buf_import(client, fd, &import));
	close(fd);
	EXPECT_EQ(alone[i].rights, import.rights);
	ASSERT_EQ(0, buf_info(client, import.handle, &info));
	EXPECT_EQ(alone[i].rights, info.rights);
	EXPECT_EQ(alone[i].rights & TENSOR_RIGHT_WRITE ? 0 : TENSOR_STATE_RDONLY, info.state);
	got = try_map(client, import.mmap_offset) | try_calls(client, import.handle);
	got |= try_handle(client, import.handle, alone[i].rights);
	EXPECT_EQ(permits, got) TH_LOG("rights %#x", alone[i].rights);
	EXPECT_EQ(0, dev_close(client, import.handle));
	EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
}

/* Through the maker's own open device, which ADVISE requires. */
TEST_F(rights, alone_through_a_handle)
{
	unsigned int i;

	for (i = 0; i < ALONE; i++)
		alone_by_handle(_metadata, self, i, self->dev, 0, alone[i].permits);
}

TEST_F(rights, alone_through_a_handle_of_another_client)
{
	unsigned int i;

	for (i = 0; i < ALONE; i++)
		alone_by_handle(_metadata, self, i, self->other, 0, alone[i].permits & ~PURGE);
}

TEST_F(rights, alone_through_a_dma_buf_and_a_handle_of_it)
{
	struct tensor_alloc alloc;
	unsigned int i;
	int fd;

	for (i = 0; i < ALONE; i++) {
		ASSERT_EQ(0, dev_alloc(self->dev, BYTES, &alloc));
		fd = buf_export_rights(self->dev, alloc.handle, alone[i].rights,
				       TENSOR_EXPORT_DMABUF);
		ASSERT_LE(0, fd);
		EXPECT_EQ(alone[i].permits & OF_DMABUF, try_dmabuf(fd))
		TH_LOG("rights %#x", alone[i].rights);
		/* a write through it raises the generation */
		EXPECT_EQ(!!(alone[i].permits & SYNC_WRITE),
			  info_of(self->dev, alloc.handle).generation);
		close(fd);
		EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
		alone_by_handle(_metadata, self, i, self->other, TENSOR_EXPORT_DMABUF,
				alone[i].permits & ~PURGE);
	}
}

TEST_F(rights, no_right_is_einval)
{
	struct tensor_alloc alloc;

	ASSERT_EQ(0, dev_alloc(self->dev, BYTES, &alloc));
	EXPECT_EQ(-EINVAL, buf_export_rights(self->dev, alloc.handle, 0, 0));
	EXPECT_EQ(-EINVAL, buf_export_rights(self->dev, alloc.handle, 0, TENSOR_EXPORT_DMABUF));
	EXPECT_EQ(-EINVAL, buf_export_range_rights(self->dev, alloc.handle, 0, 0, 0, PAGE));
	EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
}

/*
 * Exports from every set of rights to every other: succeeds if the source has the right to export
 * and all rights of the destination; otherwise EACCES. @flags: kinds of the exports.
 */
static void every_step(struct __test_metadata *_metadata, FIXTURE_DATA(rights) * self,
		       uint32_t flags)
{
	uint32_t from, to, needs = TENSOR_RIGHT_EXPORT;
	struct tensor_import first, second;
	struct tensor_alloc alloc;
	int fd, wrong = 0;

	if (flags & TENSOR_EXPORT_DMABUF)
		needs |= TENSOR_RIGHT_ATTACH;
	ASSERT_EQ(0, dev_alloc(self->dev, BYTES, &alloc));
	for (from = 1; from <= TENSOR_RIGHTS_ALL; from++) {
		fd = buf_export_rights(self->dev, alloc.handle, from, flags);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, buf_import(self->other, fd, &first));
		close(fd);
		wrong += first.rights != from;
		for (to = 1; to <= TENSOR_RIGHTS_ALL; to++) {
			fd = buf_export_rights(self->other, first.handle, to, flags);
			if ((from & (to | needs)) != (to | needs)) {
				wrong += fd != -EACCES;
				continue;
			}
			ASSERT_LE(0, fd);
			if (buf_import(self->other, fd, &second)) {
				wrong++;
			} else {
				wrong += second.rights != to;
				wrong += (second.handle == first.handle) != (to == from);
				wrong += dev_close(self->other, second.handle) != 0;
			}
			close(fd);
		}
		wrong += dev_close(self->other, first.handle) != 0;
	}
	EXPECT_EQ(0, wrong);
	EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
}

TEST_F_TIMEOUT(rights, every_step_over_a_buffer_fd_narrows, 300)
{
	every_step(_metadata, self, 0);
}

TEST_F_TIMEOUT(rights, every_step_over_a_dma_buf_narrows, 300)
{
	every_step(_metadata, self, TENSOR_EXPORT_DMABUF);
}

/*
 * A sequence of exports with random rights, over fds, dma-bufs and ranges: a removed right never
 * returns.
 */
TEST_F_TIMEOUT(rights, no_sequence_of_exports_adds_a_right, 120)
{
	uint64_t first, count, pages;
	struct tensor_import import;
	struct tensor_alloc alloc;
	struct tensor_info info;
	uint32_t have, ask, handle;
	int round, step, fd, wrong = 0;

	srandom(3);
	for (round = 0; round < 60; round++) {
		ASSERT_EQ(0, dev_alloc(self->dev, 64 * PAGE, &alloc));
		fd = buf_export(self->dev, alloc.handle, 0);
		ASSERT_EQ(0, buf_import(self->other, fd, &import));
		close(fd);
		handle = import.handle;
		have = TENSOR_RIGHTS_ALL;
		pages = 64;
		for (step = 0; step < 12; step++) {
			uint32_t flags = random() % 2 ? TENSOR_EXPORT_DMABUF : 0;
			uint32_t needs = TENSOR_RIGHT_EXPORT | (flags ? TENSOR_RIGHT_ATTACH : 0);

			ask = (1 + random() % TENSOR_RIGHTS_ALL) | (random() % 4 ? needs : 0);
			count = 1 + random() % pages;
			first = random() % (pages - count + 1);
			fd = buf_export_range_rights(self->other, handle, ask, flags, first * PAGE,
						     count * PAGE);
			if ((have & (ask | needs)) != (ask | needs)) {
				wrong += fd != -EACCES;
				continue;
			}
			ASSERT_LE(0, fd);
			ASSERT_EQ(0, buf_import(self->other, fd, &import));
			close(fd);
			wrong += dev_close(self->other, handle) != 0;
			handle = import.handle;
			have = ask;
			pages = count;
			ASSERT_EQ(0, buf_info(self->other, handle, &info));
			wrong += info.rights != have || info.bytes != pages * PAGE;
		}
		wrong += dev_close(self->other, handle) != 0;
		wrong += dev_close(self->dev, alloc.handle) != 0;
	}
	EXPECT_EQ(0, wrong);
}

/* SEAL and REVOKE affect the whole buffer, so a holder of a part may not call them. */
TEST_F(rights, all_rights_to_a_part_permit_neither_seal_nor_revoke)
{
	struct tensor_import import;
	struct tensor_alloc alloc;
	int fd;

	ASSERT_EQ(0, dev_alloc(self->dev, BYTES, &alloc));
	fd = buf_export_range_rights(self->dev, alloc.handle, TENSOR_RIGHTS_ALL, 0, PAGE, PAGE);
	ASSERT_EQ(0, buf_import(self->other, fd, &import));
	EXPECT_EQ(TENSOR_RIGHTS_ALL, import.rights);
	EXPECT_EQ(-EACCES, buf_seal(fd, 0, TENSOR_SEAL_META));
	EXPECT_EQ(-EACCES, buf_seal(self->other, import.handle, TENSOR_SEAL_META));
	EXPECT_EQ(-EACCES, buf_revoke(self->other, import.handle));
	close(fd);
	EXPECT_EQ(0, dev_close(self->other, import.handle));
	EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
}

/*
 * New fds of a sealed buffer cannot have the right to write; old ones keep its bit and cannot use
 * it.
 */
TEST_F(rights, sealed_buffer_gives_no_right_to_write)
{
	struct tensor_import import;
	struct tensor_alloc alloc;
	struct tensor_info info;
	int fd, ro;

	ASSERT_EQ(0, dev_alloc(self->dev, BYTES, &alloc));
	ro = buf_export_ro(self->dev, alloc.handle);
	ASSERT_EQ(0, buf_import(self->other, ro, &import));
	close(ro);
	fd = buf_export_rw(self->dev, alloc.handle);
	ASSERT_EQ(TENSOR_SEAL_WRITE, buf_seal(self->dev, alloc.handle, TENSOR_SEAL_WRITE));
	EXPECT_EQ(-EPERM, buf_export_rw(self->dev, alloc.handle));
	EXPECT_EQ(-EPERM, buf_export_rights(self->dev, alloc.handle, TENSOR_RIGHT_WRITE, 0));
	EXPECT_EQ(-EPERM, buf_export_rights(self->dev, alloc.handle, TENSOR_RIGHTS_RW,
					    TENSOR_EXPORT_DMABUF));
	/* a missing right is reported before the seal */
	EXPECT_EQ(-EACCES, buf_export_rw(self->other, import.handle));
	EXPECT_EQ(0, dev_close(self->other, import.handle));
	ASSERT_EQ(0, buf_info(fd, 0, &info));
	EXPECT_EQ(TENSOR_RIGHTS_RW, info.rights);
	EXPECT_EQ(-EPERM, map_errno(fd, PAGE, RW, MAP_SHARED, 0));
	EXPECT_EQ(-EPERM, buf_sync(fd, 0, TENSOR_SYNC_WRITE, 0));
	close(fd);
	fd = buf_export_rights(self->dev, alloc.handle, TENSOR_RIGHTS_ALL & ~TENSOR_RIGHT_WRITE, 0);
	EXPECT_LE(0, fd);
	close(fd);
	EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
}

/* Whether the fd is still open in a program that this process executes. */
static bool survives_exec(int fd)
{
	char command[64];
	pid_t pid;

	snprintf(command, sizeof(command), "test -e /proc/self/fd/%d", fd);
	pid = fork();
	if (!pid) {
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	return reap(pid) == 0;
}

TEST_F(rights, exported_fd_is_closed_by_exec_unless_it_is_inherited)
{
	static const uint32_t kinds[] = { 0, TENSOR_EXPORT_DMABUF };
	struct tensor_alloc alloc;
	unsigned int i;
	int fd;

	ASSERT_EQ(0, dev_alloc(self->dev, BYTES, &alloc));
	for (i = 0; i < 2; i++) {
		fd = buf_export_rights(self->dev, alloc.handle, TENSOR_RIGHTS_RO, kinds[i]);
		ASSERT_LE(0, fd);
		EXPECT_EQ(FD_CLOEXEC, fcntl(fd, F_GETFD));
		EXPECT_FALSE(survives_exec(fd));
		close(fd);
		fd = buf_export_rights(self->dev, alloc.handle, TENSOR_RIGHTS_RO,
				       kinds[i] | TENSOR_EXPORT_INHERIT);
		ASSERT_LE(0, fd);
		EXPECT_EQ(0, fcntl(fd, F_GETFD));
		EXPECT_TRUE(survives_exec(fd));
		close(fd);
	}
	EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
}

TEST_HARNESS_MAIN
