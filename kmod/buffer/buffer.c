// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lifetime of a buffer, from allocation to eviction.
 *
 * ALLOC allocates all memory: a lack of memory is an error of ALLOC, never a SIGBUS later. The
 * inode owns everything that belongs to a buffer; dropping its last reference evicts it, also when
 * a process is killed or when the buffer could not be completed.
 */
#include <linux/dma-resv.h>
#include <linux/err.h>
#include <linux/kdev_t.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/user_namespace.h>

#include "../netlink/notify.h"
#include "buffer.h"
#include "fs.h"
#include "meta.h"
#include "purgelist.h"
#include "registry.h"
#include "state.h"
#include "trace.h"

/* Time limit for emptying the mappings again while a page is still mapped; jiffies. */
#define UNMAP_TIME max(HZ / 20, 1)

/* A span of ALLOC's pages needs no pin: a revocation leaves them to mappings counted as devices. */
static int alloc_pin(struct tensor_buf *buf, struct tensor_span *span)
{
	const struct tensor_chunks *chunks;
	unsigned long n = 0, run;
	struct folio *folio;
	struct page *page;

	mutex_lock(&buf->lock);
	chunks = buf->chunks.nr ? &buf->chunks : &buf->orphans;
	while (n < span->count) {
		cond_resched();
		page = tensor_chunks_page(chunks, span->first + n);
		folio = page_folio(page);
		run = min_t(unsigned long, span->count - n,
			    folio_nr_pages(folio) - folio_page_idx(folio, page));
		while (run--)
			span->pages[n++] = page++;
	}
	mutex_unlock(&buf->lock);
	return 0;
}

static void alloc_release(struct tensor_buf *buf)
{
	/* the shrinker may hold the lock */
	mutex_lock(&buf->lock);
	tensor_purgelist_del(buf);
	mutex_unlock(&buf->lock);
	tensor_chunks_free(&buf->chunks);
	tensor_chunks_free(&buf->orphans);
}

static const struct tensor_backing alloc_backing = {
	.kind = TENSOR_KIND_ALLOC,
	.pin = alloc_pin,
	.release = alloc_release,
};

static void buf_init(struct tensor_buf *buf)
{
	mutex_init(&buf->lock);
	init_rwsem(&buf->pages);
	dma_resv_init(&buf->resv);
	tensor_table_init(&buf->exports);
	spin_lock_init(&buf->spin);
	spin_lock_init(&buf->watch_lock);
	INIT_LIST_HEAD(&buf->maps);
	INIT_LIST_HEAD(&buf->purgeable);
	INIT_LIST_HEAD(&buf->watches);
	INIT_LIST_HEAD(&buf->watches_unread);
}

/* A buffer whose memory is not charged can outlive its handle, so it is counted like a handle. */
static int buf_count(const struct tensor_backing *backing, struct tensor_user *user, u64 client)
{
	int err = backing == &alloc_backing ? 0 : tensor_limit_count(user);

	if (err)
		tensor_notify_limit(client, 0);
	return err;
}

static void buf_uncount(const struct tensor_backing *backing, struct tensor_user *user)
{
	if (backing != &alloc_backing)
		tensor_limit_uncount(user);
}

/* Create a buffer without memory; tensor_buf_put() frees it. */
static struct tensor_buf *buf_new(const struct tensor_backing *backing, u64 bytes,
				  struct tensor_owner *hint, u64 client)
{
	struct tensor_owner *owner = tensor_owner_current(hint);
	struct tensor_buf *buf;
	int err;

	if (!owner)
		return ERR_PTR(-ENOMEM);
	err = buf_count(backing, owner->user, client);
	if (err) {
		tensor_owner_put(owner);
		return ERR_PTR(err);
	}
	buf = tensor_fs_buf(tensor_registry_id(), bytes);
	if (IS_ERR(buf)) {
		buf_uncount(backing, owner->user);
		tensor_owner_put(owner);
		return buf;
	}
	buf_init(buf);
	buf->owner = owner;
	buf->client = client;
	buf->born = ktime_get_boottime_ns();
	buf->backing = backing;
	return buf;
}

/* Publish a buffer that has its memory. */
static void buf_publish(struct tensor_buf *buf)
{
	tensor_memory_count(buf);
	buf->huge_bytes = buf->memory.huge_bytes;
	tensor_registry_add_buf(buf);
	trace_tensor_buf_new(buf);
}

