// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Every ioctl refuses wrong numbers, sizes, addresses and handles, and changes nothing then. Flags
 * and reserved fields: flags.c.
 */
#include <sys/resource.h>

#include "../include/device.h"
#include "kselftest_harness.h"

/* The sizes of the first versions are constants here, because they never change. */
static const struct {
	unsigned int cmd;
	uint32_t size;
	uint32_t first_version;
	bool on_buf;
} calls[] = {
	{ TENSOR_IOC_QUERY, sizeof(struct tensor_query), 128, false },
	{ TENSOR_IOC_ALLOC, sizeof(struct tensor_alloc), 40, false },
	{ TENSOR_IOC_INFO, sizeof(struct tensor_info), 200, true },
	{ TENSOR_IOC_META, sizeof(struct tensor_meta), 328, true },
	{ TENSOR_IOC_EXPORT, sizeof(struct tensor_export), 40, false },
	{ TENSOR_IOC_IMPORT, sizeof(struct tensor_import), 40, false },
	{ TENSOR_IOC_CLOSE, sizeof(struct tensor_close), 16, false },
	{ TENSOR_IOC_SEAL, sizeof(struct tensor_seal), 16, true },
	{ TENSOR_IOC_REVOKE, sizeof(struct tensor_revoke), 16, false },
	{ TENSOR_IOC_ADVISE, sizeof(struct tensor_advise), 24, false },
	{ TENSOR_IOC_SYNC, sizeof(struct tensor_sync), 32, true },
	{ TENSOR_IOC_PIN, sizeof(struct tensor_pin), 32, false },
};

/* All features. */
#define FEATURES                                                                  \
	(TENSOR_FEATURE_HUGE | TENSOR_FEATURE_MEMCG | TENSOR_FEATURE_NUMA |       \
	 TENSOR_FEATURE_NETLINK | TENSOR_FEATURE_EVENTS | TENSOR_FEATURE_DMABUF | \
	 TENSOR_FEATURE_MEMFD)

#define CALLS (sizeof(calls) / sizeof(calls[0]))

FIXTURE(abi)
{
	int dev;
	int fd;
	uint64_t used;
	struct tensor_alloc buf;
};

FIXTURE_SETUP(abi)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, dev_alloc(self->dev, 64 * KIB, &self->buf));
	self->fd = buf_export(self->dev, self->buf.handle, 0);
	ASSERT_LE(0, self->fd);
	self->used = dev_used(self->dev);
}

FIXTURE_TEARDOWN(abi)
{
	EXPECT_EQ(self->used, dev_used(self->dev));
	close(self->fd);
	close(self->dev);
}

/* Memory for PIN. */
static char pinned[PAGE] __attribute__((aligned(PAGE)));

/* A valid struct of the call, followed by room. */
static void *valid(FIXTURE_DATA(abi) * self, unsigned int cmd, void *room, uint32_t size)
{
	union ioctl_arg *arg = room;

	memset(room, 0, PAGE);
	arg->size = size;
	if (cmd == TENSOR_IOC_ALLOC) {
		arg->alloc.bytes = PAGE;
		arg->alloc.node = TENSOR_NODE_ANY;
	} else if (cmd == TENSOR_IOC_INFO) {
		arg->info.handle = self->buf.handle;
	} else if (cmd == TENSOR_IOC_META) {
		arg->meta.handle = self->buf.handle;
	} else if (cmd == TENSOR_IOC_EXPORT) {
		arg->export.handle = self->buf.handle;
		arg->export.rights = TENSOR_RIGHTS_RW;
	} else if (cmd == TENSOR_IOC_IMPORT) {
		arg->import.fd = self->fd;
	} else if (cmd == TENSOR_IOC_CLOSE) {
		arg->close.handle = self->buf.handle;
	} else if (cmd == TENSOR_IOC_SEAL) {
		arg->seal.handle = self->buf.handle;
		arg->seal.seals = TENSOR_SEAL_META;
	} else if (cmd == TENSOR_IOC_REVOKE) {
		arg->revoke.handle = self->buf.handle;
	} else if (cmd == TENSOR_IOC_ADVISE) {
		arg->advise.handle = self->buf.handle;
		arg->advise.advice = TENSOR_ADVISE_WILLNEED;
	} else if (cmd == TENSOR_IOC_SYNC) {
		arg->sync.handle = self->buf.handle;
		arg->sync.flags = TENSOR_SYNC_READ;
	} else if (cmd == TENSOR_IOC_PIN) {
		arg->pin.addr = (uintptr_t)pinned;
		arg->pin.bytes = PAGE;
	}
	return room;
}

