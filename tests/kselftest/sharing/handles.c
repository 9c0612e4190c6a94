// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Handles of one client to one buffer: IMPORT returns the existing handle if range and rights are
 * the same, and it has to be closed as often as it was returned.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "../include/dmabuf.h"
#include "../include/fixture.h"
#include "kselftest_harness.h"

#define BYTES (16 * PAGE)

FIXTURE(handles)
{
	int dev;
	int other;
	int fd;
	uint64_t used;
	struct tensor_alloc buf;
};

FIXTURE_SETUP(handles)
{
	ASSERT_EQ(0, setup_two_clients(&self->dev, &self->other, &self->fd, &self->used, &self->buf,
				       BYTES));
}

FIXTURE_TEARDOWN(handles)
{
	EXPECT_TRUE(teardown_two_clients(self->dev, self->other, self->fd, self->used));
}

/* Number of handles of all clients to the buffer. */
static uint32_t handles(int fd)
{
	struct tensor_info info;

	return buf_info(fd, 0, &info) ? UINT32_MAX : info.handles;
}

TEST_F(handles, second_import_is_the_same_handle)
{
	struct tensor_import first, second;
	struct tensor_info info;

	ASSERT_EQ(0, buf_import(self->other, self->fd, &first));
	ASSERT_EQ(0, buf_import(self->other, self->fd, &second));
	EXPECT_EQ(first.handle, second.handle);
	EXPECT_EQ(first.mmap_offset, second.mmap_offset);
	EXPECT_EQ(first.bytes, second.bytes);
	EXPECT_EQ(first.rights, second.rights);
	EXPECT_EQ(2, handles(self->fd));
	EXPECT_EQ(0, dev_close(self->other, first.handle));
	EXPECT_EQ(0, buf_info(self->other, first.handle, &info));
	EXPECT_EQ(0, map_errno(self->other, PAGE, RW, MAP_SHARED, first.mmap_offset));
	EXPECT_EQ(2, handles(self->fd));
	EXPECT_EQ(0, dev_close(self->other, first.handle));
	EXPECT_EQ(-ENOENT, buf_info(self->other, first.handle, &info));
	EXPECT_EQ(-ENOENT, map_errno(self->other, PAGE, RW, MAP_SHARED, first.mmap_offset));
	EXPECT_EQ(-ENOENT, dev_close(self->other, first.handle));
	EXPECT_EQ(1, handles(self->fd));
}

TEST_F(handles, import_by_the_maker_is_the_handle_of_alloc)
{
	struct tensor_import import;
	struct tensor_info info;

	ASSERT_EQ(0, buf_import(self->dev, self->fd, &import));
	EXPECT_EQ(self->buf.handle, import.handle);
	EXPECT_EQ(self->buf.mmap_offset, import.mmap_offset);
	EXPECT_EQ(TENSOR_RIGHTS_ALL, import.rights);
	EXPECT_EQ(1, handles(self->fd));
	EXPECT_EQ(0, dev_close(self->dev, self->buf.handle));
	EXPECT_EQ(0, buf_info(self->dev, self->buf.handle, &info));
	EXPECT_EQ(0, dev_close(self->dev, self->buf.handle));
	EXPECT_EQ(-ENOENT, buf_info(self->dev, self->buf.handle, &info));
	EXPECT_EQ(0, handles(self->fd));
	/* and a new one after that */
	ASSERT_EQ(0, buf_import(self->dev, self->fd, &import));
	EXPECT_EQ(1, handles(self->fd));
	EXPECT_EQ(0, buf_info(self->dev, import.handle, &info));
}

