// SPDX-License-Identifier: GPL-2.0-only
/*
 * Dma-bufs of a buffer: this module is their exporter.
 *
 * A dma-buf has the rights and the range that EXPORT gave it; all dma-bufs of a buffer share its
 * reservation object. The memory never moves, so there is no pin and no move_notify: a mapping by a
 * device stays valid until the device unmaps, even if the buffer is revoked.
 *
 * Newer kernels hold the reservation object while they map, 6.1 does not. The core never takes a
 * lock of this module; this module never takes the reservation object.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/err.h>
#include <linux/fcntl.h>
#include <linux/iosys-map.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/tensor_netlink.h>
#include <linux/vmalloc.h>

#include "../buffer/buffer.h"
#include "../buffer/event.h"
#include "../buffer/fs.h"
#include "../buffer/registry.h"
#include "../buffer/state.h"
#include "../buffer/trace.h"
#include "devmap.h"
#include "dmabuf.h"
#include "map.h"

/**
 * struct tensor_dmabuf - private data of a dma-buf
 * @hold: its range and rights, with a reference
 * @span: the pages that the kernel has mapped (vmap), if any
 * @exported: its entry in the list of exports
 * @counted: it is counted in @dmabufs of the buffer
 */
struct tensor_dmabuf {
	struct tensor_hold hold;
	struct tensor_span span;
	struct tensor_exported exported;
	bool counted;
};

/*
 * The operations of every dma-buf's file, set when the first dma-buf is seen. dma_buf_get() checks
 * the type of the file behind an fd number, which another thread may replace; the core has no check
 * for a struct file.
 */
static const struct file_operations *dmabuf_fops;

static struct tensor_dmabuf *dmabuf_of(const struct dma_buf *dmabuf)
{
	return dmabuf->priv;
}

static int dmabuf_attach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	const struct tensor_hold *hold = &dmabuf_of(dmabuf)->hold;
	struct tensor_buf *buf = hold->buf;
	int err = tensor_buf_usable(buf);

	if (err)
		return err;
	/* a page cannot be split into segments */
	if (dma_get_max_seg_size(attach->dev) < PAGE_SIZE)
		return -EOPNOTSUPP;
	atomic_inc(&buf->attachments);
	trace_tensor_attach(buf, attach->dev, true);
	return 0;
}

static void dmabuf_detach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	struct tensor_buf *buf = dmabuf_of(dmabuf)->hold.buf;

	trace_tensor_attach(buf, attach->dev, false);
	atomic_dec(&buf->attachments);
}

/* Rights that a device needs for accesses in that direction. */
static u32 dmabuf_rights(enum dma_data_direction dir)
{
	return (dir != DMA_FROM_DEVICE ? TENSOR_RIGHT_READ : 0) |
	       (dir != DMA_TO_DEVICE ? TENSOR_RIGHT_WRITE : 0);
}

static struct sg_table *dmabuf_map(struct dma_buf_attachment *attach, enum dma_data_direction dir)
{
	const struct tensor_hold *hold = &dmabuf_of(attach->dmabuf)->hold;

	if (!tensor_hold_may(hold, dmabuf_rights(dir)))
		return ERR_PTR(-EACCES);
	return tensor_devmap_new(hold, attach->dev, dir);
}

static void dmabuf_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
			 enum dma_data_direction dir)
{
	tensor_devmap_free(sgt);
}

/*
 * The core waits for fences only after this method, but a device must be done before caches are
 * synced.
 */
static int dmabuf_begin(struct dma_buf *dmabuf, enum dma_data_direction dir)
{
	const struct tensor_hold *hold = &dmabuf_of(dmabuf)->hold;
	bool write = dir != DMA_FROM_DEVICE;
	int err = tensor_buf_usable(hold->buf);
	long left;

	if (!err)
		err = tensor_buf_may(hold, dir != DMA_TO_DEVICE, write);
	if (err)
		return err;
	left = dma_resv_wait_timeout(&hold->buf->resv, dma_resv_usage_rw(write), true,
				     MAX_SCHEDULE_TIMEOUT);
	if (left < 0)
		return left;
	tensor_devmap_sync(hold, true);
	return 0;
}

