// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mappings of a buffer by devices and by the kernel.
 *
 * Mappings are not cached: a device that has unmapped no longer counts as a writer, and the unmap
 * of a writable mapping raises the generation. SYNC syncs all mappings in the list, through
 * whichever fd it is called.
 */
#include <linux/dma-mapping.h>
#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/tensor_netlink.h>

#include "../buffer/buffer.h"
#include "../buffer/state.h"
#include "../netlink/notify.h"
#include "devmap.h"

/**
 * struct device_map - a mapping by a device
 * @node: node in the list of the buffer
 * @hold: the hold of the dma-buf; lives as long as the mapping
 * @dev: the device
 * @dir: direction of its accesses
 * @span: the pages
 * @sgt: their DMA addresses, given to the importer
 */
struct device_map {
	struct list_head node;
	const struct tensor_hold *hold;
	struct device *dev;
	enum dma_data_direction dir;
	struct tensor_span span;
	struct sg_table sgt;
};

/**
 * tensor_span_unpin() - undo tensor_span_pin()
 * @buf: the buffer
 * @span: the pages
 * @dirty: the pages may have been written to
 */
void tensor_span_unpin(struct tensor_buf *buf, struct tensor_span *span, bool dirty)
{
	if (!buf->backing->unpin)
		return;
	buf->backing->unpin(span, dirty);
	tensor_pin_uncharge(&span->charges);
}

/**
 * tensor_span_pin() - find the pages of a range and keep them in place
 * @hold: the range
 * @span: filled in; the caller frees the array @pages
 *
 * Pages that are pinned only for the device are charged first, which also bounds the arrays.
 *
 * Return: 0; -EDQUOT; -ENOMEM; an error of the backing.
 */
int tensor_span_pin(const struct tensor_hold *hold, struct tensor_span *span)
{
	struct tensor_buf *buf = hold->buf;
	int err = 0;

	*span = (struct tensor_span){ .first = hold->first, .count = hold->count };
	if (buf->backing->unpin)
		err = tensor_pin_charge(&span->charges, buf->owner->user, span->count);
	if (err == -EDQUOT)
		tensor_notify_limit(buf->client, (u64)span->count << PAGE_SHIFT);
	if (err)
		return err;
	span->pages = kvmalloc_array(span->count, sizeof(*span->pages), TENSOR_GFP);
	err = span->pages ? buf->backing->pin(buf, span) : -ENOMEM;
	if (err) {
		kvfree(span->pages);
		tensor_pin_uncharge(&span->charges);
	}
	return err;
}

/* Build the table of pages with as few entries as the device's segment size permits. */
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

/* The buffer counts the device, so its pages stay in place. */
static int map_device(struct device_map *map)
{
	struct tensor_buf *buf = map->hold->buf;
	int err = tensor_span_pin(map->hold, &map->span);

	if (err)
		return err;
	err = map_table(map);
	kvfree(map->span.pages);
	if (err) {
		tensor_span_unpin(buf, &map->span, false);
		return err;
	}
	mutex_lock(&buf->lock);
	list_add(&map->node, &buf->maps);
	mutex_unlock(&buf->lock);
	return 0;
}

/**
 * tensor_devmap_new() - map the range of a dma-buf for a device
 * @hold: the range, which has the rights for @dir and lives until tensor_devmap_free()
 * @dev: the device
 * @dir: direction of its accesses
 *
 * Return: the table of DMA addresses, or an ERR_PTR(): as tensor_device_get() and
 * tensor_span_pin().
 */
struct sg_table *tensor_devmap_new(const struct tensor_hold *hold, struct device *dev,
				   enum dma_data_direction dir)
{
	struct device_map *map = kzalloc(sizeof(*map), TENSOR_GFP);
	bool write = dir != DMA_TO_DEVICE;
	int err;

	if (!map)
		return ERR_PTR(-ENOMEM);
	map->hold = hold;
	map->dev = dev;
	map->dir = dir;
	err = tensor_device_get(hold->buf, write);
	if (err)
		goto free_map;
	err = map_device(map);
	if (err)
		goto put_device;
	return &map->sgt;

put_device:
	tensor_device_put(hold->buf, write);
free_map:
	kfree(map);
	return ERR_PTR(err);
}

/**
 * tensor_devmap_free() - unmap a device
 * @sgt: from tensor_devmap_new()
 */
void tensor_devmap_free(struct sg_table *sgt)
{
	struct device_map *map = container_of(sgt, struct device_map, sgt);
	struct tensor_buf *buf = map->hold->buf;
	bool write = map->dir != DMA_TO_DEVICE;

	mutex_lock(&buf->lock);
	list_del(&map->node);
	mutex_unlock(&buf->lock);
	dma_unmap_sgtable(map->dev, sgt, map->dir, 0);
	sg_free_table(sgt);
	tensor_span_unpin(buf, &map->span, write);
	tensor_device_put(buf, write);
	kfree(map);
}

/**
 * tensor_devmap_any() - whether a device has a dma-buf mapped
 * @hold: the hold of one dma-buf; the buffer's lock is held
 *
 * Return: whether a device has mapped through that dma-buf.
 */
bool tensor_devmap_any(const struct tensor_hold *hold)
{
	const struct device_map *map;

	list_for_each_entry(map, &hold->buf->maps, node)
		if (map->hold == hold)
			return true;
	return false;
}

static bool map_overlaps(const struct device_map *map, const struct tensor_hold *hold)
{
	return map->span.first < hold->first + hold->count &&
	       hold->first < map->span.first + map->span.count;
}

/**
 * tensor_devmap_sync() - make writes visible between the processor and devices
 * @hold: the range
 * @for_cpu: before accesses by the processor; otherwise after them, before accesses by devices
 *
 * Does nothing where devices are cache coherent.
 */
void tensor_devmap_sync(const struct tensor_hold *hold, bool for_cpu)
{
	struct tensor_buf *buf = hold->buf;
	struct device_map *map;

	mutex_lock(&buf->lock);
	list_for_each_entry(map, &buf->maps, node) {
		if (!map_overlaps(map, hold))
			continue;
		if (for_cpu)
			dma_sync_sgtable_for_cpu(map->dev, &map->sgt, map->dir);
		else
			dma_sync_sgtable_for_device(map->dev, &map->sgt, map->dir);
	}
	mutex_unlock(&buf->lock);
}
