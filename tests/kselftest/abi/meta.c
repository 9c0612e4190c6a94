// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Descriptors: a buffer accepts one only if every element lies within the buffer, whatever its
 * sizes, strides and offset; a refused one leaves the old one in place.
 */
#include "../include/device.h"
#include "kselftest_harness.h"

#define BYTES (64 * KIB)

FIXTURE(meta)
{
	int dev;
	struct tensor_alloc buf;
	struct tensor_desc good;
};

/* Sets a valid descriptor: f32 [4, 8], contiguous, at byte 256. */
FIXTURE_SETUP(meta)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, dev_alloc(self->dev, BYTES, &self->buf));
	memset(&self->good, 0, sizeof(self->good));
	self->good.bits = 32;
	self->good.dtype = TAG_F32;
	self->good.ndim = 2;
	self->good.offset = 256;
	self->good.sizes[0] = 4;
	self->good.sizes[1] = 8;
	self->good.strides[0] = 8;
	self->good.strides[1] = 1;
	strcpy(self->good.label, "weights");
	ASSERT_EQ(0, buf_meta(self->dev, self->buf.handle, TENSOR_META_SET, &self->good));
}

FIXTURE_TEARDOWN(meta)
{
	struct tensor_desc now;

	EXPECT_EQ(0, buf_meta(self->dev, self->buf.handle, 0, &now));
	EXPECT_EQ(0, memcmp(&now, &self->good, sizeof(now)));
	close(self->dev);
}

static int set(FIXTURE_DATA(meta) * self, struct tensor_desc *desc)
{
	return buf_meta(self->dev, self->buf.handle, TENSOR_META_SET, desc);
}

/* Sets a descriptor and, if it was accepted, restores the valid one. */
static int try_set(FIXTURE_DATA(meta) * self, struct tensor_desc *desc)
{
	int err = set(self, desc);

	if (!err)
		set(self, &self->good);
	return err;
}

/* A descriptor with one dimension and elements of that many bits. */
static struct tensor_desc line(uint32_t bits, uint64_t offset, int64_t size, int64_t stride)
{
	return (struct tensor_desc){
		.bits = bits,
		.dtype = 1,
		.ndim = 1,
		.offset = offset,
		.sizes = { size },
		.strides = { stride },
	};
}

TEST_F(meta, fresh_buffer_has_no_descriptor)
{
	struct tensor_desc desc;
	struct tensor_alloc alloc;
	struct tensor_info info;

	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	ASSERT_EQ(0, buf_meta(self->dev, alloc.handle, 0, &desc));
	EXPECT_TRUE(all_bytes(&desc, 0, sizeof(desc)));
	ASSERT_EQ(0, buf_info(self->dev, alloc.handle, &info));
	EXPECT_EQ(0, info.state & TENSOR_STATE_META);
	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &info));
	EXPECT_NE(0, info.state & TENSOR_STATE_META);
}

TEST_F(meta, descriptor_is_read_back_through_every_handle_and_fd)
{
	int fd = buf_export_ro(self->dev, self->buf.handle), other = dev_open();
	struct tensor_import import;
	struct tensor_desc desc;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, buf_meta(fd, 0, 0, &desc));
	EXPECT_EQ(0, memcmp(&desc, &self->good, sizeof(desc)));
	ASSERT_EQ(0, buf_import(other, fd, &import));
	ASSERT_EQ(0, buf_meta(other, import.handle, 0, &desc));
	EXPECT_EQ(0, memcmp(&desc, &self->good, sizeof(desc)));
	close(fd);
	close(other);
}

TEST_F(meta, read_only_handles_and_fds_cannot_set_it)
{
	int fd = buf_export_ro(self->dev, self->buf.handle);
	struct tensor_desc desc = line(8, 0, 1, 1);
	struct tensor_import import;

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EACCES, buf_meta(fd, 0, TENSOR_META_SET, &desc));
	ASSERT_EQ(0, buf_import(self->dev, fd, &import));
	EXPECT_EQ(-EACCES, buf_meta(self->dev, import.handle, TENSOR_META_SET, &desc));
	close(fd);
}

TEST_F(meta, writable_fd_can_set_it)
{
	int fd = buf_export(self->dev, self->buf.handle, 0);

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, buf_meta(fd, 0, TENSOR_META_SET, &self->good));
	close(fd);
}

