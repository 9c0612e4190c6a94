// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Dma-bufs of the module used by vivid, see vivid.h.
 *
 * A captured frame is written into the memory, and a frame on the screen is read from it: the
 * output is looped to the camera and compared.
 */
#include "vivid.h"

/* Queues all buffers and waits for one frame: its index. */
static int first_frame(FIXTURE_DATA(vivid) * self)
{
	int i, err = 0;

	for (i = 0; i < BUFFERS && !err; i++)
		err = video_queue(self->cam, CAPTURE, i, self->fd[i], 0);
	if (!err)
		err = video_stream(self->cam, CAPTURE, true);
	return err ? err : video_take(self->cam, CAPTURE);
}

/* Colour bars: each line begins with one colour and has another one in its middle. */
static bool is_picture(const char *at, uint32_t width, uint32_t lines)
{
	const char *last = at + (lines - 1) * 2ULL * width;

	return memcmp(at, at + width, 4) && memcmp(last, last + width, 4);
}

TEST_F(vivid, frame_is_captured_into_a_buffer)
{
	int i = first_frame(self);

	ASSERT_LE(0, i);
	EXPECT_TRUE(is_picture(self->at[i], SMALL));
	EXPECT_TRUE(all_bytes(self->at[i] + self->frame, 0xa5, BYTES - self->frame));
	EXPECT_EQ(variant->attaches, info_of(self->dev, self->buf[i].handle).attachments);
	EXPECT_EQ(0, info_of(self->dev, self->buf[i].handle).generation);
	EXPECT_EQ(0, video_stream(self->cam, CAPTURE, false));
	EXPECT_EQ(0, video_buffers(self->cam, CAPTURE, 0));
	EXPECT_EQ(0, info_of(self->dev, self->buf[i].handle).attachments);
	EXPECT_LE(1, info_of(self->dev, self->buf[i].handle).generation);
}

TEST_F(vivid, frame_stays_within_an_exported_range)
{
	uint64_t part = (self->frame + PAGE - 1) / PAGE * PAGE, first = 17 * PAGE;
	int i, fd[BUFFERS];

	for (i = 0; i < BUFFERS; i++) {
		fd[i] = buf_export_range(self->dev, self->buf[i].handle, DMABUF, first, part);
		ASSERT_EQ(0, video_queue(self->cam, CAPTURE, i, fd[i], 0));
		close(fd[i]);
	}
	ASSERT_EQ(0, video_stream(self->cam, CAPTURE, true));
	i = video_take(self->cam, CAPTURE);
	ASSERT_LE(0, i);
	EXPECT_TRUE(is_picture(self->at[i] + first, SMALL));
	EXPECT_TRUE(all_bytes(self->at[i], 0xa5, first));
	EXPECT_TRUE(
		all_bytes(self->at[i] + first + self->frame, 0xa5, BYTES - first - self->frame));
}

TEST_F(vivid, revoked_memory_stays_while_the_camera_writes_to_it)
{
	int i = first_frame(self), n;

	ASSERT_LE(0, i);
	for (n = 0; n < BUFFERS; n++)
		ASSERT_EQ(0, buf_revoke(self->dev, self->buf[n].handle));
	EXPECT_EQ(SIGBUS, touch_signal(self->at[i]));
	EXPECT_EQ(self->used + BUFFERS * BYTES, dev_used(self->dev));
	/* the camera continues: two more frames, into memory that is not shared */
	EXPECT_LE(0, video_take(self->cam, CAPTURE));
	EXPECT_EQ(0, video_stream(self->cam, CAPTURE, false));
	EXPECT_EQ(0, video_buffers(self->cam, CAPTURE, 0));
	EXPECT_EQ(self->used, dev_used(self->dev));
}

