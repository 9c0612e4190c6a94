// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * A SEAL that fails changes nothing, not even while it is in progress: it waits for references to
 * pages, and no other call may be refused meanwhile because of a seal that fails in the end.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "../include/dmabuf.h"
#include "kselftest_harness.h"

#define BYTES (16 * PAGE)

FIXTURE(seal_fails)
{
	int dev;
	int fd;
	int pipes[2];
	struct tensor_alloc buf;
};

/*
 * A page of the buffer stays in a pipe after it is unmapped, so that SEAL waits for it and fails.
 */
FIXTURE_SETUP(seal_fails)
{
	struct iovec iov;
	char *at;

	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, dev_alloc(self->dev, BYTES, &self->buf));
	self->fd = buf_export_rw(self->dev, self->buf.handle);
	ASSERT_EQ(0, pipe(self->pipes));
	at = map_shared(self->fd, BYTES, RW, 0);
	ASSERT_NE(MAP_FAILED, at);
	at[3 * PAGE] = 1;
	iov = (struct iovec){ at + 3 * PAGE, 100 };
	ASSERT_EQ(100, vmsplice(self->pipes[1], &iov, 1, 0));
	munmap(at, BYTES);
}

FIXTURE_TEARDOWN(seal_fails)
{
	close(self->pipes[0]);
	close(self->pipes[1]);
	close(self->fd);
	close(self->dev);
}

struct sealer {
	int dev;
	uint32_t handle;
	atomic_bool stop, under_way;
	atomic_int failed, wrong;
};

static void *seal_repeatedly(void *data)
{
	struct sealer *sealer = data;
	int err;

	while (!sealer->stop) {
		sealer->under_way = true;
		err = buf_seal(sealer->dev, sealer->handle, TENSOR_SEAL_WRITE);
		sealer->under_way = false;
		if (err == -EBUSY)
			sealer->failed++;
		else
			sealer->wrong++;
		sleep_ms(2);
	}
	return NULL;
}

/* One attempt to use the buffer in another thread: 0 if it succeeded. */
typedef int (*use_fn)(FIXTURE_DATA(seal_fails) * self);

/* Uses the buffer repeatedly until @count seals have failed meanwhile. */
static void use_while_seals_fail(struct __test_metadata *_metadata, FIXTURE_DATA(seal_fails) * self,
				 use_fn use)
{
	struct sealer sealer = { .dev = self->dev, .handle = self->buf.handle };
	int err, refused = 0, last = 0, meanwhile = 0;
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, seal_repeatedly, &sealer));
	while (sealer.failed < 10 && !sealer.wrong) {
		while (!sealer.under_way)
			sched_yield();
		err = use(self);
		meanwhile++;
		if (err) {
			refused++;
			last = err;
		}
		sleep_ms(1);
	}
	sealer.stop = true;
	pthread_join(thread, NULL);
	TH_LOG("%d uses, %d refused, the last with %d", meanwhile, refused, last);
	EXPECT_EQ(0, refused);
	EXPECT_EQ(0, sealer.wrong);
	EXPECT_EQ(0, buf_seal(self->dev, self->buf.handle, 0));
}

static int use_map(FIXTURE_DATA(seal_fails) * self)
{
	return map_errno(self->fd, BYTES, RW, MAP_SHARED, 0);
}

TEST_F_TIMEOUT(seal_fails, writable_mapping_of_the_fd_succeeds_during_a_failing_seal, 60)
{
	use_while_seals_fail(_metadata, self, use_map);
}

static int use_map_device(FIXTURE_DATA(seal_fails) * self)
{
	return map_errno(self->dev, BYTES, RW, MAP_SHARED, self->buf.mmap_offset);
}

TEST_F_TIMEOUT(seal_fails, writable_mapping_by_mmap_offset_succeeds_during_a_failing_seal, 60)
{
	use_while_seals_fail(_metadata, self, use_map_device);
}

static int use_map_import(FIXTURE_DATA(seal_fails) * self)
{
	struct tensor_import import;
	int dev = dev_open();
	int err = buf_import(dev, self->fd, &import) ?:
			  map_errno(dev, BYTES, RW, MAP_SHARED, import.mmap_offset);

	close(dev);
	return err;
}

TEST_F_TIMEOUT(seal_fails, writable_mapping_of_an_import_succeeds_during_a_failing_seal, 60)
{
	use_while_seals_fail(_metadata, self, use_map_import);
}

/* The mapping is made while a SEAL is in progress, and changed when that SEAL may have ended. */
static int use_protect(FIXTURE_DATA(seal_fails) * self)
{
	char *at = map_shared(self->fd, BYTES, PROT_READ, 0);
	int err = 0;

	if (at == MAP_FAILED)
		return -errno;
	if (touch_signal(at + PAGE))
		err = -EFAULT;
	if (!err && mprotect(at, BYTES, RW))
		err = -errno;
	if (!err)
		*(volatile char *)at = 1;
	munmap(at, BYTES);
	return err;
}

TEST_F_TIMEOUT(seal_fails, read_only_mapping_made_during_a_failing_seal_can_become_writable, 60)
{
	use_while_seals_fail(_metadata, self, use_protect);
}

static int use_sync(FIXTURE_DATA(seal_fails) * self)
{
	return buf_sync(self->fd, 0, TENSOR_SYNC_WRITE, 0) ?:
		       buf_sync(self->fd, 0, TENSOR_SYNC_WRITE | TENSOR_SYNC_END, 0);
}

TEST_F_TIMEOUT(seal_fails, sync_of_a_write_succeeds_during_a_failing_seal, 60)
{
	use_while_seals_fail(_metadata, self, use_sync);
}

static int use_export(FIXTURE_DATA(seal_fails) * self)
{
	int fd = buf_export_rw(self->dev, self->buf.handle);
	int err = fd < 0 ? fd : map_errno(fd, BYTES, RW, MAP_SHARED, 0);

	if (fd >= 0)
		close(fd);
	return err;
}

TEST_F_TIMEOUT(seal_fails, export_for_writing_succeeds_during_a_failing_seal, 60)
{
	use_while_seals_fail(_metadata, self, use_export);
}

static int use_seen(FIXTURE_DATA(seal_fails) * self)
{
	struct tensor_info info;
	int err = buf_info(self->fd, 0, &info);

	return err ? err : (int)info.seals;
}

TEST_F_TIMEOUT(seal_fails, info_shows_no_seal_during_a_failing_seal, 60)
{
	use_while_seals_fail(_metadata, self, use_seen);
}

/* After the pipe is emptied the same SEAL succeeds. */
TEST_F(seal_fails, seal_succeeds_when_the_page_is_free)
{
	char seen[100];

	EXPECT_EQ(-EBUSY, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_WRITE));
	EXPECT_EQ(0, use_map(self));
	ASSERT_EQ((ssize_t)sizeof(seen), read(self->pipes[0], seen, sizeof(seen)));
	EXPECT_EQ(TENSOR_SEAL_WRITE, buf_seal(self->dev, self->buf.handle, TENSOR_SEAL_WRITE));
	EXPECT_EQ(-EPERM, use_map(self));
}

TEST_HARNESS_MAIN