/**
 * tensor_buf_fill() - allocate the pages of a buffer and charge for them
 * @buf: the buffer, with its request
 * @chunks: filled in
 *
 * Return: 0; -EDQUOT at a limit, -ENOMEM, -EINTR, -EOPNOTSUPP.
 */
int tensor_buf_fill(struct tensor_buf *buf, struct tensor_chunks *chunks)
{
	int err = tensor_chunks_alloc(chunks, &buf->request, buf->owner->user);

	if (err == -EDQUOT)
		tensor_notify_limit(buf->client, buf->bytes);
	return err;
}

/**
 * tensor_buf_alloc() - create a buffer and allocate its memory
 * @request: the request
 * @hint: owner that probably matches
 * @client: id of the calling client, which keeps the file system mounted
 *
 * Return: the buffer with one reference, dropped by tensor_buf_put(); or an ERR_PTR(): -EDQUOT at a
 * limit, -ENOMEM, -EINTR, -EOPNOTSUPP.
 */
struct tensor_buf *tensor_buf_alloc(const struct tensor_request *request, struct tensor_owner *hint,
				    u64 client)
{
	struct tensor_buf *buf =
		buf_new(&alloc_backing, (u64)request->pages << PAGE_SHIFT, hint, client);
	int err;

	if (IS_ERR(buf))
		return buf;
	buf->request = *request;
	err = tensor_buf_fill(buf, &buf->chunks);
	if (err) {
		tensor_buf_put(buf);
		return ERR_PTR(err);
	}
	buf_publish(buf);
	return buf;
}

/**
 * tensor_buf_adopt() - create a buffer for existing memory
 * @backing: the operations of its kind of memory
 * @source: private data of @backing, which releases it; stays with the caller on error
 * @bytes: size, a multiple of the page size, not 0
 * @hint: owner that probably matches
 * @client: id of the calling client, which keeps the file system mounted
 *
 * Return: as tensor_buf_alloc().
 */
struct tensor_buf *tensor_buf_adopt(const struct tensor_backing *backing, void *source, u64 bytes,
				    struct tensor_owner *hint, u64 client)
{
	struct tensor_buf *buf = buf_new(backing, bytes, hint, client);

	if (IS_ERR(buf))
		return buf;
	buf->source = source;
	buf_publish(buf);
	return buf;
}

static void buf_evict(struct tensor_buf *buf)
{
	trace_tensor_buf_evict(buf);
	tensor_registry_del_buf(buf);
	if (buf->backing->release)
		buf->backing->release(buf);
	dma_resv_fini(&buf->resv);
	buf_uncount(buf->backing, buf->owner->user);
	tensor_owner_put(buf->owner);
}

/**
 * tensor_buffer_init() - set up the file system of the buffers
 *
 * Return: 0 or -ENOMEM.
 */
int __init tensor_buffer_init(void)
{
	return tensor_fs_init(buf_evict);
}

/**
 * tensor_buffer_exit() - tear it down; no buffer is left
 */
void tensor_buffer_exit(void)
{
	tensor_fs_exit();
}

/*
 * With @pages locked against new faults: wait for faults in progress, or return false if there is
 * one.
 */
static bool wait_for_faults(const struct tensor_chunks *chunks, bool wait)
{
	struct folio *folio;
	size_t i;

	for (i = 0; i < chunks->nr; i++) {
		folio = page_folio(chunks->list[i].head);
		if (wait)
			folio_lock(folio);
		else if (!folio_trylock(folio))
			return false;
		folio_unlock(folio);
		cond_resched();
	}
	return true;
}

/* Whether a page table entry for one of the pages exists. */
static bool chunks_mapped(const struct tensor_chunks *chunks)
{
	size_t i;

	for (i = 0; i < chunks->nr; i++) {
		if (folio_mapped(page_folio(chunks->list[i].head)))
			return true;
		cond_resched();
	}
	return false;
}

/**
 * tensor_buf_block() - empty all mappings and block faults
 * @buf: the buffer; its lock is held
 * @wait: wait for faults in progress; otherwise fail if there is one
 *
 * A fault locks a page before it releases the page list, and the core keeps that lock until the
 * page table entry is set. So once this holds the list and has seen each page unlocked, no entry
 * can appear after those that it removes. An entry that mremap() is moving may stay: its page has a
 * reference, which tensor_chunks_idle() finds; see also tensor_buf_unmap().
 *
 * Return: whether faults are blocked; if so @buf->pages is held until tensor_buf_unblock().
 */