/* Child: captures until it is killed. */
static void capturer(int cam, int *fd, int pipe)
{
	int i;

	for (i = 0; i < BUFFERS; i++)
		if (video_queue(cam, CAPTURE, i, fd[i], 0))
			_exit(1);
	if (video_stream(cam, CAPTURE, true) || video_take(cam, CAPTURE) < 0 ||
	    write(pipe, "x", 1) != 1)
		_exit(2);
	for (;;)
		pause();
}

TEST_F(vivid, kill_of_the_capturing_process_leaks_nothing)
{
	int ends[2];
	char byte;
	pid_t pid;

	ASSERT_EQ(0, pipe(ends));
	/* the video node belongs to the fd that requested buffers */
	close(self->cam);
	pid = fork();
	if (!pid) {
		int cam = video_open(variant->bus, V4L2_CAP_VIDEO_CAPTURE);

		if (video_buffers(cam, CAPTURE, BUFFERS))
			_exit(3);
		capturer(cam, self->fd, ends[1]);
	}
	close(ends[1]);
	ASSERT_EQ(1, read(ends[0], &byte, 1));
	EXPECT_EQ(variant->attaches, info_of(self->dev, self->buf[0].handle).attachments);
	kill(pid, SIGKILL);
	EXPECT_EQ(-SIGKILL, reap(pid));
	sleep_ms(200);
	EXPECT_EQ(0, info_of(self->dev, self->buf[0].handle).attachments);
	munmap(self->at[0], BYTES);
	EXPECT_EQ(TENSOR_SEAL_WRITE, buf_seal(self->dev, self->buf[0].handle, TENSOR_SEAL_WRITE));
	close(ends[0]);
	self->cam = -1;
}

/* A frame of 4 MB needs more than one chunk, unless it is contiguous. */
TEST_F(vivid, frame_is_captured_into_contiguous_memory)
{
	struct tensor_alloc big[2];
	char *at[2];
	int64_t frame;
	int i, fd;

	ASSERT_EQ(0, video_buffers(self->cam, CAPTURE, 0));
	frame = video_format(self->cam, CAPTURE, 1920, 1080);
	ASSERT_EQ(1920 * 1080 * 2, frame);
	ASSERT_EQ(0, video_buffers(self->cam, CAPTURE, 2));
	for (i = 0; i < 2; i++) {
		big[i] = alloc_args(frame);
		big[i].flags = TENSOR_ALLOC_CONTIG;
		ASSERT_EQ(0, dev_call(self->dev, TENSOR_IOC_ALLOC, &big[i]));
		at[i] = map_shared(self->dev, big[i].bytes, RW, big[i].mmap_offset);
		ASSERT_NE(MAP_FAILED, at[i]);
		fd = buf_export(self->dev, big[i].handle, DMABUF);
		ASSERT_EQ(0, video_queue(self->cam, CAPTURE, i, fd, 0));
		close(fd);
	}
	ASSERT_EQ(0, video_stream(self->cam, CAPTURE, true));
	i = video_take(self->cam, CAPTURE);
	ASSERT_LE(0, i);
	EXPECT_TRUE(is_picture(at[i], 1920, 1080));
	EXPECT_EQ(0, video_stream(self->cam, CAPTURE, false));
	EXPECT_EQ(0, video_buffers(self->cam, CAPTURE, 0));
	for (i = 0; i < 2; i++) {
		munmap(at[i], big[i].bytes);
		dev_close(self->dev, big[i].handle);
	}
}