/* The dtype tag is stored and not interpreted. */
TEST_F(meta, every_dtype_tag_is_accepted_and_read_back)
{
	static const uint32_t tags[] = { 0, 1, TAG_C128, 255, 1 << 16, INT32_MAX, UINT32_MAX };
	struct tensor_desc desc = self->good, seen;
	unsigned int i;

	for (i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		desc.dtype = tags[i];
		ASSERT_EQ(0, set(self, &desc)) TH_LOG("tag %u", tags[i]);
		ASSERT_EQ(0, buf_meta(self->dev, self->buf.handle, 0, &seen));
		EXPECT_EQ(0, memcmp(&desc, &seen, sizeof(seen)));
	}
	ASSERT_EQ(0, set(self, &self->good));
}

TEST_F(meta, elements_of_any_size_fill_the_buffer_exactly)
{
	static const uint32_t sizes[] = { 1, 2, 4, 8, 16, 32, 64, 128, 1024, 8 * BYTES };
	unsigned int i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct tensor_desc desc = line(sizes[i], 0, 8 * BYTES / sizes[i], 1);

		EXPECT_EQ(0, try_set(self, &desc)) TH_LOG("%u bits", sizes[i]);
		desc.sizes[0]++;
		EXPECT_EQ(-EINVAL, try_set(self, &desc)) TH_LOG("%u bits", sizes[i]);
		desc.sizes[0]--;
		desc.offset = 1;
		EXPECT_EQ(-EINVAL, try_set(self, &desc)) TH_LOG("%u bits", sizes[i]);
	}
}

/* 8 * BYTES is no multiple of 12 or of 3, so less than an element is left at the end. */
TEST_F(meta, elements_that_do_not_divide_the_buffer_leave_a_rest)
{
	static const uint32_t sizes[] = { 3, 7, 12, 24, 33, 1000 };
	unsigned int i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct tensor_desc desc = line(sizes[i], 0, 8 * BYTES / sizes[i], 1);

		EXPECT_EQ(0, try_set(self, &desc)) TH_LOG("%u bits", sizes[i]);
		desc.sizes[0]++;
		EXPECT_EQ(-EINVAL, try_set(self, &desc)) TH_LOG("%u bits", sizes[i]);
	}
}

TEST_F(meta, elements_of_less_than_a_byte_are_counted_in_bits)
{
	struct tensor_desc desc = line(4, BYTES - 1, 2, 1);

	EXPECT_EQ(0, try_set(self, &desc));
	desc.sizes[0] = 3;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	/* the last bit of the buffer, then the one after it */
	desc = line(1, BYTES - 1, 8, 1);
	EXPECT_EQ(0, try_set(self, &desc));
	desc.sizes[0] = 9;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	/*
	 * negative stride: from the first bit of byte 1 to the first bit of byte 0, then one bit
	 * further
	 */
	desc = line(1, 1, 9, -1);
	EXPECT_EQ(0, try_set(self, &desc));
	desc.sizes[0] = 10;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	/* 12 bits: the second element starts in the middle of a byte and ends with the buffer */
	desc = line(12, BYTES - 3, 2, 1);
	EXPECT_EQ(0, try_set(self, &desc));
	desc.offset++;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	/* strides count elements, not bits */
	desc = line(4, BYTES - 2, 2, 3);
	EXPECT_EQ(0, try_set(self, &desc));
	desc.strides[0] = 4;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
}

TEST_F(meta, elements_larger_than_the_buffer_are_einval)
{
	struct tensor_desc desc = { .bits = 8 * BYTES, .dtype = 1 };

	EXPECT_EQ(0, try_set(self, &desc));
	desc.bits++;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	desc.bits = UINT32_MAX;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	/* an empty tensor has no elements, so their size does not matter */
	desc = line(UINT32_MAX, BYTES, 0, INT64_MAX);
	EXPECT_EQ(0, try_set(self, &desc));
}

/*
 * One element of 512 MiB less one bit: the buffer of 512 MiB has room for it and for no second one.
 */
