// SPDX-License-Identifier: GPL-2.0-only
/*
 * Dma-bufs of other drivers as buffers.
 *
 * The memory stays the exporter's: it says how it is mapped, who may attach, and what an access by
 * the processor needs. What we add is a handle, a descriptor, and one way to share all of it. So a
 * device gets the exporter's own dma-buf from us, never one of ours around it; and a part of it
 * cannot be given away, because exporters differ in what an offset of a mapping means to them.
 */
#include <linux/dma-buf.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>

#include "core.h"

static int foreign_map(struct tensor_buf *buf, struct vm_area_struct *vma)
{
	return dma_buf_mmap(buf->source, vma, vma->vm_pgoff);
}

static struct dma_resv *foreign_resv(struct tensor_buf *buf)
{
	const struct dma_buf *dmabuf = buf->source;

	return dmabuf->resv;
}

static int foreign_begin(struct tensor_buf *buf, enum dma_data_direction dir)
{
	return dma_buf_begin_cpu_access(buf->source, dir);
}

static int foreign_end(struct tensor_buf *buf, enum dma_data_direction dir)
{
	return dma_buf_end_cpu_access(buf->source, dir);
}

static void foreign_release(struct tensor_buf *buf)
{
	if (buf->source)
		dma_buf_put(buf->source);
}

static const struct tensor_backing foreign_backing = {
	.kind = TENSOR_KIND_DMABUF,
	.map = foreign_map,
	.resv = foreign_resv,
	.begin = foreign_begin,
	.end = foreign_end,
	.release = foreign_release,
};

/**
 * tensor_foreign_hold() - make a buffer of another driver's dma-buf
 * @client: the client that asks
 * @dmabuf: the dma-buf; the buffer gets a reference of its own
 * @hold: all of the buffer, with a reference for the caller
 *
 * Who was given a dma-buf for reading cannot come to write to it.
 *
 * Return: 0; -EINVAL: it has no whole number of pages, or too many; -ENOMEM.
 */
int tensor_foreign_hold(struct tensor_client *client, struct dma_buf *dmabuf,
			struct tensor_hold *hold)
{
	struct tensor_buf *buf;

	if (!dmabuf->size || offset_in_page(dmabuf->size) || dmabuf->size > TENSOR_MAX_BYTES)
		return -EINVAL;
	get_dma_buf(dmabuf);
	buf = tensor_buf_adopt(&foreign_backing, dmabuf, dmabuf->size, client);
	if (IS_ERR(buf)) {
		dma_buf_put(dmabuf);
		return PTR_ERR(buf);
	}
	*hold = tensor_hold_all(buf, !(dmabuf->file->f_mode & FMODE_WRITE));
	return 0;
}

/**
 * tensor_foreign_dmabuf() - the dma-buf that a buffer was made of
 * @hold: the buffer, and what is asked for
 *
 * Return: its file with a reference for the caller, or an ERR_PTR(): -EOPNOTSUPP: that would give
 * more than was asked for.
 */
struct file *tensor_foreign_dmabuf(const struct tensor_hold *hold)
{
	const struct dma_buf *dmabuf = hold->buf->source;

	if (hold->rdonly)
		return ERR_PTR(-EOPNOTSUPP);
	return get_file(dmabuf->file);
}
