// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * SYNC keeps its deadline on a dma-buf of another driver, whose begin_cpu_access() waits for fences
 * without a time limit, both for a fence that exists before and for one that is added during SYNC.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "../include/dmabuf.h"
#include "kselftest_harness.h"

#define BYTES	    (64 * PAGE)
#define TOO_LONG_NS 100000000ULL

/* Tolerance in thousands of calls on a busy machine; a fence is kept unsignalled for longer. */
#define LATE_NS	 700000000ULL
#define STUCK_NS 1500000000ULL
#define TRIES	 5

FIXTURE(deadline)
{
	int dev;
	int vgem;
	int fd;
	uint32_t gem;
	struct tensor_import buf;
};

FIXTURE_VARIANT(deadline)
{
	bool udmabuf;
};

FIXTURE_VARIANT_ADD(deadline, vgem){ .udmabuf = false };
FIXTURE_VARIANT_ADD(deadline, udmabuf){ .udmabuf = true };

/* vgem adds the fences in both cases: it can also add them to dma-bufs that it imports. */
FIXTURE_SETUP(deadline)
{
	self->vgem = vgem_open();
	if (self->vgem < 0)
		SKIP_SETUP("no vgem");
	if (variant->udmabuf) {
		self->fd = udmabuf_new(BYTES);
		if (self->fd < 0)
			SKIP_SETUP("no udmabuf");
		ASSERT_EQ(0, vgem_import(self->vgem, self->fd, &self->gem));
	} else {
		ASSERT_EQ(0, vgem_create(self->vgem, BYTES, &self->gem));
		self->fd = vgem_export(self->vgem, self->gem, O_CLOEXEC | O_RDWR);
		ASSERT_LE(0, self->fd);
	}
	self->dev = dev_open();
	ASSERT_EQ(0, buf_import(self->dev, self->fd, &self->buf));
}

FIXTURE_TEARDOWN(deadline)
{
	close(self->vgem);
	close(self->fd);
	close(self->dev);
}

/* Nanoseconds that a SYNC with a deadline in @ms takes; its error in *err. */
static uint64_t sync_takes(int dev, uint32_t handle, uint32_t flags, uint64_t ms, int *err)
{
	uint64_t begin = deadline_ms(0);

	*err = buf_sync(dev, handle, flags, ms ? begin + ms * 1000000 : 0);
	return deadline_ms(0) - begin;
}

/* The minimum of several calls that all time out, because the machine may be busy. */
static uint64_t timeout_takes(int fd, uint32_t handle, uint32_t flags, uint64_t ms)
{
	uint64_t best = UINT64_MAX, took;
	int err, i;

	for (i = 0; i < TRIES && best > TOO_LONG_NS; i++) {
		took = sync_takes(fd, handle, flags, ms, &err);
		if (err != -ETIMEDOUT)
			return UINT64_MAX;
		best = took < best ? took : best;
	}
	return best;
}

TEST_F(deadline, is_kept_with_an_existing_fence)
{
	static const uint32_t flags[] = { TENSOR_SYNC_READ, TENSOR_SYNC_WRITE,
					  TENSOR_SYNC_READ | TENSOR_SYNC_WRITE };
	int fence = vgem_fence(self->vgem, self->gem, VGEM_WRITES), err;
	unsigned int i, ms;

	ASSERT_LT(0, fence);
	for (i = 0; i < 3; i++) {
		for (ms = 0; ms < 3; ms++) {
			EXPECT_GE(TOO_LONG_NS,
				  timeout_takes(self->dev, self->buf.handle, flags[i], ms));
		}
	}
	EXPECT_EQ(0, vgem_signal(self->vgem, fence));
	sync_takes(self->dev, self->buf.handle, TENSOR_SYNC_READ, 1, &err);
	EXPECT_EQ(0, err);
}

