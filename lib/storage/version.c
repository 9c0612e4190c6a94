// SPDX-License-Identifier: LGPL-2.1-only OR MIT
/*
 * Versions of storages in buffers: the number of in-place changes by operators of all processes.
 *
 * The memfd provider has a counter in the page of the descriptor, which every process with the buffer maps. A peer can
 * write any number there; it is read once and only compared. With the device provider the count is the module's
 * generation of writes, for buffers that another process may have: a system call. Buffers that were not shared, and
 * those that cannot be asked any more (inherited over fork()), count in the storage.
 */
#include "storage/storage.h"

#include "storage/provider/provider.h"

static struct tensor_buffer *buffer_below(const struct tensor_storage *s)
{
	const struct storage_ops *ops = storage_ops_of(s);

	for (; ops->base; ops = storage_ops_of(s))
		s = ops->base(s);
	return ops->buffer ? ops->buffer((struct tensor_storage *)s) : NULL;
}

static struct descriptor_page *page_of(const struct tensor_buffer *b)
{
	return b->writes ? b->page : NULL;
}

/* The changes that only this process counts. */
static uint32_t own(const struct tensor_storage *s)
{
	return (uint32_t)atomic_load_explicit(&s->version, memory_order_relaxed);
}

void storage_version_begin(struct tensor_storage *s)
{
	struct tensor_buffer *b = buffer_below(s);
	struct descriptor_page *page = page_of(b);

	/* A buffer of this process alone may have a count of earlier storages. */
	if (page && !b->shared) {
		atomic_store_explicit(&page->writes, own(s), memory_order_relaxed);
		atomic_store_explicit(&page->alone, 0, memory_order_relaxed);
	}
	s->buffer_counts = page ? !atomic_load_explicit(&page->alone, memory_order_relaxed) :
				  b->provider->generation != NULL;
}

uint32_t storage_buffer_version(const struct tensor_storage *s)
{
	const struct tensor_buffer *b = buffer_below(s);
	uint64_t n;

	if (b->writes)
		return atomic_load_explicit(b->writes, memory_order_relaxed);
	return own(s) + (b->shared && !b->provider->generation(b, &n) ? (uint32_t)n : 0);
}

void storage_buffer_written(struct tensor_storage *s)
{
	struct tensor_buffer *b = buffer_below(s);

	/* Operators refuse tensors that are read-only, but statistics may be counted without one. */
	if (b->writes && !b->readonly)
		atomic_fetch_add_explicit(b->writes, 1, memory_order_relaxed);
	else if (!b->writes && (!b->shared || b->provider->wrote(b) < 0))
		atomic_fetch_add_explicit(&s->version, 1, memory_order_relaxed);
}

void storage_version_alone(struct tensor_storage *s)
{
	struct tensor_buffer *b;
	struct descriptor_page *page;

	if (!s->buffer_counts)
		return;
	b = buffer_below(s);
	page = page_of(b);
	if (page && !b->readonly)
		atomic_store_explicit(&page->alone, 1, memory_order_relaxed);
	atomic_store_explicit(&s->version, (int)storage_buffer_version(s), memory_order_relaxed);
	s->buffer_counts = false;
}