TEST_F(meta, largest_element_is_accepted_if_the_buffer_has_room)
{
	struct tensor_desc desc = line(UINT32_MAX, 0, 1, 1);
	/* a memfd allocates its pages when they are touched */
	int fd = memfd_new(512 * MIB, 0);
	struct tensor_import import;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, buf_import(self->dev, fd, &import));
	EXPECT_EQ(0, buf_meta(self->dev, import.handle, TENSOR_META_SET, &desc));
	desc.offset = 1;
	EXPECT_EQ(-EINVAL, buf_meta(self->dev, import.handle, TENSOR_META_SET, &desc));
	desc.offset = 0;
	desc.sizes[0] = 2;
	EXPECT_EQ(-EINVAL, buf_meta(self->dev, import.handle, TENSOR_META_SET, &desc));
	EXPECT_EQ(0, dev_close(self->dev, import.handle));
	close(fd);
}

TEST_F(meta, bits_overflow_no_product)
{
	static const struct {
		uint32_t bits;
		int64_t size, stride;
	} bad[] = {
		/* the product of the sizes, without and with the bits, exceeds 63 bits */
		{ 1, INT64_MAX, 1 },
		{ 2, 1LL << 62, 0 },
		{ UINT32_MAX, 1LL << 31, 1LL << 31 },
		{ UINT32_MAX, 1LL << 32, 0 },
		{ 1U << 31, 1LL << 32, 0 },
		{ 12, INT64_MAX / 12 + 1, 0 },
		/*
		 * the distance times the bits: 2^63, 2^64, and products that wrap around to 0 or
		 * less
		 */
		{ 1U << 31, 2, 1LL << 32 },
		{ 1U << 31, 2, 1LL << 33 },
		{ 1U << 31, 2, -(1LL << 32) },
		{ 1U << 31, 2, -(1LL << 33) },
		{ 4, 2, 1LL << 61 },
		{ 4, 2, -(1LL << 61) },
		{ 16, 2, 1LL << 60 },
		{ 16, 2, -(1LL << 60) },
		{ UINT32_MAX, 2, INT64_MAX },
		{ UINT32_MAX, 2, INT64_MIN },
		{ 1, 2, INT64_MAX },
		{ 1, 2, INT64_MIN },
	};
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct tensor_desc desc = line(bad[i].bits, 0, bad[i].size, bad[i].stride);

		EXPECT_EQ(-EINVAL, try_set(self, &desc)) TH_LOG("row %u", i);
		desc.offset = BYTES / 2;
		EXPECT_EQ(-EINVAL, try_set(self, &desc)) TH_LOG("row %u", i);
	}
}

/*
 * The number of elements times the bits must fit into 63 bits even if all elements overlap (stride
 * 0).
 */
TEST_F(meta, count_of_bits_is_limited_without_memory_too)
{
	struct tensor_desc desc = line(1, 0, INT64_MAX, 0);

	EXPECT_EQ(0, try_set(self, &desc));
	desc.bits = 2;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	desc.sizes[0] = INT64_MAX / 2;
	EXPECT_EQ(0, try_set(self, &desc));
	desc.sizes[0] = INT64_MAX / 2 + 1;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
}

TEST_F(meta, too_many_dimensions_are_einval)
{
	struct tensor_desc desc = { .bits = 8, .dtype = TAG_U8, .ndim = TENSOR_UAPI_MAX_DIMS };
	int i;

	for (i = 0; i < TENSOR_UAPI_MAX_DIMS; i++)
		desc.sizes[i] = desc.strides[i] = 1;
	EXPECT_EQ(0, try_set(self, &desc));
	desc.ndim++;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	desc.ndim = UINT32_MAX;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
}

TEST_F(meta, fields_beyond_ndim_must_be_zero)
{
	struct tensor_desc desc = self->good;

	desc.sizes[2] = 1;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	desc = self->good;
	desc.strides[TENSOR_UAPI_MAX_DIMS - 1] = 1;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
}

TEST_F(meta, negative_size_is_einval)
{
	struct tensor_desc desc = line(32, 0, -1, 1);

	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	desc.sizes[0] = INT64_MIN;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
}

TEST_F(meta, scalar_must_lie_within)
{
	struct tensor_desc desc = { .bits = 64, .dtype = TAG_F64, .offset = BYTES - 8 };

	EXPECT_EQ(0, try_set(self, &desc));
	desc.offset++;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	desc.offset = UINT64_MAX - 7;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
}

TEST_F(meta, negative_strides_must_stay_within)
{
	struct tensor_desc desc = line(32, 28, 8, -1);

	EXPECT_EQ(0, try_set(self, &desc));
	desc.offset = 27;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	desc = line(32, BYTES - 4, 8, -1);
	EXPECT_EQ(0, try_set(self, &desc));
	desc.offset = BYTES;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	desc = line(8, 0, 2, INT64_MIN);
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	desc = line(128, BYTES - 16, INT64_MAX, -1);
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
}

