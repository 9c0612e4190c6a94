// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Every word of flags: a bit that the kernel does not know is EOPNOTSUPP, alone and beside known
 * ones, and the call does nothing; every reserved field that is not 0 is EINVAL. So a later kernel
 * can give a meaning to a bit, because this kernel never ignored it.
 */
#include "../include/device.h"
#include "kselftest_harness.h"

#define PIN_BYTES PAGE

FIXTURE(flags)
{
	int dev;
	int fd;
	uint64_t used;
	struct tensor_alloc buf;
	struct tensor_query query;
	struct tensor_info before;
	int fds;
	void *at;
};

FIXTURE_SETUP(flags)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, dev_alloc(self->dev, 4 * PAGE, &self->buf));
	self->fd = buf_export(self->dev, self->buf.handle, 0);
	ASSERT_LE(0, self->fd);
	self->at =
		mmap(NULL, PIN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->at);
	ASSERT_EQ(0, dev_query(self->dev, &self->query));
	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &self->before));
	self->fds = count_fds();
	self->used = dev_used(self->dev);
}

/* A refused call changes nothing. */
FIXTURE_TEARDOWN(flags)
{
	struct tensor_info after;

	EXPECT_EQ(self->fds, count_fds());
	EXPECT_EQ(self->used, dev_used(self->dev));
	EXPECT_EQ(0, buf_info(self->dev, self->buf.handle, &after));
	EXPECT_EQ(self->before.seals, after.seals);
	EXPECT_EQ(self->before.state, after.state);
	EXPECT_EQ(self->before.refs, after.refs);
	EXPECT_EQ(self->before.generation, after.generation);
	munmap(self->at, PIN_BYTES);
	close(self->fd);
	close(self->dev);
}

typedef int (*call_fn)(FIXTURE_DATA(flags) * self, uint32_t word);

/*
 * Tries each unknown bit alone, with all known bits, and all unknown bits at once. Returns the
 * number of calls that were not refused with EOPNOTSUPP.
 */
static int unknown_bits(FIXTURE_DATA(flags) * self, call_fn call, uint32_t known)
{
	int bit, bad = 0, err;

	for (bit = 0; bit < 32; bit++) {
		if (known & 1U << bit)
			continue;
		err = call(self, 1U << bit);
		if (err == -EOPNOTSUPP)
			err = call(self, known | 1U << bit);
		if (err != -EOPNOTSUPP) {
			printf("# bit %d: %d\n", bit, err);
			bad++;
		}
	}
	return bad + (call(self, ~known) != -EOPNOTSUPP) + (call(self, ~0U) != -EOPNOTSUPP);
}

static int call_query(FIXTURE_DATA(flags) * self, uint32_t word)
{
	struct tensor_query arg = { .size = sizeof(arg), .flags = word };

	return dev_call(self->dev, TENSOR_IOC_QUERY, &arg);
}

TEST_F(flags, of_query)
{
	EXPECT_EQ(0, unknown_bits(self, call_query, 0));
}

static int call_alloc(FIXTURE_DATA(flags) * self, uint32_t word)
{
	struct tensor_alloc arg = alloc_args(PAGE);

	arg.flags = word;
	return dev_call(self->dev, TENSOR_IOC_ALLOC, &arg);
}

TEST_F(flags, of_alloc)
{
	EXPECT_EQ(0, unknown_bits(self, call_alloc, self->query.alloc_flags));
	EXPECT_EQ(TENSOR_ALLOC_ORDERS | TENSOR_ALLOC_NODE_ONLY | TENSOR_ALLOC_INTERLEAVE |
			  TENSOR_ALLOC_CONTIG | TENSOR_ALLOC_DMA32,
		  self->query.alloc_flags);
}

static int call_info(FIXTURE_DATA(flags) * self, uint32_t word)
{
	struct tensor_info arg = { .size = sizeof(arg), .flags = word, .handle = self->buf.handle };
	int err = dev_call(self->dev, TENSOR_IOC_INFO, &arg);

	arg.handle = 0;
	return err == dev_call(self->fd, TENSOR_IOC_INFO, &arg) ? err : 1;
}

TEST_F(flags, of_info)
{
	EXPECT_EQ(0, unknown_bits(self, call_info, 0));
}

