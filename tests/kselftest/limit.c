// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * The limits: that of all buffers together and that of each user, both written while the module is
 * in use.
 */
#include "device.h"
#include "kselftest_harness.h"

#define USER_LIMIT_FILE	PARAM("user_limit_bytes")
#define OTHER_USER	1000

FIXTURE(limit) {
	int dev;
	char all[64];
	char user[64];
};

FIXTURE_SETUP(limit)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, dev_used(self->dev));
	read_text(LIMIT_FILE, self->all, sizeof(self->all));
	read_text(USER_LIMIT_FILE, self->user, sizeof(self->user));
}

FIXTURE_TEARDOWN(limit)
{
	int dev = dev_open();

	close(self->dev);
	EXPECT_EQ(0, write_text(LIMIT_FILE, self->all));
	EXPECT_EQ(0, write_text(USER_LIMIT_FILE, self->user));
	EXPECT_TRUE(used_becomes(dev, 0));
	close(dev);
}

static int set_limit(const char *file, uint64_t bytes)
{
	char text[64];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes);
	return write_text(file, text);
}

/* ALLOC as another user; its buffer goes with the handle unless it is left open. */
static int alloc_as_other(int dev, uint64_t bytes)
{
	struct tensor_alloc alloc;
	pid_t pid = fork();

	if (!pid)
		_exit(setuid(OTHER_USER) ? 255 : -dev_alloc(dev, bytes, &alloc));
	return -reap(pid);
}

TEST_F(limit, default_is_half_of_memory)
{
	uint64_t total = read_number("/proc/meminfo", "MemTotal:") * KIB;
	struct tensor_query query;

	EXPECT_STREQ("0\n", self->all);
	EXPECT_STREQ("0\n", self->user);
	ASSERT_EQ(0, dev_query(self->dev, &query));
	EXPECT_EQ(total / 2 / PAGE, query.limit_bytes / PAGE);
}

TEST_F(limit, of_all_is_edquot)
{
	struct tensor_alloc alloc;
	struct tensor_query query;

	ASSERT_EQ(0, set_limit(LIMIT_FILE, MIB));
	EXPECT_EQ(0, dev_query(self->dev, &query));
	EXPECT_EQ(MIB, query.limit_bytes);
	EXPECT_EQ(-EDQUOT, dev_alloc(self->dev, MIB + PAGE, &alloc));
	EXPECT_EQ(0, dev_used(self->dev));
	EXPECT_EQ(0, dev_alloc(self->dev, MIB, &alloc));
	EXPECT_EQ(-EDQUOT, dev_alloc(self->dev, 1, &alloc));
	EXPECT_EQ(0, write_text(LIMIT_FILE, self->all));
	EXPECT_EQ(0, dev_alloc(self->dev, 2 * MIB, &alloc));
}

TEST_F(limit, of_a_user_is_edquot_and_no_other_users)
{
	struct tensor_alloc alloc;

	ASSERT_EQ(0, set_limit(USER_LIMIT_FILE, MIB));
	EXPECT_EQ(-EDQUOT, dev_alloc(self->dev, MIB + PAGE, &alloc));
	EXPECT_EQ(0, dev_used(self->dev));
	EXPECT_EQ(0, dev_alloc(self->dev, MIB, &alloc));
	EXPECT_EQ(-EDQUOT, dev_alloc(self->dev, 1, &alloc));
	EXPECT_EQ(MIB, dev_used(self->dev));
	EXPECT_EQ(0, alloc_as_other(self->dev, MIB));
	EXPECT_EQ(-EDQUOT, alloc_as_other(self->dev, PAGE));
	EXPECT_EQ(2 * MIB, dev_used(self->dev));
}

TEST_F(limit, of_all_holds_for_two_users_together)
{
	struct tensor_alloc alloc;

	ASSERT_EQ(0, set_limit(LIMIT_FILE, 3 * MIB));
	ASSERT_EQ(0, set_limit(USER_LIMIT_FILE, 2 * MIB));
	EXPECT_EQ(0, dev_alloc(self->dev, 2 * MIB, &alloc));
	EXPECT_EQ(-EDQUOT, alloc_as_other(self->dev, 2 * MIB));
	EXPECT_EQ(0, alloc_as_other(self->dev, MIB));
	EXPECT_EQ(3 * MIB, dev_used(self->dev));
}

TEST_F(limit, lowering_takes_nothing_away)
{
	struct tensor_alloc first, second;

	ASSERT_EQ(0, dev_alloc(self->dev, 2 * MIB, &first));
	ASSERT_EQ(0, set_limit(LIMIT_FILE, MIB));
	ASSERT_EQ(0, set_limit(USER_LIMIT_FILE, MIB));
	EXPECT_EQ(2 * MIB, dev_used(self->dev));
	EXPECT_EQ(-EDQUOT, dev_alloc(self->dev, PAGE, &second));
	EXPECT_EQ(0, dev_close(self->dev, first.handle));
	EXPECT_TRUE(used_becomes(self->dev, 0));
	EXPECT_EQ(0, dev_alloc(self->dev, MIB, &second));
}

/* Who allocated pays, as long as the buffer lives and whoever holds it. */
TEST_F(limit, maker_pays_when_another_user_holds_the_buffer)
{
	struct tensor_alloc alloc;
	int dev, fd;

	ASSERT_EQ(0, set_limit(USER_LIMIT_FILE, MIB));
	dev = dev_open();
	ASSERT_EQ(0, alloc_as_other(dev, MIB));
	fd = buf_export(dev, 1, TENSOR_EXPORT_CLOEXEC);
	ASSERT_LE(0, fd);
	close(dev);
	EXPECT_EQ(0, dev_alloc(self->dev, MIB, &alloc));
	EXPECT_EQ(-EDQUOT, alloc_as_other(self->dev, PAGE));
	close(fd);
	EXPECT_TRUE(used_becomes(self->dev, MIB));
	EXPECT_EQ(0, alloc_as_other(self->dev, MIB));
}

TEST_F(limit, parameters_take_numbers_only)
{
	EXPECT_EQ(-EINVAL, write_text(USER_LIMIT_FILE, "much"));
	EXPECT_EQ(-EINVAL, write_text(LIMIT_FILE, "-1"));
	EXPECT_EQ(-EINVAL, write_text(PARAM("pool_bytes"), "1k"));
	EXPECT_EQ(-EINVAL, write_text(PARAM("account"), "perhaps"));
}

TEST_HARNESS_MAIN