bool tensor_buf_block(struct tensor_buf *buf, bool wait)
{
	lockdep_assert_held(&buf->lock);
	if (wait)
		down_write(&buf->pages);
	else if (!down_write_trylock(&buf->pages))
		return false;
	if (!wait_for_faults(&buf->chunks, wait)) {
		up_write(&buf->pages);
		return false;
	}
	unmap_mapping_range(buf->inode.i_mapping, 0, buf->bytes, 1);
	return true;
}

/**
 * tensor_buf_unmap() - empty the mappings of a blocked buffer until no page is mapped
 * @buf: the buffer
 *
 * The core's walk can miss the entry of a huge page that mremap() moves: it checks the old and the
 * new address without their locks, and meanwhile the entry may be at neither. So the walk is
 * repeated, for a limited time, since others may map pages that they have a reference to
 * (TCP_ZEROCOPY_RECEIVE).
 */
void tensor_buf_unmap(struct tensor_buf *buf)
{
	struct address_space *mapping = buf->inode.i_mapping;
	unsigned long end = jiffies + UNMAP_TIME;

	while (mapping_mapped(mapping) && chunks_mapped(&buf->chunks) &&
	       time_before(jiffies, end)) {
		schedule_timeout_uninterruptible(1);
		unmap_mapping_range(mapping, 0, buf->bytes, 1);
	}
}

/**
 * tensor_buf_unblock() - undo tensor_buf_block(): faults map the current pages again
 * @buf: the buffer
 */
void tensor_buf_unblock(struct tensor_buf *buf)
{
	up_write(&buf->pages);
}

/**
 * tensor_buf_swap() - exchange the pages of a buffer
 * @buf: the buffer, blocked by tensor_buf_block(), with its lock held
 * @chunks: the new pages, or empty; on return the old pages, for tensor_chunks_free()
 */
void tensor_buf_swap(struct tensor_buf *buf, struct tensor_chunks *chunks)
{
	swap(buf->chunks, *chunks);
	tensor_memory_count(buf);
}

static void info_owner(const struct tensor_owner *owner, struct tensor_info *info)
{
	info->pid = pid_vnr(owner->pid);
	info->uid = from_kuid_munged(current_user_ns(), owner->uid);
}

static void info_refs(const struct tensor_buf *buf, struct tensor_info *info)
{
	info->handles = atomic_read(&buf->handles);
	info->files = atomic_read(&buf->files);
	info->mappings = atomic_read(&buf->mappings);
	info->dmabufs = atomic_read(&buf->dmabufs);
	info->attachments = atomic_read(&buf->attachments);
	info->refs = info->handles + info->files + info->mappings + info->dmabufs;
}

static void info_memory(struct tensor_buf *buf, struct tensor_info *info)
{
	struct tensor_memory memory;

	BUILD_BUG_ON(TENSOR_ORDERS > TENSOR_UAPI_ORDERS);
	tensor_memory_get(buf, &memory);
	info->huge_bytes = memory.huge_bytes;
	info->pinned_bytes = memory.pinned_bytes;
	info->node = memory.node;
	memset(info->chunks, 0, sizeof(info->chunks));
	memcpy(info->chunks, memory.count, sizeof(memory.count));
	down_read(&buf->pages);
	info->dma_bytes = tensor_chunks_dma_bytes(&buf->chunks);
	up_read(&buf->pages);
}

static void info_state(const struct tensor_hold *hold, struct tensor_info *info)
{
	struct tensor_buf *buf = hold->buf;
	struct tensor_desc desc;

	tensor_desc_get_part(hold, &desc);
	spin_lock(&buf->spin);
	info->state = buf->state;
	info->seals = buf->seals;
	info->generation = buf->generation;
	spin_unlock(&buf->spin);
	info->state |= tensor_hold_state(hold);
	if (desc.bits)
		info->state |= TENSOR_STATE_META;
	info->rights = hold->rights;
}

/**
 * tensor_buf_info() - fill in the reply of INFO
 * @hold: the buffer, with the range and the rights of the caller
 * @info: all members are written except the caller's arguments
 */
void tensor_buf_info(const struct tensor_hold *hold, struct tensor_info *info)
{
	struct tensor_buf *buf = hold->buf;

	info_state(hold, info);
	info->kind = buf->backing->kind;
	info->bytes = (u64)hold->count << PAGE_SHIFT;
	info->offset = (u64)hold->first << PAGE_SHIFT;
	info->dev = new_encode_dev(buf->inode.i_sb->s_dev);
	info->ino = buf->id;
	info->age_ns = ktime_get_boottime_ns() - buf->born;
	info_owner(buf->owner, info);
	info_refs(buf, info);
	info_memory(buf, info);
}
