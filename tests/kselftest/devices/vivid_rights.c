// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The accesses that a device has to a dma-buf, by its rights and by the seals of the buffer: a
 * camera only writes (DMA_FROM_DEVICE), a screen only reads (DMA_TO_DEVICE). See vivid.h.
 */
#include "vivid.h"

TEST_F(vivid, read_only_dma_buf_is_refused_for_a_camera)
{
	int fd = buf_export_rights(self->dev, self->buf[0].handle, TENSOR_RIGHTS_RO, DMABUF);

	EXPECT_GT(0, video_queue(self->cam, CAPTURE, 0, fd, 0));
	EXPECT_EQ(0, info_of(self->dev, self->buf[0].handle).attachments);
	EXPECT_TRUE(all_bytes(self->at[0], 0xa5, BYTES));
	close(fd);
}

TEST_F(vivid, read_only_dma_buf_is_accepted_for_a_screen)
{
	int fd = buf_export_rights(self->dev, self->buf[0].handle, TENSOR_RIGHTS_RO, DMABUF);
	int64_t frame = video_format(self->screen, OUTPUT, 720, 480);

	ASSERT_LT(0, frame);
	ASSERT_EQ(0, video_buffers(self->screen, OUTPUT, 2));
	if (variant->attaches) {
		EXPECT_EQ(0, video_queue(self->screen, OUTPUT, 0, fd, frame));
		EXPECT_EQ(1, info_of(self->dev, self->buf[0].handle).attachments);
	} else {
		/* the kernel maps the memory (vmap) without saying whether it writes */
		EXPECT_GT(0, video_queue(self->screen, OUTPUT, 0, fd, frame));
	}
	EXPECT_EQ(0, video_buffers(self->screen, OUTPUT, 0));
	EXPECT_EQ(0, info_of(self->dev, self->buf[0].handle).generation);
	close(fd);
}

TEST_F(vivid, seal_is_refused_while_a_camera_has_the_buffer_queued)
{
	ASSERT_EQ(0, video_queue(self->cam, CAPTURE, 0, self->fd[0], 0));
	munmap(self->at[0], BYTES);
	EXPECT_EQ(-EBUSY, buf_seal(self->dev, self->buf[0].handle, TENSOR_SEAL_WRITE));
	EXPECT_EQ(0, video_buffers(self->cam, CAPTURE, 0));
	EXPECT_EQ(TENSOR_SEAL_WRITE, buf_seal(self->dev, self->buf[0].handle, TENSOR_SEAL_WRITE));
}

TEST_F(vivid, sealed_dma_buf_is_refused_for_a_camera)
{
	if (!variant->attaches)
		SKIP(return, "the kernel warns of any vmap that fails");
	munmap(self->at[0], BYTES);
	ASSERT_EQ(TENSOR_SEAL_WRITE, buf_seal(self->dev, self->buf[0].handle, TENSOR_SEAL_WRITE));
	EXPECT_GT(0, video_queue(self->cam, CAPTURE, 0, self->fd[0], 0));
}

/*
 * Tries a new dma-buf, and one made before the seal with the right to write. The stream is not
 * started: vivid has no device that reads the memory, its thread would request a kernel mapping,
 * which these dma-bufs refuse, and vivid does not check whether it got one.
 */
TEST_F(vivid, sealed_dma_buf_is_accepted_for_a_screen)
{
	int64_t frame;
	int ro;

	if (!variant->attaches)
		SKIP(return, "the kernel warns of any vmap that fails");
	frame = video_format(self->screen, OUTPUT, 720, 480);
	ASSERT_LT(0, frame);
	munmap(self->at[0], BYTES);
	ASSERT_EQ(TENSOR_SEAL_WRITE, buf_seal(self->dev, self->buf[0].handle, TENSOR_SEAL_WRITE));
	ro = buf_export_rights(self->dev, self->buf[0].handle, TENSOR_RIGHT_READ, DMABUF);
	ASSERT_LE(0, ro);
	ASSERT_EQ(0, video_buffers(self->screen, OUTPUT, 2));
	EXPECT_EQ(0, video_queue(self->screen, OUTPUT, 0, ro, frame));
	EXPECT_EQ(0, video_queue(self->screen, OUTPUT, 1, self->fd[0], frame));
	EXPECT_EQ(2, info_of(self->dev, self->buf[0].handle).attachments);
	/* the camera would write through either of them */
	EXPECT_GT(0, video_queue(self->cam, CAPTURE, 0, ro, 0));
	EXPECT_GT(0, video_queue(self->cam, CAPTURE, 0, self->fd[0], 0));
	EXPECT_EQ(0, video_buffers(self->screen, OUTPUT, 0));
	EXPECT_EQ(0, info_of(self->dev, self->buf[0].handle).attachments);
	/* a device that only reads does not raise the generation */
	EXPECT_EQ(0, info_of(self->dev, self->buf[0].handle).generation);
	close(ro);
}

/* Sealing is possible while a device reads, and the device continues. */
TEST_F(vivid, seal_is_possible_while_a_screen_reads)
{
	int64_t frame;
	int fd;

	if (!variant->attaches)
		SKIP(return, "its processor works on the bytes, and may write to them");
	frame = video_format(self->screen, OUTPUT, 720, 480);
	ASSERT_LT(0, frame);
	fd = buf_export_rights(self->dev, self->buf[0].handle, TENSOR_RIGHT_READ, DMABUF);
	ASSERT_EQ(0, video_buffers(self->screen, OUTPUT, 2));
	ASSERT_EQ(0, video_queue(self->screen, OUTPUT, 0, fd, frame));
	EXPECT_EQ(1, info_of(self->dev, self->buf[0].handle).attachments);
	munmap(self->at[0], BYTES);
	EXPECT_EQ(TENSOR_SEAL_WRITE, buf_seal(self->dev, self->buf[0].handle, TENSOR_SEAL_WRITE));
	EXPECT_EQ(0, video_buffers(self->screen, OUTPUT, 0));
	close(fd);
}

TEST_F(vivid, write_only_dma_buf_is_accepted_for_a_camera)
{
	int fd;

	if (!variant->attaches)
		SKIP(return, "its processor works on the bytes, and may read them");
	fd = buf_export_rights(self->dev, self->buf[0].handle, TENSOR_RIGHT_WRITE, DMABUF);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, video_queue(self->cam, CAPTURE, 0, fd, 0));
	EXPECT_EQ(1, info_of(self->dev, self->buf[0].handle).attachments);
	EXPECT_EQ(0, video_buffers(self->cam, CAPTURE, 0));
	close(fd);
}

TEST_F(vivid, write_only_dma_buf_is_refused_for_a_screen)
{
	int64_t frame = video_format(self->screen, OUTPUT, 720, 480);
	int fd = buf_export_rights(self->dev, self->buf[0].handle, TENSOR_RIGHT_WRITE, DMABUF);

	if (!variant->attaches)
		SKIP(return, "the kernel warns of any vmap that fails");
	ASSERT_LT(0, frame);
	ASSERT_EQ(0, video_buffers(self->screen, OUTPUT, 2));
	EXPECT_GT(0, video_queue(self->screen, OUTPUT, 0, fd, frame));
	EXPECT_EQ(0, info_of(self->dev, self->buf[0].handle).attachments);
	EXPECT_EQ(0, video_buffers(self->screen, OUTPUT, 0));
	close(fd);
}

TEST_HARNESS_MAIN
