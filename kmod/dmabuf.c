// SPDX-License-Identifier: GPL-2.0-only
/*
 * A buffer as devices see it: its dma-bufs.
 *
 * A dma-buf has the rights and the range of the handle it was made from; all those of a buffer
 * share its reservation object. The memory never moves, so there is nothing to pin or to notify: a
 * device maps it, and what it has mapped stays until it unmaps, even if the buffer is revoked
 * meanwhile.
 *
 * A mapping is made anew for each that asks, and not kept when it goes: a device that let go counts
 * as a writer no more, and its end says that something was written. The list of the mappings there
 * are is what the processor's access is bracketed with, through whichever fd it comes.
 *
 * The core holds the reservation object while it maps (newer kernels) or not (6.1), and never takes
 * a lock of ours; we never take the reservation object.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/err.h>
#include <linux/fcntl.h>
#include <linux/iosys-map.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/tensor_netlink.h>
#include <linux/vmalloc.h>

#include "buffer.h"
#include "dmabuf.h"
#include "event.h"
#include "fs.h"
#include "map.h"
#include "netlink/notify.h"
#include "registry.h"
#include "state.h"
#include "trace.h"

/**
 * struct tensor_dmabuf - what a dma-buf of ours is
 * @hold: what it reaches and permits, with a reference
 * @span: what the kernel has mapped, if it has
 * @exported: how it is listed
 * @maps: mappings by devices; guarded by the buffer's lock
 * @counted: in @dmabufs of the buffer
 */
struct tensor_dmabuf {
	struct tensor_hold hold;
	struct tensor_span span;
	struct tensor_exported exported;
	unsigned int maps;
	bool counted;
};

/**
 * struct device_map - a device's mapping
 * @node: in the list of the buffer's
 * @dev: the device
 * @dir: what it may do
 * @span: the pages
 * @sgt: their addresses, which the importer has
 */
struct device_map {
	struct list_head node;
	struct device *dev;
	enum dma_data_direction dir;
	struct tensor_span span;
	struct sg_table sgt;
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

static void span_unpin(struct tensor_buf *buf, struct tensor_span *span, bool dirty)
{
	if (!buf->backing->unpin)
		return;
	buf->backing->unpin(span, dirty);
	tensor_unpay(&span->paid);
}

/*
 * The pages of the range of a dma-buf. The caller frees their array. Pages that are held in place
 * only for the device are charged first, which bounds the arrays as well.
 */
static int span_pin(const struct tensor_hold *hold, struct tensor_span *span)
{
	struct tensor_buf *buf = hold->buf;
	int err = 0;

	*span = (struct tensor_span){.first = hold->first, .count = hold->count};
	if (buf->backing->unpin)
		err = tensor_pay(&span->paid, buf->owner->user, span->count);
	if (err == -EDQUOT)
		tensor_notify_limit(buf->client, (u64)span->count << PAGE_SHIFT);
	if (err)
		return err;
	span->pages = kvmalloc_array(span->count, sizeof(*span->pages), TENSOR_GFP);
	err = span->pages ? buf->backing->pin(buf, span) : -ENOMEM;
	if (err) {
		kvfree(span->pages);
		tensor_unpay(&span->paid);
	}
	return err;
}

static int dmabuf_attach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	const struct tensor_hold *hold = &dmabuf_of(dmabuf)->hold;
	struct tensor_buf *buf = hold->buf;
	int err = tensor_buf_usable(buf);

	if (err)
		return err;
	/* a page cannot be cut */
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

/* The addresses of the pages, in as few pieces as the device takes. */
static int map_table(struct device_map *map)
{
	size_t most = min_t(size_t, dma_get_max_seg_size(map->dev), dma_max_mapping_size(map->dev));
	int err;

	err = sg_alloc_table_from_pages_segment(&map->sgt, map->span.pages, map->span.count, 0,
						map->span.count << PAGE_SHIFT, most, TENSOR_GFP);
	if (err)
		return err;
	err = dma_map_sgtable(map->dev, &map->sgt, map->dir, 0);
	if (err)
		sg_free_table(&map->sgt);
	return err;
}

/* The buffer counts the device: its pages stay. */
static int map_device(struct tensor_dmabuf *priv, struct device_map *map)
{
	const struct tensor_hold *hold = &priv->hold;
	int err = span_pin(hold, &map->span);

	if (err)
		return err;
	err = map_table(map);
	kvfree(map->span.pages);
	if (err) {
		span_unpin(hold->buf, &map->span, false);
		return err;
	}
	mutex_lock(&hold->buf->lock);
	list_add(&map->node, &hold->buf->maps);
	priv->maps++;
	mutex_unlock(&hold->buf->lock);
	return 0;
}

/* What a device does with the memory in that direction. */
static u32 dmabuf_rights(enum dma_data_direction dir)
{
	return (dir != DMA_FROM_DEVICE ? TENSOR_RIGHT_READ : 0) |
	       (dir != DMA_TO_DEVICE ? TENSOR_RIGHT_WRITE : 0);
}

static struct sg_table *dmabuf_map(struct dma_buf_attachment *attach, enum dma_data_direction dir)
{
	struct tensor_dmabuf *priv = dmabuf_of(attach->dmabuf);
	const struct tensor_hold *hold = &priv->hold;
	bool write = dir != DMA_TO_DEVICE;
	struct device_map *map;
	int err;

