// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Every output field of an ioctl is written, and every other field is left unchanged.
 *
 * A struct that was zeroed before the call cannot show this, because zero is a valid value of many
 * fields. So each call is made twice with two patterns in all output fields: a field that was not
 * written has kept both. The table has a row for each byte of each struct, which a test compares
 * with the size of the struct: a new field fails that test until it has a row here.
 */
#include <stddef.h>

#include "../include/device.h"
#include "kselftest_harness.h"

#define BYTES (8 * PAGE)

/* OUT_NEW: an output whose value differs between calls: a handle, an fd or a time. */
enum way { IN, OUT, OUT_NEW };

struct field {
	unsigned int cmd;
	const char *name;
	unsigned int offset, size;
	enum way way;
};

#define F(cmd, type, member, way)                                      \
	{                                                              \
		cmd, #type "." #member, offsetof(struct type, member), \
			sizeof(((struct type *)0)->member), way        \
	}

/* In the order of each struct. ALLOC.bytes is input and output, and has a test of its own. */
static const struct field fields[] = {
	F(TENSOR_IOC_QUERY, tensor_query, size, IN),
	F(TENSOR_IOC_QUERY, tensor_query, flags, IN),
	F(TENSOR_IOC_QUERY, tensor_query, features, OUT),
	F(TENSOR_IOC_QUERY, tensor_query, ioctls, OUT),
	F(TENSOR_IOC_QUERY, tensor_query, alloc_flags, OUT),
	F(TENSOR_IOC_QUERY, tensor_query, export_flags, OUT),
	F(TENSOR_IOC_QUERY, tensor_query, rights, OUT),
	F(TENSOR_IOC_QUERY, tensor_query, max_bytes, OUT),
	F(TENSOR_IOC_QUERY, tensor_query, contig_bytes, OUT),
	F(TENSOR_IOC_QUERY, tensor_query, limit_bytes, OUT),
	F(TENSOR_IOC_QUERY, tensor_query, used_bytes, OUT),
	F(TENSOR_IOC_QUERY, tensor_query, user_limit_bytes, OUT),
	F(TENSOR_IOC_QUERY, tensor_query, user_used_bytes, OUT),
	F(TENSOR_IOC_QUERY, tensor_query, chunk_sizes, OUT),
	F(TENSOR_IOC_QUERY, tensor_query, page_size, OUT),
	F(TENSOR_IOC_QUERY, tensor_query, max_order, OUT),
	F(TENSOR_IOC_QUERY, tensor_query, max_dims, OUT),
	F(TENSOR_IOC_QUERY, tensor_query, max_handles, OUT),
	F(TENSOR_IOC_QUERY, tensor_query, nodes, OUT),
	F(TENSOR_IOC_QUERY, tensor_query, __reserved, OUT),

	F(TENSOR_IOC_ALLOC, tensor_alloc, size, IN),
	F(TENSOR_IOC_ALLOC, tensor_alloc, flags, IN),
	F(TENSOR_IOC_ALLOC, tensor_alloc, bytes, IN),
	F(TENSOR_IOC_ALLOC, tensor_alloc, node, IN),
	F(TENSOR_IOC_ALLOC, tensor_alloc, min_order, IN),
	F(TENSOR_IOC_ALLOC, tensor_alloc, max_order, IN),
	F(TENSOR_IOC_ALLOC, tensor_alloc, handle, OUT_NEW),
	F(TENSOR_IOC_ALLOC, tensor_alloc, __reserved, IN),
	F(TENSOR_IOC_ALLOC, tensor_alloc, mmap_offset, OUT_NEW),

	F(TENSOR_IOC_INFO, tensor_info, size, IN),
	F(TENSOR_IOC_INFO, tensor_info, flags, IN),
	F(TENSOR_IOC_INFO, tensor_info, handle, IN),
	F(TENSOR_IOC_INFO, tensor_info, state, OUT),
	F(TENSOR_IOC_INFO, tensor_info, bytes, OUT),
	F(TENSOR_IOC_INFO, tensor_info, huge_bytes, OUT),
	F(TENSOR_IOC_INFO, tensor_info, pinned_bytes, OUT),
	F(TENSOR_IOC_INFO, tensor_info, dma_bytes, OUT),
	F(TENSOR_IOC_INFO, tensor_info, dev, OUT),
	F(TENSOR_IOC_INFO, tensor_info, ino, OUT),
	F(TENSOR_IOC_INFO, tensor_info, age_ns, OUT_NEW),
	F(TENSOR_IOC_INFO, tensor_info, pid, OUT),
	F(TENSOR_IOC_INFO, tensor_info, uid, OUT),
	F(TENSOR_IOC_INFO, tensor_info, refs, OUT),
	F(TENSOR_IOC_INFO, tensor_info, handles, OUT),
	F(TENSOR_IOC_INFO, tensor_info, files, OUT),
	F(TENSOR_IOC_INFO, tensor_info, mappings, OUT),
	F(TENSOR_IOC_INFO, tensor_info, node, OUT),
	F(TENSOR_IOC_INFO, tensor_info, rights, OUT),
	F(TENSOR_IOC_INFO, tensor_info, chunks, OUT),
	F(TENSOR_IOC_INFO, tensor_info, kind, OUT),
	F(TENSOR_IOC_INFO, tensor_info, seals, OUT),
	F(TENSOR_IOC_INFO, tensor_info, generation, OUT),
	F(TENSOR_IOC_INFO, tensor_info, offset, OUT),
	F(TENSOR_IOC_INFO, tensor_info, dmabufs, OUT),
	F(TENSOR_IOC_INFO, tensor_info, attachments, OUT),

	F(TENSOR_IOC_META, tensor_meta, size, IN),
	F(TENSOR_IOC_META, tensor_meta, flags, IN),
	F(TENSOR_IOC_META, tensor_meta, handle, IN),
	F(TENSOR_IOC_META, tensor_meta, __reserved, IN),
	F(TENSOR_IOC_META, tensor_meta, desc.bits, OUT),
	F(TENSOR_IOC_META, tensor_meta, desc.dtype, OUT),
	F(TENSOR_IOC_META, tensor_meta, desc.ndim, OUT),
	F(TENSOR_IOC_META, tensor_meta, desc.__reserved, OUT),
	F(TENSOR_IOC_META, tensor_meta, desc.offset, OUT),
	F(TENSOR_IOC_META, tensor_meta, desc.sizes, OUT),
	F(TENSOR_IOC_META, tensor_meta, desc.strides, OUT),
	F(TENSOR_IOC_META, tensor_meta, desc.label, OUT),

	F(TENSOR_IOC_EXPORT, tensor_export, size, IN),
	F(TENSOR_IOC_EXPORT, tensor_export, flags, IN),
	F(TENSOR_IOC_EXPORT, tensor_export, handle, IN),
	F(TENSOR_IOC_EXPORT, tensor_export, fd, OUT_NEW),
	F(TENSOR_IOC_EXPORT, tensor_export, offset, IN),
	F(TENSOR_IOC_EXPORT, tensor_export, bytes, IN),
	F(TENSOR_IOC_EXPORT, tensor_export, rights, IN),
	F(TENSOR_IOC_EXPORT, tensor_export, __reserved, IN),

	F(TENSOR_IOC_IMPORT, tensor_import, size, IN),
	F(TENSOR_IOC_IMPORT, tensor_import, flags, IN),
	F(TENSOR_IOC_IMPORT, tensor_import, fd, IN),
	F(TENSOR_IOC_IMPORT, tensor_import, handle, OUT),
	F(TENSOR_IOC_IMPORT, tensor_import, bytes, OUT),
	F(TENSOR_IOC_IMPORT, tensor_import, mmap_offset, OUT),
	F(TENSOR_IOC_IMPORT, tensor_import, rights, OUT),
	F(TENSOR_IOC_IMPORT, tensor_import, __reserved, IN),

	F(TENSOR_IOC_CLOSE, tensor_close, size, IN),
	F(TENSOR_IOC_CLOSE, tensor_close, flags, IN),
	F(TENSOR_IOC_CLOSE, tensor_close, handle, IN),
	F(TENSOR_IOC_CLOSE, tensor_close, __reserved, IN),

	F(TENSOR_IOC_SEAL, tensor_seal, size, IN),
	F(TENSOR_IOC_SEAL, tensor_seal, flags, IN),
	F(TENSOR_IOC_SEAL, tensor_seal, handle, IN),
	F(TENSOR_IOC_SEAL, tensor_seal, seals, IN),

	F(TENSOR_IOC_REVOKE, tensor_revoke, size, IN),
	F(TENSOR_IOC_REVOKE, tensor_revoke, flags, IN),
	F(TENSOR_IOC_REVOKE, tensor_revoke, handle, IN),
	F(TENSOR_IOC_REVOKE, tensor_revoke, __reserved, IN),

	F(TENSOR_IOC_ADVISE, tensor_advise, size, IN),
	F(TENSOR_IOC_ADVISE, tensor_advise, flags, IN),
	F(TENSOR_IOC_ADVISE, tensor_advise, handle, IN),
	F(TENSOR_IOC_ADVISE, tensor_advise, advice, IN),
	F(TENSOR_IOC_ADVISE, tensor_advise, purged, OUT),
	F(TENSOR_IOC_ADVISE, tensor_advise, __reserved, IN),

	F(TENSOR_IOC_SYNC, tensor_sync, size, IN),
	F(TENSOR_IOC_SYNC, tensor_sync, flags, IN),
	F(TENSOR_IOC_SYNC, tensor_sync, handle, IN),
	F(TENSOR_IOC_SYNC, tensor_sync, __reserved, IN),
	F(TENSOR_IOC_SYNC, tensor_sync, deadline_ns, IN),
	F(TENSOR_IOC_SYNC, tensor_sync, generation, OUT),

	F(TENSOR_IOC_PIN, tensor_pin, size, IN),
	F(TENSOR_IOC_PIN, tensor_pin, flags, IN),
	F(TENSOR_IOC_PIN, tensor_pin, addr, IN),
	F(TENSOR_IOC_PIN, tensor_pin, bytes, IN),
	F(TENSOR_IOC_PIN, tensor_pin, handle, OUT_NEW),
	F(TENSOR_IOC_PIN, tensor_pin, __reserved, IN),
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static const struct {
	unsigned int cmd;
	uint32_t size;
} structs[] = {
	{ TENSOR_IOC_QUERY, sizeof(struct tensor_query) },
	{ TENSOR_IOC_ALLOC, sizeof(struct tensor_alloc) },
	{ TENSOR_IOC_INFO, sizeof(struct tensor_info) },
	{ TENSOR_IOC_META, sizeof(struct tensor_meta) },
	{ TENSOR_IOC_EXPORT, sizeof(struct tensor_export) },
	{ TENSOR_IOC_IMPORT, sizeof(struct tensor_import) },
	{ TENSOR_IOC_CLOSE, sizeof(struct tensor_close) },
	{ TENSOR_IOC_SEAL, sizeof(struct tensor_seal) },
	{ TENSOR_IOC_REVOKE, sizeof(struct tensor_revoke) },
	{ TENSOR_IOC_ADVISE, sizeof(struct tensor_advise) },
	{ TENSOR_IOC_SYNC, sizeof(struct tensor_sync) },
	{ TENSOR_IOC_PIN, sizeof(struct tensor_pin) },
};

#define STRUCTS (sizeof(structs) / sizeof(structs[0]))

static const unsigned char patterns[2] = { 0xa5, 0x5a };

FIXTURE(reply)
{
	int dev;
	int fd;
	struct tensor_alloc buf;
	char *mine;
};

FIXTURE_SETUP(reply)
{
	self->dev = dev_open();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, dev_alloc(self->dev, BYTES, &self->buf));
	self->fd = buf_export_rw(self->dev, self->buf.handle);
	ASSERT_LE(0, self->fd);
	self->mine = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->mine);
}