static int dmabuf_end(struct dma_buf *dmabuf, enum dma_data_direction dir)
{
	const struct tensor_hold *hold = &dmabuf_of(dmabuf)->hold;
	bool write = dir != DMA_FROM_DEVICE;
	int err = tensor_buf_may(hold, dir != DMA_TO_DEVICE, write);

	if (err)
		return err;
	tensor_devmap_sync(hold, false);
	if (write)
		tensor_state_wrote(hold->buf);
	return 0;
}

static int dmabuf_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	const struct tensor_hold *hold = &dmabuf_of(dmabuf)->hold;

	return tensor_map_through(hold, vma, 0);
}

/* Contiguous pages are already in the kernel's linear mapping. */
static void *vmap_span(const struct tensor_span *span)
{
	unsigned long n;

	for (n = 1; n < span->count; n++)
		if (page_to_pfn(span->pages[n]) != page_to_pfn(span->pages[0]) + n)
			return vmap(span->pages, span->count, VM_MAP, PAGE_KERNEL);
	return page_address(span->pages[0]);
}

/* A driver may need a kernel mapping after its device has mapped the dma-buf. */
static int vmap_get(struct tensor_dmabuf *priv)
{
	struct tensor_buf *buf = priv->hold.buf;
	int err;

	mutex_lock(&buf->lock);
	err = tensor_devmap_any(&priv->hold) ? 0 : tensor_buf_usable(buf);
	if (!err)
		err = tensor_device_join(buf, true);
	mutex_unlock(&buf->lock);
	return err;
}

/*
 * vmap() does not say whether the caller will write, so it counts as a writer. Only a writable
 * dma-buf has this method, because the core warns when it fails.
 */
static int dmabuf_vmap(struct dma_buf *dmabuf, struct iosys_map *map)
{
	struct tensor_dmabuf *priv = dmabuf_of(dmabuf);
	struct tensor_buf *buf = priv->hold.buf;
	void *at;
	int err;

	err = vmap_get(priv);
	if (err)
		return err;
	err = tensor_span_pin(&priv->hold, &priv->span);
	if (err)
		goto put_device;
	at = vmap_span(&priv->span);
	kvfree(priv->span.pages);
	if (!at) {
		err = -ENOMEM;
		goto unpin;
	}
	iosys_map_set_vaddr(map, at);
	return 0;

unpin:
	tensor_span_unpin(buf, &priv->span, false);
put_device:
	tensor_device_put(buf, true);
	return err;
}

static void dmabuf_vunmap(struct dma_buf *dmabuf, struct iosys_map *map)
{
	struct tensor_dmabuf *priv = dmabuf_of(dmabuf);

	if (is_vmalloc_addr(map->vaddr))
		vunmap(map->vaddr);
	tensor_span_unpin(priv->hold.buf, &priv->span, true);
	tensor_device_put(priv->hold.buf, true);
}

static void dmabuf_release(struct dma_buf *dmabuf)
{
	struct tensor_dmabuf *priv = dmabuf_of(dmabuf);
	struct tensor_buf *buf = priv->hold.buf;

	trace_tensor_dmabuf_release(&priv->hold);
	tensor_registry_del_export(&priv->exported);
	if (priv->counted) {
		atomic_dec(&buf->dmabufs);
		tensor_event_post(buf, TENSOR_EVENT_GONE, 0);
	}
	kfree(priv);
	/* in this order: the superblock must outlive its inode */
	tensor_buf_put(buf);
	tensor_fs_put();
}

static const struct dma_buf_ops write_ops = {
	.attach = dmabuf_attach,
	.detach = dmabuf_detach,
	.map_dma_buf = dmabuf_map,
	.unmap_dma_buf = dmabuf_unmap,
	.release = dmabuf_release,
	.begin_cpu_access = dmabuf_begin,
	.end_cpu_access = dmabuf_end,
	.mmap = dmabuf_mmap,
	.vmap = dmabuf_vmap,
	.vunmap = dmabuf_vunmap,
};