	if (!tensor_hold_may(hold, dmabuf_rights(dir)))
		return ERR_PTR(-EACCES);
	map = kzalloc(sizeof(*map), TENSOR_GFP);
	if (!map)
		return ERR_PTR(-ENOMEM);
	map->dev = attach->dev;
	map->dir = dir;
	err = tensor_device_get(hold->buf, write);
	if (err)
		goto free_map;
	err = map_device(priv, map);
	if (err)
		goto put_device;
	return &map->sgt;

put_device:
	tensor_device_put(hold->buf, write);
free_map:
	kfree(map);
	return ERR_PTR(err);
}

static void dmabuf_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
			 enum dma_data_direction dir)
{
	struct device_map *map = container_of(sgt, struct device_map, sgt);
	struct tensor_dmabuf *priv = dmabuf_of(attach->dmabuf);
	struct tensor_buf *buf = priv->hold.buf;
	bool write = map->dir != DMA_TO_DEVICE;

	mutex_lock(&buf->lock);
	list_del(&map->node);
	priv->maps--;
	mutex_unlock(&buf->lock);
	dma_unmap_sgtable(map->dev, sgt, map->dir, 0);
	sg_free_table(sgt);
	span_unpin(buf, &map->span, write);
	tensor_device_put(buf, write);
	kfree(map);
}

static bool map_meets(const struct device_map *map, const struct tensor_hold *hold)
{
	return map->span.first < hold->first + hold->count &&
	       hold->first < map->span.first + map->span.count;
}

/**
 * tensor_dmabuf_sync() - move bytes between the processor's caches and devices
 * @hold: which bytes
 * @for_cpu: the processor is about to use them; otherwise it has, and devices are
 *
 * Nothing happens where devices see the caches.
 */
void tensor_dmabuf_sync(const struct tensor_hold *hold, bool for_cpu)
{
	struct tensor_buf *buf = hold->buf;
	struct device_map *map;

	mutex_lock(&buf->lock);
	list_for_each_entry(map, &buf->maps, node) {
		if (!map_meets(map, hold))
			continue;
		if (for_cpu)
			dma_sync_sgtable_for_cpu(map->dev, &map->sgt, map->dir);
		else
			dma_sync_sgtable_for_device(map->dev, &map->sgt, map->dir);
	}
	mutex_unlock(&buf->lock);
}

/* The core waits for fences too, but after this: a device must be done before bytes move. */
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
	tensor_dmabuf_sync(hold, true);
	return 0;
}

static int dmabuf_end(struct dma_buf *dmabuf, enum dma_data_direction dir)
{
	const struct tensor_hold *hold = &dmabuf_of(dmabuf)->hold;
	bool write = dir != DMA_FROM_DEVICE;
	int err = tensor_buf_may(hold, dir != DMA_TO_DEVICE, write);

	if (err)
		return err;
	tensor_dmabuf_sync(hold, false);
	if (write)
		tensor_state_wrote(hold->buf);
	return 0;
}

static int dmabuf_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	const struct tensor_hold *hold = &dmabuf_of(dmabuf)->hold;

	return tensor_map_through(hold, vma, 0);
}

/* Where the pages follow each other the kernel has them mapped already. */
static void *vmap_span(const struct tensor_span *span)
{
	unsigned long n;

	for (n = 1; n < span->count; n++)
		if (page_to_pfn(span->pages[n]) != page_to_pfn(span->pages[0]) + n)
			return vmap(span->pages, span->count, VM_MAP, PAGE_KERNEL);
	return page_address(span->pages[0]);
}

/* A driver whose device has it mapped may find out only later that the processor needs it, too. */
static int vmap_get(struct tensor_dmabuf *priv)
{
	struct tensor_buf *buf = priv->hold.buf;
	int err;

	mutex_lock(&buf->lock);
	err = priv->maps ? 0 : tensor_buf_usable(buf);
	if (!err)
		err = tensor_device_join(buf, true);
	mutex_unlock(&buf->lock);
	return err;
}

/*
 * Who asks does not say whether it will write, so it counts as one that does. Only a dma-buf that
 * may be written to has this method: the core warns when one fails.
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
	err = span_pin(&priv->hold, &priv->span);
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
	span_unpin(buf, &priv->span, false);
put_device:
	tensor_device_put(buf, true);
	return err;
}

static void dmabuf_vunmap(struct dma_buf *dmabuf, struct iosys_map *map)
{
	struct tensor_dmabuf *priv = dmabuf_of(dmabuf);

	if (is_vmalloc_addr(map->vaddr))
		vunmap(map->vaddr);
	span_unpin(priv->hold.buf, &priv->span, true);
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
 * tensor_dmabuf_file() - make a dma-buf
 * @hold: what it shall reach and permit; it gets a reference of its own
 *
 * No lock is held: the core has a list of all dma-bufs, under whose lock it takes reservation
 * objects.
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
	/* what the kernel has mapped it reads and writes */
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
 * @dmabuf: what EXPORT gives; one of another driver is not counted
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
 * tensor_dmabuf_of() - see whether a file is a dma-buf
 * @file: any file
 * @fd: a number that means it, or meant it a moment ago
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
 * tensor_dmabuf_hold() - see what a dma-buf is
 * @dmabuf: any dma-buf
 * @hold: its buffer and what it permits, if it is one of ours
 *
 * Takes no reference: @hold lives as long as the dma-buf does.
 *
 * Return: whether it is ours.
 */
bool tensor_dmabuf_hold(const struct dma_buf *dmabuf, struct tensor_hold *hold)
{
	if (!dmabuf_is_ours(dmabuf))
		return false;
	*hold = dmabuf_of(dmabuf)->hold;
	return true;
}

MODULE_IMPORT_NS("DMA_BUF");