TEST_F(handles, other_rights_or_range_are_another_handle)
{
	const uint64_t ranges[][2] = {
		{ 0, BYTES / 2 }, { BYTES / 2, BYTES / 2 }, { 0, PAGE }, { PAGE, PAGE }
	};
	struct tensor_import import[10];
	int i, k, n = 0, fd;

	ASSERT_EQ(0, buf_import(self->other, self->fd, &import[n++]));
	for (i = 0; i < 4; i++) {
		fd = buf_export_range(self->dev, self->buf.handle, 0, ranges[i][0], ranges[i][1]);
		ASSERT_EQ(0, buf_import(self->other, fd, &import[n++]));
		close(fd);
		fd = buf_export_range_rights(self->dev, self->buf.handle, TENSOR_RIGHTS_RO, 0,
					     ranges[i][0], ranges[i][1]);
		ASSERT_EQ(0, buf_import(self->other, fd, &import[n++]));
		close(fd);
	}
	fd = buf_export_ro(self->dev, self->buf.handle);
	ASSERT_EQ(0, buf_import(self->other, fd, &import[n++]));
	close(fd);
	for (i = 0; i < n; i++) {
		for (k = 0; k < i; k++)
			EXPECT_NE(import[i].handle, import[k].handle);
	}
	EXPECT_EQ(1 + n, handles(self->fd));
	for (i = 0; i < n; i++)
		EXPECT_EQ(0, dev_close(self->other, import[i].handle));
	EXPECT_EQ(1, handles(self->fd));
}

/* The buffer, the range and the rights count, not the fd. */
TEST_F(handles, other_fds_of_the_same_are_the_same_handle)
{
	struct tensor_import first, import;
	int fd[5], i;

	fd[0] = buf_export(self->dev, self->buf.handle, 0);
	fd[1] = buf_export(self->dev, self->buf.handle, TENSOR_EXPORT_INHERIT);
	fd[2] = buf_export(self->dev, self->buf.handle, DMABUF);
	fd[3] = buf_export_range(self->dev, self->buf.handle, 0, 0, BYTES);
	fd[4] = dup(self->fd);
	ASSERT_EQ(0, buf_import(self->other, self->fd, &first));
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, buf_import(self->other, fd[i], &import));
		EXPECT_EQ(first.handle, import.handle) TH_LOG("fd %d", i);
		close(fd[i]);
	}
	for (i = 0; i < 6; i++)
		EXPECT_EQ(0, dev_close(self->other, first.handle));
	EXPECT_EQ(-ENOENT, dev_close(self->other, first.handle));
}

TEST_F(handles, handle_of_another_client_is_separate)
{
	struct tensor_import mine, theirs;
	int third = dev_open();

	ASSERT_EQ(0, buf_import(self->other, self->fd, &mine));
	ASSERT_EQ(0, buf_import(third, self->fd, &theirs));
	EXPECT_EQ(3, handles(self->fd));
	EXPECT_EQ(0, dev_close(self->other, mine.handle));
	EXPECT_EQ(2, handles(self->fd));
	EXPECT_EQ(0, map_errno(third, PAGE, RW, MAP_SHARED, theirs.mmap_offset));
	close(third);
	EXPECT_EQ(1, handles(self->fd));
}

TEST_F(handles, reused_handles_are_released_with_the_client)
{
	struct tensor_import import;
	int i;

	for (i = 0; i < 1000; i++)
		ASSERT_EQ(0, buf_import(self->other, self->fd, &import));
	close(self->other);
	self->other = -1;
	EXPECT_EQ(1, handles(self->fd));
}

/* A closed handle's number may be reused for another buffer, which is not a handle to the first. */
TEST_F(handles, reused_number_finds_no_old_handle)
{
	struct tensor_import import, again;
	struct tensor_alloc alloc;
	struct tensor_info info, ours;
	int i;

	ASSERT_EQ(0, buf_info(self->fd, 0, &ours));
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, buf_import(self->other, self->fd, &import));
		ASSERT_EQ(0, dev_close(self->other, import.handle));
		ASSERT_EQ(0, dev_alloc(self->other, PAGE, &alloc));
		ASSERT_EQ(0, buf_import(self->other, self->fd, &again));
		EXPECT_NE(alloc.handle, again.handle);
		ASSERT_EQ(0, buf_info(self->other, again.handle, &info));
		EXPECT_EQ(ours.ino, info.ino);
		EXPECT_EQ(0, dev_close(self->other, again.handle));
		EXPECT_EQ(0, dev_close(self->other, alloc.handle));
	}
	EXPECT_EQ(1, handles(self->fd));
}