FIXTURE_TEARDOWN(reply)
{
	munmap(self->mine, PAGE);
	close(self->fd);
	close(self->dev);
}

/*
 * Fills in a call that succeeds, with a pattern in the output fields. CLOSE, REVOKE and ADVISE get
 * a new buffer.
 */
static void call_fill(FIXTURE_DATA(reply) * self, unsigned int nr, union ioctl_arg *call,
		      unsigned char pattern)
{
	unsigned int cmd = structs[nr].cmd, i;
	struct tensor_alloc own;

	memset(call, 0, sizeof(*call));
	call->size = structs[nr].size;
	if (cmd == TENSOR_IOC_ALLOC) {
		call->alloc = alloc_args(PAGE);
	} else if (cmd == TENSOR_IOC_IMPORT) {
		call->import.fd = self->fd;
	} else if (cmd == TENSOR_IOC_PIN) {
		call->pin.addr = (uintptr_t)self->mine;
		call->pin.bytes = PAGE;
	} else if (cmd == TENSOR_IOC_EXPORT) {
		call->export = export_args(self->buf.handle, 0);
	} else if (cmd != TENSOR_IOC_QUERY) {
		/* handle is the third member of all of these */
		call->close.handle = self->buf.handle;
	}
	if (cmd == TENSOR_IOC_CLOSE || cmd == TENSOR_IOC_REVOKE || cmd == TENSOR_IOC_ADVISE)
		call->close.handle = dev_alloc(self->dev, PAGE, &own) ? 0 : own.handle;
	if (cmd == TENSOR_IOC_SYNC)
		call->sync.flags = TENSOR_SYNC_READ;
	for (i = 0; i < FIELDS; i++)
		if (fields[i].cmd == cmd && fields[i].way != IN)
			memset(call->bytes + fields[i].offset, pattern, fields[i].size);
}

