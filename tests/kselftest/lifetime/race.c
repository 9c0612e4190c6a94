// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Threads that race: closing and using a handle, writing and reading a descriptor, touching and
 * unmapping. Faults are mostly detected by the debug kernel's log.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "../include/fixture.h"
#include "kselftest_harness.h"

#define MS 1500

FIXTURE(race)
{
	int dev;
	uint64_t used;
	struct tensor_alloc buf;
	void *at;
	atomic_bool stop;
	atomic_uint handle;
	atomic_ulong wins, losses, wrong;
};

FIXTURE_SETUP(race)
{
	ASSERT_EQ(0, setup_buf(&self->dev, &self->used, &self->buf, 2 * HUGE));
}

FIXTURE_TEARDOWN(race)
{
	int dev = dev_open();

	close(self->dev);
	EXPECT_EQ(0, self->wrong);
	EXPECT_TRUE(used_becomes(dev, self->used));
	close(dev);
}

/* Runs @n threads, one for each function in @work, for a while. */
static void run_threads(FIXTURE_DATA(race) * self, int n, void *(*const work[])(void *))
{
	pthread_t thread[16];
	int i;

	for (i = 0; i < n; i++) {
		if (pthread_create(&thread[i], NULL, work[i], self))
			abort();
	}
	sleep_ms(MS);
	self->stop = true;
	for (i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
}

/* Makes a handle, publishes its number, closes it. */
static void *maker(void *data)
{
	FIXTURE_DATA(race) *self = data;
	struct tensor_alloc alloc;

	while (!self->stop) {
		int err;

		if (dev_alloc(self->dev, PAGE, &alloc)) {
			self->wrong++;
			break;
		}
		self->handle = alloc.handle;
		err = dev_close(self->dev, alloc.handle);
		if (!err)
			self->wins++;
		else if (err == -ENOENT)
			self->losses++;
		else
			self->wrong++;
	}
	return NULL;
}

/* Closes the published handle, and the next number. */
static void *closer(void *data)
{
	FIXTURE_DATA(race) *self = data;

	while (!self->stop) {
		unsigned int handle = self->handle + (self->wins & 1);

		if (handle != self->buf.handle && !dev_close(self->dev, handle))
			self->losses++;
	}
	return NULL;
}

static void *user(void *data)
{
	FIXTURE_DATA(race) *self = data;
	struct tensor_desc desc = {
		.bits = 8,
		.dtype = TAG_U8,
		.ndim = 1,
		.sizes = { 4 },
		.strides = { 1 },
	};
	struct tensor_import import;
	struct tensor_info info;

	while (!self->stop) {
		unsigned int handle = self->handle;
		int fd = buf_export(self->dev, handle, 0);

		buf_info(self->dev, handle, &info);
		buf_meta(self->dev, handle, TENSOR_META_SET, &desc);
		if (fd < 0)
			continue;
		if (map_errno(fd, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0))
			self->wrong++;
		if (buf_import(self->dev, fd, &import))
			self->wrong++;
		else
			dev_close(self->dev, import.handle);
		close(fd);
	}
	return NULL;
}

TEST_F_TIMEOUT(race, handles_are_closed_once_and_used_consistently, 60)
{
	void *(*const work[])(void *) = { maker, maker, closer, user, user };

	run_threads(self, 5, work);
	EXPECT_LT(0, self->wins);
}

static const struct tensor_desc descs[2] = {
	{ .bits = 32,
	  .dtype = TAG_F32,
	  .ndim = 2,
	  .offset = 16,
	  .sizes = { 3, 5 },
	  .strides = { 5, 1 },
	  .label = "first" },
	{ .bits = 64,
	  .dtype = TAG_I64,
	  .ndim = 3,
	  .offset = 64,
	  .sizes = { 2, 2, 2 },
	  .strides = { 4, 2, 1 },
	  .label = "the second one" },
};

static void *meta_writer(void *data)
{
	FIXTURE_DATA(race) *self = data;
	struct tensor_desc desc;
	int i = 0;

	while (!self->stop) {
		desc = descs[i++ & 1];
		if (buf_meta(self->dev, self->buf.handle, TENSOR_META_SET, &desc))
			self->wrong++;
	}
	return NULL;
}

static void *meta_reader(void *data)
{
	FIXTURE_DATA(race) *self = data;
	struct tensor_desc desc;

	while (!self->stop) {
		if (buf_meta(self->dev, self->buf.handle, 0, &desc) ||
		    (memcmp(&desc, &descs[0], sizeof(desc)) &&
		     memcmp(&desc, &descs[1], sizeof(desc))))
			self->wrong++;
		self->wins++;
	}
	return NULL;
}

TEST_F_TIMEOUT(race, descriptor_is_read_consistently, 60)
{
	void *(*const work[])(void *) = { meta_writer, meta_writer, meta_reader, meta_reader };
	struct tensor_desc desc = descs[0];

	ASSERT_EQ(0, buf_meta(self->dev, self->buf.handle, TENSOR_META_SET, &desc));
	run_threads(self, 4, work);
	EXPECT_LT(0, self->wins);
}

static void *toucher(void *data)
{
	FIXTURE_DATA(race) *self = data;
	volatile unsigned char *at;
	uint64_t i;

	while (!self->stop) {
		at = map_shared(self->dev, 2 * HUGE, PROT_READ | PROT_WRITE, self->buf.mmap_offset);
		if (at == MAP_FAILED) {
			self->wrong++;
			break;
		}
		for (i = 0; i < 2 * HUGE; i += 37 * PAGE)
			at[i] = 1;
		munmap((void *)(at + 11 * PAGE), HUGE);
		for (i = HUGE + 11 * PAGE; i < 2 * HUGE; i += 37 * PAGE)
			at[i] = 2;
		munmap((void *)at, 2 * HUGE);
		self->wins++;
	}
	return NULL;
}

/* Removes the entries of one mapping that all threads share, in a loop. */
static void *dropper(void *data)
{
	FIXTURE_DATA(race) *self = data;

	while (!self->stop)
		madvise(self->at, 2 * HUGE, MADV_DONTNEED);
	return NULL;
}

static void *common_toucher(void *data)
{
	FIXTURE_DATA(race) *self = data;
	atomic_uint *word;
	unsigned int i = 0;

	while (!self->stop) {
		word = (atomic_uint *)((char *)self->at + i++ % 1024 * PAGE);
		(*word)++;
		self->wins++;
	}
	return NULL;
}

TEST_F_TIMEOUT(race, first_touch_races_with_partial_munmap, 60)
{
	void *(*const work[])(void *) = { toucher, toucher, toucher, toucher };
	struct tensor_info info;

	run_threads(self, 4, work);
	EXPECT_LT(0, self->wins);
	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &info));
	EXPECT_EQ(0, info.mappings);
}

TEST_F_TIMEOUT(race, no_write_is_lost_while_entries_are_dropped, 60)
{
	void *(*const work[])(void *) = { common_toucher, common_toucher, dropper };
	unsigned long sum = 0;
	int i;

	self->at = map_shared(self->dev, 2 * HUGE, PROT_READ | PROT_WRITE, self->buf.mmap_offset);
	ASSERT_NE(MAP_FAILED, self->at);
	run_threads(self, 3, work);
	for (i = 0; i < 1024; i++)
		sum += *(unsigned int *)((char *)self->at + i * PAGE);
	EXPECT_EQ(self->wins, sum);
	munmap(self->at, 2 * HUGE);
}

TEST_HARNESS_MAIN
