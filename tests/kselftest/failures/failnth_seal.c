// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* Injected failures in SEAL, REVOKE, ADVISE, SYNC and events. */
#include <poll.h>

#include "../include/failnth.h"

/* A buffer for one step, because the step cannot be undone. */
static struct tensor_alloc fresh(FIXTURE_DATA(failnth) * self, uint64_t bytes)
{
	struct tensor_alloc alloc;

	prepare(self);
	if (dev_alloc(self->dev, bytes, &alloc))
		abort();
	return alloc;
}

static int step_seal(FIXTURE_DATA(failnth) * self)
{
	struct tensor_alloc alloc = fresh(self, PAGE);
	int err;

	begin(self);
	err = buf_seal(self->dev, alloc.handle, TENSOR_SEAL_WRITE | TENSOR_SEAL_META);
	err = done(self, err < 0 ? err : 0);
	dev_close(self->dev, alloc.handle);
	return err;
}

static int step_revoke(FIXTURE_DATA(failnth) * self)
{
	struct tensor_alloc alloc = fresh(self, 2 * PAGE);
	int err;

	begin(self);
	err = done(self, buf_revoke(self->dev, alloc.handle));
	dev_close(self->dev, alloc.handle);
	return err;
}

static int step_advise_purgeable(FIXTURE_DATA(failnth) * self)
{
	struct tensor_alloc alloc = fresh(self, PAGE);
	int err;

	begin(self);
	err = done(self, buf_advise(self->dev, alloc.handle, TENSOR_ADVISE_PURGEABLE));
	dev_close(self->dev, alloc.handle);
	return err;
}

/*
 * WILLNEED allocates the purged pages again and can be repeated if that fails. If the second reply
 * cannot be written the answer is lost, although the memory was allocated.
 */
static int step_advise_back(FIXTURE_DATA(failnth) * self)
{
	struct tensor_alloc alloc = fresh(self, 20 * PAGE);
	struct tensor_info info;
	int purged, again, err, tries;

	if (buf_advise(self->dev, alloc.handle, TENSOR_ADVISE_PURGEABLE))
		abort();
	for (tries = 0; tries < 20; tries++) {
		write_text("/proc/sys/vm/drop_caches", "2");
		if (buf_info(self->dev, alloc.handle, &info) || info.state & TENSOR_STATE_PURGED)
			break;
	}
	begin(self);
	purged = buf_advise(self->dev, alloc.handle, TENSOR_ADVISE_WILLNEED);
	err = done(self, purged < 0 ? purged : 0);
	again = purged < 0 ? buf_advise(self->dev, alloc.handle, TENSOR_ADVISE_WILLNEED) : 1;
	if (again < 0 || (!again && purged != -EFAULT))
		abort();
	dev_close(self->dev, alloc.handle);
	return err;
}

static int step_sync(FIXTURE_DATA(failnth) * self)
{
	struct tensor_sync sync = { .size = sizeof(sync),
				    .handle = self->buf.handle,
				    .flags = TENSOR_SYNC_READ | TENSOR_SYNC_WRITE };
	int err = dev_call(self->dev, TENSOR_IOC_SYNC, &sync);

	sync.flags |= TENSOR_SYNC_END;
	sync.generation = 0;
	if (!err)
		err = dev_call(self->dev, TENSOR_IOC_SYNC, &sync);
	return done(self, err);
}

/* A read that fails leaves the event, so that it can be read again. */
static int step_read_event(FIXTURE_DATA(failnth) * self)
{
	struct tensor_alloc alloc = fresh(self, PAGE);
	struct pollfd p = { .fd = self->dev, .events = POLLIN };
	int fd = buf_export(self->dev, alloc.handle, 0), other = dev_open(), err;
	struct tensor_event event[4];
	struct tensor_import import;

	if (fd < 0 || other < 0 || buf_import(other, fd, &import) ||
	    buf_seal(other, import.handle, TENSOR_SEAL_META) < 0)
		abort();
	begin(self);
	err = read(self->dev, event, sizeof(event)) < 0 ? -errno : 0;
	err = done(self, err);
	if (err < 0 && (poll(&p, 1, 0) != 1 || read(self->dev, event, sizeof(event)) < 0))
		abort();
	close(other);
	close(fd);
	dev_close(self->dev, alloc.handle);
	return err;
}

static int step_poll(FIXTURE_DATA(failnth) * self)
{
	struct pollfd p = { .fd = self->dev, .events = POLLIN };

	return done(self, poll(&p, 1, 0) < 0 ? -errno : 0);
}

TEST_F_TIMEOUT(failnth, every_failure_of_seal_is_survived, 120)
{
	every_failure(_metadata, self, step_seal);
}

TEST_F_TIMEOUT(failnth, every_failure_of_revoke_is_survived, 120)
{
	every_failure(_metadata, self, step_revoke);
}

TEST_F_TIMEOUT(failnth, every_failure_of_advise_purgeable_is_survived, 120)
{
	every_failure(_metadata, self, step_advise_purgeable);
}

TEST_F_TIMEOUT(failnth, every_failure_of_advise_back_is_survived, 120)
{
	every_failure(_metadata, self, step_advise_back);
}

TEST_F_TIMEOUT(failnth, every_failure_of_sync_is_survived, 120)
{
	every_failure(_metadata, self, step_sync);
}

TEST_F_TIMEOUT(failnth, every_failure_of_read_event_is_survived, 120)
{
	every_failure(_metadata, self, step_read_event);
}

TEST_F_TIMEOUT(failnth, every_failure_of_poll_is_survived, 120)
{
	every_failure(_metadata, self, step_poll);
}

TEST_HARNESS_MAIN
