// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/* The values that the ioctls write to their output fields. */
#include "../include/device.h"
#include "kselftest_harness.h"

#define BYTES (8 * PAGE)

FIXTURE(reply_values)
{
	int dev;
	int fd;
	struct tensor_alloc buf;
};

FIXTURE_SETUP(reply_values)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, dev_alloc(self->dev, BYTES, &self->buf));
	self->fd = buf_export_rw(self->dev, self->buf.handle);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(reply_values)
{
	close(self->fd);
	close(self->dev);
}

static uint64_t parameter(const char *path)
{
	char text[64];

	return strtoull(read_text(path, text, sizeof(text)), NULL, 10);
}

TEST_F(reply_values, query_values_are_those_of_the_machine)
{
	struct tensor_query q, later;
	struct tensor_alloc alloc;

	memset(&q, 0xa5, sizeof(q));
	q.size = sizeof(q);
	q.flags = 0;
	ASSERT_EQ(0, dev_call(self->dev, TENSOR_IOC_QUERY, &q));
	EXPECT_EQ(0, q.features >> 16);
	EXPECT_EQ(0xfff, q.ioctls);
	EXPECT_EQ(0x1f, q.alloc_flags);
	EXPECT_EQ(0x7, q.export_flags);
	EXPECT_EQ(TENSOR_RIGHTS_ALL, q.rights);
	EXPECT_EQ(1ULL << 39, q.max_bytes);
	EXPECT_LE(PAGE << q.max_order, q.contig_bytes);
	EXPECT_GE(q.max_bytes, q.contig_bytes);
	EXPECT_EQ(BYTES, q.used_bytes);
	EXPECT_EQ((2 * (PAGE << q.max_order) - 1) & ~(PAGE - 1), q.chunk_sizes);
	EXPECT_EQ((uint64_t)sysconf(_SC_PAGESIZE), q.page_size);
	EXPECT_EQ(TENSOR_UAPI_MAX_DIMS, q.max_dims);
	EXPECT_EQ((1 << 22) - 1, q.max_handles);
	EXPECT_EQ(0, q.__reserved);
	EXPECT_LE(q.used_bytes, q.limit_bytes);
	/* one user cannot have more than all users */
	EXPECT_EQ(BYTES, q.user_used_bytes);
	EXPECT_LE(q.user_used_bytes, q.user_limit_bytes);
	ASSERT_EQ(0, dev_alloc(self->dev, 3 * PAGE, &alloc));
	ASSERT_EQ(0, dev_query(self->dev, &later));
	EXPECT_EQ(q.used_bytes + 3 * PAGE, later.used_bytes);
	EXPECT_EQ(q.user_used_bytes + 3 * PAGE, later.user_used_bytes);
	EXPECT_EQ(q.user_limit_bytes, later.user_limit_bytes);
}

TEST_F(reply_values, query_limits_follow_the_parameters)
{
	char before[64], user_before[64];
	struct tensor_query q;

	read_text(LIMIT_FILE, before, sizeof(before));
	read_text(PARAM("user_limit_bytes"), user_before, sizeof(user_before));
	EXPECT_EQ(0, write_text(LIMIT_FILE, "100000000"));
	EXPECT_EQ(0, write_text(PARAM("user_limit_bytes"), "30000000"));
	EXPECT_EQ(0, dev_query(self->dev, &q));
	EXPECT_EQ(parameter(LIMIT_FILE), q.limit_bytes);
	EXPECT_EQ(30000000, q.user_limit_bytes);
	EXPECT_EQ(0, write_text(LIMIT_FILE, before));
	EXPECT_EQ(0, write_text(PARAM("user_limit_bytes"), user_before));
}

/* The child is another user, who has no buffer yet. */
TEST_F(reply_values, query_counts_the_bytes_of_the_calling_user)
{
	struct tensor_alloc alloc;
	struct tensor_query q;
	pid_t pid = fork();
	int dev;

	if (!pid) {
		dev = dev_open();
		if (setuid(1000) || dev_query(dev, &q))
			_exit(1);
		if (q.user_used_bytes || q.used_bytes != BYTES)
			_exit(2);
		if (dev_alloc(dev, PAGE, &alloc) || dev_query(dev, &q))
			_exit(3);
		_exit(q.user_used_bytes == PAGE && q.used_bytes == BYTES + PAGE ? 0 : 4);
	}
	EXPECT_EQ(0, reap(pid));
}

TEST_F(reply_values, alloc_values_are_those_of_the_buffer)
{
	struct tensor_alloc alloc = alloc_args(3 * PAGE - 7);

	alloc.handle = 0xa5a5a5a5;
	alloc.mmap_offset = 0xa5a5a5a5a5a5a5a5;
	ASSERT_EQ(0, dev_call(self->dev, TENSOR_IOC_ALLOC, &alloc));
	EXPECT_EQ(3 * PAGE, alloc.bytes);
	EXPECT_EQ(0, map_errno(self->dev, 3 * PAGE, PROT_READ, MAP_SHARED, alloc.mmap_offset));
	EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
}

