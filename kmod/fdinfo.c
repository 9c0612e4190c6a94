// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/PID/fdinfo of /dev/tensor and of buffer fds, one "tensor-KEY: value" a line.
 *
 * The keys are documented in tensor(4) and do not change their meaning; new ones may be added.
 */
#include <linux/fs.h>
#include <linux/seq_file.h>

#include "buffer/file.h"
#include "buffer/meta.h"
#include "buffer/state.h"
#include "client/client.h"
#include "fdinfo.h"

static void put_bytes(struct seq_file *m, const char *key, u64 bytes)
{
	seq_printf(m, "tensor-%s:\t%llu KiB\n", key, bytes >> 10);
}

/**
 * tensor_fdinfo_client() - fdinfo of an open /dev/tensor
 * @m: destination
 * @file: the open device
 */
void tensor_fdinfo_client(struct seq_file *m, struct file *file)
{
	struct tensor_client *client = file->private_data;

	seq_printf(m, "tensor-client-id:\t%llu\n", client->id);
	seq_printf(m, "tensor-handles:\t%d\n", atomic_read(&client->count));
	put_bytes(m, "total-memory", atomic64_read(&client->bytes));
}

static void put_dims(struct seq_file *m, const char *key, const s64 *dims, unsigned int ndim)
{
	unsigned int i;

	seq_printf(m, "tensor-%s:\t[", key);
	for (i = 0; i < ndim; i++)
		seq_printf(m, i ? ", %lld" : "%lld", dims[i]);
	seq_puts(m, "]\n");
}

static void put_desc(struct seq_file *m, const struct tensor_desc *desc)
{
	if (desc->label[0])
		seq_printf(m, "tensor-label:\t%s\n", desc->label);
	if (!desc->bits)
		return;
	seq_printf(m, "tensor-bits:\t%u\n", desc->bits);
	seq_printf(m, "tensor-dtype:\t%u\n", desc->dtype);
	put_dims(m, "shape", desc->sizes, desc->ndim);
	put_dims(m, "strides", desc->strides, desc->ndim);
	seq_printf(m, "tensor-offset:\t%llu\n", desc->offset);
}

/* Print the names of the set bits, in the order of the bits; nothing if none is set. */
static void put_words(struct seq_file *m, const char *key, const char *const *words, u32 bits)
{
	if (!bits)
		return;
	seq_printf(m, "tensor-%s:\t", key);
	for (; bits; bits >>= 1, words++)
		if (bits & 1)
			seq_printf(m, "%s%s", *words, bits > 1 ? " " : "\n");
}

static void put_state(struct seq_file *m, struct tensor_buf *buf)
{
	static const char *const seals[] = { "write", "meta", "seal" };
	static const char *const states[] = { "revoked", "purgeable", "purged" };

	put_words(m, "seals", seals, tensor_buf_seals(buf));
	put_words(m, "state", states, tensor_buf_state(buf) / TENSOR_STATE_REVOKED);
}

/**
 * tensor_fdinfo_buf() - fdinfo of a buffer fd
 * @m: destination
 * @file: the buffer's file
 */
void tensor_fdinfo_buf(struct seq_file *m, struct file *file)
{
	static const char *const rights[] = {
		"read", "write", "attach", "seal", "revoke", "export"
	};
	struct tensor_memory memory;
	struct tensor_desc desc;
	struct tensor_hold hold;
	struct tensor_buf *buf;

	if (!tensor_file_hold(file, &hold))
		return;
	buf = hold.buf;
	tensor_desc_get_part(&hold, &desc);
	tensor_memory_get(buf, &memory);
	seq_printf(m, "tensor-buffer-id:\t%llu\n", buf->id);
	put_words(m, "rights", rights, hold.rights);
	put_state(m, buf);
	put_bytes(m, "total-memory", (u64)hold.count << PAGE_SHIFT);
	put_bytes(m, "huge-memory", memory.huge_bytes);
	if (tensor_hold_part(&hold))
		put_bytes(m, "first", (u64)hold.first << PAGE_SHIFT);
	seq_printf(m, "tensor-handles:\t%d\n", atomic_read(&buf->handles));
	seq_printf(m, "tensor-files:\t%d\n", atomic_read(&buf->files));
	seq_printf(m, "tensor-mappings:\t%d\n", atomic_read(&buf->mappings));
	put_desc(m, &desc);
}
