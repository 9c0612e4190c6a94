// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * IMPORT of an fd number that another thread replaces meanwhile: the result is one of the files
 * that the number referred to, with its rights and its size, as if IMPORT were atomic.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "../include/dmabuf.h"
#include "kselftest_harness.h"

#define NUMBER	 500
#define ROUNDS	 60000
#define SECONDS	 15
#define CHANGERS 2

/* A file that the number may refer to, identified by its size. */
struct candidate {
	const char *name;
	int fd;
	uint64_t bytes;
	uint32_t kind, state;
	unsigned long seen;
};

#define MOST 8

FIXTURE(import_race)
{
	int dev;
	int maker;
	struct candidate files[MOST];
	int count;
	bool closes;
	atomic_bool stop;
};

static void add(FIXTURE_DATA(import_race) * self, const char *name, int fd, uint64_t bytes,
		uint32_t kind, uint32_t state)
{
	if (fd >= 0)
		self->files[self->count++] = (struct candidate){ name, fd, bytes, kind, state, 0 };
}

/* A dma-buf of another driver, if there is one. */
static int make_foreign(uint64_t bytes)
{
	int card = vgem_open(), fd;
	uint32_t gem;

	if (card < 0)
		return card;
	fd = vgem_create(card, bytes, &gem) ? -EIO : vgem_export(card, gem, O_CLOEXEC | O_RDWR);
	close(card);
	return fd;
}

static int make_shared(FIXTURE_DATA(import_race) * self, uint64_t bytes, unsigned int share)
{
	struct tensor_alloc alloc;

	return dev_alloc(self->maker, bytes, &alloc) ?: buf_share(self->maker, alloc.handle, share);
}

FIXTURE_SETUP(import_race)
{
	self->dev = dev_open();
	self->maker = dev_open();
	ASSERT_LE(0, self->maker);
}

FIXTURE_TEARDOWN(import_race)
{
	int i;

	for (i = 0; i < self->count; i++)
		close(self->files[i].fd);
	close(NUMBER);
	close(self->maker);
	close(self->dev);
}

static void *change_meaning(void *data)
{
	FIXTURE_DATA(import_race) *self = data;
	unsigned int i, n;

	for (i = 0; !self->stop; i++) {
		dup2(self->files[i % self->count].fd, NUMBER);
		if (self->closes && i % 7 == 6)
			close(NUMBER);
		/* a different delay in each round */
		for (n = i % 2 * (i * 37 % 800); n; n--)
			__asm__ volatile("" ::: "memory");
	}
	return NULL;
}

static struct candidate *found(FIXTURE_DATA(import_race) * self, const struct tensor_import *import)
{
	struct candidate *file;

	for (file = self->files; file < self->files + self->count; file++)
		if (file->bytes == import->bytes)
			return file;
	return NULL;
}

/* The sizes of all candidates differ. */
static void race(struct __test_metadata *_metadata, FIXTURE_DATA(import_race) * self)
{
	unsigned long errors = 0, mixed = 0, absent = 0, rounds;
	time_t end = time(NULL) + SECONDS;
	struct tensor_import import;
	struct candidate *file;
	struct tensor_info info;
	pthread_t thread[CHANGERS];
	int err, last = 0, i;

	ASSERT_EQ(NUMBER, dup2(self->files[0].fd, NUMBER));
	for (i = 0; i < CHANGERS; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, change_meaning, self));
	for (rounds = 0; rounds < ROUNDS && time(NULL) < end && !errors && !mixed; rounds++) {
		err = buf_import(self->dev, NUMBER, &import);
		if (err == -EBADF && self->closes) {
			absent++;
			continue;
		}
		if (err) {
			errors++;
			last = err;
			continue;
		}
		file = found(self, &import);
		info = info_of(self->dev, import.handle);
		if (!file || info.kind != file->kind || info.state != file->state ||
		    info.bytes != import.bytes)
			mixed++;
		else
			file->seen++;
		dev_close(self->dev, import.handle);
	}
	self->stop = true;
	for (i = 0; i < CHANGERS; i++)
		pthread_join(thread[i], NULL);
	for (i = 0; i < self->count; i++)
		TH_LOG("%s: %lu", self->files[i].name, self->files[i].seen);
	TH_LOG("%lu rounds, %lu errors, the last %d, %lu absent", rounds, errors, last, absent);
	EXPECT_EQ(0, errors);
	EXPECT_EQ(0, mixed);
}