/*
 * Checks that the values are plausible; reply.c checks the values themselves and that all are
 * written.
 */
TEST_F(abi, query_reports_what_the_kernel_supports)
{
	struct tensor_query q;

	/* not dev_query(), which zeroes the struct: a field that was not written would pass */
	memset(&q, 0xff, sizeof(q));
	q.size = sizeof(q);
	q.flags = 0;
	ASSERT_EQ(0, dev_call(self->dev, TENSOR_IOC_QUERY, &q));
	EXPECT_EQ(0xfff, q.ioctls & 0xfff);
	EXPECT_EQ((uint64_t)sysconf(_SC_PAGESIZE), q.page_size);
	EXPECT_EQ(TENSOR_UAPI_MAX_DIMS, q.max_dims);
	EXPECT_LE(1, q.nodes);
	EXPECT_GE(1024, q.nodes);
	EXPECT_NE(0, q.chunk_sizes & PAGE);
	EXPECT_NE(0, q.chunk_sizes & (PAGE << q.max_order));
	EXPECT_EQ(0, q.chunk_sizes & (PAGE - 1));
	EXPECT_EQ(64 * KIB, q.used_bytes);
	EXPECT_LE(q.used_bytes, q.limit_bytes);
	EXPECT_NE(0, q.features & TENSOR_FEATURE_EVENTS);
	EXPECT_NE(0, q.features & TENSOR_FEATURE_NETLINK);
	EXPECT_EQ(0, q.features & ~FEATURES);
	EXPECT_EQ(TENSOR_EXPORT_INHERIT | TENSOR_EXPORT_RANGE | TENSOR_EXPORT_DMABUF,
		  q.export_flags);
	EXPECT_EQ(TENSOR_RIGHTS_ALL, q.rights);
	EXPECT_LE(PAGE, q.contig_bytes);
	EXPECT_LE(q.contig_bytes, q.max_bytes);
	EXPECT_EQ(0, q.__reserved);
	EXPECT_EQ(64 * KIB, q.user_used_bytes);
	EXPECT_LE(q.user_used_bytes, q.user_limit_bytes);
	EXPECT_NE(0, q.alloc_flags);
	EXPECT_EQ(0, q.alloc_flags >> 32);
	EXPECT_NE(UINT64_MAX, q.max_bytes);
	EXPECT_NE(UINT32_MAX, q.max_handles);
}

TEST_F(abi, query_works_on_read_only_open)
{
	struct tensor_query q;
	int dev = open("/dev/tensor", O_RDONLY);

	ASSERT_LE(0, dev);
	EXPECT_EQ(0, dev_query(dev, &q));
	close(dev);
}

TEST_F(abi, unknown_ioctl_is_enotty)
{
	static const unsigned int cmds[] = {
		_IO(TENSOR_IOC_TYPE, 0),
		_IO(TENSOR_IOC_TYPE, 0x3f),
		_IO(TENSOR_IOC_TYPE, 0xff),
		_IO(TENSOR_IOC_TYPE, TENSOR_IOC_BASE + 63),
		_IO('T', 0x40),
		0,
		~0U,
		_IOWR(TENSOR_IOC_TYPE, 0x40, struct tensor_query),
	};
	char room[PAGE];
	unsigned int i;

	for (i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++) {
		valid(self, TENSOR_IOC_QUERY, room, sizeof(struct tensor_query));
		EXPECT_EQ(-ENOTTY, dev_call(self->dev, cmds[i], room)) TH_LOG("cmd %#x", cmds[i]);
		EXPECT_EQ(-ENOTTY, dev_call(self->fd, cmds[i], room)) TH_LOG("cmd %#x", cmds[i]);
	}
}

TEST_F(abi, buffer_fd_accepts_only_calls_on_its_buffer)
{
	char room[PAGE];
	unsigned int i;

	for (i = 0; i < CALLS; i++) {
		if (calls[i].on_buf)
			continue;
		valid(self, calls[i].cmd, room, calls[i].size);
		EXPECT_EQ(-ENOTTY, dev_call(self->fd, calls[i].cmd, room)) TH_LOG("call %u", i);
	}
}