/*
 * Adds fences while another thread calls SYNC. A fence is signalled when two calls have ended
 * since, or when none ends: then SYNC waits for it.
 */
struct fencer {
	int vgem;
	uint32_t gem;
	atomic_bool stop;
	atomic_ulong syncs, fences, stuck;
};

static void *make_fences(void *data)
{
	struct fencer *fencer = data;
	unsigned long before;
	uint64_t until;
	int fence;

	while (!fencer->stop) {
		before = fencer->syncs;
		while (fencer->syncs == before && !fencer->stop)
			;
		fence = vgem_fence(fencer->vgem, fencer->gem, VGEM_WRITES);
		if (fence < 0)
			continue;
		fencer->fences++;
		before = fencer->syncs;
		until = deadline_ms(0) + STUCK_NS;
		while (fencer->syncs < before + 2 && !fencer->stop && deadline_ms(0) < until)
			sched_yield();
		fencer->stuck += deadline_ms(0) >= until;
		vgem_signal(fencer->vgem, fence);
	}
	return NULL;
}

/* A busy host may delay a guest as long, but not in most of its waits. */
static bool seldom(unsigned long n, unsigned long times)
{
	return n < 3 || n < times / 20;
}

static void sync_beside_fences(struct __test_metadata *_metadata, FIXTURE_DATA(deadline) * self,
			       uint32_t flags, uint64_t ms)
{
	struct fencer fencer = { .vgem = self->vgem, .gem = self->gem };
	uint64_t took, longest = 0, end = deadline_ms(15000);
	unsigned long timeouts = 0, wrong = 0, late = 0;
	pthread_t thread;
	int err;

	ASSERT_EQ(0, pthread_create(&thread, NULL, make_fences, &fencer));
	while (fencer.fences < 1500 && deadline_ms(0) < end && seldom(late, timeouts)) {
		took = sync_takes(self->dev, self->buf.handle, flags, ms, &err);
		fencer.syncs++;
		timeouts += err == -ETIMEDOUT;
		wrong += err && err != -ETIMEDOUT;
		late += took > LATE_NS;
		longest = took > longest ? took : longest;
	}
	fencer.stop = true;
	pthread_join(thread, NULL);
	TH_LOG("%lu calls, %lu fences, %lu timeouts, longest %.1f ms", (unsigned long)fencer.syncs,
	       (unsigned long)fencer.fences, timeouts, longest / 1e6);
	EXPECT_EQ(0, wrong);
	EXPECT_TRUE(seldom(fencer.stuck, fencer.fences));
	EXPECT_TRUE(seldom(late, timeouts));
}

TEST_F_TIMEOUT(deadline, is_kept_with_fences_added_during_sync, 60)
{
	sync_beside_fences(_metadata, self, TENSOR_SYNC_READ, 1);
}

TEST_F_TIMEOUT(deadline, of_a_writer_is_kept_with_fences_added_during_sync, 60)
{
	sync_beside_fences(_metadata, self, TENSOR_SYNC_READ | TENSOR_SYNC_WRITE, 1);
}

/* Without a deadline SYNC does not wait. */
TEST_F_TIMEOUT(deadline, zero_does_not_wait_for_fences_added_during_sync, 60)
{
	sync_beside_fences(_metadata, self, TENSOR_SYNC_READ, 0);
}

/* The buffer fd of an imported dma-buf uses the same path. */
TEST_F(deadline, is_kept_through_a_buffer_fd)
{
	int fence = vgem_fence(self->vgem, self->gem, VGEM_WRITES);
	int fd = buf_export_rw(self->dev, self->buf.handle);

	ASSERT_LT(0, fence);
	ASSERT_LE(0, fd);
	EXPECT_GE(TOO_LONG_NS, timeout_takes(fd, 0, TENSOR_SYNC_READ, 1));
	EXPECT_EQ(0, vgem_signal(self->vgem, fence));
	close(fd);
}

TEST_HARNESS_MAIN
