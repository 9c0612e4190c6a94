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

TEST_F(reply, every_output_field_is_written)
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

TEST_F(reply, every_input_field_stays)
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

TEST_HARNESS_MAIN