/* PIN's memory and a memfd, which need the instance that can gather pages. */
TEST_F(vivid, frame_is_captured_into_pinned_and_memfd_memory)
{
	int memfd = memfd_new(64 * PAGE, 0), fd, i;
	char *at[2] = { mmap(NULL, 64 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) };
	struct tensor_import import;
	int64_t handle;

	if (variant->attaches)
		SKIP(return, "wants it in one piece");
	ASSERT_LE(0, memfd);
	at[1] = map_shared(memfd, 64 * PAGE, RW, 0);
	handle = buf_pin(self->dev, at[0], 64 * PAGE, 0);
	ASSERT_LT(0, handle);
	fd = buf_export(self->dev, handle, DMABUF);
	ASSERT_EQ(0, video_queue(self->cam, CAPTURE, 0, fd, 0));
	close(fd);
	ASSERT_EQ(0, buf_import(self->dev, memfd, &import));
	fd = buf_export(self->dev, import.handle, DMABUF);
	ASSERT_EQ(0, video_queue(self->cam, CAPTURE, 1, fd, 0));
	close(fd);
	ASSERT_EQ(0, video_queue(self->cam, CAPTURE, 2, self->fd[2], 0));
	ASSERT_EQ(0, video_stream(self->cam, CAPTURE, true));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(i, video_take(self->cam, CAPTURE));
	EXPECT_EQ(0, video_stream(self->cam, CAPTURE, false));
	EXPECT_EQ(0, video_buffers(self->cam, CAPTURE, 0));
	EXPECT_TRUE(is_picture(at[0], SMALL));
	EXPECT_TRUE(is_picture(at[1], SMALL));
	munmap(at[0], 64 * PAGE);
	munmap(at[1], 64 * PAGE);
	close(memfd);
	/* pinned memory is charged until then */
	EXPECT_EQ(0, dev_close(self->dev, handle));
	EXPECT_EQ(0, dev_close(self->dev, import.handle));
}

static void paint(char *at, uint64_t bytes)
{
	uint64_t i;

	for (i = 0; i < bytes; i++)
		at[i] = i * 7 + (i >> 8) * 13 + 1;
}

/* Loops the screen to the camera, both at 1280 x 720: bytes of a frame. */
static int64_t loop_set_up(FIXTURE_DATA(vivid) * self)
{
	int input = HDMI_IN, output = HDMI_OUT, err;
	int64_t in, out;

	err = video_buffers(self->cam, CAPTURE, 0);
	if (!err)
		err = dev_call(self->cam, VIDIOC_S_INPUT, &input);
	if (!err)
		err = dev_call(self->screen, VIDIOC_S_OUTPUT, &output);
	if (!err)
		err = video_control(self->cam, CID_OSD, OSD_NONE);
	if (!err)
		err = video_control(self->cam, CID_LOOP, 1);
	if (err)
		return err;
	in = video_format(self->cam, CAPTURE, 1280, 720);
	out = video_format(self->screen, OUTPUT, 1280, 720);
	return in == out ? in : -EPROTO;
}

/* Shows one picture, in two buffers, because vivid requires two. */
static int loop_show(FIXTURE_DATA(vivid) * self, int fd, int64_t frame)
{
	int i, err = video_buffers(self->screen, OUTPUT, 2);

	for (i = 0; i < 2 && !err; i++)
		err = video_queue(self->screen, OUTPUT, i, fd, frame);
	return err ? err : video_stream(self->screen, OUTPUT, true);
}

TEST_F(vivid, frame_is_looped_from_screen_to_camera)
{
	int64_t frame = loop_set_up(self);
	int i, n;

	ASSERT_EQ(1280 * 720 * 2, frame);
	paint(self->at[0], frame);
	ASSERT_EQ(0, loop_show(self, self->fd[0], frame));
	ASSERT_EQ(0, video_buffers(self->cam, CAPTURE, 2));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, video_queue(self->cam, CAPTURE, i, self->fd[1 + i], 0));
	ASSERT_EQ(0, video_stream(self->cam, CAPTURE, true));
	for (n = 0; n < 2; n++) {
		i = video_take(self->cam, CAPTURE);
		ASSERT_LE(0, i);
	}
	EXPECT_EQ(0, video_stream(self->cam, CAPTURE, false));
	EXPECT_EQ(0, memcmp(self->at[0], self->at[1 + i], frame));
	EXPECT_TRUE(all_bytes(self->at[1 + i] + frame, 0xa5, BYTES - frame));
	EXPECT_EQ(0, video_control(self->cam, CID_LOOP, 0));
}

TEST_HARNESS_MAIN