static const struct dma_buf_ops read_ops = {
	.attach = dmabuf_attach,
	.detach = dmabuf_detach,
	.map_dma_buf = dmabuf_map,
	.unmap_dma_buf = dmabuf_unmap,
	.release = dmabuf_release,
	.begin_cpu_access = dmabuf_begin,
	.end_cpu_access = dmabuf_end,
	.mmap = dmabuf_mmap,
};

/**
 * tensor_dmabuf_file() - create a dma-buf
 * @hold: its range and rights; the dma-buf takes a reference of its own
 *
 * The caller holds no lock: the core takes reservation objects under the lock of its list of all
 * dma-bufs.
 *
 * Return: its file or an ERR_PTR().
 */
struct file *tensor_dmabuf_file(const struct tensor_hold *hold)
{
	struct tensor_dmabuf *priv = kzalloc(sizeof(*priv), TENSOR_GFP);
	bool both = tensor_hold_may(hold, TENSOR_RIGHT_READ | TENSOR_RIGHT_WRITE);
	bool write = tensor_hold_may(hold, TENSOR_RIGHT_WRITE);
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *dmabuf;
	int err;

	if (!priv)
		return ERR_PTR(-ENOMEM);
	priv->hold = *hold;
	err = tensor_registry_add_export(&priv->exported, &priv->hold, TENSOR_EXPORT_KIND_DMABUF);
	if (err)
		goto free_priv;
	/* vmap() reads and writes, so only a dma-buf with both rights has it */
	info.ops = both ? &write_ops : &read_ops;
	info.size = hold->count << PAGE_SHIFT;
	info.flags = write ? O_RDWR : O_RDONLY;
	info.resv = &hold->buf->resv;
	info.priv = priv;
	err = tensor_fs_get();
	if (err)
		goto del_export;
	tensor_buf_get(hold->buf);
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf)) {
		err = PTR_ERR(dmabuf);
		goto put_buf;
	}
	WRITE_ONCE(dmabuf_fops, dmabuf->file->f_op);
	trace_tensor_dmabuf_open(hold);
	return dmabuf->file;

put_buf:
	tensor_buf_put(hold->buf);
	tensor_fs_put();
del_export:
	tensor_registry_del_export(&priv->exported);
free_priv:
	kfree(priv);
	return ERR_PTR(err);
}

static bool dmabuf_is_ours(const struct dma_buf *dmabuf)
{
	return dmabuf->ops == &write_ops || dmabuf->ops == &read_ops;
}

/**
 * tensor_dmabuf_count() - count a dma-buf as a holder, until it is released
 * @dmabuf: the result of EXPORT; a dma-buf of another driver is not counted
 */
void tensor_dmabuf_count(const struct dma_buf *dmabuf)
{
	struct tensor_dmabuf *priv = dmabuf_of(dmabuf);

	if (!dmabuf_is_ours(dmabuf))
		return;
	priv->counted = true;
	atomic_inc(&priv->hold.buf->dmabufs);
}

/**
 * tensor_dmabuf_of() - find the dma-buf of a file
 * @file: any file
 * @fd: an fd number that refers to the file, or did when the file was looked up
 *
 * Return: the dma-buf, which lives as long as @file does, or NULL.
 */
struct dma_buf *tensor_dmabuf_of(struct file *file, int fd)
{
	struct dma_buf *dmabuf;

	if (!READ_ONCE(dmabuf_fops)) {
		dmabuf = dma_buf_get(fd);
		if (IS_ERR(dmabuf))
			return NULL;
		WRITE_ONCE(dmabuf_fops, dmabuf->file->f_op);
		dma_buf_put(dmabuf);
	}
	return file->f_op == READ_ONCE(dmabuf_fops) ? file->private_data : NULL;
}

/**
 * tensor_dmabuf_hold() - find the buffer of a dma-buf
 * @dmabuf: any dma-buf
 * @hold: filled in if this module exported the dma-buf
 *
 * Takes no reference: @hold lives as long as the dma-buf does.
 *
 * Return: whether this module exported it.
 */
bool tensor_dmabuf_hold(const struct dma_buf *dmabuf, struct tensor_hold *hold)
{
	if (!dmabuf_is_ours(dmabuf))
		return false;
	*hold = dmabuf_of(dmabuf)->hold;
	return true;
}

MODULE_IMPORT_NS("DMA_BUF");