TEST_F(reply, table_has_every_byte_of_every_struct)
{
	unsigned int i, n, end;

	for (n = 0; n < STRUCTS; n++) {
		for (i = 0, end = 0; i < FIELDS; i++) {
			if (fields[i].cmd != structs[n].cmd)
				continue;
			EXPECT_EQ(end, fields[i].offset) TH_LOG("%s", fields[i].name);
			end = fields[i].offset + fields[i].size;
		}
		EXPECT_EQ(structs[n].size, end) TH_LOG("struct %u", n);
	}
}

/* All ioctls of the kernel: a new one needs a row here, too. */
TEST_F(reply, table_has_every_ioctl)
{
	struct tensor_query query;
	unsigned int n;

	ASSERT_EQ(0, dev_query(self->dev, &query));
	for (n = 0; n < STRUCTS; n++)
		query.ioctls &= ~(1ULL << ((structs[n].cmd & 0xff) - TENSOR_IOC_BASE));
	EXPECT_EQ(0, query.ioctls);
}

TEST_F(reply, every_field_that_is_out_is_written)
{
	const struct field *f;
	union ioctl_arg call[2];
	unsigned int n, i, k;

	for (n = 0; n < STRUCTS; n++) {
		for (k = 0; k < 2; k++) {
			call_fill(self, n, &call[k], patterns[k]);
			ASSERT_EQ(0, dev_call(self->dev, structs[n].cmd, &call[k]))
			TH_LOG("struct %u", n);
		}
		for (f = fields; f < fields + FIELDS; f++) {
			if (f->cmd != structs[n].cmd || f->way == IN)
				continue;
			for (i = 0, k = 0; k < 2; k++)
				i += all_bytes(call[k].bytes + f->offset, patterns[k], f->size);
			EXPECT_EQ(0, i) TH_LOG("%s is not written", f->name);
			if (f->way == OUT)
				EXPECT_EQ(0, memcmp(call[0].bytes + f->offset,
						    call[1].bytes + f->offset, f->size))
			TH_LOG("%s keeps a part of what it was", f->name);
		}
	}
}