TEST_F_TIMEOUT(import_race, memfd_against_our_dma_buf, 60)
{
	add(self, "memfd", memfd_new(3 * PAGE, 0), 3 * PAGE, TENSOR_KIND_MEMFD, 0);
	add(self, "dma-buf", make_shared(self, 5 * PAGE, SHARE_DMABUF), 5 * PAGE, TENSOR_KIND_ALLOC,
	    0);
	race(_metadata, self);
}

TEST_F_TIMEOUT(import_race, buffer_fd_against_our_dma_buf, 60)
{
	add(self, "buffer fd", make_shared(self, 3 * PAGE, SHARE_RO), 3 * PAGE, TENSOR_KIND_ALLOC,
	    TENSOR_STATE_RDONLY);
	add(self, "dma-buf", make_shared(self, 5 * PAGE, SHARE_DMABUF), 5 * PAGE, TENSOR_KIND_ALLOC,
	    0);
	race(_metadata, self);
}

TEST_F_TIMEOUT(import_race, buffer_fd_against_memfd, 60)
{
	add(self, "buffer fd", make_shared(self, 3 * PAGE, SHARE_RO), 3 * PAGE, TENSOR_KIND_ALLOC,
	    TENSOR_STATE_RDONLY);
	add(self, "sealed memfd", memfd_new(5 * PAGE, F_SEAL_WRITE), 5 * PAGE, TENSOR_KIND_MEMFD,
	    TENSOR_STATE_RDONLY);
	add(self, "memfd", memfd_new(7 * PAGE, 0), 7 * PAGE, TENSOR_KIND_MEMFD, 0);
	race(_metadata, self);
}

TEST_F_TIMEOUT(import_race, every_kind_against_every_other, 60)
{
	add(self, "buffer fd", make_shared(self, 3 * PAGE, 0), 3 * PAGE, TENSOR_KIND_ALLOC, 0);
	add(self, "memfd", memfd_new(5 * PAGE, 0), 5 * PAGE, TENSOR_KIND_MEMFD, 0);
	add(self, "read-only fd", make_shared(self, 7 * PAGE, SHARE_RO), 7 * PAGE,
	    TENSOR_KIND_ALLOC, TENSOR_STATE_RDONLY);
	add(self, "dma-buf", make_shared(self, 9 * PAGE, SHARE_DMABUF), 9 * PAGE, TENSOR_KIND_ALLOC,
	    0);
	add(self, "sealed memfd", memfd_new(11 * PAGE, F_SEAL_WRITE), 11 * PAGE, TENSOR_KIND_MEMFD,
	    TENSOR_STATE_RDONLY);
	add(self, "read-only dma-buf", make_shared(self, 13 * PAGE, SHARE_DMABUF | SHARE_RO),
	    13 * PAGE, TENSOR_KIND_ALLOC, TENSOR_STATE_RDONLY);
	add(self, "vgem", make_foreign(16 * PAGE), 16 * PAGE, TENSOR_KIND_DMABUF, 0);
	race(_metadata, self);
}

/* A number that is closed at that moment is EBADF, whatever it referred to before. */
TEST_F_TIMEOUT(import_race, number_that_is_closed_concurrently, 60)
{
	self->closes = true;
	add(self, "memfd", memfd_new(3 * PAGE, 0), 3 * PAGE, TENSOR_KIND_MEMFD, 0);
	add(self, "dma-buf", make_shared(self, 5 * PAGE, SHARE_DMABUF), 5 * PAGE, TENSOR_KIND_ALLOC,
	    0);
	race(_metadata, self);
}

TEST_HARNESS_MAIN