TEST_F(reply_values, info_values_are_those_of_the_buffer)
{
	char *at = map_shared(self->fd, PAGE, PROT_READ, 0);
	struct tensor_info info;
	uint64_t in_chunks = 0;
	struct stat st;
	int i;

	ASSERT_NE(MAP_FAILED, at);
	memset(&info, 0xa5, sizeof(info));
	info.size = sizeof(info);
	info.flags = 0;
	info.handle = self->buf.handle;
	ASSERT_EQ(0, dev_call(self->dev, TENSOR_IOC_INFO, &info));
	ASSERT_EQ(0, fstat(self->fd, &st));
	for (i = 0; i < TENSOR_UAPI_ORDERS; i++)
		in_chunks += info.chunks[i] * (PAGE << i);
	EXPECT_EQ(0, info.state);
	EXPECT_EQ(TENSOR_RIGHTS_ALL, info.rights);
	EXPECT_EQ(BYTES, info.bytes);
	EXPECT_EQ(0, info.huge_bytes);
	EXPECT_EQ(BYTES, info.pinned_bytes);
	EXPECT_EQ(0, info.dma_bytes);
	EXPECT_EQ(st.st_dev, info.dev);
	EXPECT_EQ(st.st_ino, info.ino);
	EXPECT_GT(60000000000ULL, info.age_ns);
	EXPECT_EQ(getpid(), info.pid);
	EXPECT_EQ(getuid(), info.uid);
	EXPECT_EQ(1, info.handles);
	EXPECT_EQ(1, info.files);
	EXPECT_EQ(1, info.mappings);
	EXPECT_EQ(3, info.refs);
	EXPECT_LE(-1, info.node);
	EXPECT_GT(64, info.node);
	EXPECT_EQ(BYTES, in_chunks);
	EXPECT_EQ(TENSOR_KIND_ALLOC, info.kind);
	EXPECT_EQ(0, info.seals);
	EXPECT_EQ(0, info.generation);
	EXPECT_EQ(0, info.offset);
	EXPECT_EQ(0, info.dmabufs);
	EXPECT_EQ(0, info.attachments);
	munmap(at, PAGE);
}

TEST_F(reply_values, seal_returns_all_seals)
{
	struct tensor_seal seal = { .size = sizeof(seal),
				    .handle = self->buf.handle,
				    .seals = TENSOR_SEAL_META };

	ASSERT_EQ(0, dev_call(self->dev, TENSOR_IOC_SEAL, &seal));
	EXPECT_EQ(TENSOR_SEAL_META, seal.seals);
	seal.seals = 0;
	ASSERT_EQ(0, dev_call(self->dev, TENSOR_IOC_SEAL, &seal));
	EXPECT_EQ(TENSOR_SEAL_META, seal.seals);
}

TEST_F(reply_values, import_values_are_those_of_the_fd)
{
	int fd = buf_share_range(self->dev, self->buf.handle, 0, PAGE, 2 * PAGE);
	struct tensor_import import;

	memset(&import, 0xa5, sizeof(import));
	import.size = sizeof(import);
	import.flags = import.__reserved = 0;
	import.fd = fd;
	ASSERT_EQ(0, dev_call(self->dev, TENSOR_IOC_IMPORT, &import));
	EXPECT_EQ(2 * PAGE, import.bytes);
	EXPECT_EQ(TENSOR_RIGHTS_RW, import.rights);
	EXPECT_EQ(0, map_errno(self->dev, 2 * PAGE, PROT_READ, MAP_SHARED, import.mmap_offset));
	EXPECT_EQ(0, dev_close(self->dev, import.handle));
	close(fd);
}

TEST_F(reply_values, sync_and_advise_reply_when_nothing_changed)
{
	struct tensor_sync sync = { .size = sizeof(sync),
				    .handle = self->buf.handle,
				    .flags = TENSOR_SYNC_WRITE | TENSOR_SYNC_END,
				    .generation = 77 };
	struct tensor_advise advise = { .size = sizeof(advise), .purged = 77 };
	struct tensor_alloc alloc;

	ASSERT_EQ(0, dev_call(self->dev, TENSOR_IOC_SYNC, &sync));
	EXPECT_EQ(1, sync.generation);
	ASSERT_EQ(0, dev_alloc(self->dev, PAGE, &alloc));
	advise.handle = alloc.handle;
	advise.advice = TENSOR_ADVISE_PURGEABLE;
	ASSERT_EQ(0, dev_call(self->dev, TENSOR_IOC_ADVISE, &advise));
	EXPECT_EQ(0, advise.purged);
	advise.advice = TENSOR_ADVISE_WILLNEED;
	advise.purged = 77;
	ASSERT_EQ(0, dev_call(self->dev, TENSOR_IOC_ADVISE, &advise));
	EXPECT_EQ(0, advise.purged);
}

TEST_HARNESS_MAIN
