// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Injected failures in operations for devices: pinned user memory, export and import of dma-bufs,
 * contiguous memory.
 */
#include "../include/dmabuf.h"
#include "../include/failnth.h"

static int step_pin(FIXTURE_DATA(failnth) * self)
{
	struct tensor_pin pin = { .size = sizeof(pin), .bytes = 8 * PAGE };
	void *at;
	int err, ended;

	prepare(self);
	at = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	pin.addr = (unsigned long)at;
	begin(self);
	err = dev_call(self->dev, TENSOR_IOC_PIN, &pin);
	ended = done(self, err);
	if (!err)
		dev_close(self->dev, pin.handle);
	munmap(at, 8 * PAGE);
	return ended;
}

static int alloc_step(FIXTURE_DATA(failnth) * self, uint32_t flags)
{
	struct tensor_alloc alloc = alloc_args(4 * PAGE);
	int err, ended;

	alloc.flags = flags;
	err = dev_call(self->dev, TENSOR_IOC_ALLOC, &alloc);
	ended = done(self, err);
	if (!err)
		dev_close(self->dev, alloc.handle);
	return ended;
}

static int step_alloc_contig(FIXTURE_DATA(failnth) * self)
{
	return alloc_step(self, TENSOR_ALLOC_CONTIG);
}

static int step_alloc_dma32(FIXTURE_DATA(failnth) * self)
{
	return alloc_step(self, TENSOR_ALLOC_DMA32);
}

static int step_alloc_interleave(FIXTURE_DATA(failnth) * self)
{
	return alloc_step(self, TENSOR_ALLOC_INTERLEAVE);
}

static int step_export_dmabuf(FIXTURE_DATA(failnth) * self)
{
	int fd = buf_export_rights(self->dev, self->buf.handle, TENSOR_RIGHTS_RW, DMABUF);
	int err = done(self, fd < 0 ? fd : 0);

	if (fd >= 0)
		close(fd);
	return err;
}

static int step_export_range(FIXTURE_DATA(failnth) * self)
{
	int fd = buf_export_range_rights(self->dev, self->buf.handle, TENSOR_RIGHTS_RW, 0, PAGE,
					 PAGE);
	int err = done(self, fd < 0 ? fd : 0);

	if (fd >= 0)
		close(fd);
	return err;
}

static int import_step(FIXTURE_DATA(failnth) * self, int fd)
{
	struct tensor_import import;
	int err, ended;

	if (fd < 0)
		abort();
	begin(self);
	err = buf_import(self->dev, fd, &import);
	ended = done(self, err);
	if (!err)
		dev_close(self->dev, import.handle);
	close(fd);
	return ended;
}

static int step_import_own_dmabuf(FIXTURE_DATA(failnth) * self)
{
	prepare(self);
	return import_step(self, buf_export_rights(self->dev, self->buf.handle, TENSOR_RIGHTS_RW,
						   DMABUF));
}

static int step_import_memfd(FIXTURE_DATA(failnth) * self)
{
	int fd;

	prepare(self);
	fd = memfd_new(4 * PAGE, 0);
	if (fd < 0)
		abort();
	return import_step(self, fd);
}

/* A buffer that the card allocates, as a dma-buf. */
static int card_dmabuf(int card)
{
	struct drm_mode_create_dumb dumb = { .width = 64, .height = 64, .bpp = 32 };
	struct drm_prime_handle prime = { .flags = DRM_CLOEXEC | DRM_RDWR };

	if (ioctl(card, DRM_IOCTL_MODE_CREATE_DUMB, &dumb))
		return -errno;
	prime.handle = dumb.handle;
	return ioctl(card, DRM_IOCTL_PRIME_HANDLE_TO_FD, &prime) ? -errno : prime.fd;
}

static int step_import_foreign_dmabuf(FIXTURE_DATA(failnth) * self)
{
	int card, err;

	prepare(self);
	card = vgem_open();
	if (card < 0)
		return 1;
	err = import_step(self, card_dmabuf(card));
	close(card);
	return err;
}

/* A card imports a dma-buf of the module: attach, map. */
static int step_attach(FIXTURE_DATA(failnth) * self)
{
	struct drm_prime_handle prime = { 0 };
	int card, err;

	prepare(self);
	card = vgem_open();
	if (card < 0)
		return 1;
	prime.fd = buf_export(self->dev, self->buf.handle, DMABUF);
	begin(self);
	err = ioctl(card, DRM_IOCTL_PRIME_FD_TO_HANDLE, &prime) ? -errno : 0;
	err = done(self, err);
	close(prime.fd);
	close(card);
	return err;
}

static int step_map_dmabuf(FIXTURE_DATA(failnth) * self)
{
	void *at;
	int fd, err;

	prepare(self);
	fd = buf_export(self->dev, self->buf.handle, DMABUF);
	begin(self);
	at = mmap(NULL, HUGE, PROT_READ, MAP_SHARED, fd, 0);
	err = done(self, at == MAP_FAILED ? -errno : 0);
	if (at != MAP_FAILED)
		munmap(at, HUGE);
	close(fd);
	return err;
}

static int step_bracket(FIXTURE_DATA(failnth) * self)
{
	int fd, err;

	prepare(self);
	fd = buf_export(self->dev, self->buf.handle, DMABUF);
	begin(self);
	err = dmabuf_sync(fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW);
	if (!err)
		err = dmabuf_sync(fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW);
	err = done(self, err);
	close(fd);
	return err;
}

TEST_F_TIMEOUT(failnth, every_failure_of_pin_is_survived, 120)
{
	every_failure(_metadata, self, step_pin);
}

TEST_F_TIMEOUT(failnth, every_failure_of_alloc_contig_is_survived, 120)
{
	every_failure(_metadata, self, step_alloc_contig);
}

TEST_F_TIMEOUT(failnth, every_failure_of_alloc_dma32_is_survived, 120)
{
	every_failure(_metadata, self, step_alloc_dma32);
}

TEST_F_TIMEOUT(failnth, every_failure_of_alloc_interleave_is_survived, 120)
{
	every_failure(_metadata, self, step_alloc_interleave);
}

TEST_F_TIMEOUT(failnth, every_failure_of_export_dmabuf_is_survived, 120)
{
	every_failure(_metadata, self, step_export_dmabuf);
}

TEST_F_TIMEOUT(failnth, every_failure_of_export_range_is_survived, 120)
{
	every_failure(_metadata, self, step_export_range);
}

TEST_F_TIMEOUT(failnth, every_failure_of_import_own_dmabuf_is_survived, 120)
{
	every_failure(_metadata, self, step_import_own_dmabuf);
}

TEST_F_TIMEOUT(failnth, every_failure_of_import_memfd_is_survived, 120)
{
	every_failure(_metadata, self, step_import_memfd);
}

TEST_F_TIMEOUT(failnth, every_failure_of_import_foreign_dmabuf_is_survived, 120)
{
	every_failure(_metadata, self, step_import_foreign_dmabuf);
}

TEST_F_TIMEOUT(failnth, every_failure_of_attach_is_survived, 120)
{
	every_failure(_metadata, self, step_attach);
}

TEST_F_TIMEOUT(failnth, every_failure_of_map_dmabuf_is_survived, 120)
{
	every_failure(_metadata, self, step_map_dmabuf);
}

TEST_F_TIMEOUT(failnth, every_failure_of_bracket_is_survived, 120)
{
	every_failure(_metadata, self, step_bracket);
}

TEST_HARNESS_MAIN
