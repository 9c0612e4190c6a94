// SPDX-License-Identifier: GPL-2.0-only
/*
 * Import of dma-bufs that other drivers export.
 *
 * The exporter decides how its memory is mapped, which device may attach, and what an access by the
 * processor needs. This module adds a handle and a descriptor. EXPORT therefore returns the
 * exporter's own dma-buf, never a new one around it; and a part of it cannot be exported, because
 * exporters differ in the meaning of a mapping's offset.
 */
#include <linux/dma-buf.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>

#include "../buffer/buffer.h"
#include "dmabuf.h"

/*
 * The exporter moves the mapping to a file of its choice, which may permit more than the holder's
 * rights. So a mapping without the right to write gets the flags that the core sets for a mapping
 * of a file that is open read-only: without VM_SHARED remap_file_pages() refuses it. Memory whose
 * exporter has no mmap(), as that of many GPUs, is for devices only.
 */
static int imported_map(const struct tensor_hold *hold, struct vm_area_struct *vma)
{
	struct dma_buf *dmabuf = hold->buf->source;
	vm_flags_t shared = vma->vm_flags & VM_MAYSHARE;

	/* the core's -EINVAL would not differ from that of a wrong size */
	if (!dmabuf->ops->mmap)
		return -EOPNOTSUPP;
	if (!tensor_hold_may(hold, TENSOR_RIGHT_WRITE))
		vm_flags_clear(vma, VM_MAYWRITE | VM_SHARED);
	else if (!shared)
		vm_flags_clear(vma, VM_MAYWRITE);
	vm_flags_clear(vma, VM_MAYEXEC);
	/* growing would extend the mapping beyond the buffer */
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	return dma_buf_mmap(dmabuf, vma, vma->vm_pgoff);
}

static struct dma_resv *imported_resv(struct tensor_buf *buf)
{
	const struct dma_buf *dmabuf = buf->source;

	return dmabuf->resv;
}

/*
 * Not dma_buf_begin_cpu_access(), which waits for fences without a time limit: SYNC has already
 * waited for them until its deadline.
 */
static int imported_begin(struct tensor_buf *buf, enum dma_data_direction dir)
{
	struct dma_buf *dmabuf = buf->source;

	return dmabuf->ops->begin_cpu_access ? dmabuf->ops->begin_cpu_access(dmabuf, dir) : 0;
}

static int imported_end(struct tensor_buf *buf, enum dma_data_direction dir)
{
	return dma_buf_end_cpu_access(buf->source, dir);
}

static void imported_release(struct tensor_buf *buf)
{
	dma_buf_put(buf->source);
}

static const struct tensor_backing imported_backing = {
	.kind = TENSOR_KIND_DMABUF,
	.map = imported_map,
	.resv = imported_resv,
	.begin = imported_begin,
	.end = imported_end,
	.release = imported_release,
};

/* The rights that a dma-buf gives, by the mode that its file is open with. */
static u32 imported_rights(const struct dma_buf *dmabuf)
{
	return dmabuf->file->f_mode & FMODE_WRITE ? TENSOR_RIGHTS_RW : TENSOR_RIGHTS_RO;
}

/**
 * tensor_import_dmabuf() - create a buffer for another driver's dma-buf
 * @hint: owner that probably matches
 * @client: id of the calling client
 * @dmabuf: the dma-buf; the buffer gets a reference of its own
 * @hold: all of the buffer, with a reference for the caller
 *
 * A dma-buf that is open read-only gives no right to write.
 *
 * Return: 0; -EINVAL: its size is no multiple of the page size, or too large; -EACCES: it is not
 * open for reading; -ENOMEM.
 */
int tensor_import_dmabuf(struct tensor_owner *hint, u64 client, struct dma_buf *dmabuf,
			 struct tensor_hold *hold)
{
	struct tensor_buf *buf;

	if (!dmabuf->size || offset_in_page(dmabuf->size) || dmabuf->size > TENSOR_MAX_BYTES)
		return -EINVAL;
	if (!(dmabuf->file->f_mode & FMODE_READ))
		return -EACCES;
	get_dma_buf(dmabuf);
	buf = tensor_buf_adopt(&imported_backing, dmabuf, dmabuf->size, hint, client);
	if (IS_ERR(buf)) {
		dma_buf_put(dmabuf);
		return PTR_ERR(buf);
	}
	*hold = tensor_hold_all(buf, imported_rights(dmabuf));
	return 0;
}

/**
 * tensor_imported_dmabuf() - get the dma-buf that a buffer was imported from
 * @hold: the buffer, with the requested rights
 *
 * Return: its file with a reference for the caller, or an ERR_PTR(): -EOPNOTSUPP: it gives more
 * rights than requested.
 */
struct file *tensor_imported_dmabuf(const struct tensor_hold *hold)
{
	const struct dma_buf *dmabuf = hold->buf->source;

	if (!tensor_hold_may(hold, imported_rights(dmabuf)))
		return ERR_PTR(-EOPNOTSUPP);
	return get_file(dmabuf->file);
}