TEST_F(reply, every_field_that_is_in_stays)
{
	union ioctl_arg before, after;
	const struct field *f;
	unsigned int n;

	for (n = 0; n < STRUCTS; n++) {
		call_fill(self, n, &before, patterns[0]);
		after = before;
		ASSERT_EQ(0, dev_call(self->dev, structs[n].cmd, &after)) TH_LOG("struct %u", n);
		for (f = fields; f < fields + FIELDS; f++)
			if (f->cmd == structs[n].cmd && f->way == IN)
				EXPECT_EQ(0, memcmp(before.bytes + f->offset,
						    after.bytes + f->offset, f->size))
		TH_LOG("%s", f->name);
		EXPECT_TRUE(all_bytes(after.bytes + structs[n].size, 0,
				      sizeof(after) - structs[n].size));
	}
}

/* The values of the fields. */

static uint64_t parameter(const char *path)
{
	char text[64];

	return strtoull(read_text(path, text, sizeof(text)), NULL, 10);
}

TEST_F(reply, query_values_are_those_of_the_machine)
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

TEST_F(reply, query_limits_follow_the_parameters)
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
TEST_F(reply, query_of_another_user_counts_his_own)
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

TEST_F(reply, alloc_values_are_those_of_the_buffer)
{
	struct tensor_alloc alloc = alloc_args(3 * PAGE - 7);

	alloc.handle = 0xa5a5a5a5;
	alloc.mmap_offset = 0xa5a5a5a5a5a5a5a5;
	ASSERT_EQ(0, dev_call(self->dev, TENSOR_IOC_ALLOC, &alloc));
	EXPECT_EQ(3 * PAGE, alloc.bytes);
	EXPECT_EQ(0, map_errno(self->dev, 3 * PAGE, PROT_READ, MAP_SHARED, alloc.mmap_offset));
	EXPECT_EQ(0, dev_close(self->dev, alloc.handle));
}

TEST_F(reply, info_values_are_those_of_the_buffer)
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

TEST_F(reply, seal_answers_with_all_seals)
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

TEST_F(reply, import_values_are_those_of_the_fd)
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

TEST_F(reply, sync_and_advise_answer_where_nothing_happened)
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
