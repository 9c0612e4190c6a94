// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Descriptors: a buffer takes one only if every element it reaches lies within the buffer, whatever
 * the sizes, strides and offset are; a refused one leaves the old one in place.
 */
#include "device.h"
#include "kselftest_harness.h"

#define BYTES	(64 * KIB)

FIXTURE(meta) {
	int dev;
	struct tensor_alloc buf;
	struct tensor_desc good;
};

/* f32 [4, 8] of a contiguous matrix at byte 256. */
FIXTURE_SETUP(meta)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, dev_alloc(self->dev, BYTES, &self->buf));
	memset(&self->good, 0, sizeof(self->good));
	self->good.dtype = TENSOR_DT_F32;
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

static int set(FIXTURE_DATA(meta) *self, struct tensor_desc *desc)
{
	return buf_meta(self->dev, self->buf.handle, TENSOR_META_SET, desc);
}

/* Sets it and, if it was taken, the good one again. */
static int try_set(FIXTURE_DATA(meta) *self, struct tensor_desc *desc)
{
	int err = set(self, desc);

	if (!err)
		set(self, &self->good);
	return err;
}

/* One dimension. */
static struct tensor_desc line(uint32_t dtype, uint64_t offset, int64_t size, int64_t stride)
{
	return (struct tensor_desc){
		.dtype = dtype, .ndim = 1, .offset = offset, .sizes = { size },
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

TEST_F(meta, descriptor_is_read_back_through_every_hold)
{
	int fd = buf_export(self->dev, self->buf.handle, TENSOR_EXPORT_RDONLY), other = dev_open();
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

TEST_F(meta, read_only_holds_cannot_set_it)
{
	int fd = buf_export(self->dev, self->buf.handle, TENSOR_EXPORT_RDONLY);
	struct tensor_desc desc = line(TENSOR_DT_U8, 0, 1, 1);
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

TEST_F(meta, unknown_dtype_is_eopnotsupp)
{
	struct tensor_desc desc = self->good;

	desc.dtype = TENSOR_DT_COUNT;
	EXPECT_EQ(-EOPNOTSUPP, try_set(self, &desc));
	desc.dtype = UINT32_MAX;
	EXPECT_EQ(-EOPNOTSUPP, try_set(self, &desc));
}

TEST_F(meta, every_dtype_fills_the_buffer_exactly)
{
	static const int bytes[TENSOR_DT_COUNT] = { 0, 1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16 };
	uint32_t dtype;

	for (dtype = TENSOR_DT_BOOL; dtype < TENSOR_DT_COUNT; dtype++) {
		struct tensor_desc desc = line(dtype, 0, BYTES / bytes[dtype], 1);

		EXPECT_EQ(0, try_set(self, &desc)) TH_LOG("dtype %u", dtype);
		desc.sizes[0]++;
		EXPECT_EQ(-EINVAL, try_set(self, &desc)) TH_LOG("dtype %u", dtype);
		desc.sizes[0]--;
		desc.offset = 1;
		EXPECT_EQ(-EINVAL, try_set(self, &desc)) TH_LOG("dtype %u", dtype);
	}
}

TEST_F(meta, too_many_dimensions_are_einval)
{
	struct tensor_desc desc = { .dtype = TENSOR_DT_U8, .ndim = TENSOR_UAPI_MAX_DIMS };
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
	struct tensor_desc desc = line(TENSOR_DT_F32, 0, -1, 1);

	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	desc.sizes[0] = INT64_MIN;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
}

TEST_F(meta, scalar_must_lie_within)
{
	struct tensor_desc desc = { .dtype = TENSOR_DT_F64, .offset = BYTES - 8 };

	EXPECT_EQ(0, try_set(self, &desc));
	desc.offset++;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	desc.offset = UINT64_MAX - 7;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
}

TEST_F(meta, negative_strides_must_stay_within)
{
	struct tensor_desc desc = line(TENSOR_DT_F32, 28, 8, -1);

	EXPECT_EQ(0, try_set(self, &desc));
	desc.offset = 27;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	desc = line(TENSOR_DT_F32, BYTES - 4, 8, -1);
	EXPECT_EQ(0, try_set(self, &desc));
	desc.offset = BYTES;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	desc = line(TENSOR_DT_U8, 0, 2, INT64_MIN);
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
	desc = line(TENSOR_DT_C128, BYTES - 16, INT64_MAX, -1);
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
}

TEST_F(meta, positive_and_negative_strides_do_not_cancel)
{
	struct tensor_desc desc = { .dtype = TENSOR_DT_U8, .ndim = 2 };

	desc.sizes[0] = desc.sizes[1] = BYTES + 1;
	desc.strides[0] = 1;
	desc.strides[1] = -1;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
}

TEST_F(meta, stride_zero_reaches_one_element)
{
	struct tensor_desc desc = line(TENSOR_DT_F32, BYTES - 4, 1LL << 40, 0);

	EXPECT_EQ(0, try_set(self, &desc));
	desc.offset++;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
}

TEST_F(meta, stride_of_a_dimension_of_one_does_not_matter)
{
	struct tensor_desc desc = line(TENSOR_DT_F32, 0, 1, INT64_MAX);

	EXPECT_EQ(0, try_set(self, &desc));
	desc.strides[0] = INT64_MIN;
	EXPECT_EQ(0, try_set(self, &desc));
}

TEST_F(meta, empty_tensor_asks_only_for_its_offset)
{
	struct tensor_desc desc = line(TENSOR_DT_F32, BYTES, 0, INT64_MAX);

	EXPECT_EQ(0, try_set(self, &desc));
	desc.offset++;
	EXPECT_EQ(-EINVAL, try_set(self, &desc));
}

TEST_F(meta, overflowing_products_are_einval)
{
	static const struct { int64_t size0, stride0, size1, stride1; } bad[] = {
		{ 1LL << 32, 1, 1LL << 32, 1 }, { 1LL << 62, 0, 4, 0 }, { INT64_MAX, 0, 1, 1 },
		{ 2, INT64_MAX, 2, INT64_MAX }, { 2, INT64_MAX / 4 + 1, 1, 1 },
		{ 5, 1LL << 62, 1, 1 }, { 3, INT64_MIN, 3, INT64_MIN }, { 1LL << 61, 8, 1, 1 },
		{ 0, 1, INT64_MAX, 1 }, { 1LL << 33, 1LL << 31, 1, 1 },
		{ 1LL << 32, 1LL << 32, 1, 0 },
	};
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct tensor_desc desc = { .dtype = TENSOR_DT_F32, .ndim = 2 };

		desc.sizes[0] = bad[i].size0;
		desc.sizes[1] = bad[i].size1;
		desc.strides[0] = bad[i].stride0;
		desc.strides[1] = bad[i].stride1;
		EXPECT_EQ(-EINVAL, try_set(self, &desc)) TH_LOG("row %u", i);
	}
}

TEST_F(meta, sixteen_dimensions_do_not_overflow_the_sum)
{
	struct tensor_desc desc = { .dtype = TENSOR_DT_U8, .ndim = TENSOR_UAPI_MAX_DIMS };
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

TEST_F(meta, none_has_nothing_but_a_label)
{
	struct tensor_desc desc = { .dtype = TENSOR_DT_NONE, .label = "raw" };

	EXPECT_EQ(0, try_set(self, &desc));
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
