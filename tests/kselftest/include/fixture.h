/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * Set-up and tear-down that several fixtures share: an open device with one buffer, with or
 * without a second client.
 */
#ifndef TENSOR_KSELFTEST_FIXTURE_H
#define TENSOR_KSELFTEST_FIXTURE_H

#include "device.h"

/* Opens the device, records how many bytes are in use, and allocates a buffer: 0 or -errno. */
HELPER int setup_buf(int *dev, uint64_t *used, struct tensor_alloc *buf, uint64_t bytes)
{
	*dev = dev_open();
	if (*dev < 0)
		return *dev;
	*used = dev_used(*dev);
	return dev_alloc(*dev, bytes, buf);
}

/* The same, and maps all of the buffer for reading and writing: the address or MAP_FAILED. */
HELPER void *setup_mapped_buf(int *dev, uint64_t *used, struct tensor_alloc *buf, uint64_t bytes)
{
	if (setup_buf(dev, used, buf, bytes))
		return MAP_FAILED;
	return map_shared(*dev, bytes, PROT_READ | PROT_WRITE, buf->mmap_offset);
}

/* Exports a handle twice, with all of its rights and for reading only: 0 or -errno. */
HELPER int setup_fds(int dev, uint32_t handle, int *fd, int *rofd)
{
	*fd = buf_export(dev, handle, 0);
	if (*fd < 0)
		return *fd;
	*rofd = buf_export_ro(dev, handle);
	return *rofd < 0 ? *rofd : 0;
}

/*
 * Closes the handle, unless it is 0 because the test has closed it, and the device: whether that
 * succeeded and as many bytes are in use as before setup_buf().
 */
HELPER bool teardown_buf(int dev, uint64_t used, uint32_t handle)
{
	bool closed = !handle || !dev_close(dev, handle), released = used_becomes(dev, used);

	close(dev);
	return closed && released;
}

/* A buffer, an fd of it with all rights, and a second client: 0 or -errno. */
HELPER int setup_two_clients(int *dev, int *other, int *fd, uint64_t *used,
			     struct tensor_alloc *buf, uint64_t bytes)
{
	int err = setup_buf(dev, used, buf, bytes);

	if (err)
		return err;
	*other = dev_open();
	if (*other < 0)
		return *other;
	*fd = buf_export(*dev, buf->handle, 0);
	return *fd < 0 ? *fd : 0;
}

/* Closes all three: whether as many bytes are in use as before setup_two_clients(). */
HELPER bool teardown_two_clients(int dev, int other, int fd, uint64_t used)
{
	int fresh = dev_open();

	close(fd);
	close(other);
	close(dev);
	return teardown_buf(fresh, used, 0);
}

#endif /* TENSOR_KSELFTEST_FIXTURE_H */