TEST_F(handles, reply_that_cannot_be_written_counts_nothing)
{
	struct tensor_import *ro = mmap(NULL, PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), import;

	ASSERT_EQ(0, buf_import(self->other, self->fd, &import));
	*ro = (struct tensor_import){ .size = sizeof(*ro), .fd = self->fd };
	ASSERT_EQ(0, mprotect(ro, PAGE, PROT_READ));
	EXPECT_EQ(-EFAULT, dev_call(self->other, TENSOR_IOC_IMPORT, ro));
	EXPECT_EQ(0, dev_close(self->other, import.handle));
	EXPECT_EQ(-ENOENT, dev_close(self->other, import.handle));
	munmap(ro, PAGE);
}

TEST_F(handles, handles_of_a_revoked_buffer_are_not_reused)
{
	struct tensor_import import, again;

	ASSERT_EQ(0, buf_import(self->other, self->fd, &import));
	ASSERT_EQ(0, buf_revoke(self->dev, self->buf.handle));
	EXPECT_EQ(-EIDRM, buf_import(self->other, self->fd, &again));
	EXPECT_EQ(0, dev_close(self->other, import.handle));
	EXPECT_EQ(-ENOENT, dev_close(self->other, import.handle));
}

/* Another import counts as another holder for ADVISE only if it makes another handle. */
TEST_F(handles, reused_handle_does_not_prevent_purging)
{
	struct tensor_import import;

	ASSERT_EQ(0, buf_import(self->dev, self->fd, &import));
	EXPECT_EQ(self->buf.handle, import.handle);
	EXPECT_EQ(-EBUSY, buf_advise(self->dev, import.handle, TENSOR_ADVISE_PURGEABLE));
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(0, buf_advise(self->dev, import.handle, TENSOR_ADVISE_PURGEABLE));
}

#define THREADS 4

struct race {
	int dev;
	int fd;
	atomic_bool stop;
	atomic_ulong wrong;
};

/* Each thread closes what it imported, and its handle works in between. */
static void *race_import(void *data)
{
	struct race *race = data;
	struct tensor_import import;
	struct tensor_info info;

	while (!race->stop) {
		if (buf_import(race->dev, race->fd, &import)) {
			race->wrong++;
			continue;
		}
		race->wrong += buf_info(race->dev, import.handle, &info) != 0;
		race->wrong += map_errno(race->dev, PAGE, RW, MAP_SHARED, import.mmap_offset) != 0;
		race->wrong += dev_close(race->dev, import.handle) != 0;
	}
	return NULL;
}

TEST_F_TIMEOUT(handles, threads_import_and_close_the_same_handle, 120)
{
	struct race race = { .dev = self->other, .fd = self->fd };
	pthread_t thread[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, race_import, &race));
	sleep_ms(3000);
	race.stop = true;
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(0, race.wrong);
	EXPECT_EQ(1, handles(self->fd));
}

/* Two handles of one buffer with different rights: closing one leaves the other working. */
static void *race_siblings(void *data)
{
	struct race *race = data;
	struct tensor_import import;

	while (!race->stop) {
		if (buf_import(race->dev, race->fd, &import))
			race->wrong++;
		else
			race->wrong += dev_close(race->dev, import.handle) != 0;
	}
	return NULL;
}

TEST_F_TIMEOUT(handles, threads_close_handles_of_one_buffer_in_any_order, 120)
{
	struct race race[THREADS] = {};
	pthread_t thread[THREADS];
	uint32_t rights;
	int i;

	for (i = 0; i < THREADS; i++) {
		rights = TENSOR_RIGHT_READ | (i & 1 ? TENSOR_RIGHT_WRITE : 0) |
			 (i & 2 ? TENSOR_RIGHT_ATTACH : 0);
		race[i].dev = self->other;
		race[i].fd = buf_export_rights(self->dev, self->buf.handle, rights, 0);
		ASSERT_LE(0, race[i].fd);
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, race_siblings, &race[i]));
	}
	sleep_ms(3000);
	for (i = 0; i < THREADS; i++)
		race[i].stop = true;
	for (i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		EXPECT_EQ(0, race[i].wrong);
		close(race[i].fd);
	}
	EXPECT_EQ(1, handles(self->fd));
}

TEST_HARNESS_MAIN
