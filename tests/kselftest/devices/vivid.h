/* SPDX-License-Identifier: LGPL-2.1-only OR MIT */
/*
 * vivid, a virtual camera and screen, through V4L2 with dma-bufs of the module. Its first instance
 * maps the whole dma-buf into the kernel (vmap); its second one attaches and maps it like a device
 * that needs contiguous memory: n_devs=2 allocators=0,1.
 */
#ifndef TENSOR_KSELFTEST_VIVID_H
#define TENSOR_KSELFTEST_VIVID_H

#include <linux/videodev2.h>

#include "../include/dmabuf.h"
#include "kselftest_harness.h"

#define BYTES	HUGE
#define BUFFERS 3
#define CAPTURE V4L2_BUF_TYPE_VIDEO_CAPTURE
#define OUTPUT	V4L2_BUF_TYPE_VIDEO_OUTPUT
#define SMALL	320, 180

/* Controls of vivid, which have no header: no text overlay, and loop the output to the input. */
#define CID_OSD	 0x00f0f001
#define CID_LOOP 0x00f0f025
#define OSD_NONE 2

#define WEBCAM	 0
#define HDMI_IN	 3
#define HDMI_OUT 1

FIXTURE(vivid)
{
	int dev;
	int cam;
	int screen;
	uint64_t used;
	uint64_t frame;
	struct tensor_alloc buf[BUFFERS];
	char *at[BUFFERS];
	int fd[BUFFERS];
};

FIXTURE_VARIANT(vivid)
{
	const char *bus;
	bool attaches;
};

FIXTURE_VARIANT_ADD(vivid, vmap){ .bus = "platform:vivid-000", .attaches = false };
FIXTURE_VARIANT_ADD(vivid, contig){ .bus = "platform:vivid-001", .attaches = true };

/* The video node of that instance with that capability. */
HELPER int video_open(const char *bus, uint32_t capability)
{
	struct v4l2_capability cap;
	char path[32];
	int i, fd;

	for (i = 0; i < 16; i++) {
		snprintf(path, sizeof(path), "/dev/video%d", i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (!ioctl(fd, VIDIOC_QUERYCAP, &cap) && cap.device_caps & capability &&
		    !strcmp((char *)cap.bus_info, bus))
			return fd;
		close(fd);
	}
	return -ENODEV;
}

/* Bytes of a frame of that size, or -errno. */
HELPER int64_t video_format(int fd, uint32_t type, uint32_t width, uint32_t height)
{
	struct v4l2_format fmt = { .type = type };
	int err;

	fmt.fmt.pix.width = width;
	fmt.fmt.pix.height = height;
	fmt.fmt.pix.pixelformat = V4L2_PIX_FMT_YUYV;
	fmt.fmt.pix.field = V4L2_FIELD_NONE;
	err = dev_call(fd, VIDIOC_S_FMT, &fmt);
	return err ? err : (int64_t)fmt.fmt.pix.sizeimage;
}

HELPER int video_buffers(int fd, uint32_t type, uint32_t count)
{
	struct v4l2_requestbuffers req = { .count = count,
					   .type = type,
					   .memory = V4L2_MEMORY_DMABUF };

	return dev_call(fd, VIDIOC_REQBUFS, &req);
}

HELPER int video_queue(int fd, uint32_t type, uint32_t index, int dmabuf, uint32_t used)
{
	struct v4l2_buffer buf = { .index = index,
				   .type = type,
				   .memory = V4L2_MEMORY_DMABUF,
				   .m.fd = dmabuf,
				   .bytesused = used,
				   .field = V4L2_FIELD_NONE };

	return dev_call(fd, VIDIOC_QBUF, &buf);
}

/* The index of a completed buffer, or -errno; -ETIMEDOUT after two seconds. */
HELPER int video_take(int fd, uint32_t type)
{
	struct v4l2_buffer buf = { .type = type, .memory = V4L2_MEMORY_DMABUF };
	struct pollfd p = { .fd = fd, .events = type == CAPTURE ? POLLIN : POLLOUT };
	int err;

	if (poll(&p, 1, 10000) != 1)
		return -ETIMEDOUT;
	err = dev_call(fd, VIDIOC_DQBUF, &buf);
	if (!err && buf.flags & V4L2_BUF_FLAG_ERROR)
		return -EIO;
	return err ? err : (int)buf.index;
}

HELPER int video_stream(int fd, int type, bool on)
{
	return dev_call(fd, on ? VIDIOC_STREAMON : VIDIOC_STREAMOFF, &type);
}

HELPER int video_control(int fd, uint32_t id, int value)
{
	struct v4l2_ext_control ctrl = { .id = id, .value = value };
	struct v4l2_ext_controls ctrls = { .which = V4L2_CTRL_WHICH_CUR_VAL,
					   .count = 1,
					   .controls = &ctrl };

	return dev_call(fd, VIDIOC_S_EXT_CTRLS, &ctrls);
}

FIXTURE_SETUP(vivid)
{
	int i, input = WEBCAM;

	self->cam = video_open(variant->bus, V4L2_CAP_VIDEO_CAPTURE);
	if (self->cam < 0)
		SKIP_SETUP("no vivid");
	self->screen = video_open(variant->bus, V4L2_CAP_VIDEO_OUTPUT);
	ASSERT_LE(0, self->screen);
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	self->used = dev_used(self->dev);
	for (i = 0; i < BUFFERS; i++) {
		/* contiguous: a single chunk */
		self->buf[i] = alloc_args(BYTES);
		self->buf[i].flags = TENSOR_ALLOC_ORDERS;
		self->buf[i].min_order = 9;
		self->buf[i].max_order = 9;
		ASSERT_EQ(0, dev_call(self->dev, TENSOR_IOC_ALLOC, &self->buf[i]));
		self->at[i] = map_shared(self->dev, BYTES, RW, self->buf[i].mmap_offset);
		ASSERT_NE(MAP_FAILED, self->at[i]);
		memset(self->at[i], 0xa5, BYTES);
		self->fd[i] = buf_export(self->dev, self->buf[i].handle, DMABUF);
		ASSERT_LE(0, self->fd[i]);
	}
	ASSERT_EQ(0, dev_call(self->cam, VIDIOC_S_INPUT, &input));
	self->frame = video_format(self->cam, CAPTURE, SMALL);
	ASSERT_EQ(320 * 180 * 2, self->frame);
	ASSERT_EQ(0, video_buffers(self->cam, CAPTURE, BUFFERS));
}

FIXTURE_TEARDOWN(vivid)
{
	int i;

	video_stream(self->cam, CAPTURE, false);
	video_stream(self->screen, OUTPUT, false);
	close(self->cam);
	close(self->screen);
	for (i = 0; i < BUFFERS; i++) {
		close(self->fd[i]);
		munmap(self->at[i], BYTES);
		dev_close(self->dev, self->buf[i].handle);
	}
	EXPECT_TRUE(used_becomes(self->dev, self->used));
	close(self->dev);
}

#endif /* TENSOR_KSELFTEST_VIVID_H */