TEST_F(abi, size_below_first_version_is_einval)
{
	char room[PAGE];
	unsigned int i;
	uint32_t size;

	for (i = 0; i < CALLS; i++) {
		for (size = 0; size < calls[i].first_version; size += 4) {
			valid(self, calls[i].cmd, room, size);
			EXPECT_EQ(-EINVAL, dev_call(self->dev, calls[i].cmd, room))
			TH_LOG("call %u size %u", i, size);
		}
	}
}

TEST_F(abi, first_version_is_answered_and_nothing_beyond_it_is_written)
{
	static const unsigned int asks[] = {
		TENSOR_IOC_QUERY,
		TENSOR_IOC_INFO,
		TENSOR_IOC_META,
		TENSOR_IOC_EXPORT,
	};
	unsigned int i, n;
	char room[PAGE];

	for (i = 0; i < 4; i++) {
		for (n = 0; calls[n].cmd != asks[i]; n++)
			;
		valid(self, asks[i], room, calls[n].first_version);
		memset(room + calls[n].first_version, 0x5a, PAGE - calls[n].first_version);
		EXPECT_EQ(0, dev_call(self->dev, asks[i], room)) TH_LOG("call %u", n);
		EXPECT_TRUE(all_bytes(room + calls[n].first_version, 0x5a,
				      PAGE - calls[n].first_version))
		TH_LOG("call %u", n);
		if (asks[i] == TENSOR_IOC_EXPORT)
			close(((struct tensor_export *)room)->fd);
	}
}

TEST_F(abi, longer_struct_with_zero_tail_is_accepted)
{
	struct tensor_alloc *alloc;
	char room[PAGE];

	valid(self, TENSOR_IOC_INFO, room, PAGE);
	EXPECT_EQ(0, dev_call(self->dev, TENSOR_IOC_INFO, room));
	EXPECT_TRUE(
		all_bytes(room + sizeof(struct tensor_info), 0, PAGE - sizeof(struct tensor_info)));
	alloc = valid(self, TENSOR_IOC_ALLOC, room, sizeof(*alloc) + 8);
	ASSERT_EQ(0, dev_call(self->dev, TENSOR_IOC_ALLOC, alloc));
	EXPECT_EQ(0, dev_close(self->dev, alloc->handle));
}

TEST_F(abi, unknown_tail_that_is_not_zero_is_e2big)
{
	char room[PAGE];
	unsigned int i;

	for (i = 0; i < CALLS; i++) {
		valid(self, calls[i].cmd, room, calls[i].size + 16);
		room[calls[i].size + 15] = 1;
		EXPECT_EQ(-E2BIG, dev_call(self->dev, calls[i].cmd, room)) TH_LOG("call %u", i);
	}
}

TEST_F(abi, size_above_a_page_is_e2big)
{
	char room[PAGE];
	unsigned int i;

	for (i = 0; i < CALLS; i++) {
		valid(self, calls[i].cmd, room, PAGE + 1);
		EXPECT_EQ(-E2BIG, dev_call(self->dev, calls[i].cmd, room)) TH_LOG("call %u", i);
		valid(self, calls[i].cmd, room, UINT32_MAX);
		EXPECT_EQ(-E2BIG, dev_call(self->dev, calls[i].cmd, room)) TH_LOG("call %u", i);
	}
}

TEST_F(abi, inaccessible_struct_is_efault)
{
	char room[PAGE], *two;
	unsigned int i;

	two = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, two);
	ASSERT_EQ(0, mprotect(two + PAGE, PAGE, PROT_NONE));
	for (i = 0; i < CALLS; i++) {
		uint32_t half = calls[i].size / 2;

		EXPECT_EQ(-EFAULT, dev_call(self->dev, calls[i].cmd, NULL));
		EXPECT_EQ(-EFAULT, dev_call(self->dev, calls[i].cmd, two + PAGE));
		EXPECT_EQ(-EFAULT, dev_call(self->dev, calls[i].cmd, (void *)-4096UL));
		valid(self, calls[i].cmd, room, calls[i].size);
		memcpy(two + PAGE - half, room, half);
		EXPECT_EQ(-EFAULT, dev_call(self->dev, calls[i].cmd, two + PAGE - half));
	}
	munmap(two, 2 * PAGE);
}

