// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* /proc/PID/fdinfo of the device and of buffer fds: stable keys and their values. */
#include "../include/device.h"
#include "kselftest_harness.h"

FIXTURE(fdinfo)
{
	int dev;
	struct tensor_alloc buf;
};

FIXTURE_SETUP(fdinfo)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, dev_alloc(self->dev, 2 * HUGE, &self->buf));
}

FIXTURE_TEARDOWN(fdinfo)
{
	close(self->dev);
}

static char *fdinfo(int fd, char *text, size_t room)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	return read_text(path, text, room);
}

TEST_F(fdinfo, device_shows_handles_and_bytes)
{
	struct tensor_alloc more;
	char text[4096];

	fdinfo(self->dev, text, sizeof(text));
	EXPECT_NE(NULL, strstr(text, "\ntensor-client-id:\t")) TH_LOG("%s", text);
	EXPECT_NE(NULL, strstr(text, "\ntensor-handles:\t1\n"));
	EXPECT_NE(NULL, strstr(text, "\ntensor-total-memory:\t4096 KiB\n"));
	ASSERT_EQ(0, dev_alloc(self->dev, MIB, &more));
	fdinfo(self->dev, text, sizeof(text));
	EXPECT_NE(NULL, strstr(text, "\ntensor-handles:\t2\n"));
	EXPECT_NE(NULL, strstr(text, "\ntensor-total-memory:\t5120 KiB\n"));
	EXPECT_EQ(0, dev_close(self->dev, more.handle));
	fdinfo(self->dev, text, sizeof(text));
	EXPECT_NE(NULL, strstr(text, "\ntensor-handles:\t1\n"));
}

TEST_F(fdinfo, buffer_shows_its_memory_and_users)
{
	int fd = buf_export(self->dev, self->buf.handle, 0);
	struct tensor_info info;
	char text[4096], want[64];
	void *at = map_shared(fd, PAGE, PROT_READ, 0);

	ASSERT_NE(MAP_FAILED, at);
	ASSERT_EQ(0, buf_info(fd, 0, &info));
	fdinfo(fd, text, sizeof(text));
	snprintf(want, sizeof(want), "\ntensor-buffer-id:\t%llu\n", (unsigned long long)info.ino);
	EXPECT_NE(NULL, strstr(text, want)) TH_LOG("%s", text);
	EXPECT_NE(NULL, strstr(text, "\ntensor-total-memory:\t4096 KiB\n"));
	EXPECT_NE(NULL, strstr(text, "\ntensor-huge-memory:\t4096 KiB\n"));
	EXPECT_NE(NULL, strstr(text, "\ntensor-handles:\t1\n"));
	EXPECT_NE(NULL, strstr(text, "\ntensor-files:\t1\n"));
	EXPECT_NE(NULL, strstr(text, "\ntensor-mappings:\t1\n"));
	EXPECT_NE(NULL, strstr(text, "\ntensor-rights:\tread write attach seal revoke export\n"));
	EXPECT_EQ(NULL, strstr(text, "\ntensor-bits:"));
	EXPECT_EQ(NULL, strstr(text, "\ntensor-dtype:"));
	munmap(at, PAGE);
	close(fd);
}

TEST_F(fdinfo, buffer_shows_its_descriptor)
{
	struct tensor_desc desc = {
		.bits = 32,
		.dtype = TAG_F32,
		.ndim = 2,
		.offset = 64,
		.sizes = { 3, 4 },
		.strides = { -4, 1 },
		.label = "batch 7",
	};
	int fd = buf_export_ro(self->dev, self->buf.handle);
	char text[4096];

	ASSERT_EQ(0, buf_meta(self->dev, self->buf.handle, TENSOR_META_SET, &desc));
	fdinfo(fd, text, sizeof(text));
	EXPECT_NE(NULL, strstr(text, "\ntensor-rights:\tread attach export\n")) TH_LOG("%s", text);
	EXPECT_NE(NULL, strstr(text, "\ntensor-label:\tbatch 7\n"));
	EXPECT_NE(NULL, strstr(text, "\ntensor-bits:\t32\n"));
	EXPECT_NE(NULL, strstr(text, "\ntensor-dtype:\t9\n"));
	EXPECT_NE(NULL, strstr(text, "\ntensor-shape:\t[3, 4]\n"));
	EXPECT_NE(NULL, strstr(text, "\ntensor-strides:\t[-4, 1]\n"));
	EXPECT_NE(NULL, strstr(text, "\ntensor-offset:\t64\n"));
	close(fd);
}

TEST_F(fdinfo, fd_and_maps_show_the_number_of_the_buffer)
{
	int fd = buf_export(self->dev, self->buf.handle, 0);
	char path[64], link[128] = "", want[64], text[16384];
	void *at = map_shared(self->dev, PAGE, PROT_READ, self->buf.mmap_offset);
	struct tensor_info info;

	ASSERT_NE(MAP_FAILED, at);
	ASSERT_EQ(0, buf_info(fd, 0, &info));
	snprintf(want, sizeof(want), "tensor:[%llu]", (unsigned long long)info.ino);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ASSERT_LT(0, readlink(path, link, sizeof(link) - 1));
	EXPECT_NE(NULL, strstr(link, want)) TH_LOG("%s", link);
	EXPECT_NE(NULL, strstr(read_text("/proc/self/maps", text, sizeof(text)), want));
	munmap(at, PAGE);
	close(fd);
}

TEST_HARNESS_MAIN
