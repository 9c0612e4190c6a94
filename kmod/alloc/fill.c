// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allocation of the pages of a buffer, and charging for them.
 *
 * The charge comes first, so that a request above a limit allocates nothing.
 */
#include <linux/bitops.h>
#include <linux/err.h>
#include <linux/log2.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/string.h>

#include "alloc.h"

/* The largest order that fits at @index, is aligned there, and does not run past the end. */
static unsigned int chunk_order(unsigned long index, unsigned long pages, unsigned int top)
{
	unsigned int order = min_t(unsigned int, top, ilog2(pages - index));

	return index ? min_t(unsigned int, order, __ffs(index)) : order;
}

/* Append a chunk. @top is lowered permanently when an order was not available. */
static int chunks_extend(struct tensor_chunks *c, struct tensor_source *src, unsigned int *top)
{
	unsigned int order = chunk_order(c->pages, src->request->pages, *top);
	struct page *head;
	int err;

	if (c->nr == c->room) {
		err = tensor_chunks_grow(c, c->room * 2);
		if (err)
			return err;
	}
	for (;;) {
		if (fatal_signal_pending(current))
			return -EINTR;
		head = tensor_source_get(src, order);
		if (IS_ERR(head))
			return PTR_ERR(head);
		if (head)
			break;
		if (order == src->request->min_order)
			return -ENOMEM;
		*top = --order;
	}
	tensor_chunks_append(c, head, order);
	return 0;
}

static int chunks_fill(struct tensor_chunks *c, struct tensor_source *src)
{
	unsigned int top = src->request->max_order;
	unsigned long pages = src->request->pages;
	int err;

	/* enough if no order fails: whole chunks, then at most one of each smaller order */
	err = tensor_chunks_grow(c, (pages >> top) + hweight_long(pages & ((1UL << top) - 1)));
	while (!err && c->pages < pages) {
		err = chunks_extend(c, src, &top);
		cond_resched();
	}
	return err;
}

/**
 * tensor_chunks_alloc() - allocate zeroed pages and charge for them
 * @c: filled in, for tensor_chunks_free()
 * @request: number and kind of pages
 * @user: user to charge; @c takes a reference of its own
 *
 * May sleep, for as long as zeroing takes; a fatal signal interrupts it.
 *
 * Return: 0; -EDQUOT at a limit; -ENOMEM, also when the memory cgroup is full; -EOPNOTSUPP: larger
 * than the contiguous memory that this kernel offers to modules; -EINTR. On error @c need not be
 * freed.
 */
int tensor_chunks_alloc(struct tensor_chunks *c, const struct tensor_request *request,
			struct tensor_user *user)
{
	u64 bytes = (u64)request->pages << PAGE_SHIFT;
	struct tensor_source src;
	int err;

	memset(c, 0, sizeof(*c));
	tensor_source_init(&src, request);
	err = request->contig ? tensor_contig_check(&src) : 0;
	if (err)
		return err;
	err = tensor_limit_charge(user, bytes);
	if (err)
		return err;
	c->user = tensor_user_hold(user);
	c->recycle = src.pool;
	err = request->contig ? tensor_contig_fill(c, &src) : chunks_fill(c, &src);
	if (err) {
		tensor_limit_uncharge(user, bytes - ((u64)c->pages << PAGE_SHIFT));
		tensor_chunks_free(c);
	}
	return err;
}