TEST_F(abi, reply_that_cannot_be_written_changes_nothing)
{
	static const unsigned int made[] = {
		TENSOR_IOC_ALLOC, TENSOR_IOC_EXPORT, TENSOR_IOC_IMPORT,
		TENSOR_IOC_SEAL,  TENSOR_IOC_ADVISE, TENSOR_IOC_PIN,
	};
	struct tensor_info before, after;
	int fds = count_fds();
	unsigned int i;
	char *page;

	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &before));
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, page);
	for (i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
		unsigned int n;

		for (n = 0; calls[n].cmd != made[i]; n++)
			;
		mprotect(page, PAGE, PROT_READ | PROT_WRITE);
		valid(self, made[i], page, calls[n].size);
		mprotect(page, PAGE, PROT_READ);
		EXPECT_EQ(-EFAULT, dev_call(self->dev, made[i], page));
	}
	munmap(page, PAGE);
	EXPECT_EQ(fds, count_fds());
	EXPECT_EQ(self->used, dev_used(self->dev));
	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &after));
	EXPECT_EQ(before.refs, after.refs);
	EXPECT_EQ(before.seals, after.seals);
	EXPECT_EQ(before.state, after.state);
}

static void all_enoent(struct __test_metadata *_metadata, int dev, uint32_t handle)
{
	struct tensor_info info;
	struct tensor_desc desc = { 0 };

	EXPECT_EQ(-ENOENT, buf_info(dev, handle, &info));
	EXPECT_EQ(-ENOENT, buf_meta(dev, handle, 0, &desc));
	EXPECT_EQ(-ENOENT, buf_meta(dev, handle, TENSOR_META_SET, &desc));
	EXPECT_EQ(-ENOENT, buf_export(dev, handle, 0));
	EXPECT_EQ(-ENOENT, buf_seal(dev, handle, 0));
	EXPECT_EQ(-ENOENT, buf_revoke(dev, handle));
	EXPECT_EQ(-ENOENT, buf_advise(dev, handle, TENSOR_ADVISE_WILLNEED));
	EXPECT_EQ(-ENOENT, dev_close(dev, handle));
}

TEST_F(abi, closed_handle_is_enoent)
{
	struct tensor_alloc alloc;

	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	ASSERT_EQ(0, dev_close(self->dev, alloc.handle));
	all_enoent(_metadata, self->dev, alloc.handle);
	EXPECT_EQ(-ENOENT, map_errno(self->dev, PAGE, PROT_READ, MAP_SHARED, alloc.mmap_offset));
}

TEST_F(abi, handle_that_was_never_made_is_enoent)
{
	all_enoent(_metadata, self->dev, 0);
	all_enoent(_metadata, self->dev, self->buf.handle + 1);
	all_enoent(_metadata, self->dev, UINT32_MAX);
	EXPECT_EQ(-ENOENT, map_errno(self->dev, PAGE, PROT_READ, MAP_SHARED, 0));
	EXPECT_EQ(-ENOENT, map_errno(self->dev, PAGE, PROT_READ, MAP_SHARED, 1ULL << 62));
}

TEST_F(abi, handle_and_mmap_offset_of_another_open_are_enoent)
{
	int other = dev_open();

	ASSERT_LE(0, other);
	all_enoent(_metadata, other, self->buf.handle);
	EXPECT_EQ(-ENOENT, map_errno(other, PAGE, PROT_READ, MAP_SHARED, self->buf.mmap_offset));
	close(other);
}

TEST_F(abi, handle_on_buffer_fd_is_einval)
{
	struct tensor_info info;
	struct tensor_desc desc;

	EXPECT_EQ(-EINVAL, buf_info(self->fd, self->buf.handle, &info));
	EXPECT_EQ(-EINVAL, buf_meta(self->fd, self->buf.handle, 0, &desc));
	EXPECT_EQ(-EINVAL, buf_seal(self->fd, self->buf.handle, TENSOR_SEAL_META));
	EXPECT_EQ(0, buf_info(self->fd, 0, &info));
}