static int call_meta(FIXTURE_DATA(flags) * self, uint32_t word)
{
	struct tensor_meta arg = { .size = sizeof(arg), .flags = word, .handle = self->buf.handle };
	int err = dev_call(self->dev, TENSOR_IOC_META, &arg);

	arg.handle = 0;
	return err == dev_call(self->fd, TENSOR_IOC_META, &arg) ? err : 1;
}

TEST_F(flags, of_meta)
{
	EXPECT_EQ(0, unknown_bits(self, call_meta, TENSOR_META_SET));
}

static int call_export(FIXTURE_DATA(flags) * self, uint32_t word)
{
	return buf_export_rights(self->dev, self->buf.handle, TENSOR_RIGHTS_RW, word);
}

TEST_F(flags, of_export)
{
	EXPECT_EQ(0, unknown_bits(self, call_export, self->query.export_flags));
}

static int call_export_rights(FIXTURE_DATA(flags) * self, uint32_t word)
{
	return buf_export_rights(self->dev, self->buf.handle, word, 0);
}

/* An unknown right is EOPNOTSUPP; a right that the handle does not have is EACCES. */
TEST_F(flags, of_rights)
{
	EXPECT_EQ(0, unknown_bits(self, call_export_rights, self->query.rights));
	EXPECT_EQ(TENSOR_RIGHTS_ALL, self->query.rights);
	EXPECT_EQ(-EINVAL, call_export_rights(self, 0));
}

static int call_import(FIXTURE_DATA(flags) * self, uint32_t word)
{
	struct tensor_import arg = { .size = sizeof(arg), .flags = word, .fd = self->fd };

	return dev_call(self->dev, TENSOR_IOC_IMPORT, &arg);
}

TEST_F(flags, of_import)
{
	EXPECT_EQ(0, unknown_bits(self, call_import, 0));
}

static int call_close(FIXTURE_DATA(flags) * self, uint32_t word)
{
	struct tensor_close arg = { .size = sizeof(arg),
				    .flags = word,
				    .handle = self->buf.handle };

	return dev_call(self->dev, TENSOR_IOC_CLOSE, &arg);
}

TEST_F(flags, of_close)
{
	EXPECT_EQ(0, unknown_bits(self, call_close, 0));
}

static int call_seal(FIXTURE_DATA(flags) * self, uint32_t word)
{
	struct tensor_seal arg = { .size = sizeof(arg),
				   .flags = word,
				   .handle = self->buf.handle,
				   .seals = TENSOR_SEAL_META };
	int err = dev_call(self->dev, TENSOR_IOC_SEAL, &arg);

	arg.handle = 0;
	return err == dev_call(self->fd, TENSOR_IOC_SEAL, &arg) ? err : 1;
}

TEST_F(flags, of_seal)
{
	EXPECT_EQ(0, unknown_bits(self, call_seal, 0));
}

static int call_seals(FIXTURE_DATA(flags) * self, uint32_t word)
{
	int err = buf_seal(self->dev, self->buf.handle, word);

	return err == buf_seal(self->fd, 0, word) ? err : 1;
}

TEST_F(flags, of_seals)
{
	EXPECT_EQ(0, unknown_bits(self, call_seals,
				  TENSOR_SEAL_WRITE | TENSOR_SEAL_META | TENSOR_SEAL_SEAL));
}

static int call_revoke(FIXTURE_DATA(flags) * self, uint32_t word)
{
	struct tensor_revoke arg = { .size = sizeof(arg),
				     .flags = word,
				     .handle = self->buf.handle };

	return dev_call(self->dev, TENSOR_IOC_REVOKE, &arg);
}

TEST_F(flags, of_revoke)
{
	EXPECT_EQ(0, unknown_bits(self, call_revoke, 0));
}

static int call_advise(FIXTURE_DATA(flags) * self, uint32_t word)
{
	struct tensor_advise arg = { .size = sizeof(arg),
				     .flags = word,
				     .handle = self->buf.handle };

	return dev_call(self->dev, TENSOR_IOC_ADVISE, &arg);
}

TEST_F(flags, of_advise)
{
	static const uint32_t advice[] = { 2, 3, 1U << 31, UINT32_MAX };
	unsigned int i;

	EXPECT_EQ(0, unknown_bits(self, call_advise, 0));
	for (i = 0; i < sizeof(advice) / sizeof(advice[0]); i++)
		EXPECT_EQ(-EOPNOTSUPP, buf_advise(self->dev, self->buf.handle, advice[i]));
}