TEST_F(meta, positive_and_negative_strides_do_not_cancel)
{
	struct tensor_desc desc = { .bits = 8, .dtype = TAG_U8, .ndim = 2 };

	desc.sizes[0] = desc.sizes[1] = BYTES + 1;
	desc.strides[0] = 1;
	desc.strides[1] = -1;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
}

TEST_F(meta, stride_zero_reaches_one_element)
{
	struct tensor_desc desc = line(32, BYTES - 4, 1LL << 40, 0);

	EXPECT_EQ(0, try_set(self, &desc));
	desc.offset++;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
}

TEST_F(meta, stride_of_a_dimension_of_one_does_not_matter)
{
	struct tensor_desc desc = line(32, 0, 1, INT64_MAX);

	EXPECT_EQ(0, try_set(self, &desc));
	desc.strides[0] = INT64_MIN;
	EXPECT_EQ(0, try_set(self, &desc));
}

TEST_F(meta, empty_tensor_needs_only_a_valid_offset)
{
	struct tensor_desc desc = line(32, BYTES, 0, INT64_MAX);

	EXPECT_EQ(0, try_set(self, &desc));
	desc.offset++;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
}

TEST_F(meta, overflowing_products_are_einval)
{
	static const struct {
		int64_t size0, stride0, size1, stride1;
	} bad[] = {
		{ 1LL << 32, 1, 1LL << 32, 1 }, { 1LL << 62, 0, 4, 0 },
		{ INT64_MAX, 0, 1, 1 },		{ 2, INT64_MAX, 2, INT64_MAX },
		{ 2, INT64_MAX / 4 + 1, 1, 1 }, { 5, 1LL << 62, 1, 1 },
		{ 3, INT64_MIN, 3, INT64_MIN }, { 1LL << 61, 8, 1, 1 },
		{ 0, 1, INT64_MAX, 1 },		{ 1LL << 33, 1LL << 31, 1, 1 },
		{ 1LL << 32, 1LL << 32, 1, 0 },
	};
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct tensor_desc desc = { .bits = 32, .dtype = TAG_F32, .ndim = 2 };

		desc.sizes[0] = bad[i].size0;
		desc.sizes[1] = bad[i].size1;
		desc.strides[0] = bad[i].stride0;
		desc.strides[1] = bad[i].stride1;
		EXPECT_EQ(-EINVAL, try_set(self, &desc)) TH_LOG("row %u", i);
	}
}

TEST_F(meta, sixteen_dimensions_do_not_overflow_the_sum)
{
	struct tensor_desc desc = { .bits = 8, .dtype = TAG_U8, .ndim = TENSOR_UAPI_MAX_DIMS };
	int i;

	for (i = 0; i < TENSOR_UAPI_MAX_DIMS; i++) {
		desc.sizes[i] = 2;
		desc.strides[i] = 1LL << 60;
	}
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
}

TEST_F(meta, label_must_be_clean_text)
{
	static const char *const bad[] = {
		"a\nb", "a\x1b[0m", "\x7f", "\xff\xfe", "\xc3", "\xe2\x82",
	};
	struct tensor_desc desc = self->good;
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(desc.label, 0, sizeof(desc.label));
		strcpy(desc.label, bad[i]);
		EXPECT_EQ(-EINVAL, try_set(self, &desc)) TH_LOG("row %u", i);
	}
	memset(desc.label, 'x', sizeof(desc.label));
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	desc.label[TENSOR_UAPI_LABEL - 1] = 0;
	EXPECT_EQ(0, try_set(self, &desc));
	desc.label[3] = 0;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	memset(desc.label, 0, sizeof(desc.label));
	strcpy(desc.label, "poids \xe2\x82\xac \xf0\x9f\x90\xa7");
	EXPECT_EQ(0, try_set(self, &desc));
}

TEST_F(meta, zero_descriptor_may_have_only_a_label)
{
	struct tensor_desc desc = { .label = "raw" };

	EXPECT_EQ(0, try_set(self, &desc));
	desc.dtype = 1;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	desc.dtype = 0;
	desc.ndim = 1;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	desc.ndim = 0;
	desc.offset = 1;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	desc.offset = 0;
	desc.sizes[0] = 1;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
}

TEST_HARNESS_MAIN