TEST_F(abi, alloc_refuses_impossible_sizes)
{
	struct tensor_alloc alloc;
	struct tensor_query q;

	ASSERT_EQ(0, dev_query(self->dev, &q));
	EXPECT_EQ(-EINVAL, dev_alloc(self->dev, 0, &alloc));
	EXPECT_EQ(-EINVAL, dev_alloc(self->dev, q.max_bytes + 1, &alloc));
	EXPECT_EQ(-EINVAL, dev_alloc(self->dev, INT64_MAX, &alloc));
	EXPECT_EQ(-EINVAL, dev_alloc(self->dev, UINT64_MAX, &alloc));
	EXPECT_EQ(-EINVAL, dev_alloc(self->dev, UINT64_MAX - PAGE + 1, &alloc));
}

TEST_F(abi, alloc_refuses_impossible_orders)
{
	static const struct {
		uint32_t flags;
		uint16_t min, max;
	} bad[] = {
		{ TENSOR_ALLOC_ORDERS, 1, 0 },
		{ TENSOR_ALLOC_ORDERS, 0, 100 },
		{ TENSOR_ALLOC_ORDERS, 100, 100 },
		{ TENSOR_ALLOC_ORDERS, 0, 65535 },
		{ 0, 0, 1 },
		{ 0, 1, 1 },
	};
	struct tensor_alloc alloc;
	struct tensor_query q;
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		alloc = alloc_args(PAGE);
		alloc.flags = bad[i].flags;
		alloc.min_order = bad[i].min;
		alloc.max_order = bad[i].max;
		EXPECT_EQ(-EINVAL, dev_call(self->dev, TENSOR_IOC_ALLOC, &alloc))
		TH_LOG("row %u", i);
	}
	ASSERT_EQ(0, dev_query(self->dev, &q));
	alloc = alloc_args(PAGE);
	alloc.flags = TENSOR_ALLOC_ORDERS;
	alloc.max_order = q.max_order + 1;
	EXPECT_EQ(-EINVAL, dev_call(self->dev, TENSOR_IOC_ALLOC, &alloc));
}

TEST_F(abi, alloc_refuses_nodes_without_memory)
{
	static const int32_t nodes[] = { -2, INT32_MIN, 1023, 1 << 20, INT32_MAX };
	struct tensor_alloc alloc;
	unsigned int i;

	for (i = 0; i < 5; i++) {
		alloc = alloc_args(PAGE);
		alloc.node = nodes[i];
		EXPECT_EQ(-EINVAL, dev_call(self->dev, TENSOR_IOC_ALLOC, &alloc))
		TH_LOG("row %u", i);
	}
	alloc = alloc_args(PAGE);
	alloc.flags = TENSOR_ALLOC_NODE_ONLY;
	EXPECT_EQ(-EINVAL, dev_call(self->dev, TENSOR_IOC_ALLOC, &alloc));
}

TEST_F(abi, alloc_and_import_need_an_open_for_writing)
{
	struct tensor_import import;
	struct tensor_alloc alloc;
	int dev = open("/dev/tensor", O_RDONLY);

	ASSERT_LE(0, dev);
	EXPECT_EQ(-EACCES, dev_alloc(dev, PAGE, &alloc));
	EXPECT_EQ(-EACCES, buf_import(dev, self->fd, &import));
	close(dev);
}

TEST_F(abi, import_refuses_fds_without_a_buffer)
{
	struct tensor_import import;
	int pipes[2], memfd = memfd_create("stranger", 0);

	ASSERT_EQ(0, pipe(pipes));
	EXPECT_EQ(-EBADF, buf_import(self->dev, -1, &import));
	EXPECT_EQ(-EBADF, buf_import(self->dev, 1 << 20, &import));
	EXPECT_EQ(-EOPNOTSUPP, buf_import(self->dev, pipes[0], &import));
	EXPECT_EQ(-EINVAL, buf_import(self->dev, memfd, &import));
	EXPECT_EQ(-EOPNOTSUPP, buf_import(self->dev, self->dev, &import));
	close(pipes[0]);
	close(pipes[1]);
	close(memfd);
}

TEST_F(abi, export_at_the_fd_limit_is_emfile)
{
	struct tensor_info before, after;
	int last = dup(0);

	ASSERT_LE(0, last);
	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &before));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &(struct rlimit){ last + 1, last + 1 }));
	EXPECT_EQ(-EMFILE, buf_export(self->dev, self->buf.handle, 0));
	ASSERT_EQ(0, buf_info(self->dev, self->buf.handle, &after));
	EXPECT_EQ(before.refs, after.refs);
	close(last);
}

TEST_HARNESS_MAIN