static int call_sync(FIXTURE_DATA(flags) * self, uint32_t word)
{
	int err = buf_sync(self->dev, self->buf.handle, word, 0);

	return err == buf_sync(self->fd, 0, word, 0) ? err : 1;
}

TEST_F(flags, of_sync)
{
	EXPECT_EQ(0, unknown_bits(self, call_sync,
				  TENSOR_SYNC_READ | TENSOR_SYNC_WRITE | TENSOR_SYNC_END));
}

static int call_pin(FIXTURE_DATA(flags) * self, uint32_t word)
{
	int64_t handle = buf_pin(self->dev, self->at, PIN_BYTES, word);

	return handle < 0 ? (int)handle : 0;
}

TEST_F(flags, of_pin)
{
	EXPECT_EQ(0, unknown_bits(self, call_pin, TENSOR_PIN_RDONLY));
}

/* The kind of an fd counts as a value: an unknown kind is EOPNOTSUPP rather than EINVAL. */
TEST_F(flags, of_the_kind_of_an_imported_fd)
{
	struct tensor_import import;
	int ends[2];

	ASSERT_EQ(0, pipe(ends));
	EXPECT_EQ(-EOPNOTSUPP, buf_import(self->dev, ends[0], &import));
	EXPECT_EQ(-EOPNOTSUPP, buf_import(self->dev, self->dev, &import));
	close(ends[0]);
	close(ends[1]);
}

TEST_F(flags, reserved_fields_are_einval)
{
	struct tensor_alloc alloc = alloc_args(PAGE);
	struct tensor_meta meta = { .size = sizeof(meta), .handle = self->buf.handle };
	struct tensor_export export = { .size = sizeof(export),
					.handle = self->buf.handle,
					.rights = TENSOR_RIGHTS_RW };
	struct tensor_import import = { .size = sizeof(import), .fd = self->fd };
	struct tensor_close shut = { .size = sizeof(shut), .handle = self->buf.handle };
	struct tensor_revoke revoke = { .size = sizeof(revoke), .handle = self->buf.handle };
	struct tensor_advise advise = { .size = sizeof(advise), .handle = self->buf.handle };
	struct tensor_sync sync = { .size = sizeof(sync),
				    .handle = self->buf.handle,
				    .flags = TENSOR_SYNC_READ };
	struct tensor_pin pin = { .size = sizeof(pin),
				  .addr = (uintptr_t)self->at,
				  .bytes = PIN_BYTES };
	int bit;

	for (bit = 0; bit < 32; bit++) {
		alloc.__reserved = meta.__reserved = export.__reserved = 1U << bit;
		import.__reserved = shut.__reserved = revoke.__reserved = 1U << bit;
		advise.__reserved = sync.__reserved = pin.__reserved = 1U << bit;
		EXPECT_EQ(-EINVAL, dev_call(self->dev, TENSOR_IOC_ALLOC, &alloc));
		EXPECT_EQ(-EINVAL, dev_call(self->dev, TENSOR_IOC_META, &meta));
		EXPECT_EQ(-EINVAL, dev_call(self->dev, TENSOR_IOC_EXPORT, &export));
		EXPECT_EQ(-EINVAL, dev_call(self->dev, TENSOR_IOC_IMPORT, &import));
		EXPECT_EQ(-EINVAL, dev_call(self->dev, TENSOR_IOC_CLOSE, &shut));
		EXPECT_EQ(-EINVAL, dev_call(self->dev, TENSOR_IOC_REVOKE, &revoke));
		EXPECT_EQ(-EINVAL, dev_call(self->dev, TENSOR_IOC_ADVISE, &advise));
		EXPECT_EQ(-EINVAL, dev_call(self->dev, TENSOR_IOC_SYNC, &sync));
		EXPECT_EQ(-EINVAL, dev_call(self->dev, TENSOR_IOC_PIN, &pin));
	}
	meta.__reserved = 0;
	meta.flags = TENSOR_META_SET;
	meta.desc.__reserved = 1;
	EXPECT_EQ(-EINVAL, dev_call(self->dev, TENSOR_IOC_META, &meta));
}

TEST_HARNESS_MAIN
